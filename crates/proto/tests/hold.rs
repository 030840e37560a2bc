//! Messages that a driver holds back because it has no space for them. Receivers that request
//! packets request none of theirs; the others notify the senders, which probe now and then.

use rampmeter_core::{Bytes, Span};
use rampmeter_proto::Keys;
use rampmeter_proto::capton::{CaptonConfig, CaptonFamily};
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily};
use rampmeter_proto::fastpass::{FastpassConfig, FastpassFamily};
use rampmeter_proto::fastpod::{FastpodConfig, FastpodFamily};
use rampmeter_proto::homa::{AeolusConfig, HomaAeolusFamily, HomaConfig, HomaFamily};
use rampmeter_proto::hyline::{HylineConfig, HylineFamily};
use rampmeter_proto::pfabric::{PfabricConfig, PfabricFamily};
use rampmeter_proto::phost::{PhostConfig, PhostFamily};
use rampmeter_proto::pias::{PiasConfig, PiasFamily};
use rampmeter_proto::sird::{SirdConfig, SirdFamily};
use rampmeter_proto::tcp::{DctcpConfig, DctcpFamily, TcpConfig, TcpFamily};
use rampmeter_testkit::wire::holds_back;

/// Long for all of them: most of it needs tokens or grants.
const SIZE: Bytes = Bytes::new(400_000);
/// Long enough for Hyline to schedule it.
const HYLINE_SIZE: Bytes = Bytes::new(6_000_000);

#[test]
fn dcpim_requests_nothing_of_a_held_message() {
    for (_, keys) in DcpimConfig::PRESETS {
        holds_back::<DcpimFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn phost_requests_nothing_of_a_held_message() {
    for (_, keys) in PhostConfig::PRESETS {
        holds_back::<PhostFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn homa_requests_nothing_of_a_held_message() {
    for (_, keys) in HomaConfig::PRESETS {
        holds_back::<HomaFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn homa_aeolus_requests_nothing_of_a_held_message() {
    for (_, keys) in AeolusConfig::PRESETS {
        holds_back::<HomaAeolusFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn sird_requests_nothing_of_a_held_message() {
    for (_, keys) in SirdConfig::PRESETS {
        holds_back::<SirdFamily>(&keys(), |config| config.forget * 5, SIZE);
    }
}

#[test]
fn tcp_sends_only_probes_of_a_held_message() {
    for (_, keys) in TcpConfig::PRESETS {
        holds_back::<TcpFamily>(&keys(), |tcp| tcp.forget * 5, SIZE);
    }
}

#[test]
fn dctcp_sends_only_probes_of_a_held_message() {
    for (_, keys) in DctcpConfig::PRESETS {
        holds_back::<DctcpFamily>(&keys(), |tcp| tcp.forget * 5, SIZE);
    }
}

#[test]
fn pias_sends_only_probes_of_a_held_message() {
    for (_, keys) in PiasConfig::PRESETS {
        holds_back::<PiasFamily>(&keys(), |tcp| tcp.forget * 5, SIZE);
    }
}

#[test]
fn capton_sends_only_probes_of_a_held_message() {
    for (_, keys) in CaptonConfig::PRESETS {
        holds_back::<CaptonFamily>(&keys(), |_| Span::from_us(60_000_000), SIZE);
    }
}

#[test]
fn hyline_sends_only_probes_of_a_held_message() {
    for (_, keys) in HylineConfig::PRESETS {
        holds_back::<HylineFamily>(&keys(), |_| Span::from_us(60_000_000), HYLINE_SIZE);
    }
}

#[test]
fn fastpod_sends_nothing_of_a_held_message() {
    for (_, keys) in FastpodConfig::PRESETS {
        holds_back::<FastpodFamily>(&keys(), |fastpod| fastpod.forget * 5, SIZE);
    }
}

#[test]
fn fastpass_sends_nothing_of_a_held_message() {
    for (_, keys) in FastpassConfig::PRESETS {
        holds_back::<FastpassFamily>(
            &keys(),
            |fastpass| fastpass.paused_probe_interval * 400,
            SIZE,
        );
    }
}

#[test]
fn pfabric_sends_nothing_of_a_held_message() {
    for (_, keys) in PfabricConfig::PRESETS {
        holds_back::<PfabricFamily>(&keys(), |pfabric| pfabric.forget * 5, SIZE);
    }
}
