//! Capacity of a network between racks.

use rampmeter_types::Rate;
use rampmeter_types::fabric::RegularPaths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of flows in addition to access links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreModel {
    /// Links between racks do not limit flows.
    Wide,
    /// All links between two levels of switches, as one link each way.
    Core,
}

/// The capacity between racks, and between pods, in bits per second.
///
/// Capacities are rounded up to multiples of the rate of the slowest host. So flows between hosts
/// of one rate get all of it or nothing, and capacities are never less than the network's.
#[derive(Clone, Debug)]
pub struct CoreCapacity {
    racks: Tier,
    /// Capacity between pods, with three tiers.
    pods: Option<Tier>,
}

/// Groups of hosts, and the unused capacity out of and into each.
#[derive(Clone, Debug)]
struct Tier {
    /// The group of each host.
    group_of: Vec<u16>,
    total_bps: u64,
    free_out_bps: Vec<u64>,
    free_in_bps: Vec<u64>,
}

impl CoreCapacity {
    /// Returns the core of a network with `paths`. Its links have the rate `link`, the slowest host
    /// `access`.
    pub fn new(paths: &RegularPaths, link: Rate, access: Rate) -> Self {
        let capacity = |links: u64| {
            link.as_bps()
                .saturating_mul(links)
                .checked_next_multiple_of(access.as_bps())
                .unwrap_or(u64::MAX)
        };
        let (up, above) = (u64::from(paths.tor_uplinks), u64::from(paths.agg_uplinks));
        let pod_of = |&rack: &u16| paths.pod_of[usize::from(rack)];
        let pods = || Tier::new(paths.rack_of.iter().map(pod_of).collect(), capacity(up * above));
        Self {
            racks: Tier::new(paths.rack_of.clone(), capacity(up)),
            pods: paths.pod_of.iter().any(|&pod| pod > 0).then(pods),
        }
    }

    /// No flow is served.
    pub(super) fn clear(&mut self) {
        self.racks.clear();
        self.pods.iter_mut().for_each(Tier::clear);
    }

    /// Takes capacity for a flow from host `src` to host `dst`, at most `most`. Returns the
    /// capacity taken.
    pub(super) fn take(&mut self, src: usize, dst: usize, most: u64) -> u64 {
        let racks = most.min(self.racks.free(src, dst));
        let taken = self.pods.as_ref().map_or(racks, |pods| racks.min(pods.free(src, dst)));
        self.racks.allocate(src, dst, taken);
        self.pods.iter_mut().for_each(|pods| pods.allocate(src, dst, taken));
        taken
    }
}

impl Tier {
    fn new(group_of: Vec<u16>, total_bps: u64) -> Self {
        let groups = group_of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        Self {
            group_of,
            total_bps,
            free_out_bps: vec![total_bps; groups],
            free_in_bps: vec![total_bps; groups],
        }
    }

    fn clear(&mut self) {
        self.free_out_bps.fill(self.total_bps);
        self.free_in_bps.fill(self.total_bps);
    }

    fn groups(&self, src: usize, dst: usize) -> (usize, usize) {
        (self.group_of[src].into(), self.group_of[dst].into())
    }

    fn free(&self, src: usize, dst: usize) -> u64 {
        let (from, to) = self.groups(src, dst);
        if from == to { u64::MAX } else { self.free_out_bps[from].min(self.free_in_bps[to]) }
    }

    fn allocate(&mut self, src: usize, dst: usize, bps: u64) {
        let (from, to) = self.groups(src, dst);
        if from != to {
            (self.free_out_bps[from], self.free_in_bps[to]) =
                (self.free_out_bps[from] - bps, self.free_in_bps[to] - bps);
        }
    }
}
