//! Topologies as plans write them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::{MAX_NODES, Wires, check_count};
use super::forward::expand;
use super::{Link, Node, Topology, TopologyError};
use rampmeter_core::{Rate, Span};

/// A topology in a plan. Rates are in Gbit/s and delays in nanoseconds; the defaults of rates and
/// delays are those of the dcPIM paper (table 1), where 450 ns of processing are charged at hosts
/// as at switches.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TopologySpec {
    /// Two tiers: every rack's switch is joined to every spine.
    #[serde(rename_all = "kebab-case")]
    LeafSpine {
        /// Racks, 1 or more.
        #[schemars(range(min = 1, max = 65536))]
        racks: u64,
        /// Hosts in each rack, 1 or more.
        #[schemars(range(min = 1, max = 65536))]
        hosts_per_rack: u64,
        /// Spine switches, 1 or more.
        #[schemars(range(min = 1, max = 65536))]
        spines: u64,
        /// Leaf switches of a rack, to each of which every host of it has a link.
        #[schemars(range(min = 1, max = 64))]
        #[serde(default = "one")]
        rails: u64,
        /// Rate of host links.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        access_gbps: f64,
        /// Rate of links between switches. Oversubscription is hosts_per_rack x access over
        /// spines x core.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "core")]
        core_gbps: f64,
        /// Propagation of every link.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "propagation")]
        propagation_ns: f64,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
    },
    /// Three tiers of k-port switches, k^2/4 hosts in each pod.
    #[serde(rename_all = "kebab-case")]
    FatTree {
        /// Ports a switch, even, 2 or more.
        #[schemars(range(min = 2, max = 64))]
        k: u64,
        /// Pods, 2 to k; k if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pods: Option<u64>,
        /// Rate of host links.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        access_gbps: f64,
        /// Rate of links between switches.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        core_gbps: f64,
        /// Propagation of every link.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "propagation")]
        propagation_ns: f64,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
    },
    /// All hosts at one switch.
    #[serde(rename_all = "kebab-case")]
    Star {
        /// Hosts, 2 or more.
        #[schemars(range(min = 2, max = 65536))]
        hosts: u64,
        /// Rate of host links.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        access_gbps: f64,
        /// Propagation of every link.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "propagation")]
        propagation_ns: f64,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
    },
    /// Two switches with hosts and one link between them.
    #[serde(rename_all = "kebab-case")]
    Dumbbell {
        /// Hosts on each side, 1 or more.
        #[schemars(range(min = 1, max = 32768))]
        hosts_per_side: u64,
        /// Rate of host links.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        access_gbps: f64,
        /// Rate of the link in the middle.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        core_gbps: f64,
        /// Propagation of every link.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "propagation")]
        propagation_ns: f64,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
    },
    /// A pod of a fat-tree of k-port switches: k/2 racks of k/2 hosts, and k/2 switches above.
    #[serde(rename_all = "kebab-case")]
    Pod {
        /// Ports a switch, even, 4 to 32.
        #[schemars(range(min = 2, max = 64))]
        k: u64,
        /// Rate of all links.
        #[schemars(range(min = 1e-6, max = 1e5))]
        #[serde(default = "access")]
        gbps: f64,
        /// Propagation of every link; of hosts' and arbiters' the least.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "propagation")]
        propagation_ns: f64,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
        /// By how much the propagation of hosts' and arbiters' links is longer at most.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default)]
        cable_spread_ns: f64,
    },
    /// Any graph: hosts `h0`, `h1`, ... and switches `s0`, `s1`, ... joined by `links`.
    #[serde(rename_all = "kebab-case")]
    Links {
        /// Hosts, 2 or more.
        #[schemars(range(min = 2, max = 65536))]
        hosts: u64,
        /// Switches, 1 or more, or 0 if hosts forward.
        #[schemars(range(min = 0, max = 65536))]
        switches: u64,
        /// The links.
        links: Vec<LinkSpec>,
        /// Processing in every switch.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        switch_ns: f64,
        /// Processing in every host.
        #[schemars(range(min = 0.0, max = 1e9))]
        #[serde(default = "processing")]
        host_ns: f64,
        /// Hosts with several links, or with a link to a host, forward packets for others.
        #[serde(default, skip_serializing_if = "is_false")]
        hosts_forward: bool,
    },
    /// A file with a table of kind `links`, relative to the plan.
    #[serde(rename_all = "kebab-case")]
    File {
        /// The file.
        file: String,
        /// Hosts with several links, or with a link to a host, forward packets for others.
        #[serde(default, skip_serializing_if = "is_false")]
        hosts_forward: bool,
    },
}

/// One link of a topology file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkSpec {
    /// Its two ends, such as `["h0", "s0"]`.
    pub between: [String; 2],
    /// Its rate in Gbit/s.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub gbps: f64,
    /// Its rate in Gbit/s from the second end to the first; `gbps` if left out.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_back: Option<f64>,
    /// Its propagation in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "propagation")]
    pub propagation_ns: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn one() -> u64 {
    1
}

fn access() -> f64 {
    100.0
}

fn core() -> f64 {
    400.0
}

fn propagation() -> f64 {
    200.0
}

fn processing() -> f64 {
    450.0
}

impl TopologySpec {
    /// Checks the numbers and builds the topology.
    ///
    /// # Errors A count, rate or delay is out of range. The graph is not connected. A host has no
    /// link, or one that does not lead to a switch. The topology is a [`TopologySpec::File`], which
    /// the caller must read first.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        match *self {
            Self::LeafSpine { racks, hosts_per_rack, spines, rails, core_gbps, .. } => {
                let racks = check_count("racks", racks, 1, "1 to 65536")?;
                let per_rack = check_count("hosts-per-rack", hosts_per_rack, 1, "1 to 65536")?;
                let spines = check_count("spines", spines, 1, "1 to 65536")?;
                let hosts = u64::from(racks) * u64::from(per_rack);
                check_count("racks x hosts-per-rack", hosts, 2, "2 to 65536")?;
                if !(1..=64).contains(&rails) {
                    let (what, expected) = ("rails", "1 to 64");
                    return Err(TopologyError::Count { what, expected, got: rails });
                }
                check_count("racks x rails", u64::from(racks) * rails, 1, "1 to 65536")?;
                let racks = (racks, rails as u32);
                Topology::leaf_spine(racks, per_rack, spines, &self.wires(core_gbps)?)
            }
            Self::FatTree { k, pods, core_gbps, .. } => {
                if !(2..=64).contains(&k) || !k.is_multiple_of(2) {
                    let expected = "an even number from 2 to 64";
                    return Err(TopologyError::Count { what: "k", expected, got: k });
                }
                let pods = pods.unwrap_or(k);
                if !(2..=k).contains(&pods) {
                    let expected = "2 to k";
                    return Err(TopologyError::Count { what: "pods", expected, got: pods });
                }
                Topology::fat_tree(k as u32, pods as u32, &self.wires(core_gbps)?)
            }
            Self::Star { hosts, access_gbps, .. } => {
                let hosts = check_count("hosts", hosts, 2, "2 to 65536")?;
                Topology::star(hosts, &self.wires(access_gbps)?)
            }
            Self::Dumbbell { hosts_per_side, core_gbps, .. } => {
                let side = check_count("hosts-per-side", hosts_per_side, 1, "1 to 32768")?;
                check_count("hosts", u64::from(side) * 2, 2, "2 to 65536")?;
                Topology::dumbbell(side, &self.wires(core_gbps)?)
            }
            Self::Pod { k, gbps, cable_spread_ns, .. } => {
                if !(4..=32).contains(&k) || !k.is_multiple_of(2) {
                    let expected = "an even number from 4 to 32";
                    return Err(TopologyError::Count { what: "k", expected, got: k });
                }
                rate("gbps", gbps)?;
                let spread = delay("cable-spread-ns", cable_spread_ns)?;
                Topology::new_pod(k as u32, spread, &self.wires(gbps)?)
            }
            Self::Links { hosts, switches, links: ref specs, hosts_forward, .. } => {
                let hosts = check_count("hosts", hosts, 2, "2 to 65536")?;
                // Without switches an error names the first host with a link to another.
                let switches = check_count("switches", switches, 0, "0 to 65536")?;
                let wires = self.wires(access())?;
                let parse = |(i, spec): (usize, &LinkSpec)| spec.parse(i, hosts, switches);
                let mut links: Vec<Link> =
                    specs.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
                if !hosts_forward {
                    check_directions(specs, &links)?;
                    return Topology::check(hosts, switches, links, &wires);
                }
                let all = expand(hosts, switches, &mut links);
                check_count("switches and hosts that forward", all.into(), 1, "1 to 65536")?;
                Topology::check(hosts, all, links, &wires)
            }
            Self::File { ref file, .. } => Err(TopologyError::BadEnd {
                link: 0,
                expected: "a topology whose file has been read".into(),
                got: file.clone(),
            }),
        }
    }

    fn wires(&self, core_gbps: f64) -> Result<Wires, TopologyError> {
        let (access_gbps, propagation_ns, switch_ns, host_ns) = match *self {
            Self::LeafSpine { access_gbps, propagation_ns, switch_ns, host_ns, .. }
            | Self::FatTree { access_gbps, propagation_ns, switch_ns, host_ns, .. }
            | Self::Star { access_gbps, propagation_ns, switch_ns, host_ns, .. }
            | Self::Dumbbell { access_gbps, propagation_ns, switch_ns, host_ns, .. } => {
                (access_gbps, propagation_ns, switch_ns, host_ns)
            }
            Self::Pod { gbps, propagation_ns, switch_ns, host_ns, .. } => {
                (gbps, propagation_ns, switch_ns, host_ns)
            }
            Self::Links { switch_ns, host_ns, .. } => (access(), propagation(), switch_ns, host_ns),
            Self::File { .. } => (access(), propagation(), processing(), processing()),
        };
        Ok(Wires {
            access: rate("access-gbps", access_gbps)?,
            core: rate("core-gbps", core_gbps)?,
            propagation: delay("propagation-ns", propagation_ns)?,
            switch_latency: delay("switch-ns", switch_ns)?,
            host_latency: delay("host-ns", host_ns)?,
        })
    }
}

/// Checks that no link of a host is listed from both of its ends, as readers of directed graphs
/// write them.
fn check_directions(specs: &[LinkSpec], links: &[Link]) -> Result<(), TopologyError> {
    let mut first_ends = BTreeMap::new();
    for (link, (spec, &Link { a, b, .. })) in specs.iter().zip(links).enumerate() {
        if !matches!((a, b), (Node::Host(_), Node::Switch(_))) {
            continue;
        }
        let is_from_host = spec.between[0].starts_with('h');
        if *first_ends.entry((a, b)).or_insert(is_from_host) != is_from_host {
            let (from, to) = if is_from_host { (a, b) } else { (b, a) };
            return Err(TopologyError::TwoDirections { link, from, to });
        }
    }
    Ok(())
}

impl LinkSpec {
    fn parse(&self, link: usize, hosts: u32, switches: u32) -> Result<Link, TopologyError> {
        let end = |name: &str| {
            let number = |rest: &str, n: u32| rest.parse::<u32>().ok().filter(|&i| i < n);
            let host = name.strip_prefix('h').and_then(|r| number(r, hosts)).map(Node::Host);
            let switch = || name.strip_prefix('s').and_then(|r| number(r, switches));
            host.or_else(|| switch().map(Node::Switch)).ok_or_else(|| TopologyError::BadEnd {
                link,
                expected: match switches.checked_sub(1) {
                    Some(last) => format!("h0 to h{} or s0 to s{last}", hosts - 1),
                    None => format!("h0 to h{}", hosts - 1),
                },
                got: name.to_owned(),
            })
        };
        let (a, b) = (end(&self.between[0])?, end(&self.between[1])?);
        let there = rate("gbps", self.gbps)?;
        let back = self.gbps_back.map_or(Ok(there), |gbps| rate("gbps-back", gbps))?;
        let propagation = delay("propagation-ns", self.propagation_ns)?;
        // A host is the first end, so that readers of the link list find access links easily.
        Ok(Link { a, b, rate: there, back, propagation }.ordered())
    }
}

/// Gbit/s to a rate; integer bits per second.
fn rate(what: &'static str, gbps: f64) -> Result<Rate, TopologyError> {
    let bps = (gbps * 1e9).round();
    let valid = (1e3..=1e14).contains(&bps);
    valid.then(|| Rate::from_bps(bps as u64)).flatten().ok_or_else(|| TopologyError::Number {
        what,
        expected: "a rate from 0.000001 to 100000 Gbit/s",
        got: gbps.to_string(),
    })
}

/// Nanoseconds to a span; whole picoseconds.
fn delay(what: &'static str, ns: f64) -> Result<Span, TopologyError> {
    if !(0.0..=1e9).contains(&ns) {
        let expected = "a delay from 0 to 1000000000 ns";
        return Err(TopologyError::Number { what, expected, got: ns.to_string() });
    }
    Ok(Span::from_ps((ns * 1e3).round() as u64))
}

const _: () = assert!(MAX_NODES <= u32::MAX as u64);
