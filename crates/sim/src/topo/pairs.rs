//! Rates between pairs of hosts.

use rampmeter_core::{HostLink, Pairs};

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
        Pairs::new(links, || self.distances())
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
