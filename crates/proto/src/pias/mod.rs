//! PIAS (Bai, Chen, Chen, Han, Tian, Wang: *Information-Agnostic Flow Scheduling for Commodity Data
//! Centers*, NSDI 2015; *PIAS: Practical Information-Agnostic Flow Scheduling for Commodity Data
//! Centers*, IEEE/ACM Transactions on Networking 2017).
//!
//! [TCP](crate::tcp) with DCTCP's congestion control. The packets of a message fall through eight
//! classes by the bytes of the message before them, and switches serve higher classes first. So
//! short messages overtake long ones without knowledge of sizes. A port has one limit and one
//! threshold of marks for all of its classes.
//!
//! * [`config`]: parameters, presets, thresholds
//!
//! `docs/protocols/pias.md` has the sources of the thresholds, and the differences from the paper.

pub mod config;

#[cfg(test)]
mod tests;

use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::FabricNeeds;
use rampmeter_core::{FabricFacts, Passive};

pub use config::PiasConfig;

use crate::keys::BadKey;
use crate::parts::{Segmentation, family};
use crate::tcp::wire::TcpHeader;
use crate::tcp::{Tcp, TcpHost};
use crate::transport::{Assumptions, DerivedValue, Site, Transport};

family! {
    /// PIAS.
    pub struct PiasFamily {
        const NAME = "pias";
        type Config = Tcp;
        type Header = TcpHeader;
        type Host = TcpHost;
        type Hop = Passive;
    }
}

impl Transport for PiasFamily {
    type Keys = PiasConfig;
    const TITLE: &'static str = "PIAS";
    const SUMMARY: &'static str = "DCTCP whose messages fall through classes by the bytes sent.";
    const WIRE: TransportId = TransportId(8);

    fn segmentation(keys: &PiasConfig) -> Segmentation {
        keys.tcp.segmentation()
    }

    /// Those of TCP, with eight classes.
    fn needs(keys: &PiasConfig, facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds { priorities: config::CLASSES, ..keys.tcp.needs(facts) }
    }

    fn configure(keys: PiasConfig, site: &Site) -> Result<Tcp, BadKey> {
        let PiasConfig { thresholds, tcp } = keys;
        PiasConfig { thresholds, tcp: tcp.at(site) }.on(&site.facts)
    }

    fn assumptions(_config: &Tcp, _site: &Site) -> Assumptions {
        Assumptions { in_order: true, window_grows: true, ..Assumptions::default() }
    }

    fn describe(config: &Tcp) -> Vec<DerivedValue> {
        config.describe()
    }
}
