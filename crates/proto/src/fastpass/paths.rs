//! The paths between racks, as far as an arbiter needs them.

use rampmeter_types::fabric::RegularPaths;

use super::allocate::Allocation;
use super::colour::EdgeColourer;

/// Chooses paths, slot after slot, in buffers that it keeps.
#[derive(Debug, Default)]
pub struct Paths {
    colouring: EdgeColourer,
    /// Allocations between racks, by their places, and the racks.
    inter_rack: Vec<usize>,
    racks: Vec<(u16, u16)>,
    /// Paths of these between pods that share a switch number.
    shared: Vec<usize>,
    pods: Vec<(u16, u16)>,
}

impl Paths {
    /// Sets the path number of each allocation of one slot. Packets from a rack are spread evenly
    /// over its links, and so are packets to it, and those of pods (§4). Within a rack it is zero.
    pub fn choose(&mut self, plan: &RegularPaths, allocations: &[Allocation], paths: &mut [u16]) {
        let rack = |host: u16| plan.rack_of[usize::from(host)];
        self.inter_rack.clear();
        self.racks.clear();
        paths.fill(0);
        for (idx, a) in allocations.iter().enumerate() {
            let (src, dst) = (rack(a.src), rack(a.dst));
            if src != dst {
                self.inter_rack.push(idx);
                self.racks.push((src, dst));
            }
        }
        let (colours, _) = self.colouring.colour(plan.pod_of.len(), &self.racks);
        for (&idx, &colour) in self.inter_rack.iter().zip(colours) {
            paths[idx] = colour % plan.tor_uplinks;
        }
        if plan.agg_uplinks > 1 {
            for up in 0..plan.tor_uplinks {
                self.choose_cores(plan, up, paths);
            }
        }
    }

    /// The second choice, of those between pods that share the switch number `up` in theirs.
    fn choose_cores(&mut self, plan: &RegularPaths, up: u16, paths: &mut [u16]) {
        let pod = |rack: u16| plan.pod_of[usize::from(rack)];
        self.shared.clear();
        self.pods.clear();
        for (&idx, &(src, dst)) in self.inter_rack.iter().zip(&self.racks) {
            if paths[idx] == up && pod(src) != pod(dst) {
                self.shared.push(idx);
                self.pods.push((pod(src), pod(dst)));
            }
        }
        let n_pods = plan.pod_of.iter().max().map_or(0, |&p| usize::from(p) + 1);
        let (colours, _) = self.colouring.colour(n_pods, &self.pods);
        for (&idx, &colour) in self.shared.iter().zip(colours) {
            paths[idx] = up + plan.tor_uplinks * (colour % plan.agg_uplinks);
        }
    }
}
