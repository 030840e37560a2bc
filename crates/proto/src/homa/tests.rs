//! Tests of Homa's parts. Whole runs are in `tests/` of this crate.

use std::sync::Arc;

use rampmeter_types::{
    Bytes, Event, FabricFacts, Message, MsgId, NodeId, Packet, Priority, Protocol, Purpose, Rate,
    Receipt, Rng, Span, Time,
};

use super::wire::HomaHeader;
use super::{AeolusConfig, Homa, HomaAeolusTransport, HomaConfig, HomaHost};
use crate::keys::PacketSizes;
use crate::registered::{Deployment, RegisteredTransport, Site};
use crate::test_packet::make_control;

fn facts() -> FabricFacts {
    FabricFacts {
        n_hosts: 16,
        access_rate: Rate::from_gbps(100),
        core_rate: None,
        data_rtt: Span::from_us(6),
        control_rtt: Span::from_us(5),
        abort_timeout_min: Span::ZERO,
    }
}

fn host(config: HomaConfig, node: u32) -> (HomaHost, Arc<Homa>) {
    let homa = Arc::new(config.derive(&facts()).unwrap());
    let rng = Rng::new(1, 0, Purpose::Test);
    (HomaHost::new(Arc::clone(&homa), NodeId::new(node), rng, Time::ZERO), homa)
}

fn submit(host: &mut HomaHost, msg: u32, dst: u32, size: u64) {
    host.submit(Time::ZERO, Message::new(MsgId::new(msg), NodeId::new(dst), Bytes::new(size)));
}

/// Returns all packets that a host sends now.
fn sent(host: &mut HomaHost, now: Time) -> Vec<Packet<HomaHeader>> {
    std::iter::from_fn(|| host.poll_transmit(now)).collect()
}

fn grants(packets: &[Packet<HomaHeader>]) -> Vec<(u32, u32, u8)> {
    let grant = |p: &Packet<HomaHeader>| match p.header {
        HomaHeader::Grant { credit, priority, .. } => Some((p.dst.get(), credit, priority)),
        _ => None,
    };
    packets.iter().filter_map(grant).collect()
}

mod priorities {
    use super::*;

    #[test]
    fn sizes_up_to_a_cutoff_have_its_level() {
        let cutoffs = [300, 2_000, 9_000, 9_000, 9_000, 9_000, 9_000];
        let config = HomaConfig { unscheduled_priorities: 4, cutoffs, ..HomaConfig::paper() };
        let homa = config.derive(&facts()).unwrap();
        let sizes = [1, 300, 301, 2_000, 9_000, 9_001, 1_000_000];
        let levels = sizes.map(|size| homa.unscheduled_priority(size).get());
        assert_eq!(levels, [0, 0, 1, 1, 2, 3, 3]);
    }

    /// §3.4: with fewer messages than levels the highest ones stay free, for a shorter one that
    /// arrives.
    #[test]
    fn active_messages_take_the_lowest_levels() {
        let homa = HomaConfig::paper().derive(&facts()).unwrap();
        let levels =
            |n: usize| -> Vec<u8> { (0..n).map(|rank| homa.scheduled_priority(rank, n)).collect() };
        assert_eq!(levels(1), [7]);
        assert_eq!(levels(3), [5, 6, 7]);
        assert_eq!(levels(7), [1, 2, 3, 4, 5, 6, 7]);
        // More senders than levels: the first ones share the highest.
        assert_eq!(levels(9), [1, 1, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn every_level_is_of_scheduled_or_unscheduled_packets() {
        let config = HomaConfig { priorities: 4, unscheduled_priorities: 4, ..HomaConfig::paper() };
        assert_eq!(config.derive(&facts()).unwrap_err().key, "unscheduled-priorities");
    }
}

mod cutoffs {
    use super::super::cutoffs::split_priorities;

    /// Half of the messages have 100 B, half 900 B, all unscheduled. They get seven of eight
    /// levels. All cut-offs are at the larger size, which has 90 % of the bytes.
    #[test]
    fn levels_follow_the_share_of_unscheduled_bytes_and_cutoffs_balance_them() {
        let all = split_priorities(&[(100.0, 0.5), (900.0, 1.0)], 10_000.0, 8);
        assert_eq!((all.unscheduled_share, all.unscheduled_priorities), (1.0, 7));
        assert_eq!(all.cutoffs, [900; 7]);
        // Sizes 1 to 1000, each as likely: bytes up to c are c^2, so that borders are at the roots.
        let even: Vec<(f64, f64)> =
            (1..=1_000).map(|n| (f64::from(n), f64::from(n) / 1e3)).collect();
        let half = split_priorities(&even, 250.0, 8);
        // 250 - 250^2 / 2000 of 500.5 bytes a message.
        assert!((half.unscheduled_share - 0.437).abs() < 0.001, "{half:?}");
        assert_eq!(half.unscheduled_priorities, 3);
        // A third of the 218.9 unscheduled bytes a message: 250 (c - 125) / 1000 = 73.0 at 417.
        assert_eq!(half.cutoffs[..2], [417, 709]);
        assert!(half.cutoffs.is_sorted());
    }

    #[test]
    fn scheduled_and_unscheduled_packets_have_at_least_one_level() {
        let [short, long] =
            [[(100.0, 1.0)], [(1e9, 1.0)]].map(|cdf| split_priorities(&cdf, 10_000.0, 8));
        assert_eq!((short.unscheduled_priorities, long.unscheduled_priorities), (7, 1));
    }
}

mod sending {
    use super::*;

    #[test]
    fn the_first_round_trip_is_sent_at_once_and_the_rest_by_grants() {
        let (mut host, homa) = host(HomaConfig::paper(), 0);
        submit(&mut host, 0, 1, 1_000_000);
        let first = sent(&mut host, Time::ZERO);
        assert_eq!(first.len() as u32, homa.unscheduled);
        assert!(first.iter().all(|p| p.priority == Priority::HIGHEST));
        let grant = |credit, priority| HomaHeader::Grant {
            tx_slot: 0,
            rx_slot: 4,
            credit,
            priority,
            incast: false,
        };
        host.handle_packet(Time::ZERO, &make_control(grant(3, 6), 0, 1, 0));
        let granted = sent(&mut host, Time::ZERO);
        assert_eq!(granted.len(), 3);
        assert!(granted.iter().all(|p| p.priority == Priority::new(6)));
        // An older grant that arrives late has no effect.
        host.handle_packet(Time::ZERO, &make_control(grant(2, 1), 0, 1, 0));
        assert!(sent(&mut host, Time::ZERO).is_empty());
    }

    #[test]
    fn the_message_with_the_fewest_remaining_bytes_is_sent_first() {
        let (mut host, _) = host(HomaConfig::paper(), 0);
        for (msg, size) in [(0, 20_000), (1, 3_000), (2, 5_000)] {
            submit(&mut host, msg, 1, size);
        }
        let order: Vec<u32> =
            sent(&mut host, Time::ZERO).iter().map(|p| p.payload.msg.get()).collect();
        assert_eq!(order[..7], [1, 1, 1, 2, 2, 2, 2]);
        assert!(order[7..].iter().all(|&msg| msg == 0));
    }

    /// §3.7: packets that wait behind a shorter message are not lost.
    #[test]
    fn a_busy_sender_reports_it_and_retransmits_later() {
        let (mut host, _) = host(HomaConfig::paper(), 0);
        submit(&mut host, 0, 1, 20_000);
        sent(&mut host, Time::ZERO);
        submit(&mut host, 1, 2, 1_000);
        let resend = HomaHeader::Resend { tx_slot: 0, rx_slot: 9, seq: 2, count: 2 };
        host.handle_packet(Time::ZERO, &make_control(resend, 0, 1, 0));
        let headers: Vec<HomaHeader> =
            sent(&mut host, Time::ZERO).iter().map(|p| p.header).collect();
        assert_eq!(headers[0], HomaHeader::Busy { rx_slot: 9 });
        assert!(matches!(headers[1], HomaHeader::Unscheduled { flow: 0, seq: 0, .. }));
        assert_eq!(headers[2..], [2, 3].map(|seq| HomaHeader::Data { rx_slot: 9, seq }));
    }

    /// §3.6: a peer that awaits many messages has one packet without a grant.
    #[test]
    fn a_crowded_receiver_gets_few_unscheduled_bytes() {
        let (mut host, _) = host(HomaConfig::paper(), 0);
        submit(&mut host, 0, 1, 1_000);
        sent(&mut host, Time::ZERO);
        let ack = |incast| make_control(HomaHeader::Ack { tx_slot: 0, incast }, 0, 1, 0);
        host.handle_packet(Time::ZERO, &ack(true));
        submit(&mut host, 1, 1, 50_000);
        assert_eq!(sent(&mut host, Time::ZERO).len(), 1);
        host.handle_packet(Time::ZERO, &ack(false));
        submit(&mut host, 2, 1, 50_000);
        assert_eq!(sent(&mut host, Time::ZERO).len(), 35);
    }
}

mod receiving {
    use super::*;

    /// Returns the first packet of message `msg` of `size` from `src`.
    fn first(homa: &Homa, src: u32, msg: u32, size: u64, seq: u32) -> Packet<HomaHeader> {
        let header = HomaHeader::Unscheduled {
            flow: msg,
            tx_slot: msg,
            seq,
            size,
            unscheduled: homa.unscheduled,
            answers: 0,
            incast: false,
        };
        let mut packet = make_control(header, msg, src, 0);
        packet.wire_bytes = 1_500;
        packet.payload.len = 1_460;
        packet
    }

    /// §3.3: a bandwidth-delay product may be in flight, so that each packet that arrives is one to
    /// grant.
    #[test]
    fn each_received_packet_grants_another() {
        let (mut host, homa) = host(HomaConfig::paper(), 0);
        for seq in 0..3 {
            host.handle_packet(Time::ZERO, &first(&homa, 1, 0, 1_000_000, seq));
        }
        assert_eq!(grants(&sent(&mut host, Time::ZERO)), [(1, 1, 7), (1, 2, 7), (1, 3, 7)]);
    }

    /// §3.5: as many senders as the degree of overcommitment, those with the fewest bytes to grant.
    /// Only one message of each.
    #[test]
    fn as_many_senders_have_grants_as_the_overcommitment() {
        let config = HomaConfig { overcommitment: Some(2), ..HomaConfig::paper() };
        let (mut host, homa) = host(config, 0);
        for (src, msg, size) in [(1, 0, 900_000), (1, 1, 800_000), (2, 0, 700_000), (3, 0, 600_000)]
        {
            host.handle_packet(Time::ZERO, &first(&homa, src, msg, size, 0));
        }
        let granted: Vec<u32> =
            grants(&sent(&mut host, Time::ZERO)).iter().map(|&(dst, ..)| dst).collect();
        // Alone, then the shorter message of the same sender, then each that is among the first
        // two.
        assert_eq!(granted, [1, 1, 2, 3]);
        host.handle_packet(Time::ZERO, &first(&homa, 1, 1, 800_000, 1));
        assert!(grants(&sent(&mut host, Time::ZERO)).is_empty());
        host.handle_packet(Time::ZERO, &first(&homa, 3, 0, 600_000, 1));
        assert_eq!(grants(&sent(&mut host, Time::ZERO)), [(3, 2, 6)]);
    }

    /// protocol-notes: the next sender gets grants after the last grant, not after the last byte.
    #[test]
    fn the_last_grant_hands_over_to_the_next_sender() {
        let config = HomaConfig { overcommitment: Some(1), ..HomaConfig::paper() };
        let (mut host, homa) = host(config, 0);
        let short = u64::from(homa.unscheduled) * 1_460 + 1_460;
        for (src, size) in [(1, short), (2, 900_000)] {
            host.handle_packet(Time::ZERO, &first(&homa, src, 0, size, 0));
        }
        // Nothing of the first sender's scheduled packet has arrived.
        let granted: Vec<u32> =
            grants(&sent(&mut host, Time::ZERO)).iter().map(|&(dst, ..)| dst).collect();
        assert_eq!(granted, [1, 2]);
    }

    #[test]
    fn grants_of_one_packet_are_paced() {
        let config =
            HomaConfig { grants: super::super::config::Grants::Packet, ..HomaConfig::paper() };
        let (mut host, homa) = host(config, 0);
        for seq in 0..4 {
            host.handle_packet(Time::ZERO, &first(&homa, 1, 0, 1_000_000, seq));
        }
        assert_eq!(grants(&sent(&mut host, Time::ZERO)), [(1, 1, 7)]);
        let packet = Span::from_ns(120);
        for n in 1..4 {
            let at = Time::ZERO + packet * n;
            assert_eq!(host.poll_timeout(), at);
            host.handle_timeout(at);
            assert_eq!(grants(&sent(&mut host, at)), [(1, n as u32 + 1, 7)]);
        }
        assert!(host.poll_timeout() > Time::ZERO + Span::from_us(100));
    }

    /// §3.7.
    #[test]
    fn missing_packets_are_requested_again_unless_the_sender_is_busy() {
        let (mut host, homa) = host(HomaConfig::paper(), 0);
        for seq in [0, 3] {
            host.handle_packet(Time::ZERO, &first(&homa, 1, 0, 10_000, seq));
        }
        let at = host.poll_timeout();
        assert_eq!(at, Time::ZERO + homa.recovery.timeout);
        let before = Time::from_ps(at.as_ps() - 1);
        let busy = make_control(HomaHeader::Busy { rx_slot: 0 }, 0, 1, 0);
        host.handle_packet(before, &busy);
        host.handle_timeout(at);
        assert!(sent(&mut host, at).is_empty());
        let later = host.poll_timeout();
        assert_eq!(later, before + homa.recovery.timeout);
        host.handle_timeout(later);
        let sent_headers: Vec<HomaHeader> =
            sent(&mut host, later).iter().map(|p| p.header).collect();
        let resend = |seq, count| HomaHeader::Resend { tx_slot: 0, rx_slot: 0, seq, count };
        assert_eq!(sent_headers, [resend(1, 2), resend(4, 3)]);
    }

    #[test]
    fn homa_receivers_recognise_retransmitted_packets_as_duplicates() {
        let (mut host, homa) = host(HomaConfig::paper(), 0);
        let packet = first(&homa, 1, 0, 1_000, 0);
        assert_eq!(host.handle_packet(Time::ZERO, &packet), Receipt::Fresh);
        assert!(matches!(host.poll_event(), Some(Event::Delivered { .. })));
        assert_eq!(host.handle_packet(Time::ZERO, &packet), Receipt::Duplicate);
        assert_eq!(host.poll_event(), None);
        let acks = sent(&mut host, Time::ZERO);
        assert_eq!(acks.len(), 2);
    }
}

mod requests {
    use super::super::config::Exchange;
    use super::*;

    fn rpc() -> HomaConfig {
        HomaConfig { exchange: Exchange::Rpc, incast_messages: 1, ..HomaConfig::paper() }
    }

    fn deliver(to: &mut HomaHost, packets: &[Packet<HomaHeader>], now: Time) {
        packets.iter().for_each(|packet| {
            to.handle_packet(now, packet);
        });
    }

    #[test]
    fn an_answer_acknowledges_its_request() {
        let ((mut client, _), (mut server, _)) = (host(rpc(), 0), host(rpc(), 1));
        submit(&mut client, 0, 1, 100);
        deliver(&mut server, &sent(&mut client, Time::ZERO), Time::ZERO);
        assert!(sent(&mut server, Time::ZERO).is_empty());
        submit(&mut server, 7, 0, 500);
        let answer = sent(&mut server, Time::ZERO);
        assert_eq!(answer.len(), 1);
        deliver(&mut client, &answer, Time::ZERO);
        assert_eq!(client.poll_event(), Some(Event::Completed { msg: MsgId::new(0) }));
        let delivered = Event::Delivered { src: NodeId::new(1), msg: MsgId::new(7) };
        assert_eq!(client.poll_event(), Some(delivered));
    }

    #[test]
    fn a_request_without_an_answer_is_acknowledged_after_a_while() {
        let ((mut client, _), (mut server, homa)) = (host(rpc(), 0), host(rpc(), 1));
        submit(&mut client, 0, 1, 100);
        deliver(&mut server, &sent(&mut client, Time::ZERO), Time::ZERO);
        let at = server.poll_timeout();
        assert_eq!(at, Time::ZERO + homa.answer_timeout);
        server.handle_timeout(at);
        deliver(&mut client, &sent(&mut server, at), at);
        assert_eq!(client.poll_event(), Some(Event::Completed { msg: MsgId::new(0) }));
        // Timers that still run request nothing.
        while server.poll_timeout() < Time::NEVER {
            let at = server.poll_timeout();
            server.handle_timeout(at);
            assert!(sent(&mut server, at).is_empty());
        }
    }

    /// §3.6: the client counts its requests, and servers learn of it from them.
    #[test]
    fn answers_to_a_client_with_many_requests_are_short_at_first() {
        let ((mut client, _), (mut server, _)) = (host(rpc(), 0), host(rpc(), 1));
        for msg in 0..3 {
            submit(&mut client, msg, 1, 100);
        }
        deliver(&mut server, &sent(&mut client, Time::ZERO), Time::ZERO);
        submit(&mut server, 0, 0, 50_000);
        assert_eq!(sent(&mut server, Time::ZERO).len(), 1);
    }
}

mod aeolus {
    use super::*;
    use rampmeter_types::packet::Marks;

    #[test]
    fn unscheduled_packets_are_droppable_and_a_probe_follows_them() {
        let (mut host, homa) = host(HomaConfig::aeolus(), 0);
        submit(&mut host, 0, 1, 1_000_000);
        let packets = sent(&mut host, Time::ZERO);
        let (probe, data) = packets.split_last().unwrap();
        assert_eq!(data.len() as u32, homa.unscheduled);
        assert!(data.iter().all(|p| p.marks.contains(Marks::UNSCHEDULED)));
        assert!(matches!(probe.header, HomaHeader::Probe { is_burst_over: true, .. }));
        assert!(!probe.marks.contains(Marks::UNSCHEDULED) && probe.priority == data[0].priority);
    }

    /// Three of five packets are dropped: they are granted when the probe has arrived, and
    /// retransmitted.
    #[test]
    fn dropped_packets_are_retransmitted_as_scheduled_packets() {
        let ((mut tx, homa), (mut rx, _)) =
            (host(HomaConfig::aeolus(), 0), host(HomaConfig::aeolus(), 1));
        submit(&mut tx, 0, 1, 5 * 1_460);
        let packets = sent(&mut tx, Time::ZERO);
        assert_eq!(packets.len(), 6);
        for packet in [&packets[0], &packets[3], &packets[5]] {
            rx.handle_packet(Time::ZERO, packet);
        }
        let at = rx.poll_timeout();
        assert_eq!(at, Time::ZERO + homa.settle_time);
        rx.handle_timeout(at);
        let answers = sent(&mut rx, at);
        let n_sacks =
            answers.iter().filter(|p| matches!(p.header, HomaHeader::Sack { .. })).count();
        assert_eq!((n_sacks, grants(&answers)), (2, vec![(0, 3, 7)]));
        answers.iter().for_each(|packet| {
            tx.handle_packet(Time::ZERO, packet);
        });
        let again = sent(&mut tx, Time::ZERO);
        let seqs: Vec<u64> = again.iter().map(|p| p.payload.offset / 1_460).collect();
        assert_eq!(seqs, [1, 2, 4]);
        for packet in &again {
            assert!(packet.marks == Marks::NONE && packet.priority == Priority::new(7));
            assert_eq!(rx.handle_packet(Time::ZERO, packet), Receipt::Fresh);
        }
        assert!(matches!(rx.poll_event(), Some(Event::Delivered { .. })));
    }
}

mod between_hosts {
    use super::*;

    #[test]
    fn homa_aeolus_is_refused_between_real_hosts() {
        let deployment = Deployment::Hosts(PacketSizes::new(1_400, 134));
        let site = Site { facts: facts(), deployment, lower: None };
        let error = HomaAeolusTransport::configure(AeolusConfig::default(), &site).unwrap_err();
        let expected = "name: expected a transport that runs without selective dropping, got \
                    homa-aeolus";
        assert_eq!(error.to_string(), expected);
        const { assert!(!HomaAeolusTransport::ON_HOSTS) };
    }
}
