//! What the fabric does for transports: marks, hooks of switch programs, buffers, controllers.

#[allow(dead_code, reason = "other test programs use the rest")]
mod common;

use std::sync::Arc;

use common::{Blast, BlastHost, Cut};
use rampmeter_core::packet::Marks;
use rampmeter_core::{Bytes, Family, NodeId, Span, Time};
use rampmeter_sim::*;

/// A star of hosts at 100 Gbit/s, on which a full packet takes 120 ns.
fn spec(hosts: u64) -> SimSpec {
    let topology = TopologySpec::Star {
        hosts,
        access_gbps: 100.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    };
    SimSpec {
        topology: topology.build().unwrap(),
        fabric: FabricConfig::default(),
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed: 1,
        drain: Span::from_us(1_000),
        sample: Some(Span::from_us(1)),
        paranoid: true,
    }
}

/// A message to host 0 of full packets.
fn to_first(at_ns: u64, src: u32, packets: u64) -> Arrival {
    let at = Time::ZERO + Span::from_ns(at_ns);
    Arrival::new(at, NodeId::new(src), NodeId::new(0), Bytes::new(1_460 * packets))
}

type Ran<F> = Sim<F, std::vec::IntoIter<Arrival>, NoProbe>;

/// Runs to the end.
fn run<F: Family<Host = BlastHost, Config = Cut>>(
    spec: SimSpec,
    cut: Cut,
    arrivals: Vec<Arrival>,
) -> Ran<F> {
    let mut sim = Sim::<F, _, _>::new(spec, Arc::new(cut), arrivals.into_iter(), NoProbe);
    sim.run(u64::MAX);
    sim
}

mod marks {
    use super::*;

    /// One packet sets the port's beat; then two hosts send a packet each per beat, so that those
    /// of beat k find k and k + 1 packets waiting.
    fn marked(mark_above: Option<Bytes>, marks: Marks) -> u64 {
        let mut spec = spec(4);
        spec.fabric.mark_above = mark_above;
        let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
        let sim = run::<Blast>(spec, Cut { marks, ..Cut::default() }, arrivals);
        assert_eq!(sim.counters().delivered, 3);
        sim.endpoint(0).marked
    }

    #[test]
    fn packets_that_find_a_queue_above_the_threshold_are_marked() {
        let capable = Marks::ECN_CAPABLE;
        assert_eq!(marked(Some(Bytes::new(3 * 1_500)), capable), 16 + 17);
        assert_eq!(marked(Some(Bytes::new(3 * 1_500 - 1)), capable), 17 + 18);
        assert_eq!(marked(Some(Bytes::ZERO), capable), 19 + 20);
        assert_eq!(marked(None, capable), 0);
    }

    #[test]
    fn packets_of_senders_that_do_not_understand_marks_have_none() {
        assert_eq!(marked(Some(Bytes::ZERO), Marks::NONE), 0);
    }
}
