//! Rates between pairs of hosts.

use std::collections::BTreeMap;

use rampmeter_types::{HostLink, Pairs};

use super::port_wiring::{PortWiring, SwitchGraph};
use super::{Node, Topology, distances};

impl Topology {
    /// Returns the rates between hosts by the links that routing uses.
    pub fn pairs(&self) -> Pairs {
        let mut links = vec![Vec::new(); self.n_hosts() as usize];
        for (host, link) in self.access() {
            let (Node::Switch(switch) | Node::Host(switch) | Node::Arbiter(switch)) = link.b;
            let (tx_rate, rx_rate) = (link.rate_to(link.b), link.rate_from(link.b));
            links[host as usize].push(HostLink { switch, tx_rate, rx_rate });
        }
        if links.iter().all(|links| links.len() == 1) {
            return Pairs::new(links, None, None);
        }
        let parts = self.parts();
        let mut used = links.iter().flatten().map(|link| parts[link.switch as usize]);
        let first = used.next();
        let is_one = used.all(|part| Some(part) == first);
        let distances = (!self.uses_all_links(&links)).then(|| self.distances());
        Pairs::new(links, (!is_one).then_some(parts), distances)
    }

    /// Returns true if all links of any host are equally near to any other host.
    fn uses_all_links(&self, links: &[Vec<HostLink>]) -> bool {
        let mut sources: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (src, dst) in self.distinct_pairs(&self.kinds_of_hosts()) {
            sources.entry(dst).or_default().push(src);
        }
        let graph = SwitchGraph::new(&PortWiring::new(self), &|_| true);
        let switches = |host: u32| links[host as usize].iter().map(|link| link.switch);
        let mut hops = Vec::new();
        sources.into_iter().all(|(dst, sources)| {
            graph.distances(&switches(dst).collect::<Vec<_>>(), &mut hops);
            let are_equal = |src: u32| {
                let mut all = switches(src).map(|switch| hops[switch as usize]);
                let first = all.next();
                all.all(|hops| Some(hops) == first)
            };
            sources.into_iter().all(are_equal)
        })
    }

    /// Returns the hops between switches, by number; `u16::MAX` if there is no path.
    fn distances(&self) -> Vec<Vec<u16>> {
        let mut of_switch = vec![Vec::new(); self.n_switches() as usize];
        for (number, link) in (0..).zip(self.links()) {
            if let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) {
                of_switch[a as usize].push((number, link.b));
                of_switch[b as usize].push((number, link.a));
            }
        }
        let from = |switch: u32| {
            let hops = distances(&of_switch, &[switch], &|_| true);
            hops.into_iter().map(|hops| u16::try_from(hops).unwrap_or(u16::MAX)).collect()
        };
        (0..self.n_switches()).map(from).collect()
    }
}
