//! State of each descriptor.
//!
//! Entries are atomics in memory that is zero at first and never freed. Most are never written, and
//! use no memory.

#![allow(unsafe_code, reason = "memory that the system maps")]

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use libc::c_int;

use crate::sys;

/// Number of entries. Descriptors beyond are ignored.
const ENTRIES: usize = 1 << 16;
/// Maximum number of epoll descriptors that a connection may be in at the same time.
pub(crate) const WATCHES: usize = 4;

/// Kind of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DescriptorKind {
    /// A descriptor that has not been checked yet.
    Unknown,
    /// A descriptor that this library does not schedule.
    Other,
    /// A TCP socket that is not connected, or has no agent yet.
    Tcp,
    /// A connection to a host in the agent's list.
    Scheduled,
}

/// State of a descriptor. Zero is the initial value of every field; numbers of descriptors are one
/// more.
#[derive(Debug, Default)]
pub(crate) struct DescriptorState {
    kind: AtomicU32,
    /// Number of the agent's link, the slot there, and its generation.
    pub(crate) link: AtomicU64,
    pub(crate) slot: AtomicU32,
    pub(crate) generation: AtomicU64,
    /// The program's end of its gate.
    pub(crate) gate: AtomicI32,
    /// Bytes that the present call requests beyond the one before.
    pub(crate) requested_bytes: AtomicU64,
    /// Pacing rate that was set, plus one.
    pub(crate) pacing_rate: AtomicU64,
    /// Limit of unsent bytes that the program had set, plus one.
    pub(crate) unsent: AtomicU64,
    /// Number of watches at the gate instead of the connection.
    pub(crate) n_diverted: AtomicU32,
    /// Epoll descriptors that the connection is in.
    pub(crate) watches: [EpollWatch; WATCHES],
}

/// Registration of a connection at an epoll descriptor.
#[derive(Debug, Default)]
pub(crate) struct EpollWatch {
    pub(crate) epoll: AtomicI32,
    pub(crate) events: AtomicU32,
    pub(crate) data: AtomicU64,
    /// Nonzero if it waits for the gate.
    pub(crate) is_diverted: AtomicU32,
    /// Process that it belongs to, as its number of forks.
    pub(crate) forks: AtomicU32,
}

impl DescriptorState {
    pub(crate) fn kind(&self) -> DescriptorKind {
        match self.kind.load(SeqCst) {
            1 => DescriptorKind::Other,
            2 => DescriptorKind::Tcp,
            3 => DescriptorKind::Scheduled,
            _ => DescriptorKind::Unknown,
        }
    }

    pub(crate) fn set_kind(&self, kind: DescriptorKind) {
        self.kind.store(kind as u32, SeqCst);
    }

    /// Clears all fields.
    pub(crate) fn clear(&self) {
        let Self {
            kind,
            link,
            slot,
            generation,
            gate,
            requested_bytes,
            pacing_rate,
            unsent,
            n_diverted,
            watches,
        } = self;
        for word in [link, generation, requested_bytes, pacing_rate, unsent] {
            word.store(0, SeqCst);
        }
        for word in [kind, slot, n_diverted] {
            word.store(0, SeqCst);
        }
        gate.store(0, SeqCst);
        for watch in watches {
            watch.epoll.store(0, SeqCst);
            watch.is_diverted.store(0, SeqCst);
        }
    }
}

static TABLE: AtomicPtr<DescriptorState> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the entry of a descriptor; `None` for those that are ignored.
pub(crate) fn entry(fd: c_int) -> Option<&'static DescriptorState> {
    let idx = usize::try_from(fd).ok().filter(|&idx| idx < ENTRIES)?;
    let mut table = TABLE.load(SeqCst);
    if table.is_null() {
        let made: *mut DescriptorState =
            sys::map_zeroed(ENTRIES * size_of::<DescriptorState>()).cast();
        if made.is_null() {
            return None;
        }
        // If two threads arrive here, one table is used and the other stays empty.
        table = match TABLE.compare_exchange(std::ptr::null_mut(), made, SeqCst, SeqCst) {
            Ok(_) => made,
            Err(other) => other,
        };
    }
    // SAFETY: within the table, which is never unmapped; zeroes are values of all fields, and all
    // are atomics.
    Some(unsafe { &*table.add(idx) })
}

/// Set of descriptors.
pub(crate) struct FdSet([AtomicU64; ENTRIES / 64]);

/// Descriptors of this library: gates, and the connection to the agent.
pub(crate) static OWN: FdSet = FdSet::new();
/// Descriptors with an entry in use.
pub(crate) static TRACKED: FdSet = FdSet::new();

impl FdSet {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ENTRIES / 64])
    }

    pub(crate) fn has(&self, fd: c_int) -> bool {
        let word = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd / 64));
        word.is_some_and(|word| word.load(SeqCst) >> (fd % 64) & 1 == 1)
    }

    pub(crate) fn set(&self, fd: c_int, is_in: bool) {
        let Some(word) = usize::try_from(fd).ok().and_then(|fd| self.0.get(fd / 64)) else {
            return;
        };
        match is_in {
            true => word.fetch_or(1 << (fd % 64), SeqCst),
            false => word.fetch_and(!(1 << (fd % 64)), SeqCst),
        };
    }

    /// Returns the descriptors from `first` to `last` that are in the set, in ascending order.
    pub(crate) fn range(&self, first: u32, last: u32) -> impl Iterator<Item = c_int> {
        let last = last.min(ENTRIES as u32 - 1);
        let words = (first as usize / 64)..(last as usize / 64 + 1).min(ENTRIES / 64);
        let of = |word: usize| self.0.get(word).map_or(0, |bits| bits.load(SeqCst));
        let all = words.filter(move |&word| of(word) != 0).flat_map(move |word| {
            let bits = of(word);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
        });
        all.filter(move |fd| (first..=last).contains(fd)).map(|fd| fd as c_int)
    }
}
