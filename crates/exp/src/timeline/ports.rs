//! Events at ports, and arrows along the path of each packet.

use std::io::{self, Write};

use rampmeter_sim::fabric::{DropReason, PortChange, PortEvent};
use rampmeter_types::{Header, Packet, Time};

use super::tracks::{InstantRow, Tracks};
use super::window::Window;
use super::writer::{Arrow, EventContent, Label, Value};

/// Level of detail about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DetailLevel {
    /// Index of the packet in its flow, and its ends if it has no flow. Most events have this
    /// level.
    Place,
    /// Ends of the packet, in addition.
    Ends,
    /// The fields of its header too.
    All,
}

type Args = Vec<(&'static str, Value)>;

/// The number of each packet's arrow.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    /// Flows of packets by handle; zero for packets that have none yet.
    flow_of_packet: Vec<u64>,
    last: u64,
    args: Args,
}

impl Arrows {
    /// Returns the number of a packet's arrow, which starts if there is none.
    fn number(&mut self, handle: u32) -> u64 {
        let idx = handle as usize;
        if self.flow_of_packet.len() <= idx {
            self.flow_of_packet.resize(idx + 1, 0);
        }
        if self.flow_of_packet[idx] == 0 {
            self.last += 1;
            self.flow_of_packet[idx] = self.last;
        }
        self.flow_of_packet[idx]
    }

    /// Ends the arrow of a packet, if it has one.
    fn end(&mut self, handle: u32) -> Arrow {
        match self.flow_of_packet.get_mut(handle as usize).map(std::mem::take) {
            None | Some(0) => Arrow::None,
            Some(number) => Arrow::Last(number),
        }
    }

    pub(super) fn on_port<H: Header, W: Write>(
        &mut self,
        event: &PortEvent<H>,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        let &PortEvent { at, port, change: ref what } = event;
        match what {
            PortChange::TransmitStart { handle, packet, from, until } => {
                if !window.overlaps(*from, *until) {
                    return Ok(());
                }
                let arrow = Arrow::Through(self.number(*handle));
                self.on_sends(event, packet, *from, *until, arrow, window, tracks)
            }
            PortChange::QueueLength { bytes } => tracks.on_queue(port, at, *bytes, window),
            PortChange::Arrival { handle, packet } => {
                let (arrow, node) = (self.end(*handle), packet.dst.get());
                if !window.holds(at) || !tracks.is_shown(node) || !window.count_event(at) {
                    return Ok(());
                }
                let (row, detail) = match packet.payload.len > 0 {
                    true => (InstantRow::DataReceived, DetailLevel::Ends),
                    false => (InstantRow::ControlReceived, DetailLevel::All),
                };
                let annotations = self.packet_annotations(packet, arrow, detail);
                tracks.add_instant(node, row, at, &annotations)
            }
            PortChange::Drop { handle, packet, reason } => {
                let arrow = self.end(*handle);
                if !window.holds(at) || !tracks.is_port_shown(port) || !window.count_event(at) {
                    return Ok(());
                }
                let reason = Value::Word(DropReason::NAMES[*reason as usize]);
                let kind = Value::Word(packet.header.name());
                let annotations = self.packet_annotations(packet, arrow, DetailLevel::Ends);
                let args = [&[("reason", reason), ("kind", kind)], annotations.args].concat();
                let annotations =
                    EventContent { label: Label::Word("drop"), args: &args, ..annotations };
                tracks.add_port_event(port, at, &annotations)
            }
            PortChange::Mark { packet, .. } => {
                if !window.holds(at) || !tracks.is_port_shown(port) || !window.count_event(at) {
                    return Ok(());
                }
                let annotations = self.packet_annotations(packet, Arrow::None, DetailLevel::Ends);
                let content = EventContent { label: Label::Word("mark"), ..annotations };
                tracks.add_port_event(port, at, &content)
            }
            PortChange::CutOff { packet, .. } => {
                if !window.holds(at) || !tracks.is_port_shown(port) || !window.count_event(at) {
                    return Ok(());
                }
                let annotations = self.packet_annotations(packet, Arrow::None, DetailLevel::Ends);
                let content = EventContent { label: Label::Word("cut"), ..annotations };
                tracks.add_port_event(port, at, &content)
            }
            PortChange::Consume { handle } => {
                self.end(*handle);
                Ok(())
            }
            PortChange::Duplicate { .. } => Ok(()),
            PortChange::LinkDown => on_outage(event, "down", window, tracks),
            PortChange::LinkUp => on_outage(event, "up", window, tracks),
        }
    }

    fn on_sends<H: Header, W: Write>(
        &mut self,
        event: &PortEvent<H>,
        packet: &Packet<H>,
        from: Time,
        until: Time,
        arrow: Arrow,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        if !tracks.is_port_shown(event.port) || !window.count_event(event.at) {
            return Ok(());
        }
        let annotations = self.packet_annotations(packet, arrow, DetailLevel::Place);
        tracks.on_link(event.port, from, until, &annotations)?;
        let Some(node) = tracks.station(event.port) else { return Ok(()) };
        if packet.payload.len > 0 || !window.holds(from) || !window.count_event(event.at) {
            return Ok(());
        }
        let annotations = self.packet_annotations(packet, Arrow::None, DetailLevel::All);
        tracks.add_instant(node, InstantRow::ControlSent, from, &annotations)
    }

    /// Returns the label and the arguments of a packet's event.
    fn packet_annotations<H: Header>(
        &mut self,
        packet: &Packet<H>,
        arrow: Arrow,
        detail: DetailLevel,
    ) -> EventContent<'_> {
        let args = &mut self.args;
        args.clear();
        let payload = packet.payload;
        if payload.len > 0 || payload.msg.get() > 0 {
            args.push(("flow", Value::Count(payload.msg.get().into())));
        }
        if payload.len > 0 {
            args.push(("offset", Value::Count(payload.offset)));
        }
        args.push(("bytes", Value::Count(packet.wire_bytes.into())));
        args.push(("priority", Value::Count(packet.priority.get().into())));
        if payload.len > 0 && detail == DetailLevel::Ends {
            args.push(("payload", Value::Count(payload.len.into())));
        }
        if payload.len == 0 || detail == DetailLevel::Ends {
            args.push(("src", Value::Count(packet.src.get().into())));
            args.push(("dst", Value::Count(packet.dst.get().into())));
        }
        if detail == DetailLevel::All {
            let mut fields = Vec::new();
            packet.header.fields(&mut |name, part, value| {
                if part.is_empty() {
                    fields.push((name, value));
                }
            });
            if !fields.is_empty() {
                args.push(("header", Value::Group(fields)));
            }
        }
        let (label, packet) = (Label::Word(packet.header.name()), Some(packet.header.kind()));
        EventContent { label, packet, args, arrow }
    }
}

/// Handles the failure or the repair of a link.
fn on_outage<H, W: Write>(
    event: &PortEvent<H>,
    name: &'static str,
    window: &mut Window,
    tracks: &mut Tracks<W>,
) -> io::Result<()> {
    let &PortEvent { at, port, .. } = event;
    if !window.holds(at) {
        return Ok(());
    }
    tracks.on_outage(port, at, name)?;
    if !tracks.is_port_shown(port) || !window.count_event(at) {
        return Ok(());
    }
    let annotations =
        EventContent { label: Label::Word(name), packet: None, args: &[], arrow: Arrow::None };
    tracks.add_port_event(port, at, &annotations)
}
