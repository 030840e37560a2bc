//! Messages that a driver holds back because it has no room for them. Only transports whose
//! receivers ask for packets can hold them back: the senders of the others ask nobody.

use rampmeter_core::Bytes;
use rampmeter_proto::Keys;
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily};
use rampmeter_proto::homa::{AeolusConfig, HomaAeolusFamily, HomaConfig, HomaFamily};
use rampmeter_proto::phost::{PhostConfig, PhostFamily};
use rampmeter_proto::sird::{SirdConfig, SirdFamily};
use rampmeter_testkit::wire::holds_back;

/// Long for all of them: most of it needs tokens or grants.
const SIZE: Bytes = Bytes::new(400_000);

#[test]
fn dcpim_asks_for_nothing_of_a_message_that_is_held() {
    for (_, keys) in DcpimConfig::PRESETS {
        holds_back::<DcpimFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn phost_asks_for_nothing_of_a_message_that_is_held() {
    for (_, keys) in PhostConfig::PRESETS {
        holds_back::<PhostFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn homa_asks_for_nothing_of_a_message_that_is_held() {
    for (_, keys) in HomaConfig::PRESETS {
        holds_back::<HomaFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn homa_aeolus_asks_for_nothing_of_a_message_that_is_held() {
    for (_, keys) in AeolusConfig::PRESETS {
        holds_back::<HomaAeolusFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn sird_asks_for_nothing_of_a_message_that_is_held() {
    for (_, keys) in SirdConfig::PRESETS {
        holds_back::<SirdFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}
