//! Tests of pHost's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use crate::parts::assert_codec;
    use proptest::prelude::*;
    use rampmeter_core::{Header, Span, WireError};

    fn header() -> impl Strategy<Value = PhostHeader> {
        let n = any::<u32>;
        let left = any::<u64>().prop_map(Span::from_ps);
        prop_oneof![
            (n(), n(), 1u64.., left, any::<u16>(), any::<bool>()).prop_map(
                |(flow, tx_slot, size, time_left, tenant, repeated)| {
                    PhostHeader::Rts { flow, tx_slot, size, time_left, tenant, repeated }
                }
            ),
            any::<[u32; 5]>().prop_map(|[tx_slot, rx_slot, seq, number, remaining]| {
                PhostHeader::Token { tx_slot, rx_slot, seq, number, remaining }
            }),
            (n(), n(), n(), 1u64..).prop_map(|(flow, tx_slot, seq, size)| {
                PhostHeader::Free { flow, tx_slot, seq, size }
            }),
            (n(), n(), n())
                .prop_map(|(rx_slot, seq, number)| { PhostHeader::Data { rx_slot, seq, number } }),
            n().prop_map(|tx_slot| PhostHeader::Ack { tx_slot }),
            n().prop_map(|tx_slot| PhostHeader::Heard { tx_slot }),
        ]
    }

    #[test]
    fn headers_leave_a_packet_in_one_cache_line() {
        assert!(size_of::<rampmeter_core::Packet<PhostHeader>>() <= 64);
    }

    #[test]
    fn impossible_fields_are_named() {
        let decode = |bytes: &[u8]| PhostHeader::decode(bytes).unwrap_err();
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
            if let Ok((header, read)) = PhostHeader::decode(&bytes) {
                let mut again = [0; 64];
                prop_assert_eq!(header.encode(&mut again), Ok(read));
                prop_assert_eq!(&again[..read], &bytes[..read]);
            }
        }
    }
}

mod tokens {
    use std::sync::Arc;

    use super::super::wire::PhostHeader;
    use super::super::{Phost, PhostConfig, PhostHost};
    use rampmeter_core::packet::Marks;
    use rampmeter_core::{
        Bytes, Endpoint, FabricFacts, Message, MsgId, NodeId, Packet, PayloadRef, Priority,
        Purpose, Rate, Rng, Span, Time,
    };

    const SIZE: u64 = 1_460 * 1_000;

    fn host() -> (PhostHost, Arc<Phost>) {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
        };
        let phost = Arc::new(PhostConfig::paper().on(&facts).unwrap());
        let rng = Rng::new(1, 0, Purpose::Test);
        (PhostHost::new(Arc::clone(&phost), NodeId::new(0), rng, Time::ZERO), phost)
    }

    fn packet(header: PhostHeader) -> Packet<PhostHeader> {
        Packet {
            header,
            payload: PayloadRef { msg: MsgId::new(7), offset: 0, len: 0 },
            src: NodeId::new(1),
            dst: NodeId::new(0),
            wire_bytes: 40,
            path: 0,
            priority: Priority::HIGHEST,
            marks: Marks::NONE,
        }
    }

    fn before(at: Time) -> Time {
        Time::from_ps(at.as_ps() - 1)
    }

    /// Runs the clock of tokens; returns how many have been sent since the start.
    fn run_until(host: &mut PhostHost, end: Time) -> u64 {
        while host.poll_timeout() <= end {
            host.handle_timeout(host.poll_timeout());
        }
        host.stats().tokens_sent
    }

    #[test]
    fn a_silent_source_is_downgraded_to_one_token_a_timeout_until_data_arrives() {
        let (mut host, phost) = host();
        let (time_left, tenant, repeated) = (Span::from_ps(u64::MAX), 0, false);
        let rts = PhostHeader::Rts { flow: 0, tx_slot: 0, size: SIZE, time_left, tenant, repeated };
        host.handle_packet(Time::ZERO, &packet(rts));
        // The free tokens, as many as the threshold, are unanswered.
        assert_eq!(run_until(&mut host, before(Time::ZERO + phost.downgrade)), 0);
        assert_eq!(run_until(&mut host, Time::ZERO + phost.downgrade), 1);
        let end = Time::ZERO + phost.downgrade * 2;
        assert_eq!(run_until(&mut host, before(end)), 1);
        assert_eq!(run_until(&mut host, end), 2);
        for seq in 0..3 {
            let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq, size: SIZE };
            host.handle_packet(end, &packet(free));
        }
        // Data of old tokens leaves the newer ones unanswered; that of the latest frees all.
        let data = PhostHeader::Data { rx_slot: 0, seq: phost.free, number: phost.free + 1 };
        host.handle_packet(end, &packet(data));
        assert_eq!(run_until(&mut host, end + phost.mtu_time * 3), 2 + 3);
    }

    #[test]
    fn tokens_expire_at_their_source_one_life_after_they_arrive() {
        let (mut host, phost) = host();
        let message = Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(SIZE));
        host.submit(Time::ZERO, message);
        assert!(matches!(
            host.poll_transmit(Time::ZERO).unwrap().header,
            PhostHeader::Rts { repeated: false, .. }
        ));
        let late = Time::ZERO + phost.free_life(phost.free) + Span::from_ps(1);
        assert_eq!(host.poll_transmit(late), None);
        assert_eq!(host.stats().tokens_expired, u64::from(phost.free));
        let token =
            |seq| PhostHeader::Token { tx_slot: 0, rx_slot: 3, seq, number: seq, remaining: 900 };
        host.handle_packet(late, &packet(token(100)));
        host.handle_packet(late, &packet(token(101)));
        let sent = host.poll_transmit(late + phost.token_life).map(|packet| packet.header);
        assert_eq!(sent, Some(PhostHeader::Data { rx_slot: 3, seq: 100, number: 100 }));
        let late = late + phost.token_life + Span::from_ps(1);
        assert_eq!((host.poll_transmit(late), host.wants_transmit()), (None, false));
        assert_eq!(host.stats().tokens_expired, u64::from(phost.free) + 1);
    }
}
