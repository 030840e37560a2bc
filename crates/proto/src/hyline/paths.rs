//! The links of a network one by one, and the paths of flows over them.
//!
//! A path is a number, as in [`RegularPaths`]. In two tiers it is the core switch, in three the
//! switch above the rack and the core switch above that.

use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{DuplexRates, NodeId, Rate};

/// Links of a path at most: three up and three down.
const LINKS_MAX: usize = 6;

/// Hosts, racks, pods, and the links between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The rates at which each host sends and receives.
    hosts: Vec<DuplexRates>,
    /// The rate of a link between switches.
    core: Rate,
    /// `None` if paths are not known. The core is then taken for as wide as it needs to be.
    plan: Option<RegularPaths>,
}

/// The links that a flow takes, as indices: access links first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    links: [u32; LINKS_MAX],
    len: u8,
}

impl Links {
    /// Returns all links.
    pub fn all(&self) -> &[u32] {
        &self.links[..usize::from(self.len)]
    }

    /// Returns the access link of the source and that of the destination.
    pub fn access(&self) -> &[u32] {
        &self.all()[..2]
    }

    /// Returns the other links; none within a rack.
    pub fn core(&self) -> &[u32] {
        &self.all()[2..]
    }

    fn push_pair(&mut self, up: u32, down: u32) {
        let len = usize::from(self.len);
        self.links[len] = 2 * up;
        self.links[len + 1] = 2 * down + 1;
        self.len += 2;
    }
}

impl Paths {
    /// Returns a network of hosts that send and receive at these rates and whose switches are
    /// joined by links of the rate `core`.
    pub fn new(hosts: Vec<DuplexRates>, core: Rate, plan: Option<RegularPaths>) -> Self {
        Self { hosts, core, plan }
    }

    /// Returns the number of hosts.
    pub fn n_hosts(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Returns the number of links; those up have even numbers, those down the odd number that
    /// follows.
    pub fn n_links(&self) -> usize {
        let pairs = self.n_hosts()
            + self.plan.as_ref().map_or(0, |plan| {
                let racks = plan.pod_of.len() as u32;
                let pods = plan.pod_of.iter().max().map_or(0, |&pod| u32::from(pod) + 1);
                (racks + pods * u32::from(plan.agg_uplinks)) * u32::from(plan.tor_uplinks)
            });
        2 * pairs as usize
    }

    /// Returns the capacity of a link.
    pub fn capacity(&self, link: u32) -> Rate {
        match self.hosts.get(link as usize / 2) {
            Some(rates) if link.is_multiple_of(2) => rates.tx,
            Some(rates) => rates.rx,
            None => self.core,
        }
    }

    /// Returns the rate of a flow over some links: that of the slowest one.
    pub fn rate(&self, links: &Links) -> Rate {
        let access = links.access().iter().map(|&link| self.capacity(link)).min();
        let access = access.expect("a flow has two access links");
        if links.core().is_empty() { access } else { access.min(self.core) }
    }

    /// Returns the paths between two hosts, from 0 on; zero if there is no choice.
    pub fn count(&self, src: NodeId, dst: NodeId) -> u16 {
        let Some(plan) = &self.plan else { return 0 };
        let (up, down) = (plan.rack_of[src.idx()], plan.rack_of[dst.idx()]);
        let pod = |rack: u16| plan.pod_of[usize::from(rack)];
        match (up == down, pod(up) == pod(down)) {
            (true, _) => 0,
            (false, true) => plan.tor_uplinks,
            (false, false) => plan.tor_uplinks * plan.agg_uplinks,
        }
    }

    /// Returns the links between two hosts by a path; access links alone if there is none.
    pub fn links(&self, src: NodeId, dst: NodeId, path: Option<u16>) -> Links {
        let mut links = Links { links: [0; LINKS_MAX], len: 0 };
        links.push_pair(src.get(), dst.get());
        let (Some(plan), Some(path)) = (&self.plan, path) else { return links };
        let (tor_up, agg_up) = (u32::from(plan.tor_uplinks), u32::from(plan.agg_uplinks));
        let (agg, core) = (u32::from(path) % tor_up, u32::from(path) / tor_up % agg_up);
        let (up, down) = (plan.rack_of[src.idx()], plan.rack_of[dst.idx()]);
        let of_rack = |rack: u16| self.n_hosts() + u32::from(rack) * tor_up + agg;
        links.push_pair(of_rack(up), of_rack(down));
        let pod = |rack: u16| u32::from(plan.pod_of[usize::from(rack)]);
        if pod(up) != pod(down) {
            let first = self.n_hosts() + plan.pod_of.len() as u32 * tor_up;
            let of_pod = |pod: u32| first + (pod * tor_up + agg) * agg_up + core;
            links.push_pair(of_pod(pod(up)), of_pod(pod(down)));
        }
        links
    }
}
