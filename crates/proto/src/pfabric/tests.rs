//! Tests of pFabric's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use rampmeter_types::Header;

    #[test]
    fn data_and_probes_rank_by_remaining_size_and_acknowledgements_first() {
        let (flow, tx_slot, seq, remaining, size) = (1, 2, 3, 4, 5);
        assert_eq!(PfabricHeader::Data { flow, tx_slot, seq, remaining, size }.rank(), 4);
        assert_eq!(PfabricHeader::Probe { flow, tx_slot, remaining, size }.rank(), 4);
        assert_eq!(PfabricHeader::Ack { tx_slot, cumulative: 3, sack: 0 }.rank(), 0);
    }
}

mod sender {
    use std::sync::Arc;

    use super::super::wire::PfabricHeader;
    use super::super::{Pfabric, PfabricConfig, PfabricHost};
    use crate::test_packet::make_control;
    use rampmeter_types::{
        Bytes, FabricFacts, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rate, Rng, Span,
        Time,
    };

    fn host() -> (PfabricHost, Arc<Pfabric>) {
        host_of(PfabricConfig::paper())
    }

    fn host_of(config: PfabricConfig) -> (PfabricHost, Arc<Pfabric>) {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            core_rate: None,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            abort_timeout_min: Span::ZERO,
        };
        let pfabric = Arc::new(config.derive(&facts).unwrap());
        let rng = Rng::new(1, 0, Purpose::Test);
        let mut host = PfabricHost::new(Arc::clone(&pfabric), NodeId::new(0), rng, Time::ZERO);
        let message = Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(1_460 * 100));
        host.submit(Time::ZERO, message);
        (host, pfabric)
    }

    fn acknowledge(host: &mut PfabricHost, now: Time, cumulative: u32, sack: u64) {
        let packet = make_control(PfabricHeader::Ack { tx_slot: 0, cumulative, sack }, 7, 1, 0);
        host.handle_packet(now, &packet);
    }

    /// Returns the numbers of all data packets that may be sent.
    fn send_all(host: &mut PfabricHost, now: Time) -> Vec<u32> {
        let number = |packet: Packet<PfabricHeader>| match packet.header {
            PfabricHeader::Data { seq, .. } => seq,
            other => panic!("{other:?} is no data"),
        };
        std::iter::from_fn(|| host.poll_transmit(now)).map(number).collect()
    }

    #[test]
    fn a_timeout_does_not_retransmit_selectively_acknowledged_packets() {
        let (mut host, pfabric) = host();
        assert_eq!(send_all(&mut host, Time::ZERO), (0..pfabric.window).collect::<Vec<_>>());
        // Packet 0 and those from 4 on are lost.
        acknowledge(&mut host, Time::ZERO, 0, 0b1110);
        let late = Time::ZERO + pfabric.rto;
        host.handle_timeout(late);
        assert_eq!(send_all(&mut host, late), [0]);
        acknowledge(&mut host, late, 4, 0);
        assert_eq!(send_all(&mut host, late), [4, 5]);
    }

    #[test]
    fn a_packet_overtaken_by_three_is_retransmitted_and_halves_the_window() {
        let config = PfabricConfig { window_initial: Some(8), ..PfabricConfig::ns2() };
        let (mut host, _) = host_of(PfabricConfig { rto: None, ..config });
        assert_eq!(send_all(&mut host, Time::ZERO), (0..8).collect::<Vec<_>>());
        acknowledge(&mut host, Time::ZERO, 0, 0b110);
        assert!(send_all(&mut host, Time::ZERO).is_empty());
        acknowledge(&mut host, Time::ZERO, 0, 0b1110);
        assert_eq!(send_all(&mut host, Time::ZERO), [0]);
        // Half of eight, and one for the acknowledgement.
        acknowledge(&mut host, Time::ZERO, 8, 0);
        assert_eq!(send_all(&mut host, Time::ZERO), (8..13).collect::<Vec<_>>());
    }

    #[test]
    fn a_starving_flow_probes_until_a_probe_is_answered() {
        let (mut host, pfabric) = host();
        send_all(&mut host, Time::ZERO);
        let mut now = Time::ZERO;
        for timeout in 1..=pfabric.config.starvation_timeouts + 1 {
            now = host.poll_timeout();
            host.handle_timeout(now);
            if timeout < pfabric.config.starvation_timeouts {
                assert_eq!(send_all(&mut host, now), [0]);
            } else {
                let probe = host.poll_transmit(now).map(|packet| packet.header);
                assert!(
                    matches!(probe, Some(PfabricHeader::Probe { remaining: 0, .. })),
                    "{probe:?}"
                );
                assert_eq!(host.poll_transmit(now), None);
            }
        }
        assert_eq!(host.stats().probes, 2);
        acknowledge(&mut host, now, 0, 0);
        assert_eq!(send_all(&mut host, now), [0]);
    }

    /// A destination that acknowledges accepts data, even if the notification was lost.
    #[test]
    fn an_acknowledgement_resumes_a_paused_pfabric_flow() {
        let (mut host, pfabric) = host();
        send_all(&mut host, Time::ZERO);
        let hold = PfabricHeader::Pause { is_paused: true };
        host.handle_packet(Time::ZERO, &make_control(hold, 7, 1, 0));
        let now = Time::ZERO + pfabric.paused_probe_interval;
        host.handle_timeout(now);
        let probe = host.poll_transmit(now).map(|packet| packet.header);
        assert!(matches!(probe, Some(PfabricHeader::Probe { .. })), "{probe:?}");
        assert_eq!(host.poll_transmit(now), None);
        acknowledge(&mut host, now, 0, 0);
        assert_eq!(send_all(&mut host, now), [0]);
    }
}
