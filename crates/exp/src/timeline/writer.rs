//! Writes a trace: tracks, and slices, instants and values on them, straight to the output.
//!
//! A picosecond of the run is a nanosecond of the trace, Perfetto's unit: nothing is rounded, and
//! viewers show times a thousand times as long. Names of events and arguments are interned.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use rampmeter_types::Time;
use rampmeter_types::collections::IdMap;
use rampmeter_types::wire::PacketKind;

use super::schema::{
    COUNTER, CounterDescriptor, DebugAnnotation, INCREMENTAL_STATE_CLEARED, INSTANT, InternedData,
    InternedName, NEEDS_INCREMENTAL_STATE, ORDER_EXPLICIT, ProcessDescriptor, SLICE_BEGIN,
    SLICE_END, TRACE_PACKET, TracePacket, TrackDescriptor, TrackEvent, UNIT_BYTES,
};

/// The only sequence of packets in the file; numbers are above zero.
const SEQUENCE: u32 = 1;

/// A track of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    uuid: u64,
    role: TrackRole,
}

/// Role of a track, the first category of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackRole {
    /// A group of tracks, which has no events.
    Node,
    /// Flows that a host sends or receives.
    Flow,
    /// Phases of a protocol.
    Phase,
    /// Packets that a node sends or receives.
    NodePacket,
    /// Packets on a link.
    Link,
    /// Length of a port's queue.
    Queue,
    /// Drops, marks and outages at a port.
    Port,
    /// Outages of the network.
    Outage,
}

impl TrackRole {
    /// Returns the category of events.
    const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Flow => "flow",
            Self::Phase => "phase",
            Self::NodePacket => "node packet",
            Self::Link => "link",
            Self::Queue => "queue",
            Self::Port => "port",
            Self::Outage => "outage",
        }
    }
}

/// Name of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label<'a> {
    /// Interned text, one of few.
    Word(&'static str),
    /// Text that is not interned.
    Text(&'a str),
}

/// An argument of an event.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Count(u64),
    Ratio(f64),
    Word(&'static str),
    /// Several under one name.
    Group(Vec<(&'static str, u64)>),
}

/// Arrow from an event's packet to those of others: all events with one number are joined in order
/// of time, up to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    None,
    Through(u64),
    Last(u64),
}

/// Contents of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventContent<'a> {
    pub(super) label: Label<'a>,
    /// Kind of its packet, the second category; `None` for events of no packet.
    pub(super) packet: Option<PacketKind>,
    pub(super) args: &'a [(&'static str, Value)],
    pub(super) arrow: Arrow,
}

/// Writes a trace.
#[derive(Debug)]
pub(super) struct TraceWriter<W> {
    out: W,
    tracks: u64,
    is_first: bool,
    categories: InternTable,
    names: InternTable,
    args: InternTable,
    /// Strings that the next packet interns.
    interned: InternedData,
    packet: Vec<u8>,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace.
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            tracks: 0,
            is_first: true,
            categories: InternTable::default(),
            names: InternTable::default(),
            args: InternTable::default(),
            interned: InternedData::default(),
            packet: Vec::new(),
        }
    }

    /// Adds a node of the network, which viewers show as a group of tracks. Its number is at least
    /// one.
    pub(super) fn node(&mut self, number: i32, name: &str, about: &str) -> io::Result<Track> {
        let process = ProcessDescriptor { pid: Some(number), process_name: Some(name.to_owned()) };
        self.describe(
            TrackRole::Node,
            TrackDescriptor {
                process: Some(process),
                child_ordering: Some(ORDER_EXPLICIT),
                description: (!about.is_empty()).then(|| about.to_owned()),
                ..TrackDescriptor::default()
            },
        )
    }

    /// Adds a track of a node, at its place among the node's others.
    pub(super) fn track(
        &mut self,
        node: Track,
        role: TrackRole,
        name: &str,
        place: i32,
    ) -> io::Result<Track> {
        self.describe(
            role,
            TrackDescriptor {
                name: Some(name.to_owned()),
                parent_uuid: Some(node.uuid),
                sibling_order_rank: Some(place),
                ..TrackDescriptor::default()
            },
        )
    }

    /// Adds a track of queued bytes.
    pub(super) fn counter(&mut self, node: Track, name: &str, place: i32) -> io::Result<Track> {
        self.describe(
            TrackRole::Queue,
            TrackDescriptor {
                name: Some(name.to_owned()),
                parent_uuid: Some(node.uuid),
                counter: Some(CounterDescriptor { unit: Some(UNIT_BYTES) }),
                sibling_order_rank: Some(place),
                ..TrackDescriptor::default()
            },
        )
    }

    fn describe(&mut self, role: TrackRole, descriptor: TrackDescriptor) -> io::Result<Track> {
        self.tracks += 1;
        let uuid = self.tracks;
        let descriptor = TrackDescriptor { uuid: Some(uuid), ..descriptor };
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(Track { uuid, role })
    }

    /// Writes a slice. Slices of one track are written in order of time and do not overlap.
    pub(super) fn slice(
        &mut self,
        track: Track,
        from: Time,
        until: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let event = self.event(track, SLICE_BEGIN, content);
        self.write_event(from, event)?;
        let end = TrackEvent {
            r#type: Some(SLICE_END),
            track_uuid: Some(track.uuid),
            ..TrackEvent::default()
        };
        self.write_event(until, end)
    }

    /// Writes an instant.
    pub(super) fn instant(
        &mut self,
        track: Track,
        at: Time,
        content: &EventContent<'_>,
    ) -> io::Result<()> {
        let event = self.event(track, INSTANT, content);
        self.write_event(at, event)
    }

    /// Writes the value of a counter from `at` on.
    pub(super) fn value(&mut self, track: Track, at: Time, value: u32) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(track.uuid),
            category_iids: self.categories(track, None),
            counter_value: Some(value.into()),
            ..TrackEvent::default()
        };
        self.write_event(at, event)
    }

    /// Hands over everything that is buffered.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn event(&mut self, track: Track, kind: i32, content: &EventContent<'_>) -> TrackEvent {
        let (name_iid, name) = match content.label {
            Label::Word(word) => {
                let new = &mut self.interned.event_names;
                (Some(self.names.number(word, new)), None)
            }
            Label::Text(text) => (None, Some(text.to_owned())),
        };
        let category_iids = self.categories(track, content.packet);
        let args = content.args.iter();
        let debug_annotations = args.map(|(name, value)| self.annotation(name, value)).collect();
        let (flow_ids, terminating_flow_ids) = match content.arrow {
            Arrow::None => (Vec::new(), Vec::new()),
            Arrow::Through(id) => (vec![id], Vec::new()),
            Arrow::Last(id) => (Vec::new(), vec![id]),
        };
        TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(track.uuid),
            name_iid,
            name,
            category_iids,
            debug_annotations,
            flow_ids,
            terminating_flow_ids,
            ..TrackEvent::default()
        }
    }

    /// Returns the categories of an event: the track's role, and the kind of the packet.
    fn categories(&mut self, track: Track, packet: Option<PacketKind>) -> Vec<u64> {
        let names = [Some(track.role.name()), packet.map(PacketKind::name)];
        let new = &mut self.interned.event_categories;
        names.into_iter().flatten().map(|name| self.categories.number(name, new)).collect()
    }

    fn annotation(&mut self, name: &'static str, value: &Value) -> DebugAnnotation {
        let new = &mut self.interned.debug_annotation_names;
        let name_iid = Some(self.args.number(name, new));
        let mut annotation = DebugAnnotation { name_iid, ..DebugAnnotation::default() };
        match value {
            Value::Count(count) => annotation.uint_value = Some(*count),
            Value::Ratio(ratio) => annotation.double_value = Some(*ratio),
            Value::Word(word) => annotation.string_value = Some((*word).to_owned()),
            Value::Group(values) => {
                let entry = |&(name, count)| self.annotation(name, &Value::Count(count));
                annotation.dict_entries = values.iter().map(entry).collect();
            }
        }
        annotation
    }

    fn write_event(&mut self, at: Time, event: TrackEvent) -> io::Result<()> {
        let new = std::mem::take(&mut self.interned);
        let is_named = !event.category_iids.is_empty();
        self.write(TracePacket {
            timestamp: Some(at.as_ps()),
            sequence_flags: is_named.then_some(NEEDS_INCREMENTAL_STATE),
            interned_data: (new != InternedData::default()).then_some(new),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        let mut packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        if std::mem::take(&mut self.is_first) {
            packet.sequence_flags = Some(INCREMENTAL_STATE_CLEARED);
        }
        self.packet.clear();
        encode_key(TRACE_PACKET, WireType::LengthDelimited, &mut self.packet);
        encode_varint(packet.encoded_len() as u64, &mut self.packet);
        packet.encode_raw(&mut self.packet);
        self.out.write_all(&self.packet)
    }
}

/// Words that have been interned.
#[derive(Debug, Default)]
struct InternTable {
    numbers: BTreeMap<&'static str, u64>,
    /// The same by the address of a word, which is found sooner.
    by_place: IdMap<(usize, usize), u64>,
}

impl InternTable {
    /// Returns the number of a word, which is new if it has none yet.
    fn number(&mut self, word: &'static str, new: &mut Vec<InternedName>) -> u64 {
        let place = (word.as_ptr().addr(), word.len());
        if let Some(number) = self.by_place.get(&place) {
            return *number;
        }
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            new.push(InternedName { iid: Some(next), name: Some(word.to_owned()) });
        }
        self.by_place.insert(place, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Perfetto's `Trace`.
    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packet: Vec<TracePacket>,
    }

    const fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    fn written(write: impl FnOnce(&mut TraceWriter<&mut Vec<u8>>) -> io::Result<()>) -> Trace {
        let mut bytes = Vec::new();
        let mut writer = TraceWriter::new(&mut bytes);
        write(&mut writer).unwrap();
        writer.finish().unwrap();
        Trace::decode(&*bytes).unwrap()
    }

    #[test]
    fn a_slice_is_two_events_at_exact_picoseconds_with_arguments_and_an_arrow() {
        let trace = written(|writer| {
            let node = writer.node(1, "h0", "")?;
            let track = writer.track(node, TrackRole::Link, "h0>s0", 7)?;
            let content = EventContent {
                label: Label::Word("data"),
                packet: Some(PacketKind::Data),
                args: &[("flow", Value::Count(17)), ("slowdown", Value::Ratio(1.5))],
                arrow: Arrow::Through(5),
            };
            writer.slice(track, at(1_000_000_000_001), at(1_000_000_000_002), &content)
        });
        let [node, track, begin, end] = &trace.packet[..] else { panic!("{trace:?}") };
        let node = node.track_descriptor.as_ref().unwrap();
        let process = node.process.as_ref().unwrap();
        assert_eq!((process.pid, process.process_name()), (Some(1), "h0"));
        let track = track.track_descriptor.as_ref().unwrap();
        assert_eq!((track.parent_uuid, track.name()), (node.uuid, "h0>s0"));
        assert_eq!(begin.timestamp, Some(1_000_000_000_001));
        assert_eq!(end.timestamp, Some(1_000_000_000_002));
        let interned = begin.interned_data.as_ref().unwrap();
        let event = begin.track_event.as_ref().unwrap();
        assert_eq!(interned.event_names[0].iid, event.name_iid);
        assert_eq!(interned.event_names[0].name(), "data");
        let categories: Vec<&str> = interned.event_categories.iter().map(|of| of.name()).collect();
        assert_eq!(
            (&categories[..], &event.category_iids[..]),
            (&["link", "data"][..], &[1, 2][..])
        );
        assert_eq!(event.debug_annotations[0].uint_value, Some(17));
        assert_eq!(event.debug_annotations[1].double_value, Some(1.5));
        assert_eq!((event.r#type(), &event.flow_ids[..]), (SLICE_BEGIN, &[5][..]));
        let event = end.track_event.as_ref().unwrap();
        assert_eq!((event.r#type(), event.track_uuid), (SLICE_END, track.uuid));
    }

    #[test]
    fn words_are_interned_once_and_only_the_first_packet_clears_them() {
        let trace = written(|writer| {
            let node = writer.node(1, "h0", "")?;
            let track = writer.track(node, TrackRole::NodePacket, "sent", 0)?;
            for n in 0..3 {
                let args = [("flow", Value::Count(n))];
                let content = EventContent {
                    label: Label::Word("token"),
                    packet: Some(PacketKind::Permission),
                    args: &args,
                    arrow: Arrow::None,
                };
                writer.instant(track, at(n), &content)?;
            }
            Ok(())
        });
        let spelled = trace.packet.iter().filter(|p| p.interned_data.is_some()).count();
        assert_eq!(spelled, 1);
        let flags: Vec<u32> = trace.packet.iter().map(|p| p.sequence_flags()).collect();
        assert_eq!(flags, [1, 0, 2, 2, 2]);
        let names: Vec<u64> =
            trace.packet.iter().filter_map(|p| p.track_event.as_ref()?.name_iid).collect();
        assert_eq!(names, [1, 1, 1]);
    }
}
