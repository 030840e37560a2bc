//! Messages that a driver holds back because it has no room for them.

#[path = "common/hosts.rs"]
mod hosts;

use hosts::*;
use rampmeter_core::Bytes;
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily, DcpimHost};
use rampmeter_proto::phost::{PhostConfig, PhostFamily, PhostHost};

/// Long for both transports: most of it needs tokens.
const SIZE: Bytes = Bytes::new(400_000);

#[test]
fn dcpim_asks_for_nothing_of_a_message_that_is_held() {
    for config in [DcpimConfig::paper(), DcpimConfig::reference()] {
        let dcpim = config.on(&facts()).unwrap();
        let manners = Manners::new(dcpim.forget, DcpimHost::messages);
        holds_back::<DcpimFamily>(dcpim, manners, SIZE);
    }
}

#[test]
fn phost_asks_for_nothing_of_a_message_that_is_held() {
    for config in [PhostConfig::paper(), PhostConfig::reference()] {
        let phost = config.on(&facts()).unwrap();
        let manners = Manners::new(phost.forget, PhostHost::messages);
        holds_back::<PhostFamily>(phost, manners, SIZE);
    }
}
