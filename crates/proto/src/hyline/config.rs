//! Hyline's parameters and what they imply for one network.

use std::sync::Arc;

use rampmeter_types::units::PS_PER_SECOND;
use rampmeter_types::{Bytes, DuplexRates, FabricFacts, Priority, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::Paths;
use crate::central::{ControllerKeys, Settings};
use crate::keys::{BadKey, Keys, PacketSizes, Preset, check_ranges};
use crate::registered::{Deployment, Peers, Site};
use crate::tcp::TcpConfig;
use crate::tcp::config::{LossDetection, PeerStarts};
use crate::tcp::control::{Algorithm, ControlParams};
use crate::toolkit::Padding;

/// Hyline's parameters. [`HylineConfig::paper`] is the preset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HylineConfig {
    /// Maximum length of messages that are sent at once, without a request, in bytes.
    #[schemars(range(min = 0, max = 1_000_000_000_000_u64))]
    pub short_flow_bytes: u64,
    /// First window of messages that are not scheduled, in packets. Default: 25 in 72 of a
    /// bandwidth-delay product, the share of 25 packets in the CAPTON paper's network.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_initial: Option<u32>,
    /// Maximum window of messages that are not scheduled, in packets. Default: a bandwidth-delay
    /// product and a packet. The study has 50 of 72.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_max: Option<u32>,
    /// Packets that a flow with a grant has in flight at most; default: `window-max`.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_granted: Option<u32>,
    /// Priorities of data packets. With 2, scheduled messages have the lower one.
    #[schemars(range(min = 1, max = 2))]
    pub priorities: u8,
    /// The controllers.
    #[serde(flatten)]
    pub controller: ControllerKeys,
    /// Minimum retransmission timeout in microseconds; default: that of TCP. The CAPTON paper's
    /// study has 4000 (table 3).
    #[schemars(range(min = 1, max = 60_000_000))]
    pub rto_min_us: Option<u64>,
    /// Packet memory of a port in full packets. Default: two bandwidth-delay products, at least
    /// 142.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub switch_queue_packets: Option<u32>,
    /// Charged length of last packets.
    pub padding: Padding,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Timeouts in a row after which a message is reported as failed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts_max: u32,
}

impl Default for HylineConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for HylineConfig {
    const PRESETS: &'static [Preset<Self>] = &[("paper", HylineConfig::paper)];
}

impl HylineConfig {
    /// Returns the parameters of the CAPTON paper: the threshold of Web Search at a load of 0.8
    /// (table 4). Windows and times follow from the network, and are the paper's in its network.
    pub fn paper() -> Self {
        Self {
            short_flow_bytes: 4_470_000,
            window_initial: None,
            window_max: None,
            window_granted: None,
            priorities: 1,
            controller: ControllerKeys::default(),
            rto_min_us: None,
            switch_queue_packets: None,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 15,
        }
    }

    /// Returns the TCP below, on established connections. A message has one path, so that segments
    /// that overtake others indicate losses.
    fn tcp(&self, window_initial: u32, window_max: u32, facts: &FabricFacts) -> TcpConfig {
        let least = facts.data_rtt.div_floor(Span::from_us(1)) + 1;
        let &Self { rto_min_us, padding, packet, attempts_max, .. } = self;
        TcpConfig {
            congestion_control: Algorithm::NewReno,
            loss_detection: LossDetection::DupAck,
            handshake: false,
            window_initial,
            window_max,
            rto_min_us,
            rto_initial_us: rto_min_us,
            rto_max_us: rto_min_us.map(|us| us.max(1_000_000).max(least)),
            padding,
            packet,
            attempts_max,
            ..TcpConfig::new_reno()
        }
    }
}

/// Bandwidth-delay product of the CAPTON paper's network in packets: 10 Gbit/s for 86.4 us.
const STUDY_BDP: u64 = 72;

/// The parameters of Hyline on one network, checked.
#[derive(Clone, Debug)]
pub struct Hyline {
    /// The parameters.
    pub config: HylineConfig,
    /// Settings shared by hosts and controllers.
    pub settings: Settings,
    /// The network as the controller sees it.
    pub paths: Paths,
    /// The rate that the window of a granted flow allows, by the flow's source.
    pub paces: Vec<Rate>,
}

impl HylineConfig {
    /// Checks the parameters and derives what follows from them at `site`.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn derive(self, site: &Site) -> Result<Hyline, BadKey> {
        check_ranges(&self)?;
        let facts = &site.facts;
        let packet = site.packet(self.packet);
        let config = Self { packet, ..self };
        let windows = config.windows(facts);
        let mut tcp = config.tcp(windows.initial, windows.max, facts).derive(facts, Vec::new())?;
        tcp.start.granted = u64::from(windows.granted) * config.packet.payload.get();
        let mut settings = Settings::new(
            Arc::new(tcp),
            Bytes::new(config.short_flow_bytes),
            None,
            &config.controller,
            facts,
            site.shortest_data_rtt(),
        )?;
        settings.scheduled_class = Priority::new(config.priorities - 1);
        // Links are a flow's until it is done; the host of a late one is queried.
        settings.controller.grace = settings.retransmit_after;
        let (plan, core) = match &site.deployment {
            Deployment::Hosts(_) => (None, facts.access_rate),
            Deployment::Network(network) => (network.paths.clone(), network.core),
        };
        let hosts: Vec<_> = (0..facts.n_hosts).map(|host| site.host_rates(host)).collect();
        let pace =
            |rates: &DuplexRates| config.pace(&FabricFacts { access_rate: rates.tx, ..*facts });
        let paces = hosts.iter().map(pace).collect();
        Ok(Hyline { settings, paths: Paths::new(hosts, core, plan), paces, config })
    }

    /// Returns the parameters of a host among hosts of other rates: the windows follow from
    /// the rate of a pair. A slow port could not hold the window of a
    /// fast host.
    pub(super) fn adapt_to_peers(self, own: Hyline, peers: &Peers) -> Hyline {
        let mut tcp = (*own.settings.tcp).clone();
        let start = tcp.start;
        let at = |facts: FabricFacts| {
            let Windows { initial, max, granted } = self.windows(&facts);
            let bytes = |packets: u32| u64::from(packets) * start.mss;
            let [initial, max, granted] = [initial, max, granted].map(bytes);
            ControlParams { initial, max, granted, ..start }
        };
        tcp.by_peer = Some(PeerStarts::new(peers, at));
        Hyline { settings: Settings { tcp: Arc::new(tcp), ..own.settings }, ..own }
    }

    /// Returns the windows of a host whose links have the rate `facts.access_rate`.
    fn windows(&self, facts: &FabricFacts) -> Windows {
        let bdp = u64::from(facts.bdp_packets(self.packet.wire()));
        let initial = (bdp * 25).div_ceil(STUDY_BDP).min(100_000) as u32;
        let initial = self.window_initial.unwrap_or(initial);
        let max = self.window_max.unwrap_or((bdp + 1).min(100_000) as u32).max(initial);
        Windows { initial, max, granted: self.window_granted.unwrap_or(max) }
    }

    /// Returns the rate of a granted flow from a host whose links have the rate
    /// `facts.access_rate`. It is a window a round trip, one way as data and the other as
    /// acknowledgements.
    fn pace(&self, facts: &FabricFacts) -> Rate {
        let window = self.packet.wire() * u64::from(self.windows(facts).granted);
        let round_trip = (facts.data_rtt + facts.control_rtt) / 2;
        let bps = u128::from(window.get()) * 8 * u128::from(PS_PER_SECOND);
        let bps = bps / u128::from(round_trip.as_ps().max(1));
        let bps = u64::try_from(bps).unwrap_or(u64::MAX).min(facts.access_rate.as_bps());
        Rate::from_bps(bps.max(1)).unwrap_or(facts.access_rate)
    }
}

/// Windows of TCP, in packets.
struct Windows {
    initial: u32,
    max: u32,
    granted: u32,
}
