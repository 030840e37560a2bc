//! dcPIM's parameters (§3.6) and what they imply for one fabric.

use rampmeter_types::{FabricFacts, NodeId, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{
    AttemptLimit, Padding, Segmentation, forget_after, keepalive, retransmit_gap,
};

/// Number of stages from the start of a matching phase to that of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseStages {
    /// 2r + 1 stages (§3.3, figure 2): data starts one stage after the last accept was sent.
    Paper,
    /// 2r stages: the last accept coincides with the next phase's first request, and data starts
    /// with it. The authors' simulator does this.
    Overlapped,
}

/// Treatment of requests and grants of another round than the current one of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounds {
    /// They are ignored (§3.3 allows it). With clocks further apart than the slack of a stage, some
    /// pairs of hosts can then never match. The authors' simulator does this.
    Strict,
    /// A host follows its own stages alone (§3.5). A request is granted in the sender's next grant
    /// stage. A grant is accepted in the receiver's next accept stage of the phase of its request.
    Local,
}

/// Use of capacity that is idle in the running data phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleCapacity {
    /// Idle capacity is not used: a match serves only the data phase that it was made for.
    Unused,
    /// A match may start at once on channels that the running data phase does not use, at the
    /// lowest token rank. The authors' simulator does this; the paper does not mention it.
    Prompt,
}

/// Flows of a source from which a request for channels is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demand {
    /// All outstanding bytes of the source, less those that matched channels have yet to bring
    /// (§3.4).
    Source,
    /// Outstanding bytes of its smallest flow, less a full phase of every matched channel, also of
    /// the running phase. The authors' simulator does this.
    SmallestFlow,
}

/// Packets by which a receiver and a sender agree on the start and the end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notification {
    /// Every notification is acknowledged. The sender sends a finish, and the receiver answers it
    /// (§3.2).
    Explicit,
    /// The receiver sends only its final acknowledgement without a request. A sender without a
    /// response repeats its notification, which is then acknowledged. The authors' simulator sends
    /// the same packets as long as none is lost.
    Implicit,
}

/// The priorities of data packets in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPriority {
    /// Short flows have 1. Others have the rank of their source among the matched ones, which
    /// tokens carry (§3.4: sources with fewer remaining bytes get higher priorities).
    Token,
    /// Priority by total size in packets, to the base 7. The authors' simulator does this.
    Size,
}

/// Counting of the tokens in flight of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenWindow {
    /// Tokens for which no data has arrived (§3.2). Those of earlier phases count until they must
    /// have expired at the sender; their packets are then the first to get new tokens.
    Outstanding,
    /// In numbers of tokens: from the latest one whose data has arrived to the last one sent, so
    /// that any data closes earlier gaps. The authors' simulator does this.
    Number,
}

/// Order in which a sender serves short flows and tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenOrder {
    /// Tokens by rank, short flows first, and in order of arrival within a rank (§3.2).
    Rank,
    /// In order of arrival, except that a later one is served first if both its rank and its flow's
    /// remaining packets are smaller. The authors' simulator does this.
    RankAndRemaining,
}

/// Reaction of a receiver to announced short flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShortFlowPacing {
    /// Tokens are sent as if there were no short flows: token clocking adapts to them (§3.2).
    Ignore,
    /// The receiver withholds as many tokens as the latest short flow has packets. The authors'
    /// simulator does this.
    Withhold,
}

/// dcPIM's parameters. [`DcpimConfig::paper`] and [`DcpimConfig::reference`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DcpimConfig {
    /// Matching rounds, r.
    #[schemars(range(min = 1, max = 32))]
    pub matching_rounds: u8,
    /// Channels of a host in each direction, k.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u8,
    /// Slack of a stage, beta.
    #[serde(rename = "beta", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.1, max = 100.0))]
    pub beta_milli: u32,
    /// Full packets that a phase holds for each channel, at least: stages are longer than beta
    /// requires if round trips are short and links slow.
    #[serde(rename = "channel-packets-min")]
    #[schemars(range(min = 1, max = 1000))]
    pub channel_packets_min: u32,
    /// True if the first round prefers the smallest flows (§3.5).
    pub fct_round: bool,
    /// Largest flow, in packets, that is sent without matching; default: one BDP.
    #[serde(rename = "short-flow-packets")]
    pub short_flow_max: Option<u32>,
    /// Stages of a phase.
    pub phase_stages: PhaseStages,
    /// Treatment of messages out of their round.
    pub stage_check: Rounds,
    /// Use of the capacity of channels that no matching fills.
    pub idle_capacity: IdleCapacity,
    /// Demand from which requests are derived.
    pub demand: Demand,
    /// Opening and end of flows: by packets of their own, or by the first and last data.
    pub notification: Notification,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Priorities of data packets.
    pub data_priority: DataPriority,
    /// Counting of tokens in flight.
    pub token_window: TokenWindow,
    /// Service at the sender.
    pub token_order: TokenOrder,
    /// Reaction to announced short flows.
    pub short_flow_pacing: ShortFlowPacing,
    /// Time for which tokens are valid after their phase, beyond half a control round trip, in full
    /// packet times per channel of a host.
    #[schemars(range(min = 0, max = 1000))]
    pub grace_packets: u32,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Unanswered repetitions after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for DcpimConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for DcpimConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", DcpimConfig::paper), ("reference", DcpimConfig::reference)];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 100, payload: None, window: None }];
}

impl DcpimConfig {
    /// The paper's design (§3) and parameters (§4.1): r = k = 4, beta = 1.3.
    pub fn paper() -> Self {
        Self {
            matching_rounds: 4,
            channels: 4,
            beta_milli: 1300,
            channel_packets_min: 4,
            fct_round: true,
            short_flow_max: None,
            phase_stages: PhaseStages::Paper,
            stage_check: Rounds::Local,
            idle_capacity: IdleCapacity::Unused,
            demand: Demand::Source,
            notification: Notification::Explicit,
            padding: Padding::Exact,
            data_priority: DataPriority::Token,
            token_window: TokenWindow::Outstanding,
            token_order: TokenOrder::Rank,
            short_flow_pacing: ShortFlowPacing::Ignore,
            grace_packets: 0,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 24,
        }
    }

    /// The behaviour of the authors' simulator, with the same parameters.
    pub fn reference() -> Self {
        Self {
            channel_packets_min: 1,
            phase_stages: PhaseStages::Overlapped,
            stage_check: Rounds::Strict,
            idle_capacity: IdleCapacity::Prompt,
            demand: Demand::SmallestFlow,
            notification: Notification::Implicit,
            padding: Padding::Full,
            data_priority: DataPriority::Size,
            token_window: TokenWindow::Number,
            token_order: TokenOrder::RankAndRemaining,
            short_flow_pacing: ShortFlowPacing::Withhold,
            grace_packets: 1,
            ..Self::paper()
        }
    }
}

/// Maximum number of channels of a host in each direction.
const CHANNELS_MAX: u64 = 255;

/// The parameters of dcPIM on one fabric: a configuration that has been checked, and the times and
/// counts that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcpim {
    /// The parameters.
    pub config: DcpimConfig,
    /// Time of a full packet on an access link.
    pub mtu_time: Span,
    /// Unloaded round trip with full packets.
    pub data_rtt: Span,
    /// Bandwidth-delay product in full packets: 49 in the paper's network.
    pub bdp: u32,
    /// Largest flow, in packets, that is sent without matching.
    pub short_max: u32,
    /// Rates between hosts, if these differ.
    pub peers: Option<Peers>,
    /// The rate of a channel: 1/k of that of the slowest host (§3.4).
    pub channel_rate: Rate,
    /// Channels by which the host receives.
    pub receive_channels: u8,
    /// Channels by which the host sends.
    pub send_channels: u8,
    /// Length of a stage: beta times half a control round trip (§3.3).
    pub stage: Span,
    /// Stages of a phase.
    pub stages: u32,
    /// Full packets that a channel carries in a phase.
    pub channel_packets: u32,
    /// Time for which tokens are valid after the end of their phase (§3.2).
    pub grace: Span,
    /// Time after which a notification or a finish is first repeated.
    pub retry: Span,
    /// Time without a response after which a sender repeats the notification of a flow.
    pub keepalive: Span,
    /// Time between repetitions for two flows, if many are due.
    pub retransmit_gap: Span,
    /// Time without packets of its sender after which a receiver drops a flow.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// True if a host without messages skips stages. Real hosts do, as stages cost processor time.
    /// Simulated ones do not, as the order of events of one instant would change.
    pub may_sleep: bool,
    /// True if the core may hold up data for long: it is narrower than the links of hosts, or its
    /// capacity is not known.
    pub may_delay_data: bool,
}

/// The parameters of two hosts, which follow from the rate of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Time of a full packet at the rate of the pair.
    pub mtu_time: Span,
    /// Bandwidth-delay product in full packets.
    pub bdp: u32,
    /// Largest flow, in packets, that is sent without matching.
    pub short_max: u32,
    /// Maximum number of channels of the pair.
    pub channels: u8,
    /// Full packets that a channel carries in a phase.
    pub channel_packets: u32,
    /// Time of one BDP. A flow waits that long for packets in flight once each packet has had a
    /// token. A short flow waits that long beyond its own length.
    pub data_timeout: Span,
    /// Time from the last token to the reopening of a full window: 1.1 times `data_timeout`.
    pub window_timeout: Span,
    /// Time from the end of a phase to the arrival of the last data for its tokens.
    pub late_data_time: Span,
}

/// Control packets of a phase between two hosts: requests, grants, accepts and announcements.
const CONTROL_PACKETS_A_PEER: u64 = 4;

impl DcpimConfig {
    /// Returns the stages of a phase.
    fn stages(&self) -> u32 {
        match self.phase_stages {
            PhaseStages::Paper => 2 * u32::from(self.matching_rounds) + 1,
            PhaseStages::Overlapped => 2 * u32::from(self.matching_rounds),
        }
    }

    /// Returns the length of a stage: beta times half a control round trip (§3.3). It is no less
    /// than makes a phase hold `channel-packets-min` packets for each channel.
    ///
    /// A phase also holds the control packets of a host with all others at its share of the core,
    /// unless as many packets of data take less. Where these do not fit, matching starves.
    pub(super) fn stage(&self, facts: &FabricFacts) -> Span {
        let packets = u64::from(self.channels) * u64::from(self.channel_packets_min);
        let data = |rate: Rate| rate.tx_time(self.packet.wire()) * packets;
        let control = self.packet.header * (CONTROL_PACKETS_A_PEER * u64::from(facts.n_hosts));
        let in_core = |core: Rate| core.tx_time(control).min(data(core));
        let phase = data(facts.access_rate).max(facts.core_rate.map_or(Span::ZERO, in_core));
        let shortest = Span::from_ps(phase.as_ps().div_ceil(self.stages().into()));
        facts.control_rtt.scale_floor(self.beta_milli.into(), 2_000).max(shortest)
    }

    /// Checks the parameters and derives what follows from them on a fabric.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts) -> Result<Dcpim, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::new(self.attempts_max, facts);
        let mtu_time = facts.access_rate.tx_time(self.packet.wire());
        let bdp = facts.bdp_packets(self.packet.wire());
        let stage = self.stage(facts);
        let stages = self.stages();
        let channel_time = stage * u64::from(stages) / u64::from(self.channels);
        let grace_packets = u64::from(self.grace_packets) * u64::from(self.channels);
        let grace = facts.control_rtt / 2 + mtu_time * grace_packets;
        let keepalive = keepalive(facts, self.packet.wire());
        let retry = match self.notification {
            Notification::Explicit => facts.data_rtt,
            Notification::Implicit => keepalive,
        };
        Ok(Dcpim {
            mtu_time,
            data_rtt: facts.data_rtt,
            bdp,
            short_max: self.short_flow_max.unwrap_or(bdp),
            peers: None,
            channel_rate: Rate::from_bps(facts.access_rate.as_bps() / u64::from(self.channels))
                .unwrap_or(facts.access_rate),
            receive_channels: self.channels,
            send_channels: self.channels,
            stage,
            stages,
            channel_packets: channel_time.div_floor(mtu_time) as u32,
            grace,
            retry,
            keepalive,
            retransmit_gap: retransmit_gap(facts),
            forget_timeout: attempt_limit
                .forget_timeout(forget_after(keepalive, self.attempts_max)),
            attempt_limit,
            may_sleep: false,
            may_delay_data: false,
            config: self,
        })
    }
}

impl Dcpim {
    /// Returns true if missing packets may wait in the core, so that they are not taken for lost.
    pub(super) fn may_hold_up(&self) -> bool {
        self.may_delay_data && self.config.token_window == TokenWindow::Outstanding
    }

    /// Returns the parameters of a host among hosts of other rates. All agree on the length of a
    /// stage and on the rate of a channel. So the number of channels of a host is in proportion to
    /// its rate.
    pub(super) fn adapt_to_peers(self, network: &Dcpim, peers: &Peers) -> Self {
        let least = peers.max_rate().as_bps().div_ceil(CHANNELS_MAX);
        let channel_rate = network.channel_rate.max(Rate::from_bps(least).expect("not zero"));
        let own = Self { stage: network.stage, channel_rate, peers: Some(peers.clone()), ..self };
        let receive_channels = own.channels_at(peers.rx_rate());
        let send_channels = own.channels_at(peers.tx_rate());
        let channel_packets = own.channel_packets(receive_channels, own.mtu_time);
        Self { receive_channels, send_channels, channel_packets, ..own }
    }

    /// Returns the parameters of flows to `dst`.
    pub(super) fn pair_to(&self, dst: NodeId) -> Pair {
        self.pair(self.peers.as_ref().map(|peers| peers.facts_to(dst)))
    }

    /// Returns the parameters of flows from `src`.
    pub(super) fn pair_from(&self, src: NodeId) -> Pair {
        self.pair(self.peers.as_ref().map(|peers| peers.facts_from(src)))
    }

    /// Returns the parameters at the rate of `facts`, or at the host's own.
    fn pair(&self, facts: Option<FabricFacts>) -> Pair {
        let Some(facts) = facts else { return self.own_pair() };
        let packet = self.config.packet.wire();
        // A longer flow waits for a phase, whose length follows from the network's round trip. That
        // of the pair is longer if its packets take longer than those at this host's own rate.
        let data_rtt = facts.data_rtt.max(self.data_rtt);
        let facts = FabricFacts { data_rtt, ..facts };
        let (mtu_time, bdp) = (facts.access_rate.tx_time(packet), facts.bdp_packets(packet));
        let short_max = self.config.short_flow_max.unwrap_or(bdp);
        let channels = self.channels_at(facts.access_rate);
        let channel_packets = self.channel_packets(channels, mtu_time);
        self.pair_of(mtu_time, bdp, short_max, channels, channel_packets, data_rtt)
    }

    /// Returns the parameters of two hosts with this host's rate.
    pub(super) fn own_pair(&self) -> Pair {
        let &Self { mtu_time, bdp, short_max, channel_packets, data_rtt, .. } = self;
        self.pair_of(mtu_time, bdp, short_max, self.config.channels, channel_packets, data_rtt)
    }

    fn pair_of(
        &self,
        mtu_time: Span,
        bdp: u32,
        short_max: u32,
        channels: u8,
        channel_packets: u32,
        data_rtt: Span,
    ) -> Pair {
        let data_timeout = mtu_time * u64::from(bdp);
        let window_timeout = data_timeout.scale_floor(11, 10);
        let late_data_time = self.grace + data_rtt / 2;
        Pair {
            mtu_time,
            bdp,
            short_max,
            channels,
            channel_packets,
            data_timeout,
            window_timeout,
            late_data_time,
        }
    }

    /// Returns the number of channels at `rate`.
    fn channels_at(&self, rate: Rate) -> u8 {
        (rate.as_bps() / self.channel_rate.as_bps()).clamp(1, CHANNELS_MAX) as u8
    }

    /// Returns the full packets that one of `channels` carries in a phase.
    fn channel_packets(&self, channels: u8, mtu_time: Span) -> u32 {
        (self.phase() / u64::from(channels)).div_floor(mtu_time).max(1) as u32
    }

    /// Length of a phase.
    pub fn phase(&self) -> Span {
        self.stage * u64::from(self.stages)
    }

    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }
}
