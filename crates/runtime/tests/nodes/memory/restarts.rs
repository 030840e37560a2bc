//! Nodes that are killed and restarted: messages before, meanwhile and afterwards.

use rampmeter_proto::dcpim::{DcpimHost, DcpimTransport};
use rampmeter_proto::phost::{PhostHost, PhostTransport};
use rampmeter_runtime::app::Failure;
use rampmeter_runtime::{MessageCounts, Outcome};
use rampmeter_types::{Endpoint, FabricFacts, Purpose, Rng, Span, Time};

use super::{fair, foul, net};
use crate::common::*;

/// Nodes are killed and restarted at random. No message is delivered twice, not even to two
/// incarnations of its receiver. Messages reported as completed were delivered. Every message of a
/// sender that survived has an outcome.
fn lives_are_kept_apart<E: Endpoint>(protocol: impl Fn(&FabricFacts) -> E::Config, seeds: u64) {
    let mut restarts_noticed = 0;
    for seed in 0..seeds {
        let facts = net(3);
        let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, foul(0.01), seed);
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut numbers = [0; 3];
        let mut submitted = Vec::new();
        for _ in 0..60 {
            let src = rng.uniform_below(3);
            let dst = (src + 1 + rng.uniform_below(2)) % 3;
            if bed.submit(src, dst, mixed_size(&mut rng), numbers[src]) {
                let incarnation = bed.nodes[src].as_ref().unwrap().restart;
                submitted.push((src as u32, incarnation, numbers[src]));
                numbers[src] += 1;
            }
            if rng.bernoulli(0.05) {
                let node = rng.uniform_below(3);
                if bed.nodes[node].is_some() {
                    bed.kill(node);
                } else {
                    bed.start(node);
                    numbers[node] = 0;
                }
            }
            bed.run_until(bed.now + Span::from_us(rng.uniform_below(2_000) as u64));
        }
        for node in 0..3 {
            if bed.nodes[node].is_none() {
                bed.start(node);
            }
        }
        bed.run_until(bed.now + Span::from_us(60_000_000));
        for label in submitted {
            let (src, incarnation, _) = label;
            let delivered = bed.seen.delivered.get(&label).copied().unwrap_or(0);
            assert!(delivered <= 1, "seed {seed}: {label:?} was delivered {delivered} times");
            let lives_on =
                bed.nodes[src as usize].as_ref().is_some_and(|n| n.restart == incarnation);
            match bed.seen.outcomes.get(&label) {
                Some(Outcome::Completed) => {
                    assert_eq!(delivered, 1, "seed {seed}: {label:?} completed");
                }
                Some(Outcome::Failed(_)) => {}
                None => assert!(!lives_on, "seed {seed}: {label:?} has no outcome"),
            }
        }
        for node in bed.nodes.iter().flatten() {
            assert_eq!(node.node.messages(), MessageCounts::default(), "seed {seed}");
            restarts_noticed += node.node.stats().peer_restarts;
        }
    }
    assert!(restarts_noticed > seeds / 4, "{restarts_noticed} restarts in {seeds} runs");
}

#[test]
fn dcpim_distinguishes_incarnations() {
    lives_are_kept_apart::<DcpimHost>(protocol::<DcpimTransport>, 250);
}

#[test]
fn phost_distinguishes_incarnations() {
    lives_are_kept_apart::<PhostHost>(protocol::<PhostTransport>, 250);
}

/// A node is killed and restarted. Messages submitted 0.1 s later arrive, whether or not others
/// were in flight meanwhile.
fn later_messages_arrive<E: Endpoint>(protocol: impl Fn(&FabricFacts) -> E::Config) {
    for seed in 0..40 {
        let facts = net(3);
        let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, foul(0.01), seed);
        for number in 0..3 {
            assert!(bed.submit(0, 1, 20_000, number));
        }
        bed.run_until(bed.now + Span::from_us(1_000_000));
        bed.kill(1);
        bed.run_until(bed.now + Span::from_us(200_000));
        bed.start(1);
        bed.run_until(bed.now + Span::from_us(100_000));
        assert!(bed.submit(0, 1, 20_000, 3) && bed.submit(2, 1, 100, 0));
        bed.run_until(bed.now + Span::from_us(1_000_000));
        let outcomes: Vec<_> = bed.seen.outcomes.values().copied().collect();
        assert_eq!(outcomes, [Outcome::Completed; 5], "seed {seed}");
    }
}

#[test]
fn messages_after_a_restart_arrive() {
    later_messages_arrive::<DcpimHost>(protocol::<DcpimTransport>);
    later_messages_arrive::<PhostHost>(protocol::<PhostTransport>);
}

/// A receiver is restarted while messages are queued for it. Those that had begun fail, and all
/// others arrive, once.
fn queued_messages_survive<E: Endpoint>(protocol: impl Fn(&FabricFacts) -> E::Config) {
    let facts = net(2);
    let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, fair(), 1);
    bed.run_until(Time::ZERO + Span::from_us(10_000));
    // Each takes 3.3 ms of the link. Shorter ones are sent first.
    for number in 0..40 {
        assert!(bed.submit(0, 1, 400_000 + 1_000 * number as usize, number));
    }
    bed.run_until(bed.now + Span::from_us(20_000));
    let before = bed.seen.delivered.len();
    bed.kill(1);
    bed.run_until(bed.now + Span::from_us(1_000));
    bed.start(1);
    bed.run_until(bed.now + Span::from_us(2_000_000));
    assert_eq!(bed.seen.outcomes.len(), 40);
    let completed = bed.seen.outcomes.values().filter(|o| **o == Outcome::Completed).count();
    let failed = Outcome::Failed(Failure::PeerRestarted);
    let n_failed = bed.seen.outcomes.values().filter(|o| **o == failed).count();
    assert!(completed + n_failed == 40 && completed > before, "{before} {completed} {n_failed}");
    assert!(bed.seen.delivered.values().all(|&n| n == 1));
    assert!(bed.seen.delivered.len() >= completed);
}

#[test]
fn messages_that_had_not_begun_survive_a_restart() {
    queued_messages_survive::<DcpimHost>(protocol::<DcpimTransport>);
    queued_messages_survive::<PhostHost>(protocol::<PhostTransport>);
}
