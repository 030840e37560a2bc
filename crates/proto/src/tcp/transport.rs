//! TCP as transports of plans: with the congestion control of hosts, and as DCTCP.

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Interface, Need, Overflow, Spray};
use rampmeter_types::{FabricFacts, ForwardOnly, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{Connections, Tcp, TcpConfig};
use super::host::TcpHost;
use super::wire::TcpHeader;
use crate::keys::{BadKey, Keys, Preset, Setting};
use crate::registered::{
    Assumptions, DerivedValue, Quantity, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::{Segmentation, transport};

transport! {
    /// TCP with Cubic or NewReno.
    pub struct TcpTransport {
        const NAME = "tcp";
        type Config = Tcp;
        type Header = TcpHeader;
        type Host = TcpHost;
        type SwitchProgram = ForwardOnly;
    }
}

transport! {
    /// DCTCP.
    pub struct DctcpTransport {
        const NAME = "dctcp";
        type Config = Tcp;
        type Header = TcpHeader;
        type Host = TcpHost;
        type SwitchProgram = ForwardOnly;
    }
}

/// The parameters of TCP, with DCTCP's as presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct DctcpConfig(pub TcpConfig);

impl Default for DctcpConfig {
    fn default() -> Self {
        Self(TcpConfig::dctcp())
    }
}

impl Keys for DctcpConfig {
    const PRESETS: &'static [Preset<Self>] = &[
        ("rfc8257", || Self(TcpConfig::dctcp())),
        ("reference", || Self(TcpConfig::dctcp_reference())),
        ("ns-2", || Self(TcpConfig::dctcp_ns2())),
    ];
    const SETTINGS: &'static [Setting] = &[
        Setting { preset: "reference", gbps: 10, payload: None, window: None },
        Setting { preset: "ns-2", gbps: 10, payload: None, window: None },
    ];
}

/// Minimum derived lengths of ports' queues, in packets. In a network of few packets two windows
/// may start at once, and bursts must not be marked.
const QUEUE_MIN: u64 = 64;
const MARK_ABOVE_MIN: u64 = 5;

impl TcpConfig {
    pub(crate) fn segmentation(&self) -> Segmentation {
        self.packet.segmentation(self.padding)
    }

    /// Returns the ports of one class with room for `switch-queue-packets`, a path for each message
    /// or, if connections stay, for each pair of hosts. Interfaces request packets, as kernels keep
    /// the queues of their own interfaces short.
    pub(crate) fn needs(&self, facts: &FabricFacts) -> FabricNeeds {
        let packet = self.packet.wire();
        let bdp = u64::from(facts.bdp_packets(packet));
        let or = |packets: Option<u32>, derived: u64| packet * packets.map_or(derived, u64::from);
        let mark_above = or(self.ecn_packets, (bdp * 78).div_ceil(100).max(MARK_ABOVE_MIN));
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(or(
                self.switch_queue_packets,
                (bdp * 5).max(QUEUE_MIN),
            ))),
            overflow: Need::Prefer(Overflow::TailDrop),
            spray: Need::Prefer(match self.connections {
                Connections::PerMessage => Spray::Ecmp,
                Connections::Persistent | Connections::Pool => Spray::EcmpPair,
            }),
            interface: Need::Prefer(Interface::Pull),
            ecn: Need::Prefer(self.ecn.then_some(mark_above)),
            express_max: Need::Prefer(0),
            buffer_cell: Need::Prefer(if self.count_packets { packet.get() as u16 } else { 0 }),
            priorities: 1,
            ..FabricNeeds::default()
        }
    }

    /// Returns these parameters with the packets of the site.
    pub(crate) fn with_site_packets(self, site: &Site) -> Self {
        let packet = site.packet(self.packet);
        Self { packet, ..self }
    }
}

impl Tcp {
    /// Derives further values from the parameters.
    pub(crate) fn describe(&self) -> Vec<DerivedValue> {
        let bytes = |name, n| DerivedValue { name, quantity: Quantity::Bytes(n) };
        vec![
            bytes("window-initial", self.start.initial),
            bytes("window-max", self.start.max),
            DerivedValue::time("rto-min", self.rto_min),
            DerivedValue::time("forget", self.forget_timeout),
        ]
    }
}

impl RegisteredTransport for TcpTransport {
    type Keys = TcpConfig;
    const TITLE: &'static str = "TCP";
    const SUMMARY: &'static str = "Connections of hosts: Cubic or NewReno (RFC 9293, 9438, 6582).";
    const WIRE: TransportId = TransportId(6);
    const STAGES: &'static [&'static Stage] = super::sender::permission::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "senders, by a window",
        host_state: "connections: window, sent segments, timers",
        switch_functions: "none",
        after_loss: "later packets show it (RACK), or a timeout",
    };

    fn segmentation(keys: &TcpConfig) -> Segmentation {
        keys.segmentation()
    }

    fn needs(keys: &TcpConfig, facts: &FabricFacts) -> FabricNeeds {
        keys.needs(facts)
    }

    fn configure(keys: TcpConfig, site: &Site) -> Result<Tcp, BadKey> {
        keys.with_site_packets(site).derive(&site.facts, Vec::new())
    }

    fn assumptions(_config: &Tcp, _site: &Site) -> Assumptions {
        Assumptions { in_order: true, window_grows: true, ..Assumptions::default() }
    }

    fn describe(config: &Tcp) -> Vec<DerivedValue> {
        config.describe()
    }
}

impl RegisteredTransport for DctcpTransport {
    type Keys = DctcpConfig;
    const TITLE: &'static str = "DCTCP";
    const SUMMARY: &'static str = "TCP whose window follows the share of marked bytes (RFC 8257).";
    const WIRE: TransportId = TransportId(7);
    const STAGES: &'static [&'static Stage] = super::sender::permission::STAGES;
    const RULES: TransportRules =
        TransportRules { switch_functions: "mark", ..TcpTransport::RULES };

    fn segmentation(keys: &DctcpConfig) -> Segmentation {
        keys.0.segmentation()
    }

    fn needs(keys: &DctcpConfig, facts: &FabricFacts) -> FabricNeeds {
        keys.0.needs(facts)
    }

    fn configure(keys: DctcpConfig, site: &Site) -> Result<Tcp, BadKey> {
        keys.0.with_site_packets(site).derive(&site.facts, Vec::new())
    }

    fn assumptions(_config: &Tcp, _site: &Site) -> Assumptions {
        Assumptions { in_order: true, window_grows: true, ..Assumptions::default() }
    }

    fn describe(config: &Tcp) -> Vec<DerivedValue> {
        config.describe()
    }
}
