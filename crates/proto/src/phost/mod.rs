//! pHost (Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker: *pHost: Distributed Near-Optimal
//! Datacenter Transport Over Commodity Network Fabric*, CoNEXT 2015).
//!
//! A source announces a flow with a RTS. A destination sends one token a packet time to the source
//! of the flow that it prefers. A source sends one packet a token, of the flow that it prefers.
//! Free tokens spare short flows the round trip. Tokens expire, and flows with unanswered tokens
//! are downgraded, so that neither end waits for the other.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * `sender`: RTS, tokens, the choice among flows with tokens (algorithm 1)
//! * `receiver`, `rx_flow`: pending flows, tokens, downgrading, arrival (algorithm 2)
//! * `expiry`: expired tokens of a flow
//! * `choice`: the pending flow that is served next
//! * `pacing`, `queues`: tokens for slow sources, and the flows of these
//!
//! `docs/protocols/phost.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod wire;

mod expiry;
mod flow_selector;
mod host;
mod pacing;
mod queues;
mod receiver;
mod rx_flow;
mod sender;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Phost, PhostConfig};
pub use host::PhostHost;
pub use stats::PhostStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Need};
use rampmeter_types::{FabricFacts, ForwardOnly, Stage};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, Peers, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::{Segmentation, phost_study_buffer, transport};
use config::{FreeTokenExpiry, TOKEN_LIFETIME_MILLI};

transport! {
    /// The pHost transport.
    pub struct PhostTransport {
        const NAME = "phost";
        type Config = Phost;
        type Header = wire::PhostHeader;
        type Host = PhostHost;
        type SwitchProgram = ForwardOnly;
    }
}

impl RegisteredTransport for PhostTransport {
    type Keys = PhostConfig;
    const TITLE: &'static str = "pHost";
    const SUMMARY: &'static str =
        "Tokens a packet from the destination, free tokens for first packets (pHost).";
    const WIRE: TransportId = TransportId(2);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers, by a token for each packet",
        host_state: "flows, unused tokens of a few packet times",
        switch_functions: "serve classes",
        after_loss: "the packet gets a new token",
    };

    fn segmentation(keys: &PhostConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// Returns the ports of 36 KB at 10 Gbit/s (§4.1).
    fn needs(keys: &PhostConfig, facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds {
            buffer: Need::Prefer(phost_study_buffer(keys.packet.wire(), facts)),
            control_class: true,
            priorities: 3,
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: PhostConfig, site: &Site) -> Result<Phost, BadKey> {
        let packet = site.packet(keys.packet);
        let mut keys = PhostConfig { packet, ..keys };
        if matches!(site.deployment, Deployment::Hosts(_)) {
            // Free packets of many messages would be sent to a program that does not read.
            keys.free_token_expiry.get_or_insert(FreeTokenExpiry::Pace);
        }
        if matches!(site.deployment, Deployment::Hosts(_)) && keys.token_lifetime_milli.is_none() {
            // A host that was not on its processor when tokens arrived must find some that are
            // valid.
            let packet = site.facts.access_rate.tx_time(packet.wire()).as_ps();
            let rtt = site.facts.control_rtt.as_ps().saturating_mul(1_000) / packet;
            let rtt = u32::try_from(rtt).unwrap_or(u32::MAX).min(10_000_000);
            keys.token_lifetime_milli = Some(TOKEN_LIFETIME_MILLI.max(rtt));
        }
        keys.derive(&site.facts)
    }

    fn adapt_to_peers(own: Phost, _network: &Phost, peers: &Peers) -> Phost {
        Phost { peers: Some(peers.clone()), ..own }
    }

    /// Destinations send a token each packet time, and the paper assumes that the network has full
    /// bisection bandwidth (its overview of datacenter networks).
    fn assumptions(_config: &Phost, _site: &Site) -> Assumptions {
        Assumptions { paced_by_receivers: true, ..Assumptions::default() }
    }

    fn describe(config: &Phost) -> Vec<DerivedValue> {
        vec![
            DerivedValue::packets("free-tokens", config.free_tokens),
            DerivedValue::time("token-lifetime", config.token_lifetime),
            DerivedValue::packets("downgrade-threshold", config.threshold),
            DerivedValue::time("downgrade", config.downgrade_time),
            DerivedValue::time("retransmit", config.resend_wait),
            DerivedValue::time("keepalive", config.keepalive),
            DerivedValue::time("forget", config.forget_timeout),
        ]
    }
}
