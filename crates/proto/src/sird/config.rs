//! SIRD's parameters and what they imply for one fabric.

use rampmeter_types::{Bytes, FabricFacts, NodeId, Priority, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::control::{LimitConfig, LimitConfigs};
use crate::keys::{BadKey, Keys, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{CreditPackets, Padding, Recovery, Segmentation, check_range};

/// Choice of the sender that a receiver gives its next credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverPolicy {
    /// The one whose message has the fewest remaining bytes.
    Srpt,
    /// Round robin.
    RoundRobin,
}

/// Choice of the data packet that a sender sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderPolicy {
    /// Every other packet is for the next receiver, round robin. The others are of the message with
    /// the fewest remaining bytes.
    HalfFair,
    /// All are of the message with the fewest remaining bytes.
    Srpt,
}

/// The class of unscheduled packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnscheduledClass {
    /// The lower of the two, that of data.
    Data,
    /// The higher one, that of control packets.
    Control,
}

/// SIRD's parameters. [`SirdConfig::paper`] and [`SirdConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SirdConfig {
    /// Bytes on the wire of all packets for which a receiver has given credit and that have not
    /// arrived. Default: 1.5 bandwidth-delay products.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub credit_bytes: Option<u32>,
    /// Most of these bytes that one sender may have; default: a bandwidth-delay product.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub sender_credit_bytes: Option<u32>,
    /// Size up to which messages are sent without credit, all of them at once; default: a
    /// bandwidth-delay product.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub unscheduled_bytes: Option<u32>,
    /// Full packets for which a sender has credit, of all receivers, above which it marks its data;
    /// default: half a bandwidth-delay product.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sender_mark_packets: Option<u32>,
    /// Full packets in a queue from which switches mark data (ECN); default: one and a quarter
    /// bandwidth-delay products.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub ecn_packets: Option<u32>,
    /// Weight of the latest share of marked packets in its mean (g of DCTCP).
    #[schemars(range(min = 0.001, max = 1.0))]
    pub gain: f64,
    /// Smallest limit of a sender's credit by its own marks, as a share of `sender-credit-bytes`.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub sender_limit_min: f64,
    /// Smallest limit of a sender's credit by the marks of switches, as a share of
    /// `sender-credit-bytes`.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub core_limit_min: f64,
    /// Choice of the sender that a receiver gives its next credit.
    pub receiver_policy: ReceiverPolicy,
    /// Choice of the data packet that a sender sends next.
    pub sender_policy: SenderPolicy,
    /// The class of unscheduled packets.
    pub unscheduled_class: UnscheduledClass,
    /// Rate of the packets for which a receiver gives credit, as a share of its link's.
    #[serde(rename = "credit-rate", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.01, max = 1.0))]
    pub credit_rate_milli: u32,
    /// Timeout in control round trips, or in times of a full packet if these are longer. A receiver
    /// then takes credit back, and a sender repeats its request.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub timeout_rtts: u32,
    /// Lengths of packets.
    #[serde(flatten)]
    pub packet: CreditPackets,
    /// Unanswered repetitions after which a message is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for SirdConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for SirdConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", SirdConfig::paper), ("reference", SirdConfig::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 100, payload: Some(1456), window: Some(100_000) }];
}

impl SirdConfig {
    /// The paper's design, with its thresholds as shares of the network's bandwidth-delay product.
    pub fn paper() -> Self {
        Self {
            credit_bytes: None,
            sender_credit_bytes: None,
            unscheduled_bytes: None,
            sender_mark_packets: None,
            ecn_packets: None,
            // These three are the defaults of the authors' simulator.
            gain: 0.08,
            sender_limit_min: 0.1,
            core_limit_min: 0.03,
            receiver_policy: ReceiverPolicy::Srpt,
            sender_policy: SenderPolicy::HalfFair,
            unscheduled_class: UnscheduledClass::Control,
            credit_rate_milli: 990,
            timeout_rtts: 64,
            packet: CreditPackets::default(),
            attempts_max: 24,
        }
    }

    /// The defaults of the authors' ns-2 simulator, with the packets that Homa has there. Timeouts
    /// are longer than any of its messages waits.
    pub fn reference() -> Self {
        Self {
            credit_bytes: Some(150_000),
            sender_credit_bytes: Some(100_000),
            // 100 000 B on the wire are 65 full packets.
            unscheduled_bytes: Some(65 * 1_456),
            sender_mark_packets: Some(33),
            ecn_packets: Some(82),
            credit_rate_milli: 1_000,
            timeout_rtts: 4_096,
            packet: CreditPackets::NS2,
            ..Self::paper()
        }
    }

    pub(crate) fn segmentation(&self) -> Segmentation {
        self.packet.full.segmentation(Padding::Exact)
    }

    fn full(&self) -> u64 {
        self.packet.full.wire().get()
    }

    fn bdp_packets(&self, facts: &FabricFacts) -> u64 {
        u64::from(facts.bdp_packets(self.packet.full.wire()).max(1))
    }

    /// Queue length from which switches mark data.
    pub(super) fn ecn_bytes(&self, facts: &FabricFacts) -> Bytes {
        let derived = || (self.bdp_packets(facts) * 5).div_ceil(4);
        Bytes::new(self.full() * self.ecn_packets.map_or_else(derived, u64::from))
    }

    /// Returns the laws of the limits of a sender that may have `most` bytes of credit.
    fn limit_configs(&self, max: u64) -> LimitConfigs {
        let law = |share: f64| {
            let min = (max as f64 * share) as u64;
            LimitConfig { gain: self.gain, min: min.max(1), max, full: self.full() }
        };
        LimitConfigs { sender: law(self.sender_limit_min), core: law(self.core_limit_min) }
    }

    /// Checks the parameters and derives what follows from them on a fabric.
    ///
    /// # Errors
    /// A parameter out of range, a payload that is longer than a packet, or less credit than for
    /// one packet.
    pub fn derive(self, facts: &FabricFacts) -> Result<Sird, BadKey> {
        check_ranges(&self)?;
        let (full, bdp) = (self.full(), self.bdp_packets(facts));
        let first = self.packet.unscheduled_payload()?;
        let or = |bytes: Option<u32>, derived: u64| bytes.map_or(derived, u64::from);
        let credit = or(self.credit_bytes, bdp * full * 3 / 2);
        let sender_credit = or(self.sender_credit_bytes, bdp * full);
        check_range("credit-bytes", credit, full..=u64::MAX, "a full packet at least")?;
        check_range(
            "sender-credit-bytes",
            sender_credit,
            full..=credit,
            "a packet to credit-bytes",
        )?;
        let unscheduled = or(self.unscheduled_bytes, bdp * first);
        // Rounded up: never faster than the link.
        let full_time = facts.access_rate.tx_time(Bytes::new(full)).as_ps() * 1_000;
        Ok(Sird {
            credited: self.segmentation(),
            uncredited: Segmentation::new(
                Bytes::new(first),
                Bytes::new(full - first),
                Padding::Exact,
            ),
            credit,
            sender_credit,
            unscheduled,
            peers: None,
            mark_above: self.packet.full.payload.get()
                * or(self.sender_mark_packets, bdp.div_ceil(2)),
            limits: self.limit_configs(sender_credit),
            credit_interval: Span::from_ps(full_time.div_ceil(u64::from(self.credit_rate_milli))),
            recovery: Recovery::new(facts, self.timeout_rtts, Bytes::new(full), self.attempts_max),
            config: self,
        })
    }
}

/// The parameters of SIRD on one fabric: a configuration that has been checked, and what follows
/// from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sird {
    /// The parameters.
    pub config: SirdConfig,
    /// Packets of messages with credit, and of those without. The latter may carry less.
    pub(super) credited: Segmentation,
    pub(super) uncredited: Segmentation,
    /// Bytes for which a receiver may have credit outstanding (B).
    pub credit: u64,
    /// Maximum of these of one sender.
    pub sender_credit: u64,
    /// Size up to which messages need no credit (UnschT).
    pub unscheduled: u64,
    /// The rates of all hosts, where that size belongs to a pair; `None` if no host is slower.
    pub peers: Option<Peers>,
    /// Bytes of credit above which a sender of several messages marks its data (SThr).
    pub mark_above: u64,
    /// Laws of the limits of a sender.
    pub limits: LimitConfigs,
    /// Time between credits for full packets.
    pub credit_interval: Span,
    /// Timeouts of messages, by [`SirdConfig::timeout_rtts`] and [`SirdConfig::attempts_max`].
    pub recovery: Recovery,
}

impl Sird {
    /// Returns the segmentation of messages of `size` into packets.
    #[inline]
    pub(super) fn segmentation(&self, size: u64) -> &Segmentation {
        if size <= self.unscheduled { &self.uncredited } else { &self.credited }
    }

    /// Returns the length of all packets of a message of `size` on the wire.
    pub(super) fn wire_bytes(&self, size: u64) -> u64 {
        let segmentation = self.segmentation(size);
        segmentation.wire_bytes_of_first(size, segmentation.packets(Bytes::new(size)))
    }

    /// Returns a full packet on the wire.
    #[inline]
    pub(super) fn full(&self) -> u64 {
        self.credited.full_wire_bytes().get()
    }

    /// Returns true if messages without credit are cut into packets like others.
    pub(super) fn is_even(&self) -> bool {
        self.credited == self.uncredited
    }

    /// Returns these parameters with the packets of `network`.
    pub(super) fn with_packets_of(self, network: &Self) -> Self {
        let &Self { credited, uncredited, unscheduled, .. } = network;
        Self { credited, uncredited, unscheduled, ..self }
    }

    /// The class of data with credit.
    pub(super) const DATA: Priority = Priority::new(1);

    /// Returns the timeout of messages to or from `peer`.
    #[inline]
    pub(super) fn timeout_of(&self, peer: NodeId) -> Span {
        let full = self.credited.full_wire_bytes();
        self.recovery.timeout_of(self.peers.as_ref(), full, peer)
    }

    /// The class of data without credit.
    pub(super) fn unscheduled_class(&self) -> Priority {
        match self.config.unscheduled_class {
            UnscheduledClass::Data => Self::DATA,
            UnscheduledClass::Control => Priority::HIGHEST,
        }
    }

    /// Returns the laws of the limits of a sender.
    pub(super) fn limits_from(&self, src: NodeId) -> LimitConfigs {
        match &self.peers {
            Some(peers) if self.config.sender_credit_bytes.is_none() => {
                let bdp = self.config.bdp_packets(&peers.facts_from(src));
                self.config.limit_configs((bdp * self.full()).min(self.sender_credit))
            }
            _ => self.limits,
        }
    }

    /// Returns true if a message of `size` to `dst` is sent without credit.
    pub(super) fn is_unscheduled_to(&self, dst: NodeId, size: u64) -> bool {
        self.is_unscheduled(self.peers.as_ref().map(|peers| peers.facts_to(dst)), size)
    }

    /// Returns true if a message of `size` from `src` is sent without credit.
    pub(super) fn is_unscheduled_from(&self, src: NodeId, size: u64) -> bool {
        self.is_unscheduled(self.peers.as_ref().map(|peers| peers.facts_from(src)), size)
    }

    /// Returns true if a message of `size` is sent without credit at the rate of `facts`, or at the
    /// host's own.
    fn is_unscheduled(&self, facts: Option<FabricFacts>, size: u64) -> bool {
        let bytes = |facts| self.config.bdp_packets(&facts) * self.config.packet.full.payload.get();
        size <= facts.map_or(self.unscheduled, bytes)
    }

    /// Time between the credit for a packet of `wire` bytes and the next one.
    #[inline]
    pub(super) fn credit_interval_of(&self, wire_bytes: u64) -> Span {
        if wire_bytes == self.full() {
            return self.credit_interval;
        }
        Span::from_ps((self.credit_interval.as_ps() * wire_bytes).div_ceil(self.full()))
    }
}
