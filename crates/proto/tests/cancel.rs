//! Messages that are cancelled at any time while packets are lost.

#[path = "common/hosts.rs"]
mod hosts;

use hosts::*;
use proptest::prelude::*;
use rampmeter_core::{Bytes, Rate};
use rampmeter_proto::cosy::config::PathFacts;
use rampmeter_proto::cosy::wire::CosyHeader;
use rampmeter_proto::cosy::{CosyConfig, CosyFamily, CosyHost};
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily, DcpimHost};
use rampmeter_proto::fastpass::{
    Fastpass, FastpassConfig, FastpassFamily, FastpassHost, allocations_time,
};
use rampmeter_proto::pfabric::{PfabricConfig, PfabricFamily, PfabricHost};
use rampmeter_proto::phost::{PhostConfig, PhostFamily, PhostHost};

fn fastpass(config: FastpassConfig) -> Fastpass {
    let time = allocations_time(N_HOSTS, config.header.get(), Rate::from_gbps(10));
    config.on(&facts(), None, time).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn dcpim_forgets_messages_that_are_cancelled(plan in plans()) {
        for config in [DcpimConfig::paper(), DcpimConfig::reference()] {
            let dcpim = config.on(&facts()).unwrap();
            let manners = Manners::new(dcpim.forget, DcpimHost::messages);
            cancels_cleanly::<DcpimFamily>(dcpim, 0, manners, &plan);
        }
    }

    #[test]
    fn phost_forgets_messages_that_are_cancelled(plan in plans()) {
        for config in [PhostConfig::paper(), PhostConfig::reference()] {
            let phost = config.on(&facts()).unwrap();
            let manners = Manners::new(phost.forget, PhostHost::messages);
            cancels_cleanly::<PhostFamily>(phost, 0, manners, &plan);
        }
    }

    #[test]
    fn pfabric_forgets_messages_that_are_cancelled(plan in plans()) {
        for config in [PfabricConfig::paper(), PfabricConfig::reference()] {
            let pfabric = config.on(&facts()).unwrap();
            let manners = Manners::new(pfabric.forget, PfabricHost::messages);
            cancels_cleanly::<PfabricFamily>(pfabric, 0, manners, &plan);
        }
    }

    #[test]
    fn fastpass_forgets_messages_that_are_cancelled(plan in plans()) {
        for config in [FastpassConfig::paper(), FastpassConfig::reference()] {
            let n_arbiters = config.arbiters;
            let fastpass = fastpass(config);
            let manners = Manners::new(fastpass.forget, FastpassHost::messages);
            cancels_cleanly::<FastpassFamily>(fastpass, n_arbiters, manners, &plan);
        }
    }
    /// There are no switches here, so that hosts alone must give back what is reserved.
    #[test]
    fn cosy_forgets_messages_that_are_cancelled(plan in plans()) {
        for config in [CosyConfig::paper(), CosyConfig::rsvp()] {
            let paths = PathFacts { switches: 1, ratio: 1, ports: N_HOSTS, has_slower: false };
            let cosy = config.on(&facts(), paths).unwrap();
            let manners = Manners {
                may_fail: true,
                gives_back: |header| matches!(header, CosyHeader::Release { .. }),
                ..Manners::new(cosy.bound(Bytes::new(400_000)), |host: &CosyHost| {
                    (usize::from(!host.is_idle()), 0)
                })
            };
            cancels_cleanly::<CosyFamily>(cosy, 0, manners, &plan);
        }
    }
}
