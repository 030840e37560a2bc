//! Settings in which a peer differs, for the log: key, value here and value there.

use rampmeter_proto::Builtin;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::coexistence::combine_wire_ids;
use rampmeter_proto::registered::RegisteredTransport;
use rampmeter_runtime::{PeerView, Setting};
use rampmeter_types::envelope::TransportId;

use crate::config::Setup;

/// Key of a peer's public key in configurations.
const PUBLIC_KEY: &str = "peer.public-key";

/// Returns the keys in which `peer` differs.
pub(crate) fn keys(peer: &PeerView) -> Vec<String> {
    let settings = peer.differences.iter().map(Setting::key);
    settings.chain(peer.has_other_key.then_some(PUBLIC_KEY)).map(str::to_owned).collect()
}

/// Returns the keys in which `peer` differs, with both values if the peer's can be determined.
pub(crate) fn describe(setup: &Setup, peer: &PeerView) -> String {
    let describe = |setting: Setting| {
        let values = match setting {
            Setting::Mtu => mtu(peer).map(|there| (setup.udp.mtu.to_string(), there.to_string())),
            Setting::Transport => {
                peer.other_transport.map(|there| (name(setup.transport.wire), name(there)))
            }
            _ => None,
        };
        match values {
            Some((here, there)) => format!("{} ({here} here, {there} there)", setting.key()),
            None => setting.key().to_owned(),
        }
    };
    let other_key = format!("{PUBLIC_KEY} (or a forged handshake)");
    let settings = peer.differences.iter().map(describe);
    settings.chain(peer.has_other_key.then_some(other_key)).collect::<Vec<_>>().join(", ")
}

/// Returns the peer's `network.mtu`: the value in the valid range that has the digest that the peer
/// sent.
fn mtu(peer: &PeerView) -> Option<u32> {
    peer.settings?.number(Setting::Mtu, 1..65_536)
}

/// Returns the name of a transport, or its number if it is not in this repository.
fn name(number: TransportId) -> String {
    struct TransportNameVisitor(TransportId, Option<String>);

    impl Visitor for TransportNameVisitor {
        fn transport<T: RegisteredTransport>(&mut self) {
            if T::WIRE == self.0 {
                self.1 = Some(T::NAME.to_owned());
            }
        }

        fn coexisting<A: RegisteredTransport, B: RegisteredTransport>(&mut self) {
            if combine_wire_ids(A::WIRE, B::WIRE) == Some(self.0) {
                self.1 = Some(format!("{} and {}", A::NAME, B::NAME));
            }
        }
    }

    let mut find = TransportNameVisitor(number, None);
    Builtin::visit(&mut find);
    find.1.unwrap_or_else(|| format!("number {}", number.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_named_by_their_numbers() {
        let names = [1, 7, 64 + 8 * 5 + 1, 250].map(|number| name(TransportId(number)));
        assert_eq!(names, ["dcpim", "dctcp", "cosy and dcpim", "number 250"]);
    }
}
