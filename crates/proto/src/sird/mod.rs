//! SIRD (Prasopoulos, Kosta, Bugnion, Kogias: *SIRD: A Sender-Informed, Receiver-Driven Datacenter
//! Transport Protocol*, NSDI 2025).
//!
//! A receiver grants credit for each packet of a long message. All credit that it has outstanding
//! fits a bucket of one and a half bandwidth-delay products. The credit of one sender has a limit
//! that follows two signals, as DCTCP's window does. Senders mark data while they hold more credit
//! than they can use soon, and switches mark it in long queues. Short messages need no credit.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`wire`]: the packets
//! * [`control`]: the limit of one sender by one signal
//! * `credit`: the bucket, the senders, and the order in which they get credit
//! * `receiver`, `rx_flow`: arrival, and credit taken back for packets that have not arrived
//! * `sender`: unscheduled and credited packets, half by turns and half shortest first
//!
//! `docs/protocols/sird.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod control;
pub mod wire;

mod credit;
mod host;
mod receiver;
mod rx_flow;
mod sender;
mod stats;

#[cfg(test)]
mod tests;

pub use config::{Sird, SirdConfig};
pub use host::SirdHost;
pub use stats::SirdStats;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, MarkingPorts, Need, Overflow, Spray};
use rampmeter_types::{Bytes, FabricFacts, ForwardOnly, Stage};

use self::config::UnscheduledClass;
use crate::keys::BadKey;
use crate::registered::{DerivedValue, Peers, Quantity, RegisteredTransport, Site, TransportRules};
use crate::toolkit::{Segmentation, transport};

/// Memory of a port that never fills: the recorded run of the authors' simulator drops nothing.
const DEEP: Bytes = Bytes::new(4_000_000_000);

transport! {
    /// The SIRD transport.
    pub struct SirdTransport {
        const NAME = "sird";
        type Config = Sird;
        type Header = wire::SirdHeader;
        type Host = SirdHost;
        type SwitchProgram = ForwardOnly;
    }
}

impl RegisteredTransport for SirdTransport {
    type Keys = SirdConfig;
    const TITLE: &'static str = "SIRD";
    const SUMMARY: &'static str =
        "Credit of receivers, limited by the queues that senders and switches report (SIRD).";
    const WIRE: TransportId = TransportId(15);
    const STAGES: &'static [&'static Stage] = sender::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "receivers, by credit; less for senders and ports with queues",
        host_state: "messages, unused credit, a bucket and a limit for each sender",
        switch_functions: "mark",
        after_loss: "credit of the first missing packet expires, and is given again",
    };

    fn segmentation(keys: &SirdConfig) -> Segmentation {
        keys.segmentation()
    }

    /// Returns the ports that drop nothing, mark long queues and spray packets; one class for
    /// control packets and one for data.
    fn needs(keys: &SirdConfig, facts: &FabricFacts) -> FabricNeeds {
        FabricNeeds {
            buffer: Need::Prefer(Buffer::PerPort(DEEP)),
            overflow: Need::Prefer(Overflow::TailDrop),
            spray: Need::Prefer(Spray::Random),
            ecn: Need::Prefer(Some(keys.ecn_bytes(facts))),
            ecn_ports: Need::Prefer(MarkingPorts::Core),
            control_class: keys.unscheduled_class == UnscheduledClass::Data,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    fn configure(keys: SirdConfig, site: &Site) -> Result<Sird, BadKey> {
        SirdConfig { packet: keys.packet.at(site), ..keys }.derive(&site.facts)
    }

    /// Sender and receiver agree on the unscheduled bytes: a bandwidth-delay product of the slower
    /// end. All hosts cut messages in the same way: if unscheduled packets carry less than others,
    /// it follows from the slowest host.
    fn adapt_to_peers(own: Sird, network: &Sird, peers: &Peers) -> Sird {
        if own.is_even() && own.config.unscheduled_bytes.is_none() {
            return Sird { peers: Some(peers.clone()), ..own };
        }
        own.with_packets_of(network)
    }

    fn describe(config: &Sird) -> Vec<DerivedValue> {
        let bytes = |name, n| DerivedValue { name, quantity: Quantity::Bytes(n) };
        vec![
            bytes("credit", config.credit),
            bytes("sender-credit", config.sender_credit),
            bytes("unscheduled", config.unscheduled),
            bytes("ecn", config.mark_above),
            DerivedValue::time("timeout", config.recovery.timeout),
            DerivedValue::time("forget", config.recovery.forget_timeout),
        ]
    }
}
