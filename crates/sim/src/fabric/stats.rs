//! Counters of a fabric, and the tiers by which it counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::topo::{Node, Topology};
use rampmeter_types::{Bytes, Header, Rate, SwitchProgram, Time};

use super::collide::Collisions;
use super::port::Port;
use super::{Fabric, Routes};
use crate::topo::LinkChange;

/// Reason for which a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The packet did not fit.
    Buffer,
    /// A packet of higher priority took its place.
    PushedOut,
    /// The link lost it (an injected fault).
    Loss,
    /// The link was down.
    LinkDown,
    /// No way led to its destination.
    NoRoute,
    /// The switch's program dropped it.
    Program,
    /// The packet found its port busy, and the port has no buffer.
    Collision,
    /// The packet was cut off in flight for another one.
    CutOff,
    /// The packet has no schedule, and the queue was above the threshold for such packets.
    Unscheduled,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = 9;
    /// Names of the reasons in results, in order.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "buffer",
        "pushed-out",
        "loss",
        "link-down",
        "no-route",
        "program",
        "collision",
        "cut-off",
        "unscheduled",
    ];
}

/// A port at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSample {
    /// The number of its tier.
    pub tier: u8,
    /// Rate of the link.
    pub rate: Rate,
    /// Bytes sent so far, headers included. A packet counts when its transmission starts.
    pub sent: u64,
    /// End of the present transmission.
    pub busy_until: Time,
    /// Bytes waiting.
    pub queued: u32,
}

/// Link, ends and tier of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortId<'a> {
    /// Index of the link in the topology.
    pub link: u32,
    /// The end that sends.
    pub from: Node,
    /// The end that receives.
    pub to: Node,
    /// Tier of the port.
    pub tier: &'a str,
}

/// Totals of one tier: all ports of one kind, such as those from racks to hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierStats {
    /// Name of the tier: `host-up`, `tor-up`, `spine-down`, `tor-down`, ...
    pub name: String,
    /// True if its ports are those of hosts, towards the network.
    pub is_of_hosts: bool,
    /// Ports in it.
    pub ports: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// The longest queue of any port, at any time.
    pub queue_max: Bytes,
    /// The ends of the link in front of which it was, and when it first was that long.
    pub queue_peak: Option<(Node, Node, Time)>,
    /// Rate of all its links together, in bit/s.
    pub capacity_bps: u64,
    /// Packets marked, those that had been marked before too.
    pub marks: u64,
    /// Counters of trimming; `None` if ports do not trim.
    pub trimming: Option<TrimStats>,
    /// Packets dropped, by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
    /// Data packets dropped, for any reason.
    pub data_drops: u64,
    /// Bytes dropped.
    pub bytes_dropped: u64,
}

/// Counters of trimming at the ports of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TrimStats {
    /// Packets whose payload was cut off.
    pub trims: u64,
    /// Trimmed packets that were returned to their sender.
    pub returns: u64,
    /// The longest data queue of any port.
    pub data_max: Bytes,
    /// The longest queue of headers and control packets of any port.
    pub headers_max: Bytes,
}

/// Totals of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricStats {
    /// Packets put on links.
    pub hops: u64,
    /// Packets that hosts and programs of switches sent.
    pub injected: u64,
    /// Packets that links doubled.
    pub duplicated: u64,
    /// Packets that reached their host.
    pub delivered: u64,
    /// Packets that programs of switches took out of the fabric.
    pub consumed: u64,
    /// Packets that found their port busy; `None` if packets may wait.
    pub collisions: Option<Collisions>,
    pub(super) tiers: Vec<TierStats>,
    /// Drops since they were last taken, by port and reason.
    pub(super) drops: BTreeMap<(u32, u8), DropCount>,
    /// Time and port of the longest queue of each tier, when it was first that long.
    pub(super) peaks: Vec<Option<LongestQueue>>,
}

/// Longest queue of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongestQueue {
    port: u32,
    pub(super) at: Time,
    /// Highest rank of the events of that time up to then.
    pub(super) instant: u64,
}

/// Packets that one port dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DropCount {
    /// Packets.
    pub packets: u64,
    /// Data packets among them.
    pub data_packets: u64,
    /// Bytes of all these packets, headers included.
    pub bytes: u64,
}

impl FabricStats {
    pub(super) fn new(tiers: Vec<TierStats>, is_memoryless: bool) -> Self {
        let (drops, peaks) = (BTreeMap::new(), vec![None; tiers.len()]);
        let collisions = is_memoryless.then(Collisions::default);
        let (hops, injected, duplicated, delivered, consumed) = (0, 0, 0, 0, 0);
        Self { hops, injected, duplicated, delivered, consumed, collisions, tiers, drops, peaks }
    }

    #[cold]
    pub(super) fn count_drop(
        &mut self,
        port: u32,
        tier: u8,
        reason: DropReason,
        bytes: u16,
        is_data: bool,
    ) {
        let count = self.drops.entry((port, reason as u8)).or_default();
        count.packets += 1;
        count.data_packets += u64::from(is_data);
        count.bytes += u64::from(bytes);
        let tier = &mut self.tiers[tier as usize];
        tier.drops[reason as usize] += 1;
        tier.data_drops += u64::from(is_data);
        tier.bytes_dropped += u64::from(bytes);
    }

    #[cold]
    pub(super) fn count_mark(&mut self, tier: u8) {
        self.tiers[tier as usize].marks += 1;
    }

    #[cold]
    pub(super) fn count_trim(&mut self, tier: u8) {
        self.tiers[tier as usize].trimming.get_or_insert_default().trims += 1;
    }

    #[cold]
    pub(super) fn count_return(&mut self, tier: u8) {
        self.tiers[tier as usize].trimming.get_or_insert_default().returns += 1;
    }

    /// Notes the bytes of data packets, and of headers and control packets, that a port that trims
    /// holds.
    #[inline]
    pub(super) fn note_trimming_queues(&mut self, tier: u8, data: u32, headers: u32) {
        let most = self.tiers[tier as usize].trimming.get_or_insert_default();
        most.data_max = most.data_max.max(Bytes::new(data.into()));
        most.headers_max = most.headers_max.max(Bytes::new(headers.into()));
    }

    /// A queue of `tier` is as long as its port's has ever been.
    #[cold]
    pub(super) fn note_peak(&mut self, tier: u8, port: u32, queued: u32, now: Time, instant: u64) {
        let most = &mut self.tiers[tier as usize].queue_max;
        let queued = Bytes::new(u64::from(queued));
        if queued > *most {
            *most = queued;
            self.peaks[tier as usize] = Some(LongestQueue { port, at: now, instant });
        }
    }

    /// Returns the drops since the last call: port, reason by its place in [`DropReason::NAMES`],
    /// and how many; ports ascending.
    pub fn take_drops(&mut self) -> impl Iterator<Item = (u32, usize, DropCount)> + use<> {
        let drops = std::mem::take(&mut self.drops);
        drops.into_iter().map(|((port, reason), count)| (port, usize::from(reason), count))
    }

    /// Returns the number of tiers.
    pub(super) fn n_tiers(&self) -> usize {
        self.tiers.len()
    }

    /// Returns the packets dropped anywhere for any reason.
    pub fn dropped(&self) -> u64 {
        self.tiers.iter().flat_map(|t| t.drops).sum()
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the names of the tiers, by number.
    pub fn tier_names(&self) -> Vec<&str> {
        self.stats.tiers.iter().map(|t| t.name.as_str()).collect()
    }

    /// Returns the number of packets that have entered the fabric so far if none of them is in it.
    pub fn idle(&self) -> Option<u64> {
        let is_empty = self.pool.is_empty() && self.border.n_away == 0;
        is_empty.then_some(self.stats.injected + self.stats.duplicated)
    }

    /// Returns the tier of each port and its queued bytes, without hosts' interfaces.
    pub fn queues(&self) -> impl Iterator<Item = (u8, u32)> {
        self.ports[self.n_interfaces as usize..].iter().map(|p| (p.tier, p.queued))
    }

    /// Returns all ports at this instant; hosts' interfaces first.
    pub fn port_samples(&self) -> impl Iterator<Item = PortSample> {
        let sample = |(p, &rate): (&Port, &Rate)| PortSample {
            tier: p.tier,
            rate,
            sent: p.tx_bytes,
            busy_until: p.busy_until,
            queued: p.queued,
        };
        self.ports.iter().zip(&self.rates).map(sample)
    }

    /// Returns the place of a port's link in the topology, its ends and its tier.
    pub fn port(&self, number: u32) -> PortId<'_> {
        let (link, to) = self.routes.end(number);
        let ends = self.topology.links()[link as usize];
        let from = if ends.a == to { ends.b } else { ends.a };
        let tier = self.ports[number as usize].tier;
        PortId { link, from, to, tier: &self.stats.tiers[usize::from(tier)].name }
    }

    /// Drops since they were last taken; see [`FabricStats::take_drops`].
    pub fn take_drops(&mut self) -> impl Iterator<Item = (u32, usize, DropCount)> + use<H, P> {
        self.stats.take_drops()
    }

    /// Totals by tier up to now.
    pub fn tier_stats(&self) -> Vec<TierStats> {
        let mut tiers = self.stats.tiers.clone();
        for port in &self.ports {
            let tier = &mut tiers[port.tier as usize];
            tier.bytes += port.tx_bytes;
            let (longest, own) = (tier.queue_max.get(), u64::from(port.queued_max));
            assert!(longest >= own, "{}: {longest} B, but a port had {own} B", tier.name);
        }
        for (tier, peak) in tiers.iter_mut().zip(&self.stats.peaks) {
            tier.queue_peak = peak.map(|LongestQueue { port, at, .. }| {
                let PortId { from, to, .. } = self.port(port);
                (from, to, at)
            });
        }
        tiers
    }
}

/// Returns the tiers of a topology, and the tier of each port.
pub(super) fn tiers(topology: &Topology, routes: &Routes) -> (Vec<TierStats>, Vec<u8>) {
    let top = topology.levels.iter().copied().max().unwrap_or(1);
    let mut tiers: Vec<TierStats> = Vec::new();
    let mut known = BTreeMap::new();
    let mut tier_of = Vec::with_capacity(routes.n_ports());
    for port in 0..routes.n_ports() as u32 {
        let (link, to) = routes.end(port);
        let link = topology.links()[link as usize];
        let from = if link.a == to { link.b } else { link.a };
        let idx = *known.entry(end_levels(topology, (from, to))).or_insert_with(|| {
            tiers.push(TierStats {
                name: tier_name(topology, top, (from, to)),
                is_of_hosts: matches!(from, Node::Host(_)),
                ports: 0,
                bytes: 0,
                queue_max: Bytes::ZERO,
                queue_peak: None,
                capacity_bps: 0,
                marks: 0,
                trimming: None,
                drops: [0; DropReason::COUNT],
                data_drops: 0,
                bytes_dropped: 0,
            });
            tiers.len() - 1
        });
        tiers[idx].ports += 1;
        tiers[idx].capacity_bps = tiers[idx].capacity_bps.saturating_add(link.rate_to(to).as_bps());
        tier_of.push(idx as u8);
    }
    (tiers, tier_of)
}

/// Returns the tier and the rate of each group of switches' ports.
pub fn port_groups(topology: &Topology) -> BTreeSet<(String, Rate)> {
    let ports = topology.links().iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let rates = topology.links().iter().flat_map(|link| [link.rate, link.rate_back]);
    let of_switches = ports.zip(rates).filter(|((from, _), _)| matches!(from, Node::Switch(_)));
    let key = |(ends, rate)| ((end_levels(topology, ends), rate), ends);
    let groups: BTreeMap<_, (Node, Node)> = of_switches.map(key).collect();
    let top = topology.levels.iter().copied().max().unwrap_or(1);
    let named = |((_, rate), ends)| (tier_name(topology, top, ends), rate);
    groups.into_iter().map(named).collect()
}

/// Returns the names of the tiers of a topology, by number.
pub fn tier_names(topology: &Topology) -> Vec<String> {
    let (tiers, _) = tiers(topology, topology.routes());
    tiers.into_iter().map(|tier| tier.name).collect()
}

/// Returns the tiers of the two ports of each link: that of its first end, and that of its second.
pub fn link_tiers(topology: &Topology) -> Vec<[String; 2]> {
    let top = topology.levels.iter().copied().max().unwrap_or(1);
    let tier = |ends| tier_name(topology, top, ends);
    topology.links().iter().map(|link| [tier((link.a, link.b)), tier((link.b, link.a))]).collect()
}

/// Returns the total capacity of the links of each tier between two instants, in bits, by the name
/// of the tier.
pub fn tier_capacities(
    topology: &Topology,
    changes: &[LinkChange],
    from: Time,
    to: Time,
) -> BTreeMap<String, f64> {
    let mut changes: Vec<&LinkChange> = changes.iter().collect();
    changes.sort_by_key(|change| change.at);
    let mut capacities = BTreeMap::new();
    for ((number, link), names) in (0..).zip(topology.links()).zip(link_tiers(topology)) {
        let mut rates = [link.rate, link.rate_back];
        let mut since = from;
        let mut bits = [0.0; 2];
        let of_link = changes.iter().filter(|change| change.link == number);
        let rated = of_link.filter_map(|change| Some((change.at, change.rates?)));
        for (at, after) in rated.chain([(to, rates)]) {
            let until = at.clamp(since, to);
            let seconds = (until - since).as_ps() as f64 * 1e-12;
            for (bits, rate) in bits.iter_mut().zip(rates) {
                *bits += rate.as_bps() as f64 * seconds;
            }
            (since, rates) = (until, after);
        }
        for (name, bits) in names.into_iter().zip(bits) {
            *capacities.entry(name).or_insert(0.0) += bits;
        }
    }
    capacities
}

/// Returns the levels of the ends of a port, which determine its tier: 0 for hosts, and the highest
/// number for arbiters. The tier of arbiters' ports is the same at all levels of switches.
fn end_levels(topology: &Topology, (from, to): (Node, Node)) -> [u8; 2] {
    let level = |node| match node {
        Node::Host(_) => 0,
        Node::Switch(switch) => topology.levels[switch as usize],
        Node::Arbiter(_) => u8::MAX,
    };
    match (from, to) {
        (Node::Arbiter(_), _) => [u8::MAX, 0],
        (_, Node::Arbiter(_)) => [0, u8::MAX],
        _ => [level(from), level(to)],
    }
}

/// Returns the name of the tier of a port between two nodes; `top` is the highest level.
fn tier_name(topology: &Topology, top: u8, (from, to): (Node, Node)) -> String {
    let level = |node| match node {
        Node::Host(_) | Node::Arbiter(_) => 0,
        Node::Switch(s) => topology.levels[s as usize],
    };
    let node = match (from, to, level(from), top) {
        (Node::Arbiter(_), ..) => return "arbiter-up".to_owned(),
        (_, Node::Arbiter(_), ..) => return "arbiter-down".to_owned(),
        (_, _, 0, _) => "host".to_owned(),
        (_, _, 1, _) => "tor".to_owned(),
        (_, _, 2, 2) => "spine".to_owned(),
        (_, _, 2, 3) => "agg".to_owned(),
        (_, _, 3, 3) => "core".to_owned(),
        (_, _, level, _) => format!("level{level}"),
    };
    let direction = match level(from).cmp(&level(to)) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Equal => "across",
        std::cmp::Ordering::Greater => "down",
    };
    format!("{node}-{direction}")
}

/// Digit of a packet's path number by which a switch chooses a port. Fabrics with two tiers of
/// choices take a digit of the number in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathDigit {
    /// Divisor of the path number.
    divisor: u16,
    /// The divisor as a shift; 16 if it is no power of two.
    shift: u16,
}

impl PathDigit {
    fn new(divisor: u16) -> Self {
        let shift = if divisor.is_power_of_two() { divisor.trailing_zeros() as u16 } else { 16 };
        Self { divisor, shift }
    }

    /// Returns the number without the digits of the tiers below.
    #[inline]
    pub(super) fn choice(self, path: u16) -> u16 {
        path.checked_shr(self.shift.into()).unwrap_or_else(|| path / self.divisor)
    }
}

/// Returns the digit of each switch: the divisor is the number of path choices made below it, so
/// that consecutive numbers visit all paths.
pub(super) fn path_digits(topology: &Topology, routes: &Routes) -> Vec<PathDigit> {
    let top = topology.levels.iter().copied().max().unwrap_or(1);
    let mut up_degree = vec![1u32; usize::from(top) + 1];
    for (switch, &level) in topology.levels.iter().enumerate() {
        let degree = &mut up_degree[usize::from(level)];
        *degree = (*degree).max(routes.max_choices(switch as u32).into());
    }
    let below = |level: u8| up_degree[1..usize::from(level)].iter().product::<u32>();
    let divisor = |&level: &u8| u16::try_from(below(level)).unwrap_or(u16::MAX);
    topology.levels.iter().map(|level| PathDigit::new(divisor(level))).collect()
}
