//! cosy's lemma 3.3: streams of one packet every K packet times wait at most i (K - 1) packet times
//! at the i-th switch. Each link has at most K streams. Some streams wait as long (its figure 13).

use std::sync::Arc;

use crate::common::{Blast, Segmentation};
use rampmeter_sim::*;
use rampmeter_types::{Bytes, NodeId, Span, Time};

const PAYLOAD: Bytes = Bytes::new(1_460);
/// Time of a packet on a link.
const TICK: Span = Span::from_ns(120);
const INSTANT: Span = Span::from_ps(100);

/// K trees, each with a switch M at the second hop. Under M are K leaves with K hosts each. The K
/// streams that pass from one leaf to M start together, and one of them continues alone. Its first
/// packet is delayed by K - 1 packet times, and its second not at all. Of these K streams of M,
/// again one continues alone. The remaining K streams meet at one host.
struct Trees {
    k: u32,
    hosts: u32,
    switches: u32,
    links: Vec<(String, String)>,
    packets: Vec<Arrival>,
}

impl Trees {
    fn new(k: u32) -> Self {
        let links = Vec::new();
        let mut trees = Self { k, hosts: 0, switches: 0, links, packets: Vec::new() };
        let last = trees.switch();
        let target = trees.host(last);
        for _ in 0..k {
            let second = trees.switch();
            trees.link(second, last);
            // The streams that share the second hop are sent to other hosts of the last switch.
            for _ in 1..k {
                let aside = trees.host(last);
                trees.leaf(second, aside, 2);
            }
            trees.leaf(second, target, 4);
        }
        trees
    }

    /// A leaf under `above`: one stream of `n` packets to `target`, and K - 1 of one packet to
    /// hosts elsewhere. They start together but for an instant, by which longer ones start later.
    fn leaf(&mut self, above: u32, target: u32, n: u64) {
        let (leaf, elsewhere) = (self.switch(), self.switch());
        self.link(leaf, above);
        self.link(above, elsewhere);
        for _ in 1..self.k {
            let (src, dst) = (self.host(leaf), self.host(elsewhere));
            self.packet(Time::ZERO, src, dst);
        }
        let src = self.host(leaf);
        for i in 0..n {
            let at = Time::ZERO + TICK * (i * u64::from(self.k)) + INSTANT * n;
            self.packet(at, src, target);
        }
    }

    fn packet(&mut self, at: Time, src: u32, dst: u32) {
        self.packets.push(Arrival::new(at, NodeId::new(src), NodeId::new(dst), PAYLOAD));
    }

    fn switch(&mut self) -> u32 {
        self.switches += 1;
        self.switches - 1
    }

    fn host(&mut self, switch: u32) -> u32 {
        self.links.push((format!("h{}", self.hosts), format!("s{switch}")));
        self.hosts += 1;
        self.hosts - 1
    }

    fn link(&mut self, below: u32, above: u32) {
        self.links.push((format!("s{below}"), format!("s{above}")));
    }
}

#[derive(Default)]
struct Times(Vec<FlowRecord>);

impl Probe for Times {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

#[test]
fn the_third_switch_makes_a_packet_wait_for_three_times_k_less_1_others() {
    for k in 2..=5 {
        let Trees { hosts, switches, links, mut packets, .. } = Trees::new(k);
        packets.sort_by_key(|packet| packet.at);
        let between = |(a, b)| LinkSpec {
            between: [a, b],
            gbps: 100.0,
            gbps_back: None,
            propagation_ns: 200.0,
        };
        let topology = TopologySpec::Links(topologies::Links {
            hosts: hosts.into(),
            switches: switches.into(),
            links: links.into_iter().map(between).collect(),
            switch_ns: 450.0,
            host_ns: 450.0,
            hosts_forward: false,
        });
        let spec = SimSpec {
            topology: topology.build().unwrap(),
            fabric: FabricConfig::default(),
            faults: FaultSpec::default(),
            clocks: ClockSpec::default(),
            seed: 1,
            drain: Span::from_us(1_000_000),
            sample: None,
            paranoid: true,
        };
        let mut times = Times::default();
        let cut = Arc::new(Segmentation::default());
        let mut sim = Sim::<Blast, _, _>::new(spec, cut, packets.into_iter(), &mut times);
        assert_eq!(sim.run(u64::MAX), Status::Finished);
        let queue_max = sim.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max();
        drop(sim);
        // Four links and three switches; the last packets wait at the last switch only.
        let lone = (TICK + Span::from_ns(200)) * 4 + Span::from_ns(450) * 4;
        let wait = |r: &FlowRecord| r.delivered.unwrap() - r.arrival - lone;
        let longest = times.0.iter().filter(|r| r.dst.get() == 0).map(wait).max().unwrap();
        let bound = TICK * (3 * (u64::from(k) - 1));
        assert!(longest <= bound && longest + INSTANT * 4 >= bound, "K = {k}: {longest}");
        // The packet that has been sent to its last bit still counts at that moment.
        let packets = queue_max.unwrap() / 1_500;
        assert!((3 * (u64::from(k) - 1)..=3 * u64::from(k - 1) + 1).contains(&packets));
    }
}
