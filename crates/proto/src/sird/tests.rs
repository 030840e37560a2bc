//! Tests of SIRD's parts. Whole runs are in `tests/` of this crate.

use std::sync::Arc;

use proptest::prelude::*;
use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Event, FabricFacts, HostPolicy, Message, MsgId, NodeId, Packet, Priority, Protocol,
    Purpose, Rate, Receipt, Rng, Span, Time,
};

use super::config::{ReceiverPolicy, SenderPolicy};
use super::wire::SirdHeader;
use super::{Sird, SirdConfig, SirdHost};
use crate::keys::PacketSizes;
use crate::test_packet::make_control;
use crate::toolkit::CreditPackets;

fn facts() -> FabricFacts {
    FabricFacts {
        n_hosts: 16,
        access_rate: Rate::from_gbps(100),
        core_rate: None,
        data_rtt: Span::from_us(8),
        control_rtt: Span::from_us(7),
        abort_timeout_min: Span::ZERO,
    }
}

fn host(config: SirdConfig, node: u32) -> (SirdHost, Arc<Sird>) {
    let sird = Arc::new(config.derive(&facts()).unwrap());
    let rng = Rng::new(1, 0, Purpose::Test);
    (SirdHost::new(Arc::clone(&sird), NodeId::new(node), rng, Time::ZERO), sird)
}

fn submit(host: &mut SirdHost, msg: u32, dst: u32, size: u64) {
    host.submit(Time::ZERO, Message::new(MsgId::new(msg), NodeId::new(dst), Bytes::new(size)));
}

/// Returns all packets that a host sends now.
fn sent(host: &mut SirdHost, now: Time) -> Vec<Packet<SirdHeader>> {
    std::iter::from_fn(|| host.poll_transmit(now)).collect()
}

fn request(src: u32, flow: u32, size: u64) -> Packet<SirdHeader> {
    make_control(SirdHeader::Request { flow, tx_slot: flow, size }, flow, src, 0)
}

/// Returns the packets that have credit now, by sender.
fn credits(host: &mut SirdHost, now: Time) -> Vec<(u32, u32)> {
    let credit = |p: &Packet<SirdHeader>| match p.header {
        SirdHeader::Credit { seq, .. } => Some((p.dst.get(), seq)),
        _ => None,
    };
    sent(host, now).iter().filter_map(credit).collect()
}

/// Credits until none is due before the first timeout of a message.
fn all_credits(host: &mut SirdHost, from: Time) -> Vec<(u32, u32)> {
    let mut all = credits(host, from);
    while host.poll_timeout() < from + Span::from_us(100) {
        let at = host.poll_timeout();
        host.handle_timeout(at);
        all.extend(credits(host, at));
    }
    all
}

/// Returns a packet of a message as its sender sends it.
fn data(sird: &Sird, (src, rx_slot): (u32, u32), seq: u32, size: u64) -> Packet<SirdHeader> {
    let mut packet = make_control(SirdHeader::Data { rx_slot, seq, csn: false }, 0, src, 0);
    packet.payload.len = sird.segmentation(size).payload_of(seq, size) as u16;
    packet.wire_bytes = sird.segmentation(size).wire_bytes(seq, size) as u16;
    packet
}

mod presets {
    use super::*;

    /// protocol-notes: B is 1.5 bandwidth-delay products, the mark of senders 0.5 and that of
    /// switches 1.25. In the authors' simulator the marks are 33 and 82 packets of 1538 B.
    #[test]
    fn thresholds_of_the_paper_are_those_of_the_reference_at_its_round_trip() {
        let bdp = Bytes::new(1_538) * 65;
        let full = PacketSizes::new(1_456, 82);
        let packet = CreditPackets { full, ..CreditPackets::default() };
        let paper = SirdConfig { packet, ..SirdConfig::paper() };
        let facts = FabricFacts { data_rtt: Rate::from_gbps(100).tx_time(bdp), ..facts() };
        let ecn = [paper.ecn_bytes(&facts), SirdConfig::reference().ecn_bytes(&facts)];
        assert_eq!(ecn, [Bytes::new(82 * 1_538); 2]);
        let [paper, reference] =
            [paper, SirdConfig::reference()].map(|c| c.derive(&facts).unwrap());
        assert_eq!(paper.mark_above, reference.mark_above);
        assert!(paper.credit.abs_diff(reference.credit) < 1_538);
        assert!(paper.sender_credit.abs_diff(reference.sender_credit) < 1_538);
    }

    #[test]
    fn credit_for_less_than_a_packet_is_refused() {
        let config = SirdConfig { credit_bytes: Some(1_499), ..SirdConfig::paper() };
        assert_eq!(config.derive(&facts()).unwrap_err().key, "credit-bytes");
        let config = SirdConfig { sender_credit_bytes: Some(1), ..SirdConfig::paper() };
        assert_eq!(config.derive(&facts()).unwrap_err().key, "sender-credit-bytes");
    }
}

mod limit {
    use super::super::control::{CreditLimit, LimitConfig};

    const LAW: LimitConfig = LimitConfig { gain: 0.08, min: 9_000, max: 90_000, full: 1_500 };

    /// A window of packets, all marked or none.
    fn window(limit: &mut CreditLimit, marked: bool) {
        for _ in 0..limit.get() / LAW.full {
            limit.on_packet(marked, limit.get(), &LAW);
        }
    }

    #[test]
    fn the_limit_grows_by_a_packet_a_window_and_is_cut_once_in_1_5_windows() {
        let mut limit = CreditLimit::new(&LAW);
        window(&mut limit, false);
        assert_eq!(limit.get(), LAW.max);
        let cuts = |limit: &mut CreditLimit| {
            let mut cuts = 0;
            for _ in 0..180 {
                let before = limit.get();
                limit.on_packet(true, before, &LAW);
                cuts += u32::from(limit.get() < before);
            }
            cuts
        };
        // 90 packets are one and a half windows of the largest limit.
        let cuts = cuts(&mut limit);
        assert!((1..=3).contains(&cuts), "{cuts}");
        let before = limit.get();
        window(&mut limit, false);
        let grown = limit.get() - before;
        assert!((1_300..=1_500).contains(&grown), "{grown}");
    }

    #[test]
    fn the_limit_stays_within_its_minimum_and_maximum() {
        let mut limit = CreditLimit::new(&LAW);
        (0..1_000).for_each(|_| {
            window(&mut limit, true);
            assert!(limit.get() >= LAW.min);
        });
        assert!(limit.get() < LAW.min + 3 * LAW.full, "{}", limit.get());
        (0..1_000).for_each(|_| window(&mut limit, false));
        assert_eq!(limit.get(), LAW.max);
    }

    /// The share of marked packets starts at zero and moves by its weight a window.
    #[test]
    fn rare_marks_cost_little() {
        let mut limit = CreditLimit::new(&LAW);
        window(&mut limit, true);
        assert!(limit.get() > LAW.max * 9 / 10, "{}", limit.get());
    }
}

mod receiving {
    use super::*;

    #[test]
    fn credits_are_paced_until_the_sender_has_its_limit() {
        let (mut host, sird) = host(SirdConfig::paper(), 0);
        host.handle_packet(Time::ZERO, &request(1, 0, 1_000_000));
        assert_eq!(credits(&mut host, Time::ZERO), [(1, 0)]);
        let at = host.poll_timeout();
        assert_eq!(at, Time::ZERO + sird.credit_interval);
        host.handle_timeout(at);
        assert_eq!(credits(&mut host, at), [(1, 1)]);
        let n = 2 + all_credits(&mut host, at).len() as u64;
        assert_eq!(n, sird.sender_credit / 1_500);
        // A packet that arrives is one more.
        let later = Time::ZERO + Span::from_us(50);
        host.handle_packet(later, &data(&sird, (1, 0), 0, 1_000_000));
        assert_eq!(credits(&mut host, later), [(1, n as u32)]);
    }

    #[test]
    fn all_senders_together_have_the_bucket() {
        let (mut host, sird) = host(SirdConfig::paper(), 0);
        for src in 1..5 {
            host.handle_packet(Time::ZERO, &request(src, 0, 1_000_000 * u64::from(src)));
        }
        let all = all_credits(&mut host, Time::ZERO);
        let of = |src| all.iter().filter(|&&(dst, _)| dst == src).count() as u64;
        let most = sird.sender_credit / 1_500;
        assert_eq!([of(1), of(2), of(3), of(4)], [most, sird.credit / 1_500 - most, 0, 0]);
    }

    #[test]
    fn senders_are_served_round_robin_by_that_policy() {
        let config =
            SirdConfig { receiver_policy: ReceiverPolicy::RoundRobin, ..SirdConfig::paper() };
        let (mut host, _) = host(config, 0);
        for src in 1..4 {
            host.handle_packet(Time::ZERO, &request(src, 0, 1_000_000 * u64::from(src)));
        }
        let all = all_credits(&mut host, Time::ZERO);
        let order: Vec<u32> = all[..7].iter().map(|&(src, _)| src).collect();
        assert_eq!(order, [1, 2, 3, 1, 2, 3, 1]);
    }

    /// Credit of packets that do not arrive is free after a timeout. They are the first to get new
    /// credit.
    #[test]
    fn credit_of_lost_packets_is_taken_back_and_given_again() {
        let (mut host, sird) = host(SirdConfig::paper(), 0);
        let size = 200_000;
        host.handle_packet(Time::ZERO, &request(1, 0, size));
        let first = all_credits(&mut host, Time::ZERO);
        host.handle_packet(Time::ZERO, &data(&sird, (1, 0), 1, size));
        let at = host.poll_timeout().max(Time::ZERO + sird.recovery.timeout);
        host.handle_timeout(at);
        assert_eq!(host.stats().credits_reclaimed, first.len() as u64 - 1);
        let again = all_credits(&mut host, at);
        assert_eq!(again[..2], [(1, 0), (1, 2)]);
        assert_eq!(host.receiver.outstanding().0, host.receiver.counted_outstanding(&sird));
    }

    /// A short message that has lost packets needs credit for them.
    #[test]
    fn missing_unscheduled_packets_get_credit() {
        let ((mut tx, sird), (mut rx, _)) =
            (host(SirdConfig::paper(), 1), host(SirdConfig::paper(), 0));
        submit(&mut tx, 0, 0, 4 * 1_460);
        let packets = sent(&mut tx, Time::ZERO);
        assert_eq!(packets.len(), 4);
        for seq in [0, 2] {
            rx.handle_packet(Time::ZERO, &packets[seq]);
        }
        assert_eq!(rx.receiver.outstanding().0, 2 * 1_500);
        let at = Time::ZERO + sird.recovery.timeout;
        rx.handle_timeout(at);
        let all = all_credits(&mut rx, at);
        assert_eq!(all, [(1, 1), (1, 3)]);
        assert_eq!(rx.receiver.outstanding().0, 2 * 1_500);
    }

    #[test]
    fn sird_receivers_recognise_retransmitted_packets_as_duplicates() {
        let ((mut tx, _), (mut rx, _)) =
            (host(SirdConfig::paper(), 1), host(SirdConfig::paper(), 0));
        submit(&mut tx, 0, 0, 1_000);
        let packets = sent(&mut tx, Time::ZERO);
        assert_eq!(rx.handle_packet(Time::ZERO, &packets[0]), Receipt::Fresh);
        assert!(matches!(rx.poll_event(), Some(Event::Delivered { .. })));
        assert_eq!(rx.handle_packet(Time::ZERO, &packets[0]), Receipt::Duplicate);
        assert_eq!(sent(&mut rx, Time::ZERO).len(), 2);
    }
}

mod sending {
    use super::*;

    fn credit(seq: u32, src: u32, msg: u32) -> Packet<SirdHeader> {
        make_control(SirdHeader::Credit { tx_slot: msg, rx_slot: 0, seq }, msg, src, 0)
    }

    #[test]
    fn short_messages_need_no_credit_and_long_ones_request_it() {
        let (mut host, sird) = host(SirdConfig::paper(), 0);
        submit(&mut host, 0, 1, sird.unscheduled);
        submit(&mut host, 1, 1, sird.unscheduled + 1);
        let packets = sent(&mut host, Time::ZERO);
        assert!(matches!(packets[0].header, SirdHeader::Request { flow: 1, .. }));
        assert!(packets[1..].iter().all(|p| {
            matches!(p.header, SirdHeader::Unscheduled { flow: 0, .. })
                && p.priority == Priority::HIGHEST
                && p.marks == Marks::ECN_CAPABLE
        }));
        assert_eq!(packets.len() as u64, 1 + sird.unscheduled / 1_460);
    }

    /// A packet carries the congestion flag while its sender has more credit than the threshold.
    #[test]
    fn data_is_marked_while_there_is_much_credit() {
        let config = SirdConfig { sender_mark_packets: Some(3), ..SirdConfig::paper() };
        let marks = |messages: u32| {
            let (mut host, _) = host(config.clone(), 0);
            (0..messages).for_each(|msg| submit(&mut host, msg, 1, 1_000_000));
            sent(&mut host, Time::ZERO);
            (0..6).for_each(|seq| {
                host.handle_packet(Time::ZERO, &credit(seq, 1, 0));
            });
            let packets = sent(&mut host, Time::ZERO);
            assert_eq!(host.credit(), 0);
            let is_marked =
                |p: &Packet<SirdHeader>| matches!(p.header, SirdHeader::Data { csn: true, .. });
            packets.iter().map(is_marked).collect::<Vec<_>>()
        };
        assert_eq!(marks(2), [true, true, true, false, false, false]);
        assert_eq!(marks(1), [false; 6], "one message cannot be ahead of others");
    }

    fn order(sender_policy: SenderPolicy) -> Vec<u32> {
        let (mut host, _) = host(SirdConfig { sender_policy, ..SirdConfig::paper() }, 0);
        for (msg, size) in [(0, 900_000), (1, 200_000), (2, 800_000)] {
            submit(&mut host, msg, 1 + msg, size);
        }
        sent(&mut host, Time::ZERO);
        for seq in 0..4 {
            for msg in 0..3 {
                host.handle_packet(Time::ZERO, &credit(seq, 1 + msg, msg));
            }
        }
        sent(&mut host, Time::ZERO).iter().map(|p| p.payload.msg.get()).collect()
    }

    #[test]
    fn every_other_packet_is_of_the_shortest_message() {
        assert_eq!(order(SenderPolicy::HalfFair)[..8], [1, 0, 1, 1, 1, 2, 2, 0]);
        let srpt = [1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0];
        assert_eq!(order(SenderPolicy::Srpt), srpt);
    }

    #[test]
    fn a_packet_credited_twice_is_sent_once_and_reported() {
        let (mut host, _) = host(SirdConfig::paper(), 0);
        submit(&mut host, 0, 1, 1_000_000);
        sent(&mut host, Time::ZERO);
        for _ in 0..2 {
            host.handle_packet(Time::ZERO, &credit(7, 1, 0));
        }
        let headers: Vec<SirdHeader> =
            sent(&mut host, Time::ZERO).iter().map(|p| p.header).collect();
        let data = SirdHeader::Data { rx_slot: 0, seq: 7, csn: false };
        assert_eq!(headers, [SirdHeader::Busy { rx_slot: 0 }, data]);
    }

    #[test]
    fn cancelling_a_message_removes_its_credit() {
        let (mut host, _) = host(SirdConfig::paper(), 0);
        submit(&mut host, 0, 1, 1_000_000);
        sent(&mut host, Time::ZERO);
        host.handle_packet(Time::ZERO, &credit(0, 1, 0));
        assert_eq!(host.credit(), 1_500);
        host.cancel(Time::ZERO, MsgId::new(0));
        assert_eq!((host.credit(), sent(&mut host, Time::ZERO).len()), (0, 0));
    }
}

mod accounting {
    use super::*;

    /// Next event at a receiver.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        PauseProbe { src: u32, packets: u64 },
        Arrive { pick: usize, csn: bool, ce: bool },
        Lose { pick: usize },
        Wait { us: u64 },
        Pause { src: u32, msg: u32 },
        Forget { src: u32 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (1u32..6, 1u64..400).prop_map(|(src, packets)| Step::PauseProbe { src, packets }),
            12 => (any::<usize>(), any::<bool>(), any::<bool>())
                .prop_map(|(pick, csn, ce)| Step::Arrive { pick, csn, ce }),
            2 => any::<usize>().prop_map(|pick| Step::Lose { pick }),
            6 => (0u64..20).prop_map(|us| Step::Wait { us }),
            1 => (4_000u64..20_000).prop_map(|us| Step::Wait { us }),
            1 => (1u32..6, 0u32..4).prop_map(|(src, msg)| Step::Pause { src, msg }),
            1 => (1u32..6).prop_map(|src| Step::Forget { src }),
        ]
    }

    /// A receiver, and credits that have been sent and not answered.
    struct World {
        host: SirdHost,
        sird: Arc<Sird>,
        now: Time,
        flows: [u32; 6],
        open: Vec<(Packet<SirdHeader>, u64)>,
        sizes: std::collections::BTreeMap<(u32, u32), u64>,
    }

    impl World {
        fn collect(&mut self) {
            for packet in sent(&mut self.host, self.now) {
                let SirdHeader::Credit { rx_slot, seq, .. } = packet.header else { continue };
                let (src, msg) = (packet.dst.get(), packet.payload.msg.get());
                let Some(&size) = self.sizes.get(&(src, msg)) else { continue };
                let mut answer = data(&self.sird, (src, rx_slot), seq, size);
                answer.payload.msg = packet.payload.msg;
                self.open.push((answer, size));
            }
        }

        fn wait(&mut self, us: u64) {
            let until = self.now + Span::from_us(us);
            while self.host.poll_timeout() <= until {
                self.now = self.host.poll_timeout().max(self.now);
                self.host.handle_timeout(self.now);
                self.collect();
            }
            self.now = until;
        }

        fn take(&mut self, step: Step) {
            match step {
                Step::PauseProbe { src, packets } => {
                    let msg = self.flows[src as usize];
                    self.flows[src as usize] += 1;
                    let size = self.sird.unscheduled + packets * 1_460 + packets;
                    self.sizes.insert((src, msg), size);
                    self.host.handle_packet(self.now, &request(src, msg, size));
                }
                Step::Arrive { pick, csn, ce } if !self.open.is_empty() => {
                    let (mut packet, _) = self.open.swap_remove(pick % self.open.len());
                    if let SirdHeader::Data { csn: signalled, .. } = &mut packet.header {
                        *signalled = csn;
                    }
                    packet.marks = if ce { Marks::CONGESTION } else { Marks::NONE };
                    self.host.handle_packet(self.now, &packet);
                }
                Step::Lose { pick } if !self.open.is_empty() => {
                    self.open.swap_remove(pick % self.open.len());
                }
                Step::Wait { us } => self.wait(us),
                Step::Pause { src, msg } => {
                    self.host.pause(self.now, NodeId::new(src), MsgId::new(msg));
                    self.host.resume(self.now, NodeId::new(src), MsgId::new(msg));
                }
                Step::Forget { src } => {
                    self.host.forget_peer(self.now, NodeId::new(src));
                    self.flows[src as usize] = 0;
                    self.sizes.retain(|&(of, _), _| of != src);
                    self.open.retain(|(packet, _)| packet.src.get() != src);
                }
                Step::Arrive { .. } | Step::Lose { .. } => {}
            }
            self.collect();
        }

        /// Checks limits. Earlier credit of a sender may exceed a limit that has shrunk since.
        fn check(&self, before: &[(u32, u64, u64)]) -> Result<(), TestCaseError> {
            let (all, each) = self.host.receiver.outstanding();
            let all_before = before.iter().map(|&(_, bytes, _)| bytes).sum::<u64>();
            let unscheduled = self.sird.wire_bytes(self.sird.unscheduled);
            prop_assert!(all <= self.sird.credit.max(all_before + unscheduled), "{all}");
            prop_assert_eq!(all, each.iter().map(|&(_, bytes, _)| bytes).sum::<u64>());
            prop_assert_eq!(all, self.host.receiver.counted_outstanding(&self.sird));
            for &(number, bytes, limit) in &each {
                let had = before.iter().find(|of| of.0 == number).map_or(0, |of| of.1);
                prop_assert!(limit <= self.sird.sender_credit);
                // The limit may be exceeded by a packet, and by unscheduled ones that have arrived.
                let most = (limit + self.sird.full()).max(had + unscheduled);
                prop_assert!(bytes <= most, "{bytes} of {limit}, {had} before");
            }
            Ok(())
        }
    }

    proptest! {
        /// Outstanding credit is that of the packets that may arrive, never above the bucket; that
        /// of a sender grows up to its limit only.
        #[test]
        fn credit_is_conserved_and_within_its_limits(
            steps in proptest::collection::vec(step(), 0..300),
        ) {
            let (host, sird) = host(SirdConfig::paper(), 0);
            let mut world = World {
                host,
                sird,
                now: Time::ZERO,
                flows: [0; 6],
                open: Vec::new(),
                sizes: std::collections::BTreeMap::new(),
            };
            for step in steps {
                let (_, before) = world.host.receiver.outstanding();
                world.take(step);
                world.check(&before)?;
            }
        }
    }
}
