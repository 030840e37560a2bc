//! Rates of flows over time: a row of `rates.parquet` for each open flow at each interval.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rampmeter_metrics::TableError;
use rampmeter_metrics::series::RateSample;
use rampmeter_sim::FlowRecord;
use rampmeter_types::{Span, Time};

use super::bounded_table::BoundedTable;
use crate::warning::Warning;

/// Payload of a flow that was delivered and sent by an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    delivered: u64,
    sent: u64,
}

impl Progress {
    fn new(record: &FlowRecord) -> Self {
        Self { delivered: record.fresh_bytes.get(), sent: record.sent_bytes.get() }
    }
}

/// The recorder of rates.
pub(crate) struct Rates {
    pub(crate) interval: Span,
    table: BoundedTable<RateSample>,
    /// The end of the last interval.
    last_end: Time,
    /// Progress of open flows at that instant.
    progress: BTreeMap<u32, Progress>,
    /// Flows that ended since then.
    ended: Vec<FlowRecord>,
}

impl Rates {
    /// Starts the table `file`.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn create(file: PathBuf, interval: Span) -> Result<Self, TableError> {
        let table = BoundedTable::create(file)?;
        Ok(Self {
            interval,
            table,
            last_end: Time::ZERO,
            progress: BTreeMap::new(),
            ended: Vec::new(),
        })
    }

    /// Takes the end of a flow. Its last bytes are in the row of the current interval.
    pub(crate) fn on_flow(&mut self, record: &FlowRecord) {
        self.ended.push(*record);
    }

    /// Writes the rows of the interval that ends at `now`.
    pub(crate) fn on_progress<'a>(
        &mut self,
        now: Time,
        open: impl Iterator<Item = &'a FlowRecord>,
    ) {
        let seconds = (now - self.last_end).as_ps() as f64 * 1e-12;
        if seconds == 0.0 {
            return;
        }
        let ended = std::mem::take(&mut self.ended);
        let before = std::mem::take(&mut self.progress);
        let mut rows: Vec<RateSample> = Vec::new();
        let mut add = |record: &FlowRecord, progress: Progress| {
            let known = before.get(&record.number).copied().unwrap_or_default();
            let is_delivered = record.delivered.is_some_and(|at| at <= self.last_end);
            if is_delivered && known.delivered == progress.delivered {
                // Only its last acknowledgement is missing.
                return;
            }
            let delivered_bytes = progress.delivered - known.delivered;
            rows.push(RateSample {
                time_ps: now.as_ps(),
                flow: record.number.into(),
                delivered_bytes,
                sent_bytes: progress.sent - known.sent,
                goodput_gbps: delivered_bytes as f64 * 8e-9 / seconds,
            });
        };
        // A flow that arrives at this instant belongs to the next interval.
        for record in open.filter(|record| record.arrival < now) {
            let progress = Progress::new(record);
            add(record, progress);
            self.progress.insert(record.number, progress);
        }
        ended.iter().for_each(|record| add(record, Progress::new(record)));
        rows.sort_unstable_by_key(|row| row.flow);
        self.last_end = now;
        self.table.push(now, &rows);
    }

    /// Completes the table. Returns a warning if intervals were omitted.
    ///
    /// # Errors
    /// If a row could not be written.
    pub(crate) fn finish(
        self,
        metadata: &[(String, String)],
    ) -> Result<Option<Warning>, TableError> {
        self.table.finish(metadata)
    }
}
