//! Joins the descriptions of packets at compile time.

use super::{Format, PacketKind};

const NONE: Format = Format {
    code: 0,
    name: "",
    kind: PacketKind::Control,
    direction: "",
    docs: "",
    summary: "",
    fields: &[],
    rules: &[],
};

/// Returns the number of packets in all parts.
pub const fn count(parts: &[&[Format]]) -> usize {
    let (mut part, mut n) = (0, 0);
    while part < parts.len() {
        n += parts[part].len();
        part += 1;
    }
    n
}

/// Returns the packets of all parts, of which there are `N`.
///
/// # Panics
/// If their number is not `N`.
pub const fn join<const N: usize>(parts: &[&[Format]]) -> [Format; N] {
    let (mut all, mut part, mut n) = ([NONE; N], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[n] = parts[part][at];
            (at, n) = (at + 1, n + 1);
        }
        part += 1;
    }
    assert!(n == N, "as many packets as counted");
    all
}
