//! Timelines: a window of a run as a file that ui.perfetto.dev shows.
//!
//! A node of the network is a group of tracks: its flows, the phases of its protocol, the control
//! packets that it sends, and received packets. Each port has tracks of the packets on the link, of
//! the queue, and of drops and marks. Arrows follow a packet from link to link. The events of a
//! track are in order of time; the docs are in docs/howto/timeline.md.

mod flows;
mod phases;
mod ports;
mod schema;
mod tracks;
mod window;
mod writer;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use rampmeter_sim::fabric::PortEvent;
use rampmeter_sim::{FlowRecord, Topology};
use rampmeter_types::{Header, NodeId, Phase, Time};
use serde::Serialize;

use crate::error::{RunError, io as io_error};
use crate::topology::names::NamesSpec;
use crate::traffic::ideals::Ideals;
use flows::Flows;
use phases::Phases;
use ports::Arrows;
use tracks::Tracks;
use window::Window;

/// Bytes that are written together.
const BUFFER: usize = 1 << 20;

/// Parameters of a timeline.
#[derive(Clone, Debug)]
pub(crate) struct TimelineConfig {
    /// The file's name in the folder of results.
    pub(crate) file: String,
    /// Start and end; [`Time::NEVER`] for the end of the run.
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// Maximum number of events.
    pub(crate) events_max: u64,
    /// True for each node that is shown: hosts, arbiters, switches.
    pub(crate) shown: Vec<bool>,
}

/// Contents of a timeline, for the manifest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimelineReport {
    file: String,
    events: u64,
    from_ps: u64,
    /// Time up to which the file is complete. It is the end of the window or of the run, or the
    /// time at which the limit was reached.
    until_ps: u64,
    limit_reached: bool,
}

/// A timeline being written.
pub(crate) struct Timeline {
    config: TimelineConfig,
    file: PathBuf,
    window: Window,
    tracks: Tracks<BufWriter<File>>,
    arrows: Arrows,
    phases: Phases,
    flows: Flows,
    error: Option<io::Error>,
}

impl Timeline {
    /// Starts a timeline in the folder `out`, of a run over `topology`.
    pub(crate) fn create(
        config: &TimelineConfig,
        topology: &Topology,
        names: &NamesSpec,
        ideals: Ideals,
        out: &Path,
    ) -> Result<Self, RunError> {
        let file = out.join(&config.file);
        let partial = partial(&file);
        let started = File::create(&partial).and_then(|file| {
            let out = BufWriter::with_capacity(BUFFER, file);
            Tracks::start(out, topology, names, config.shown.clone())
        });
        let tracks = started.map_err(|source| io_error(&partial, source))?;
        let &TimelineConfig { from, until, events_max, .. } = config;
        Ok(Self {
            window: Window::new(from, until, events_max),
            config: config.clone(),
            file,
            tracks,
            arrows: Arrows::default(),
            phases: Phases::new(topology.n_hosts() + topology.n_arbiters()),
            flows: Flows::new(ideals),
            error: None,
        })
    }

    /// Handles an event of a port.
    pub(crate) fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
        if self.error.is_some() || event.at >= self.window.until {
            return;
        }
        let Self { window, tracks, arrows, .. } = self;
        if let Err(error) = arrows.on_port(event, window, tracks) {
            self.error = Some(error);
        }
    }

    /// Handles the phases that a host or an arbiter reports.
    pub(crate) fn on_phases(
        &mut self,
        now: Time,
        end: NodeId,
        visit: impl FnOnce(&mut dyn FnMut(Phase)),
    ) {
        let Self { window, tracks, phases, .. } = self;
        if self.error.is_some() || !tracks.is_shown(end.get()) {
            return;
        }
        if let Err(error) = phases.on_phases(now, end.get(), visit, window, tracks) {
            self.error = Some(error);
        }
    }

    /// Handles the end of a message.
    pub(crate) fn on_flow(&mut self, record: &FlowRecord) {
        let Self { window, tracks, flows, .. } = self;
        if self.error.is_some() {
            return;
        }
        if let Err(error) = flows.on_flow(record, window, tracks) {
            self.error = Some(error);
        }
    }

    /// Ends the timeline with the run, at `end`, and gives the file its name.
    pub(crate) fn finish(mut self, end: Time) -> Result<TimelineReport, RunError> {
        let partial = partial(&self.file);
        let error = match self.error.take() {
            None => self.complete(end).err(),
            error => error,
        };
        let flushed = self.tracks.finish();
        if let Some(error) = error.or(flushed.err()) {
            return Err(io_error(&partial, error));
        }
        fs::rename(&partial, &self.file).map_err(|source| io_error(&self.file, source))?;
        let Window { from, until, events, limit_reached, .. } = self.window;
        Ok(TimelineReport {
            file: self.config.file,
            events,
            from_ps: from.as_ps(),
            until_ps: until.min(end).as_ps(),
            limit_reached,
        })
    }

    /// Writes the slices that are open at `end`.
    fn complete(&mut self, end: Time) -> io::Result<()> {
        let Self { window, tracks, phases, flows, .. } = self;
        phases.finish(end, window, tracks)?;
        flows.finish(end, window, tracks)?;
        tracks.write_unchanged_queues(window)
    }
}

/// Returns the name of a file that is being written.
fn partial(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}
