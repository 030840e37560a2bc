//! The ways of packets through pods: the sender names every port (§3.2). Other networks route by
//! themselves.

use rampmeter_types::SourceRoute;
use rampmeter_types::packet::Marks;
use rampmeter_types::{MsgId, NodeId, Packet, PayloadRef, Priority};

use crate::fastpod::config::Fastpod;
use crate::fastpod::topology::{Pod, PodHost};
use crate::fastpod::wire::FastpodHeader;

/// Returns the pod with this number, if there are pods.
#[inline]
fn pod(fastpod: &Fastpod, number: u16) -> Option<&Pod> {
    fastpod.pods.as_ref().map(|pods| &pods.pods[usize::from(number)])
}

/// Returns the number of an end among the hosts of a pod.
#[inline]
pub(crate) fn host(pod: &Pod, node: u32) -> &PodHost {
    &pod.hosts[(node - pod.first_host) as usize]
}

/// Aggregation switches to choose from.
#[inline]
pub(crate) fn aggs(fastpod: &Fastpod) -> usize {
    pod(fastpod, 0).map_or(1, |pod| pod.ports_to_rack.len())
}

/// Creates a control packet to an end.
pub(crate) fn control(
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

/// Sets the ports by which switches forward a packet.
pub(crate) fn set(packet: &mut Packet<FastpodHeader>, ports: &[u16]) {
    let route = SourceRoute::new(ports).expect("ports of a pod have numbers in source routes");
    packet.path = route.path();
    packet.marks = packet.marks.union(Marks::ROUTED).union(Marks::SOURCE_ROUTED);
}

/// Routes a cell to a host of the pod by an aggregation switch, within a rack too (§5).
#[inline]
pub(crate) fn cell(fastpod: &Fastpod, src: u16, agg: u8, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = pod(fastpod, fastpod.pod_of(src)) else { return };
    let (from, to) = (host(pod, src.into()), host(pod, packet.dst.get()));
    let agg = usize::from(agg);
    let up = pod.ports_to_agg[usize::from(from.rack)][agg];
    let down = pod.ports_to_rack[agg][usize::from(to.rack)];
    set(packet, &[up, down, to.port]);
}

/// Routes an RTS straight from the rack to the arbiter.
pub(crate) fn rts(fastpod: &Fastpod, src: u16, arbiter: u32, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = pod(fastpod, fastpod.pod_of(src)) else { return };
    let rack = host(pod, src.into()).rack;
    set(packet, &[pod.ports_to_arbiter[usize::from(rack)][arbiter as usize]]);
}

/// Routes an SCHD from the receiver's rack to it. Arbiters name the link to the rack before.
pub(crate) fn schd(fastpod: &Fastpod, packet: &mut Packet<FastpodHeader>) {
    let dst = packet.dst.get();
    let Some(pod) = pod(fastpod, fastpod.pod_of(dst as u16)) else { return };
    let to = host(pod, dst);
    set(packet, &[to.rack, to.port]);
}

/// Arbiters of a pod talk by the switches of its racks.
pub(crate) fn watchdog(
    fastpod: &Fastpod,
    host: u16,
    arbiter: u32,
    rack: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(pod) = pod(fastpod, host) else { return };
    set(packet, &[rack, pod.ports_to_arbiter[usize::from(rack)][arbiter as usize]]);
}
