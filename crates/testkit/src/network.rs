//! Networks for tests, and transports configured for them.

use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::keys::PacketSizes;
use rampmeter_proto::registered::{self, Assumptions, Network, Site, SlowerLink};
use rampmeter_sim::{FabricConfig, NetworkShape, Switching, Topology, TopologySpec, topologies};
use rampmeter_types::fabric::{FabricNeeds, Forwarding, Need};
use rampmeter_types::{
    Bytes, FabricFacts, NodeId, Observation, Protocol, Purpose, Rate, RateRange, Rng, Span, Time,
};

/// Returns a leaf-spine network of hosts at 100 Gbit/s with the delays of the dcPIM study.
pub fn leaf_spine(racks: u64, hosts_per_rack: u64, spines: u64) -> Topology {
    leaf_spine_at(100.0, racks, hosts_per_rack, spines)
}

/// Returns the same at another rate; links between switches are four times as fast.
pub fn leaf_spine_at(gbps: f64, racks: u64, hosts_per_rack: u64, spines: u64) -> Topology {
    let spec = leaf_spine_of([gbps, 4.0 * gbps], racks, hosts_per_rack, spines);
    spec.build().expect("the numbers make a network")
}

/// Returns the same with rates of hosts' links and of those between switches.
pub fn leaf_spine_of(
    [access_gbps, core_gbps]: [f64; 2],
    racks: u64,
    hosts_per_rack: u64,
    spines: u64,
) -> TopologySpec {
    TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks,
        hosts_per_rack,
        spines,
        access_gbps,
        core_gbps,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    })
}

/// Returns the hosts at 100 Gbit/s around one switch, with the same delays.
pub fn star(hosts: u64) -> TopologySpec {
    TopologySpec::Star(topologies::Star {
        hosts,
        access_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    })
}

/// Returns the facts of a network for packets of 1500 and 40 bytes.
pub fn facts(topology: &Topology) -> FabricFacts {
    topology.facts(Bytes::new(1500), Bytes::new(40))
}

/// A transport on a network, with the arguments of a run.
#[derive(Debug)]
pub struct TestNetwork<T: RegisteredTransport> {
    /// The network, with the arbiters that the transport needs.
    pub topology: Topology,
    /// The default fabric, but for settings without which the transport does not work.
    pub fabric: FabricConfig,
    /// The largest difference between clocks with which the transport works.
    pub clock_skew_max: Option<Span>,
    /// Assumptions of the transport that the network may not satisfy.
    pub assumptions: Assumptions,
    /// The transport's parameters there.
    pub config: T::Config,
}

impl<T: RegisteredTransport> TestNetwork<T> {
    /// Configures a transport for a simulated network with the fabric that it prefers, as plans do.
    pub fn preferred(keys: &T::Keys, topology: Topology) -> Self {
        let segmentation = T::segmentation(keys);
        let facts = topology.facts(segmentation.payload + segmentation.header, segmentation.header);
        let needs = T::network_needs(keys, &facts, &topology);
        let place = Self::simulated(keys, topology);
        Self { fabric: preferred(&needs, place.fabric), ..place }
    }

    /// Configures a transport for a simulated network. The fabric is the default one, but for
    /// settings without which the transport does not work.
    pub fn simulated(keys: &T::Keys, topology: Topology) -> Self {
        let segmentation = T::segmentation(keys);
        let delays =
            topology.delays(segmentation.payload + segmentation.header, segmentation.header);
        let facts = delays.facts();
        let needs = T::network_needs(keys, &facts, &topology);
        let NetworkShape { switches, ratio: rate_ratio, ports, slower, rails } =
            topology.shape(&delays);
        let slower = slower.map(|number| topology.links()[number as usize]);
        let slow_link = slower.map(|link| SlowerLink {
            name: format!("{}-{}", link.a, link.b),
            rate: link.rates().slowest,
        });
        let topology = topology.with_arbiters(&needs.arbiters);
        let is_narrow = topology.bisection_share() < 1.0;
        let RateRange { slowest, fastest } = topology.arbiter_rates();
        let (racks, paths) = (topology.rack_uplinks(), topology.regular_paths());
        let fabric = fabric(&needs);
        let cut_through = match fabric.switching {
            Switching::CutThrough { header } => Some(header),
            _ => None,
        };
        let network = Network {
            switches,
            rate_ratio,
            ports,
            slow_link,
            is_narrow,
            rails,
            slowest,
            fastest,
            slot_rate: topology.slot_rate(),
            core: topology.core_rate(),
            pairs: Arc::new(topology.pairs().with_round_trips(delays.round_trips().cloned())),
            racks,
            paths,
            wiring: Arc::clone(topology.wiring()),
            cut_through,
        };
        let site =
            Site { facts, deployment: registered::Deployment::Network(network), lower: None };
        let config = T::configure(keys.clone(), &site).expect("presets fit the networks of tests");
        let (clock_skew_max, assumptions) = (needs.clock_skew_max, T::assumptions(&config, &site));
        Self { topology, fabric, clock_skew_max, assumptions, config }
    }
}

/// Arbiters that a transport needs.
pub fn n_arbiters<T: RegisteredTransport>(keys: &T::Keys, facts: &FabricFacts) -> u32 {
    T::needs(keys, facts).arbiters.len() as u32
}

/// Returns a transport configured for real hosts with such packets.
pub fn on_hosts<T: RegisteredTransport>(
    keys: &T::Keys,
    facts: &FabricFacts,
    packet: PacketSizes,
) -> T::Config {
    let deployment = registered::Deployment::Hosts(packet);
    let site = Site { facts: *facts, deployment, lower: None };
    T::configure(keys.clone(), &site).expect("presets fit the hosts of tests")
}

/// Returns true if a transport promises a time within which a message completes or fails. Then
/// messages may fail if packets are lost, and be rejected.
pub fn promises_bound<T: RegisteredTransport>(config: &Arc<T::Config>) -> bool {
    let rng = Rng::new(0, 0, Purpose::Endpoint);
    let host = T::Host::new(Arc::clone(config), NodeId::new(0), rng, Time::ZERO);
    host.latency_bound().is_some()
}

/// Returns the facts of a network of real hosts at `mbps`, on which a round trip takes `rtt`.
pub fn host_facts(n_hosts: u32, mbps: u64, rtt: Span) -> FabricFacts {
    let access_rate = Rate::from_bps(mbps * 1_000_000).expect("links have a rate");
    let mtu = access_rate.tx_time(Bytes::new(1_500));
    FabricFacts {
        n_hosts,
        access_rate,
        core_rate: None,
        data_rtt: rtt + mtu * 4,
        control_rtt: rtt,
        abort_timeout_min: Span::ZERO,
    }
}

/// Returns a fabric as a transport prefers it; `default` if it has no preference.
fn preferred(needs: &FabricNeeds, default: FabricConfig) -> FabricConfig {
    fn or<T: Copy>(need: Need<T>, default: T) -> T {
        match need {
            Need::Require(value) | Need::Prefer(value) => value,
            Need::Any => default,
        }
    }

    FabricConfig {
        buffer: or(needs.buffer, default.buffer),
        overflow: or(needs.overflow, default.overflow),
        spray: or(needs.spray, default.spray),
        interface: or(needs.interface, default.interface),
        express_max: or(needs.express_max, default.express_max),
        mark_above: or(needs.ecn, default.mark_above),
        marking_ports: or(needs.ecn_ports, default.marking_ports),
        buffer_cell: or(needs.buffer_cell, default.buffer_cell),
        ..default
    }
}

/// Returns the default fabric, with the requirements of a transport.
fn fabric(needs: &FabricNeeds) -> FabricConfig {
    fn only<T: Copy>(need: Need<T>, default: T) -> T {
        match need {
            Need::Require(needed) => needed,
            Need::Any | Need::Prefer(_) => default,
        }
    }

    let default = FabricConfig::default();
    FabricConfig {
        buffer: match (needs.trim, needs.buffer) {
            // Ports that trim, with room for all packets of a test, would trim none.
            (Some(_), Need::Prefer(preferred)) => preferred,
            (_, needed) => only(needed, default.buffer),
        },
        overflow: only(needs.overflow, default.overflow),
        spray: only(needs.spray, default.spray),
        interface: only(needs.interface, default.interface),
        switching: match needs.switching {
            Need::Require(Forwarding::CutThrough) => {
                Switching::CutThrough { header: Bytes::new(64) }
            }
            _ => default.switching,
        },
        express_max: only(needs.express_max, default.express_max),
        mark_above: only(needs.ecn, default.mark_above),
        trim: needs.trim.unwrap_or(default.trim),
        // Without drops of this kind the recovery from them would not be tested.
        drop_unscheduled_above: match needs.drop_unscheduled {
            Need::Prefer(needed) | Need::Require(needed) => needed,
            Need::Any => default.drop_unscheduled_above,
        },
        ..default
    }
}
