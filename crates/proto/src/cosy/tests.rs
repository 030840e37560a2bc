use proptest::prelude::*;
use rampmeter_core::{Header, WireError};

use super::wire::{CosyHeader, Route, Why};
use crate::shared::assert_codec;

fn route() -> impl Strategy<Value = Route> {
    proptest::collection::vec(any::<u16>(), 0..=5).prop_map(|ports| {
        let mut route = Route::default();
        for port in ports {
            assert!(route.push(port));
        }
        route
    })
}

fn header() -> impl Strategy<Value = CosyHeader> {
    let n = any::<u32>;
    let why = prop_oneof![Just(Why::Blocked), Just(Why::Busy), Just(Why::Done), Just(Why::Failed)];
    let pair = any::<(u16, u16)>;
    prop_oneof![
        (n(), n(), 1u64..)
            .prop_map(|(flow, tx_slot, size)| { CosyHeader::Request { flow, tx_slot, size } }),
        (any::<[u32; 3]>(), pair(), any::<bool>(), route()).prop_map(
            |([tx_slot, seq, lease_us], (rx_slot, link), last, route)| {
                CosyHeader::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route }
            }
        ),
        (n(), pair(), why, route()).prop_map(|(seq, (rx_slot, link), why, route)| {
            CosyHeader::Release { seq, rx_slot, link, why, route }
        }),
        (n(), n(), pair(), any::<bool>(), route()).prop_map(
            |(seq, number, (rx_slot, link), last, route)| {
                CosyHeader::Data { seq, number, rx_slot, link, last, route }
            }
        ),
        n().prop_map(|tx_slot| CosyHeader::Reject { tx_slot }),
        n().prop_map(|tx_slot| CosyHeader::Complete { tx_slot }),
        n().prop_map(|tx_slot| CosyHeader::Failure { tx_slot }),
    ]
}

#[test]
fn headers_leave_a_packet_in_one_cache_line() {
    assert!(size_of::<rampmeter_core::Packet<CosyHeader>>() <= 64);
}

#[test]
fn impossible_fields_are_named() {
    let decode = |bytes: &[u8]| CosyHeader::decode(bytes).unwrap_err();
    assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
    assert_eq!(decode(&[99]), WireError::UnknownType(99));
    let mut data = [0; 64];
    data[0] = 5;
    data[14] = 6;
    assert_eq!(decode(&data).to_string(), "field route length must be at most 5, got 6");
    data[13] = 2;
    assert_eq!(decode(&data).to_string(), "field last must be 0 or 1, got 2");
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
        if let Ok((header, read)) = CosyHeader::decode(&bytes) {
            let mut again = [0; 64];
            prop_assert_eq!(header.encode(&mut again), Ok(read));
            prop_assert_eq!(&again[..read], &bytes[..read]);
        }
    }
}
