//! NDP's mechanisms, one host at a time.

use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::*;

use super::config::{Ndp, NdpConfig, PathPenalty, PullOrder};
use super::wire::NdpHeader;
use super::{NdpHost, NdpStats, NdpTransport};
use crate::keys::PacketSizes;
use crate::registered::{Deployment, RegisteredTransport, Site};

const FACTS: FabricFacts = FabricFacts {
    n_hosts: 8,
    access_rate: Rate::from_gbps(100),
    core_rate: None,
    data_rtt: Span::from_ns(5_800),
    control_rtt: Span::from_ns(5_216),
    abort_timeout_min: Span::ZERO,
};

fn ndp_of(config: NdpConfig) -> Arc<Ndp> {
    Arc::new(config.derive(&FACTS, 4).unwrap())
}

fn host(node: u32, ndp: &Arc<Ndp>) -> NdpHost {
    let rng = Rng::new(1, u64::from(node), Purpose::Endpoint);
    NdpHost::new(Arc::clone(ndp), NodeId::new(node), rng, Time::ZERO)
}

fn message(id: u32, dst: u32, packets: u64) -> Message {
    Message::new(MsgId::new(id), NodeId::new(dst), Bytes::new(packets * 1460))
}

/// Returns all packets that a host sends now.
fn sent(host: &mut NdpHost, now: Time) -> Vec<Packet<NdpHeader>> {
    std::iter::from_fn(|| host.poll_transmit(now)).collect()
}

fn seqs(packets: &[Packet<NdpHeader>]) -> Vec<u32> {
    let seq = |p: &Packet<NdpHeader>| match p.header {
        NdpHeader::Data { seq, .. } => Some(seq),
        _ => None,
    };
    packets.iter().filter_map(seq).collect()
}

/// Returns a packet without its payload, as a switch forwards it.
fn trimmed(packet: &Packet<NdpHeader>) -> Packet<NdpHeader> {
    let payload = PayloadRef { len: 0, ..packet.payload };
    let marks = packet.marks.union(Marks::TRIMMED);
    Packet { payload, marks, wire_bytes: 64, priority: Priority::HIGHEST, ..*packet }
}

/// Returns a trimmed packet as a switch returns it.
fn returned(packet: &Packet<NdpHeader>) -> Packet<NdpHeader> {
    let packet = trimmed(packet);
    let marks = packet.marks.union(Marks::RETURNED);
    Packet { src: packet.dst, dst: packet.src, marks, ..packet }
}

fn ack(to: &Packet<NdpHeader>, cumulative: u32, pull: u32) -> Packet<NdpHeader> {
    answer(to, |tx_slot, seq| NdpHeader::Ack { tx_slot, seq, cumulative, pull, path: to.path })
}

fn nack(to: &Packet<NdpHeader>, pull: u32) -> Packet<NdpHeader> {
    answer(to, |tx_slot, seq| NdpHeader::Nack { tx_slot, seq, pull, path: to.path })
}

fn answer(to: &Packet<NdpHeader>, header: impl Fn(u32, u32) -> NdpHeader) -> Packet<NdpHeader> {
    let NdpHeader::Data { tx_slot, seq, .. } = to.header else { panic!("{to:?}") };
    let payload = PayloadRef { len: 0, ..to.payload };
    let (src, dst, priority) = (to.dst, to.src, Priority::HIGHEST);
    let header = header(tx_slot, seq);
    Packet { header, payload, src, dst, wire_bytes: 64, path: 0, priority, marks: Marks::NONE }
}

mod sender {
    use super::*;

    #[test]
    fn a_flow_sends_its_window_at_once_and_then_a_packet_for_each_pull() {
        let ndp = ndp_of(NdpConfig { window_initial: Some(4), ..NdpConfig::paper() });
        let mut host = host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 10));
        let first = sent(&mut host, Time::ZERO);
        assert_eq!(seqs(&first), [0, 1, 2, 3]);
        assert!(host.handle_packet(Time::ZERO, &ack(&first[0], 1, 0)) == Receipt::Control);
        assert!(sent(&mut host, Time::ZERO).is_empty(), "an acknowledgement alone sends nothing");
        host.handle_packet(Time::ZERO, &ack(&first[1], 2, 2));
        assert_eq!(seqs(&sent(&mut host, Time::ZERO)), [4, 5]);
        // Pulls are cumulative: an old one has no effect.
        host.handle_packet(Time::ZERO, &ack(&first[2], 3, 1));
        assert!(sent(&mut host, Time::ZERO).is_empty());
    }

    #[test]
    fn a_refused_packet_waits_for_a_pull_and_precedes_new_ones() {
        let ndp = ndp_of(NdpConfig { window_initial: Some(4), ..NdpConfig::paper() });
        let mut host = host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 10));
        let first = sent(&mut host, Time::ZERO);
        host.handle_packet(Time::ZERO, &nack(&first[2], 0));
        host.handle_packet(Time::ZERO, &nack(&first[2], 0));
        assert!(sent(&mut host, Time::ZERO).is_empty());
        host.handle_packet(Time::ZERO, &ack(&first[0], 1, 2));
        assert_eq!(seqs(&sent(&mut host, Time::ZERO)), [2, 4]);
    }

    #[test]
    fn a_returned_packet_is_sent_at_once_only_without_a_pending_pull() {
        let ndp = ndp_of(NdpConfig { window_initial: Some(3), ..NdpConfig::paper() });
        let mut host = host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 3));
        let first = sent(&mut host, Time::ZERO);
        host.handle_packet(Time::ZERO, &returned(&first[0]));
        assert!(sent(&mut host, Time::ZERO).is_empty(), "two packets are on their way");
        host.handle_packet(Time::ZERO, &nack(&first[1], 0));
        host.handle_packet(Time::ZERO, &returned(&first[2]));
        assert!(sent(&mut host, Time::ZERO).is_empty(), "the refused packet brings a pull");
        host.handle_packet(Time::ZERO, &nack(&first[1], 1));
        assert_eq!(seqs(&sent(&mut host, Time::ZERO)), [0]);
        assert_eq!(host.stats().returned, 2);

        let mut host = super::host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 3));
        let first = sent(&mut host, Time::ZERO);
        for packet in &first {
            host.handle_packet(Time::ZERO, &returned(packet));
        }
        assert_eq!(seqs(&sent(&mut host, Time::ZERO)), [0], "all came back: one tries again");
    }

    #[test]
    fn flows_of_a_host_are_served_round_robin() {
        let ndp = ndp_of(NdpConfig { window_initial: Some(3), ..NdpConfig::paper() });
        let mut host = host(0, &ndp);
        (0..3).for_each(|id| host.submit(Time::ZERO, message(id, 1 + id, 3)));
        let order: Vec<u32> =
            sent(&mut host, Time::ZERO).iter().map(|p| p.payload.msg.get()).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn unanswered_packets_are_retransmitted_and_finally_abandoned() {
        let config = NdpConfig { window_initial: Some(3), attempts_max: 2, ..NdpConfig::paper() };
        let ndp = ndp_of(config);
        let mut host = host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 5));
        let first = sent(&mut host, Time::ZERO);
        let later = Time::ZERO + Span::from_us(3);
        host.handle_packet(later, &ack(&first[1], 0, 0));
        assert_eq!(host.poll_timeout(), Time::ZERO + ndp.rto, "since the first packet");
        for n in 1..=2 {
            let now = host.poll_timeout();
            host.handle_timeout(now);
            assert_eq!(host.poll_timeout(), now + ndp.rto * (1 << n), "timeouts double");
            assert_eq!(seqs(&sent(&mut host, now)), [0, 2]);
        }
        let now = host.poll_timeout();
        host.handle_timeout(now);
        assert_eq!(host.poll_event(), Some(Event::Failed { msg: MsgId::new(0) }));
        assert_eq!(host.message_counts(), Some((0, 0)));
    }

    #[test]
    fn paths_are_permuted_packet_by_packet() {
        let ndp = ndp_of(NdpConfig { window_initial: Some(40), ..NdpConfig::reference() });
        assert_eq!(ndp.config.path_penalty, PathPenalty::None);
        let mut host = host(0, &ndp);
        host.submit(Time::ZERO, message(0, 1, 40));
        for round in sent(&mut host, Time::ZERO).chunks(4) {
            let mut paths: Vec<u16> = round.iter().map(|p| p.path).collect();
            assert!(round.iter().all(|p| p.marks.contains(Marks::ROUTED)));
            paths.sort_unstable();
            assert_eq!(paths, [0, 1, 2, 3]);
        }
    }
}

mod receiver {
    use super::*;

    /// Sends `packets` of a flow of host `src` to a receiver; `is_trimmed` is true for those that
    /// lose their payload. Returns the receiver's answers.
    fn arrive(
        receiver: &mut NdpHost,
        now: Time,
        packets: &[Packet<NdpHeader>],
        is_trimmed: impl Fn(u32) -> bool,
    ) -> Vec<NdpHeader> {
        for (packet, seq) in packets.iter().zip(seqs(packets)) {
            let packet = if is_trimmed(seq) { trimmed(packet) } else { *packet };
            receiver.handle_packet(now, &packet);
        }
        sent(receiver, now).iter().map(|p| p.header).collect()
    }

    fn packets_of(src: u32, id: u32, packets: u64, ndp: &Arc<Ndp>) -> Vec<Packet<NdpHeader>> {
        let mut sender = host(src, ndp);
        sender.submit(Time::ZERO, message(id, 7, packets));
        sent(&mut sender, Time::ZERO)
    }

    /// Returns the pulls that a receiver sends until its queue is empty: when, and to whom.
    fn pulls(receiver: &mut NdpHost) -> Vec<(Time, u32)> {
        let mut pulls = Vec::new();
        while receiver.poll_timeout() < Time::ZERO + Span::from_us(500) {
            let now = receiver.poll_timeout();
            receiver.handle_timeout(now);
            for packet in sent(receiver, now) {
                assert!(matches!(packet.header, NdpHeader::Pull { .. }));
                pulls.push((now, packet.dst.get()));
            }
        }
        pulls
    }

    #[test]
    fn payload_is_acknowledged_and_a_header_refused_at_once() {
        let ndp = ndp_of(NdpConfig::paper());
        let mut receiver = host(7, &ndp);
        let packets = packets_of(0, 0, 3, &ndp);
        let answers = arrive(&mut receiver, Time::ZERO, &packets[..2], |seq| seq == 1);
        assert!(matches!(answers[0], NdpHeader::Ack { seq: 0, cumulative: 1, pull: 1, .. }));
        assert!(matches!(answers[1], NdpHeader::Nack { seq: 1, pull: 1, .. }), "{answers:?}");
    }

    #[test]
    fn pulls_are_one_packet_time_apart_for_any_number_of_senders() {
        let ndp = ndp_of(NdpConfig::paper());
        let mut receiver = host(7, &ndp);
        for src in 0..4 {
            let packets = packets_of(src, src, 9, &ndp);
            arrive(&mut receiver, Time::ZERO, &packets[..3], |_| src % 2 == 0);
        }
        let pulls = pulls(&mut receiver);
        // An answer carried the first; the others are sent round robin.
        let sources: Vec<u32> = pulls.iter().map(|&(_, to)| to).collect();
        assert_eq!(sources, [0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3]);
        for (nth, (at, _)) in pulls.into_iter().enumerate() {
            assert_eq!(at, Time::ZERO + Span::from_ns(120) * (nth as u64 + 1));
        }
    }

    #[test]
    fn the_shortest_flow_is_pulled_first_if_configured() {
        let order = PullOrder::ShortestFirst;
        let ndp = ndp_of(NdpConfig { pull_order: order, ..NdpConfig::paper() });
        let mut receiver = host(7, &ndp);
        for (src, size) in [(0, 30), (1, 20), (2, 40)] {
            let packets = packets_of(src, src, size, &ndp);
            arrive(&mut receiver, Time::ZERO, &packets[..2], |_| true);
        }
        let sources: Vec<u32> = pulls(&mut receiver).iter().map(|&(_, to)| to).collect();
        assert_eq!(sources, [1, 1, 0, 2, 2]);
    }

    #[test]
    fn a_complete_flow_has_no_pulls_left() {
        let ndp = ndp_of(NdpConfig::paper());
        let mut receiver = host(7, &ndp);
        let packets = packets_of(0, 0, 20, &ndp);
        let answers = arrive(&mut receiver, Time::ZERO, &packets, |_| false);
        assert!(matches!(answers[19], NdpHeader::Ack { cumulative: 20, .. }));
        assert_eq!(
            receiver.poll_event(),
            Some(Event::Delivered { src: NodeId::new(0), msg: MsgId::new(0) })
        );
        assert!(pulls(&mut receiver).is_empty());
        let NdpStats { pulls, pulls_piggybacked, .. } = receiver.stats();
        assert_eq!((pulls, pulls_piggybacked), (0, 1));
    }

    #[test]
    fn a_late_header_of_a_complete_flow_is_acknowledged() {
        let ndp = ndp_of(NdpConfig::paper());
        let mut receiver = host(7, &ndp);
        let packets = packets_of(0, 0, 2, &ndp);
        arrive(&mut receiver, Time::ZERO, &packets, |_| false);
        let answers = arrive(&mut receiver, Time::ZERO, &packets[..1], |_| true);
        assert!(matches!(answers[0], NdpHeader::Ack { cumulative: 2, .. }));
        assert_eq!(receiver.handle_packet(Time::ZERO, &packets[1]), Receipt::Duplicate);
    }

    #[test]
    fn a_paused_message_is_not_pulled_until_it_is_resumed() {
        let ndp = ndp_of(NdpConfig::paper());
        let mut receiver = host(7, &ndp);
        let packets = packets_of(0, 0, 9, &ndp);
        receiver.pause(Time::ZERO, NodeId::new(0), MsgId::new(0));
        arrive(&mut receiver, Time::ZERO, &packets[..3], |_| false);
        assert!(pulls(&mut receiver).is_empty());
        let later = Time::ZERO + Span::from_us(50);
        receiver.resume(later, NodeId::new(0), MsgId::new(0));
        assert_eq!(pulls(&mut receiver).len(), 3);
    }
}

mod between_hosts {
    use super::*;

    #[test]
    fn ndp_is_refused_between_real_hosts() {
        let deployment = Deployment::Hosts(PacketSizes::new(1_400, 134));
        let site = Site { facts: FACTS, deployment, lower: None };
        let error = NdpTransport::configure(NdpConfig::paper(), &site).unwrap_err();
        let expected = "name: expected a transport that runs without switches that trim, got ndp";
        assert_eq!(error.to_string(), expected);
        const { assert!(!NdpTransport::ON_HOSTS) };
    }
}
