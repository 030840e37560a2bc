//! pHost (Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker: *pHost: Distributed Near-Optimal
//! Datacenter Transport Over Commodity Network Fabric*, CoNEXT 2015).
//!
//! A source announces a flow with a RTS. A destination sends one token a packet time to the source
//! of the flow that it prefers. A source sends one packet a token, of the flow that it prefers.
//! Free tokens spare short flows the round trip. Tokens expire, and flows with unanswered tokens
//! are downgraded, so that neither end waits for the other.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, what follows from them
//! * [`wire`]: the packets
//! * `sender`: RTS, tokens, the choice among flows with tokens (algorithm 1)
//! * `receiver`: pending flows, tokens, downgrading, arrival (algorithm 2)
//! * `expiry`: expired tokens of a flow
//! * `choice`: the pending flow that is served next
//! * `pacing`, `queues`: tokens for slow sources, and the flows of these
//!
//! `docs/protocols/phost.md` lists the packets, and what differs from the paper.

pub mod config;
pub mod wire;

mod choice;
mod expiry;
mod host;
mod pacing;
mod queues;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use config::{Phost, PhostConfig};
pub use host::PhostHost;

use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::{FabricNeeds, Need};
use rampmeter_core::{FabricFacts, Family, NoArbiter, Passive, SwitchFacts};

use crate::keys::BadKey;
use crate::parts::{Framing, phost_study_buffer};
use crate::transport::{Assumptions, DerivedValue, Peers, Place, Site, Transport};
use config::{FreeExpiry, TOKEN_LIFE_MILLI};

/// The pHost family.
#[derive(Clone, Copy, Debug)]
pub struct PhostFamily;

impl Family for PhostFamily {
    const NAME: &'static str = "phost";
    type Config = Phost;
    type Header = wire::PhostHeader;
    type Host = PhostHost;
    type Arbiter = NoArbiter<wire::PhostHeader, Phost>;
    type Hop = Passive;

    fn hop(_config: &Arc<Self::Config>, _switch: SwitchFacts) -> Passive {
        Passive
    }
}

impl Transport for PhostFamily {
    type Keys = PhostConfig;
    const TITLE: &'static str = "pHost";
    const SUMMARY: &'static str =
        "Tokens a packet from the destination, free tokens for first packets (pHost).";
    const WIRE: TransportId = TransportId(2);

    fn framing(keys: &PhostConfig) -> Framing {
        let &PhostConfig { payload, header, padding, .. } = keys;
        Framing { payload, header, padding }
    }

    /// Ports of 36 KB at 10 Gbit/s (§4.1).
    fn needs(keys: &PhostConfig, facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds {
            buffer: Need::Prefer(phost_study_buffer(keys.payload + keys.header, facts)),
            control_class: true,
            priorities: 3,
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: PhostConfig, site: &Site) -> Result<Phost, BadKey> {
        let (payload, header) = site.packet((keys.payload, keys.header));
        let mut keys = PhostConfig { payload, header, ..keys };
        if matches!(site.place, Place::Hosts { .. }) {
            // Free packets of many messages would be sent to a program that does not read.
            keys.free_expiry.get_or_insert(FreeExpiry::Pace);
        }
        if matches!(site.place, Place::Hosts { .. }) && keys.token_life_milli.is_none() {
            // A host that was not on its processor when tokens arrived must find some that are
            // valid.
            let packet = site.facts.access_rate.tx_time(payload + header).as_ps();
            let rtt = site.facts.control_rtt.as_ps().saturating_mul(1_000) / packet;
            let rtt = u32::try_from(rtt).unwrap_or(u32::MAX).min(10_000_000);
            keys.token_life_milli = Some(TOKEN_LIFE_MILLI.max(rtt));
        }
        keys.on(&site.facts)
    }

    fn among(own: Phost, _network: &Phost, peers: &Peers) -> Phost {
        Phost { peers: Some(peers.clone()), ..own }
    }

    /// Destinations send a token each packet time, and the paper assumes that the network has full
    /// bisection bandwidth (its overview of datacenter networks).
    fn assumptions(_config: &Phost, _site: &Site) -> Assumptions {
        Assumptions { paced_by_receivers: true, ..Assumptions::default() }
    }

    fn describe(config: &Phost) -> Vec<DerivedValue> {
        vec![
            DerivedValue::packets("free-tokens", config.free),
            DerivedValue::time("token-life", config.token_life),
            DerivedValue::packets("downgrade-threshold", config.threshold),
            DerivedValue::time("downgrade", config.downgrade),
            DerivedValue::time("resend", config.resend),
            DerivedValue::time("keepalive", config.keepalive),
            DerivedValue::time("forget", config.forget),
        ]
    }
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhostStats {
    /// Tokens sent as a destination.
    pub tokens_sent: u64,
    /// Of those, tokens for packets that had an earlier one. It expired at the source, or its data
    /// was assumed lost.
    pub tokens_again: u64,
    /// Tokens dropped as a source because they had expired, free ones included.
    pub tokens_expired: u64,
    /// Tokens not sent in favour of announced free tokens.
    pub tokens_withheld: u64,
    /// RTSs that were repeated for lack of a response.
    pub repeats: u64,
}

impl PhostStats {
    /// Calls `each` with every counter and its name, in the order above.
    fn tell(self, each: &mut dyn FnMut(&'static str, u64)) {
        let Self { tokens_sent, tokens_again, tokens_expired, tokens_withheld, repeats } = self;
        let all = [
            ("tokens_sent", tokens_sent),
            ("tokens_again", tokens_again),
            ("tokens_expired", tokens_expired),
            ("tokens_withheld", tokens_withheld),
            ("repeats", repeats),
        ];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}
