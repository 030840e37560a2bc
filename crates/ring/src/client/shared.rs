//! State that a port shares with its messages, which may outlive it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rampmeter_runtime::Ticket;
use rampmeter_types::NodeId;
use rampmeter_types::collections::IdMap;

use super::error::{NodeGone, SubmitError};
use super::options::Options;
use crate::arena::{AllocationFit, Arena, Extent};
use crate::clock::{monotonic_ns, nanoseconds};
use crate::entry::{CompletionEntry, SubmissionEntry};
use crate::layout::{CQ_WORDS, Layout, RQ_WORDS, SQ_WORDS};
use crate::map::{Memory, Region};
use crate::ring::{Consumer, CorruptCounter, Producer};

/// Application's half of the memory.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    memory: Arc<Memory>,
    layout: Layout,
    sending: Mutex<SendSide>,
    completions: Mutex<Consumer<CQ_WORDS>>,
    releases: Mutex<Producer<RQ_WORDS>>,
}

/// Send side of a port.
#[derive(Debug)]
struct SendSide {
    submissions: Producer<SQ_WORDS>,
    arena: Arena,
    next: u64,
    /// Extents of messages in flight.
    in_flight: IdMap<Ticket, Extent>,
    /// Messages that were in flight when the node ended; `None` before that.
    lost: Option<VecDeque<Ticket>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedMemory {
    pub(crate) fn new(memory: Memory, layout: Layout) -> Self {
        let memory = Arc::new(memory);
        let sending = SendSide {
            submissions: Producer::new(Arc::clone(&memory), layout.sq),
            arena: Arena::new(layout.send.len),
            next: 0,
            in_flight: IdMap::default(),
            lost: None,
        };
        Self {
            sending: Mutex::new(sending),
            completions: Mutex::new(Consumer::new(Arc::clone(&memory), layout.cq)),
            releases: Mutex::new(Producer::new(Arc::clone(&memory), layout.rq)),
            memory,
            layout,
        }
    }

    #[cfg(test)]
    pub(crate) fn memory(&self) -> (&Memory, Layout) {
        (&self.memory, self.layout)
    }

    /// Returns an error if no further message may be in flight.
    fn check(&self, sending: &SendSide) -> Result<(), SubmitError> {
        let depth = self.layout.depth;
        if sending.lost.is_some() {
            Err(NodeGone.into())
        } else if sending.in_flight.len() >= depth as usize {
            Err(SubmitError::Full { depth })
        } else {
            Ok(())
        }
    }

    /// Allocates memory for a message of `size` bytes in the send arena.
    pub(crate) fn alloc(&self, size: usize) -> Result<(Region, Extent), SubmitError> {
        let mut sending = lock(&self.sending);
        self.check(&sending)?;
        let max = self.layout.send.len.min(u32::MAX.into());
        let bytes = size as u64;
        if bytes > max || sending.arena.fit(bytes) == AllocationFit::Never {
            return Err(SubmitError::TooLong { size, max });
        }
        let extent = sending.arena.alloc(bytes).ok_or(SubmitError::NoRoom { size })?;
        let at = self.layout.send.locate(extent.offset(), bytes);
        let at = at.expect("the arena is within its part of the memory");
        Ok((self.memory.region(at, size), extent))
    }

    /// Submits a message of `size` bytes and takes ownership of `extent`. Returns the ticket, and
    /// true if the node must be woken.
    pub(crate) fn submit(
        &self,
        dst: NodeId,
        service: u16,
        size: u32,
        extent: &mut Option<Extent>,
        options: Options,
    ) -> Result<(Ticket, bool), SubmitError> {
        let until = |span| monotonic_ns().saturating_add(nanoseconds(span));
        let deadline_ns = options.deadline.map_or(u64::MAX, until);
        let mut sending = lock(&self.sending);
        self.check(&sending)?;
        let ticket = Ticket(sending.next);
        let submit = SubmissionEntry {
            ticket: ticket.0,
            offset: extent.as_ref().map_or(0, Extent::offset),
            size,
            dst: dst.get(),
            service,
            tenant: options.tenant,
            deadline_ns,
        };
        if sending.submissions.push(submit.encode()).is_err() {
            return Err(SubmitError::Full { depth: self.layout.depth });
        }
        sending.next += 1;
        if let Some(extent) = extent.take() {
            sending.in_flight.insert(ticket, extent);
        }
        let must_wake = sending.submissions.take_wake_request();
        Ok((ticket, must_wake))
    }

    pub(crate) fn free_extent(&self, extent: Extent) {
        lock(&self.sending).arena.free(extent);
    }

    /// Returns the next message that is lost with the node.
    pub(crate) fn fail_next(&self) -> Option<Ticket> {
        let sending = &mut *lock(&self.sending);
        let lost = sending.lost.get_or_insert_with(|| {
            let mut lost: Vec<_> = sending.in_flight.drain().collect();
            lost.sort_unstable_by_key(|(ticket, _)| *ticket);
            let tickets = lost.into_iter().map(|(ticket, extent)| {
                sending.arena.free(extent);
                ticket
            });
            tickets.collect()
        });
        lost.pop_front()
    }

    pub(crate) fn in_flight(&self) -> usize {
        let sending = lock(&self.sending);
        sending.in_flight.len() + sending.lost.as_ref().map_or(0, VecDeque::len)
    }

    /// Returns the next completion. Its effect on a message is applied before another thread can
    /// see an empty queue, so that no message is reported twice.
    pub(crate) fn pop(&self) -> Result<Option<CompletionEntry>, CorruptCounter> {
        let mut completions = lock(&self.completions);
        let Some(words) = completions.pop()? else { return Ok(None) };
        let completion = CompletionEntry::decode(words).ok_or(CorruptCounter)?;
        if let CompletionEntry::Finished { ticket, .. } = completion {
            let mut sending = lock(&self.sending);
            let extent = sending.in_flight.remove(&Ticket(ticket)).ok_or(CorruptCounter)?;
            sending.arena.free(extent);
        }
        Ok(Some(completion))
    }

    /// Requests a wake-up from the node; returns true if there is a completion already.
    pub(crate) fn arm(&self) -> bool {
        let mut completions = lock(&self.completions);
        completions.arm();
        completions.has_next() != Ok(false)
    }

    /// Returns the memory of a received message; `None` if it is not within the receive arena.
    pub(crate) fn received(&self, offset: u64, size: u32) -> Option<Region> {
        let at = self.layout.receive.locate(offset, size.into())?;
        Some(self.memory.region(at, size as usize))
    }

    pub(crate) fn release(&self, offset: u64) {
        // The ring has an entry for every message that may be held.
        let _ = lock(&self.releases).push([offset]);
    }
}
