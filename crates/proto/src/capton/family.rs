//! CAPTON as a transport of plans.

use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::FabricNeeds;
use rampmeter_core::{FabricFacts, Family, Rate, SwitchFacts};

use super::config::{Capton, CaptonConfig};
use super::sharing::{AnyScheduler, SharingPolicy};
use super::spray::AllPaths;
use super::wire::{CaptonHeader, OrderHeader};
use crate::central::settings::{Settings, needs};
use crate::central::{Central, CentralAgent, CentralArbiter, CentralHost};
use crate::keys::BadKey;
use crate::toolkit::Segmentation;
use crate::transport::{Assumptions, DerivedValue, Peers, Site, Transport};

/// The CAPTON family.
#[derive(Clone, Copy, Debug)]
pub struct CaptonFamily;

/// CAPTON at one host.
pub type CaptonHost = CentralHost<CaptonFamily>;

/// The controller of a network, or its standby.
pub type CaptonArbiter = CentralArbiter<CaptonFamily>;

/// CAPTON at a host whose programs send by themselves.
pub type CaptonAgent = CentralAgent<CaptonFamily>;

impl Family for CaptonFamily {
    const NAME: &'static str = "capton";
    const HAS_ARBITERS: bool = true;
    type Config = Capton;
    type Header = CaptonHeader;
    type Host = CaptonHost;
    type Arbiter = CaptonArbiter;
    type SwitchProgram = AllPaths;

    fn switch_program(_config: &Arc<Capton>, _switch: SwitchFacts) -> AllPaths {
        AllPaths::default()
    }
}

impl Central for CaptonFamily {
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

impl Transport for CaptonFamily {
    type Keys = CaptonConfig;
    const TITLE: &'static str = "CAPTON";
    const SUMMARY: &'static str =
        "A controller that lets the flow with the least left transmit, over all paths (CAPTON).";
    const WIRE: TransportId = TransportId(9);

    fn segmentation(keys: &CaptonConfig) -> Segmentation {
        let &CaptonConfig { payload, header, padding, .. } = keys;
        Segmentation::new(payload, header, padding)
    }

    /// Switches without priorities or marks whose ports hold two bandwidth-delay products (§V), and
    /// at least as many packets as in the paper.
    /// They choose paths in turn, regardless of `spray`.
    fn needs(keys: &CaptonConfig, facts: &FabricFacts) -> FabricNeeds {
        let packet = keys.payload + keys.header;
        needs(packet, keys.queue, keys.controllers, facts)
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
