//! Words that several processes write. All `unsafe` of the crate is here.

#![allow(unsafe_code, reason = "memory shared with other processes")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Words at a fixed address while the value lives.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is reached through atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `words` words of a file that never gets shorter.
    ///
    /// # Errors
    /// Those of `mmap`.
    pub(crate) fn map(file: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the system chooses the address, so that nothing that is mapped is replaced.
        let base = unsafe { mmap(std::ptr::null_mut(), words * 8, access, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, words })
    }

    /// Returns the words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped as long as `self` lives, aligned to pages, and any bits are a value. All
        // processes use the words as atomics.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: no other code unmaps it, and no reference to it remains.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.words * 8) };
        debug_assert!(result.is_ok(), "{result:?}");
    }
}
