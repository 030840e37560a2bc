//! The paths between racks, as far as an arbiter must know them.

use super::allocate::Allocation;
use super::colour::colour;

/// A regular network of two or three tiers: every rack's switch has the same ways up, and in three
/// tiers every switch above it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// The rack of each host.
    pub rack_of: Vec<u16>,
    /// The pod of each rack: racks that share the switches above them. In two tiers all are of one.
    pub pod_of: Vec<u16>,
    /// Ways up from a rack's switch.
    pub tor_up: u16,
    /// Ways up from a switch above it; 1 in two tiers.
    pub agg_up: u16,
}

impl PathPlan {
    fn n_pods(&self) -> usize {
        self.pod_of.iter().max().map_or(0, |&p| usize::from(p) + 1)
    }

    /// The path number of each allocation of one slot, in their order: packets that leave or enter
    /// a rack are spread evenly over its links, and so are those of pods (§4).
    pub fn choose(&self, allocations: &[Allocation]) -> Vec<u16> {
        let rack = |host: u16| self.rack_of[usize::from(host)];
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
        let (colours, _) = colour(self.pod_of.len(), &edges);
        for (&idx, &colour) in between.iter().zip(&colours) {
            paths[idx] = colour % self.tor_up;
        }
        if self.agg_up > 1 {
            self.choose_cores(&between, &edges, &mut paths);
        }
        paths
    }

    /// The second choice, of those between pods that share a switch number in theirs.
    fn choose_cores(&self, between: &[usize], edges: &[(u16, u16)], paths: &mut [u16]) {
        let pod = |rack: u16| self.pod_of[usize::from(rack)];
        for up in 0..self.tor_up {
            let mut chosen = Vec::new();
            let mut pods = Vec::new();
            for (&idx, &(src, dst)) in between.iter().zip(edges) {
                if paths[idx] == up && pod(src) != pod(dst) {
                    chosen.push(idx);
                    pods.push((pod(src), pod(dst)));
                }
            }
            let (colours, _) = colour(self.n_pods(), &pods);
            for (&idx, &colour) in chosen.iter().zip(&colours) {
                paths[idx] = up + self.tor_up * (colour % self.agg_up);
            }
        }
    }
}
