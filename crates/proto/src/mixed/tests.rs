use rampmeter_types::fabric::Spray;
use rampmeter_types::wire::Formats;
use rampmeter_types::{Header, Transport};

use super::header::longest_header;
use super::{MemberTransport, MixedHeader};
use crate::catalogue::{Builtin, Catalogue, Visitor};
use crate::registered::RegisteredTransport;

/// Checks headers of the transports that can share a network, and counts these.
#[derive(Default)]
struct Headers {
    sharing: Vec<&'static str>,
    refused: Vec<&'static str>,
}

impl Visitor for Headers {
    fn transport<T: RegisteredTransport>(&mut self) {
        if MemberTransport::check::<T>().is_err() {
            self.refused.push(T::NAME);
            return;
        }
        self.sharing.push(T::NAME);
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.rotate_left(17)
        };
        for format in T::Header::FORMATS {
            for _ in 0..100 {
                let header = T::Header::arbitrary(format.code, &mut draw).unwrap();
                assert!(header.wire_len() <= longest_header::<T::Header>(), "{}", T::NAME);
                let mixed = MixedHeader::from_header(3, &header, Some(Spray::Ecmp));
                assert_eq!(mixed.decode_as::<T::Header>(), header);
                assert_eq!((mixed.name(), mixed.kind()), (header.name(), header.kind()));
                assert_eq!(mixed.spray(), Some(Spray::Ecmp));
                let mut bytes = [0; 128];
                let len = mixed.encode(&mut bytes).unwrap();
                assert_eq!(MixedHeader::decode(&bytes[..len]).unwrap(), (mixed, len));
            }
        }
    }
}

#[test]
fn headers_survive_and_transports_with_custom_switches_are_refused() {
    let mut headers = Headers::default();
    Builtin::visit(&mut headers);
    let expected = ["dcpim", "phost", "tcp", "dctcp", "pias", "homa", "homa-aeolus", "sird"];
    assert_eq!(headers.sharing, expected);
    for name in ["pfabric", "ndp", "hpcc", "cosy", "fastpass", "fastpod", "capton", "hyline"] {
        assert!(headers.refused.contains(&name), "{name}");
    }
}

#[test]
fn errors_of_mixed_transports_name_the_requirement() {
    let refused = MemberTransport::check::<crate::ndp::NdpTransport>().unwrap_err();
    assert_eq!(refused.got, "NDP, which needs switches that queue by other rules than classes");
    assert_eq!(crate::ndp::NdpTransport::NAME, "ndp");
}
