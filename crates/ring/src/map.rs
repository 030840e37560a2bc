//! Memory that another process may write at any time. All `unsafe` of the crate is here.
//!
//! Words that both sides use are atomics. Messages are copied to and from raw pointers, and no
//! reference is formed to memory that the other side may write. [`Region`] is the exception: it is
//! the application's view of a message that, by the protocol, belongs to the application at the
//! time. Nodes do not use it.

#![allow(unsafe_code, reason = "memory shared with other processes")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Memory of fixed size, at a page-aligned address.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Mapped,
    #[cfg(test)]
    Heap,
}

// SAFETY: the memory is reached through atomics and raw copies only, and through regions, of which
// no two overlap (see `Memory::region`). It is at one address for as long as the value lives.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `len` bytes of a file that never gets shorter.
    ///
    /// # Errors
    /// Those of `mmap`.
    pub(crate) fn map(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the system chooses the address, so that nothing that is mapped is replaced.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, flags, file, 0)? };
        let base = NonNull::new(base.cast()).expect("no mapping is at address zero");
        Ok(Self { base, len, origin: Origin::Mapped })
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Allocates zeroed memory of this process alone.
    #[cfg(test)]
    pub(crate) fn heap(len: usize) -> Self {
        let layout = std::alloc::Layout::from_size_align(len, 4_096).unwrap();
        assert!(len > 0);
        // SAFETY: the size is not zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        Self { base: NonNull::new(base).unwrap(), len, origin: Origin::Heap }
    }

    /// Returns the address of `len` bytes from `offset` on.
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        let is_within = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(is_within, "{len} bytes at {offset} are not within {} bytes", self.len);
        // SAFETY: the offset is within the memory, as has just been checked.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Returns the word of four bytes at `offset`, a multiple of four.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "a word is at a multiple of 4, not at {offset}");
        // SAFETY: within the memory and aligned, as the memory is; it lives as long as `self`. Both
        // sides use it as an atomic, and any bits are a value.
        unsafe { AtomicU32::from_ptr(self.at(offset, 4).cast()) }
    }

    /// Returns the word of eight bytes at `offset`, a multiple of eight.
    pub(crate) fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "a long word is at a multiple of 8, not at {offset}");
        // SAFETY: as `word`.
        unsafe { AtomicU64::from_ptr(self.at(offset, 8).cast()) }
    }

    /// Copies bytes from the memory.
    pub(crate) fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let from = self.at(offset, out.len());
        // SAFETY: `from` has as many bytes as `out`, which is not in the memory. If the other side
        // writes meanwhile, any mixture of its bytes is valid: they are not interpreted.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) }
    }

    /// Copies bytes to the memory.
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: as `copy_out`, in the other direction.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Returns a message that belongs to the caller alone. Its arena allocates no byte twice, and
    /// the node does not access it while it belongs to the application.
    pub(crate) fn region(self: &Arc<Self>, offset: usize, len: usize) -> Region {
        let base = NonNull::new(self.at(offset, len)).expect("no memory is at address zero");
        Region { _memory: Arc::clone(self), base, len }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.origin {
            Origin::Mapped => {
                // SAFETY: no other code unmaps it, and no reference to it remains.
                let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
                debug_assert!(result.is_ok(), "{result:?}");
            }
            #[cfg(test)]
            Origin::Heap => {
                let layout = std::alloc::Layout::from_size_align(self.len, 4_096).unwrap();
                // SAFETY: allocated with this layout.
                unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) }
            }
        }
    }
}

/// Bytes of one message, in an application.
#[derive(Debug)]
pub(crate) struct Region {
    /// Keeps the bytes at their address.
    _memory: Arc<Memory>,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is the only one with its bytes, and keeps their memory.
unsafe impl Send for Region {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: within the memory, which `self` keeps, and exclusive to `self` (see
        // `Memory::region`).
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}
