//! Messages that a driver holds back because it has no space for them. Receivers that request
//! packets request none of theirs; the others notify the senders, which probe now and then.

use rampmeter_proto::Keys;
use rampmeter_proto::capton::{CaptonConfig, CaptonTransport};
use rampmeter_proto::dcpim::{DcpimConfig, DcpimTransport};
use rampmeter_proto::fastpass::{FastpassConfig, FastpassTransport};
use rampmeter_proto::fastpod::{FastpodConfig, FastpodTransport};
use rampmeter_proto::homa::{AeolusConfig, HomaAeolusTransport, HomaConfig, HomaTransport};
use rampmeter_proto::hyline::{HylineConfig, HylineTransport};
use rampmeter_proto::pfabric::{PfabricConfig, PfabricTransport};
use rampmeter_proto::phost::{PhostConfig, PhostTransport};
use rampmeter_proto::pias::{PiasConfig, PiasTransport};
use rampmeter_proto::sird::{SirdConfig, SirdTransport};
use rampmeter_proto::tcp::{DctcpConfig, DctcpTransport, TcpConfig, TcpTransport};
use rampmeter_testkit::wire::check_held_message;
use rampmeter_types::{Bytes, Span};

/// Long for all of them: most of it needs tokens or grants.
const SIZE: Bytes = Bytes::new(400_000);
/// Long enough for Hyline to schedule it.
const HYLINE_SIZE: Bytes = Bytes::new(6_000_000);

#[test]
fn dcpim_requests_nothing_of_a_held_message() {
    for (_, keys) in DcpimConfig::PRESETS {
        check_held_message::<DcpimTransport>(&keys(), |config| config.forget_timeout * 5, SIZE);
    }
}

#[test]
fn phost_requests_nothing_of_a_held_message() {
    for (_, keys) in PhostConfig::PRESETS {
        check_held_message::<PhostTransport>(&keys(), |config| config.forget_timeout * 5, SIZE);
    }
}

#[test]
fn homa_requests_nothing_of_a_held_message() {
    for (_, keys) in HomaConfig::PRESETS {
        check_held_message::<HomaTransport>(
            &keys(),
            |config| config.recovery.forget_timeout * 5,
            SIZE,
        );
    }
}

#[test]
fn homa_aeolus_requests_nothing_of_a_held_message() {
    for (_, keys) in AeolusConfig::PRESETS {
        check_held_message::<HomaAeolusTransport>(
            &keys(),
            |config| config.recovery.forget_timeout * 5,
            SIZE,
        );
    }
}

#[test]
fn sird_requests_nothing_of_a_held_message() {
    for (_, keys) in SirdConfig::PRESETS {
        check_held_message::<SirdTransport>(
            &keys(),
            |config| config.recovery.forget_timeout * 5,
            SIZE,
        );
    }
}

#[test]
fn tcp_sends_only_probes_of_a_held_message() {
    for (_, keys) in TcpConfig::PRESETS {
        check_held_message::<TcpTransport>(&keys(), |tcp| tcp.forget_timeout * 5, SIZE);
    }
}

#[test]
fn dctcp_sends_only_probes_of_a_held_message() {
    for (_, keys) in DctcpConfig::PRESETS {
        check_held_message::<DctcpTransport>(&keys(), |tcp| tcp.forget_timeout * 5, SIZE);
    }
}

#[test]
fn pias_sends_only_probes_of_a_held_message() {
    for (_, keys) in PiasConfig::PRESETS {
        check_held_message::<PiasTransport>(&keys(), |tcp| tcp.forget_timeout * 5, SIZE);
    }
}

#[test]
fn capton_sends_only_probes_of_a_held_message() {
    for (_, keys) in CaptonConfig::PRESETS {
        check_held_message::<CaptonTransport>(&keys(), |_| Span::from_us(60_000_000), SIZE);
    }
}

#[test]
fn hyline_sends_only_probes_of_a_held_message() {
    for (_, keys) in HylineConfig::PRESETS {
        check_held_message::<HylineTransport>(&keys(), |_| Span::from_us(60_000_000), HYLINE_SIZE);
    }
}

#[test]
fn fastpod_sends_nothing_of_a_held_message() {
    for (_, keys) in FastpodConfig::PRESETS {
        check_held_message::<FastpodTransport>(&keys(), |fastpod| fastpod.forget_timeout * 5, SIZE);
    }
}

#[test]
fn fastpass_sends_nothing_of_a_held_message() {
    for (_, keys) in FastpassConfig::PRESETS {
        check_held_message::<FastpassTransport>(
            &keys(),
            |fastpass| fastpass.paused_probe_interval * 400,
            SIZE,
        );
    }
}

#[test]
fn pfabric_sends_nothing_of_a_held_message() {
    for (_, keys) in PfabricConfig::PRESETS {
        check_held_message::<PfabricTransport>(&keys(), |pfabric| pfabric.forget_timeout * 5, SIZE);
    }
}
