//! TCP's parameters and what they imply for one network.

use rampmeter_types::packet::Marks;
use rampmeter_types::{FabricFacts, NodeId, Priority, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::control::{Algorithm, ControlParams, SlowStartExit};
use crate::keys::{BadKey, Keys, PacketSizes, Preset, Setting, check_ranges};
use crate::registered::Peers;
use crate::toolkit::{AttemptLimit, Padding, Segmentation};

/// Messages that share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// Each message opens a connection, and closes it.
    PerMessage,
    /// All of a pair of hosts, one after the other.
    Persistent,
    /// Connections of a pair, if one follows the other: a message takes an idle connection, and
    /// opens one if there is none.
    Pool,
}

/// Detection of losses before the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// Time since segments were sent that have arrived, with a probe at the end (RFC 8985).
    RackTlp,
    /// Segments that have arrived above (RFC 6675).
    DupAck,
}

/// Time for which a sender waits for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timeout {
    /// Estimate from round trips, twice as long after each timeout (RFC 6298).
    Estimated,
    /// The minimum, always.
    Fixed,
}

/// Measurement of round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttResolution {
    /// Picoseconds.
    Exact,
    /// Timestamps in milliseconds, as ns-3 has them: a round trip within a millisecond counts as
    /// one microsecond. Congestion control is notified of smoothed round trips only.
    Milliseconds,
}

impl RttResolution {
    /// Returns the measured value of a round trip of `rtt` that ends at `now`.
    pub(super) fn measure(self, now: Time, rtt: Span) -> Span {
        const MILLISECOND: u64 = 1_000_000_000;
        match self {
            Self::Exact => rtt,
            Self::Milliseconds => {
                let sent = now.as_ps().saturating_sub(rtt.as_ps());
                let ticks = now.as_ps() / MILLISECOND - sent / MILLISECOND;
                Span::from_ps(ticks * MILLISECOND).max(Span::from_us(1))
            }
        }
    }
}

/// The parameters of TCP. [`TcpConfig::cubic`], [`TcpConfig::new_reno`], [`TcpConfig::dctcp`] and
/// the reference settings are presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TcpConfig {
    /// The congestion control.
    pub congestion_control: Algorithm,
    /// Messages that share a connection.
    pub connections: Connections,
    /// True if connections are opened by a handshake. Otherwise they are open when the run starts.
    pub handshake: bool,
    /// First window in segments.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_initial: u32,
    /// Maximum window in segments.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_max: u32,
    /// Event that ends slow start before the first loss; Cubic only.
    pub slow_start_exit: SlowStartExit,
    /// True if Cubic's window grows by at least 5 % a round trip before the first loss, as in Linux
    /// and ns-3.
    pub fast_initial_growth: bool,
    /// True if Cubic's window is at least that of NewReno (RFC 9438 §4.3).
    pub reno_friendly: bool,
    /// True if the estimate of NewReno's window grows by a segment a round trip beyond the window
    /// before the loss (RFC 9438 §4.3). Linux has 9/17.
    pub reno_catch_up: bool,
    /// Measurement of round trips.
    pub rtt_resolution: RttResolution,
    /// Detection of losses.
    pub loss_detection: LossDetection,
    /// Segments that must have arrived above a missing one for it to be lost.
    #[schemars(range(min = 1, max = 1_000))]
    pub duplicate_acks: u32,
    /// Reordering window of `rack-tlp`, in shortest round trips, rounded to quarters, regardless of
    /// earlier reordering. RFC 8985's if left out: none before segments overtook one another, then
    /// a quarter.
    #[serde(rename = "reordering-window-rtts", with = "crate::keys::optional_quarters")]
    #[schemars(with = "Option<f64>", range(min = 0.25, max = 16.0))]
    pub rack_quarters: Option<u8>,
    /// Time in us that `rack-tlp` waits beyond two round trips before it probes the end of a
    /// flight. RFC 8985 §7.2 has none; Linux 8000, two ticks of 250 Hz.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub probe_slack_us: u64,
    /// Time for which a sender waits for an acknowledgement.
    pub rto_mode: Timeout,
    /// Minimum retransmission timeout in microseconds; default: 64 round trips, 200 ms at most.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub rto_min_us: Option<u64>,
    /// Maximum retransmission timeout in microseconds, a round trip or more. Default: 256 times the
    /// minimum or a round trip, whichever is longer, one minute at most.
    #[schemars(range(min = 1, max = 120_000_000))]
    pub rto_max_us: Option<u64>,
    /// Retransmission timeout before there is a sample, in microseconds; default: 64 round trips, 1
    /// s at most.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub rto_initial_us: Option<u64>,
    /// True if the window returns to the first one when a connection was idle for longer than the
    /// retransmission timeout (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// Segments for each acknowledgement.
    #[schemars(range(min = 1, max = 64))]
    pub segments_per_ack: u32,
    /// Longest time that an acknowledgement is delayed, in microseconds.
    #[schemars(range(min = 1, max = 500_000))]
    pub ack_delay_us: u64,
    /// True if senders support ECN (RFC 3168).
    pub ecn: bool,
    /// True if handshakes and acknowledgements may be marked too.
    pub ecn_control: bool,
    /// Queue length in full packets above which ports mark. Default: 0.78 bandwidth-delay products,
    /// which are 65 packets at 10 Gbit/s and 100 us (Alizadeh et al. §3.4, §4).
    #[schemars(range(min = 0, max = 100_000))]
    pub ecn_packets: Option<u32>,
    /// DCTCP's weight of a new measurement.
    #[schemars(range(min = 0, max = 1))]
    pub gain: f64,
    /// DCTCP's first estimate of the share of marked bytes.
    #[schemars(range(min = 0, max = 1))]
    pub alpha_initial: f64,
    /// True if packets are paced evenly over a round trip: twice the window a round trip in slow
    /// start, 1.2 times the window afterwards.
    pub pacing: bool,
    /// Receive window in bytes; default: two bandwidth-delay products, 16 MiB at least.
    #[schemars(range(min = 1_000, max = 2_000_000_000))]
    pub receive_buffer_bytes: Option<u64>,
    /// Packet memory of a port in full packets; default: five bandwidth-delay products, 64 packets
    /// at least.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub switch_queue_packets: Option<u32>,
    /// True if `switch-queue-packets` and `ecn-packets` count packets of any length, as in ns-3's
    /// queues. Otherwise they mean the bytes of that number of full packets, as in switches.
    pub count_packets: bool,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Timeouts in a row after which a connection is aborted.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
}

/// Least room of a receiver that follows from the network, and most.
const RECEIVE_BUFFER_MIN: u64 = 16 << 20;
const RECEIVE_BUFFER_MAX: u64 = 2_000_000_000;
/// Round trips in the smallest timeout, and in the one before there is a sample. Datacenters use
/// 10 ms at round trips of 100 to 250 us (Alizadeh et al. 2010, §4), which are 40 to 100.
const RTO_ROUND_TRIPS: u64 = 64;
/// Upper limit of the derived smallest timeout: Linux's `TCP_RTO_MIN`.
const RTO_MIN_LIMIT: Span = Span::from_us(200_000);
/// Upper limit of the derived timeout before there is a sample (RFC 6298 §2).
const RTO_INITIAL_LIMIT: Span = Span::from_us(1_000_000);
/// Maximum timeout over the minimum or a round trip, and its upper limit (RFC 6298 §2.5).
pub(crate) const RTO_DOUBLED: u64 = 256;
const RTO_MAX_LIMIT: Span = Span::from_us(60_000_000);

impl Default for TcpConfig {
    fn default() -> Self {
        Self::cubic()
    }
}

impl Keys for TcpConfig {
    const PRESETS: &'static [Preset<Self>] = &[
        ("cubic", TcpConfig::cubic),
        ("new-reno", TcpConfig::new_reno),
        ("reference", TcpConfig::reference),
    ];
    const SETTINGS: &'static [Setting] =
        &[Setting { preset: "reference", gbps: 10, payload: None, window: None }];
}

impl TcpConfig {
    /// Cubic (RFC 9438) as hosts have it, with timeouts and ports that follow from the network.
    pub fn cubic() -> Self {
        Self {
            congestion_control: Algorithm::Cubic,
            connections: Connections::PerMessage,
            handshake: true,
            window_initial: 10,
            window_max: 100_000,
            slow_start_exit: SlowStartExit::Never,
            fast_initial_growth: true,
            reno_friendly: true,
            reno_catch_up: true,
            rtt_resolution: RttResolution::Exact,
            loss_detection: LossDetection::RackTlp,
            duplicate_acks: 3,
            rack_quarters: None,
            probe_slack_us: 0,
            rto_mode: Timeout::Estimated,
            rto_min_us: None,
            rto_max_us: None,
            rto_initial_us: None,
            idle_restart: true,
            segments_per_ack: 1,
            ack_delay_us: 1_000,
            ecn: false,
            ecn_control: false,
            ecn_packets: None,
            gain: 0.0625,
            alpha_initial: 1.0,
            pacing: false,
            receive_buffer_bytes: None,
            switch_queue_packets: None,
            count_packets: false,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 15,
        }
    }

    /// NewReno (RFC 6582), otherwise the same.
    pub fn new_reno() -> Self {
        Self { congestion_control: Algorithm::NewReno, ..Self::cubic() }
    }

    /// Cubic as ns-3 3.37 has it: timestamps, original HyStart, duplicate acknowledgements.
    pub fn reference() -> Self {
        Self {
            slow_start_exit: SlowStartExit::AckTrain,
            reno_friendly: false,
            rtt_resolution: RttResolution::Milliseconds,
            count_packets: true,
            loss_detection: LossDetection::DupAck,
            rto_min_us: Some(5_000),
            rto_max_us: Some(1_000_000),
            rto_initial_us: Some(5_000),
            switch_queue_packets: Some(240),
            idle_restart: false,
            packet: PacketSizes::new(1448, 54),
            ..Self::cubic()
        }
    }

    /// DCTCP (RFC 8257).
    pub fn dctcp() -> Self {
        Self { congestion_control: Algorithm::Dctcp, ecn: true, ..Self::cubic() }
    }

    /// DCTCP as ns-3 3.37 has it, with ports that never drop.
    pub fn dctcp_reference() -> Self {
        Self {
            congestion_control: Algorithm::Dctcp,
            ecn: true,
            ecn_control: true,
            ecn_packets: Some(65),
            switch_queue_packets: Some(4_000),
            slow_start_exit: SlowStartExit::Never,
            ..Self::reference()
        }
    }

    /// DCTCP as in the ns-2 scripts of the study over an over-subscribed core (CAPTON §V). It has
    /// persistent connections, ports of two bandwidth-delay products, and a fixed timeout of 200
    /// ms.
    pub fn dctcp_ns2() -> Self {
        Self {
            connections: Connections::Pool,
            handshake: false,
            window_initial: 70,
            window_max: 141,
            loss_detection: LossDetection::DupAck,
            rto_mode: Timeout::Fixed,
            rto_min_us: Some(200_000),
            rto_initial_us: Some(200_000),
            rto_max_us: Some(1_000_000),
            ecn_control: true,
            alpha_initial: 0.0,
            ecn_packets: Some(65),
            switch_queue_packets: Some(142),
            attempts_max: 60,
            ..Self::dctcp()
        }
    }

    /// Checks the parameters and derives what follows from them.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, facts: &FabricFacts, thresholds: Vec<u64>) -> Result<Tcp, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::with_doubling(self.attempts_max, facts);
        let [rto_min, rto_initial, rto_max] = self.timeouts(&attempt_limit, facts)?;
        if self.window_initial > self.window_max {
            let expected = format!("at most {} (window-max)", self.window_max);
            return Err(BadKey::new("window-initial", expected, self.window_initial));
        }
        if self.congestion_control == Algorithm::Dctcp && !self.ecn {
            return Err(BadKey::new("ecn", "true, as DCTCP needs marks", self.ecn));
        }
        let mss = self.packet.payload.get();
        let max = u64::from(self.window_max) * mss;
        let start = ControlParams {
            mss,
            initial: (u64::from(self.window_initial) * mss).min(max),
            max,
            granted: max,
            slow_start_exit: self.slow_start_exit,
            fast_initial_growth: self.fast_initial_growth,
            reno_friendly: self.reno_friendly,
            reno_catch_up: self.reno_catch_up,
            gain: self.gain,
            alpha: self.alpha_initial,
        };
        let longest = match self.rto_mode {
            Timeout::Estimated => rto_max,
            Timeout::Fixed => rto_min,
        };
        let by_attempts = longest * (u64::from(self.attempts_max) + 2) + facts.data_rtt;
        let forget_timeout = attempt_limit.forget_timeout(by_attempts);
        let packet = self.packet.wire();
        let window_probe_gap = facts.access_rate.tx_time(packet) * 16;
        let two_bdps = 2 * u64::from(facts.bdp_packets(packet)) * mss;
        let receive_buffer_bytes = two_bdps.clamp(RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX);
        Ok(Tcp {
            start,
            by_peer: None,
            base_rtt: facts.data_rtt,
            rto_min,
            rto_initial,
            rto_max,
            forget_timeout,
            attempt_limit,
            window_probe_gap,
            receive_buffer_bytes: self.receive_buffer_bytes.unwrap_or(receive_buffer_bytes),
            thresholds,
            config: self,
        })
    }

    /// Returns the smallest timeout, the first, and the largest.
    fn timeouts(&self, limit: &AttemptLimit, facts: &FabricFacts) -> Result<[Span; 3], BadKey> {
        let least = |us: Option<u64>, most| {
            us.map_or((facts.data_rtt * RTO_ROUND_TRIPS).min(most), Span::from_us)
        };
        let rto_min = least(self.rto_min_us, RTO_MIN_LIMIT).max(Span::from_ps(1));
        let rto_initial = least(self.rto_initial_us, RTO_INITIAL_LIMIT).max(rto_min);
        let shortest = rto_min.max(facts.data_rtt);
        let derived = || (shortest * RTO_DOUBLED).min(RTO_MAX_LIMIT).max(rto_initial);
        let rto_max = self.rto_max_us.map_or_else(derived, Span::from_us);
        let rto_max = limit.double_interval(rto_max, rto_initial.max(facts.data_rtt * 4));
        // Connections whose timeouts stay shorter than a round trip fail before the first answer.
        if rto_max < shortest {
            let expected =
                format!("at least {} (rto-min-us, or a round trip)", shortest.as_us_f64());
            return Err(BadKey::new("rto-max-us", expected, rto_max.as_us_f64()));
        }
        // Timeouts that do not grow end before the first answer, regardless of their number.
        if self.rto_mode == Timeout::Fixed && rto_min < facts.data_rtt {
            let round_trip = facts.data_rtt.as_us_f64();
            let expected = format!("a round trip ({round_trip:.1}) or more, as timeouts are fixed");
            return Err(BadKey::new("rto-min-us", expected, rto_min.as_us_f64()));
        }
        Ok([rto_min, rto_initial, rto_max])
    }
}

/// Start of congestion control on connections whose rate or round trip is not the host's own.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStarts {
    peers: Peers,
    starts: Vec<(FabricFacts, ControlParams)>,
}

impl PeerStarts {
    /// Calls `at` with the facts of the network for each such peer, once for equal ones.
    pub fn new(peers: &Peers, at: impl Fn(FabricFacts) -> ControlParams) -> Self {
        let starts = peers.peer_facts().map(|facts| (facts, at(facts))).collect();
        Self { peers: peers.clone(), starts }
    }

    fn start_to(&self, dst: NodeId) -> Option<&ControlParams> {
        let facts = self.peers.facts_to(dst);
        self.starts.iter().find(|(of, _)| *of == facts).map(|(_, start)| start)
    }
}

/// The parameters of TCP on one network, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// The parameters.
    pub config: TcpConfig,
    /// Initial state of congestion control.
    pub start: ControlParams,
    /// The same by peer; `None` if it does not depend on the peer.
    pub by_peer: Option<PeerStarts>,
    /// Unloaded round trip with full packets.
    pub base_rtt: Span,
    /// Minimum retransmission timeout.
    pub rto_min: Span,
    /// Retransmission timeout before there is a sample of the round trip.
    pub rto_initial: Span,
    /// Maximum retransmission timeout.
    pub rto_max: Span,
    /// Time after which a receiver forgets a connection whose sender is unresponsive.
    pub forget_timeout: Span,
    /// Timeouts in a row after which a connection fails.
    pub attempt_limit: AttemptLimit,
    /// A quarter of the interval between two probes of a host for closed windows, if many are
    /// closed. Probes then take a few percent of its link.
    pub window_probe_gap: Span,
    /// Room of a receiver in bytes: its window.
    pub receive_buffer_bytes: u64,
    /// PIAS: the bytes sent above which a message falls into the next lower class. Without any, all
    /// packets are of one class.
    pub thresholds: Vec<u64>,
}

impl Tcp {
    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.packet.segmentation(self.config.padding)
    }

    /// Returns what congestion control starts with on a connection to `dst`.
    pub(super) fn start_to(&self, dst: NodeId) -> &ControlParams {
        self.by_peer.as_ref().and_then(|by_peer| by_peer.start_to(dst)).unwrap_or(&self.start)
    }

    /// Returns the unloaded round trip to `dst` with full packets.
    pub(super) fn base_rtt_to(&self, dst: NodeId) -> Span {
        let of_pair = |by_peer: &PeerStarts| by_peer.peers.facts_to(dst).data_rtt;
        self.by_peer.as_ref().map_or(self.base_rtt, of_pair)
    }

    /// Returns the marks of packets that carry no data.
    pub(super) fn control_marks(&self) -> Marks {
        if self.config.ecn_control { Marks::ECN_CAPABLE } else { Marks::NONE }
    }

    /// Returns true if connections beyond the first of a pair are opened by a handshake even if the
    /// first was opened before.
    pub(super) fn has_late_handshakes(&self) -> bool {
        self.config.connections == Connections::Pool
    }

    /// Returns the class of a packet before which `sent` bytes of its message were sent.
    #[inline]
    pub(crate) fn class(&self, sent: u64) -> Priority {
        let above = self.thresholds.iter().filter(|&&threshold| sent > threshold).count();
        Priority::new(above as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_see_the_milliseconds_that_a_round_trip_spans() {
        let now = Time::ZERO + Span::from_us(3_100);
        let of = |us| RttResolution::Milliseconds.measure(now, Span::from_us(us));
        assert_eq!([of(99), of(100), of(101)], [1, 1, 1_000].map(Span::from_us));
        assert_eq!(of(2_900), Span::from_us(3_000));
        assert_eq!(RttResolution::Exact.measure(now, Span::from_us(101)), Span::from_us(101));
    }
}
