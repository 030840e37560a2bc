//! The ways of packets through a pod: the sender names every port (§3.2). Other networks route by
//! themselves.

use rampmeter_core::fabric::{Pod, SourceRoute};
use rampmeter_core::packet::Marks;
use rampmeter_core::{MsgId, NodeId, Packet, PayloadRef, Priority};

use super::config::Fastpod;
use super::wire::FastpodHeader;

/// Aggregation switches to choose from.
#[inline]
pub(super) fn aggs(fastpod: &Fastpod) -> usize {
    fastpod.pod.as_ref().map_or(1, |pod| pod.to_rack.len())
}

/// A control packet on its way to an end.
pub(super) fn control(
    fastpod: &Fastpod,
    src: u32,
    dst: NodeId,
    header: FastpodHeader,
) -> Packet<FastpodHeader> {
    Packet {
        header,
        payload: PayloadRef { offset: 0, msg: MsgId::new(0), len: 0 },
        src: NodeId::new(src),
        dst,
        wire_bytes: fastpod.config.control.get() as u16,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
    }
}

fn set(packet: &mut Packet<FastpodHeader>, ports: &[u16]) {
    let route = SourceRoute::new(ports).expect("ports of a pod have numbers in source routes");
    packet.path = route.path();
    packet.marks = packet.marks.with(Marks::ROUTED).with(Marks::SOURCE_ROUTED);
}

/// A cell goes by an aggregation switch, within a rack too (§5).
#[inline]
pub(super) fn cell(fastpod: &Fastpod, src: u16, agg: u8, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = &fastpod.pod else { return };
    let (from, to) = (&pod.hosts[usize::from(src)], &pod.hosts[packet.dst.idx()]);
    let agg = usize::from(agg);
    let up = pod.to_agg[usize::from(from.rack)][agg];
    let down = pod.to_rack[agg][usize::from(to.rack)];
    set(packet, &[up, down, to.port]);
}

/// An RTS goes straight from the rack to the arbiter.
pub(super) fn rts(fastpod: &Fastpod, src: u16, arbiter: u32, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = &fastpod.pod else { return };
    let rack = pod.hosts[usize::from(src)].rack;
    set(packet, &[to_arbiter(pod, rack, arbiter)]);
}

/// An SCHD goes from the receiver's rack to it.
pub(super) fn schd(fastpod: &Fastpod, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = &fastpod.pod else { return };
    set(packet, &[pod.hosts[packet.dst.idx()].port]);
}

/// Arbiters talk by the first rack's switch.
pub(super) fn watchdog(fastpod: &Fastpod, arbiter: u32, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = &fastpod.pod else { return };
    set(packet, &[to_arbiter(pod, 0, arbiter)]);
}

fn to_arbiter(pod: &Pod, rack: u16, arbiter: u32) -> u16 {
    pod.to_arbiter[usize::from(rack)][arbiter as usize]
}
