//! HPCC (Li, Miao, Liu, Zhuang, Feng, Tang, Cao, Zhang, Kelly, Alizadeh, Yu: *HPCC: High Precision
//! Congestion Control*, SIGCOMM 2019).
//!
//! Every switch port writes a record on each data packet that departs (in-band network telemetry,
//! INT). It has the port's queue length, the bytes that it has sent, its rate and the time. The
//! receiver echoes the records in its acknowledgement. From two acknowledgements the sender
//! computes the use of each link of the path. It sets its window so that the fullest link is used
//! to the share eta.
//!
//! * [`config`]: parameters, the presets, derived values
//! * [`int`]: the record of one port
//! * [`wire`]: the packets
//! * [`control`]: algorithm 1, the window of one flow
//! * [`program`]: the program of switches, which writes the records
//! * `sender`: windows, pacing, timeouts
//! * `receiver`: acknowledgements, and NACKs for missing packets
//!
//! `docs/protocols/hpcc.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod control;
pub mod int;
pub mod program;
pub mod wire;

mod host;
mod receiver;
mod sender;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Hpcc, HpccConfig};
pub use host::HpccHost;
pub use stats::HpccStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need, PfcThreshold, Spray};
use rampmeter_types::{Bytes, FabricFacts, Stage, Transport};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Peers, Quantity, RegisteredTransport, Site,
    TransportRules,
};
use crate::toolkit::{Segmentation, transport};

/// Memory of each switch (§5.1: 32 MB).
const SWITCH_MEMORY: Bytes = Bytes::new(32_000_000);
/// An ingress pauses the other end of its link when it holds more than this share of the free
/// memory (§5.1: 11 %).
const PFC_ALPHA: f64 = 0.11;

transport! {
    /// The HPCC transport.
    pub struct HpccTransport {
        const NAME = "hpcc";
        type Config = Hpcc;
        type Header = wire::HpccHeader;
        type Host = HpccHost;
        type SwitchProgram = program::TelemetryProgram;
    }
}

impl RegisteredTransport for HpccTransport {
    type Keys = HpccConfig;
    const TITLE: &'static str = "HPCC";
    const SUMMARY: &'static str =
        "Windows from queue lengths and rates that switches write on packets (HPCC).";
    const WIRE: TransportId = TransportId(16);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "senders, by a window and a rate",
        host_state: "flows: window, rate, last records of each link",
        switch_functions: "write queues and rates on packets, pause",
        after_loss: "go-back-N",
    };
    const ON_HOSTS: bool = false;

    fn segmentation(keys: &HpccConfig) -> Segmentation {
        keys.segmentation()
    }

    /// Switches that share 32 MB, pause instead of dropping, and keep a message on one path (§5.1).
    fn needs(_keys: &HpccConfig, _facts: &FabricFacts) -> FabricNeeds {
        let threshold = PfcThreshold::Dynamic { alpha: PFC_ALPHA };
        FabricNeeds {
            buffer: Need::Prefer(Buffer::Shared { per_switch: SWITCH_MEMORY, alpha: 1.0 }),
            pfc: Need::Prefer(Some(threshold)),
            spray: Need::Prefer(Spray::Ecmp),
            control_class: true,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    /// Switches between real hosts write no telemetry, and HPCC without it is not HPCC.
    fn configure(keys: HpccConfig, site: &Site) -> Result<Hpcc, BadKey> {
        if let Deployment::Hosts(_) = site.deployment {
            let expected = "a transport that works without telemetry of switches, between hosts";
            return Err(BadKey::new("name", expected, Self::NAME));
        }
        keys.derive(&site.facts)
    }

    fn adapt_to_peers(own: Hpcc, _network: &Hpcc, peers: &Peers) -> Hpcc {
        Hpcc { peers: Some(peers.clone()), ..own }
    }

    fn assumptions(_config: &Hpcc, _site: &Site) -> Assumptions {
        Assumptions { in_order: true, ..Assumptions::default() }
    }

    fn describe(config: &Hpcc) -> Vec<DerivedValue> {
        let bytes = |name, n: f64| DerivedValue { name, quantity: Quantity::Bytes(n as u64) };
        vec![
            DerivedValue::time("base-rtt", config.rtt),
            bytes("first-window", config.windows.max),
            bytes("additive-step", config.windows.step),
            DerivedValue::time("rto-min", config.timeout_min),
            DerivedValue::time("rto-max", config.timeout_max),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
