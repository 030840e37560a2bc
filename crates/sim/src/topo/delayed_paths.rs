//! Equally short paths between the same hosts that take different times, and the longest paths.

use std::collections::BTreeMap;

use rampmeter_types::{Bytes, Span};

use super::{Paths, Topology};

/// Times of the shortest paths from one host to another, without load and one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayedPath {
    /// The hosts.
    pub ends: (u32, u32),
    /// Time of the fastest path.
    pub min: Span,
    /// Time of the slowest path.
    pub max: Span,
    /// Links of the slowest path that take at least half as long as its slowest link.
    pub links: Vec<u32>,
}

impl Topology {
    /// Returns the hosts that are farthest from each other, for packets of `bytes`.
    pub fn farthest(&self, bytes: Bytes) -> Option<DelayedPath> {
        self.most_delayed(bytes, |_, most| most.as_ps() as f64)
    }

    /// Returns the hosts whose equally short paths differ most in delay, for packets of `bytes`.
    /// Returns `None` if all paths between any two hosts have the same delay.
    pub fn delayed_path(&self, bytes: Bytes) -> Option<DelayedPath> {
        if self.has_equal_ways() && self.has_equal_interfaces() {
            return None;
        }
        let ratio = |least: Span, most: Span| most.as_ps() as f64 / least.as_ps().max(1) as f64;
        self.most_delayed(bytes, ratio).filter(|path| path.max > path.min)
    }

    /// Returns the hosts for whose shortest and longest times `key` is highest.
    fn most_delayed(&self, bytes: Bytes, key: impl Fn(Span, Span) -> f64) -> Option<DelayedPath> {
        let kinds = self.kinds_of_hosts();
        let paths = Paths::new(self.clone());
        let mut found: Option<(f64, DelayedPath)> = None;
        for to in &kinds {
            let mut times = PathTimes { paths: &paths, bytes, of_switch: BTreeMap::new() };
            // Of a kind with one host there is no pair, and two hosts of a kind have equal paths.
            for from in &kinds {
                let Some(&src) = from.first() else { continue };
                let Some(&dst) = to.iter().find(|&&dst| dst != src) else { continue };
                if dst != to[0] {
                    times.of_switch.clear();
                }
                let Some((min, max)) = times.of_host(src, dst) else { continue };
                let value = key(min, max);
                let is_first = |ends: (u32, u32)| (src, dst) < ends;
                if found.as_ref().is_none_or(|(best, path)| {
                    value > *best || (value == *best && is_first(path.ends))
                }) {
                    let links = times.slowest_links(src, dst);
                    found = Some((value, DelayedPath { ends: (src, dst), min, max, links }));
                }
                if dst != to[0] {
                    times.of_switch.clear();
                }
            }
        }
        found.map(|(_, path)| path)
    }
}

/// Times of packets to one host.
struct PathTimes<'a> {
    paths: &'a Paths,
    bytes: Bytes,
    /// Shortest and longest time from each switch on.
    of_switch: BTreeMap<u32, (Span, Span)>,
}

impl PathTimes<'_> {
    /// Returns the times from a host; `None` if there is no path.
    fn of_host(&mut self, src: u32, dst: u32) -> Option<(Span, Span)> {
        let ports = self.paths.ports_of_host(src, dst);
        self.by(&ports, dst)
    }

    /// Returns the times by ports.
    fn by(&mut self, ports: &[u32], dst: u32) -> Option<(Span, Span)> {
        let mut times: Option<(Span, Span)> = None;
        for &port in ports {
            let own = self.paths.time(port, self.bytes);
            let (least, most) = match self.paths.switch_of(port) {
                Some(switch) => self.from(switch, dst)?,
                None => (Span::ZERO, Span::ZERO),
            };
            let (least, most) = (own + least, own + most);
            times = Some(times.map_or((least, most), |(a, b)| (a.min(least), b.max(most))));
        }
        times
    }

    fn from(&mut self, switch: u32, dst: u32) -> Option<(Span, Span)> {
        if let Some(&known) = self.of_switch.get(&switch) {
            return Some(known);
        }
        let ports = self.paths.ports_of_switch(switch, dst);
        let times = self.by(&ports, dst)?;
        self.of_switch.insert(switch, times);
        Some(times)
    }

    /// Returns the slowest links of the slowest path, in its order.
    fn slowest_links(&mut self, src: u32, dst: u32) -> Vec<u32> {
        let mut ports = self.paths.ports_of_host(src, dst);
        let mut links: Vec<(Span, u32)> = Vec::new();
        loop {
            let mut most: Option<(Span, u32)> = None;
            for &port in &ports {
                let Some((_, time)) = self.by(&[port], dst) else { continue };
                if most.is_none_or(|(longest, _)| time > longest) {
                    most = Some((time, port));
                }
            }
            let Some((_, port)) = most else { break };
            links.push((self.paths.time(port, self.bytes), self.paths.link_of(port)));
            let Some(switch) = self.paths.switch_of(port) else { break };
            ports = self.paths.ports_of_switch(switch, dst);
        }
        let longest = links.iter().map(|(time, _)| *time).max().unwrap_or(Span::ZERO);
        links.into_iter().filter(|(time, _)| *time * 2 >= longest).map(|(_, link)| link).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::TopologySpec;

    /// Two leaves with a host each, and two spines whose links have 0.5 us and `far` ns.
    fn spines(far: f64) -> Topology {
        let link = |a: &str, b: &str, ns: f64| {
            format!("{{ between = ['{a}', '{b}'], gbps = 100.0, propagation-ns = {ns:?} }}")
        };
        let links = [
            link("h0", "s0", 500.0),
            link("h1", "s1", 500.0),
            link("s0", "s2", 500.0),
            link("s1", "s2", 500.0),
            link("s0", "s3", far),
            link("s1", "s3", 500.0),
        ];
        let text =
            format!("kind = 'links'\nhosts = 2\nswitches = 4\nlinks = [{}]", links.join(", "));
        toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
    }

    #[test]
    fn the_link_that_delays_a_path_is_found() {
        let far = spines(50_000.0);
        let found = far.delayed_path(Bytes::new(64)).unwrap();
        assert_eq!((found.links.as_slice(), found.ends), (&[4][..], (0, 1)));
        let (least, most) = (found.min.as_us_f64(), found.max.as_us_f64());
        assert!((most - least - 49.5).abs() < 1e-6, "{found:?}");
        assert_eq!(far.farthest(Bytes::new(64)).unwrap().links, [4]);
        assert_eq!(spines(500.0).delayed_path(Bytes::new(64)), None);
    }
}
