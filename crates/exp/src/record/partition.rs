//! The probe of a run and those of its partitions, which are of one type.

use rampmeter_metrics::LatencyHistogram;
use rampmeter_sim::fabric::Fabric;
use rampmeter_sim::{Arrival, FlowRecord, Probe};
use rampmeter_types::{Gauge, Header, NodeId, Span, SwitchProgram, Time};

use super::Recorder;

/// The standard probe, or that of a partition.
pub(crate) enum RunProbe<'a> {
    Run(&'a mut Recorder),
    Partition(Box<Latencies>),
}

/// Latencies of packets that a partition's hosts receive.
pub(crate) struct Latencies {
    data: LatencyHistogram,
    control: LatencyHistogram,
}

impl RunProbe<'_> {
    /// Calls `apply` with the recorder of a run.
    fn with_recorder(&mut self, apply: impl FnOnce(&mut Recorder)) {
        match self {
            Self::Run(recorder) => apply(recorder),
            Self::Partition(_) => unreachable!("partitions report packets alone"),
        }
    }
}

impl Probe for RunProbe<'_> {
    const LATENCY: bool = Recorder::LATENCY;
    const COUNTERS: bool = Recorder::COUNTERS;

    fn partition(&self) -> Option<Self> {
        let (data, control) = (LatencyHistogram::new(), LatencyHistogram::new());
        Some(Self::Partition(Box::new(Latencies { data, control })))
    }

    fn rejoin(&mut self, partition: Self) {
        if let (Self::Run(run), Self::Partition(of)) = (self, partition) {
            run.data_latency.merge(&of.data);
            run.control_latency.merge(&of.control);
        }
    }

    fn on_deliver(&mut self, latency: Span, is_data: bool) {
        let histogram = match (self, is_data) {
            (Self::Run(run), true) => &mut run.data_latency,
            (Self::Run(run), false) => &mut run.control_latency,
            (Self::Partition(of), true) => &mut of.data,
            (Self::Partition(of), false) => &mut of.control,
        };
        histogram.record(latency);
    }

    fn on_flow(&mut self, record: &FlowRecord) {
        self.with_recorder(|run| run.on_flow(record));
    }

    fn on_withheld(&mut self, now: Time, arrival: &Arrival) {
        self.with_recorder(|run| run.on_withheld(now, arrival));
    }

    fn progress_interval(&self) -> Option<Span> {
        match self {
            Self::Run(run) => run.progress_interval(),
            Self::Partition(_) => None,
        }
    }

    fn on_progress<'b>(&mut self, now: Time, open: impl Iterator<Item = &'b FlowRecord>) {
        self.with_recorder(|run| run.on_progress(now, open));
    }

    fn on_gauge(&mut self, now: Time, host: NodeId, flow: Option<u32>, gauge: &Gauge) {
        self.with_recorder(|run| run.on_gauge(now, host, flow, gauge));
    }

    fn on_counters(&mut self, now: Time, counters: &[(&'static str, u64)]) {
        self.with_recorder(|run| run.on_counters(now, counters));
    }

    fn on_sample<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &mut Fabric<H, P>,
        delivered: &[u64],
    ) {
        self.with_recorder(|run| run.on_sample(now, fabric, delivered));
    }

    fn on_end<H: Header, P: SwitchProgram<H>>(&mut self, now: Time, fabric: &mut Fabric<H, P>) {
        self.with_recorder(|run| run.on_end(now, fabric));
    }
}
