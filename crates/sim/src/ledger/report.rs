//! Reports of endpoints in partitions, in the order of a run without partitions.
//!
//! Each partition runs its events of one time in a separate order. Without partitions, events of
//! one time are ordered by the highest rank of that time up to the event, lowest first. The rank of
//! the event itself is not enough: the queue returns the event of the lowest rank first, and an
//! event that is pushed later may have a lower rank.

use rampmeter_types::{Bytes, Event, MsgId, Span, Time};

/// A time, and the highest rank of the events of this time that have been dispatched.
pub(crate) type Instant = (Time, u64);

/// A report of an endpoint in a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    /// A message has been submitted, with this promise.
    Submitted { msg: MsgId, bound: Option<Span> },
    /// Bytes have arrived again.
    Duplicate { msg: MsgId, bytes: u64 },
    /// An endpoint's event.
    Event { event: Event, bytes: EndBytes },
}

/// Bytes of a message at one of its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndBytes {
    pub(super) fresh: Bytes,
    pub(super) first_byte: Option<Time>,
    pub(super) sent: Bytes,
}

/// A report with its place in the order of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedReport {
    pub(super) at: Instant,
    /// The last message that the partition has submitted: submissions have equal ranks.
    last: u32,
    pub(super) report: Report,
}

/// Reports of a partition's endpoints, in order.
#[derive(Debug, Default)]
pub(crate) struct ReportLog {
    /// The last message submitted.
    last: u32,
    pub(super) reports: Vec<PlacedReport>,
}

impl ReportLog {
    pub(super) fn push(&mut self, at: Instant, report: Report) {
        self.reports.push(PlacedReport { at, last: self.last, report });
    }

    pub(super) fn on_submitted(&mut self, at: Instant, msg: MsgId, bound: Option<Span>) {
        self.last = msg.get();
        self.push(at, Report::Submitted { msg, bound });
    }
}

/// Merges the reports of partitions.
pub(crate) fn in_order(mut reports: Vec<PlacedReport>) -> Vec<PlacedReport> {
    // Those of one partition are in order already, and equal places are of one partition.
    reports.sort_by_key(|report| (report.at, report.last));
    reports
}
