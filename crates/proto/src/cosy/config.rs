//! cosy's parameters and what they imply for one fabric.

use rampmeter_types::{Bytes, FabricFacts, LatencyBound, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analysis;
use crate::keys::{BadKey, Keys, PacketSizes, Preset, check_ranges};
use crate::toolkit::{Padding, Segmentation, check_range};

/// cosy's parameters. [`CosyConfig::paper`] and [`CosyConfig::rsvp`] are the presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CosyConfig {
    /// Virtual links of a link, and slots of a host each way (K, §3.3).
    #[schemars(range(min = 1, max = 256))]
    pub slots: u32,
    /// Maximum number of slots that one message may have; default: all of them.
    #[schemars(range(min = 1, max = 256))]
    pub slots_per_message: Option<u32>,
    /// Time for which a receiver holds a request that it cannot serve (appendix A, delta_E).
    /// Default: the time of a message of 128 KB in a single slot.
    #[serde(rename = "hold-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 1e9))]
    pub hold: Option<Span>,
    /// Number of requests, chosen at random, of which the one that has waited longest gets the next
    /// rsvp (§5.1: two).
    #[schemars(range(min = 1, max = 1000))]
    pub choices: u32,
    /// Share of a link that is reserved for control packets.
    #[serde(rename = "control-share", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.0, max = 0.9))]
    pub control_milli: u32,
    /// Allowance of each direction of a round trip for effects that the theorems omit. Default: a
    /// packet that cannot be interrupted at every port. Best-effort packets are added.
    #[serde(skip)]
    pub slack: Option<Span>,
    /// The longest packet of best-effort traffic that shares the links (§4): one may be ahead at
    /// every port.
    #[serde(skip)]
    pub best_effort: Option<Bytes>,
    /// The longest message; longer ones are rejected at once.
    #[serde(skip)]
    pub message_max: Bytes,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
}

impl Default for CosyConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for CosyConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", CosyConfig::paper), ("rsvp", CosyConfig::rsvp)];
}

impl CosyConfig {
    /// Returns the design of §3.3.
    pub fn paper() -> Self {
        Self {
            slots: 8,
            slots_per_message: None,
            hold: None,
            choices: 2,
            control_milli: 50,
            slack: None,
            best_effort: None,
            message_max: Bytes::new(1 << 30),
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
        }
    }

    /// Returns the design of §3.2: links and hosts serve one message at a time, and what cannot be
    /// served at once is rejected.
    pub fn rsvp() -> Self {
        Self { slots: 1, hold: Some(Span::ZERO), ..Self::paper() }
    }
}

/// Facts that cosy needs about the paths of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// Switches on the longest path (#H).
    pub switches: u32,
    /// Ratio of the fastest link's rate to that of a host, rounded down (F, appendix A).
    pub ratio: u32,
    /// Maximum number of ports of any switch.
    pub ports: u32,
}

/// The parameters of cosy on one fabric: a configuration that has been checked, and the times and
/// counts that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cosy {
    /// The parameters.
    pub config: CosyConfig,
    /// The fabric.
    pub facts: FabricFacts,
    /// Paths of the network.
    pub paths: PathFacts,
    /// Time between two packets of all slots of a host together.
    pub tick: Span,
    /// Time between two packets of one slot: K ticks.
    pub frame: Span,
    /// Maximum number of slots of a message.
    pub slots_per_message_max: u32,
    /// Time for which a receiver holds a request.
    pub hold: Span,
    /// The longest time that a data packet spends in queues (lemma 3.3).
    pub queueing: Span,
    /// Allowance of each direction of a round trip for effects that the theorems omit. These are
    /// packets that cannot be interrupted where a control packet arrives, and best-effort packets
    /// where data arrives.
    pub slack: Span,
    /// Time for which a request that met a reject is not retried.
    pub pause: Span,
}

/// Maximum number of attempts for a request that is held long, unless its sender repeats it.
const TRIES: u64 = 64;

/// Maximum number of switches of a path: as many as a rsvp can name.
pub const SWITCHES_MAX: usize = 5;

impl CosyConfig {
    /// Checks the parameters and derives what follows from them on a fabric.
    ///
    /// # Errors
    /// A parameter out of range, or a fabric with longer paths or larger switches than headers can
    /// name.
    pub fn derive(self, facts: &FabricFacts, paths: PathFacts) -> Result<Cosy, BadKey> {
        check_ranges(&self)?;
        let slots_per_message_max = self.slots_per_message.unwrap_or(self.slots);
        check_range(
            "slots-per-message",
            slots_per_message_max.into(),
            1..=self.slots.into(),
            "1 to slots",
        )?;
        let unusable = |expected: &str| BadKey::new("name", expected, "cosy");
        if !(1..=SWITCHES_MAX as u32).contains(&paths.switches) {
            let expected = format!("a transport for paths of {} switches", paths.switches);
            return Err(unusable(&expected));
        }
        if paths.ports > 65_535 {
            return Err(unusable(&format!("a transport for switches of {} ports", paths.ports)));
        }
        let packet = self.packet.wire();
        let packet_time = facts.access_rate.tx_time(packet);
        let tick = packet_time.scale_floor(1_000, (1_000 - self.control_milli).into());
        let frame = tick * u64::from(self.slots);
        let hold = self
            .hold
            .unwrap_or_else(|| frame * Bytes::new(128_000).packets_ceil(self.packet.payload));
        let (slots, ratio) = (self.slots, paths.ratio);
        let queueing =
            analysis::queueing_bound(paths.switches, slots, ratio, packet, facts.access_rate);
        let hops = u64::from(paths.switches) + 1;
        let slack = match (self.slack, self.best_effort) {
            (slack, None) => slack.unwrap_or(packet_time * hops),
            // A round trip's requests and rsvps meet one at every port, in both directions.
            (slack, Some(longest)) => {
                let in_the_way = facts.access_rate.tx_time(longest.max(packet)) * (2 * hops);
                slack.unwrap_or(Span::ZERO) + in_the_way
            }
        };
        Ok(Cosy {
            tick,
            frame,
            slots_per_message_max,
            hold,
            queueing,
            slack,
            pause: facts.data_rtt.max(frame).max(hold / TRIES),
            facts: *facts,
            paths,
            config: self,
        })
    }
}

impl Cosy {
    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }

    /// Returns the time of a message of this many packets in a single slot.
    fn sending_time(&self, packets: u32) -> Span {
        self.frame * u64::from(packets)
    }

    /// Returns the time after its submission within which a message completes or fails. It is
    /// theorem 3.5's bound for packets with their headers, at the pace of slots, and the hold and
    /// the slack.
    pub fn latency_bound(&self) -> LatencyBound {
        let fixed = self.facts.data_rtt * 2 + self.hold + self.queueing + self.slack * 2;
        let payload = self.config.packet.payload;
        LatencyBound { fixed, per_packet: self.sending_time(1), payload, tenant: None }
    }

    /// Returns the bound of a message of `size`.
    pub fn bound(&self, size: Bytes) -> Span {
        self.latency_bound().time(size)
    }

    /// Latest time after its submission at which a message's first rsvp can still meet the bound.
    pub(super) fn admission(&self) -> Span {
        self.facts.data_rtt + self.hold + self.slack
    }

    /// Longest time from a rsvp's departure, or from its passing a switch, to the last use of its
    /// reservation.
    pub(super) fn lease(&self, packets: u32) -> Span {
        self.facts.data_rtt + self.sending_time(packets) + self.queueing + self.slack
    }

    /// Longest wait from a rsvp to the first data packet or a reject.
    pub(super) fn answer(&self) -> Span {
        self.facts.data_rtt + self.next_packet()
    }

    /// Least remaining time of a message for which one more slot makes it finish earlier.
    pub(super) fn worth(&self) -> Span {
        self.facts.data_rtt + self.frame
    }

    /// Returns the time from a packet to the next one of its slot.
    pub(super) fn next_packet(&self) -> Span {
        self.frame + self.queueing + self.slack
    }
}
