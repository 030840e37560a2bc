//! CAPTON's parameters and what they imply for one network.

use std::sync::Arc;

use rampmeter_types::fabric::{Racks, RegularPaths};
use rampmeter_types::{FabricFacts, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network::{CAPACITY_MAX, LevelMember, NarrowCorePolicy, Network};
use super::sharing::SharingPolicy;
use super::split::MinShare;
use crate::central::{ControllerKeys, Settings};
use crate::keys::{BadKey, Keys, PacketSizes, Preset, check_ranges};
use crate::registered::{Deployment, Peers, Site};
use crate::tcp::TcpConfig;
use crate::tcp::config::{LossDetection, PeerStarts, RTO_DOUBLED, Timeout};
use crate::tcp::control::{Algorithm, ControlParams};
use crate::toolkit::Padding;

/// Sharing of links between flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkSharing {
    /// A host sends one flow at a time and receives one at a time, at full rate (figure 6).
    Serial,
    /// A flow takes the capacity that flows with smaller remaining sizes do not use. Not in the
    /// paper.
    Split,
}

/// CAPTON's parameters. [`CaptonConfig::paper`] is the preset.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CaptonConfig {
    /// Maximum length of messages that are sent at once, without a request, in segments (§IV.E).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub short_flow_packets: u32,
    /// Packets that a flow with a grant has in flight at most; default: two bandwidth-delay
    /// products.
    #[schemars(range(min = 1, max = 100_000))]
    pub window_granted: Option<u32>,
    /// Sharing of links between flows.
    pub link_sharing: LinkSharing,
    /// Minimum share of a link that a flow takes with `split`.
    #[serde(rename = "share-min", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.001, max = 1.0))]
    pub share_min_milli: u32,
    /// The controllers.
    #[serde(flatten)]
    pub controller: ControllerKeys,
    /// Capacity of all uplinks of a rack together, in Gbit/s; default: that of the network.
    #[schemars(range(min = 0.001, max = 1e5))]
    pub uplinks_gbps: Option<f64>,
    /// Hosts of a rack, where hosts are numbered rack by rack; default: as in the network.
    #[schemars(range(min = 1, max = 100_000))]
    pub rack_hosts: Option<u32>,
    /// Minimum retransmission timeout in microseconds; default: that of TCP. The paper's study has
    /// 200000 (table 3). The largest is four times as long, 256 round trips at least.
    #[schemars(range(min = 1, max = 60_000_000))]
    pub rto_min_us: Option<u64>,
    /// Reordering window before a segment counts as lost, in shortest round trips, rounded to
    /// quarters.
    #[serde(rename = "reordering-window-rtts", with = "crate::keys::quarters")]
    #[schemars(with = "f64", range(min = 0.25, max = 16.0))]
    pub rack_quarters: u8,
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

impl Default for CaptonConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for CaptonConfig {
    const PRESETS: &'static [Preset<Self>] = &[("paper", CaptonConfig::paper)];
}

impl CaptonConfig {
    /// Returns the paper's design: a threshold of 10 segments. Times follow from the network; that
    /// of the scheduler is the paper's in its network.
    pub fn paper() -> Self {
        Self {
            short_flow_packets: 10,
            window_granted: None,
            link_sharing: LinkSharing::Serial,
            share_min_milli: 100,
            controller: ControllerKeys::default(),
            uplinks_gbps: None,
            rack_hosts: None,
            rto_min_us: None,
            rack_quarters: 16,
            switch_queue_packets: None,
            padding: Padding::Exact,
            packet: PacketSizes::new(1460, 40),
            attempts_max: 15,
        }
    }

    /// Returns the TCP below: Cubic as hosts have it, on connections that are there (§IV.C).
    fn tcp(&self, facts: &FabricFacts) -> TcpConfig {
        let shortest = facts.data_rtt * RTO_DOUBLED;
        let rto_max =
            |rto_min_us: u64| (4 * rto_min_us).max(shortest.div_floor(Span::from_us(1)) + 1);
        let &Self { rto_min_us, rack_quarters, padding, packet, attempts_max, .. } = self;
        TcpConfig {
            congestion_control: Algorithm::Cubic,
            loss_detection: LossDetection::RackTlp,
            rack_quarters: Some(rack_quarters),
            rto_mode: Timeout::Estimated,
            handshake: false,
            rto_min_us,
            rto_initial_us: rto_min_us,
            rto_max_us: rto_min_us.map(|us| rto_max(us).min(120_000_000)),
            padding,
            packet,
            attempts_max,
            ..TcpConfig::cubic()
        }
    }
}

/// The parameters of CAPTON on one network, checked.
#[derive(Clone, Debug)]
pub struct Capton {
    /// The parameters.
    pub config: CaptonConfig,
    /// Settings shared by hosts and controllers.
    pub settings: Settings,
    /// Sharing of links between flows.
    pub sharing: SharingPolicy,
    /// The network as the controller sees it.
    pub network: Network,
}

impl CaptonConfig {
    /// Checks the parameters and derives what follows from them at `site`.
    ///
    /// # Errors
    /// A parameter out of range, or a network that the parameters do not describe.
    pub fn derive(self, site: &Site) -> Result<Capton, BadKey> {
        check_ranges(&self)?;
        let facts = &site.facts;
        let packet = site.packet(self.packet);
        let config = Self { packet, ..self };
        let mut tcp = config.tcp(facts).derive(facts, Vec::new())?;
        tcp.start.granted = config.granted_window(facts);
        let tcp = Arc::new(tcp);
        let network = config.network(site)?;
        let settings = Settings::new(
            tcp,
            config.packet.payload * u64::from(config.short_flow_packets),
            Some(facts.access_rate),
            &config.controller,
            facts,
            site.shortest_data_rtt(),
        )?;
        let share = MinShare::from_milli(config.share_min_milli);
        let sharing = match (config.link_sharing, share) {
            (LinkSharing::Split, Some(share)) => SharingPolicy::Split(share),
            (LinkSharing::Split, None) | (LinkSharing::Serial, _) => SharingPolicy::Serial,
        };
        Ok(Capton { config, settings, sharing, network })
    }

    /// Returns the limit of bytes in flight of a granted flow.
    fn granted_window(&self, facts: &FabricFacts) -> u64 {
        let window =
            self.window_granted.unwrap_or_else(|| 2 * facts.bdp_packets(self.packet.wire()));
        u64::from(window) * self.packet.payload.get()
    }

    /// Returns the parameters of a host among hosts of other rates. Windows follow from the rate of
    /// a pair. Messages that are not scheduled are sent at the rate of the host's links.
    pub(super) fn adapt_to_peers(&self, own: Capton, peers: &Peers) -> Capton {
        let mut tcp = (*own.settings.tcp).clone();
        let start = tcp.start;
        tcp.by_peer = Some(PeerStarts::new(peers, |facts| ControlParams {
            granted: self.granted_window(&facts),
            ..start
        }));
        let (tcp, unscheduled) = (Arc::new(tcp), Some(peers.tx_rate()));
        Capton { settings: Settings { tcp, unscheduled, ..own.settings }, ..own }
    }

    /// Racks and pods, and the capacity of their uplinks.
    fn network(&self, site: &Site) -> Result<Network, BadKey> {
        let n = site.facts.n_hosts;
        let bad = |error| BadKey::new("uplinks-gbps", "capacities of a network", error);
        let core = self.uplinks_gbps.and_then(|gbps| Rate::from_bps((gbps * 1e9).round() as u64));
        let (paths, link) = match &site.deployment {
            Deployment::Hosts(_) => (None, site.facts.access_rate),
            Deployment::Network(network) => (network.paths.as_ref(), network.core),
        };
        let host = |host: u32, group| {
            let rates = site.host_rates(host);
            let [up, down] =
                [rates.tx, rates.rx].map(|rate| Rate::from_bps(rate.as_bps().min(CAPACITY_MAX)));
            LevelMember { group, up, down }
        };
        if let Some(rack_hosts) = self.rack_hosts {
            let Some(core) = core else {
                let expected = "a capacity, as rack-hosts is given";
                return Err(BadKey::new("uplinks-gbps", expected, "none"));
            };
            let hosts = (0..n).map(|h| host(h, h / rack_hosts)).collect();
            let racks = vec![
                LevelMember { group: 0, up: Some(core), down: Some(core) };
                n.div_ceil(rack_hosts) as usize
            ];
            return Network::new(&[hosts, racks], NarrowCorePolicy::Shrink).map_err(bad);
        }
        let racks_of = |rack_of: &[u16]| {
            (0..).zip(rack_of).map(|(h, &rack)| host(h, rack.into())).collect::<Vec<_>>()
        };
        let Some(paths) = paths else {
            let levels = match &site.deployment {
                Deployment::Network(network) => {
                    irregular_levels(racks_of(&network.racks.rack_of), &network.racks, core)
                }
                Deployment::Hosts(_) => vec![(0..n).map(|h| host(h, 0)).collect()],
            };
            return Network::new(&levels, NarrowCorePolicy::Shrink).map_err(bad);
        };
        let ways =
            [paths.tor_uplinks.into(), u32::from(paths.tor_uplinks) * u32::from(paths.agg_uplinks)];
        let levels = regular_levels(racks_of(&paths.rack_of), paths, link, core);
        let network = Network::new(&levels, NarrowCorePolicy::Shrink);
        Ok(network.map_err(bad)?.with_parallel_paths(&ways))
    }
}

/// Returns hosts and racks of a network without regular paths. The links of a rack's switch to
/// other switches count as one link. Links between those switches never limit. Racks without such
/// links, whose hosts have other interfaces, limit nothing.
fn irregular_levels(
    hosts: Vec<LevelMember>,
    racks: &Racks,
    core: Option<Rate>,
) -> Vec<Vec<LevelMember>> {
    let Racks { uplink_bps, downlink_bps, .. } = racks;
    if uplink_bps.len() < 2 || uplink_bps.contains(&0) {
        return vec![hosts];
    }
    let rate = |bps: u64| core.or_else(|| Rate::from_bps(bps.min(CAPACITY_MAX)));
    let member =
        |(&up, &down): (&u64, &u64)| LevelMember { group: 0, up: rate(up), down: rate(down) };
    vec![hosts, uplink_bps.iter().zip(downlink_bps).map(member).collect()]
}

/// Returns hosts, racks and, with three tiers, pods.
fn regular_levels(
    hosts: Vec<LevelMember>,
    paths: &RegularPaths,
    link: Rate,
    core: Option<Rate>,
) -> Vec<Vec<LevelMember>> {
    let times = |n: u64| Rate::from_bps(link.as_bps().saturating_mul(n));
    let member =
        |group: u16, rate: Option<Rate>| LevelMember { group: group.into(), up: rate, down: rate };
    let of_rack = core.or_else(|| times(paths.tor_uplinks.into()));
    let racks = paths.pod_of.iter().map(|&pod| member(pod, of_rack)).collect();
    let mut levels = vec![hosts, racks];
    if paths.pod_of.iter().any(|&pod| pod > 0) {
        let pods = paths.pod_of.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let of_pod = times(u64::from(paths.tor_uplinks) * u64::from(paths.agg_uplinks));
        levels.push(vec![member(0, of_pod); pods]);
    }
    levels
}
