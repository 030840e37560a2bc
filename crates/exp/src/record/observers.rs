//! Observers of single packets, for runs that request them: captures, timelines, paths, causes of
//! flows' times.

use std::path::Path;

use rampmeter_metrics::TableError;
use rampmeter_sim::fabric::{Fabric, PortEvent};
use rampmeter_sim::{Arrival, FlowBlame, FlowRecord, InterfacePacket, Probe, SimSpec};
use rampmeter_types::envelope::TransportId;
use rampmeter_types::{Gauge, Header, NodeId, Phase, Span, SwitchProgram, Time};
use serde::Serialize;

use super::Recorder;
use super::blame::BlameTables;
use super::paths::PathTable;
use crate::capture::{Capture, CaptureConfig, CaptureReport};
use crate::error::RunError;
use crate::timeline::{Timeline, TimelineConfig, TimelineReport};
use crate::topology::names::NamesSpec;
use crate::traffic::ideals::Ideals;
use rampmeter_types::Segmentation;

/// Observers that a run has: capture, timeline, tables of paths and of causes.
pub(crate) struct RunObservers {
    capture: Option<Capture>,
    timeline: Option<Timeline>,
    paths: Option<PathTable>,
    blame: Option<BlameTables>,
}

/// Observers that a plan requests, and its network.
pub(crate) struct ObserverSpec<'a> {
    /// The capture, with the number of the transport in front of packets.
    pub(crate) capture: Option<(&'a CaptureConfig, TransportId)>,
    pub(crate) timeline: Option<&'a TimelineConfig>,
    /// True if the paths of packets are requested.
    pub(crate) has_paths: bool,
    /// True if the causes of flows' times are requested.
    pub(crate) has_blame: bool,
    pub(crate) sim: &'a SimSpec,
    pub(crate) names: &'a NamesSpec,
    pub(crate) segmentation: Segmentation,
}

/// Files written by observers.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ObservedReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<CaptureReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<TimelineReport>,
}

impl RunObservers {
    /// Starts the observers of `spec`, in the folder `out`; `None` if it has none.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub(crate) fn start(spec: &ObserverSpec<'_>, out: &Path) -> Result<Option<Self>, RunError> {
        let &ObserverSpec { timeline, has_paths, has_blame, sim, names, segmentation, .. } = spec;
        let topology = &sim.topology;
        let capture = |(config, transport)| {
            Capture::create(config, transport, topology.n_hosts(), names, out)
        };
        let capture = spec.capture.map(capture).transpose()?;
        let start =
            |config| Timeline::create(config, topology, names, Ideals::new(sim, segmentation), out);
        let timeline = timeline.map(start).transpose()?;
        let paths = has_paths.then(|| PathTable::new(topology, names));
        let blame = has_blame.then(|| BlameTables::create(sim, out)).transpose()?;
        let observes_packets = capture.is_some() || timeline.is_some() || paths.is_some();
        let has_observers = observes_packets || blame.is_some();
        Ok(has_observers.then_some(Self { capture, timeline, paths, blame }))
    }

    /// Returns true if any observes ports.
    pub(crate) fn observes_ports(&self) -> bool {
        self.timeline.is_some() || self.paths.is_some()
    }

    /// Returns true if the causes of flows' times are recorded.
    pub(crate) fn records_causes(&self) -> bool {
        self.blame.is_some()
    }

    /// Completes everything at the `end` of the run.
    ///
    /// # Errors
    /// If a file could not be written, now or earlier.
    pub(crate) fn finish(
        self,
        end: Time,
        out: &Path,
        metadata: &[(String, String)],
    ) -> Result<ObservedReport, RunError> {
        let write = |paths: PathTable| -> Result<(), TableError> {
            paths.write(&out.join("paths.parquet"), metadata)
        };
        self.paths.map(write).transpose()?;
        self.blame.map(|tables| tables.finish(metadata)).transpose()?;
        Ok(ObservedReport {
            capture: self.capture.map(Capture::finish).transpose()?,
            timeline: self.timeline.map(|timeline| timeline.finish(end)).transpose()?,
        })
    }
}

/// A probe around a recorder that observes packets too.
pub(crate) struct ObserverProbe<'a> {
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) observed: &'a mut RunObservers,
}

impl Probe for ObserverProbe<'_> {
    const LATENCY: bool = Recorder::LATENCY;
    const PACKETS: bool = true;
    const COUNTERS: bool = Recorder::COUNTERS;
    const PHASES: bool = true;

    fn wants_packets(&self) -> bool {
        self.observed.capture.is_some()
    }

    fn wants_phases(&self) -> bool {
        self.observed.timeline.is_some()
    }

    fn on_flow(&mut self, record: &FlowRecord) {
        self.recorder.on_flow(record);
        if let Some(timeline) = &mut self.observed.timeline {
            timeline.on_flow(record);
        }
        if let Some(paths) = &mut self.observed.paths {
            paths.on_flow(record);
        }
    }

    fn on_blame(&mut self, blame: &FlowBlame) {
        if let Some(tables) = &mut self.observed.blame {
            tables.add(blame);
        }
    }

    fn on_withheld(&mut self, now: Time, arrival: &Arrival) {
        self.recorder.on_withheld(now, arrival);
    }

    fn progress_interval(&self) -> Option<Span> {
        self.recorder.progress_interval()
    }

    fn on_gauge(&mut self, now: Time, host: NodeId, flow: Option<u32>, gauge: &Gauge) {
        self.recorder.on_gauge(now, host, flow, gauge);
    }

    fn on_progress<'a>(&mut self, now: Time, open: impl Iterator<Item = &'a FlowRecord>) {
        self.recorder.on_progress(now, open);
    }

    fn on_deliver(&mut self, latency: Span, is_data: bool) {
        self.recorder.on_deliver(latency, is_data);
    }

    fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
        if let Some(capture) = &mut self.observed.capture {
            capture.on_packet(passing);
        }
    }

    fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
        if let Some(timeline) = &mut self.observed.timeline {
            timeline.on_port(event);
        }
        if let Some(paths) = &mut self.observed.paths {
            paths.on_port(event);
        }
    }

    fn on_phases(&mut self, now: Time, end: NodeId, visit: impl FnOnce(&mut dyn FnMut(Phase))) {
        if let Some(timeline) = &mut self.observed.timeline {
            timeline.on_phases(now, end, visit);
        }
    }

    fn on_counters(&mut self, now: Time, counters: &[(&'static str, u64)]) {
        self.recorder.on_counters(now, counters);
    }

    fn on_sample<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &mut Fabric<H, P>,
        delivered: &[u64],
    ) {
        self.recorder.on_sample(now, fabric, delivered);
    }

    fn on_end<H: Header, P: SwitchProgram<H>>(&mut self, now: Time, fabric: &mut Fabric<H, P>) {
        self.recorder.on_end(now, fabric);
    }
}
