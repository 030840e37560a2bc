//! One packet of every type of every transport, as a capture, and what its fields are.
//!
//! From this the dissector is tested: the bytes come from the encoders, the fields from the values
//! that were encoded, under the names that the dissector gives them.

mod cosy;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use rampmeter_core::envelope::{Envelope, Fragment, Incarnation, Kind, TransportId};
use rampmeter_core::packet::Marks;
use rampmeter_core::{Header, MsgId, NodeId, Packet, PayloadRef, Priority, Span, Time, WireError};
use rampmeter_proto::dcpim::wire::{DcpimHeader, Match, Step};
use rampmeter_proto::fastpass::wire::{Demand, FastpassHeader, List, Slot};
use rampmeter_proto::pfabric::wire::PfabricHeader;
use rampmeter_proto::phost::wire::PhostHeader;
use rampmeter_sim::Direction;
use serde_json::{Map, Value};

use super::frame::{FRAME_MAX, Frame};
use super::pcapng::{Captured, PcapngWriter};
use crate::run::{RunError, io as io_error};

/// Writes a capture of one packet of every type to `file`. Returns the fields of each by the
/// dissector's names as JSON: a list of objects, the values numbers, or lists of numbers where a
/// field occurs several times.
///
/// # Errors
/// If the file cannot be written.
pub fn every_packet(file: &Path) -> Result<String, RunError> {
    let samples = samples().map_err(io::Error::other);
    let written = samples.and_then(|samples| {
        let mut writer = PcapngWriter::new(BufWriter::new(File::create(file)?), "rampmeter")?;
        let interface = writer.interface("h3", FRAME_MAX as u32)?;
        for (sample, number) in samples.iter().zip(1..) {
            let (bytes, original) = (sample.frame.captured(), sample.frame.original as u32);
            let (at, direction) = (Time::from_ps(number * 1_000_001), Direction::Out);
            writer.packet(&Captured { at, interface, direction, bytes, original })?;
        }
        writer.finish()?;
        Ok(samples)
    });
    let samples = written.map_err(|source| io_error(file, source))?;
    Ok(Value::from_iter(samples.into_iter().map(|sample| sample.fields)).to_string())
}

/// Bytes of payload in the samples of data packets.
const DATA: u16 = 1_000;
/// Bytes of payload in all others.
const CONTROL: u16 = 0;

struct Sample {
    frame: Frame,
    fields: Map<String, Value>,
}

/// The fields of a header under the names of the dissector.
struct Fields {
    transport: &'static str,
    values: Map<String, Value>,
}

/// A field's value, or several.
trait Told {
    fn tell(&self, name: &str, fields: &mut Fields);
}

/// A field of a list's items: its name, and its value in one of them.
type Part<T> = (&'static str, fn(T) -> u64);

impl Fields {
    fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(format!("{}.{name}", self.transport), value.into());
    }

    /// The fields of a list's items.
    fn insert_items<T: Copy, const N: usize>(
        &mut self,
        name: &str,
        items: &[T],
        parts: [Part<T>; N],
    ) {
        self.insert(&format!("{name}.count"), items.len());
        for (field, of) in parts {
            let values: Value = items.iter().map(|&item| of(item)).collect();
            self.insert(&format!("{name}.{field}"), values);
        }
    }
}

macro_rules! told_as_numbers {
    ($($of:ty),*) => {$(
        impl Told for $of {
            fn tell(&self, name: &str, fields: &mut Fields) {
                fields.insert(name, u64::from(*self));
            }
        }
    )*};
}
told_as_numbers!(bool, u8, u16, u32, u64);

impl Told for Span {
    fn tell(&self, name: &str, fields: &mut Fields) {
        fields.insert(name, self.as_ps());
    }
}

impl<const N: usize> Told for List<Demand, N> {
    fn tell(&self, _name: &str, fields: &mut Fields) {
        let parts: [Part<Demand>; 2] = [("dst", |d| d.dst.into()), ("total", |d| d.total.into())];
        fields.insert_items("demand", self.as_slice(), parts);
    }
}

impl<const N: usize> Told for List<Slot, N> {
    fn tell(&self, _name: &str, fields: &mut Fields) {
        let parts: [Part<Slot>; 3] = [
            ("dst", |s| s.dst.into()),
            ("offset", |s| s.offset.into()),
            ("path", |s| s.path.into()),
        ];
        fields.insert_items("slot", self.as_slice(), parts);
    }
}

impl<const N: usize> Told for List<u32, N> {
    fn tell(&self, _name: &str, fields: &mut Fields) {
        fields.insert_items("schedule", self.as_slice(), [("flow", u64::from)]);
    }
}

/// The samples of one transport.
struct Samples {
    transport: TransportId,
    name: &'static str,
    samples: Vec<Sample>,
}

impl Samples {
    fn fields(&self, code: u8) -> Fields {
        let mut fields = Fields { transport: self.name, values: Map::new() };
        fields.insert("type", code);
        fields
    }

    /// Adds a packet with a header and `len` bytes of payload.
    fn push<H: Header>(&mut self, len: u16, header: H, fields: Fields) -> Result<(), WireError> {
        let msg = MsgId::new(0x0a0b_0c0d);
        let mut values = fields.values;
        let kind = match len {
            0 => Kind::Control { msg },
            len => {
                let fragment = Fragment { service: 513, offset: 70_000, size: 71_000 };
                values.insert("rampmeter.payload_len".to_owned(), len.into());
                Kind::Data { msg, fragment }
            }
        };
        self.push_kind(kind, len, values, |out| header.encode(out))
    }

    /// Adds a packet that is an envelope and what `body` writes.
    fn push_kind(
        &mut self,
        kind: Kind,
        len: u16,
        mut fields: Map<String, Value>,
        body: impl FnOnce(&mut [u8]) -> Result<usize, WireError>,
    ) -> Result<(), WireError> {
        let (src, dst) = (NodeId::new(3), NodeId::new(66_000));
        let dst_life = match kind {
            Kind::Hello { .. } => None,
            _ => Some(Incarnation::new(0xfedc_ba98)),
        };
        let src_life = Incarnation::new(0x1234_5678);
        let envelope = Envelope { transport: self.transport, src, dst, src_life, dst_life, kind };
        for (name, value) in envelope_fields(&envelope) {
            fields.insert(format!("rampmeter.{name}"), value.into());
        }
        let packet = Packet {
            header: (),
            payload: PayloadRef { offset: 0, msg: MsgId::default(), len },
            src,
            dst,
            wire_bytes: 40 + len,
            path: 5,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        };
        let frame = Frame::new(&envelope, &packet, body)?;
        self.samples.push(Sample { frame, fields });
        Ok(())
    }
}

fn envelope_fields(envelope: &Envelope) -> Vec<(&'static str, u32)> {
    let (code, word, fragment) = match envelope.kind {
        Kind::Hello { nonce } => (0, ("nonce", nonce), None),
        Kind::Here { nonce } => (1, ("nonce", nonce), None),
        Kind::Control { msg } => (2, ("msg", msg.get()), None),
        Kind::Data { msg, fragment } => (3, ("msg", msg.get()), Some(fragment)),
        Kind::Refused { msg } => (4, ("msg", msg.get()), None),
    };
    let mut fields = vec![
        ("magic", 0x524d),
        ("version", 1),
        ("kind", code),
        ("transport", envelope.transport.0.into()),
        ("reserved", 0),
        ("service", fragment.map_or(0, |f| f.service.into())),
        ("src", envelope.src.get()),
        ("dst", envelope.dst.get()),
        ("src_life", envelope.src_life.get()),
        ("dst_life", envelope.dst_life.map_or(0, Incarnation::get)),
        word,
    ];
    if let Some(Fragment { offset, size, .. }) = fragment {
        fields.extend([("offset", offset), ("size", size)]);
    }
    fields
}

/// Adds a packet, given as its header is written in Rust, and its fields. First the bytes of
/// payload and the type on the wire.
macro_rules! sample {
    ($to:ident, $len:ident, $code:literal,
     $header:ident::$packet:ident { $($field:ident: $value:expr),* $(,)? }) => {
        $(let $field = $value;)*
        let mut fields = $to.fields($code);
        $(Told::tell(&$field, stringify!($field), &mut fields);)*
        $to.push($len, $header::$packet { $($field),* }, fields)?;
    };
}
use sample;

fn samples() -> Result<Vec<Sample>, WireError> {
    let mut all = dcpim()?;
    all.extend(phost()?);
    all.extend(pfabric()?);
    all.extend(fastpass()?);
    all.extend(cosy::cosy()?);
    Ok(all)
}

const FLOW: u32 = 0x0102_0304;
const SLOT: u32 = 0x0506_0708;
const PEER_SLOT: u32 = 0x090a_0b0c;
const SEQ: u32 = 0x1112_1314;
const NUMBER: u32 = 0x1516_1718;
const CUMULATIVE: u32 = 0x1112_1300;
const REMAINING: u32 = 0x191a_1b1c;
const SIZE: u64 = 0x2122_2324_2526_2728;

fn dcpim() -> Result<Vec<Sample>, WireError> {
    let mut to = Samples { transport: TransportId::DCPIM, name: "dcpim", samples: Vec::new() };
    let nonce = 0xdead_beef;
    let msg = MsgId::new(17);
    for kind in [Kind::Hello { nonce }, Kind::Here { nonce }, Kind::Refused { msg }] {
        to.push_kind(kind, 0, Map::new(), |_| Ok(0))?;
    }
    sample!(
        to,
        CONTROL,
        1,
        DcpimHeader::Notification { flow: FLOW, tx_slot: SLOT, size: SIZE, repeated: true }
    );
    sample!(to, CONTROL, 2, DcpimHeader::Ack { tx_slot: SLOT });
    sample!(to, DATA, 3, DcpimHeader::Data { rx_slot: PEER_SLOT, seq: SEQ, number: NUMBER });
    sample!(
        to,
        CONTROL,
        4,
        DcpimHeader::Token {
            tx_slot: 3,
            rx_slot: PEER_SLOT,
            seq: 17,
            number: NUMBER,
            cumulative: CUMULATIVE,
            phase: 0x3132_3334,
            remaining: 5,
            rank: 7,
        }
    );
    sample!(to, CONTROL, 5, DcpimHeader::Finish { flow: FLOW, tx_slot: SLOT, packets: SEQ });
    sample!(to, CONTROL, 6, DcpimHeader::Finished { tx_slot: SLOT });
    let steps = [(7, Step::Request), (8, Step::Grant), (9, Step::Accept), (10, Step::Release)];
    for (code, step) in steps {
        let (channels, prompt, round, phase) = (4u8, 2u8, 3u8, 0x3132_3334u32);
        let (remaining, announced) = (REMAINING, 0x4142_4344_4546_4748u64);
        let mut fields = to.fields(code);
        let told: [(&str, &dyn Told); 6] = [
            ("channels", &channels),
            ("prompt", &prompt),
            ("round", &round),
            ("phase", &phase),
            ("remaining", &remaining),
            ("announced", &announced),
        ];
        told.iter().for_each(|(name, value)| value.tell(name, &mut fields));
        let m = Match { step, channels, prompt, round, phase, remaining, announced };
        to.push(CONTROL, DcpimHeader::Match(m), fields)?;
    }
    sample!(
        to,
        DATA,
        11,
        DcpimHeader::Unscheduled { flow: FLOW, tx_slot: SLOT, seq: SEQ, size: SIZE }
    );
    Ok(to.samples)
}

fn phost() -> Result<Vec<Sample>, WireError> {
    let mut to = Samples { transport: TransportId::PHOST, name: "phost", samples: Vec::new() };
    sample!(
        to,
        CONTROL,
        1,
        PhostHeader::Rts {
            flow: FLOW,
            tx_slot: SLOT,
            size: SIZE,
            time_left: Span::from_ps(u64::MAX),
            tenant: 513,
            repeated: false,
        }
    );
    sample!(
        to,
        CONTROL,
        2,
        PhostHeader::Token {
            tx_slot: SLOT,
            rx_slot: PEER_SLOT,
            seq: SEQ,
            number: NUMBER,
            remaining: REMAINING,
        }
    );
    sample!(to, DATA, 3, PhostHeader::Free { flow: FLOW, tx_slot: SLOT, seq: SEQ, size: SIZE });
    sample!(to, DATA, 4, PhostHeader::Data { rx_slot: PEER_SLOT, seq: SEQ, number: NUMBER });
    sample!(to, CONTROL, 5, PhostHeader::Ack { tx_slot: SLOT });
    sample!(to, CONTROL, 6, PhostHeader::Heard { tx_slot: SLOT });
    Ok(to.samples)
}

fn pfabric() -> Result<Vec<Sample>, WireError> {
    let mut to = Samples { transport: TransportId::PFABRIC, name: "pfabric", samples: Vec::new() };
    sample!(
        to,
        DATA,
        1,
        PfabricHeader::Data {
            flow: FLOW,
            tx_slot: SLOT,
            seq: SEQ,
            remaining: REMAINING,
            size: SIZE,
        }
    );
    sample!(
        to,
        CONTROL,
        2,
        PfabricHeader::Probe { flow: FLOW, tx_slot: SLOT, remaining: REMAINING, size: SIZE }
    );
    sample!(
        to,
        CONTROL,
        3,
        PfabricHeader::Ack { tx_slot: SLOT, cumulative: CUMULATIVE, sack: 0xa1a2_a3a4_a5a6_a7a8 }
    );
    Ok(to.samples)
}

/// A list of `items`, of which there are no more than fit.
fn list<T: Copy + Default, const N: usize>(items: impl IntoIterator<Item = T>) -> List<T, N> {
    let mut list = List::default();
    for item in items {
        assert!(list.push(item), "a list holds {N} items");
    }
    list
}

fn fastpass() -> Result<Vec<Sample>, WireError> {
    let name = "fastpass";
    let mut to = Samples { transport: TransportId::FASTPASS, name, samples: Vec::new() };
    sample!(to, DATA, 1, FastpassHeader::Data { flow: FLOW, tx_slot: SLOT, seq: SEQ, size: SIZE });
    sample!(
        to,
        CONTROL,
        2,
        FastpassHeader::Ack { tx_slot: SLOT, cumulative: CUMULATIVE, seq: SEQ }
    );
    let demand = |n: u16| Demand { dst: 260 + n, total: 0x1_0000 + u32::from(n) };
    sample!(
        to,
        CONTROL,
        3,
        FastpassHeader::Request {
            incarnation: PEER_SLOT,
            number: NUMBER,
            demands: list((0..3).map(demand)),
        }
    );
    let slot = |n: u8| Slot { dst: 260 + u16::from(n), offset: n, path: 200 - n };
    sample!(
        to,
        CONTROL,
        4,
        FastpassHeader::Allocation {
            incarnation: PEER_SLOT,
            heard: NUMBER,
            given: REMAINING,
            first: SIZE,
            slots: list((0..16).map(slot)),
        }
    );
    sample!(to, CONTROL, 5, FastpassHeader::Forgotten { incarnation: PEER_SLOT });
    for (code, header) in [(6, FastpassHeader::Passive), (7, FastpassHeader::Watchdog)] {
        let fields = to.fields(code);
        to.push(CONTROL, header, fields)?;
    }
    sample!(
        to,
        CONTROL,
        8,
        FastpassHeader::Announce { tx_slot: SLOT, dst: 260, remaining: REMAINING, number: NUMBER }
    );
    sample!(to, CONTROL, 9, FastpassHeader::Schedule { flows: list([SLOT, u32::MAX, PEER_SLOT]) });
    Ok(to.samples)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rampmeter_proto::cosy::wire::CosyHeader;

    use super::*;

    /// The types that `H` decodes, found by trying.
    fn known_types<H: Header>() -> BTreeSet<u64> {
        let bytes = |code: u8| {
            let mut bytes = [0; 256];
            bytes[0] = code;
            bytes
        };
        let is_known =
            |&code: &u8| !matches!(H::decode(&bytes(code)), Err(WireError::UnknownType(_)));
        (0..=u8::MAX).filter(is_known).map(u64::from).collect()
    }

    fn sampled_types(samples: &[Sample], name: &str) -> BTreeSet<u64> {
        samples.iter().filter_map(|s| s.fields.get(name)).filter_map(Value::as_u64).collect()
    }

    #[test]
    fn every_type_of_every_transport_has_a_sample() {
        let samples = samples().unwrap();
        let sampled = |name| sampled_types(&samples, name);
        assert_eq!(sampled("dcpim.type"), known_types::<DcpimHeader>());
        assert_eq!(sampled("phost.type"), known_types::<PhostHeader>());
        assert_eq!(sampled("pfabric.type"), known_types::<PfabricHeader>());
        assert_eq!(sampled("fastpass.type"), known_types::<FastpassHeader>());
        assert_eq!(sampled("cosy.type"), known_types::<CosyHeader>());
        assert_eq!(sampled("rampmeter.kind"), (0..=4).collect());
    }
}
