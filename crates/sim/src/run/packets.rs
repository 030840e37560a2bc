//! Packets at interfaces: observations of probes, and checks of paranoid runs.

use rampmeter_types::{Header, NodeId, Packet, Receipt, Time};

use crate::ledger::Ledger;
use crate::probe::{Direction, InterfacePacket, Probe};

/// Shows the probe a packet, if it wants to see packets.
#[inline]
pub(super) fn observe<P: Probe, H: Header>(
    probe: &mut P,
    ledger: &Ledger,
    now: Time,
    station: u32,
    direction: Direction,
    packet: &Packet<H>,
) {
    if P::PACKETS && probe.wants_packets() {
        let message = ledger.size(packet.payload.msg);
        let end = NodeId::new(station);
        probe.on_packet(&InterfacePacket { now, end, direction, packet, message });
    }
}

/// Callback that reports a packet that departs from `station` to the probe.
#[inline]
pub(super) fn departure_callback<P: Probe, H: Header>(
    probe: &mut P,
    ledger: &Ledger,
    now: Time,
    station: u32,
) -> impl FnOnce(&Packet<H>) {
    move |packet| observe(probe, ledger, now, station, Direction::Sent, packet)
}

/// Paranoid mode: the receipt of a packet agrees with the endpoint's answer before.
pub(super) fn check_receipt<H: Header>(packet: &Packet<H>, is_duplicate: bool, receipt: Receipt) {
    match receipt {
        Receipt::Fresh => assert!(!is_duplicate, "fresh, and has arrived: {packet:?}"),
        Receipt::Duplicate => assert!(is_duplicate, "a duplicate has not arrived: {packet:?}"),
        Receipt::Control | Receipt::Ignored => {}
    }
}

/// Paranoid mode: the encoded packet decodes to the packet of the endpoint.
pub(super) fn check_codec<H: Header>(packet: &Packet<H>) {
    let mut bytes = [0; 256];
    let header = &packet.header;
    let written = header.encode(&mut bytes).expect("headers are shorter than 256 bytes");
    assert_eq!(written, header.wire_len(), "wire_len of {header:?}");
    let (decoded, read) = H::decode(&bytes[..written]).expect("an encoded header decodes");
    assert_eq!((decoded, read), (*header, written), "codec round trip");
}
