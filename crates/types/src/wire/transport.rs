//! Packets of a transport of any header type.

use super::{FieldEncoding, FieldInfo, Format, Formats, check};
use crate::envelope::TransportId;
use crate::packet::Packet;

/// Packets of one transport, for code that iterates over all transports.
#[derive(Clone, Copy, Debug)]
pub struct WireFormat {
    /// Number on the wire.
    pub id: TransportId,
    /// Name in plans.
    pub name: &'static str,
    /// Name in texts.
    pub title: &'static str,
    /// Descriptions of its packets, by type.
    pub formats: &'static [Format],
    /// Bytes of one of its packets in the memory of the simulator.
    pub packet_bytes: usize,
    sample: fn(u8, &mut dyn FnMut() -> u64) -> Option<Sample>,
    check_bytes: fn(&[u8]),
    check_packets: fn(&mut dyn FnMut() -> u64),
}

impl WireFormat {
    /// Returns its name in filters of captures: its own name, unless Wireshark has a protocol of
    /// that name.
    pub fn filter(&self) -> &'static str {
        match self.name {
            "tcp" => "rampmeter_tcp",
            "ndp" => "rampmeter_ndp",
            name => name,
        }
    }
}

/// An encoded header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of the encoding.
    pub bytes: Vec<u8>,
    /// Values in the order of the fields.
    pub values: Vec<Value>,
}

/// Value of a field, or of a field of a list's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Name in filters without that of the transport: `field`, `list.count` or `list.part`.
    pub filter: String,
    /// True if it may occur any number of times, including zero.
    pub is_item: bool,
    /// The value.
    pub value: u64,
}

impl WireFormat {
    /// Creates the description of the transport whose headers are `H`.
    pub const fn describe<H: Formats>(
        id: TransportId,
        name: &'static str,
        title: &'static str,
    ) -> Self {
        Self {
            id,
            name,
            title,
            formats: H::FORMATS,
            packet_bytes: size_of::<Packet<H>>(),
            sample: sample::<H>,
            check_bytes: check::check_decode::<H>,
            check_packets: check::check_packets::<H>,
        }
    }

    /// Returns an arbitrary header of a type, encoded; `None` if there is no such type.
    pub fn sample(&self, code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Sample> {
        (self.sample)(code, draw)
    }

    /// Calls [`check::check_decode`] for this transport.
    ///
    /// # Panics
    /// If its codec is wrong.
    pub fn check_bytes(&self, bytes: &[u8]) {
        (self.check_bytes)(bytes);
    }

    /// Calls [`check::check_packets`] for this transport.
    ///
    /// # Panics
    /// If its codec or its tables are wrong.
    pub fn check_packets(&self, draw: &mut dyn FnMut() -> u64) {
        (self.check_packets)(draw);
    }

    /// Returns the label of a field: its own, or that of an earlier field of the same name.
    pub fn label(&self, field: &FieldInfo) -> Option<&'static str> {
        let earlier = || self.formats.iter().flat_map(|format| format.fields);
        field.label.or_else(|| earlier().filter(|f| f.name == field.name).find_map(|f| f.label))
    }
}

fn sample<H: Formats>(code: u8, draw: &mut dyn FnMut() -> u64) -> Option<Sample> {
    let header = H::arbitrary(code, draw)?;
    let format = H::FORMATS.iter().find(|format| format.code == code)?;
    let mut bytes = vec![0; header.wire_len()];
    header.encode(&mut bytes).ok()?;
    let mut values = Vec::new();
    header.values(&mut |name, part, value| {
        let Some(field) = format.field(name) else { return };
        let is_item = matches!(field.form, FieldEncoding::List { .. }) && part != "count";
        values.push(Value { filter: filter(field, part), is_item, value });
    });
    Some(Sample { bytes, values })
}

/// Returns the name in filters of a field's value, or of a field of a list's item.
fn filter(field: &FieldInfo, part: &str) -> String {
    match (field.form, part) {
        (FieldEncoding::List { items, .. }, "") => format!("{}.{}", field.filter, items[0].filter),
        (FieldEncoding::List { .. }, _) => format!("{}.{part}", field.filter),
        _ => field.filter.to_owned(),
    }
}
