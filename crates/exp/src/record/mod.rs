//! Observing a run: flows to a table and to compact samples, queues and links by tier, latencies.

pub(crate) mod blame;
pub(crate) mod bounded_table;
pub(crate) mod observers;
pub(crate) mod partition;
pub(crate) mod paths;
pub(crate) mod rates;
pub(crate) mod sampling;

use std::collections::BTreeMap;

use rampmeter_metrics::row::{FlowRow, Status};
use rampmeter_metrics::series::WindowSample;
use rampmeter_metrics::{FlowWriter, Ideal, LatencyHistogram, TableError};
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::{Arrival, FlowRecord, Probe};
use rampmeter_types::{Bytes, Gauge, Header, NodeId, Span, SwitchProgram, TenantId, Time};

use crate::traffic::ideals::{FlowIdeals, Ideals};
use crate::warning::Warning;
use bounded_table::BoundedTable;
use rates::Rates;
use sampling::Samples;

/// Data of a finished flow that the statistics need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSample {
    pub(crate) number: u32,
    pub(crate) arrival: Time,
    pub(crate) size: u64,
    pub(crate) tenant: u32,
    /// Delivered, acked; `u64::MAX` picoseconds if not.
    pub(crate) fct: [u64; 2],
    /// Delivered, acked, figure.
    pub(crate) ideal: [u64; 3],
}

impl FlowSample {
    /// Returns the picoseconds from its arrival to the completion that `ideal` is about; `None` if
    /// it has not completed.
    pub(crate) fn completion(&self, ideal: Ideal) -> Option<u64> {
        let fct = match ideal {
            Ideal::Delivered => self.fct[0],
            Ideal::Acked | Ideal::Figure => self.fct[1],
        };
        (fct < u64::MAX).then_some(fct)
    }

    /// Completion over ideal; `None` without a completion, or of an ideal of zero.
    pub(crate) fn slowdown(&self, ideal: Ideal) -> Option<f64> {
        let completion = self.completion(ideal)?;
        let ideal = self.ideal[ideal as usize];
        (ideal > 0).then(|| completion as f64 / ideal as f64)
    }
}

/// The standard probe.
pub(crate) struct Recorder {
    /// The ideals of each transport's packets.
    ideals: Vec<Ideals>,
    writer: Option<FlowWriter>,
    pub(crate) error: Option<TableError>,
    pub(crate) flow_samples: Vec<FlowSample>,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) unfinished: u64,
    /// Numbers and arrivals of flows that were not delivered, without those that were rejected.
    pub(crate) unfinished_flows: Vec<(u32, Time)>,
    /// Message bytes delivered in the whole run, by tenant.
    pub(crate) delivered_bytes: BTreeMap<u32, u64>,
    /// Rates of flows; `None` if the run does not record them.
    pub(crate) rates: Option<Rates>,
    /// Windows of flows; `None` if the run does not record rates of flows.
    pub(crate) windows: Option<BoundedTable<WindowSample>>,
    /// Warnings of tables that are not complete.
    pub(crate) warnings: Vec<Warning>,
    /// Flows that waited for others until the end.
    pub(crate) not_started: u64,
    pub(crate) duplicate_bytes: u64,
    /// The longest ideal of those flows.
    pub(crate) unfinished_ideal_ps: u64,
    /// Payload that senders put on their links, and the retransmitted part of it.
    pub(crate) sent_bytes: u64,
    pub(crate) retransmitted_bytes: u64,
    /// Flows that had a deadline, and those of them that met it.
    pub(crate) n_with_deadline: u64,
    pub(crate) n_in_time: u64,
    pub(crate) data_latency: LatencyHistogram,
    pub(crate) control_latency: LatencyHistogram,
    pub(crate) samples: Samples,
    /// The number, from zero, of the flow before whose arrival others must have finished to be
    /// counted, and when it arrived.
    statistics_end: (Option<u64>, Option<u64>),
}

impl Recorder {
    /// Records each link at every sample if `by_link` is set. Statistics end at the arrival of flow
    /// number `finished_before`, from one.
    pub(crate) fn new(
        ideals: Vec<Ideals>,
        writer: Option<FlowWriter>,
        by_link: bool,
        finished_before: Option<u64>,
    ) -> Self {
        Self {
            ideals,
            writer,
            error: None,
            flow_samples: Vec::new(),
            failed: 0,
            rejected: 0,
            unfinished: 0,
            unfinished_flows: Vec::new(),
            delivered_bytes: BTreeMap::new(),
            rates: None,
            windows: None,
            warnings: Vec::new(),
            not_started: 0,
            duplicate_bytes: 0,
            unfinished_ideal_ps: 0,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            n_with_deadline: 0,
            n_in_time: 0,
            data_latency: LatencyHistogram::new(),
            control_latency: LatencyHistogram::new(),
            samples: Samples::new(by_link),
            statistics_end: (finished_before.and_then(|n| n.checked_sub(1)), None),
        }
    }

    /// Returns the end of the statistics, in picoseconds, if they end at the arrival of a flow.
    pub(crate) fn statistics_end_ps(&self) -> Option<u64> {
        self.statistics_end.1
    }

    /// Completes the tables of flows and of their rates.
    pub(crate) fn finish(&mut self, metadata: &[(String, String)]) -> Result<(), TableError> {
        if let Some(rates) = self.rates.take() {
            self.warnings.extend(rates.finish(metadata)?);
        }
        if let Some(windows) = self.windows.take() {
            self.warnings.extend(windows.finish(metadata)?);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.writer.take() {
            Some(writer) => writer.finish(metadata).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Recorder {
    /// Returns the ideals of a flow. Tenants beyond the last transport's belong to that.
    fn ideals(&mut self, tenant: TenantId, src: NodeId, dst: NodeId, size: Bytes) -> FlowIdeals {
        let last = self.ideals.len() - 1;
        self.ideals[(tenant.get() as usize).min(last)].flow(src, dst, size)
    }

    /// Counts a flow by how it ended. `fct_ps` are the times until it was delivered and acked.
    fn count(
        &mut self,
        record: &FlowRecord,
        status: Status,
        ideals: FlowIdeals,
        fct_ps: [Option<u64>; 2],
    ) {
        let all = ideals.all();
        match status {
            Status::Delivered => self.flow_samples.push(FlowSample {
                number: record.number,
                arrival: record.arrival,
                size: record.size.get(),
                tenant: record.tenant.get(),
                fct: fct_ps.map(|ps| ps.unwrap_or(u64::MAX)),
                ideal: all.map(Span::as_ps),
            }),
            Status::Failed => self.failed += 1,
            Status::Rejected => self.rejected += 1,
            Status::Unfinished => {
                self.unfinished += 1;
                self.unfinished_ideal_ps = self.unfinished_ideal_ps.max(all[0].as_ps());
            }
            // It has no record; see `on_withheld`.
            Status::NotStarted => {}
        }
        if matches!(status, Status::Failed | Status::Unfinished) {
            self.unfinished_flows.push((record.number, record.arrival));
        }
    }

    /// Adds a row to the table of flows.
    fn push(&mut self, row: &FlowRow) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.push(row)
        {
            // The run continues to a clean end; the error is reported there.
            self.writer = None;
            self.error = Some(error);
        }
    }
}

impl Probe for Recorder {
    const LATENCY: bool = true;
    const COUNTERS: bool = true;

    fn on_flow(&mut self, record: &FlowRecord) {
        if self.statistics_end.0 == Some(record.number.into()) {
            self.statistics_end.1 = Some(record.arrival.as_ps());
        }
        let ideals = self.ideals(record.tenant, record.src, record.dst, record.size);
        let [ideal, acked_ideal, figure_ideal] = ideals.all();
        let since = |end: Option<Time>| end.map(|end| (end - record.arrival).as_ps());
        let (fct_ps, acked_ps) = (since(record.delivered), since(record.completed));
        let status = match (record.delivered, record.failed, record.rejected) {
            (Some(_), _, _) => Status::Delivered,
            (None, Some(_), _) => Status::Failed,
            (None, None, Some(_)) => Status::Rejected,
            (None, None, None) => Status::Unfinished,
        };
        self.count(record, status, ideals, [fct_ps, acked_ps]);
        let delivered_bytes = record.fresh_bytes.get();
        *self.delivered_bytes.entry(record.tenant.get()).or_default() += delivered_bytes;
        self.duplicate_bytes += record.duplicate_bytes.get();
        let sent_bytes = record.sent_bytes.get();
        let retransmitted_bytes = sent_bytes.saturating_sub(record.size.get());
        self.sent_bytes += sent_bytes;
        self.retransmitted_bytes += retransmitted_bytes;
        let deadline_ps = match record.deadline {
            Time::NEVER => None,
            at => Some((at - record.arrival).as_ps()),
        };
        if let Some(deadline) = deadline_ps {
            self.n_with_deadline += 1;
            self.n_in_time += u64::from(fct_ps.is_some_and(|fct| fct <= deadline));
        }
        let row = FlowRow {
            flow: record.number.into(),
            arrival_ps: record.arrival.as_ps(),
            src: record.src.get(),
            dst: record.dst.get(),
            size_bytes: record.size.get(),
            fct_ps,
            acked_ps,
            ideal_ps: ideal.as_ps(),
            acked_ideal_ps: acked_ideal.as_ps(),
            figure_ideal_ps: figure_ideal.as_ps(),
            ideal_is_bound: ideals.is_bound,
            duplicate_bytes: record.duplicate_bytes.get(),
            deadline_ps,
            outcome_ps: since(record.completed.or(record.failed).or(record.rejected)),
            delay_bound_ps: record.bound.map(Span::as_ps),
            tenant: record.tenant.get(),
            status,
            first_byte_ps: since(record.first_byte),
            sent_bytes,
            retransmitted_bytes,
            delivered_bytes,
        };
        self.push(&row);
        if let Some(rates) = &mut self.rates {
            rates.on_flow(record);
        }
    }

    fn on_withheld(&mut self, now: Time, arrival: &Arrival) {
        self.not_started += 1;
        let ideals = self.ideals(arrival.tenant, arrival.src, arrival.dst, arrival.size);
        let [ideal, acked_ideal, figure_ideal] = ideals.all();
        self.push(&FlowRow {
            flow: arrival.number.unwrap_or_default().into(),
            arrival_ps: now.as_ps(),
            src: arrival.src.get(),
            dst: arrival.dst.get(),
            size_bytes: arrival.size.get(),
            fct_ps: None,
            acked_ps: None,
            ideal_ps: ideal.as_ps(),
            acked_ideal_ps: acked_ideal.as_ps(),
            figure_ideal_ps: figure_ideal.as_ps(),
            ideal_is_bound: ideals.is_bound,
            duplicate_bytes: 0,
            deadline_ps: None,
            outcome_ps: None,
            delay_bound_ps: None,
            tenant: arrival.tenant.get(),
            status: Status::NotStarted,
            first_byte_ps: None,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            delivered_bytes: 0,
        });
    }

    fn progress_interval(&self) -> Option<Span> {
        self.rates.as_ref().map(|rates| rates.interval)
    }

    fn on_progress<'a>(&mut self, now: Time, open: impl Iterator<Item = &'a FlowRecord>) {
        if let Some(rates) = &mut self.rates {
            rates.on_progress(now, open);
        }
    }

    fn on_gauge(&mut self, now: Time, host: NodeId, flow: Option<u32>, gauge: &Gauge) {
        if let Some(windows) = &mut self.windows {
            let row = WindowSample {
                time_ps: now.as_ps(),
                host: host.get(),
                peer: gauge.peer.get(),
                flow: flow.map(u64::from),
                name: gauge.name.into(),
                value: gauge.value,
            };
            windows.add(now, row);
        }
    }

    fn on_deliver(&mut self, latency: Span, is_data: bool) {
        let histogram = if is_data { &mut self.data_latency } else { &mut self.control_latency };
        histogram.record(latency);
    }

    fn on_counters(&mut self, now: Time, counters: &[(&'static str, u64)]) {
        self.samples.take_counters(now, counters);
    }

    fn on_sample<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &mut Fabric<H, P>,
        delivered: &[u64],
    ) {
        self.samples.add_sample(now, fabric, delivered);
    }

    fn on_end<H: Header, P: SwitchProgram<H>>(&mut self, now: Time, fabric: &mut Fabric<H, P>) {
        self.samples.take_drops(now, fabric);
    }
}
