//! Tests of pFabric's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use crate::parts::assert_codec;
    use proptest::prelude::*;
    use rampmeter_core::{Header, WireError};

    fn header() -> impl Strategy<Value = PfabricHeader> {
        let n = any::<u32>;
        prop_oneof![
            (any::<[u32; 4]>(), 1u64..).prop_map(|([flow, tx_slot, seq, remaining], size)| {
                PfabricHeader::Data { flow, tx_slot, seq, remaining, size }
            }),
            (any::<[u32; 3]>(), 1u64..).prop_map(|([flow, tx_slot, remaining], size)| {
                PfabricHeader::Probe { flow, tx_slot, remaining, size }
            }),
            (n(), n(), any::<u64>()).prop_map(|(tx_slot, cumulative, sack)| {
                PfabricHeader::Ack { tx_slot, cumulative, sack }
            }),
        ]
    }

    #[test]
    fn headers_leave_a_packet_in_one_cache_line() {
        assert!(size_of::<rampmeter_core::Packet<PfabricHeader>>() <= 64);
    }

    #[test]
    fn impossible_fields_are_named() {
        let decode = |bytes: &[u8]| PfabricHeader::decode(bytes).unwrap_err();
        assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
        assert_eq!(decode(&[99]), WireError::UnknownType(99));
        let no_size = [1; 1].iter().chain(&[0; 40]).copied().collect::<Vec<u8>>();
        assert_eq!(decode(&no_size).to_string(), "field size must be at least 1, got 0");
    }

    proptest! {
        #[test]
        fn decode_inverts_encode_and_short_bytes_are_refused(header in header()) {
            assert_codec(&header);
        }

        #[test]
        fn any_bytes_decode_or_fail_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            if let Ok((header, read)) = PfabricHeader::decode(&bytes) {
                let mut again = [0; 64];
                prop_assert_eq!(header.encode(&mut again), Ok(read));
                prop_assert_eq!(&again[..read], &bytes[..read]);
            }
        }
    }
}

mod sender {
    use std::sync::Arc;

    use super::super::wire::PfabricHeader;
    use super::super::{Pfabric, PfabricConfig, PfabricHost};
    use rampmeter_core::packet::Marks;
    use rampmeter_core::{
        Bytes, Endpoint, FabricFacts, Message, MsgId, NodeId, Packet, PayloadRef, Priority,
        Purpose, Rate, Rng, Span, Time,
    };

    fn host() -> (PfabricHost, Arc<Pfabric>) {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
        };
        let pfabric = Arc::new(PfabricConfig::paper().on(&facts).unwrap());
        let rng = Rng::new(1, 0, Purpose::Test);
        let mut host = PfabricHost::new(Arc::clone(&pfabric), NodeId::new(0), rng, Time::ZERO);
        let message = Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(1_460 * 100));
        host.submit(Time::ZERO, message);
        (host, pfabric)
    }

    fn acknowledge(host: &mut PfabricHost, now: Time, cumulative: u32, sack: u64) {
        let packet = Packet {
            header: PfabricHeader::Ack { tx_slot: 0, cumulative, sack },
            payload: PayloadRef { msg: MsgId::new(7), offset: 0, len: 0 },
            src: NodeId::new(1),
            dst: NodeId::new(0),
            wire_bytes: 40,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        };
        host.handle_packet(now, &packet);
    }

    /// The numbers of all data packets that may go.
    fn send_all(host: &mut PfabricHost, now: Time) -> Vec<u32> {
        let number = |packet: Packet<PfabricHeader>| match packet.header {
            PfabricHeader::Data { seq, .. } => seq,
            other => panic!("{other:?} is no data"),
        };
        std::iter::from_fn(|| host.poll_transmit(now)).map(number).collect()
    }

    #[test]
    fn packets_acknowledged_selectively_are_not_sent_again_after_a_timeout() {
        let (mut host, pfabric) = host();
        assert_eq!(send_all(&mut host, Time::ZERO), (0..12).collect::<Vec<_>>());
        // Packet 0 and those from 4 on are lost.
        acknowledge(&mut host, Time::ZERO, 0, 0b1110);
        let late = Time::ZERO + pfabric.rto;
        host.handle_timeout(late);
        assert_eq!(send_all(&mut host, late), [0]);
        acknowledge(&mut host, late, 4, 0);
        assert_eq!(send_all(&mut host, late), [4, 5]);
    }

    #[test]
    fn a_starving_flow_probes_until_a_probe_is_answered() {
        let (mut host, pfabric) = host();
        send_all(&mut host, Time::ZERO);
        let mut now = Time::ZERO;
        for timeout in 1..=pfabric.config.starving_after + 1 {
            now = host.poll_timeout();
            host.handle_timeout(now);
            if timeout < pfabric.config.starving_after {
                assert_eq!(send_all(&mut host, now), [0]);
            } else {
                let probe = host.poll_transmit(now).map(|packet| packet.header);
                assert!(matches!(probe, Some(PfabricHeader::Probe { .. })), "{probe:?}");
                assert_eq!(host.poll_transmit(now), None);
            }
        }
        assert_eq!(host.stats().probes, 2);
        acknowledge(&mut host, now, 0, 0);
        assert_eq!(send_all(&mut host, now), [0]);
    }
}
