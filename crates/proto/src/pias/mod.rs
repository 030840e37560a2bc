//! PIAS (Bai, Chen, Chen, Han, Tian, Wang: *Information-Agnostic Flow Scheduling for Commodity Data
//! Centers*, NSDI 2015; *PIAS: Practical Information-Agnostic Flow Scheduling for Commodity Data
//! Centers*, IEEE/ACM Transactions on Networking 2017).
//!
//! The problem: short messages should overtake long ones, but many applications do not know the
//! size of a message when it begins.
//!
//! The simple way gives all packets one class, so that short messages queue behind long ones.
//! Classes by size need the size, and classes by application must be chosen by hand.
//!
//! The present way is [TCP](crate::tcp) with DCTCP's congestion control and eight classes. A
//! packet's class follows from the bytes of its message before it: the number of thresholds that
//! these exceed. So every message starts in the highest class and falls as it grows, and switches
//! serve higher classes first. A retransmission has the class of its own place in the message.
//! DCTCP keeps queues short, since a port has one limit and one threshold of marks for all of its
//! classes.
//!
//! Hazards: thresholds belong to a distribution of sizes and a load. With others, most bytes are in
//! one class. A retransmission may overtake later packets, as its class is higher than theirs. Long
//! messages may starve in the lowest class, so that they time out. Tests:
//! `a_flow_above_a_threshold_is_demoted`, `packets_of_a_flow_are_demoted_at_the_thresholds`,
//! `a_short_message_overtakes_long_ones_at_a_port`.
//!
//! * [`config`]: parameters, presets, thresholds
//!
//! `docs/protocols/pias.md` has the sources of the thresholds, and the differences from the paper.

pub mod config;

#[cfg(test)]
mod tests;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::FabricNeeds;
use rampmeter_types::{FabricFacts, ForwardOnly, Stage};

pub use config::PiasConfig;

use crate::keys::BadKey;
use crate::registered::{Assumptions, DerivedValue, RegisteredTransport, Site, TransportRules};
use crate::tcp::wire::TcpHeader;
use crate::tcp::{Tcp, TcpHost};
use crate::toolkit::{Segmentation, transport};

transport! {
    /// PIAS.
    pub struct PiasTransport {
        const NAME = "pias";
        type Config = Tcp;
        type Header = TcpHeader;
        type Host = TcpHost;
        type SwitchProgram = ForwardOnly;
    }
}

impl RegisteredTransport for PiasTransport {
    type Keys = PiasConfig;
    const TITLE: &'static str = "PIAS";
    const SUMMARY: &'static str = "DCTCP whose messages fall through classes by the bytes sent.";
    const WIRE: TransportId = TransportId(8);
    const STAGES: &'static [&'static Stage] = crate::tcp::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "senders, by a window",
        host_state: "as TCP, and sent bytes of each message",
        switch_functions: "serve classes, mark",
        after_loss: "as TCP",
    };

    fn segmentation(keys: &PiasConfig) -> Segmentation {
        keys.tcp.segmentation()
    }

    /// Needs of TCP, with eight classes.
    fn needs(keys: &PiasConfig, facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds { priorities: config::CLASSES, ..keys.tcp.needs(facts) }
    }

    fn configure(keys: PiasConfig, site: &Site) -> Result<Tcp, BadKey> {
        let PiasConfig { thresholds, tcp } = keys;
        PiasConfig { thresholds, tcp: tcp.with_site_packets(site) }.derive(&site.facts)
    }

    fn assumptions(_config: &Tcp, _site: &Site) -> Assumptions {
        Assumptions { in_order: true, window_grows: true, ..Assumptions::default() }
    }

    fn describe(config: &Tcp) -> Vec<DerivedValue> {
        config.describe()
    }
}
