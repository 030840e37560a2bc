//! The table of keys, and the meaning of thresholds.

use rampmeter_types::{FabricFacts, Priority, Rate, Span};

use super::PiasConfig;
use crate::keys::{KeyKind, Keys, PacketSizes, check_ranges, key_infos};
use crate::tcp::TcpConfig;

fn facts() -> FabricFacts {
    FabricFacts {
        n_hosts: 2,
        access_rate: Rate::from_gbps(10),
        core_rate: None,
        data_rtt: Span::from_us(10),
        control_rtt: Span::from_us(8),
        abort_timeout_min: Span::ZERO,
    }
}

#[test]
fn the_keys_are_the_thresholds_and_those_of_tcp() {
    let keys = key_infos::<PiasConfig>();
    let kind = KeyKind::List { length: 7, min: 0, max: 100_000_000 };
    assert_eq!((keys[0].name.as_str(), &keys[0].kind), ("thresholds", &kind));
    assert_eq!(keys[1..], key_infos::<TcpConfig>());
}

#[test]
fn pias_presets_survive_serialisation() {
    for (name, preset) in PiasConfig::PRESETS {
        let text = serde_json::to_string(&preset()).unwrap();
        assert_eq!(serde_json::from_str::<PiasConfig>(&text).unwrap(), preset(), "{name}");
    }
}

#[test]
fn thresholds_that_fall_are_refused() {
    let keys = PiasConfig::with_thresholds([1, 2, 3, 4, 5, 7, 6]);
    let error = check_ranges(&keys).unwrap_err().to_string();
    let expected = "7 whole numbers from 0 to 100000000 that ascend";
    assert_eq!(error, format!("thresholds: expected {expected}, got [1,2,3,4,5,7,6]"));
}

/// A packet before which exactly the threshold was sent has not passed it; classes between equal
/// thresholds stay empty.
#[test]
fn a_flow_above_a_threshold_is_demoted() {
    let tcp = PiasConfig::with_thresholds([1, 2, 2, 2, 3, 4, 5]).derive(&facts()).unwrap();
    let class = |sent| tcp.class(sent);
    let expected = [(0, 0), (1_460, 0), (1_461, 1), (2_920, 1), (2_921, 4), (1 << 40, 7)];
    for (sent, priority) in expected {
        assert_eq!(class(sent), Priority::new(priority), "{sent} bytes");
    }
    let long = PiasConfig {
        tcp: TcpConfig { packet: PacketSizes::new(8_960, 40), ..TcpConfig::dctcp() },
        ..PiasConfig::default()
    };
    let published = PiasConfig::default().derive(&facts()).unwrap();
    assert_eq!(long.derive(&facts()).unwrap().thresholds, published.thresholds);
}
