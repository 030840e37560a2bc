//! Properties of every header, for the tests of transports and for fuzzing.
//!
//! A transport's whole test of its packets is a call of [`check_packets`] with random words, and
//! one of [`check_decode`] with random bytes.

use super::{
    Bound, FieldEncoding, FieldInfo, FieldLimit, Format, Formats, Header, PacketKind, Rule,
    WireError,
};
use crate::envelope::Envelope;

/// Buffer size in bytes, longer than any header.
const BUFFER_LEN: usize = 512;

/// Decodes `bytes`. A valid header must encode to the same bytes.
///
/// # Panics
/// If it does not.
pub fn check_decode<H: Header>(bytes: &[u8]) {
    if let Ok((header, read)) = H::decode(bytes) {
        let mut again = vec![0; read];
        assert_eq!(header.encode(&mut again), Ok(read), "{header:?}");
        assert_eq!(again, bytes[..read], "{header:?}");
    }
}

/// Checks that a header is unchanged after encoding and decoding, and that every byte of its
/// encoding is needed.
///
/// # Panics
/// If not.
pub fn check_round_trip<H: Header>(header: &H) {
    let mut bytes = [0; BUFFER_LEN];
    let written = header.encode(&mut bytes).expect("room for any header");
    assert_eq!(written, header.wire_len(), "{header:?}");
    assert_eq!(H::decode(&bytes[..written]), Ok((*header, written)));
    for short in 0..written {
        let got = H::decode(&bytes[..short]);
        assert!(matches!(got, Err(WireError::Truncated { .. })), "{short} bytes of {header:?}");
        assert!(
            header.encode(&mut [0; BUFFER_LEN][..short]).is_err(),
            "{short} bytes of {header:?}"
        );
    }
}

/// Checks the packets of a transport: their tables, and an arbitrary header of every type. It must
/// survive encoding and decoding, truncated encodings must be refused, and errors must name the
/// field with an invalid value. `draw` returns random words.
///
/// # Panics
/// If one of these does not hold.
pub fn check_packets<H: Formats>(draw: &mut dyn FnMut() -> u64) {
    check_tables(H::FORMATS);
    for format in H::FORMATS {
        let header = H::arbitrary(format.code, draw).expect("an arbitrary header of every type");
        assert_eq!(header.code(), format.code);
        check_round_trip(&header);
        check_field_names(format, &header);
    }
    for code in 0..=u8::MAX {
        let is_known = H::FORMATS.iter().any(|format| format.code == code);
        let mut bytes = [0; BUFFER_LEN];
        bytes[0] = code;
        let is_refused = H::decode(&bytes) == Err(WireError::UnknownType(code));
        assert_eq!(is_refused, !is_known, "type {code}");
        assert!(is_known || H::arbitrary(code, draw).is_none(), "type {code}");
    }
}

/// Invalidates one field of `header` after another.
fn check_field_names<H: Formats>(format: &Format, header: &H) {
    let mut bytes = [0; BUFFER_LEN];
    header.encode(&mut bytes).expect("room for any header");
    let mut at = 1;
    for field in format.fields {
        let (from, to) = (at, at + field.form.bytes());
        let refused = |wrong: u64| {
            let mut bytes = bytes;
            bytes[from..to].copy_from_slice(&wrong.to_be_bytes()[8 - (to - from)..]);
            match H::decode(&bytes) {
                Err(WireError::BadField { field, expected, got }) if got == wrong => {
                    (field, expected)
                }
                other => panic!("{} {wrong} gives {other:?}", field.name),
            }
        };
        match field.form {
            FieldEncoding::Words { expected, words } => {
                assert_eq!(refused(words.len() as u64), (field.name, expected));
            }
            FieldEncoding::Number { .. } => {
                for rule in format.rules.iter().filter(|rule| rule.field == field.name) {
                    if let Some(wrong) = exceed_limit(rule, header, to - from) {
                        assert_eq!(refused(wrong), (field.name, rule.expected));
                    }
                }
            }
            // Fields after a list have no fixed offset.
            FieldEncoding::List { max, .. } => {
                refused(u64::from(max) + 1);
                return;
            }
        }
        at = to;
    }
}

/// Returns the value next to the limit of `rule` that is not allowed, if a field of `bytes` bytes
/// holds it.
fn exceed_limit<H: Formats>(rule: &Rule, header: &H, bytes: usize) -> Option<u64> {
    let limit = match rule.limit {
        FieldLimit::Number(number) => number,
        FieldLimit::Field(other) => {
            let mut limit = None;
            header.values(&mut |name, _, value| {
                if name == other {
                    limit = Some(value);
                }
            });
            limit?
        }
    };
    let largest = u64::MAX >> (64 - 8 * bytes);
    match rule.bound {
        Bound::Min => limit.checked_sub(1),
        Bound::Max => limit.checked_add(1).filter(|&wrong| wrong <= largest),
    }
}

/// Checks that the tables of packets are consistent.
fn check_tables(formats: &[Format]) {
    assert!(formats.is_sorted_by(|a, b| a.code < b.code), "types are in order and distinct");
    for format in formats {
        let name = format.name;
        let longest: usize = format.fields.iter().map(|field| host_bytes(field.form)).sum();
        let is_short = longest < Envelope::DATA_HEADER_MAX;
        assert!(is_short || format.kind != PacketKind::Data, "{name} leaves room for payload");
        assert!(!format.docs.trim().is_empty(), "{name} has a documentation");
        for (place, field) in format.fields.iter().enumerate() {
            let all = || formats.iter().flat_map(|format| format.fields);
            let same: Vec<_> = all().filter(|other| other.filter == field.filter).collect();
            let mut labels: Vec<_> = same.iter().filter_map(|other| other.label).collect();
            labels.dedup();
            assert_eq!(labels.len(), 1, "{name}: {} has one label", field.name);
            assert!(same.iter().all(|other| other.form.bytes() == field.form.bytes()));
            assert!(format.fields[..place].iter().all(|other| other.name != field.name));
        }
        format.rules.iter().for_each(|rule| assert!(is_sound(rule, format), "{name}: {rule:?}"));
        check_placeholders(format.summary, format.fields);
    }
}

/// Returns the bytes of a field of a data packet. Switches fill the lists there: hosts send them
/// empty.
fn host_bytes(form: FieldEncoding) -> usize {
    match form {
        FieldEncoding::List { .. } => 1,
        other => other.bytes(),
    }
}

/// Returns true if `rule` applies to a number, and its limit is constant or an earlier field.
fn is_sound(rule: &Rule, format: &Format) -> bool {
    let place = |name: &str| {
        let is_number =
            |f: &FieldInfo| f.name == name && matches!(f.form, FieldEncoding::Number { .. });
        format.fields.iter().position(is_number)
    };
    match rule.limit {
        FieldLimit::Number(_) => place(rule.field).is_some(),
        FieldLimit::Field(other) => {
            place(other).is_some_and(|limit| place(rule.field).is_some_and(|at| limit < at))
        }
    }
}

/// Checks that each placeholder of a summary is the name of a field.
fn check_placeholders(summary: &str, fields: &[FieldInfo]) {
    let (mut depth, mut from) = (0, 0);
    for (at, byte) in summary.bytes().enumerate() {
        match byte {
            b'{' if depth == 0 => (depth, from) = (1, at + 1),
            b'{' => depth += 1,
            b'}' if depth == 1 => {
                depth = 0;
                check_placeholder(&summary[from..at], fields);
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "braces match in {summary:?}");
}

fn check_placeholder(text: &str, fields: &[FieldInfo]) {
    let end = text.find(['|', ':']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let field = fields.iter().find(|field| field.filter == name);
    let field = field.unwrap_or_else(|| panic!("{{{text}}} is no field"));
    match (rest.chars().next(), field.form) {
        (Some(':'), FieldEncoding::List { items, .. }) => check_placeholders(&rest[1..], items),
        (Some('|'), FieldEncoding::Number { .. }) => {
            assert_eq!(rest.matches('|').count(), 2, "{text}")
        }
        (None, FieldEncoding::Number { .. } | FieldEncoding::Words { .. }) => {}
        (_, form) => panic!("{{{text}}} does not fit {form:?}"),
    }
}
