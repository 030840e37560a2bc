//! The traffic that a workload offers to each link, before anything runs.
//!
//! The first flows of the plan are spread over the links of their shortest paths, by rate. A link's
//! load is their bytes, headers included, divided by its capacity between the first and the last
//! arrival. Sizes that are drawn count with the mean of their distribution, because a sample of a
//! heavy tail is far from it. Flows that wait for others have no arrivals, so only their bytes and
//! minimum time are determined.

use std::collections::{BTreeMap, HashMap};

use rampmeter_sim::{Node, Paths, Topology, link_tiers};
use rampmeter_types::{Span, Time};
use rampmeter_workload::{Flow, Process};
use serde::Serialize;

use super::valid::ValidPlan;
use crate::traffic::ideals::Ideals;
use crate::warning::{NamedCount, Warning, warning};

/// Maximum number of flows that are examined.
const FLOWS_MAX: usize = 50_000;
/// The same for warnings, which every run makes.
const WARNING_FLOWS: usize = 5_000;
/// Standard errors by which a link's load must exceed its rate for a warning.
const ERRORS: f64 = 4.0;

/// The traffic that a workload offers.
#[derive(Clone, Debug, Serialize)]
pub struct OfferedTraffic {
    /// Flows that were examined: the first of the plan under its seed.
    pub flows: u64,
    /// Mean message size of the workload, in bytes; of these flows if it follows from no
    /// distribution.
    pub mean_bytes: f64,
    /// Time from the first arrival to the last, in seconds. None of flows that arrive together or
    /// wait for others.
    pub seconds: Option<f64>,
    /// Tiers of ports, those of hosts first.
    pub tiers: Vec<OfferedTier>,
}

/// The traffic that is offered to the links of one tier.
#[derive(Clone, Debug, Serialize)]
pub struct OfferedTier {
    /// The name of its ports, such as `tor-up`.
    pub name: String,
    /// Links in it.
    pub links: u32,
    /// Mean load of its links, as a share of their rates.
    pub load: Option<f64>,
    /// Load of the busiest link.
    pub load_max: Option<f64>,
    /// The busiest link, from end to end.
    pub busiest: String,
    /// Bytes offered to the busiest link, headers included.
    pub busiest_bytes: f64,
    /// The time that the busiest link needs for these bytes, in seconds.
    pub busiest_seconds: f64,
    /// Flows over the busiest link.
    #[serde(skip)]
    busiest_flows: f64,
}

/// Bytes and flows of one direction of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    bytes: f64,
    /// Bytes of the flows before the last arrival.
    timed_bytes: f64,
    flows: f64,
}

impl ValidPlan {
    /// Returns the traffic that the workload offers, by tier.
    pub fn offered(&self) -> OfferedTraffic {
        self.offered_by(FLOWS_MAX)
    }

    /// Returns a warning if more arrives for a link than it carries.
    pub(crate) fn overloaded(&self) -> Option<Warning> {
        if self.workload.process() == Process::Bursts {
            return None;
        }
        let offered = self.offered_by(WARNING_FLOWS);
        let excess = |tier: &OfferedTier| {
            let load = tier.load_max?;
            (load * (1.0 - ERRORS / tier.busiest_flows.sqrt()) > 1.0).then_some(load)
        };
        let tiers = offered.tiers.iter().filter_map(|tier| Some((excess(tier)?, tier)));
        let (load, tier) = tiers.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(warning!(
            "overload",
            "workload: the first {flows} {offer} the link {link} ({tier}) {factor:.2} times what \
             it carries",
            flows = NamedCount(offered.flows, "flow"),
            link = &tier.busiest,
            tier = &tier.name,
            factor = load;
            offer = if offered.flows == 1 { "offers" } else { "offer" },
        ))
    }

    /// Returns a warning if a flow ends after the run even if it has the network for itself.
    /// Workloads of more than [`WARNING_FLOWS`] flows are not judged. Of flows that wait for
    /// others, the last to start is one that no other waits for. The time of its start is not
    /// determined.
    pub(crate) fn short_drain(&self) -> Option<Warning> {
        let seed = self.plan.seed;
        let graph = self.workload.graph(seed);
        let flows: Vec<(u32, Flow)> =
            self.workload.numbered(seed).take(WARNING_FLOWS + 1).collect();
        if flows.len() > WARNING_FLOWS {
            return None;
        }
        let mut ideals = Ideals::new(&self.sim, self.segmentation);
        let mut least = |flow: Flow| (ideals.flow(flow.src, flow.dst, flow.size).delivered, flow);
        let found = match &graph {
            Some(graph) => {
                let is_last =
                    |number: u32| number >= graph.len() || graph.dependents(number).is_empty();
                let last = flows.into_iter().filter(|(number, _)| is_last(*number));
                let shortest = last.map(|(_, flow)| least(flow)).min_by_key(|&(least, _)| least);
                shortest.filter(|(least, _)| *least > self.sim.drain)
            }
            None => {
                let last = flows.iter().map(|(_, flow)| flow.arrival).max()?;
                let end = last.saturating_add(self.sim.drain);
                let all = flows.into_iter().map(|(_, flow)| least(flow));
                let late = all.filter(|(least, flow)| flow.arrival.saturating_add(*least) > end);
                late.max_by_key(|&(least, _)| least)
            }
        };
        let (least, flow) = found?;
        let [src, dst] = [flow.src, flow.dst].map(|host| self.names.node(Node::Host(host.get())));
        Some(warning!(
            "short-drain",
            "run.drain-us: {drain_s} s after the last arrival the run ends, before the flow of \
             {flow_bytes} bytes from {from} to {to}, which takes {ideal_s} s at least",
            drain_s = seconds(self.sim.drain),
            flow_bytes = flow.size.get(),
            from = src,
            to = dst,
            ideal_s = seconds(least),
        ))
    }

    fn offered_by(&self, flows_max: usize) -> OfferedTraffic {
        let has_tenants = self.workload.has_tenants();
        // A flow, and its bytes on the wire.
        let on_wire = |(number, flow): (u32, Flow)| {
            let transport = if has_tenants { flow.tenant.get() } else { number };
            let n_transports = self.segmentations.len();
            let segmentation = &self.segmentations[transport as usize % n_transports];
            (flow, segmentation.message_wire_bytes(flow.size).get() as f64)
        };
        let numbered = self.workload.numbered(self.plan.seed).take(flows_max);
        let (flows, wire): (Vec<Flow>, Vec<f64>) = numbered.map(on_wire).unzip();
        let (known, sizes) = (self.workload.mean_bytes(), self.workload.sizes());
        // Patterns with sizes in addition to the distribution have another mean.
        let drawn = known.filter(|&mean| sizes.is_some_and(|sizes| sizes.mean_bytes() == mean));
        let total: f64 = flows.iter().map(|flow| flow.size.get() as f64).sum();
        let mean_bytes = known.unwrap_or(total / flows.len().max(1) as f64);
        let arrivals = || flows.iter().map(|flow| flow.arrival);
        let (first, last) = (arrivals().min(), arrivals().max());
        let waits = self.workload.graph(self.plan.seed).is_some();
        let span = first.zip(last).filter(|(first, last)| first < last && !waits);
        let last = last.unwrap_or(Time::NEVER);
        let topology = &self.sim.topology;
        // Bytes on the wire of a message of the mean size.
        let drawn = drawn.map(|mean| mean * wire.iter().sum::<f64>() / total);
        let bytes = wire.into_iter().map(|wire| drawn.unwrap_or(wire));
        let ports = ports(topology, flows.iter().zip(bytes), last);
        let span = span.map(|(first, last)| last - first);
        let tiers = self.offered_tiers(&ports, span);
        let seconds = span.map(|span| span.as_ps() as f64 * 1e-12);
        OfferedTraffic { flows: flows.len() as u64, mean_bytes, seconds, tiers }
    }

    fn offered_tiers(&self, ports: &[[Port; 2]], span: Option<Span>) -> Vec<OfferedTier> {
        let topology = &self.sim.topology;
        let mut tiers: BTreeMap<String, (TierOrder, OfferedTier)> = BTreeMap::new();
        let links = topology.links().iter().zip(ports).zip(link_tiers(topology));
        for ((link, ports), names) in links {
            let ends = [(link.a, link.b), (link.b, link.a)];
            for ((port, name), (from, to)) in ports.iter().zip(names).zip(ends) {
                let Some(order) = tier_order(topology, from, to) else { continue };
                let bytes_per_s = link.rate_to(to).as_bps() as f64 / 8.0;
                let load =
                    span.map(|span| port.timed_bytes / bytes_per_s / (span.as_ps() as f64 * 1e-12));
                let seconds = port.bytes / bytes_per_s;
                let (_, tier) = tiers.entry(name.clone()).or_insert_with(|| {
                    let load = load.map(|_| 0.0);
                    let tier = OfferedTier {
                        name,
                        links: 0,
                        load,
                        load_max: load,
                        busiest: String::new(),
                        busiest_bytes: 0.0,
                        busiest_seconds: -1.0,
                        busiest_flows: 0.0,
                    };
                    (order, tier)
                });
                tier.links += 1;
                // A sum, until all links are added.
                tier.load = tier.load.zip(load).map(|(sum, load)| sum + load);
                let busier = match (load, tier.load_max) {
                    (Some(load), Some(most)) if span.is_some() => {
                        load > most || tier.busiest.is_empty()
                    }
                    _ => seconds > tier.busiest_seconds,
                };
                if busier {
                    tier.busiest = format!("{}>{}", self.names.node(from), self.names.node(to));
                    tier.load_max = load;
                    tier.busiest_bytes = port.bytes;
                    tier.busiest_seconds = seconds;
                    tier.busiest_flows = port.flows;
                }
            }
        }
        let mut tiers: Vec<(TierOrder, OfferedTier)> = tiers.into_values().collect();
        tiers.sort_by_key(|&(order, _)| order);
        tiers
            .into_iter()
            .map(|(_, tier)| {
                let load = tier.load.map(|sum| sum / f64::from(tier.links));
                OfferedTier { load, ..tier }
            })
            .collect()
    }
}

/// Place of a tier on a path: the way up before the way down, and the levels of the nodes that send
/// in it.
type TierOrder = (bool, i32);

/// Returns the place of the tier of a link; `None` for links of arbiters.
fn tier_order(topology: &Topology, from: Node, to: Node) -> Option<TierOrder> {
    let level = |node| match node {
        Node::Host(_) => Some(0),
        Node::Switch(switch) => Some(i32::from(topology.levels[switch as usize])),
        Node::Arbiter(_) => None,
    };
    let (from, to) = (level(from)?, level(to)?);
    let is_down = from > to;
    Some((is_down, if is_down { -from } else { from }))
}

/// Returns bytes and flows of each link: those that enter it at its first end, and at its second.
fn ports<'a>(
    topology: &Topology,
    flows: impl Iterator<Item = (&'a Flow, f64)>,
    last: Time,
) -> Vec<[Port; 2]> {
    let paths = Paths::new(topology.clone());
    // Bytes between two hosts, those before the last arrival, and flows.
    let mut between: HashMap<(u32, u32), Port> = HashMap::new();
    let mut order = Vec::new();
    for (flow, bytes) in flows {
        let pair = (flow.src.get(), flow.dst.get());
        let of = between.entry(pair).or_insert_with(|| {
            order.push(pair);
            Port::default()
        });
        of.bytes += bytes;
        of.timed_bytes += if flow.arrival < last { bytes } else { 0.0 };
        of.flows += 1.0;
    }
    let mut ports = vec![[Port::default(); 2]; topology.links().len()];
    for pair in order {
        let of = between[&pair];
        for (link, from, share) in paths.shares(pair.0, pair.1) {
            let side = usize::from(topology.links()[link as usize].a != from);
            let port: &mut Port = &mut ports[link as usize][side];
            port.bytes += share * of.bytes;
            port.timed_bytes += share * of.timed_bytes;
            port.flows += share * of.flows;
        }
    }
    ports
}

/// Nodes and links of a network, for a picture of it.
#[derive(Clone, Debug, Serialize)]
pub struct TopologyDrawing {
    /// Names of hosts.
    pub hosts: Vec<String>,
    /// Switches.
    pub switches: Vec<DrawnSwitch>,
    /// Links.
    pub links: Vec<DrawnLink>,
}

/// A switch of a picture.
#[derive(Clone, Debug, Serialize)]
pub struct DrawnSwitch {
    /// Name of the switch.
    pub name: String,
    /// Tier, from 1: links to the nearest host.
    pub tier: u32,
}

/// A link of a picture.
#[derive(Clone, Debug, Serialize)]
pub struct DrawnLink {
    /// Ends: a number below that of hosts, or that of hosts and the number of a switch.
    pub ends: [u32; 2],
    /// Rate, in Gbit/s.
    pub gbps: f64,
    /// Propagation, in nanoseconds.
    pub propagation_ns: f64,
}

impl ValidPlan {
    /// Returns nodes and links of the network, without arbiters.
    pub fn drawing(&self) -> TopologyDrawing {
        let topology = &self.sim.topology;
        let n_hosts = topology.n_hosts();
        let place = |node| match node {
            Node::Host(host) => Some(host),
            Node::Switch(switch) => Some(n_hosts + switch),
            Node::Arbiter(_) => None,
        };
        let links = topology.links().iter().filter_map(|link| {
            Some(DrawnLink {
                ends: [place(link.a)?, place(link.b)?],
                gbps: link.rates().fastest.as_bps() as f64 / 1e9,
                propagation_ns: link.propagation.as_ps() as f64 / 1e3,
            })
        });
        let switch = |switch| DrawnSwitch {
            name: self.names.node(Node::Switch(switch)),
            tier: topology.level(switch),
        };
        TopologyDrawing {
            hosts: (0..n_hosts).map(|host| self.names.node(Node::Host(host))).collect(),
            switches: (0..topology.n_switches()).map(switch).collect(),
            links: links.collect(),
        }
    }
}

/// Returns a time in seconds with at most six significant digits.
pub(crate) fn seconds(span: Span) -> f64 {
    let text = format!("{:.5e}", span.as_ps() as f64 * 1e-12);
    text.parse().expect("a number that was written")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Plan, Registry};

    fn plan(topology: &str, workload: &str) -> ValidPlan {
        let text = format!(
            "transport = {{ name = 'ideal' }}\ntopology = {{ {topology} }}\n[workload]\n{workload}"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::for_tests()).unwrap();
        plan.check("plan", Path::new(".")).unwrap()
    }

    fn loads(plan: &ValidPlan) -> Vec<(String, f64)> {
        let tiers = plan.offered().tiers;
        tiers.into_iter().map(|tier| (tier.name, tier.load.unwrap_or(-1.0))).collect()
    }

    const HALF: &str = "kind = 'leaf-spine', racks = 4, hosts-per-rack = 8, spines = 1";

    #[test]
    fn loads_of_tiers_follow_from_the_pattern() {
        let uniform = "pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.5\nflows = 50000";
        // 24 of 31 partners are in other racks, and a rack has one link of 400 Gbit/s.
        let core = 0.5 * 8.0 * 100.0 * 24.0 / 31.0 / 400.0;
        let expected =
            [("host-up", 0.5), ("tor-up", core), ("spine-down", core), ("tor-down", 0.5)];
        for more in ["", "\non-us = 100\noff-us = 300"] {
            let loads = loads(&plan(HALF, &format!("{uniform}{more}")));
            assert_eq!(loads.len(), 4);
            for ((name, load), (tier, expected)) in loads.iter().zip(expected) {
                assert_eq!(name, tier);
                assert!((load / expected - 1.0).abs() < 0.05, "{name}: {load} {expected}");
            }
        }
    }

    #[test]
    fn periodic_incasts_have_a_load_and_collectives_a_least_time() {
        let incast = "pattern = 'incast'\nfan = 4\nflow-bytes = 1000000\nperiod-us = 1000\n\
                      rounds = 10";
        let offered = plan(HALF, incast).offered();
        assert_eq!((offered.flows, offered.mean_bytes), (40, 1e6));
        assert_eq!(offered.seconds, Some(9e-3));
        let collective = "pattern = 'collective'\noperation = 'all-reduce'\nalgorithm = 'ring'\n\
                          vector-bytes = 3200000";
        let offered = plan(HALF, collective).offered();
        assert_eq!(offered.seconds, None);
        let hosts = &offered.tiers[0];
        assert_eq!((&*hosts.name, hosts.load), ("host-up", None));
        assert!(hosts.busiest_seconds > 2.0 * 31.0 / 32.0 * 3.2e6 * 8e-11);
    }

    #[test]
    fn overloads_of_every_pattern_are_warned_of() {
        let stride = "pattern = 'stride'\nstride = 8\nsizes = 'imc10'\nload = 0.8\nflows = 20000";
        let warnings = plan(HALF, stride).warnings();
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.text.contains("1.6"), "{warning:?}");
        let local = stride.replace("0.8", "0.4");
        assert!(plan(HALF, &local).warnings().is_empty());
    }
}
