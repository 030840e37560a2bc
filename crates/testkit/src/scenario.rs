//! Runs with all kinds of faults, by seed, and the properties that they must have.

use rampmeter_sim::{Arrival, FlowRecord, LinkFault, Outage, SimSpec, Status, Target, Topology};
use rampmeter_types::{MsgId, Purpose, Rng, Span, Time};

use crate::run::{arrival, spec};

/// Messages of a scenario.
const N_MESSAGES: usize = 30;

/// A run with all kinds of faults.
#[derive(Debug)]
pub struct Scenario {
    /// Losses, outages, clocks.
    pub spec: SimSpec,
    /// The messages.
    pub arrivals: Vec<Arrival>,
    /// Host whose link fails permanently.
    pub failed_host: Option<u32>,
}

/// Returns the scenario of a seed. Packets are lost, doubled and reordered, and clocks are apart. A
/// link or a switch between two racks of three hosts fails for a while. Switches route around it at
/// once or late. `topology` is `leaf_spine(2, 3, 2)`, with or without arbiters.
pub fn scenario(topology: Topology, seed: u64) -> Scenario {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let mut spec = spec(topology, seed);
    let delay_max = Span::from_us(1 + rng.uniform_below(20) as u64);
    spec.faults.every_link = LinkFault {
        loss: rng.uniform_unit() * 0.05,
        duplicate: rng.uniform_unit() * 0.05,
        reorder: rng.uniform_unit() * 0.1,
        delay_max,
    };
    // Links 0 to 5 belong to hosts, 6 to 9 to the spines.
    let from = Time::from_ps(rng.uniform_below(300_000_000) as u64);
    let until = from + Span::from_us(1 + rng.uniform_below(500) as u64);
    let target = if rng.bernoulli(0.5) {
        Target::Link(6 + rng.uniform_below(4) as u32)
    } else {
        Target::Switch(2 + rng.uniform_below(2) as u32)
    };
    spec.faults.outages.push(Outage { target, from, until });
    let failed_host = rng.bernoulli(0.3).then(|| rng.uniform_below(6) as u32);
    if let Some(host) = failed_host {
        let (target, until) = (Target::Link(host), Time::NEVER);
        spec.faults.outages.push(Outage { target, from, until });
    }
    spec.clocks.offset_max = Span::from_ns(rng.uniform_below(2_000) as u64);
    spec.clocks.drift_ppm_max = rng.uniform_unit() * 50.0;
    let mut at = 0;
    let flow = |_| {
        at += rng.uniform_below(20_000_000) as u64;
        let src = rng.uniform_below(6) as u32;
        let dst = (src + 1 + rng.uniform_below(5) as u32) % 6;
        let size = match rng.uniform_below(3) {
            0 => 1 + rng.uniform_below(3_000),
            1 => 1 + rng.uniform_below(100_000),
            _ => 1 + rng.uniform_below(600_000),
        };
        arrival(at, src, dst, size as u64)
    };
    let arrivals = (0..N_MESSAGES).map(flow).collect();
    // From none to longer than a failure lasts.
    spec.faults.rerouting = Span::from_us(rng.uniform_below(4) as u64 * 200);
    Scenario { spec, arrivals, failed_host }
}

/// Checks the properties that a scenario's run has under any faults. Every message has one fate.
/// Without a promise it fails only if one of its ends was cut off permanently. With one it may fail
/// or be rejected, but within its bound, on a clock that drifts. The simulator itself asserts that
/// no byte and no message is delivered twice. It also asserts that delivered means every byte, and
/// that no packet is lost track of.
pub fn assert_sound((status, records): &(Status, Vec<FlowRecord>), cut: Option<u32>) {
    assert_eq!(*status, Status::Finished);
    assert_eq!(records.len(), N_MESSAGES);
    for (i, r) in records.iter().enumerate() {
        assert_eq!(r.id, MsgId::new(i as u32));
        let ends = [r.completed, r.failed, r.rejected];
        let ends: Vec<Time> = ends.into_iter().flatten().collect();
        assert_eq!(ends.len(), 1, "{r:?}");
        assert!(r.completed.is_none() || r.delivered.is_some(), "{r:?}");
        assert!(r.rejected.is_none() || r.delivered.is_none(), "{r:?}");
        if let Some(bound) = r.bound {
            let bound = bound.scale_floor(1_000_051, 1_000_000);
            assert!(ends[0] - r.arrival <= bound, "{r:?}");
        } else {
            let is_cut = [Some(r.src.get()), Some(r.dst.get())].contains(&cut) && cut.is_some();
            assert!(r.rejected.is_none() && (is_cut || r.failed.is_none()), "{r:?}");
        }
    }
}
