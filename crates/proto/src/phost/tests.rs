//! Tests of pHost's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use crate::shared::assert_codec;
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
