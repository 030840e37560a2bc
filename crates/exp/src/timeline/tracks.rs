//! The tracks of each node and port. One that stays empty is never made.

use std::io::{self, Write};

use rampmeter_sim::Topology;
use rampmeter_types::Time;

use super::window::Window;
use super::writer::{Arrow, EventContent, Label, TraceWriter, Track, TrackRole};
use crate::topology::names::{Names, NamesSpec};

/// The tracks of a node that are not a port's, by place. Phases are between.
const FLOWS_OUT: i32 = 0;
const FLOWS_IN: i32 = 1;
const PHASES: i32 = 2;
const CONTROL_SENT: i32 = 20;
const CONTROL_RECEIVED: i32 = 21;
const DATA_RECEIVED: i32 = 22;
/// Place of the first port's tracks; each port has three.
const PORTS: i32 = 30;

/// A row of instants of a host or an arbiter.
#[derive(Clone, Copy, Debug)]
pub(super) enum InstantRow {
    ControlSent,
    ControlReceived,
    DataReceived,
}

/// Direction of the flows of a host.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlowDirection {
    Egress,
    Ingress,
}

#[derive(Default)]
struct NodeTracks {
    group: Option<Track>,
    rows: [Option<Track>; 3],
    /// Tracks of flows, by way, each with the end of its last one: flows on one do not overlap.
    flow_tracks: [Vec<(Time, Track)>; 2],
}

#[derive(Default)]
struct PortTracks {
    link: Option<Track>,
    queue: Option<Track>,
    events: Option<Track>,
    /// Queued bytes, as last reported.
    queued: u32,
    /// Index among the ports of its node.
    place: i32,
}

/// The tracks of a network, and the writer that they are written by.
pub(super) struct Tracks<W> {
    writer: TraceWriter<W>,
    names: Names,
    shown: Vec<bool>,
    nodes: Vec<NodeTracks>,
    ports: Vec<PortTracks>,
    network: Track,
    outages: Option<Track>,
}

impl<W: Write> Tracks<W> {
    /// Starts the file of a run over `topology`, of which it shows some nodes.
    pub(super) fn start(
        out: W,
        topology: &Topology,
        own: &NamesSpec,
        shown: Vec<bool>,
    ) -> io::Result<Self> {
        let names = Names::new(topology, own);
        let mut count = vec![0; names.nodes.len()];
        let ports = names.ports.iter().map(|port| {
            let place = &mut count[port.node as usize];
            *place += 1;
            PortTracks { place: *place - 1, ..PortTracks::default() }
        });
        let ports = ports.collect();
        let nodes = names.nodes.iter().map(|_| NodeTracks::default()).collect();
        let mut writer = TraceWriter::new(out);
        let about = "A nanosecond shown is a picosecond of the run.";
        let network = writer.node(1, "network (1 ns shown is 1 ps)", about)?;
        Ok(Self { writer, names, shown, nodes, ports, network, outages: None })
    }

    /// Returns true if a node is shown.
    pub(super) fn is_shown(&self, node: u32) -> bool {
        self.shown[node as usize]
    }

    /// Returns true if the node of a port is shown.
    pub(super) fn is_port_shown(&self, port: u32) -> bool {
        self.is_shown(self.names.ports[port as usize].node)
    }

    /// Returns the host or arbiter whose interface a port is.
    pub(super) fn station(&self, port: u32) -> Option<u32> {
        self.names.is_interface(port).then(|| self.names.ports[port as usize].node)
    }

    /// Returns the name of a node.
    pub(super) fn name(&self, node: u32) -> &str {
        &self.names.nodes[node as usize]
    }

    /// Adds a packet on a port's link.
    pub(super) fn on_link(
        &mut self,
        port: u32,
        from: Time,
        until: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let track = match self.ports[port as usize].link {
            Some(track) => track,
            None => {
                let track = self.port_track(port, TrackRole::Link)?;
                *self.ports[port as usize].link.insert(track)
            }
        };
        self.writer.slice(track, from, until, content)
    }

    /// Adds an event of a packet at a port, or of its link.
    pub(super) fn add_port_event(
        &mut self,
        port: u32,
        at: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let track = match self.ports[port as usize].events {
            Some(track) => track,
            None => {
                let track = self.port_track(port, TrackRole::Port)?;
                *self.ports[port as usize].events.insert(track)
            }
        };
        self.writer.instant(track, at, content)
    }

    /// Sets the length of a port's queue. Outside of the window the length is only stored.
    pub(super) fn on_queue(
        &mut self,
        port: u32,
        at: Time,
        bytes: u32,
        window: &mut Window,
    ) -> io::Result<()> {
        let before = std::mem::replace(&mut self.ports[port as usize].queued, bytes);
        if !window.holds(at) || !self.is_port_shown(port) || !window.count_event(at) {
            return Ok(());
        }
        let track = match self.ports[port as usize].queue {
            Some(track) => track,
            None => self.start_queue(port, before, window)?,
        };
        self.writer.value(track, at, bytes)
    }

    /// Makes the track of a port's queue, which is `bytes` long as the window opens.
    fn start_queue(&mut self, port: u32, bytes: u32, window: &Window) -> io::Result<Track> {
        let name = format!("{} queue", self.names.port(port));
        let group = self.group(self.names.ports[port as usize].node)?;
        let place = PORTS + 3 * self.ports[port as usize].place + 1;
        let track = self.writer.counter(group, &name, place)?;
        self.writer.value(track, window.from, bytes)?;
        Ok(*self.ports[port as usize].queue.insert(track))
    }

    /// Writes the queues that were not empty and did not change in the window.
    pub(super) fn write_unchanged_queues(&mut self, window: &Window) -> io::Result<()> {
        for port in 0..self.ports.len() as u32 {
            let PortTracks { queue, queued, .. } = self.ports[port as usize];
            if queue.is_none() && queued > 0 && self.is_port_shown(port) {
                self.start_queue(port, queued, window)?;
            }
        }
        Ok(())
    }

    /// Adds an instant in a row of a host or an arbiter.
    pub(super) fn add_instant(
        &mut self,
        node: u32,
        row: InstantRow,
        at: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let track = match self.nodes[node as usize].rows[row as usize] {
            Some(track) => track,
            None => {
                let (name, place) = match row {
                    InstantRow::ControlSent => ("control sent", CONTROL_SENT),
                    InstantRow::ControlReceived => ("control received", CONTROL_RECEIVED),
                    InstantRow::DataReceived => ("data received", DATA_RECEIVED),
                };
                let group = self.group(node)?;
                let track = self.writer.track(group, TrackRole::NodePacket, name, place)?;
                *self.nodes[node as usize].rows[row as usize].insert(track)
            }
        };
        self.writer.instant(track, at, content)
    }

    /// Adds a flow that a host sends or receives. Flows at the same time are on tracks of one name.
    pub(super) fn on_flow(
        &mut self,
        node: u32,
        way: FlowDirection,
        from: Time,
        until: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let lanes = &mut self.nodes[node as usize].flow_tracks[way as usize];
        let free = lanes.iter_mut().filter(|(end, _)| *end <= from).max_by_key(|(end, _)| *end);
        let track = match free {
            Some((end, track)) => {
                *end = until;
                *track
            }
            None => {
                let (name, place) = match way {
                    FlowDirection::Egress => ("flows out", FLOWS_OUT),
                    FlowDirection::Ingress => ("flows in", FLOWS_IN),
                };
                let group = self.group(node)?;
                let track = self.writer.track(group, TrackRole::Flow, name, place)?;
                self.nodes[node as usize].flow_tracks[way as usize].push((until, track));
                track
            }
        };
        self.writer.slice(track, from, until, content)
    }

    /// Makes the track of a node's phases of one kind, the `number`th of its kinds.
    pub(super) fn phases(&mut self, node: u32, name: &str, number: usize) -> io::Result<Track> {
        let group = self.group(node)?;
        let place = PHASES + (number as i32).min(CONTROL_SENT - PHASES - 1);
        self.writer.track(group, TrackRole::Phase, name, place)
    }

    /// Adds a phase on such a track.
    pub(super) fn on_phase(
        &mut self,
        track: Track,
        from: Time,
        until: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        self.writer.slice(track, from, until, content)
    }

    /// Handles the failure or the repair of a port's link. Each link is reported once, by its first
    /// port.
    pub(super) fn on_outage(&mut self, port: u32, at: Time, name: &str) -> io::Result<()> {
        let link = self.names.ports[port as usize].link;
        if self.names.ports[..port as usize].iter().any(|earlier| earlier.link == link) {
            return Ok(());
        }
        let track = match self.outages {
            Some(track) => track,
            None => {
                let track = self.writer.track(self.network, TrackRole::Outage, "outages", 0)?;
                *self.outages.insert(track)
            }
        };
        let name = format!("{} {name}", self.names.links[link as usize]);
        let content =
            EventContent { label: Label::Text(&name), packet: None, args: &[], arrow: Arrow::None };
        self.writer.instant(track, at, &content)
    }

    /// Hands over everything that is buffered.
    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish()
    }

    /// Makes the track of a port's link or of its events.
    fn port_track(&mut self, port: u32, role: TrackRole) -> io::Result<Track> {
        let (suffix, part) = match role {
            TrackRole::Link => ("", 0),
            _ => (" drops, marks, outages", 2),
        };
        let name = format!("{}{suffix}", self.names.port(port));
        let group = self.group(self.names.ports[port as usize].node)?;
        let place = PORTS + 3 * self.ports[port as usize].place + part;
        self.writer.track(group, role, &name, place)
    }

    /// Returns the group of a node's tracks. The network's has the number 1.
    fn group(&mut self, node: u32) -> io::Result<Track> {
        if let Some(track) = self.nodes[node as usize].group {
            return Ok(track);
        }
        let track = self.writer.node(2 + node as i32, &self.names.nodes[node as usize], "")?;
        Ok(*self.nodes[node as usize].group.insert(track))
    }
}
