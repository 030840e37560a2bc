//! The ledger: the state of each message of a run, and checks of all that endpoints report.
//!
//! The problem: results are times and bytes of messages. A transport's endpoint reports them about
//! itself. A transport with a mistake may report a delivery with bytes missing, or count a byte
//! twice.
//!
//! The simple way trusts the reports. A mistake then shows as a good result. Another simple way
//! stores a set of bytes for each message. That costs memory and time for each packet.
//!
//! The present way: the run loop submits each message to the ledger, which numbers it. Endpoints
//! report [`Receipt::Fresh`](rampmeter_types::Receipt) or `Duplicate` for each packet, and
//! [`Event`]s. The ledger counts fresh bytes and compares them with the message's size:
//!
//! * Fresh bytes never exceed the size.
//! * `Delivered` requires all bytes and the right sender, and is reported once.
//! * `Completed` requires an earlier `Delivered`. It excludes `Failed`, and each is reported once.
//! * `Rejected` requires that no byte has arrived.
//!
//! A false report panics with the seed, which replays the run. [`take_violation`] separates such
//! panics from others. An entry ends if its message is delivered and its sender is notified, or if
//! it is rejected. The oldest ended entries are removed, so memory follows the span of open
//! messages.
//!
//! Hazards: counts cannot find a byte that is counted twice while another is missing. Paranoid runs
//! compare each receipt with `is_duplicate` of the endpoint. A failed message may still be
//! delivered, so its entry stays open until the run ends. One message that never ends keeps all
//! later entries in memory. Fresh bytes of an ended message panic, so endpoints must remember which
//! messages they have delivered.

mod partition;
pub(crate) mod report;

use std::cell::Cell;
use std::collections::VecDeque;

use rampmeter_types::{Bytes, Event, MsgId, PayloadRef, Span, Time};

use crate::arrival::Arrival;
use crate::probe::FlowRecord;
use report::{Instant, Report, ReportLog};

thread_local! {
    /// True if the last panic of this thread is the ledger's.
    static HAS_VIOLATION: Cell<bool> = const { Cell::new(false) };
}

/// Returns true once after a panic of the ledger on this thread: a transport has reported an event
/// that cannot be true.
pub fn take_violation() -> bool {
    HAS_VIOLATION.take()
}

/// Marks a panic of another thread that is continued on this one.
pub(crate) fn mark_violation(is_violation: bool) {
    HAS_VIOLATION.set(is_violation);
}

/// Panics with a message about a transport's event.
macro_rules! violated {
    ($($message:tt)+) => {{
        HAS_VIOLATION.set(true);
        panic!($($message)+)
    }};
}

/// Panics with a message about a transport's event unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            violated!($($message)+)
        }
    };
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Events taken from the queue.
    pub events: u64,
    /// Messages submitted.
    pub submitted: u64,
    /// Messages delivered in full.
    pub delivered: u64,
    /// Messages that their sender reported as failed.
    pub failed: u64,
    /// Messages that the network did not take.
    pub rejected: u64,
    /// Bytes submitted.
    pub offered_bytes: u64,
    /// Message bytes that reached their receiver for the first time.
    pub fresh_bytes: u64,
    /// Data packets that brought them.
    pub fresh_packets: u64,
    /// Message bytes that had been there before.
    pub duplicate_bytes: u64,
    /// Time at which the last message was submitted.
    pub last_arrival: Time,
    /// `fresh_bytes` at that moment.
    pub fresh_bytes_at_last_arrival: u64,
    /// `fresh_packets` at that moment.
    pub fresh_packets_at_last_arrival: u64,
}

/// Every message from its submission to its end.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) counters: Counters,
    seed: u64,
    /// Messages not yet over, and those after the first of them.
    flows: VecDeque<MessageEntry>,
    /// The number of the first.
    first: u32,
    /// Messages neither confirmed nor failed.
    open: u64,
    /// Message bytes that have arrived, by tenant.
    delivered: Vec<u64>,
    /// Reports that wait for the ledger of the run, if this is that of a partition.
    pub(crate) log: Option<ReportLog>,
}

#[derive(Clone, Debug)]
struct MessageEntry {
    record: FlowRecord,
    is_over: bool,
}

impl Ledger {
    /// Failures of checks name `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let (counters, flows) = (Counters::default(), VecDeque::new());
        Self { counters, seed, flows, first: 0, open: 0, delivered: vec![0], log: None }
    }

    /// Returns true if every message submitted is confirmed or has failed.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.open == 0
    }

    /// Submits and numbers a message.
    pub(crate) fn submit(&mut self, now: Time, arrival: &Arrival) -> MsgId {
        let id = MsgId::new(self.first + self.flows.len() as u32);
        let record = FlowRecord::new(id, now, arrival);
        self.flows.push_back(MessageEntry { record, is_over: false });
        self.open += 1;
        if self.delivered.len() <= arrival.tenant.idx() {
            self.delivered.resize(arrival.tenant.idx() + 1, 0);
        }
        self.counters.submitted += 1;
        self.counters.offered_bytes += arrival.size.get();
        id
    }

    /// Records the time within which the transport promises to report the fate of a message to its
    /// sender.
    pub(crate) fn set_bound(&mut self, at: Instant, msg: MsgId, bound: Option<Span>) {
        if let Some(log) = &mut self.log {
            return log.on_submitted(at, msg, bound);
        }
        if let Some(entry) = self.entry(msg) {
            entry.record.bound = bound;
        }
    }

    /// Notes that the last message has been submitted.
    pub(crate) fn on_last_arrival(&mut self, now: Time) {
        let counters = &mut self.counters;
        counters.last_arrival = now;
        counters.fresh_bytes_at_last_arrival = counters.fresh_bytes;
        counters.fresh_packets_at_last_arrival = counters.fresh_packets;
    }

    #[inline]
    fn entry(&mut self, msg: MsgId) -> Option<&mut MessageEntry> {
        let idx = msg.get().checked_sub(self.first)?;
        self.flows.get_mut(idx as usize)
    }

    /// Returns the number in the workload of a message that is not over.
    pub(crate) fn number(&self, msg: MsgId) -> Option<u32> {
        let idx = msg.get().checked_sub(self.first)?;
        self.flows.get(idx as usize).map(|entry| entry.record.number)
    }

    /// Returns the bytes of a message that is not over.
    #[inline]
    pub(crate) fn size(&self, msg: MsgId) -> Option<Bytes> {
        let idx = msg.get().checked_sub(self.first)?;
        self.flows.get(idx as usize).map(|entry| entry.record.size)
    }

    /// Returns true if all bytes of a message that is not over have arrived.
    pub(crate) fn has_all(&self, msg: MsgId) -> bool {
        let idx = msg.get().checked_sub(self.first);
        let entry = idx.and_then(|idx| self.flows.get(idx as usize));
        entry.is_some_and(|entry| entry.record.fresh_bytes == entry.record.size)
    }

    /// Adds bytes that an endpoint reports as new.
    #[inline]
    pub(crate) fn on_fresh(&mut self, now: Time, payload: PayloadRef) {
        let bytes = u64::from(payload.len);
        self.counters.fresh_bytes += bytes;
        self.counters.fresh_packets += 1;
        let seed = self.seed;
        let entry = self.entry(payload.msg);
        let entry = entry.expect("fresh bytes belong to a message that is not over");
        entry.record.fresh_bytes += Bytes::new(bytes);
        entry.record.first_byte.get_or_insert(now);
        let (size, tenant) = (entry.record.size.get(), entry.record.tenant);
        ensure!(
            entry.record.fresh_bytes.get() <= size,
            "seed {seed}: a byte delivered twice at {now}"
        );
        self.delivered[tenant.idx()] += bytes;
    }

    /// Adds bytes of a message that a sender sends.
    #[inline]
    pub(crate) fn on_sent(&mut self, payload: PayloadRef) {
        if payload.len > 0
            && let Some(entry) = self.entry(payload.msg)
        {
            entry.record.sent_bytes += Bytes::new(u64::from(payload.len));
        }
    }

    /// Returns the message bytes that have arrived so far, by tenant.
    #[inline]
    pub(crate) fn delivered(&self) -> &[u64] {
        &self.delivered
    }

    /// Adds bytes that had arrived before.
    pub(crate) fn on_duplicate(&mut self, at: Instant, payload: PayloadRef) {
        let bytes = u64::from(payload.len);
        self.counters.duplicate_bytes += bytes;
        if let Some(log) = &mut self.log {
            return log.push(at, Report::Duplicate { msg: payload.msg, bytes });
        }
        self.add_duplicate(payload.msg, bytes);
    }

    fn add_duplicate(&mut self, msg: MsgId, bytes: u64) {
        if let Some(entry) = self.entry(msg) {
            entry.record.duplicate_bytes += Bytes::new(bytes);
        }
    }

    /// Handles an event of an endpoint. Returns the message's record if it has ended.
    #[inline]
    pub(crate) fn on_event(&mut self, at: Instant, event: Event) -> Option<FlowRecord> {
        let now = at.0;
        let seed = self.seed;
        let msg = match event {
            Event::Delivered { msg, .. }
            | Event::Completed { msg }
            | Event::Failed { msg }
            | Event::Rejected { msg } => msg,
            Event::Abandoned { .. } => return None,
        };
        if self.log.is_some() {
            self.report(at, msg, event);
            return None;
        }
        let entry = self.entry(msg);
        let Some(entry) = entry else { violated!("seed {seed}: {event:?} after its end at {now}") };
        let flow = &mut entry.record;
        let fresh = flow.fresh_bytes.get();
        match event {
            Event::Delivered { src, .. } => {
                ensure!(flow.delivered.is_none(), "seed {seed}: {event:?} twice at {now}");
                let size = flow.size.get();
                ensure!(
                    fresh == size && flow.src == src,
                    "seed {seed}: {event:?} with {fresh} of {size} bytes at {now}"
                );
                flow.delivered = Some(now);
                self.counters.delivered += 1;
            }
            Event::Abandoned { .. } => {}
            Event::Completed { .. } => {
                let in_turn = flow.delivered.is_some();
                ensure!(
                    in_turn && flow.completed.is_none() && flow.failed.is_none(),
                    "seed {seed}: {event:?} out of turn at {now}"
                );
                flow.completed = Some(now);
                self.open -= 1;
            }
            Event::Failed { .. } => {
                ensure!(
                    flow.completed.is_none() && flow.failed.is_none(),
                    "seed {seed}: {event:?} out of turn at {now}"
                );
                flow.failed = Some(now);
                self.counters.failed += 1;
                self.open -= 1;
            }
            Event::Rejected { .. } => {
                ensure!(
                    fresh == 0 && flow.failed.is_none() && flow.rejected.is_none(),
                    "seed {seed}: {event:?} of a message that was sent, at {now}"
                );
                flow.rejected = Some(now);
                self.counters.rejected += 1;
                self.open -= 1;
            }
        }
        self.close(msg)
    }

    /// Returns the record of a message that has ended; those at the front are removed.
    fn close(&mut self, msg: MsgId) -> Option<FlowRecord> {
        let entry = self.entry(msg)?;
        let flow = &entry.record;
        // A failed message may still be delivered; it is recorded at the end.
        let is_delivered = flow.delivered.is_some();
        let is_over = is_delivered && (flow.completed.is_some() || flow.failed.is_some());
        if !is_over && flow.rejected.is_none() {
            return None;
        }
        let record = *flow;
        entry.is_over = true;
        while self.flows.front().is_some_and(|e| e.is_over) {
            self.flows.pop_front();
            self.first += 1;
        }
        Some(record)
    }

    /// Records of the messages that are not over, by number.
    pub(crate) fn open(&self) -> impl Iterator<Item = &FlowRecord> {
        self.flows.iter().filter(|e| !e.is_over).map(|e| &e.record)
    }

    /// Ends everything: the records of the messages that are not over.
    pub(crate) fn close_all(&mut self) -> impl Iterator<Item = FlowRecord> + use<'_> {
        let open = self.flows.iter_mut().filter(|e| !e.is_over);
        open.map(|entry| {
            entry.is_over = true;
            entry.record
        })
    }
}
