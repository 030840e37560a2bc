//! One packet of every type of every transport, as a capture with the values of its fields.
//!
//! The dissector is tested with this. The bytes are those of the encoders, the fields are the
//! values that were encoded, under the dissector's names. Headers are arbitrary, but the same every
//! time.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use rampmeter_sim::Direction;
use rampmeter_types::envelope::{
    DatagramKind, Envelope, Fragment, Incarnation, Protection, TransportId,
};
use rampmeter_types::packet::Marks;
use rampmeter_types::wire::{Format, PacketKind, WireFormat, Writer};
use rampmeter_types::{MsgId, NodeId, Packet, PayloadRef, Priority, Purpose, Rng, Time, WireError};
use serde_json::{Map, Value};

use super::frame::{FRAME_MAX, Frame};
use super::pcapng::{CapturedPacket, PcapngWriter};
use crate::error::{RunError, io as io_error};

/// Writes a capture of one packet of every type of `wires` to `file`. Returns the fields of each by
/// the dissector's names as JSON: a list of objects. Values are numbers, or lists of numbers if a
/// field occurs several times.
///
/// # Errors
/// If the file cannot be written.
pub fn every_packet(file: &Path, wires: &[WireFormat]) -> Result<String, RunError> {
    let samples = samples(wires).map_err(io::Error::other);
    let written = samples.and_then(|samples| {
        let mut writer = PcapngWriter::new(BufWriter::new(File::create(file)?), "rampmeter")?;
        let interface = writer.interface("h3", FRAME_MAX as u32)?;
        for (sample, number) in samples.iter().zip(1..) {
            let (bytes, original) = (sample.frame.captured(), sample.frame.original as u32);
            let (at, direction) = (Time::from_ps(number * 1_000_001), Direction::Sent);
            writer.packet(&CapturedPacket { at, interface, direction, bytes, original })?;
        }
        writer.finish()?;
        Ok(samples)
    });
    let samples = written.map_err(|source| io_error(file, source))?;
    Ok(Value::from_iter(samples.into_iter().map(|sample| sample.fields)).to_string())
}

/// Bytes of payload in the samples of data packets.
const PAYLOAD: u16 = 1_000;
/// Headers that are drawn for a sample, which is the longest: its lists have items.
const DRAWS: u32 = 16;

struct Sample {
    frame: Frame,
    fields: Map<String, Value>,
}

fn samples(wires: &[WireFormat]) -> Result<Vec<Sample>, WireError> {
    let mut samples = Vec::new();
    let (nonce, msg) = (0xdead_beef, MsgId::new(17));
    let session = 0xa1b2;
    for kind in [
        DatagramKind::Hello { nonce },
        DatagramKind::HelloAck { nonce },
        DatagramKind::Refused { msg },
        DatagramKind::Corrupt { msg },
        DatagramKind::Initiation { session },
        DatagramKind::Response { session },
        DatagramKind::Cookie { session },
        DatagramKind::Confirmation,
    ] {
        let id = wires.first().map_or(TransportId::PRIVATE, |wire| wire.id);
        let (mut fields, mut body) = (Map::new(), Vec::new());
        if matches!(kind, DatagramKind::Hello { .. }) {
            // Two digests of settings.
            body = vec![2, 0, 0, 0, 5, 0, 0, 1, 0];
            fields.insert("rampmeter.settings".to_owned(), 2.into());
            fields.insert("rampmeter.digest".to_owned(), vec![5, 256].into());
        }
        samples.push(sample(id, kind, 0, fields, &body)?);
    }
    let mut rng = Rng::new(0, 0, Purpose::Test);
    samples.extend(wires.first().map(|wire| bundle(wire, &mut rng)).transpose()?);
    for wire in wires {
        let mut rng = Rng::new(0, u64::from(wire.id.0), Purpose::Test);
        for format in wire.formats {
            samples.push(packet(wire, format, &mut rng)?);
        }
    }
    Ok(samples)
}

/// Returns a bundle of a packet of each type without payload.
fn bundle(wire: &WireFormat, rng: &mut Rng) -> Result<Sample, WireError> {
    let (mut all, mut fields, mut n) = (Vec::new(), Map::new(), 0);
    for format in wire.formats.iter().filter(|format| format.kind != PacketKind::Data) {
        let (header, of_header) = header(wire, format, rng)?;
        n += 1;
        let mut entry = [0; Envelope::BUNDLE_ENTRY];
        Writer::new(&mut entry).u16(header.len() as u16)?.u32(n)?;
        all.extend(entry);
        all.extend(&header);
        let numbers = [("length", header.len() as u32), ("msg", n)];
        let numbers = numbers.map(|(name, value)| (format!("rampmeter.{name}"), value.into()));
        for (name, value) in of_header.into_iter().chain(numbers) {
            let values = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            let values = values.as_array_mut().expect("a list");
            match value {
                Value::Array(items) => values.extend(items),
                value => values.push(value),
            }
        }
    }
    sample(wire.id, DatagramKind::Bundle { n }, 0, fields, &all)
}

/// Returns a packet of a transport.
fn packet(wire: &WireFormat, format: &Format, rng: &mut Rng) -> Result<Sample, WireError> {
    let (header, mut fields) = header(wire, format, rng)?;
    let msg = MsgId::new(0x0a0b_0c0d);
    let (kind, len) = match format.kind {
        PacketKind::Data => {
            // Those of every other transport have digests.
            let digest = wire.id.0.is_multiple_of(2).then_some(0x89ab_cdef);
            let fragment = Fragment { service: 513, offset: 70_000, size: 71_000, digest };
            fields.insert("rampmeter.payload_len".to_owned(), PAYLOAD.into());
            (DatagramKind::Data { msg, fragment }, PAYLOAD)
        }
        _ => (DatagramKind::Control { msg }, 0),
    };
    sample(wire.id, kind, len, fields, &header)
}

/// Returns the header of a packet, and its fields.
fn header(
    wire: &WireFormat,
    format: &Format,
    rng: &mut Rng,
) -> Result<(Vec<u8>, Map<String, Value>), WireError> {
    let drawn = (0..DRAWS).filter_map(|_| wire.sample(format.code, &mut || rng.bits()));
    let header = drawn.max_by_key(|header| header.bytes.len());
    let header = header.ok_or(WireError::UnknownType(format.code))?;
    let mut fields = Map::new();
    fields.insert(format!("{}.type", wire.filter()), format.code.into());
    for field in header.values {
        let name = format!("{}.{}", wire.filter(), field.filter);
        match field.is_item {
            true => {
                let values = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                values.as_array_mut().expect("a list").push(field.value.into());
            }
            false => drop(fields.insert(name, field.value.into())),
        }
    }
    Ok((header.bytes, fields))
}

/// Returns an envelope, a header and a payload of that length, with the fields of the header.
fn sample(
    transport: TransportId,
    kind: DatagramKind,
    len: u16,
    mut fields: Map<String, Value>,
    header: &[u8],
) -> Result<Sample, WireError> {
    let (src, dst) = (NodeId::new(3), NodeId::new(66_000));
    let dst_incarnation = match kind {
        DatagramKind::Hello { .. } => None,
        _ => Some(Incarnation::new(0xfedc_ba98)),
    };
    let src_incarnation = Incarnation::new(0x1234_5678);
    let protection = Protection::Unprotected;
    let envelope =
        Envelope { transport, src, dst, src_incarnation, dst_incarnation, kind, protection };
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
    let frame = Frame::new(&envelope, &packet, |out| {
        Writer::new(out).bytes(header).map(|written| written.position())
    })?;
    Ok(Sample { frame, fields })
}

fn envelope_fields(envelope: &Envelope) -> Vec<(&'static str, u32)> {
    let (code, word, fragment) = match envelope.kind {
        DatagramKind::Hello { nonce } => (0, ("nonce", nonce), None),
        DatagramKind::HelloAck { nonce } => (1, ("nonce", nonce), None),
        DatagramKind::Control { msg } => (2, ("msg", msg.get()), None),
        DatagramKind::Data { msg, fragment } => {
            let kind = if fragment.digest.is_some() { 10 } else { 3 };
            (kind, ("msg", msg.get()), Some(fragment))
        }
        DatagramKind::Refused { msg } => (4, ("msg", msg.get()), None),
        DatagramKind::Initiation { session } => (5, ("session", session.into()), None),
        DatagramKind::Response { session } => (6, ("session", session.into()), None),
        DatagramKind::Cookie { session } => (7, ("session", session.into()), None),
        DatagramKind::Confirmation => (8, ("msg", 0), None),
        DatagramKind::Bundle { n } => (9, ("packets", n), None),
        DatagramKind::Corrupt { msg } => (11, ("msg", msg.get()), None),
    };
    let mut fields = vec![
        ("magic", 0x524d),
        ("version", 2),
        ("kind", code),
        ("transport", envelope.transport.0.into()),
        ("protection", 0),
        ("service", fragment.map_or(0, |f| f.service.into())),
        ("src", envelope.src.get()),
        ("dst", envelope.dst.get()),
        ("src_life", envelope.src_incarnation.get()),
        ("dst_life", envelope.dst_incarnation.map_or(0, Incarnation::get)),
        word,
    ];
    if let Some(Fragment { offset, size, digest, .. }) = fragment {
        fields.extend([("offset", offset), ("size", size)]);
        fields.extend(digest.map(|digest| ("message_digest", digest)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rampmeter_proto::{Builtin, formats};

    use super::*;

    fn sampled(samples: &[Sample], name: &str) -> BTreeSet<u64> {
        samples.iter().filter_map(|s| s.fields.get(name)).filter_map(Value::as_u64).collect()
    }

    #[test]
    fn every_type_of_every_transport_has_a_sample_with_items_in_its_lists() {
        let wires = formats::<Builtin>();
        let samples = samples(&wires).unwrap();
        for wire in &wires {
            let known = wire.formats.iter().map(|format| format.code.into()).collect();
            assert_eq!(sampled(&samples, &format!("{}.type", wire.filter())), known);
        }
        assert_eq!(sampled(&samples, "rampmeter.kind"), (0..=11).collect());
        for sample in &samples {
            for (name, value) in &sample.fields {
                assert!(!name.ends_with(".count") || *value != 0, "{name}");
            }
        }
    }
}
