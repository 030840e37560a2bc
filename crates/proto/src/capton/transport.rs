//! CAPTON as a transport of plans.

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::FabricNeeds;
use rampmeter_types::{FabricFacts, Rate, Stage, SwitchFacts, Transport};

use super::config::{Capton, CaptonConfig};
use super::sharing::{AnyScheduler, SharingPolicy};
use super::spray::SprayProgram;
use super::wire::{CaptonHeader, OrderHeader};
use crate::central::settings::{Settings, needs};
use crate::central::{CentralAgent, CentralArbiter, CentralHost, CentralScheme};
use crate::keys::BadKey;
use crate::registered::{
    Assumptions, DerivedValue, Peers, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::Segmentation;

/// The CAPTON transport.
#[derive(Clone, Copy, Debug)]
pub struct CaptonTransport;

/// CAPTON at one host.
pub type CaptonHost = CentralHost<CaptonTransport>;

/// The controller of a network, or its standby.
pub type CaptonArbiter = CentralArbiter<CaptonTransport>;

/// CAPTON at a host whose programs send by themselves.
pub type CaptonAgent = CentralAgent<CaptonTransport>;

impl Transport for CaptonTransport {
    const NAME: &'static str = "capton";
    const HAS_ARBITERS: bool = true;
    type Config = Capton;
    type Header = CaptonHeader;
    type Host = CaptonHost;
    type Arbiter = CaptonArbiter;
    type SwitchProgram = SprayProgram;

    fn switch_program(_config: &Arc<Capton>, _switch: SwitchFacts) -> SprayProgram {
        SprayProgram::default()
    }
}

impl CentralScheme for CaptonTransport {
    type Grant = Rate;
    type Orders = OrderHeader;
    type Schedule = AnyScheduler;
    type Config = Capton;

    fn settings(config: &Capton) -> &Settings {
        &config.settings
    }

    fn schedule(config: &Capton) -> AnyScheduler {
        AnyScheduler::new(config.network.clone(), config.sharing)
    }
}

impl RegisteredTransport for CaptonTransport {
    type Keys = CaptonConfig;
    const TITLE: &'static str = "CAPTON";
    const SUMMARY: &'static str =
        "A controller that lets the flow with the least left transmit, over all paths (CAPTON).";
    const WIRE: TransportId = TransportId(9);
    const STAGES: &'static [&'static Stage] = crate::central::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "a controller, for each message",
        host_state: "as TCP, and orders of the controller",
        switch_functions: "spread packets over all paths",
        after_loss: "as TCP",
    };

    fn segmentation(keys: &CaptonConfig) -> Segmentation {
        keys.packet.segmentation(keys.padding)
    }

    /// Switches without priorities or marks whose ports hold two bandwidth-delay products (§V), and
    /// at least as many packets as in the paper.
    /// They choose paths in turn, regardless of `spray`.
    fn needs(keys: &CaptonConfig, facts: &FabricFacts) -> FabricNeeds {
        let packet = keys.packet.wire();
        needs(packet, keys.switch_queue_packets, keys.controller.controllers, facts)
    }

    fn configure(keys: CaptonConfig, site: &Site) -> Result<Capton, BadKey> {
        keys.derive(site)
    }

    fn adapt_to_peers(own: Capton, _network: &Capton, peers: &Peers) -> Capton {
        own.config.clone().adapt_to_peers(own, peers)
    }

    fn assumptions(config: &Self::Config, site: &Site) -> Assumptions {
        Assumptions {
            one_flow: config.sharing == SharingPolicy::Serial,
            one_round_trip: true,
            wide_inner_links: !site.has_regular_paths(),
            schedules_core: true,
            chooses_paths: true,
            ..Assumptions::default()
        }
    }

    fn describe(config: &Capton) -> Vec<DerivedValue> {
        config.settings.describe()
    }
}
