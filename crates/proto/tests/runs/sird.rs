//! SIRD in whole simulations: exact times, the recorded incast, queues of receivers, credit of
//! senders.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_proto::sird::{Sird, SirdConfig, SirdTransport};
use rampmeter_sim::fabric::TierStats;
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::{Bytes, Header};

/// A byte at 100 Gbit/s, in picoseconds.
const BYTE: u64 = 80;
/// A link and the processing behind it, in picoseconds.
const LINK: u64 = 650_000;

/// Delivery times after submission in picoseconds, and the tiers of ports.
fn measure(spec: SimSpec, keys: &SirdConfig, arrivals: Vec<Arrival>) -> (Vec<u64>, Vec<TierStats>) {
    let (records, tiers, _) = observe(spec, keys, arrivals, NoProbe);
    let took = records.iter().map(|r| (r.delivered.unwrap() - r.arrival).as_ps());
    (took.collect(), tiers)
}

/// Runs messages over the ports that SIRD requests, seen by a probe.
fn observe<P: Probe>(
    spec: SimSpec,
    keys: &SirdConfig,
    arrivals: Vec<Arrival>,
    probe: P,
) -> (Vec<FlowRecord>, Vec<TierStats>, P) {
    struct Both<P>(Records, P);

    impl<P: Probe> Probe for Both<P> {
        const PACKETS: bool = P::PACKETS;

        fn on_flow(&mut self, record: &FlowRecord) {
            self.0.on_flow(record);
        }

        fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
            self.1.on_packet(passing);
        }
    }

    let place = TestNetwork::<SirdTransport>::simulated(keys, spec.topology.clone());
    let buffer = fabric::Buffer::PerPort(Bytes::new(4_000_000_000));
    let spec = SimSpec { fabric: FabricConfig { buffer, ..place.fabric }, ..spec };
    let mut both = Both(Records::default(), probe);
    let config = Arc::new(place.config);
    let mut sim = Sim::<SirdTransport, _, _>::new(spec, config, arrivals.into_iter(), &mut both);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let tiers = sim.fabric().tier_stats();
    drop(sim);
    both.0.0.sort_by_key(|r| r.id);
    (both.0.0, tiers, both.1)
}

fn sird(keys: &SirdConfig, topology: &Topology) -> Sird {
    TestNetwork::<SirdTransport>::simulated(keys, topology.clone()).config
}

/// Returns the longest queue of switches' ports to hosts.
fn queue_max(tiers: &[TierStats]) -> u64 {
    let down = tiers.iter().filter(|tier| !tier.is_of_hosts);
    down.map(|tier| tier.queue_max.get()).max().unwrap()
}

mod alone {
    use super::*;

    /// A message of a bandwidth-delay product at most takes its ideal time.
    #[test]
    fn a_short_message_has_the_ideal_time() {
        let topology = star(4).build().unwrap();
        let most = sird(&SirdConfig::paper(), &topology).unscheduled / 1_460;
        for packets in [1, 7, most] {
            let arrivals = vec![arrival(0, 1, 2, packets * 1_460)];
            let (took, _) = measure(spec(topology.clone(), 1), &SirdConfig::paper(), arrivals);
            assert_eq!(took, [2 * LINK + (packets + 1) * 1_500 * BYTE], "{packets} packets");
        }
    }

    /// A longer one takes a control round trip for its request and its first credit; then its
    /// packets arrive at the pace of credits.
    #[test]
    fn a_long_message_waits_for_one_round_trip_and_then_has_the_pace_of_credits() {
        let topology = star(4).build().unwrap();
        for credit_rate_milli in [1_000, 990, 500] {
            let keys = SirdConfig { credit_rate_milli, ..SirdConfig::paper() };
            let pace = sird(&keys, &topology).credit_interval.as_ps();
            assert_eq!(pace, (1_500 * BYTE * 1_000).div_ceil(credit_rate_milli.into()));
            for packets in [100, 1_000] {
                let arrivals = vec![arrival(0, 1, 2, packets * 1_460)];
                let (took, _) = measure(spec(topology.clone(), 1), &keys, arrivals);
                let control = 2 * LINK + 2 * 40 * BYTE;
                let data = 2 * LINK + 2 * 1_500 * BYTE;
                let expected = 2 * control + data + (packets - 1) * pace;
                assert_eq!(took, [expected], "{packets} packets, {credit_rate_milli} thousandths");
            }
        }
    }
}

/// Incast that was recorded with the authors' simulator: hosts 16 to 45 send 500 KB each to host 0.
/// Recorded: first 60.2 us, last 1277 us. `docs/protocols/sird.md` explains the first.
#[test]
fn an_incast_keeps_the_link_busy_from_the_first_packet_to_the_last() {
    let topology = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 9,
        hosts_per_rack: 16,
        spines: 4,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 500.0,
        switch_ns: 0.0,
        host_ns: 1_500.0,
    });
    // 344 packets a message, 82 B of headers each.
    let wire = (500_000 + 344 * 82) * BYTE;
    // A request, a credit and a packet cross the network, and are stored on the way. Two links are
    // as fast as those of hosts, two four times as fast. The last of the link is in `wire`.
    let before = 3 * 3_500_000 + (82 + 84) * 5 * BYTE / 2 + 1_538 * BYTE * 3 / 2;
    for seed in 1..=4 {
        let arrivals: Vec<Arrival> =
            (16..46).map(|src| arrival(1_000_000, src, 0, 500_000)).collect();
        let spec = spec(topology.build().unwrap(), seed);
        let (mut took, tiers) = measure(spec, &SirdConfig::reference(), arrivals);
        took.sort_unstable();
        assert_eq!((took[0], took[29]), (before + wire, before + 30 * wire));
        assert!(took[29].abs_diff(1_277_000_000) < 2_000_000);
        // Thirty requests at once.
        let queue = queue_max(&tiers);
        assert!(queue <= 30 * 82, "{queue}");
    }
}

mod queues {
    use super::*;
    use rampmeter_types::{Purpose, Rng};

    const HOSTS: u32 = 12;

    /// Returns the longest queue if each host sends to all others, with a bucket and no marks.
    /// Senders that are busy with one receiver collect credit of others, and then spend it at once.
    /// Messages begin within 5 us and have up to 400 KB.
    fn queue(bucket: u32, seed: u64) -> u64 {
        let topology = star(HOSTS.into()).build().unwrap();
        let keys = SirdConfig {
            credit_bytes: Some(bucket),
            sender_credit_bytes: Some(bucket.min(70_000)),
            unscheduled_bytes: Some(0),
            sender_mark_packets: Some(1_000_000),
            ..SirdConfig::paper()
        };
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut arrivals = Vec::new();
        for src in 0..HOSTS {
            for dst in (0..HOSTS).filter(|&dst| dst != src) {
                let (at, size) = (rng.uniform_below(5_000_000), 1 + rng.uniform_below(400_000));
                arrivals.push(arrival(at as u64, src, dst, size as u64));
            }
        }
        arrivals.sort_by_key(|a| a.at);
        queue_max(&measure(spec(topology, seed), &keys, arrivals).1)
    }

    /// Bytes in flight of the outstanding credit while the link to the receiver is busy. They are a
    /// credit to the nearest sender, and its packet up to the queue.
    const LOOP: u64 = 4 * LINK + 2 * 40 * BYTE + 1_500 * BYTE;

    /// All outstanding credit is in the queue, except that in flight; one packet of each sender
    /// arrives at the same time.
    #[test]
    fn a_receivers_queue_is_bounded_by_its_bucket() {
        let topology = star(40).build().unwrap();
        let keys = SirdConfig {
            unscheduled_bytes: Some(0),
            credit_rate_milli: 1_000,
            ..SirdConfig::paper()
        };
        let credit = sird(&keys, &topology).credit;
        for seed in 0..40 {
            let mut rng = Rng::new(seed, 0, Purpose::Test);
            let n = 2 + rng.uniform_below(38) as u32;
            let mut arrivals = Vec::new();
            for src in 1..=n {
                let at = rng.uniform_below(5_000_000) as u64;
                for _ in 0..1 + rng.uniform_below(3) {
                    arrivals.push(arrival(at, src, 0, 1 + rng.uniform_below(1_000_000) as u64));
                }
            }
            arrivals.sort_by_key(|a| a.at);
            let (_, tiers) = measure(spec(topology.clone(), seed), &keys, arrivals);
            let bound = credit.saturating_sub(LOOP / BYTE) + u64::from(n) * 1_500;
            let queue = queue_max(&tiers);
            println!("{n} senders: {queue} B of {bound}, bucket {credit}");
            assert!(queue <= bound.min(credit), "seed {seed}: {queue} of {bound}");
        }
    }

    /// Pacing keeps those queues far below the bucket. If senders have collected credit the queue
    /// gets near the bucket, less the bytes in flight, and never above it.
    #[test]
    fn credit_that_senders_have_collected_fills_the_bucket_and_no_more() {
        for bucket in [100_000, 200_000, 300_000] {
            let queues: Vec<u64> = (0..20).map(|seed| queue(bucket, seed)).collect();
            let (least, most) = (queues.iter().min().unwrap(), *queues.iter().max().unwrap());
            println!("{bucket} B: {least} to {most} B");
            assert!(most <= u64::from(bucket), "{most} of {bucket}");
            assert!(2 * most >= u64::from(bucket), "{most} of {bucket}");
        }
    }

    #[test]
    fn a_larger_bucket_makes_a_longer_queue() {
        let (small, large) = (queue(100_000, 1), queue(10_000_000, 1));
        println!("{small} B, {large} B");
        assert!(large > 2 * small, "{small} {large}");
    }
}

mod senders {
    use super::*;

    /// Credit packets of `reference`, by which they are distinguished from other control packets.
    const CREDIT_BYTES: u16 = 84;

    /// Packets that host 0 may send, and the most of them after a while.
    #[derive(Default)]
    struct PacketCounts {
        now: BTreeMap<u32, i64>,
        most: i64,
        after: u64,
    }

    impl Probe for PacketCounts {
        const PACKETS: bool = true;

        fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
            let packet = passing.packet;
            let held = self.now.entry(passing.end.get()).or_default();
            match passing.direction {
                Direction::Received
                    if packet.payload.len == 0 && packet.wire_bytes == CREDIT_BYTES =>
                {
                    *held += 1;
                }
                Direction::Sent if packet.payload.len > 0 => *held -= 1,
                _ => {}
            }
            if passing.end.get() == 0 && passing.now.as_ps() >= self.after {
                self.most = self.most.max(*held);
            }
        }
    }

    fn most_held(receivers: u32, sender_mark_packets: u32) -> i64 {
        let keys = SirdConfig {
            sender_mark_packets: Some(sender_mark_packets),
            ..SirdConfig::reference()
        };
        let arrivals = (1..=receivers).map(|dst| arrival(0, 0, dst, 20_000_000)).collect();
        let held = PacketCounts { after: 5_000_000_000, ..PacketCounts::default() };
        let topology = star(1 + u64::from(receivers)).build().unwrap();
        let (_, _, held) = observe(spec(topology, 1), &keys, arrivals, held);
        held.most
    }

    /// Without its marks each of eight receivers gives the sender 65 packets of credit. With them
    /// it is the queue of DCTCP: the threshold, and a packet for each limit. Limits grow in the
    /// round trip before the first mark is seen (Alizadeh et al., SIGCOMM 2010, section 3.3: K +
    /// N). No limit is below 10 000 B, which admits a seventh packet.
    #[test]
    fn a_sender_that_many_receivers_credit_holds_little_more_than_its_threshold() {
        let without = most_held(8, 1_000_000);
        assert!(without > 8 * 50, "{without}");
        for n in [4, 8, 12, 16] {
            let with = most_held(n, 33);
            println!("{n} receivers: {with} packets held");
            let n = i64::from(n);
            assert!((1..=(33 + n).max(15 * n / 2)).contains(&with), "{with}");
        }
    }
}
