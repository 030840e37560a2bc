//! Creation of an idle fabric.

use rampmeter_types::fabric::MarkingPorts;
use rampmeter_types::{Header, Purpose, Rate, Rng, SwitchFacts, SwitchProgram, Time};

use super::border::PartitionBoundary;
use super::by_port::Marking;
use super::collide::Occupancy;
use super::config::Scheduling;
use super::discipline::{self, FairIndex};
use super::fault::Faults;
use super::ingress::Ingress;
use super::pfc::Pfc;
use super::port::{Port, Queues};
use super::watch::PortEventLog;
use super::{
    Fabric, FabricConfig, FabricStats, FaultSpec, Interface, Routes, TierStats, stats, uplink,
};
use crate::engine::PacketPool;
use crate::engine::event::PORTS_END;
use crate::topo::{Node, Topology};

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the idle fabric of `topology`, whose switches run the programs that `hop` creates.
    /// Random choices are drawn from streams of `seed`.
    pub fn new(
        topology: Topology,
        config: FabricConfig,
        faults: FaultSpec,
        seed: u64,
        hop: impl Fn(SwitchFacts) -> P,
    ) -> Self {
        let routes = topology.routes().clone();
        let n_ports = routes.n_ports();
        assert!(n_ports < PORTS_END, "a fabric of {n_ports} ports");
        let (n_stations, n_switches) = (topology.n_stations(), topology.n_switches());
        let (tiers, tier_of) = stats::tiers(&topology, &routes);
        let trims = discipline::trims(P::QUEUEING);
        let table = PortTable::new(&topology, &routes, &config, &tiers, &tier_of, trims);
        let PortTable { mut ports, rates, marking } = table;
        let first_ports = first_ports(&ports, routes.n_interfaces(), n_switches);
        let stream = |purpose| move |node: u32| Rng::new(seed, u64::from(node), purpose);
        let (spray, coin) = (stream(Purpose::Spray), stream(Purpose::Trim));
        let next_path = (0..n_stations).map(|h| spray(h).bits() as u16).collect();
        let digits = stats::path_digits(&topology, &routes);
        let faults = Faults::new(faults, &topology, &routes, seed);
        for (port, faulty) in ports.iter_mut().zip(faults.faulty_ports(&routes)) {
            port.is_irregular = faulty;
        }
        let by_ingress = P::COUNTS_INGRESS || config.counts_ingress || config.pfc.is_some();
        let needs_opposite = P::HANDLES_FORWARD || by_ingress;
        let opposite = if needs_opposite { routes.peer_ports(&topology) } else { Vec::new() };
        let has_ramp = marking.iter().any(Marking::has_ramp);
        let mut fabric = Self {
            queues: vec![Queues::EMPTY; ports.len()],
            programs: Vec::new(),
            timers: if P::HAS_TIMERS { vec![Time::NEVER; n_switches as usize] } else { Vec::new() },
            opposite,
            ingress: Ingress::new(by_ingress, n_ports),
            pfc: Pfc::disabled(),
            occupancy: Occupancy::new(&config, n_ports),
            used_bytes: vec![0; n_switches as usize + 1],
            spray: (0..n_switches).map(|s| spray(n_stations + s)).collect(),
            coins: (0..n_switches).filter(|_| discipline::trims(P::QUEUEING)).map(coin).collect(),
            fair: match config.scheduling {
                Scheduling::Fifo => FairIndex::default(),
                Scheduling::Fair => FairIndex::new(ports.len()),
            },
            stats: FabricStats::new(tiers, config.is_memoryless()),
            pool: PacketPool::new(),
            border: PartitionBoundary::NONE,
            express_max: config.express(),
            mark_coins: (0..=n_switches).filter(|_| has_ramp).map(stream(Purpose::Mark)).collect(),
            marking,
            drop_unscheduled_above: config.drop_above(),
            config,
            n_stations,
            n_interfaces: routes.n_interfaces(),
            first_ports,
            ports,
            rates,
            rails: topology.rails().into_iter().max().unwrap_or(1) as u16,
            topology,
            routes,
            planes: None,
            digits,
            next_path,
            loads: vec![uplink::Load::default(); n_ports],
            faults,
            watch: PortEventLog::new(),
        };
        fabric.start_pfc();
        fabric.programs = (0..n_switches).map(|s| hop(fabric.switch_facts(s, seed))).collect();
        fabric
    }
}

/// The ports of a fabric by number, with the rates of their links.
#[derive(Debug)]
struct PortTable {
    ports: Vec<Port>,
    rates: Vec<Rate>,
    /// Distinct thresholds of marks.
    marking: Vec<Marking>,
}

impl PortTable {
    /// Creates the ports of all nodes, whose tiers are `tier_of` by number. Switches trim packets
    /// if `trims`.
    fn new(
        topology: &Topology,
        routes: &Routes,
        config: &FabricConfig,
        tiers: &[TierStats],
        tier_of: &[u8],
        trims: bool,
    ) -> Self {
        let (n_ports, n_switches) = (routes.n_ports(), topology.n_switches());
        let n_stations = topology.n_stations();
        // If nothing may wait, arbiters with several links send at once or not at all.
        let arbiters_wait = !(config.is_memoryless() && topology.has_several_links());
        let may_wait = |port: u32| arbiters_wait || routes.owner(port) < topology.n_hosts();
        let mut ports = Vec::with_capacity(n_ports);
        let mut rates = Vec::with_capacity(n_ports);
        let mut marking = Vec::new();
        for (number, &tier) in tier_of.iter().enumerate() {
            let (link, to) = routes.end(number as u32);
            let link = topology.links()[link as usize];
            let (from, rate) = (if link.a == to { link.b } else { link.a }, link.rate_to(to));
            let switch = if let Node::Switch(s) = from { s } else { n_switches };
            let delay = link.propagation + topology.latency(to);
            let to = match to {
                Node::Switch(s) => n_stations + s,
                end => topology.station(end).expect("what is no switch is an end"),
            };
            let is_pulling = config.interface == Interface::Pull && switch == n_switches;
            let queues_anyway = is_pulling && may_wait(number as u32);
            let name = tiers[usize::from(tier)].name.as_str();
            // Interfaces do not trim, and the data memory of switches that do is a few packets.
            let is_trimming_host =
                trims && switch == n_switches && config.buffer_by_port.get(name, rate).is_none();
            let has_room = queues_anyway || is_trimming_host;
            let buffer = if has_room { u32::MAX } else { config.port_buffer(name, rate) };
            let mut port = Port::new(rate, delay, to, switch, tier, buffer, config.buffer_cell);
            let is_core = to >= n_stations && switch < n_switches;
            let marks = config.marking_ports == MarkingPorts::All || is_core;
            let of_port = config.marking(name, rate);
            port.marking = if marks { of_port } else { Marking::NEVER }.place(&mut marking);
            ports.push(port);
            rates.push(rate);
        }
        Self { ports, rates, marking }
    }
}
/// Returns the first port of each switch, and last the number of ports.
fn first_ports(ports: &[Port], n_interfaces: u32, n_switches: u32) -> Vec<u32> {
    let of_switches = &ports[n_interfaces as usize..];
    let first = |switch| of_switches.partition_point(|port| port.switch < switch) as u32;
    (0..=n_switches).map(|switch| n_interfaces + first(switch)).collect()
}
