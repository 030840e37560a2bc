//! Controllers: their links, and their state after a crash.

use super::*;

const N_HOSTS: u32 = 6;

/// Two kinds of controllers: the first calls every host at the start, the second only listens.
#[derive(Debug)]
struct Controller {
    number: u32,
    node: NodeId,
    to_call: Vec<NodeId>,
    received: Vec<NodeId>,
}

impl Protocol for Controller {
    type Header = BlastHeader;
    type Config = Segmentation;

    fn new(_config: Arc<Segmentation>, node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self { number: u32::MAX, node, to_call: Vec::new(), received: Vec::new() }
    }

    fn submit(&mut self, _now: Time, _message: Message) {}

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, _now: Time, packet: &Packet<BlastHeader>) -> Receipt {
        self.received.push(packet.src);
        Receipt::Control
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<BlastHeader>> {
        self.to_call.pop().map(|dst| Packet {
            header: BlastHeader::Data { packets: 0 },
            payload: PayloadRef::default(),
            src: self.node,
            dst,
            wire_bytes: 64,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        })
    }

    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Observation for Controller {}

impl HostPolicy for Controller {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<BlastHeader>) -> bool {
        false
    }

    fn is_duplicate(&mut self, _packet: &Packet<BlastHeader>) -> bool {
        true
    }

    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {}
}

struct ControlledTransport;

impl Transport for ControlledTransport {
    const NAME: &'static str = "controlled";
    type Config = Segmentation;
    type Header = BlastHeader;
    type Host = BlastHost;
    type Arbiter = Controller;
    type SwitchProgram = ForwardOnly;

    fn arbiter(
        config: Arc<Segmentation>,
        number: u32,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> Controller {
        let hosts = (0..N_HOSTS).map(NodeId::new);
        let to_call = if number == 0 { hosts.collect() } else { Vec::new() };
        Controller { number, to_call, ..Controller::new(config, node, rng, now) }
    }

    fn switch_program(_config: &Arc<Segmentation>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

fn link(switch: u32) -> ArbiterLink {
    ArbiterLink { switch, rate: Rate::from_gbps(40), propagation: Span::from_ns(300) }
}

/// Three racks of two hosts; the first arbiter is at every rack, the second at a spine.
fn spec() -> SimSpec {
    let topology = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 3,
        hosts_per_rack: 2,
        spines: 2,
        access_gbps: 100.0,
        core_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    });
    let topology = topology.build().unwrap();
    let topology = topology.with_arbiter_at(&[0, 1, 2].map(link)).with_arbiter(link(3));
    SimSpec { topology, ..super::spec(2) }
}

fn run(spec: SimSpec) -> TestSim<ControlledTransport> {
    // The messages stay within their rack.
    super::run(spec, Segmentation::default(), vec![to_first(0, 1, 1), to_first(50_000, 1, 1)])
}

fn bytes(sim: &TestSim<ControlledTransport>, tier: &str) -> u64 {
    sim.fabric().tier_stats().iter().find(|t| t.name == tier).unwrap().bytes
}

#[test]
fn each_packet_uses_the_nearest_arbiter_link_in_both_directions() {
    let sim = run(spec());
    assert_eq!((sim.arbiter(0).number, sim.arbiter(1).number), (0, 1));
    let mut received = sim.arbiter(0).received.clone();
    received.sort_unstable();
    assert!(received.into_iter().eq((0..N_HOSTS).map(NodeId::new)));
    assert!(sim.arbiter(1).received.is_empty());
    // No packet took a spine.
    assert_eq!((bytes(&sim, "tor-up"), bytes(&sim, "spine-down")), (0, 0));
    assert_eq!(bytes(&sim, "arbiter-up"), 64 * u64::from(N_HOSTS));
    assert_eq!(bytes(&sim, "arbiter-down"), 40 * u64::from(N_HOSTS));
}

#[test]
fn a_link_that_fails_is_replaced_by_the_next_nearest() {
    let mut spec = spec();
    // Links 0 to 5 are the hosts', 6 to 11 the spines', 12 to 14 the first arbiter's.
    let (from, until) = (Time::from_ps(1), Time::NEVER);
    spec.faults.outages.push(Outage { target: Target::Link(12), from, until });
    let sim = run(spec);
    // The calls were sent before; the answers of the first rack take a spine.
    assert_eq!(sim.arbiter(0).received.len(), 4 + 2 - lost(&sim));
    assert_eq!(bytes(&sim, "tor-up"), 40 * (2 - lost(&sim) as u64));
}

/// Returns the hosts of the first rack that were not called, because the link failed first.
fn lost(sim: &TestSim<ControlledTransport>) -> usize {
    (0..2).filter(|&host| sim.endpoint(host).beats == 0).count()
}

#[test]
fn a_restarted_arbiter_keeps_its_number_and_loses_its_state() {
    let mut spec = spec();
    let (from, until) = (Time::from_ps(20_000_000), Time::from_ps(25_000_000));
    spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
    let sim = run(spec);
    assert_eq!((sim.arbiter(0).number, sim.arbiter(0).received.len()), (0, 6));
    assert!((0..N_HOSTS).all(|host| sim.endpoint(host).beats == 2));
}
