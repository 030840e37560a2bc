//! Homa as transports of plans: as in its paper, and with Aeolus.

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need, Overflow, Spray};
use rampmeter_types::{Bytes, FabricFacts, ForwardOnly, Stage, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{Homa, HomaConfig};
use super::host::HomaHost;
use super::wire::HomaHeader;
use crate::keys::{BadKey, Keys, Preset};
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Peers, Quantity, RegisteredTransport, Site,
    TransportRules,
};
use crate::toolkit::{Segmentation, transport};

transport! {
    /// Homa.
    pub struct HomaTransport {
        const NAME = "homa";
        type Config = Homa;
        type Header = HomaHeader;
        type Host = HomaHost;
        type SwitchProgram = ForwardOnly;
    }
}

transport! {
    /// Homa with Aeolus.
    pub struct HomaAeolusTransport {
        const NAME = "homa-aeolus";
        type Config = Homa;
        type Header = HomaHeader;
        type Host = HomaHost;
        type SwitchProgram = ForwardOnly;
    }
}

/// The parameters of Homa, with Aeolus's as preset.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct AeolusConfig(pub HomaConfig);

impl Default for AeolusConfig {
    fn default() -> Self {
        Self(HomaConfig::aeolus())
    }
}

impl Keys for AeolusConfig {
    const PRESETS: &'static [Preset<Self>] = &[("paper", || Self(HomaConfig::aeolus()))];
}

/// Full packets in a queue above which ports drop unscheduled packets (Aeolus: a few packets).
const DROP_ABOVE_PACKETS: u64 = 4;

/// Memory of a port that never fills: Homa's study has no limit (§5.2).
const DEEP: Bytes = Bytes::new(4_000_000_000);

impl HomaConfig {
    /// Returns the ports that drop nothing, a path for each packet.
    fn needs(&self) -> FabricNeeds {
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(DEEP)),
            overflow: Need::Prefer(Overflow::TailDrop),
            spray: Need::Prefer(Spray::Random),
            priorities: self.priorities,
            ..FabricNeeds::default()
        }
    }
}

impl Homa {
    /// Returns the parameters of a host among hosts of other rates. Sender and receiver agree on
    /// the unscheduled bytes: a bandwidth-delay product of the slower end. All hosts cut messages
    /// in the same way: if unscheduled packets carry less than others, their number follows from
    /// the slowest host.
    fn adapt_to_peers(self, network: &Self, peers: &Peers) -> Self {
        if self.segmentation.is_even() && self.config.rtt_bytes.is_none() {
            return Self { peers: Some(peers.clone()), ..self };
        }
        Self {
            segmentation: network.segmentation,
            unscheduled: network.unscheduled,
            unscheduled_in_incast: network.unscheduled_in_incast,
            ..self
        }
    }

    /// Derives further values from the parameters.
    fn describe(&self) -> Vec<DerivedValue> {
        vec![
            DerivedValue { name: "window", quantity: Quantity::Bytes(self.window) },
            DerivedValue::packets("unscheduled", self.unscheduled),
            DerivedValue::packets("unscheduled-in-incast", self.unscheduled_in_incast),
            DerivedValue::count("overcommitment", self.overcommitment as u64),
            DerivedValue::time("timeout", self.recovery.timeout),
            DerivedValue::time("forget", self.recovery.forget_timeout),
        ]
    }
}

impl RegisteredTransport for HomaTransport {
    type Keys = HomaConfig;
    const TITLE: &'static str = "Homa";
    const SUMMARY: &'static str =
        "Grants from the receiver, priorities by remaining size, overcommitment (Homa).";
    const WIRE: TransportId = TransportId(13);
    const STAGES: &'static [&'static Stage] = super::sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers, by grants; the first BDP without",
        host_state: "messages, a heap of those to grant",
        switch_functions: "serve classes",
        after_loss: "RESEND, when nothing of a message arrives for a timeout",
    };

    fn segmentation(keys: &HomaConfig) -> Segmentation {
        keys.segmentation()
    }

    fn needs(keys: &HomaConfig, _facts: &FabricFacts) -> FabricNeeds {
        keys.needs()
    }

    fn configure(keys: HomaConfig, site: &Site) -> Result<Homa, BadKey> {
        HomaConfig { packet: keys.packet.at(site), ..keys }.derive(&site.facts)
    }

    fn adapt_to_peers(own: Homa, network: &Homa, peers: &Peers) -> Homa {
        own.adapt_to_peers(network, peers)
    }

    fn assumptions(_config: &Homa, _site: &Site) -> Assumptions {
        Assumptions { one_window_each: true, ..Assumptions::default() }
    }

    fn describe(config: &Homa) -> Vec<DerivedValue> {
        config.describe()
    }
}

impl RegisteredTransport for HomaAeolusTransport {
    type Keys = AeolusConfig;
    const TITLE: &'static str = "Homa Aeolus";
    const SUMMARY: &'static str =
        "Homa with selective dropping of unscheduled packets, and probes after them (Aeolus).";
    const WIRE: TransportId = TransportId(14);
    const STAGES: &'static [&'static Stage] = super::sender::STAGES;
    const RULES: TransportRules = TransportRules {
        switch_functions: "drop unscheduled packets early",
        after_loss: "a probe shows lost unscheduled packets at once; RESEND for others",
        ..HomaTransport::RULES
    };
    const ON_HOSTS: bool = false;

    fn segmentation(keys: &AeolusConfig) -> Segmentation {
        keys.0.segmentation()
    }

    /// Needs of Homa, and selective dropping. No unscheduled packet may be so short that it is
    /// express.
    fn needs(keys: &AeolusConfig, _facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds {
            drop_unscheduled: Need::Prefer(Some(
                keys.0.segmentation().full_wire_bytes() * DROP_ABOVE_PACKETS,
            )),
            express_max: Need::Prefer(keys.0.packet.full.header.get() as u16),
            ..keys.0.needs()
        }
    }

    /// Switches between real hosts do not drop unscheduled packets alone, and Aeolus needs that.
    fn configure(keys: AeolusConfig, site: &Site) -> Result<Homa, BadKey> {
        if let Deployment::Hosts(_) = site.deployment {
            let expected = "a transport that runs without selective dropping";
            return Err(BadKey::new("name", expected, Self::NAME));
        }
        HomaConfig { packet: keys.0.packet.at(site), ..keys.0 }.derive(&site.facts)
    }

    fn adapt_to_peers(own: Homa, network: &Homa, peers: &Peers) -> Homa {
        own.adapt_to_peers(network, peers)
    }

    fn assumptions(_config: &Homa, _site: &Site) -> Assumptions {
        Assumptions { one_window_each: true, ..Assumptions::default() }
    }

    fn describe(config: &Homa) -> Vec<DerivedValue> {
        config.describe()
    }
}
