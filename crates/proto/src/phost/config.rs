//! pHost's parameters and what they imply for one fabric.

use rampmeter_types::{FabricFacts, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{
    AttemptLimit, Padding, Segmentation, forget_after, keepalive, retransmit_gap,
};

/// Flows that get free tokens (pHost §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeTokens {
    /// Every flow, for its first packets.
    EveryFlow,
    /// Flows that need no others. The authors' simulator does this.
    ShortFlows,
}

/// Flow or tenant that sources and destinations serve first (pHost §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The flow with the fewest remaining packets.
    Srpt,
    /// The flow with the earliest deadline.
    Edf,
    /// The tenant that has been served least, and of its flows the one with the fewest remaining
    /// packets.
    TenantFair,
}

/// The priorities of data packets in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPriority {
    /// Short flows above long ones (pHost §3.3).
    Size,
    /// One for all. The authors' simulator does this.
    Single,
}

/// Tokens of a flow that count towards its downgrading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Downgrading {
    /// Tokens that have expired: unanswered for a round trip and a token's lifetime (algorithm 2).
    Expired,
    /// All unanswered tokens, also those whose data is in flight. The authors' simulator does this.
    Unanswered,
}

/// Time for which a destination waits for packets of free tokens before it requests them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeTokenRepair {
    /// At least the time of the flow's own packets, and the measured delay of packets (RFC 6298).
    /// While packets arrive, the time of all packets of announced free tokens. The wait for the
    /// data of a flow's last tokens is as long.
    Measured,
    /// The time of the flow's own packets, and a round trip.
    RoundTrip,
    /// Twice the time of the flow's own packets, so that many flows without losses are sent twice.
    /// The authors' simulator does this.
    TwicePace,
}

/// Expiry of free tokens that their source has not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreeTokenExpiry {
    /// They do not expire: algorithm 1 gives a time to tokens of destinations alone.
    Never,
    /// After the time of the flow's free packets and the lifetime of a token, also while packets of
    /// other flows use the link. The authors' simulator does this.
    Pace,
}

/// Reaction of a destination to free tokens that have been announced to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenSuppression {
    /// Tokens are sent as if free tokens were not announced.
    Ignore,
    /// The destination sends a flow no tokens until its first free packet arrives, because its
    /// source serves other flows until then. If none arrives in the time that free packets take, it
    /// sends tokens.
    UntilData,
    /// The destination sends no tokens for as long as their packets take. The authors' simulator
    /// does this.
    Withhold,
}

/// Event at which a destination without a flow to serve resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeEvent {
    /// Data that ends a flow's downgrading, the end of a wait, or the announcement of a flow.
    OnData,
    /// The same events, but data has no effect until then. The authors' simulator does this.
    OnClock,
}

/// pHost's parameters. [`PhostConfig::paper`] and [`PhostConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PhostConfig {
    /// Free tokens of a flow; default: one more than a bandwidth-delay product has.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub free_tokens: Option<u32>,
    /// Flows that get free tokens.
    pub free_tokens_for: FreeTokens,
    /// Lifetime of a token at its source, in times of a full packet. Default: 1.5, and between real
    /// hosts at least a control round trip.
    #[serde(rename = "token-lifetime", with = "crate::keys::optional_milli")]
    #[schemars(with = "Option<f64>", range(min = 0.001, max = 10_000.0))]
    pub token_lifetime_milli: Option<u32>,
    /// Tokens of a flow that count towards its downgrading.
    pub downgrade_on: Downgrading,
    /// Most expired tokens of a flow that is not downgraded, or unanswered tokens at which it is;
    /// default: as many as free tokens.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub downgrade_threshold: Option<u32>,
    /// Time for which a flow stays downgraded, in full packet times after its last token or its
    /// downgrading. Default: three times as many as free tokens, and one.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub downgrade_packets: Option<u32>,
    /// Time from a flow's last token to the next request for its missing packets, in full packet
    /// times. Default: one more than free tokens.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub retransmit_packets: Option<u32>,
    /// Flow or tenant that both ends serve first.
    pub policy: Policy,
    /// Priorities of data packets.
    pub data_priority: DataPriority,
    /// Time for which a destination waits for packets of free tokens before it requests them.
    pub free_token_repair: FreeTokenRepair,
    /// Expiry of free tokens at their source. Default: never, and between real hosts by pace.
    pub free_token_expiry: Option<FreeTokenExpiry>,
    /// Suppression of tokens by announced free tokens.
    pub token_suppression: TokenSuppression,
    /// Event that wakes a destination without a flow to serve.
    pub wake_event: WakeEvent,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Unanswered repetitions after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for PhostConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for PhostConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", PhostConfig::paper), ("reference", PhostConfig::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 10, payload: None, window: None }];
}

/// Lifetime of a token in thousandths of a packet time (§3.2: 1.5 times).
pub(super) const TOKEN_LIFETIME_MILLI: u32 = 1_500;

impl PhostConfig {
    /// Returns the paper's design (§3) with the parameters of its study.
    pub fn paper() -> Self {
        Self {
            free_tokens: None,
            free_tokens_for: FreeTokens::EveryFlow,
            token_lifetime_milli: None,
            downgrade_on: Downgrading::Expired,
            downgrade_threshold: None,
            downgrade_packets: None,
            retransmit_packets: None,
            policy: Policy::Srpt,
            data_priority: DataPriority::Size,
            free_token_repair: FreeTokenRepair::Measured,
            free_token_expiry: None,
            token_suppression: TokenSuppression::UntilData,
            wake_event: WakeEvent::OnData,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 24,
        }
    }

    /// Returns the behaviour of the authors' simulator, with the same parameters.
    pub fn reference() -> Self {
        Self {
            free_tokens_for: FreeTokens::ShortFlows,
            downgrade_on: Downgrading::Unanswered,
            data_priority: DataPriority::Single,
            free_token_repair: FreeTokenRepair::TwicePace,
            free_token_expiry: Some(FreeTokenExpiry::Pace),
            token_suppression: TokenSuppression::Withhold,
            wake_event: WakeEvent::OnClock,
            padding: Padding::Full,
            ..Self::paper()
        }
    }
}

/// The parameters of pHost on one fabric: a configuration that has been checked, and the times and
/// counts that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Phost {
    /// The parameters.
    pub config: PhostConfig,
    /// Time of a full packet on an access link: a destination sends a token each (§3.1).
    pub mtu_time: Span,
    /// Free tokens of a flow.
    pub free_tokens: u32,
    /// Most expired tokens of a flow that is not downgraded, or unanswered tokens at which it is.
    pub threshold: u32,
    /// Duration of a downgrading.
    pub downgrade_time: Span,
    /// Wait for what is in flight when every packet has had a token.
    pub resend_wait: Span,
    /// Lifetime of a token at its source.
    pub token_lifetime: Span,
    /// Unloaded round trip.
    pub rtt: Span,
    /// Time without a packet after which a source queries its destination's state of a flow.
    pub keepalive: Span,
    /// Time between repetitions for two flows, if many are due.
    pub retransmit_gap: Span,
    /// Time after which a destination forgets a flow whose source is unresponsive.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// The rates of all hosts; `None` if none is slower.
    pub peers: Option<Peers>,
}

/// The parameters of two hosts, which follow from the slower of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Time of a full packet on the link of the slower end.
    pub mtu_time: Span,
    /// Free tokens of a flow.
    pub free_tokens: u32,
    /// Most expired tokens of a flow that is not downgraded, or unanswered tokens at which it is.
    pub threshold: u32,
    /// Time for which a flow stays downgraded.
    pub downgrade_time: Span,
    /// Wait for what is in flight when every packet has had a token.
    pub resend_wait: Span,
    /// Lifetime of a token at its source.
    pub token_lifetime: Span,
    /// Unloaded round trip with full packets.
    pub rtt: Span,
}

impl PhostConfig {
    /// Checks the parameters and derives what follows from them on a fabric.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts) -> Result<Phost, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let Pair {
            mtu_time,
            free_tokens,
            threshold,
            downgrade_time,
            resend_wait,
            token_lifetime,
            rtt,
        } = self.pair(facts);
        let keepalive = keepalive(facts, self.packet.wire());
        Ok(Phost {
            mtu_time,
            free_tokens,
            threshold,
            downgrade_time,
            resend_wait,
            token_lifetime,
            rtt,
            keepalive,
            retransmit_gap: retransmit_gap(facts),
            forget_timeout: attempt_limit
                .forget_timeout(forget_after(keepalive, self.attempts_max)),
            attempt_limit,
            peers: None,
            config: self,
        })
    }

    /// Derives the parameters of two hosts of which the slower has the rate of `facts`.
    fn pair(&self, facts: &FabricFacts) -> Pair {
        let mtu_time = facts.access_rate.tx_time(self.packet.wire());
        let bdp = facts.bdp_packets(self.packet.wire());
        let free_tokens = self.free_tokens.unwrap_or(bdp + 1);
        let downgrade = self.downgrade_packets.unwrap_or(3 * free_tokens + 1);
        let resend = self.retransmit_packets.unwrap_or(free_tokens + 1);
        let lifetime_milli = self.token_lifetime_milli.unwrap_or(TOKEN_LIFETIME_MILLI);
        Pair {
            mtu_time,
            free_tokens,
            threshold: self.downgrade_threshold.unwrap_or(free_tokens.max(1)),
            downgrade_time: mtu_time * u64::from(downgrade),
            resend_wait: mtu_time * u64::from(resend),
            token_lifetime: mtu_time.scale_floor(lifetime_milli.into(), 1_000),
            rtt: facts.data_rtt,
        }
    }
}

impl Phost {
    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }

    /// Returns the parameters of flows to `dst`.
    pub(super) fn pair_to(&self, dst: NodeId) -> Pair {
        let pair = |peers: &Peers| self.config.pair(&peers.facts_to(dst));
        self.peers.as_ref().map_or_else(|| self.own_pair(), pair)
    }

    /// Returns the parameters of flows from `src`.
    pub(super) fn pair_from(&self, src: NodeId) -> Pair {
        let pair = |peers: &Peers| self.config.pair(&peers.facts_from(src));
        self.peers.as_ref().map_or_else(|| self.own_pair(), pair)
    }

    fn own_pair(&self) -> Pair {
        let &Self {
            mtu_time,
            free_tokens,
            threshold,
            downgrade_time,
            resend_wait,
            token_lifetime,
            rtt,
            ..
        } = self;
        Pair { mtu_time, free_tokens, threshold, downgrade_time, resend_wait, token_lifetime, rtt }
    }

    /// Returns the interval after which a sender repeats itself to `dst`.
    pub(super) fn keepalive_to(&self, dst: NodeId) -> Span {
        self.peers.as_ref().map_or(self.keepalive, |peers| peers.scale_time(self.keepalive, dst))
    }
}

impl Pair {
    /// Time after which a token without an answer has expired, from its sending.
    pub(super) fn token_expiry(&self) -> Span {
        self.rtt + self.token_lifetime
    }

    /// Returns the lifetime of `n` free tokens.
    pub(super) fn free_lifetime(&self, n: u32) -> Span {
        self.mtu_time * u64::from(n) + self.token_lifetime
    }

    /// Returns the number of packets with free tokens in a flow of `packets`.
    pub fn free_packets(&self, packets: u32, free_tokens_for: FreeTokens) -> u32 {
        match free_tokens_for {
            FreeTokens::EveryFlow => packets.min(self.free_tokens),
            FreeTokens::ShortFlows if packets <= self.free_tokens => packets,
            FreeTokens::ShortFlows => 0,
        }
    }
}
