//! Tests of Fastpass's parts. Whole runs are in `tests/` of this crate.

mod allocate {
    use super::super::allocate::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Demands = Vec<(u16, u16, u32)>;

    fn demands(n: u16) -> impl Strategy<Value = Demands> {
        proptest::collection::vec((0..n, 0..n, 1u32..40), 0..200)
    }

    proptest! {
        /// Fastpass §3.1: in each slot a matching, maximal among the pairs that still have demand;
        /// no pair gets more slots than it requested.
        #[test]
        fn every_slot_has_a_maximal_matching(
            n in 2u16..24,
            batch in 1u32..=64,
            seed in demands(24),
        ) {
            let mut allocator = Allocator::new(n.into(), batch);
            let mut wanted: BTreeMap<(u16, u16), u32> = BTreeMap::new();
            for (src, dst, slots) in seed {
                let (src, dst) = (src % n, dst % n);
                allocator.request(src, dst, slots);
                *wanted.entry((src, dst)).or_default() += slots;
            }
            for _ in 0..20 {
                let mut out = Vec::new();
                allocator.allocate(&mut out);
                let mut srcs: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); batch as usize];
                let mut dsts = srcs.clone();
                for a in &out {
                    prop_assert!(srcs[usize::from(a.slot)].insert(a.src), "a source sends twice");
                    prop_assert!(dsts[usize::from(a.slot)].insert(a.dst), "two to one destination");
                    let left = wanted.get_mut(&(a.src, a.dst)).unwrap();
                    prop_assert!(*left > 0, "more than was asked for");
                    *left -= 1;
                }
                for (&(src, dst), &left) in &wanted {
                    prop_assert_eq!(allocator.demand(src, dst), left);
                    for slot in 0..batch as usize {
                        let is_blocked = srcs[slot].contains(&src) || dsts[slot].contains(&dst);
                        prop_assert!(left == 0 || is_blocked, "slot {} is not maximal", slot);
                    }
                }
            }
        }
    }

    /// Max-min fairness (§3.1): pairs that share a destination get turns, regardless of their
    /// requests.
    #[test]
    fn pairs_that_meet_are_served_in_turn() {
        let mut allocator = Allocator::new(8, 16);
        for src in 1..5 {
            allocator.request(src, 0, 1_000 * u32::from(src));
        }
        let mut out = Vec::new();
        for _ in 0..10 {
            allocator.allocate(&mut out);
        }
        for src in 1..5 {
            assert_eq!(out.iter().filter(|a| a.src == src).count(), 40);
        }
        // The first batch has each source once in every four slots.
        let mut slots: Vec<u8> = out[..16].iter().filter(|a| a.src == 1).map(|a| a.slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 4, 8, 12]);
    }

    /// A pair that the caller refuses gets no allocation in that slot; other pairs get it.
    #[test]
    fn a_pair_that_is_refused_a_slot_gets_the_next_that_it_may_have() {
        let mut allocator = Allocator::new(4, 4);
        allocator.request(0, 1, 2);
        allocator.request(2, 1, 4);
        let mut out = Vec::new();
        allocator.allocate_where(&mut out, |a| a.src != 0 || a.slot == 3);
        out.sort_unstable();
        let of = |src: u16| out.iter().filter(|a| a.src == src).map(|a| a.slot).collect::<Vec<_>>();
        assert_eq!((of(0), of(2)), (vec![3], vec![0, 1, 2]));
        assert_eq!((allocator.demand(0, 1), allocator.demand(2, 1)), (1, 1));
    }

    /// Destinations that represent several hosts take as many sources as the caller allows.
    #[test]
    fn several_sources_send_to_a_shared_destination() {
        let mut allocator = Allocator::new(6, 1).that_shares(5);
        (0..4).for_each(|src| allocator.request(src, 5, 1));
        (0..4).for_each(|src| allocator.request(src, 4, 1));
        let (mut out, mut room) = (Vec::new(), 2);
        allocator.allocate_where(&mut out, |a| {
            let may = a.dst != 5 || room > 0;
            room -= u32::from(may && a.dst == 5);
            may
        });
        let to = |dst: u16| out.iter().filter(|a| a.dst == dst).count();
        assert_eq!((to(5), to(4)), (2, 1));
    }

    /// Hosts 1 to 3 send to host 0; host 4 has something for it now and then.
    #[test]
    fn a_pair_that_was_idle_comes_first_only_where_that_is_remembered() {
        let waits = |mut allocator: Allocator| {
            (1..4).for_each(|src| allocator.request(src, 0, 100));
            let mut next = || {
                let mut out = Vec::new();
                allocator.allocate(&mut out);
                assert_eq!(out.len(), 1);
                out[0].src
            };
            let warm: Vec<u16> = (0..6).map(|_| next()).collect();
            assert_eq!(warm, [1, 2, 3, 1, 2, 3]);
            let mut waits = Vec::new();
            for _ in 0..2 {
                allocator.request(4, 0, 1);
                let mut served = || {
                    let mut out = Vec::new();
                    allocator.allocate(&mut out);
                    out[0].src
                };
                waits.push((0..).find(|_| served() == 4).unwrap());
                (0..6).for_each(|_| assert_ne!(served(), 4));
            }
            waits
        };
        assert_eq!(waits(Allocator::new(5, 1)), [3, 3]);
        assert_eq!(waits(Allocator::new(5, 1).that_remembers()), [0, 0]);
    }

    #[test]
    fn a_source_that_withdraws_gets_nothing_more() {
        let mut allocator = Allocator::new(4, 16);
        allocator.request(1, 0, 100);
        allocator.request(2, 0, 100);
        allocator.withdraw(1);
        let mut out = Vec::new();
        allocator.allocate(&mut out);
        assert!(out.len() == 16 && out.iter().all(|a| a.src == 2));
        allocator.request(1, 0, 1);
        assert_eq!(allocator.demand(1, 0), 1);
    }
}

mod colour {
    use super::super::colour::Colouring;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// König: a bipartite multigraph of degree d has a colouring with d colours, and this is
        /// one.
        #[test]
        fn no_colour_meets_itself_in_a_rack_and_there_are_no_more_than_the_degree(
            n in 1usize..12,
            ends in proptest::collection::vec((0u16..12, 0u16..12), 0..300),
        ) {
            let edges: Vec<(u16, u16)> =
                ends.iter().map(|&(a, b)| (a % n as u16, b % n as u16)).collect();
            let mut colouring = Colouring::default();
            let (colours, used) = colouring.colour(n, &edges);
            let degree = |of: &dyn Fn(&(u16, u16)) -> u16| {
                (0..n as u16).map(|r| edges.iter().filter(|e| of(e) == r).count()).max().unwrap()
            };
            let most = degree(&|e| e.0).max(degree(&|e| e.1));
            prop_assert_eq!(usize::from(used), most);
            let mut seen = BTreeSet::new();
            for (&(src, dst), &colour) in edges.iter().zip(colours) {
                prop_assert!(colour < used);
                prop_assert!(seen.insert((0, src, colour)) && seen.insert((1, dst, colour)));
            }
        }
    }
}

mod paths {
    use super::super::allocate::Allocation;
    use super::super::paths::Paths;
    use proptest::prelude::*;
    use rampmeter_core::fabric::RegularPaths;
    use rampmeter_core::{Purpose, Rng};

    fn choose(plan: &RegularPaths, slot: &[Allocation]) -> Vec<u16> {
        let mut paths = vec![0; slot.len()];
        Paths::default().choose(plan, slot, &mut paths);
        paths
    }

    /// Returns a matching of hosts, as a slot has.
    fn matching(n: u16, seed: u64) -> Vec<Allocation> {
        let mut dsts: Vec<u16> = (0..n).collect();
        Rng::new(seed, 0, Purpose::Test).shuffle(&mut dsts);
        let pairs = (0..n).zip(dsts).filter(|(src, dst)| src != dst);
        pairs.map(|(src, dst)| Allocation { slot: 0, src, dst }).collect()
    }

    proptest! {
        /// §4: with as much capacity above racks as below, no link has more packets in a slot than
        /// it can carry.
        #[test]
        fn links_between_racks_are_never_overfull(seed in any::<u64>(), spines in 1u16..9) {
            let (racks, hosts) = (9u16, 16u16);
            let plan = RegularPaths {
                rack_of: (0..racks * hosts).map(|h| h / hosts).collect(),
                pod_of: vec![0; usize::from(racks)],
                tor_up: spines,
                agg_up: 1,
            };
            let slot = matching(racks * hosts, seed);
            let paths = choose(&plan, &slot);
            for rack in 0..racks {
                for spine in 0..spines {
                    let on = |of: &dyn Fn(&Allocation) -> (u16, u16)| {
                        let between = |a: &&Allocation| a.src / hosts != a.dst / hosts;
                        let pairs = slot.iter().zip(&paths).filter(|(a, _)| between(a));
                        pairs.filter(|(a, p)| of(a).0 / hosts == rack && **p == spine).count()
                    };
                    let most = usize::from(hosts.div_ceil(spines));
                    prop_assert!(on(&|a| (a.src, a.dst)) <= most);
                    prop_assert!(on(&|a| (a.dst, a.src)) <= most);
                }
            }
        }

        /// A fat-tree of 8-port switches carries any matching with one packet a link.
        #[test]
        fn a_fat_tree_carries_any_matching_without_a_collision(seed in any::<u64>()) {
            let half = 4u16;
            let (n_racks, n_hosts) = (8 * half, 8 * half * half);
            let plan = RegularPaths {
                rack_of: (0..n_hosts).map(|h| h / half).collect(),
                pod_of: (0..n_racks).map(|r| r / half).collect(),
                tor_up: half,
                agg_up: half,
            };
            let slot = matching(n_hosts, seed);
            let paths = choose(&plan, &slot);
            let mut links = std::collections::BTreeSet::new();
            for (a, path) in slot.iter().zip(paths) {
                let (up, core) = (path % half, path / half);
                let rack = |h: u16| h / half;
                let pod = |h: u16| h / half / half;
                if rack(a.src) == rack(a.dst) {
                    continue;
                }
                prop_assert!(links.insert(("tor-up", rack(a.src), up, 0)));
                prop_assert!(links.insert(("tor-down", rack(a.dst), up, 0)));
                if pod(a.src) != pod(a.dst) {
                    prop_assert!(links.insert(("agg-up", pod(a.src), up, core)));
                    prop_assert!(links.insert(("agg-down", pod(a.dst), up, core)));
                }
            }
        }
    }
}

mod arbiters {
    use std::sync::Arc;

    use super::super::wire::{Demand, FastpassHeader, List, Slot};
    use super::super::{Fastpass, FastpassArbiter, FastpassConfig, FastpassHost, allocations};
    use crate::parts::AttemptLimit;
    use crate::test_packet::control;
    use rampmeter_core::{
        Bytes, Endpoint, FabricFacts, Message, MsgId, NodeId, Packet, Purpose, Rate, Rng, Span,
        TenantId, Time,
    };

    const RATE: Rate = Rate::from_gbps(10);
    /// Hosts 0 and 1, the arbiter and its standby.
    const ARBITER: NodeId = NodeId::new(2);
    const STANDBY: NodeId = NodeId::new(3);

    fn fastpass() -> Arc<Fastpass> {
        fastpass_with(FastpassConfig::paper())
    }

    fn fastpass_with(config: FastpassConfig) -> Arc<Fastpass> {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: RATE,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            n_pods: 0,
            patience: Span::ZERO,
        };
        let config = FastpassConfig { arbiters: 2, ..config };
        let time = RATE.tx_time(allocations(2, config.header, config.batch));
        Arc::new(config.on(&facts, None, time).unwrap())
    }

    fn endpoint<E: Endpoint<Config = Fastpass>>(fastpass: &Arc<Fastpass>, node: NodeId) -> E {
        E::new(Arc::clone(fastpass), node, Rng::new(1, 0, Purpose::Test), Time::ZERO)
    }

    fn packet(src: NodeId, dst: NodeId, header: FastpassHeader) -> Packet<FastpassHeader> {
        control(header, 0, (src.get(), dst.get()))
    }

    /// Host 0's request for slots to host 1.
    fn request(arbiter: NodeId, incarnation: u32, number: u32) -> Packet<FastpassHeader> {
        let mut demands = List::default();
        assert!(demands.push(Demand { dst: 1, total: 5 }));
        let header = FastpassHeader::Request { incarnation, number, demands };
        packet(NodeId::new(0), arbiter, header)
    }

    /// Returns the only packet that the arbiter sends, for a host.
    fn answer(arbiter: &mut FastpassArbiter, now: Time) -> FastpassHeader {
        let answer = arbiter.poll_transmit(now).expect("an answer").header;
        assert_eq!(arbiter.poll_transmit(now), None);
        answer
    }

    /// A message that waits for slots fails only if arbiters have been unresponsive for long,
    /// regardless of the number of requests.
    #[test]
    fn arbiters_that_are_late_fail_no_message() {
        let long = Span::from_us(1_000_000);
        for (time, expected) in [(Span::ZERO, 0..long.as_ps()), (long, long.as_ps()..u64::MAX)] {
            let base = (*fastpass()).clone();
            let attempt_limit = AttemptLimit { time, ..base.attempt_limit };
            let fastpass = Arc::new(Fastpass { attempt_limit, ..base });
            let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
            let (id, dst, size) = (MsgId::new(0), NodeId::new(1), Bytes::new(5_000));
            let (deadline, tenant) = (Time::NEVER, TenantId::default());
            host.submit(Time::ZERO, Message { id, dst, size, deadline, tenant });
            let mut now = Time::ZERO;
            while host.poll_event().is_none() {
                now = host.poll_timeout();
                host.handle_timeout(now);
                while host.poll_transmit(now).is_some() {}
            }
            assert!(
                expected.contains(&now.as_ps()),
                "failed at {now:?} with a patience of {time:?}"
            );
        }
    }

    /// Slots of an arbiter whose clock is an hour ahead begin at once, as far apart as planned.
    #[test]
    fn slots_of_a_clock_that_is_ahead_begin_at_once() {
        let fastpass = fastpass();
        let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
        let n = 16;
        let size = Bytes::new(n * fastpass.framing().payload.get());
        host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), size));
        let mut slots = List::default();
        (0..n as u8).for_each(|offset| assert!(slots.push(Slot { dst: 1, offset, path: 0 })));
        let first = Span::from_us(3_600_000_000).div_floor(fastpass.slot);
        let header =
            FastpassHeader::Allocation { incarnation: 1, heard: 1, given: 16, first, slots };
        host.handle_packet(Time::ZERO, &packet(ARBITER, NodeId::new(0), header));
        let (mut now, mut n_sent) = (Time::ZERO, 0);
        while now < Time::ZERO + fastpass.slot * n {
            host.handle_timeout(now);
            while let Some(packet) = host.poll_transmit(now) {
                n_sent += u64::from(matches!(packet.header, FastpassHeader::Data { .. }));
            }
            now += fastpass.slot;
            assert!(n_sent <= now.as_ps().div_ceil(fastpass.slot.as_ps()));
        }
        assert_eq!(n_sent, n);
    }

    /// If the link is slower than the schedule, a host makes few packets ahead. It makes none a
    /// second time because the first is still queued.
    #[test]
    fn turns_that_the_link_has_no_room_for_wait() {
        let fastpass = fastpass();
        let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
        let size = Bytes::new(400 * fastpass.framing().payload.get());
        host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), size));
        for batch in 0..25 {
            let mut slots = List::default();
            (0..16).for_each(|offset| assert!(slots.push(Slot { dst: 1, offset, path: 0 })));
            let (given, first) = (16 * (batch + 1), 16 * u64::from(batch));
            let header =
                FastpassHeader::Allocation { incarnation: 1, heard: 1, given, first, slots };
            host.handle_packet(Time::ZERO, &packet(ARBITER, NodeId::new(0), header));
        }
        let mut now = Time::ZERO + fastpass.rto * 100;
        host.handle_timeout(now);
        assert!(host.poll_timeout() > now, "turns are taken though there is no room");
        let mut seqs = Vec::new();
        for _ in 0..400 {
            while let Some(packet) = host.poll_transmit(now) {
                if let FastpassHeader::Data { seq, .. } = packet.header {
                    seqs.push(seq);
                    break;
                }
            }
            now += fastpass.slot;
            host.handle_timeout(now);
        }
        assert_eq!(seqs, (0..400).collect::<Vec<u32>>());
    }

    /// A destination that acknowledges a packet of a message accepts it, even if the notification
    /// was lost.
    #[test]
    fn an_acknowledgement_ends_a_hold() {
        let fastpass = fastpass();
        let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
        let (me, peer, msg) = (NodeId::new(0), NodeId::new(1), MsgId::new(7));
        host.submit(Time::ZERO, Message::new(msg, peer, Bytes::new(9_000)));
        let from_peer = |header| {
            let mut packet = packet(peer, me, header);
            packet.payload.msg = msg;
            packet
        };
        host.handle_packet(Time::ZERO, &from_peer(FastpassHeader::Hold { held: true }));
        while host.poll_transmit(Time::ZERO).is_some() {}
        let wanted = |host: &mut FastpassHost, now: Time| {
            let sent = std::iter::from_fn(|| host.poll_transmit(now));
            sent.filter(|p| matches!(p.header, FastpassHeader::Request { .. })).count()
        };
        assert_eq!(wanted(&mut host, Time::ZERO), 0);
        let ack = FastpassHeader::Ack { tx_slot: 0, cumulative: 1, seq: 0 };
        host.handle_packet(Time::ZERO, &from_peer(ack));
        assert_eq!(wanted(&mut host, Time::ZERO), 1);
    }

    /// The allocations are sent when they have been computed, early enough that the host has them
    /// in time.
    #[test]
    fn a_batch_leaves_when_it_has_been_computed() {
        let compute = Span::from_us(15);
        let config = FastpassConfig { compute: Some(compute), ..FastpassConfig::paper() };
        let (fastpass, at_once) = (fastpass_with(config), fastpass());
        assert!(fastpass.ahead >= at_once.ahead + compute.div_floor(fastpass.slot));
        let mut arbiter = endpoint::<FastpassArbiter>(&fastpass, ARBITER);
        // The watchdog is sent first.
        arbiter.handle_timeout(Time::ZERO);
        assert!(arbiter.poll_transmit(Time::ZERO).is_some());
        arbiter.handle_packet(Time::ZERO, &request(ARBITER, 1, 1));
        let batch = arbiter.poll_timeout();
        arbiter.handle_timeout(batch);
        assert_eq!((arbiter.wants_transmit(), arbiter.poll_transmit(batch)), (false, None));
        let computed = arbiter.poll_timeout();
        assert_eq!(computed, batch + compute);
        arbiter.handle_timeout(computed);
        let allocation = answer(&mut arbiter, computed);
        assert!(matches!(allocation, FastpassHeader::Allocation { .. }), "{allocation:?}");
    }

    #[test]
    fn a_computation_longer_than_a_batch_is_refused() {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: RATE,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            n_pods: 0,
            patience: Span::ZERO,
        };
        let config = FastpassConfig { compute: Some(Span::from_us(21)), ..FastpassConfig::paper() };
        let bad = config.on(&facts, None, Span::ZERO).unwrap_err();
        assert_eq!((bad.key.as_str(), bad.got.as_str()), ("compute-us", "21"));
    }

    #[test]
    fn a_standby_gives_no_slots_until_the_arbiter_has_missed_four_watchdogs() {
        let fastpass = fastpass();
        let mut standby = endpoint::<FastpassArbiter>(&fastpass, STANDBY);
        let last = Time::ZERO + fastpass.watchdog;
        standby.handle_packet(last, &packet(ARBITER, STANDBY, FastpassHeader::Watchdog));
        let missed = last + fastpass.watchdog * 4;
        standby.handle_packet(missed, &request(STANDBY, 1, 1));
        assert_eq!(answer(&mut standby, missed), FastpassHeader::Passive);
        let now = missed + Span::from_ps(1);
        standby.handle_packet(now, &request(STANDBY, 1, 1));
        let now = standby.poll_timeout();
        standby.handle_timeout(now);
        let FastpassHeader::Allocation { given, slots, .. } = answer(&mut standby, now) else {
            panic!("expected slots");
        };
        assert_eq!((given, slots.as_slice().len()), (5, 5));
        // The arbiter is back: clients of the standby will send requests to the arbiter.
        standby.handle_packet(now, &packet(ARBITER, STANDBY, FastpassHeader::Watchdog));
        standby.handle_packet(now, &request(STANDBY, 1, 2));
        assert_eq!(answer(&mut standby, now), FastpassHeader::Passive);
    }

    #[test]
    fn an_arbiter_that_has_forgotten_a_host_says_so() {
        let mut arbiter = endpoint::<FastpassArbiter>(&fastpass(), ARBITER);
        arbiter.handle_packet(Time::ZERO, &request(ARBITER, 6, 2));
        let answer = answer(&mut arbiter, Time::ZERO);
        assert_eq!(answer, FastpassHeader::Forgotten { incarnation: 6 });
    }

    #[test]
    fn a_host_turns_to_the_standby_after_three_silent_repetitions() {
        let fastpass = fastpass();
        let mut host = endpoint::<FastpassHost>(&fastpass, NodeId::new(0));
        host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(9_000)));
        let mut asked = Vec::new();
        for repetition in 0..4 {
            let now = Time::ZERO + fastpass.retry * repetition;
            host.handle_timeout(now);
            while let Some(packet) = host.poll_transmit(now) {
                asked.push(packet.dst);
            }
        }
        assert_eq!(asked, [ARBITER, ARBITER, ARBITER, STANDBY]);
        assert_eq!(host.stats().fail_overs, 1);
    }
}

mod flows {
    use super::super::flows::Flows;
    use super::super::{Fastpass, FastpassConfig};
    use crate::parts::Output;
    use proptest::prelude::*;
    use rampmeter_core::{Bytes, FabricFacts, Message, MsgId, NodeId, Rate, Span, Time};

    fn fastpass() -> Fastpass {
        let facts = FabricFacts {
            n_hosts: 4,
            access_rate: Rate::from_gbps(10),
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            n_pods: 0,
            patience: Span::ZERO,
        };
        FastpassConfig::paper().on(&facts, None, Span::ZERO).unwrap()
    }

    /// Returns a search of all flows.
    fn searched(flows: &Flows, dst: NodeId) -> Option<u32> {
        let waiting = flows.iter().filter(|(_, flow)| flow.dst == dst && flow.unsent() > 0);
        waiting.min_by_key(|(_, flow)| (flow.remaining(), flow.msg)).map(|(slot, _)| slot)
    }

    proptest! {
        #[test]
        fn the_flow_with_the_fewest_packets_left_is_next(
            steps in proptest::collection::vec((0u8..8, 0u32..12, 0u32..9), 0..300),
        ) {
            let fastpass = fastpass();
            let (mut flows, mut out) =
                (Flows::new(NodeId::new(0)), Output::new(NodeId::new(0), 40));
            let mut now = Time::ZERO;
            for (msg, (step, number, seq)) in (0..).zip(steps) {
                let dst = NodeId::new(1 + number % 3);
                let slots: Vec<u32> = flows.iter().map(|(slot, _)| slot).collect();
                let slot = slots.get(number as usize % slots.len().max(1)).copied();
                let of_slot = slot.and_then(|slot| Some((slot, flows.get(slot)?.msg)));
                match (step, of_slot) {
                    (0..=1, _) => {
                        let size = Bytes::new(1 + 1_400 * u64::from(seq));
                        flows.submit(&Message::new(MsgId::new(msg), dst, size), &fastpass);
                    }
                    (2..=4, Some((slot, _))) => {
                        flows.send(now, slot, None, &fastpass);
                    }
                    (5, Some((slot, msg))) => {
                        flows.on_ack(msg, (slot, seq / 2, seq), &mut out);
                    }
                    (6, _) => {
                        now += fastpass.rto;
                        flows.handle_timeout(now, &fastpass, &mut out);
                    }
                    (7, _) if seq == 0 => {
                        flows.forget_peer(dst, &mut out);
                    }
                    (7, Some((_, msg))) => {
                        flows.cancel(msg);
                    }
                    _ => {}
                }
                for dst in (1..4).map(NodeId::new) {
                    prop_assert_eq!(flows.next_to(dst), searched(&flows, dst));
                }
            }
        }
    }
}
