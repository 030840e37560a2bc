//! The packets of every transport: encoded packets decode, decoded ones encode, and nothing panics.

use proptest::prelude::*;
use rampmeter_proto::{Builtin, formats};
use rampmeter_types::{Purpose, Rng};

proptest! {
    #[test]
    fn packets_return_from_the_wire_and_impossible_ones_are_refused(seed in any::<u64>()) {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        for wire in formats::<Builtin>() {
            wire.check_packets(&mut || rng.bits());
        }
    }

    #[test]
    fn any_bytes_decode_or_are_refused_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 1..128),
    ) {
        for wire in formats::<Builtin>() {
            wire.check_bytes(&bytes);
            for format in wire.formats {
                let mut typed = bytes.clone();
                typed[0] = format.code;
                wire.check_bytes(&typed);
            }
        }
    }
}

#[test]
fn an_empty_packet_has_no_header() {
    formats::<Builtin>().iter().for_each(|wire| wire.check_bytes(&[]));
}

/// Fastpass's lists take a second line.
#[test]
fn a_packet_fills_one_cache_line() {
    for wire in formats::<Builtin>() {
        // Lists do not fit a line: slots, and ranges that have arrived.
        let has_list = ["fastpass", "tcp", "dctcp", "pias", "capton", "hyline", "fastpod", "hpcc"]
            .contains(&wire.name);
        let lines = if has_list { 2 } else { 1 };
        assert!(wire.packet_bytes <= 64 * lines, "{}: {} bytes", wire.name, wire.packet_bytes);
    }
}

#[test]
fn every_transport_has_its_own_number_and_name() {
    let wires = formats::<Builtin>();
    assert!(wires.is_sorted_by(|a, b| a.id.0 < b.id.0));
    for (at, wire) in wires.iter().enumerate() {
        assert!(wires[..at].iter().all(|other| other.name != wire.name));
    }
}
