//! Nodes in memory, on simulated time: a run can be replayed from its seed.

mod restarts;

use crate::common::*;
use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::cosy::{CosyConfig, CosyHost, CosyTransport};
use rampmeter_proto::dcpim::{DcpimHost, DcpimTransport};
use rampmeter_proto::homa::HomaTransport;
use rampmeter_proto::pfabric::PfabricTransport;
use rampmeter_proto::phost::{PhostHost, PhostTransport};
use rampmeter_proto::sird::SirdTransport;
use rampmeter_proto::tcp::TcpTransport;
use rampmeter_runtime::app::{Completion, Failure, PortConfig};
use rampmeter_runtime::datapath::mem::Impairments;
use rampmeter_runtime::{MessageCounts, Outcome};
use rampmeter_types::{Bytes, Endpoint, FabricFacts, Purpose, Rng, Span, TenantId, Time};

const RTT: Span = Span::from_us(200);

fn net(n_hosts: u32) -> FabricFacts {
    facts(n_hosts, 1_000, RTT)
}

fn fair() -> Impairments {
    Impairments::fair(RTT / 2)
}

fn foul(loss: f64) -> Impairments {
    Impairments { delay: RTT / 4, loss, duplicate: 0.02, reorder: 0.1 }
}

/// Every message arrives once and unaltered, with any loss, on clocks that start at `start`.
fn all_arrive<E: Endpoint>(start: Time, protocol: impl Fn(&FabricFacts) -> E::Config) {
    for (seed, loss) in [(1, 0.0), (2, 0.001), (3, 0.01), (4, 0.05)] {
        let facts = net(4);
        let mut bed = MemTestbed::<E>::new_at(start, protocol(&facts), &facts, foul(loss), seed);
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut numbers = [0; 4];
        for _ in 0..400 {
            let (src, to) = (rng.uniform_below(4), rng.uniform_below(3));
            let dst = (src + 1 + to) % 4;
            assert!(bed.submit(src, dst, mixed_size(&mut rng), numbers[src]));
            numbers[src] += 1;
            bed.run_until(bed.now + Span::from_us(rng.uniform_below(400) as u64));
        }
        bed.run_until(bed.now + Span::from_us(5_000_000));
        assert_eq!(bed.seen.outcomes.len(), 400, "loss {loss}");
        assert!(bed.seen.outcomes.values().all(|o| *o == Outcome::Completed), "loss {loss}");
        assert_eq!(bed.seen.delivered.len(), 400, "loss {loss}");
        assert!(bed.seen.delivered.values().all(|&n| n == 1), "loss {loss}");
        for node in bed.nodes.iter().flatten() {
            assert_eq!(node.node.messages(), MessageCounts::default());
            let stats = node.node.stats();
            assert_eq!((stats.malformed_packets, stats.inconsistent_messages), (0, 0));
        }
    }
}

#[test]
fn dcpim_delivers_every_message_once_and_unaltered() {
    all_arrive::<DcpimHost>(Time::ZERO, protocol::<DcpimTransport>);
}

/// A stalled program pauses its senders, for much longer than the timeout of an unresponsive
/// sender.
fn all_wait<E: Endpoint>(dropped_max: u64, protocol: impl Fn(&FabricFacts) -> E::Config) {
    let facts = net(2);
    let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, fair(), 1);
    bed.kill(1);
    bed.port = PortConfig { depth: 64, budget: 2_000_000 };
    bed.start(1);
    bed.deaf = Some(1);
    for number in 0..20 {
        assert!(bed.submit(0, 1, 400_000, number));
    }
    bed.run_until(bed.now + Span::from_us(10_000_000));
    assert_eq!(bed.seen.outcomes.len(), 5, "five messages fit into the budget");
    // Senders are paused: no packets are requested for which there is no memory.
    let dropped = bed.nodes[1].as_ref().unwrap().node.stats().no_memory_packets;
    assert!((1..=dropped_max).contains(&dropped), "{dropped} packets were dropped");
    bed.deaf = None;
    bed.run_until(bed.now + Span::from_us(1_000_000));
    assert_eq!(bed.seen.outcomes.len(), 20);
    assert!(bed.seen.outcomes.values().all(|o| *o == Outcome::Completed));
    assert_eq!(bed.seen.delivered.len(), 20);
}

#[test]
fn senders_wait_for_a_program_that_does_not_read() {
    all_wait::<DcpimHost>(400, protocol::<DcpimTransport>);
    all_wait::<PhostHost>(400, protocol::<PhostTransport>);
}

/// Messages of cosy are delivered, or rejected, or fail if packets are lost; each has one outcome.
#[test]
fn cosy_delivers_or_reports_a_failure() {
    let presets = [CosyConfig::paper(), CosyConfig::rsvp()];
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.05), (4, 0.0)] {
        let (facts, preset) = (net(4), &presets[seed as usize / 4]);
        let weather = Impairments { loss, ..fair() };
        let protocol = with_keys::<CosyTransport>(preset, &facts);
        let mut bed = MemTestbed::<CosyHost>::new(protocol, &facts, weather, seed);
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut numbers = [0; 4];
        for _ in 0..600 {
            let (src, to) = (rng.uniform_below(4), rng.uniform_below(3));
            assert!(bed.submit(src, (src + 1 + to) % 4, mixed_size(&mut rng), numbers[src]));
            numbers[src] += 1;
            bed.run_until(bed.now + Span::from_us(rng.uniform_below(150) as u64));
        }
        bed.run_until(bed.now + Span::from_us(2_000_000));
        assert_eq!(bed.seen.outcomes.len(), 600, "loss {loss}");
        let mut counts = [0; 3];
        for (label, outcome) in &bed.seen.outcomes {
            let delivered = bed.seen.delivered.get(label).copied().unwrap_or(0);
            match outcome {
                Outcome::Completed => assert_eq!(delivered, 1),
                Outcome::Failed(Failure::Rejected) => assert_eq!(delivered, 0),
                Outcome::Failed(_) => assert!(delivered <= 1),
            }
            counts[match outcome {
                Outcome::Completed => 0,
                Outcome::Failed(Failure::Rejected) => 1,
                Outcome::Failed(_) => 2,
            }] += 1;
        }
        let [completed, rejected, failed] = counts;
        assert!(completed > 200, "loss {loss}: {counts:?}");
        assert_eq!(rejected > 0, loss > 0.0 || *preset == presets[1], "loss {loss}: {counts:?}");
        assert_eq!(failed > 0, loss > 0.0, "loss {loss}: {counts:?}");
    }
}

/// Phases are numbered modulo 2^32: clocks that start with the half year pass that number.
#[test]
fn dcpim_continues_when_phase_numbers_wrap() {
    let days = |n: u64| Time::ZERO + Span::from_us(n * 86_400_000_000);
    all_arrive::<DcpimHost>(days(143), protocol::<DcpimTransport>);
    let phase = protocol::<DcpimTransport>(&net(4)).phase();
    let again = Time::ZERO + phase * (1 << 32);
    all_arrive::<DcpimHost>(
        Time::from_ps(again.as_ps() - 10_000_000_000),
        protocol::<DcpimTransport>,
    );
}

#[test]
fn phost_delivers_every_message_once_and_unaltered() {
    all_arrive::<PhostHost>(Time::ZERO, protocol::<PhostTransport>);
}

/// Nodes that run only every 20 us reach the link's rate, though a packet takes 12 us: delays are
/// compensated for.
fn lateness_costs_no_rate<E: Endpoint>(protocol: impl Fn(&FabricFacts) -> E::Config) {
    let facts = net(2);
    let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, fair(), 1);
    bed.run_until(Time::ZERO + Span::from_us(10_000));
    assert!(bed.submit(0, 1, 2_000_000, 0));
    let start = bed.now;
    while bed.seen.delivered.is_empty() {
        bed.run_late(Span::from_us(20), bed.now + Span::from_us(100));
        // The link takes 17.8 ms for it.
        let took = bed.now.saturating_since(start);
        assert!(took < Span::from_us(22_000), "{took:?}");
    }
}

#[test]
fn dcpim_loses_no_rate_to_late_timers() {
    lateness_costs_no_rate::<DcpimHost>(protocol::<DcpimTransport>);
}

#[test]
fn phost_loses_no_rate_to_late_timers() {
    lateness_costs_no_rate::<PhostHost>(protocol::<PhostTransport>);
}

#[test]
fn messages_wait_for_a_node_that_starts_later() {
    let facts = net(2);
    let mut bed =
        MemTestbed::<DcpimHost>::new(protocol::<DcpimTransport>(&facts), &facts, fair(), 1);
    bed.kill(1);
    assert!(bed.submit(0, 1, 5_000, 0));
    bed.run_until(Time::from_ps(0) + Span::from_us(700_000));
    assert!(bed.seen.outcomes.is_empty());
    bed.start(1);
    bed.run_until(bed.now + Span::from_us(1_200_000));
    assert_eq!(bed.seen.outcomes.values().copied().collect::<Vec<_>>(), [Outcome::Completed]);
}

#[test]
fn a_message_for_a_node_that_never_answers_fails() {
    let facts = net(2);
    let mut bed =
        MemTestbed::<DcpimHost>::new(protocol::<DcpimTransport>(&facts), &facts, fair(), 1);
    bed.kill(1);
    assert!(bed.submit(0, 1, 5_000, 0));
    bed.run_until(bed.now + Span::from_us(4_000_000));
    let failed = Outcome::Failed(Failure::Unreachable);
    assert_eq!(bed.seen.outcomes.values().copied().collect::<Vec<_>>(), [failed]);
}

/// A refused message has ended in the whole node when its application receives the outcome. So no
/// application has more messages in flight than its depth. Other messages continue. A sender that
/// missed a refusal receives another, even if it repeats itself only after many round trips.
fn refused_messages_are_over<E: Endpoint>(protocol: impl Fn(&FabricFacts) -> E::Config) {
    // Transports on such a network wait for longer than nodes wait for applications.
    let facts = facts(2, 1_000, Span::from_us(3_000));
    for per_thousand in 5..25 {
        let loss = f64::from(per_thousand) / 1_000.0;
        let mut bed = MemTestbed::<E>::new(protocol(&facts), &facts, foul(loss), 1);
        let is_refused = |number: u64| number.is_multiple_of(3);
        for number in 0..30 {
            let service = if is_refused(number) { SERVICE + 1 } else { SERVICE };
            assert!(bed.submit_to(service, 0, 1, 400_000, number));
        }
        while bed.seen.outcomes.len() < 30 {
            bed.run_until(bed.now + Span::from_us(100));
            let messages = bed.nodes[0].as_ref().unwrap().node.messages();
            assert_eq!(messages.sending + messages.queued + bed.seen.outcomes.len(), 30);
        }
        for (&(.., number), &outcome) in &bed.seen.outcomes {
            let refused = Outcome::Failed(Failure::Refused);
            let expected = if is_refused(number) { refused } else { Outcome::Completed };
            assert_eq!(outcome, expected, "{number} at a loss of {loss}");
        }
    }
}

#[test]
fn messages_refused_by_the_receiver_end_in_dcpim() {
    refused_messages_are_over::<DcpimHost>(protocol::<DcpimTransport>);
}

#[test]
fn messages_refused_by_the_receiver_end_in_phost() {
    refused_messages_are_over::<PhostHost>(protocol::<PhostTransport>);
}

/// A bound starts when the node reads the message from its application, even if the receiver
/// responds later.
#[test]
fn outcomes_arrive_within_the_bound_if_the_receiver_starts_late() {
    let facts = net(2);
    let latency_bound = protocol::<CosyTransport>(&facts).latency_bound();
    let mut counts = [0; 2];
    for starts_us in [0, 1_000, 6_000, 12_000, 20_000, 30_000, 36_000, 40_000, 60_000] {
        let protocol = protocol::<CosyTransport>(&facts);
        let mut bed = MemTestbed::<CosyHost>::new(protocol, &facts, fair(), starts_us);
        bed.kill(1);
        let taken = bed.now;
        let mut ends: Vec<(Time, u64)> = (0..)
            .zip([400_000, 1_000, 150_000])
            .map(|(n, size)| {
                assert!(bed.submit(0, 1, size, n));
                let bound = latency_bound.bound(Bytes::new(size as u64), TenantId::default());
                (taken + bound.unwrap(), n)
            })
            .collect();
        ends.sort();
        let starts = taken + Span::from_us(starts_us);
        for (end, number) in ends {
            if bed.nodes[1].is_none() && starts <= end {
                bed.run_until(starts);
                bed.start(1);
            }
            bed.run_until(end);
            let incarnation = bed.nodes[0].as_ref().unwrap().restart;
            let outcome = bed.seen.outcomes.get(&(0, incarnation, number));
            let outcome = outcome.unwrap_or_else(|| panic!("{starts_us} us: {number} has none"));
            counts[usize::from(*outcome == Outcome::Completed)] += 1;
        }
        let messages = bed.nodes[0].as_ref().unwrap().node.messages();
        assert_eq!(messages.sending + messages.queued, 0);
    }
    assert!(counts.iter().all(|&n| n > 2), "failed, completed: {counts:?}");
}

#[test]
fn messages_in_flight_when_a_node_stops_are_reported() {
    let facts = net(3);
    let mut bed =
        MemTestbed::<DcpimHost>::new(protocol::<DcpimTransport>(&facts), &facts, fair(), 1);
    bed.kill(2);
    assert!(bed.submit(0, 1, 500_000, 0) && bed.submit(0, 2, 5_000, 1));
    bed.run_until(bed.now + Span::from_us(1_500));
    assert!(bed.seen.outcomes.is_empty());
    let node = bed.nodes[0].as_mut().unwrap();
    node.node.fail_all();
    assert!(node.node.is_drained());
    let outcomes = std::iter::from_fn(|| node.port.try_next());
    let stopping = outcomes.map(|completion| match completion {
        Completion::Finished { outcome, .. } => outcome,
        Completion::Received(_) => panic!("nobody sends to this node"),
    });
    assert!(stopping.eq([Outcome::Failed(Failure::Stopping); 2]));
}

#[test]
fn a_cable_that_is_pulled_delays_messages_and_loses_none() {
    let facts = net(2);
    let mut bed =
        MemTestbed::<PhostHost>::new(protocol::<PhostTransport>(&facts), &facts, fair(), 1);
    (0..20).for_each(|n| assert!(bed.submit(0, 1, 50_000, n)));
    bed.run_until(bed.now + Span::from_us(2_000));
    bed.net.set_up(rampmeter_types::NodeId::new(1), false);
    bed.run_until(bed.now + Span::from_us(100_000));
    bed.net.set_up(rampmeter_types::NodeId::new(1), true);
    bed.run_until(bed.now + Span::from_us(2_000_000));
    assert_eq!(bed.seen.delivered.len(), 20);
    assert!(bed.seen.outcomes.values().all(|o| *o == Outcome::Completed));
}

/// The maximum number of short messages of a peer is submitted at once. All arrive, and the link is
/// not wasted on retransmissions: their packets take 17 ms of it.
fn deep_queues_drain<F: RegisteredTransport>(most: Span) {
    const N: u64 = 65_000;
    let facts = facts(2, 10_000, Span::from_us(100));
    let mut bed = MemTestbed::<F::Host>::new(protocol::<F>(&facts), &facts, fair_for(&facts), 1);
    bed.kill(0);
    bed.port = PortConfig { depth: N as usize, budget: 1 << 30 };
    bed.start(0);
    bed.run_until(bed.now + Span::from_us(10_000));
    for number in 0..N {
        assert!(bed.submit(0, 1, 200, number));
    }
    bed.run_until(bed.now + most);
    let completed = bed.seen.outcomes.values().filter(|o| **o == Outcome::Completed).count();
    assert_eq!(completed as u64, N, "{} outcomes", bed.seen.outcomes.len());
    assert_eq!(bed.seen.delivered.len() as u64, N);
}

fn fair_for(facts: &FabricFacts) -> Impairments {
    Impairments::fair(facts.control_rtt / 2)
}

#[test]
fn queues_as_deep_as_is_documented_drain() {
    let tight = Span::from_us(40_000);
    deep_queues_drain::<DcpimTransport>(tight);
    deep_queues_drain::<HomaTransport>(tight);
    deep_queues_drain::<SirdTransport>(tight);
    deep_queues_drain::<PfabricTransport>(tight);
    deep_queues_drain::<TcpTransport>(tight);
    // Free tokens expire before all packets are sent, and each further token takes a packet's time.
    deep_queues_drain::<PhostTransport>(tight * 3);
}

/// Measures the time in which three nodes send 20 messages of 100 KB each to a program of a fourth.
/// Another program of the fourth is stalled, and `queued` messages of `size` bytes of each node are
/// queued for it.
fn beside_a_program_that_stopped<F: RegisteredTransport>(queued: u64, size: usize) -> Span {
    const OTHER: u16 = SERVICE + 1;
    const EACH: u64 = 20;
    let facts = facts(4, 10_000, Span::from_us(100));
    let mut bed = MemTestbed::<F::Host>::new(protocol::<F>(&facts), &facts, fair_for(&facts), 1);
    (0..4).for_each(|node| bed.kill(node));
    bed.port = PortConfig { depth: (queued + EACH) as usize, budget: 1 << 30 };
    (1..4).for_each(|node| bed.start(node));
    bed.port = PortConfig { depth: 64, budget: 1 << 20 };
    bed.start(0);
    bed.deaf = Some(0);
    let handle = &bed.nodes[0].as_ref().unwrap().handle;
    let mut reading = handle.open(OTHER, PortConfig { depth: 64, budget: 1 << 26 }).unwrap();
    bed.run_until(bed.now + Span::from_us(20_000));
    for number in 0..queued {
        (1..4).for_each(|src| assert!(bed.submit(src, 0, size, number)));
    }
    // The first packets have been sent: the rest waits for requests.
    bed.run_until(bed.now + Span::from_us(1_000_000));
    let (before, start) = (bed.seen.outcomes.len(), bed.now);
    // Messages that fit into the memory of the stopped program have completed.
    assert!(before <= (1 << 20) / size, "{before} messages are over");
    for number in queued..queued + EACH {
        (1..4).for_each(|src| assert!(bed.submit_to(OTHER, src, 0, 100_000, number)));
    }
    let mut received = 0;
    while bed.seen.outcomes.len() < before + 3 * EACH as usize || received < 3 * EACH {
        bed.run_until(bed.now + Span::from_us(50));
        received += std::iter::from_fn(|| reading.try_next()).count() as u64;
        assert!(bed.now < start + Span::from_us(2_000_000), "{received} received");
    }
    assert_eq!(received, 3 * EACH);
    bed.now.saturating_since(start)
}

/// Returns the time with `queued` messages of each of three peers for a stalled program, divided by
/// the time with none.
fn cost_of_a_program_that_stopped<F: RegisteredTransport>(queued: u64, size: usize) -> f64 {
    let alone = beside_a_program_that_stopped::<F>(0, size);
    beside_a_program_that_stopped::<F>(queued, size).as_us_f64() / alone.as_us_f64()
}

/// Short messages, whose packets are unscheduled, and longer ones, which need tokens, grants or
/// credit.
#[test]
fn a_stalled_program_does_not_slow_others() {
    fn costs_nothing<F: RegisteredTransport>(queues: &[(u64, usize)]) {
        for &(queued, size) in queues {
            let cost = cost_of_a_program_that_stopped::<F>(queued, size);
            let of = format!("{}, {queued} messages of {size} bytes", F::TITLE);
            assert!(cost < 1.05, "{of}: others take {cost:.3} times as long");
        }
    }
    let both = [(65_000, 200), (1_000, 20_000)];
    costs_nothing::<DcpimTransport>(&both);
    costs_nothing::<PhostTransport>(&both);
    costs_nothing::<HomaTransport>(&both);
    costs_nothing::<SirdTransport>(&both);
    costs_nothing::<PfabricTransport>(&both);
    costs_nothing::<TcpTransport>(&both[1..]);
}

/// Far longer than the bytes that are in flight at once.
#[test]
fn messages_of_many_windows_arrive() {
    fn arrives<F: RegisteredTransport>() {
        let facts = facts(2, 1_000, Span::from_us(100));
        let mut bed =
            MemTestbed::<F::Host>::new(protocol::<F>(&facts), &facts, fair_for(&facts), 1);
        assert!(bed.submit(0, 1, 8_000_000, 0));
        bed.run_until(bed.now + Span::from_us(500_000));
        let outcomes: Vec<_> = bed.seen.outcomes.values().collect();
        assert_eq!(outcomes, [&Outcome::Completed], "{}", F::TITLE);
    }
    arrives::<DcpimTransport>();
    arrives::<PhostTransport>();
    arrives::<HomaTransport>();
    arrives::<SirdTransport>();
    arrives::<PfabricTransport>();
    arrives::<TcpTransport>();
}

#[test]
fn a_long_message_to_the_same_node_delays_no_other() {
    let facts = net(2);
    let mut bed =
        MemTestbed::<DcpimHost>::new(protocol::<DcpimTransport>(&facts), &facts, fair(), 1);
    bed.run_until(bed.now + Span::from_us(100_000));
    for (number, (dst, size)) in (0..).zip([(0, 8_000_000), (0, 1_000), (1, 1_000)]) {
        assert!(bed.submit(0, dst, size, number));
    }
    let node = bed.nodes[0].as_mut().unwrap();
    assert_eq!(node.node.poll(bed.now).unwrap(), bed.now, "the node has more to copy");
    while let Some(completion) = node.port.try_next() {
        bed.seen.note(0, node.restart, completion);
    }
    let first: Vec<u64> = bed.seen.outcomes.keys().map(|(_, _, number)| *number).collect();
    assert_eq!(first, [1], "the short message completes after one poll, the long one does not");
    bed.run_until(bed.now + Span::from_us(1_000_000));
    assert!(bed.seen.outcomes.values().all(|outcome| *outcome == Outcome::Completed));
    assert_eq!((bed.seen.outcomes.len(), bed.seen.delivered.len()), (3, 3));
}
