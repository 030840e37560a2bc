//! The paths between racks, as far as an arbiter must know them.

use rampmeter_core::fabric::RegularPaths;

use super::allocate::Allocation;
use super::colour::colour;

fn n_pods(plan: &RegularPaths) -> usize {
    plan.pod_of.iter().max().map_or(0, |&p| usize::from(p) + 1)
}

/// The path number of each allocation of one slot, in their order: packets that leave or enter
/// a rack are spread evenly over its links, and so are those of pods (§4).
pub fn choose(plan: &RegularPaths, allocations: &[Allocation]) -> Vec<u16> {
    let rack = |host: u16| plan.rack_of[usize::from(host)];
    let mut paths = vec![0; allocations.len()];
    let mut between = Vec::new();
    let mut edges = Vec::new();
    for (idx, a) in allocations.iter().enumerate() {
        let edge = (rack(a.src), rack(a.dst));
        if edge.0 != edge.1 {
            between.push(idx);
            edges.push(edge);
        }
    }
    let (colours, _) = colour(plan.pod_of.len(), &edges);
    for (&idx, &colour) in between.iter().zip(&colours) {
        paths[idx] = colour % plan.tor_up;
    }
    if plan.agg_up > 1 {
        choose_cores(plan, &between, &edges, &mut paths);
    }
    paths
}

/// The second choice, of those between pods that share a switch number in theirs.
fn choose_cores(plan: &RegularPaths, between: &[usize], edges: &[(u16, u16)], paths: &mut [u16]) {
    let pod = |rack: u16| plan.pod_of[usize::from(rack)];
    for up in 0..plan.tor_up {
        let mut chosen = Vec::new();
        let mut pods = Vec::new();
        for (&idx, &(src, dst)) in between.iter().zip(edges) {
            if paths[idx] == up && pod(src) != pod(dst) {
                chosen.push(idx);
                pods.push((pod(src), pod(dst)));
            }
        }
        let (colours, _) = colour(n_pods(plan), &pods);
        for (&idx, &colour) in chosen.iter().zip(&colours) {
            paths[idx] = up + plan.tor_up * (colour % plan.agg_up);
        }
    }
}
