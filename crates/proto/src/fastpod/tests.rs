//! Tests of a whole pod.

mod failing;
mod model;
mod numbers;
mod packing;
mod pod;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_types::{Purpose, Rng, Span, Time};

use super::{Fastpod, FastpodConfig, FastpodStats, MessageOrder};
use pod::{CABLE, HEADER, HOST, RATE, Run, SWITCH, fastpod, pod};

use crate::fastpod::topology::Pod;
use crate::keys::PacketSizes;

const ONE_MS: Time = Time::from_ps(1_000_000_000);

fn us(n: u64) -> Time {
    Time::ZERO + Span::from_us(n)
}

fn config() -> FastpodConfig {
    FastpodConfig::paper()
}

/// Returns a pod of `racks` racks of `per_rack` hosts, all cables alike.
fn alike(config: FastpodConfig, racks: u16, per_rack: u16) -> Arc<Fastpod> {
    spread(config, racks, per_rack, 0, 1)
}

/// Returns the same with cables that are longer by up to `spread_ns`.
fn spread(
    config: FastpodConfig,
    racks: u16,
    per_rack: u16,
    spread_ns: u64,
    seed: u64,
) -> Arc<Fastpod> {
    let mut rng = Rng::new(seed, 0, Purpose::Test);
    let arbiters = config.arbiters as u16;
    let pod = pod(racks, per_rack, arbiters, Span::from_ns(spread_ns), &mut rng);
    fastpod(config, Some(pod), u32::from(racks * per_rack))
}

/// Random messages in the first `us` microseconds, some of them long.
fn fill(run: &mut Run, n_hosts: u32, messages: usize, us: u64, seed: u64) {
    let mut rng = Rng::new(seed, 1, Purpose::Test);
    for _ in 0..messages {
        let at = Time::from_ps(rng.uniform_below(us as usize * 1_000_000) as u64);
        let src = rng.uniform_below(n_hosts as usize) as u32;
        let dst = (src + 1 + rng.uniform_below(n_hosts as usize - 1) as u32) % n_hosts;
        let most = if rng.bernoulli(0.1) { 200_000 } else { 6_000 };
        run.submit(at, src, dst, 1 + rng.uniform_below(most) as u64);
    }
}

/// Asserts that every message arrived once and only unscheduled cells collided.
fn assert_all_fine(run: &Run) {
    assert_eq!(run.violations, []);
    let n = run.messages.len();
    assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
    assert_eq!(run.left(), 0);
    let FastpodStats { grants_expired, transmissions_missed, timeouts, resets, .. } = run.stats();
    assert_eq!((grants_expired, transmissions_missed, timeouts, resets), (0, 0, 0, 0));
    assert_eq!((run.count("links_failed"), run.count("hosts_unresponsive")), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// §3.2, §5: no collision but of unscheduled cells, for any messages and any lengths of cables.
    #[test]
    fn scheduled_and_control_packets_never_meet(
        seed in any::<u64>(),
        (racks, per_rack) in (1u16..5, 2u16..9),
        spread_ns in prop_oneof![Just(0u64), 0u64..3_000],
        optimistic in any::<bool>(),
        beacon_slots in prop_oneof![Just(1u32), Just(64)],
        fifo in any::<bool>(),
        packing in any::<bool>(),
    ) {
        let order = if fifo { MessageOrder::Fifo } else { MessageOrder::Srpt };
        let message_order = order;
        let config =
            FastpodConfig { optimistic, beacon_slots, message_order, packing, ..config() };
        let fastpod = spread(config, racks, per_rack, spread_ns, seed);
        let mut run = Run::new(&fastpod, seed);
        fill(&mut run, fastpod.n_hosts, 150, 60, seed);
        run.run(ONE_MS);
        assert_all_fine(&run);
        prop_assert!(optimistic || run.stats().cells_unscheduled == 0);
    }

    /// RTSs and SCHDs without content change nothing: their positions are fixed.
    #[test]
    fn empty_control_packets_are_optional(
        seed in any::<u64>(),
        optimistic in any::<bool>(),
    ) {
        let results = [1, 64].map(|beacon_slots| {
            let config = FastpodConfig { beacon_slots, optimistic, ..config() };
            // A pod whose slots do not depend on the interval.
            let fastpod = alike(config, 4, 4);
            let mut run = Run::new(&fastpod, seed);
            fill(&mut run, fastpod.n_hosts, 200, 80, seed);
            run.run(ONE_MS);
            assert_all_fine(&run);
            ((run.delivered, run.completed, run.dropped_unscheduled), run.controls)
        });
        let [(all, all_controls), (few, few_controls)] = results;
        prop_assert_eq!(all, few);
        prop_assert!(few_controls * 2 < all_controls);
    }

    /// §4: with guard bands clocks may drift.
    #[test]
    fn clocks_may_drift_as_far_as_guard_bands_allow(
        seed in any::<u64>(),
        beacon_slots in 1u32..100,
        packing in any::<bool>(),
    ) {
        let config = FastpodConfig { clock_ppb: 100_000, beacon_slots, packing, ..config() };
        let run = drifting(config, seed);
        assert_all_fine(&run);
    }
}

/// Returns a run with clocks that drift by up to 100 parts per million.
fn drifting(config: FastpodConfig, seed: u64) -> Run {
    let fastpod = alike(config, 4, 4);
    let mut run = Run::new(&fastpod, seed);
    let mut rng = Rng::new(seed, 2, Purpose::Test);
    for clock in &mut run.clocks {
        clock.1 = if rng.bernoulli(0.5) { 100_000 } else { -100_000 };
    }
    fill(&mut run, fastpod.n_hosts, 200, 100, seed);
    run.run(ONE_MS);
    run
}

/// A message that arrives just after the instant of a cell may still have it. The next cell waits
/// for the link, on which a fast clock gains, and is sent all the same.
#[test]
fn a_cell_that_waits_for_a_late_one_is_not_too_late() {
    let config = FastpodConfig { clock_ppb: 100_000, optimistic: false, ..config() };
    let fastpod = alike(config, 4, 4);
    let (slots, slot) = (&fastpod.slots, fastpod.slot.as_ps());
    let sent_at = Time::from_ps(slot * 100);
    let arrives_at =
        sent_at + (RATE.tx_time(HEADER) + CABLE + SWITCH) + (slots.control + CABLE + HOST);
    let decided = fastpod.timing(0).tick_after(0, i128::from(arrives_at.as_ps())).unwrap();
    // The last instant, by all clocks, at which a message may have the second cell of the slot.
    let second = Time::from_ps(slot * (decided + fastpod.lead_slots)) + slots.cell_at(1, (0, 1));
    let last = (second + fastpod.late_max).as_ps() * 10_000 / 10_001;
    let mut missed = BTreeSet::new();
    // Hosts take the delay of an SCHD for as long by their clocks.
    for at in (last - 50..last + 550).step_by(4) {
        let mut run = Run::new(&fastpod, 1);
        run.clocks.iter_mut().for_each(|clock| clock.1 = 100_000);
        run.submit(sent_at, 0, 5, 1_000);
        run.submit(Time::from_ps(at), 0, 5, 2_000);
        run.run(us(200));
        let FastpodStats { transmissions_missed, timeouts, slots_unused, .. } = run.stats();
        assert_eq!((transmissions_missed, timeouts, slots_unused), (0, 0, 0), "at {at} ps");
        missed.insert(run.delivered.values().max().copied());
    }
    // Some have it, and some do not.
    assert!(missed.len() > 1, "{missed:?}");
}

/// The same with guard bands for clocks that hardly drift: the run sees packets meet.
#[test]
fn clocks_that_drift_further_make_packets_meet() {
    let run = drifting(FastpodConfig { clock_ppb: 100, ..config() }, 1);
    assert!(!run.violations.is_empty());
}

/// §3.3: a lone cell is sent at its place in the present slot and takes four links.
#[test]
fn a_lone_message_is_not_held_up_by_the_arbiter() {
    let fastpod = alike(config(), 4, 4);
    let mut run = Run::new(&fastpod, 1);
    let slot = fastpod.slot.as_ps();
    // Host 0 of rack 0 to host 1 of rack 1, at the start of a slot: its RTS is first.
    let at = Time::from_ps(slot * 100);
    let msg = run.submit(at, 0, 5, 1_000);
    run.run(ONE_MS);
    assert_all_fine(&run);
    let leaves = at + fastpod.slots.cell_at(0, (0, 1));
    let hop = RATE.tx_time(HEADER) + CABLE + SWITCH;
    // Cell 0 of this pair is in the time of an SCHD to an idle receiver; the next follows.
    assert!(!fastpod.slots.is_clear(0, (0, 1)));
    let leaves = leaves.max(at + fastpod.slots.cell_at(1, (0, 1)));
    let arrives = leaves + hop * 3 + fastpod.slots.cell + CABLE + HOST;
    assert_eq!(run.delivered[&msg], arrives);
}

/// Without optimism a message waits for the arbiter: RTS, decision, SCHD, slot.
#[test]
fn a_scheduled_message_waits_for_its_slot() {
    let fastpod = alike(FastpodConfig { optimistic: false, ..config() }, 4, 4);
    let mut run = Run::new(&fastpod, 1);
    let slot = fastpod.slot.as_ps();
    let at = Time::from_ps(slot * 100);
    let msg = run.submit(at, 0, 5, 1_000);
    run.run(ONE_MS);
    assert_all_fine(&run);
    let arrives_at =
        at + (RATE.tx_time(HEADER) + CABLE + SWITCH) + (fastpod.slots.control + CABLE + HOST);
    let decided = fastpod.timing(0).tick_after(0, i128::from(arrives_at.as_ps())).unwrap();
    let used = decided + fastpod.lead_slots;
    let leaves = Time::from_ps(slot * used) + fastpod.slots.cell_at(0, (0, 1));
    let hop = RATE.tx_time(HEADER) + CABLE + SWITCH;
    assert_eq!(run.delivered[&msg], leaves + hop * 3 + fastpod.slots.cell + CABLE + HOST);
}

/// Two hosts that send all they can to different ones fill all slots.
#[test]
fn long_messages_fill_their_slots() {
    let fastpod = alike(FastpodConfig { optimistic: false, ..config() }, 2, 4);
    let mut run = Run::new(&fastpod, 1);
    let cells = 3_000;
    for (src, dst) in [(0, 4), (1, 5), (2, 6), (3, 7)] {
        run.submit(us(20), src, dst, 1460 * cells);
    }
    run.run(ONE_MS);
    assert_all_fine(&run);
    let last = *run.delivered.values().max().unwrap();
    let least = fastpod.slot * (cells / 3);
    assert!(last > us(20) + least && last < us(20) + least + Span::from_us(16), "{last:?}");
    assert_eq!(run.stats().slots_unused, 0);
}

/// A standby takes over without a collision, and the arbiter that returns listens.
#[test]
fn the_standby_takes_over_after_the_last_granted_slot() {
    for seed in 0..8 {
        let config = FastpodConfig { arbiters: 2, ..config() };
        let fastpod = spread(config, 4, 4, 500, seed);
        let mut run = Run::new(&fastpod, seed);
        fill(&mut run, fastpod.n_hosts, 300, 200, seed);
        run.kill(us(60 + seed), 0);
        run.restart(us(150), 0);
        run.kill(us(400), 1);
        for src in 0..16 {
            run.submit(us(390), src, (src + 5) % 16, 100_000);
        }
        run.run(Time::ZERO + Span::from_us(4_000));
        assert_eq!(run.violations, []);
        let n = run.messages.len();
        assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
        // Each of the 16 hosts has turned over twice.
        assert_eq!(run.stats().takeovers, 32);
    }
}

/// Both arbiters crash, and clocks are too old to send by: the one that returns is not notified of
/// the other's epoch.
#[test]
fn hosts_follow_an_arbiter_that_restarts() {
    for seed in 0..4 {
        let config = FastpodConfig { arbiters: 2, clock_ppb: 20_000, ..config() };
        let fastpod = alike(config, 4, 4);
        let mut run = Run::new(&fastpod, seed);
        fill(&mut run, fastpod.n_hosts, 300, 400, seed);
        run.kill(us(60 + seed), 0);
        run.kill(us(900), 1);
        run.restart(us(2_000), 0);
        for src in 0..16 {
            run.submit(us(3_000), src, (src + 5) % 16, 100_000);
        }
        run.run(Time::ZERO + Span::from_us(8_000));
        assert_eq!(run.violations, []);
        let n = run.messages.len();
        assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
        assert_eq!(run.stats().takeovers, 32);
    }
}

/// An arbiter that computes for long receives packets of hosts late, and is not cut off.
#[test]
fn an_arbiter_with_a_standby_may_compute_for_long() {
    for compute_us in [10, 100] {
        let compute = Some(Span::from_us(compute_us));
        let fastpod = alike(FastpodConfig { arbiters: 2, compute, ..config() }, 4, 4);
        let mut run = Run::new(&fastpod, 1);
        fill(&mut run, fastpod.n_hosts, 100, 500, 1);
        run.run(Time::ZERO + Span::from_us(4_000));
        let n = run.messages.len();
        assert_eq!((run.violations.len(), run.completed.len(), run.stats().takeovers), (0, n, 0));
    }
}

/// Watchdogs arrive without a collision: a standby that receives them remains a standby.
#[test]
fn a_fastpod_standby_does_not_take_over_from_an_active_arbiter() {
    let fastpod = spread(FastpodConfig { arbiters: 2, ..config() }, 4, 4, 500, 1);
    let mut run = Run::new(&fastpod, 1);
    fill(&mut run, fastpod.n_hosts, 300, 500, 1);
    run.run(ONE_MS);
    assert_all_fine(&run);
    assert_eq!(run.stats().takeovers, 0);
}

/// A single arbiter that returns listens first, for slots that it gave may not be over.
#[test]
fn a_restarted_arbiter_grants_no_slot_twice() {
    for seed in 0..8 {
        let fastpod = alike(config(), 4, 4);
        let mut run = Run::new(&fastpod, seed);
        fill(&mut run, fastpod.n_hosts, 300, 200, seed);
        run.kill(us(60), 0);
        run.restart(us(60 + seed), 0);
        run.run(Time::ZERO + Span::from_us(4_000));
        assert_eq!(run.violations, []);
        let n = run.messages.len();
        assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
        assert_eq!(run.stats().takeovers, 16);
    }
}

/// Shortest first puts off a long message for longer than receivers remember unresponsive ones:
/// some of its cells are sent all the same.
#[test]
fn a_deferred_message_is_not_forgotten() {
    let fastpod = alike(FastpodConfig { optimistic: false, ..config() }, 2, 4);
    let fastpod =
        Arc::new(Fastpod { forget_timeout: Span::from_us(80), ..Fastpod::clone(&fastpod) });
    let mut run = Run::new(&fastpod, 1);
    let long = run.submit(us(20), 0, 4, 1460 * 300);
    for n in 0..1_500 {
        run.submit(us(40) + Span::from_ns(300 * n), 0, 4, 1460 * 3);
    }
    run.run(ONE_MS);
    assert_all_fine(&run);
    assert!(run.delivered[&long] > us(500));
}

/// Messages fail if there is no arbiter.
#[test]
fn messages_fail_without_an_arbiter() {
    let fastpod = alike(FastpodConfig { attempts_max: 3, ..config() }, 2, 4);
    let mut run = Run::new(&fastpod, 1);
    run.kill(Time::ZERO, 0);
    let msg = run.submit(us(1), 0, 1, 10_000);
    run.run(Time::ZERO + Span::from_us(10_000));
    assert!(run.failed.contains(&msg) && run.left() == 0);
}

/// On other networks, which lose and delay packets, Fastpod works without routes.
#[test]
fn messages_arrive_over_networks_that_lose_packets() {
    for seed in 0..8 {
        let fastpod = fastpod(config(), None, 6);
        let mut run = Run::new(&fastpod, seed);
        run.loss = 0.05;
        fill(&mut run, 6, 100, 100, seed);
        run.run(Time::ZERO + Span::from_us(200_000));
        let n = run.messages.len();
        assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
        assert!(run.stats().timeouts > 0);
    }
}

#[test]
fn plans_that_no_arbiter_can_schedule_are_refused() {
    let facts = rampmeter_types::FabricFacts {
        n_hosts: 16,
        access_rate: RATE,
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    let mut rng = Rng::new(1, 0, Purpose::Test);
    let of = pod(4, 4, 1, Span::ZERO, &mut rng);
    let bad = |config: FastpodConfig, pod: &Pod| {
        config.derive(&facts, Some(pod.clone().into())).unwrap_err().key
    };
    let mut few = of.clone();
    few.ports_to_rack.pop();
    assert_eq!(bad(config(), &few), "name");
    assert_eq!(bad(FastpodConfig { arbiters: 2, ..config() }, &of), "arbiters");
    let packet = PacketSizes::new(80, 40);
    assert_eq!(bad(FastpodConfig { packet, ..config() }, &of), "payload-bytes");
    let drifts = FastpodConfig { clock_ppb: 1_000_000, beacon_slots: 65_536, ..config() };
    assert_eq!(bad(drifts, &of), "clock-drift-ppm");
    let padding = crate::toolkit::Padding::Exact;
    assert_eq!(bad(FastpodConfig { padding, ..config() }, &of), "padding");
    let slow = rampmeter_types::Bytes::new(46);
    assert_eq!(bad(FastpodConfig { control: slow, ..config() }, &of), "control-bytes");
}
