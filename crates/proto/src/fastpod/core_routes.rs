//! Source routes between hosts, arbiters and core switches (§3.4).

use rampmeter_types::Packet;

use crate::fastpod::config::Fastpod;
use crate::fastpod::routes::{host, set};
use crate::fastpod::topology::Pods;
use crate::fastpod::wire::FastpodHeader;

/// Routes a cell to another pod to a core switch (§3.4).
pub(crate) fn cell_to_core(
    fastpod: &Fastpod,
    src: u16,
    core: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let (pod, core) = (&pods[usize::from(fastpod.pod_of(src))], &cores[usize::from(core)]);
    let agg = usize::from(core.agg);
    let up = pod.ports_to_agg[usize::from(host(pod, src.into()).rack)][agg];
    set(packet, &[up, pod.ports_to_core[agg][usize::from(core.index)]]);
}

/// Sets the route of a cell from a core switch to a host of a pod.
pub(crate) fn cell_from_core(fastpod: &Fastpod, core: u16, packet: &mut Packet<FastpodHeader>) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let dst = packet.dst.get();
    let pod = &pods[usize::from(fastpod.pod_of(dst as u16))];
    let to = host(pod, dst);
    let agg = usize::from(cores[usize::from(core)].agg);
    set(packet, &[pod.ports_to_rack[agg][usize::from(to.rack)], to.port]);
}

/// Routes one of a core switch straight from the aggregation switch to an arbiter of a pod.
pub(crate) fn core_rts(
    fastpod: &Fastpod,
    core: u16,
    to: u16,
    arbiter: u32,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let agg = usize::from(cores[usize::from(core)].agg);
    set(packet, &[pods[usize::from(to)].agg_ports_to_arbiter[agg][arbiter as usize]]);
}

/// Routes one to a core switch from the aggregation switch of the arbiter's pod.
pub(crate) fn core_schd(
    fastpod: &Fastpod,
    from: u16,
    core: u16,
    packet: &mut Packet<FastpodHeader>,
) {
    let Some(Pods { pods, cores }) = &fastpod.pods else { return };
    let (pod, core) = (&pods[usize::from(from)], &cores[usize::from(core)]);
    let n_racks = pod.ports_to_agg.len() as u16;
    let port = pod.ports_to_core[usize::from(core.agg)][usize::from(core.index)];
    set(packet, &[n_racks + core.agg, port]);
}
