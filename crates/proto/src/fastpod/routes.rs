//! The ways of packets through pods: the sender names every port (§3.2). Other networks route by
//! themselves.

use rampmeter_core::fabric::{Pod, PodHost, Pods, SourceRoute};
use rampmeter_core::packet::Marks;
use rampmeter_core::{MsgId, NodeId, Packet, PayloadRef, Priority};

use super::config::Fastpod;
use super::wire::FastpodHeader;

/// Returns the pod with this number, where there are pods.
#[inline]
fn pod(fastpod: &Fastpod, number: u16) -> Option<&Pod> {
    fastpod.pods.as_ref().map(|pods| &pods.pods[usize::from(number)])
}

/// The number of an end among the hosts of a pod.
#[inline]
fn host(pod: &Pod, node: u32) -> &PodHost {
    &pod.hosts[(node - pod.first_host) as usize]
}

/// Aggregation switches to choose from.
#[inline]
pub(super) fn aggs(fastpod: &Fastpod) -> usize {
    pod(fastpod, 0).map_or(1, |pod| pod.to_rack.len())
}

/// Creates a control packet to an end.
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

/// Routes a cell to a host of the pod by an aggregation switch, within a rack too (§5).
#[inline]
pub(super) fn cell(fastpod: &Fastpod, src: u16, agg: u8, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = pod(fastpod, fastpod.pod_of(src)) else { return };
    let (from, to) = (host(pod, src.into()), host(pod, packet.dst.get()));
    let agg = usize::from(agg);
    let up = pod.to_agg[usize::from(from.rack)][agg];
    let down = pod.to_rack[agg][usize::from(to.rack)];
    set(packet, &[up, down, to.port]);
}

/// Routes a cell to another pod to a core switch (§3.4).
pub(super) fn cell_to_core(
    fastpod: &Fastpod,
    src: u16,
    core: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let (pod, core) = (&pods[usize::from(fastpod.pod_of(src))], &cores[usize::from(core)]);
    let agg = usize::from(core.agg);
    let up = pod.to_agg[usize::from(host(pod, src.into()).rack)][agg];
    set(packet, &[up, pod.to_core[agg][usize::from(core.place)]]);
}

/// From a core switch to a host of a pod.
pub(super) fn cell_from_core(fastpod: &Fastpod, core: u16, packet: &mut Packet<FastpodHeader>) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let dst = packet.dst.get();
    let pod = &pods[usize::from(fastpod.pod_of(dst as u16))];
    let to = host(pod, dst);
    let agg = usize::from(cores[usize::from(core)].agg);
    set(packet, &[pod.to_rack[agg][usize::from(to.rack)], to.port]);
}

/// Routes an RTS straight from the rack to the arbiter.
pub(super) fn rts(fastpod: &Fastpod, src: u16, arbiter: u32, packet: &mut Packet<FastpodHeader>) {
    let Some(pod) = pod(fastpod, fastpod.pod_of(src)) else { return };
    let rack = host(pod, src.into()).rack;
    set(packet, &[pod.to_arbiter[usize::from(rack)][arbiter as usize]]);
}

/// Routes one of a core switch straight from the aggregation switch to an arbiter of a pod.
pub(super) fn core_rts(
    fastpod: &Fastpod,
    core: u16,
    (to, arbiter): (u16, u32),
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let agg = usize::from(cores[usize::from(core)].agg);
    set(packet, &[pods[usize::from(to)].agg_to_arbiter[agg][arbiter as usize]]);
}

/// Routes an SCHD from the receiver's rack to it. Arbiters name the link to the rack before.
pub(super) fn schd(fastpod: &Fastpod, packet: &mut Packet<FastpodHeader>) {
    let dst = packet.dst.get();
    let Some(pod) = pod(fastpod, fastpod.pod_of(dst as u16)) else { return };
    let to = host(pod, dst);
    set(packet, &[to.rack, to.port]);
}

/// Routes one to a core switch from the aggregation switch of the arbiter's pod.
pub(super) fn core_schd(
    fastpod: &Fastpod,
    from: u16,
    core: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let (pod, core) = (&pods[usize::from(from)], &cores[usize::from(core)]);
    let n_racks = pod.to_agg.len() as u16;
    let port = pod.to_core[usize::from(core.agg)][usize::from(core.place)];
    set(packet, &[n_racks + core.agg, port]);
}

/// Arbiters of a pod talk by the switches of its racks.
pub(super) fn watchdog(
    fastpod: &Fastpod,
    (of, arbiter): (u16, u32),
    rack: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(pod) = pod(fastpod, of) else { return };
    set(packet, &[rack, pod.to_arbiter[usize::from(rack)][arbiter as usize]]);
}
