//! CAPTON as a transport that plans know.

use std::sync::Arc;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::{
    ArbiterNeed, ArbiterRate, Buffer, FabricNeeds, Interface, Need, Overflow,
};
use rampmeter_core::{FabricFacts, Family, SwitchFacts};

use super::arbiter::CaptonArbiter;
use super::config::{Capton, CaptonConfig};
use super::host::CaptonHost;
use super::spray::AllPaths;
use super::wire::CaptonHeader;
use crate::keys::BadKey;
use crate::parts::{Framing, two_bdps};
use crate::transport::{Derived, Site, Transport};

/// The CAPTON family.
#[derive(Clone, Copy, Debug)]
pub struct CaptonFamily;

impl Family for CaptonFamily {
    const NAME: &'static str = "capton";
    const HAS_ARBITERS: bool = true;
    type Config = Capton;
    type Header = CaptonHeader;
    type Host = CaptonHost;
    type Arbiter = CaptonArbiter;
    type Hop = AllPaths;

    fn hop(_config: &Arc<Capton>, _switch: SwitchFacts) -> AllPaths {
        AllPaths::default()
    }
}

impl Transport for CaptonFamily {
    type Keys = CaptonConfig;
    const TITLE: &'static str = "CAPTON";
    const SUMMARY: &'static str =
        "A controller that lets the flow with the least left transmit, over all paths (CAPTON).";
    const WIRE: TransportId = TransportId(9);

    fn framing(keys: &CaptonConfig) -> Framing {
        let &CaptonConfig { payload, header, padding, .. } = keys;
        Framing { payload, header, padding }
    }

    /// Switches without priorities or marks whose ports hold two bandwidth-delay products (§V). They
    /// choose paths in turn, whatever `spray` says.
    fn needs(keys: &CaptonConfig, facts: &FabricFacts) -> FabricNeeds {
        let packet = keys.payload + keys.header;
        let own = |packets: u32| packet * u64::from(packets);
        let buffer = keys.queue.map_or_else(|| two_bdps(packet, facts), own);
        let need = ArbiterNeed { rate: ArbiterRate::Slowest };
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(buffer)),
            overflow: Need::Prefer(Overflow::TailDrop),
            interface: Need::Prefer(Interface::Pull),
            express: Need::Prefer(0),
            priorities: 1,
            arbiters: vec![need; keys.controllers as usize],
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: CaptonConfig, site: &Site) -> Result<Capton, BadKey> {
        keys.on(site)
    }

    fn describe(config: &Capton) -> Vec<Derived> {
        vec![
            Derived::packets(
                "window",
                (config.tcp.granted_window / config.config.payload.get()) as u32,
            ),
            Derived::time("repeat", config.repeat),
            Derived::time("fallback", config.fallback),
            Derived::time("refresh", config.refresh),
            Derived::count("threshold-bytes", config.threshold.get()),
        ]
    }
}
