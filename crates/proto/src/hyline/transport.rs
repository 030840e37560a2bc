//! Hyline as a transport of plans.

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{FabricNeeds, Need, Spray};
use rampmeter_types::{FabricFacts, ForwardOnly, Stage, SwitchFacts, Transport};

use super::config::{Hyline, HylineConfig};
use super::path_grant::PathGrant;
use super::scheduler::PathScheduler;
use super::wire::{HylineHeader, SignalHeader};
use crate::central::settings::{Settings, needs};
use crate::central::{CentralArbiter, CentralHost, CentralScheme};
use crate::keys::BadKey;
use crate::registered::{
    Assumptions, DerivedValue, Peers, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::Segmentation;

/// The Hyline transport.
#[derive(Clone, Copy, Debug)]
pub struct HylineTransport;

/// Hyline at one host.
pub type HylineHost = CentralHost<HylineTransport>;

/// The controller of a network, or its standby.
pub type HylineArbiter = CentralArbiter<HylineTransport>;

impl Transport for HylineTransport {
    const NAME: &'static str = "hyline";
    const HAS_ARBITERS: bool = true;
    type Config = Hyline;
    type Header = HylineHeader;
    type Host = HylineHost;
    type Arbiter = HylineArbiter;
    type SwitchProgram = ForwardOnly;

    fn switch_program(_config: &Arc<Hyline>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

impl CentralScheme for HylineTransport {
    type Grant = PathGrant;
    type Orders = SignalHeader;
    type Schedule = PathScheduler;
    type Config = Hyline;

    fn settings(config: &Hyline) -> &Settings {
        &config.settings
    }

    fn schedule(config: &Hyline) -> PathScheduler {
        PathScheduler::new(config.paths.clone(), config.paces.clone())
    }
}

impl RegisteredTransport for HylineTransport {
    type Keys = HylineConfig;
    const TITLE: &'static str = "Hyline";
    const SUMMARY: &'static str =
        "TCP for short messages; a controller schedules and routes long ones (Hyline).";
    const WIRE: TransportId = TransportId(10);
    const STAGES: &'static [&'static Stage] = crate::central::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "senders for short messages, a controller for long ones",
        host_state: "as TCP, and orders of the controller",
        switch_functions: "follow source routes of long messages",
        after_loss: "as TCP",
    };

    fn segmentation(keys: &HylineConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// Switches without marks whose ports hold two bandwidth-delay products (CAPTON §V), and that
    /// give each message one path unless it has been chosen.
    fn needs(keys: &HylineConfig, facts: &FabricFacts) -> FabricNeeds {
        let packet = keys.packet.wire();
        let needs = needs(packet, keys.switch_queue_packets, keys.controller.controllers, facts);
        FabricNeeds { spray: Need::Prefer(Spray::Ecmp), priorities: keys.priorities, ..needs }
    }

    fn configure(keys: HylineConfig, site: &Site) -> Result<Hyline, BadKey> {
        keys.derive(site)
    }

    fn adapt_to_peers(own: Hyline, _network: &Hyline, peers: &Peers) -> Hyline {
        own.config.clone().adapt_to_peers(own, peers)
    }

    fn assumptions(_config: &Self::Config, site: &Site) -> Assumptions {
        Assumptions {
            one_flow: true,
            in_order: true,
            one_round_trip: true,
            wide_inner_links: !site.has_regular_paths(),
            schedules_core: true,
            chooses_paths: site.has_regular_paths(),
            ..Assumptions::default()
        }
    }

    fn describe(config: &Hyline) -> Vec<DerivedValue> {
        config.settings.describe()
    }
}
