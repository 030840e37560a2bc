//! Homa's parameters and what they imply for one fabric.

use rampmeter_types::{Bytes, FabricFacts, NodeId, Priority, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{CreditPackets, Padding, Recovery, Segmentation, check_range};

/// Amount of data that a grant allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grants {
    /// All that may be in flight (Homa §3.3).
    Window,
    /// One packet. A sender gets no other for the time that the packet takes on its link. The
    /// public ns-2 port does this.
    Packet,
}

/// Treatment of unscheduled packets in switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnscheduledTreatment {
    /// They are queued like others.
    Kept,
    /// Switches drop them above a small threshold. A probe and selective acknowledgements show
    /// which are lost, and these are retransmitted when they are granted (Aeolus).
    Droppable,
}

/// Relation between messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Messages are independent. Each is acknowledged when all of it has arrived.
    Messages,
    /// A message for a host from which one has recently arrived answers that one, and acknowledges
    /// it.
    Rpc,
}

/// Cut-offs between the priorities of unscheduled packets.
pub type Cutoffs = [u64; Priority::COUNT - 1];

/// Homa's parameters. [`HomaConfig::paper`] and [`HomaConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HomaConfig {
    /// Bytes of a message that may be in flight: those sent without a grant, and those granted that
    /// have not arrived. A bandwidth-delay product if left out.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub rtt_bytes: Option<u32>,
    /// Priorities of data packets; the first of them is the highest of the fabric.
    #[schemars(range(min = 2, max = 8))]
    pub priorities: u8,
    /// Number of `priorities` that are for unscheduled packets.
    #[schemars(range(min = 1, max = 7))]
    pub unscheduled_priorities: u8,
    /// Largest messages of the first, second, ... priority for unscheduled packets. N priorities
    /// use the first N - 1 of these sizes.
    #[serde(rename = "cutoffs-bytes")]
    #[schemars(inner(range(min = 0, max = 4_000_000_000_u64)))]
    pub cutoffs: Cutoffs,
    /// Senders that have grants at the same time; default: as many as scheduled priorities.
    #[schemars(range(min = 1, max = 1_000))]
    pub overcommitment: Option<u32>,
    /// Amount of data that a grant allows.
    pub grants: Grants,
    /// Treatment of unscheduled packets in switches.
    pub unscheduled_treatment: UnscheduledTreatment,
    /// Relation between messages: one-way messages, or remote procedure calls.
    pub exchange: Exchange,
    /// Messages that a host may await before its peers must send fewer unscheduled bytes; 0 for no
    /// incast control.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub incast_messages: u32,
    /// Number of unscheduled bytes that a message then has, in whole packets.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub incast_unscheduled_bytes: u32,
    /// Timeout in control round trips, or in times of a full packet if these are longer. A receiver
    /// then requests missing packets, and a sender without a response probes.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub timeout_rtts: u32,
    /// Lengths of packets.
    #[serde(flatten)]
    pub packet: CreditPackets,
    /// Unanswered repetitions after which a message is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for HomaConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for HomaConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", HomaConfig::paper), ("reference", HomaConfig::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 100, payload: Some(1456), window: Some(100_000) }];
}

impl HomaConfig {
    /// The paper's design with eight priorities (§4). One of them is for unscheduled packets, as in
    /// its workloads W4 and W5 (§5.2); a plan for others gives cut-offs ([`super::cutoffs`]).
    pub fn paper() -> Self {
        Self {
            rtt_bytes: None,
            priorities: 8,
            unscheduled_priorities: 1,
            cutoffs: [0; Priority::COUNT - 1],
            overcommitment: None,
            grants: Grants::Window,
            unscheduled_treatment: UnscheduledTreatment::Kept,
            exchange: Exchange::Messages,
            // §3.6 has a threshold and "a few hundred bytes", which are less than a packet here.
            incast_messages: 25,
            incast_unscheduled_bytes: 400,
            // §3.7 has a few milliseconds: packets of the lowest priorities may be queued for long,
            // and are not lost.
            timeout_rtts: 64,
            packet: CreditPackets::default(),
            attempts_max: 24,
        }
    }

    /// The behaviour of the public ns-2 port of SIRD's authors. It recovers from no loss; the
    /// timeouts here are longer than any of its messages waits.
    pub fn reference() -> Self {
        Self {
            rtt_bytes: Some(100_000),
            grants: Grants::Packet,
            incast_messages: 0,
            timeout_rtts: 4_096,
            packet: CreditPackets::NS2,
            ..Self::paper()
        }
    }

    /// The paper's design with Aeolus (Hu et al., SIGCOMM 2020).
    pub fn aeolus() -> Self {
        // A congested core drops probes of unscheduled packets too, in healthy networks.
        Self {
            unscheduled_treatment: UnscheduledTreatment::Droppable,
            attempts_max: 48,
            ..Self::paper()
        }
    }

    pub(crate) fn segmentation(&self) -> Segmentation {
        self.packet.full.segmentation(Padding::Exact)
    }
}

/// The parameters of Homa on one fabric: a configuration that has been checked, and derived values.
#[derive(Clone, Debug, PartialEq)]
pub struct Homa {
    /// The parameters.
    pub config: HomaConfig,
    /// Segmentation of messages into packets, of which the unscheduled ones may carry less.
    pub(super) segmentation: Segmentation,
    /// The rate of access links, by which grants are paced.
    pub rate: Rate,
    /// Bytes of a message on the wire below which more is granted.
    pub window: u64,
    /// Maximum number of unscheduled packets of a message.
    pub unscheduled: u32,
    /// The same while incast control limits them.
    pub unscheduled_in_incast: u32,
    /// The rates of all hosts, if the number of unscheduled packets depends on the pair; `None` if
    /// no host is slower.
    pub peers: Option<Peers>,
    /// Senders that have grants at the same time.
    pub overcommitment: usize,
    /// Timeouts of messages, by [`HomaConfig::timeout_rtts`] and [`HomaConfig::attempts_max`].
    pub recovery: Recovery,
    /// Time after a probe in which unscheduled packets may arrive: the additional round trip time
    /// of full packets over control packets.
    pub settle_time: Span,
    /// Time that a request waits for its answer before it is acknowledged separately.
    pub answer_timeout: Span,
}

impl HomaConfig {
    /// Checks the parameters and derives what follows from them on a fabric.
    ///
    /// # Errors
    /// A parameter out of range, or payloads and headers that do not fit together.
    pub fn derive(self, facts: &FabricFacts) -> Result<Homa, BadKey> {
        check_ranges(&self)?;
        let (priorities, unscheduled) = (self.priorities, self.unscheduled_priorities);
        check_range(
            "unscheduled-priorities",
            unscheduled.into(),
            1..=u64::from(priorities) - 1,
            "fewer than priorities",
        )?;
        let full = self.packet.full.wire();
        let first = self.packet.unscheduled_payload()?;
        let bdp = facts.bdp_packets(full).max(1);
        let (bytes, window) = match self.rtt_bytes {
            Some(bytes) => (u64::from(bytes), u64::from(bytes)),
            None => (u64::from(bdp) * first, u64::from(bdp) * full.get()),
        };
        let segmentation = self.segmentation().with_head(first, bytes);
        let recovery = Recovery::new(facts, self.timeout_rtts, full, self.attempts_max);
        let overcommitment = self.overcommitment.unwrap_or(u32::from(priorities - unscheduled));
        Ok(Homa {
            segmentation,
            rate: facts.access_rate,
            window,
            unscheduled: segmentation.head_packets(),
            unscheduled_in_incast: match self.incast_unscheduled_bytes {
                0 => 0,
                bytes => {
                    segmentation.packets(Bytes::new(bytes.into())).min(segmentation.head_packets())
                }
            },
            peers: None,
            overcommitment: overcommitment as usize,
            recovery,
            settle_time: facts.data_rtt.saturating_sub(facts.control_rtt),
            answer_timeout: recovery.timeout / 2,
            config: self,
        })
    }
}

impl Homa {
    /// Returns the maximum number of unscheduled packets of a message to `dst`.
    pub(super) fn unscheduled_to(&self, dst: NodeId) -> u32 {
        let bdp = |peers: &Peers| {
            peers.facts_to(dst).bdp_packets(self.segmentation.full_wire_bytes()).max(1)
        };
        self.peers.as_ref().map_or(self.unscheduled, bdp)
    }

    /// Returns the timeout of messages to or from `peer`.
    #[inline]
    pub(super) fn timeout_of(&self, peer: NodeId) -> Span {
        let full = self.segmentation.full_wire_bytes();
        self.recovery.timeout_of(self.peers.as_ref(), full, peer)
    }

    /// Returns the bytes that may be in flight of a message from `src`.
    #[inline]
    pub(super) fn window_from(&self, src: NodeId) -> u64 {
        let of_pair = |peers: &Peers| {
            let facts = FabricFacts { access_rate: self.rate, ..peers.facts_from(src) };
            let full = self.segmentation.full_wire_bytes();
            u64::from(facts.bdp_packets(full).max(1)) * full.get()
        };
        self.peers.as_ref().map_or(self.window, of_pair)
    }

    /// The priority of the unscheduled packets of a message (§3.4).
    pub fn unscheduled_priority(&self, size: u64) -> Priority {
        let borders = usize::from(self.config.unscheduled_priorities) - 1;
        let above = self.config.cutoffs[..borders].iter().filter(|&&cutoff| size > cutoff);
        Priority::new(above.count() as u8)
    }

    /// The priority of the message of rank `rank`, counted from zero, among `n_active` that have
    /// grants: they take the lowest levels (§3.4).
    pub fn scheduled_priority(&self, rank: usize, n_active: usize) -> u8 {
        let HomaConfig { priorities, unscheduled_priorities, .. } = self.config;
        let from_below = n_active - rank;
        let level = usize::from(priorities).saturating_sub(from_below) as u8;
        level.clamp(unscheduled_priorities, priorities - 1)
    }

    /// Returns true if switches may drop unscheduled packets.
    #[inline]
    pub(super) fn is_droppable(&self) -> bool {
        self.config.unscheduled_treatment == UnscheduledTreatment::Droppable
    }
}
