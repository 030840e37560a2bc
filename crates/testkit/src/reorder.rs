//! Two messages whose packets overtake one another in every possible way, and many messages whose
//! control packets do so at random.
//!
//! A protocol may need a late packet to continue: a pull may arrive before its refusal, or a grant
//! before its announcement. Such a message must not wait for a timer that is meant for losses. So
//! each run delays one packet, or two, of a run without faults, and bounds the time that this costs
//! by the delays.

use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_types::{
    Bytes, NodeId, Purpose, Queueing, Rng, Span, SwitchProgram, Time, Transport,
};

use crate::liveness::{Rules, rules};
use crate::suite::{Body, Case};
use crate::wire::{self, N_HOSTS, Net, TransportTraits};

/// Messages of a run: sender, receiver, bytes.
type Messages = [(u32, u32, u64); 2];

/// Two messages of one pair of hosts, to one receiver, and of one sender.
const PAIRS: [[(u32, u32); 2]; 3] = [[(0, 2), (0, 2)], [(0, 2), (1, 2)], [(0, 1), (0, 2)]];

/// Control round trips beyond the delays themselves that a run may take longer: matching phases and
/// slots that are missed. Timers that are meant for losses take 64.
const SLACK: u64 = 40;

/// Changes of a run.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Packets that are delayed, by number, and by how much.
    delays: Vec<(u64, Span)>,
    /// The packet whose payload is cut off; 0 for none.
    trimmed: u64,
}

/// End of a run.
struct RunEnd {
    at: Time,
    packets: u64,
}

/// Returns why data packets of a transport arrive in order, if they do; `None` if they may overtake
/// one another.
fn in_order(transport: &str) -> Option<&'static str> {
    match transport {
        // A retransmission that is late again is found by a timeout alone.
        "hpcc" => Some("messages have one path, and their receivers go back by NACKs"),
        _ => None,
    }
}

/// Runs two messages to their end.
///
/// Panics if one fails, or is not over after `limit`.
fn run<T: RegisteredTransport>(
    on_wire: &(Arc<<T as Transport>::Config>, u32),
    messages: Messages,
    changes: &Changes,
    limit: Span,
) -> RunEnd {
    let mut net = Net::<T>::new(on_wire, TransportTraits::derive(&on_wire.0), 1, 0.0);
    net.jitter = 0.0;
    net.delays = changes.delays.iter().copied().collect();
    net.delays_control = in_order(T::NAME).is_some();
    net.trimmed = changes.trimmed;
    for (src, dst, size) in messages {
        net.submit(src, dst, Bytes::new(size));
    }
    let step = wire::facts().control_rtt / 4;
    while net.completed.len() + net.failed.len() < 2 {
        assert!(net.now < Time::ZERO + limit, "not over after {limit}: {messages:?}, {changes:?}");
        net.run_until(net.now + step);
    }
    RunEnd { at: net.now, packets: net.number }
}

/// Every packet of two messages is delayed, then every two of shorter ones. If ports trim, every
/// packet is trimmed too.
#[derive(Clone, Copy, Debug)]
pub struct Reorder;

impl Body for Reorder {
    const NAME: &'static str = "reorder";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let on_wire = wire::configure::<T>(&case.keys);
        let rtt = wire::facts().control_rtt;
        let forever = rtt * 1_000_000;
        let delays = [rtt, rtt * 4];
        let is_trimming = <T as Transport>::SwitchProgram::QUEUEING == Queueing::Trimming;
        for ends in PAIRS {
            let of = |sizes: [u64; 2]| {
                [(ends[0].0, ends[0].1, sizes[0]), (ends[1].0, ends[1].1, sizes[1])]
            };
            let test = |messages: Messages, changes: Changes, base: &RunEnd| {
                let delayed = changes.delays.iter().fold(Span::ZERO, |sum, (_, d)| sum + *d);
                let limit = (base.at - Time::ZERO) + delayed * 2 + rtt * SLACK;
                run::<T>(&on_wire, messages, &changes, limit);
            };
            let long = of([30_000, 60_000]);
            let base = run::<T>(&on_wire, long, &Changes::default(), forever);
            for (n, delay) in (1..=base.packets).flat_map(|n| delays.map(|delay| (n, delay))) {
                test(long, Changes { delays: vec![(n, delay)], trimmed: 0 }, &base);
            }
            let short = of([1_000, 5_000]);
            let base = run::<T>(&on_wire, short, &Changes::default(), forever);
            let trimmed = if is_trimming { base.packets } else { 0 };
            for first in 1..=base.packets {
                for second in first + 1..=base.packets + 4 {
                    for trimmed in 0..=trimmed {
                        let delays = vec![(first, delays[1]), (second, delays[0])];
                        test(short, Changes { delays, trimmed }, &base);
                    }
                }
            }
        }
    }
}

/// Messages of a run with random delays.
const N_MESSAGES: u32 = 100;
/// Mean of the time from one message to the next: links carry 0.6 of their capacity.
const PAUSE: Span = Span::from_us(13);
/// Share of the control packets that are late.
const LATE_SHARE: f64 = 0.3;
/// Control round trips that a control packet is late at most.
const LATE_MAX: u64 = 4;
/// Share of the data packets whose payload is cut off, if ports trim.
const TRIMMED_SHARE: f64 = 0.05;
/// Late packets that a message may wait for one after the other.
const LATE_ROUNDS: u64 = 4;

/// Many messages between all hosts, whose control packets are late at random and so overtake one
/// another. Every message completes or fails. None waits while both of its ends are idle for longer
/// than its transport and the late packets explain. Timers that are meant for losses take 64 round
/// trips.
#[derive(Clone, Copy, Debug)]
pub struct RandomReorder;

impl Body for RandomReorder {
    const NAME: &'static str = "random_reorder";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let on_wire = wire::configure::<T>(&case.keys);
        case.each_seed(0..20, |seed| shuffled::<T>(&on_wire, seed));
    }
}

/// Draws the sender, the receiver and the size of a message.
fn draw(rng: &mut Rng) -> (u32, u32, u64) {
    let src = rng.uniform_below(N_HOSTS as usize) as u32;
    let dst = (src + 1 + rng.uniform_below(N_HOSTS as usize - 1) as u32) % N_HOSTS;
    let size_max = [3_000, 40_000, 150_000][rng.uniform_below(3)];
    (src, dst, 1 + rng.uniform_below(size_max) as u64)
}

/// Runs the messages of a seed to their end.
fn shuffled<T: RegisteredTransport>(on_wire: &(Arc<<T as Transport>::Config>, u32), seed: u64) {
    let rtt = wire::facts().control_rtt;
    let mut net = Net::<T>::new(on_wire, TransportTraits::derive(&on_wire.0), seed, 0.0);
    net.jitter = 0.0;
    (net.late, net.late_max) = (LATE_SHARE, rtt * LATE_MAX);
    if <T as Transport>::SwitchProgram::QUEUEING == Queueing::Trimming {
        net.trimming = TRIMMED_SHARE;
    }
    let mut rng = Rng::new(seed, u64::MAX, Purpose::Fault);
    let mut messages = Vec::new();
    for _ in 0..N_MESSAGES {
        let pause = rng.exponential() * PAUSE.as_ps() as f64;
        net.run_until(net.now + Span::from_ps(pause as u64));
        let (src, dst, size) = draw(&mut rng);
        messages.push((net.submit(src, dst, Bytes::new(size)), src, dst, size, net.now));
    }
    let limit = net.now + rtt * 100_000;
    while net.completed.len() + net.failed.len() < messages.len() {
        assert!(net.now < limit, "{} over of {}", net.completed.len(), messages.len());
        net.run_until(net.now + rtt);
    }
    let Rules { idle: round_trips, why_idle: reason, .. } = rules(T::NAME);
    let longest = rtt * (round_trips + LATE_ROUNDS * LATE_MAX);
    for (msg, src, dst, size, submitted) in messages {
        let Some(&delivered) = net.delivered.get(&msg) else { continue };
        let (from, to) = (NodeId::new(src), NodeId::new(dst));
        let wait = net.idle.longest_wait(from, to, submitted..delivered);
        assert!(
            wait <= longest,
            "{size} bytes from {src} to {dst}: idle for {wait}, at most {longest} ({reason})"
        );
    }
}
