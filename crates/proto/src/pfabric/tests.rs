//! Tests of pFabric's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use crate::shared::assert_codec;
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
