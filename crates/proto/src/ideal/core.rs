//! What a network carries between racks.

use rampmeter_core::Rate;
use rampmeter_core::fabric::RegularPaths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What limits flows besides access links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Nothing: any number of flows fits between racks.
    Wide,
    /// All links between two levels of switches, as one link each way.
    Core,
}

/// The flows that fit between racks, and between pods, at the rate of access links.
///
/// Capacities are rounded up to whole flows, so that they are never less than the network's.
#[derive(Clone, Debug)]
pub struct Core {
    racks: Tier,
    /// With three tiers.
    pods: Option<Tier>,
}

/// Groups of hosts, and the flows that fit out of and into each.
#[derive(Clone, Debug)]
struct Tier {
    /// The group of each host.
    group_of: Vec<u16>,
    whole: u32,
    out_of: Vec<u32>,
    into: Vec<u32>,
}

impl Core {
    /// The core of a network with `paths` whose links have the rate `link`, for hosts with `access`.
    pub fn new(paths: &RegularPaths, link: Rate, access: Rate) -> Self {
        let flows = |links: u64| {
            let capacity = u128::from(link.as_bps()) * u128::from(links);
            u32::try_from(capacity.div_ceil(access.as_bps().into())).unwrap_or(u32::MAX)
        };
        let (up, above) = (u64::from(paths.tor_up), u64::from(paths.agg_up));
        let pod_of = |&rack: &u16| paths.pod_of[usize::from(rack)];
        let pods = || Tier::new(paths.rack_of.iter().map(pod_of).collect(), flows(up * above));
        Self {
            racks: Tier::new(paths.rack_of.clone(), flows(up)),
            pods: paths.pod_of.iter().any(|&pod| pod > 0).then(pods),
        }
    }

    /// No flow is served.
    pub(super) fn clear(&mut self) {
        self.racks.clear();
        self.pods.iter_mut().for_each(Tier::clear);
    }

    /// Takes room for a flow from host `src` to host `dst`. False if there is none.
    pub(super) fn take(&mut self, src: usize, dst: usize) -> bool {
        let fits = |tier: &Tier| tier.fits(src, dst);
        let has_room = fits(&self.racks) && self.pods.as_ref().is_none_or(fits);
        if has_room {
            self.racks.take(src, dst);
            self.pods.iter_mut().for_each(|pods| pods.take(src, dst));
        }
        has_room
    }
}

impl Tier {
    fn new(group_of: Vec<u16>, whole: u32) -> Self {
        let groups = group_of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        Self { group_of, whole, out_of: vec![whole; groups], into: vec![whole; groups] }
    }

    fn clear(&mut self) {
        self.out_of.fill(self.whole);
        self.into.fill(self.whole);
    }

    fn groups(&self, src: usize, dst: usize) -> (usize, usize) {
        (self.group_of[src].into(), self.group_of[dst].into())
    }

    fn fits(&self, src: usize, dst: usize) -> bool {
        let (from, to) = self.groups(src, dst);
        from == to || self.out_of[from] > 0 && self.into[to] > 0
    }

    fn take(&mut self, src: usize, dst: usize) {
        let (from, to) = self.groups(src, dst);
        if from != to {
            (self.out_of[from], self.into[to]) = (self.out_of[from] - 1, self.into[to] - 1);
        }
    }
}
