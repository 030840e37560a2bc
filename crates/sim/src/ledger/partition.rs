//! Ledgers of partitions, and the run's ledger that takes their reports.
//!
//! A message's sender and receiver may be in different partitions. So the ledger of a partition
//! counts the bytes that its hosts send and receive, and logs all other reports of endpoints. At
//! the end of each window, the run's ledger takes the reports of all partitions in the order of the
//! events, and checks them as if there were no partitions.

use std::cmp::Reverse;

use rampmeter_types::{Bytes, Event, MsgId};

use super::report::{EndBytes, Instant, PlacedReport, Report, ReportLog};
use super::{Ledger, MessageEntry};
use crate::arrival::Arrival;
use crate::probe::FlowRecord;

impl Ledger {
    /// Returns the ledger of a partition, which begins with the open messages of this one.
    pub(crate) fn partition(&self) -> Self {
        Self {
            flows: self.flows.clone(),
            first: self.first,
            // The run ends by the ledger of the run.
            open: u64::MAX,
            delivered: vec![0; self.delivered.len()],
            log: Some(ReportLog::default()),
            ..Self::new(self.seed)
        }
    }

    /// Announces to the ledger of a partition the next message that any partition submits.
    pub(crate) fn expect(&mut self, arrival: &Arrival) -> MsgId {
        let id = MsgId::new(self.first + self.flows.len() as u32);
        let record = FlowRecord::new(id, arrival.at, arrival);
        self.flows.push_back(MessageEntry { record, is_over: false });
        if self.delivered.len() <= arrival.tenant.idx() {
            self.delivered.resize(arrival.tenant.idx() + 1, 0);
        }
        id
    }

    /// Logs an event with the bytes of its message at this end.
    pub(super) fn report(&mut self, at: Instant, msg: MsgId, event: Event) {
        let (mut fresh, mut first_byte, mut sent) = (Bytes::ZERO, None, Bytes::ZERO);
        if let Some(MessageEntry { record, .. }) = self.entry(msg) {
            (fresh, first_byte, sent) = (record.fresh_bytes, record.first_byte, record.sent_bytes);
        }
        let bytes = EndBytes { fresh, first_byte, sent };
        if let Some(log) = &mut self.log {
            log.push(at, Report::Event { event, bytes });
        }
    }

    /// Takes the reports of a partition.
    pub(crate) fn take_reports(&mut self) -> Vec<PlacedReport> {
        self.log.as_mut().map(|log| std::mem::take(&mut log.reports)).unwrap_or_default()
    }

    /// Takes a report of a partition; `next` returns the next message in the order of submission.
    /// Returns the message's record if it has ended.
    pub(crate) fn on_report(
        &mut self,
        report: PlacedReport,
        next: impl FnOnce() -> Option<Arrival>,
    ) -> Option<FlowRecord> {
        match report.report {
            Report::Submitted { msg, bound } => {
                let id =
                    self.submit(report.at.0, &next().expect("a message that arrived is submitted"));
                assert_eq!(id, msg, "messages are submitted in order");
                self.set_bound(report.at, id, bound);
                None
            }
            Report::Duplicate { msg, bytes } => {
                self.add_duplicate(msg, bytes);
                None
            }
            Report::Event { event, bytes } => {
                self.take_end_bytes(event, bytes);
                self.on_event(report.at, event)
            }
        }
    }

    fn take_end_bytes(&mut self, event: Event, bytes: EndBytes) {
        match event {
            Event::Delivered { msg, .. } => {
                if let Some(MessageEntry { record, .. }) = self.entry(msg) {
                    record.fresh_bytes = bytes.fresh;
                    record.first_byte = bytes.first_byte;
                }
            }
            Event::Completed { msg } | Event::Failed { msg } | Event::Rejected { msg } => {
                if let Some(MessageEntry { record, .. }) = self.entry(msg) {
                    record.sent_bytes = bytes.sent;
                }
            }
            Event::Abandoned { .. } => {}
        }
    }

    /// Removes the oldest messages of a partition's ledger that the run's ledger has removed.
    pub(crate) fn follow(&mut self, run: &Self) {
        while self.first < run.first && self.flows.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Adds the totals of a partition's ledger, and resets them.
    pub(crate) fn add_totals(&mut self, other: &mut Self) {
        let from = std::mem::take(&mut other.counters);
        let own = &mut self.counters;
        own.events += from.events;
        own.fresh_bytes += from.fresh_bytes;
        own.fresh_packets += from.fresh_packets;
        own.duplicate_bytes += from.duplicate_bytes;
        self.delivered.resize(self.delivered.len().max(other.delivered.len()), 0);
        for (own, from) in self.delivered.iter_mut().zip(&mut other.delivered) {
            *own += std::mem::take(from);
        }
    }

    /// Takes the bytes of open messages from the ledger of a partition: those sent by its hosts and
    /// those received by them.
    pub(crate) fn take_bytes(&mut self, other: &mut Self, is_inside: impl Fn(u32) -> bool) {
        let open = self.flows.iter_mut().filter(|entry| !entry.is_over);
        for MessageEntry { record, .. } in open {
            let Some(from) = other.entry(record.id) else { continue };
            if is_inside(record.src.get()) {
                record.sent_bytes = from.record.sent_bytes;
            }
            if is_inside(record.dst.get()) {
                record.fresh_bytes = from.record.fresh_bytes;
                record.first_byte = from.record.first_byte;
            }
        }
    }

    /// Returns the partially delivered message with the most missing bytes, which is unlikely to
    /// end soon.
    pub(crate) fn longest_open(&self) -> Option<MsgId> {
        let missing = |record: &FlowRecord| record.size - record.fresh_bytes;
        let started = self.open().filter(|record| {
            record.failed.is_none()
                && record.completed.is_none()
                && record.fresh_bytes > Bytes::ZERO
        });
        started.max_by_key(|record| (missing(record), Reverse(record.id.get()))).map(|r| r.id)
    }

    /// Returns the receiver of a message that is not over, and the bytes that are missing there.
    pub(crate) fn missing(&self, msg: MsgId) -> Option<(u32, Bytes)> {
        let idx = msg.get().checked_sub(self.first)?;
        let MessageEntry { record, is_over } = self.flows.get(idx as usize)?;
        let left = record.size.get().saturating_sub(record.fresh_bytes.get());
        (!is_over).then_some((record.dst.get(), Bytes::new(left)))
    }
}
