//! What a transport may need of a fabric, and the settings that a fabric has.
//!
//! A transport states its [`FabricNeeds`]; a plan may override what is only preferred. The
//! simulator's fabric is built from the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Rate, Span};

/// How a switch that has several shortest paths chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spray {
    /// Each host numbers its packets, from a random start, and switches use the number.
    SourceRoundRobin,
    /// A uniformly random path for each packet at each switch.
    Random,
    /// One path a message, by a hash of its ends and number.
    Ecmp,
    /// One path a pair of hosts, by a hash of the ends: that of a connection that carries all messages
    /// of the pair.
    EcmpPair,
}

impl Spray {
    /// Whether all packets of a message take the same path.
    pub const fn is_by_flow(self) -> bool {
        matches!(self, Self::Ecmp | Self::EcmpPair)
    }
}

/// How hosts hand packets to their interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// The interface asks for a packet when its link is idle, and holds none.
    Pull,
    /// Hosts hand over every packet at once; the interface queues and drops like a switch port.
    Queue,
}

/// What happens to a packet that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// It is dropped.
    TailDrop,
    /// The newest packet of the lowest priority below its own is dropped for it.
    PushOut,
}

/// When a switch may begin to forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// When the last bit is in.
    StoreAndForward,
    /// When the header is in.
    CutThrough,
}

/// How switches share their packet memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Every port has its own. With none a packet that finds its port busy is dropped, at
    /// interfaces that queue too, and no packet is express.
    PerPort(Bytes),
    /// One memory a switch; a port may hold `alpha` times what is free (dynamic thresholds of
    /// Choudhury and Hahne).
    Shared {
        /// The memory of each switch.
        per_switch: Bytes,
        /// The threshold's factor.
        alpha: f64,
    },
}

/// Which data packet loses its payload when a port's data queue is full (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrimChoice {
    /// The packet that arrives, or the newest of the queue, with equal chances.
    Coin,
    /// The packet that arrives.
    Arriving,
}

/// What happens to a trimmed packet that does not fit into the header queue (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderOverflow {
    /// It goes back to its sender, with source and destination exchanged.
    Return,
    /// It is dropped.
    Drop,
}

/// Ports that trim: one queue of data packets, one of headers and control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Length of a trimmed packet on the wire.
    pub to: u16,
    /// Which data packet is trimmed.
    pub choice: TrimChoice,
    /// Packets of the header queue that a port sends for one data packet while both queues hold
    /// packets; 0 always sends the header queue first.
    pub ratio: u8,
    /// Memory of the header queue.
    pub headers: Bytes,
    /// What happens to a trimmed packet that does not fit into it.
    pub overflow: HeaderOverflow,
}

impl Trim {
    /// NDP's switch (section 3) for full packets of `packet` bytes: headers of 64 bytes, ten of
    /// them for one data packet, and as much memory for them as for eight data packets.
    pub fn paper(packet: Bytes) -> Self {
        Self {
            to: 64,
            choice: TrimChoice::Coin,
            ratio: 10,
            headers: packet * 8,
            overflow: HeaderOverflow::Return,
        }
    }
}

/// What a pause of priority flow control stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PfcClasses {
    /// All classes but the highest.
    Data,
    /// All classes.
    All,
}

/// How many bytes that came by one link may wait in a switch before it pauses the other end of the
/// link (priority flow control).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PfcThreshold {
    /// `alpha` times what is free of the memory that the ports share.
    Dynamic {
        /// The factor.
        alpha: f64,
    },
    /// So many.
    Static(Bytes),
}

/// The hosts of each rack, and the links of its switch to other switches. A rack is the hosts whose
/// first link leads to one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Racks {
    /// The rack of each host.
    pub rack_of: Vec<u16>,
    /// Rate of all links of each rack's switch to other switches together, in bits per second.
    pub uplink_bps: Vec<u64>,
    /// The same in the other direction.
    pub downlink_bps: Vec<u64>,
}

/// The ways between racks of a network of two or three tiers in which every rack's switch has the
/// same ways up, and in three tiers every switch above it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegularPaths {
    /// The rack of each host.
    pub rack_of: Vec<u16>,
    /// The pod of each rack: racks that share the switches above them. In two tiers all racks are
    /// of one pod.
    pub pod_of: Vec<u16>,
    /// Ways up from a rack's switch. Path number modulo this is the way taken there.
    pub tor_up: u16,
    /// Ways up from a switch above it; the rest of the number is the way taken there. 1 in two
    /// tiers.
    pub agg_up: u16,
}

/// The ports by which a packet leaves the switches on its way, the first switch's first; ports are
/// numbered within their switch. An end with several links names its own link before them. Up to
/// three ports below [`SourceRoute::PORTS`]: enough for a pod of 32-port switches, with two arbiters
/// at each rack's switch (Fastpod §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SourceRoute(u16);

impl SourceRoute {
    /// Ports of a switch that a route can name.
    pub const PORTS: u16 = 40;
    /// Switches on the longest route.
    pub const HOPS: usize = 3;

    /// The route by `ports`; `None` if there are too many, or one of them has no number in a route.
    pub fn new(ports: &[u16]) -> Option<Self> {
        if ports.len() > Self::HOPS || ports.iter().any(|&port| port >= Self::PORTS) {
            return None;
        }
        let digits = ports.iter().rev();
        Some(Self(digits.fold(0, |route, &port| route * Self::PORTS + port)))
    }

    /// As packets carry it ([`Packet::path`](crate::Packet)).
    #[inline]
    pub const fn path(self) -> u16 {
        self.0
    }

    /// The port that a path names for the next switch, and the path from there on.
    #[inline]
    pub const fn split(path: u16) -> (u16, u16) {
        (path % Self::PORTS, path / Self::PORTS)
    }
}

/// The pods of a network: one, or several of as many racks and hosts that core switches join
/// (Fastpod §3.4). Arbiters are numbered pod by pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// The pods, in the order of their hosts.
    pub pods: Vec<Pod>,
    /// The core switches, by aggregation switch, then by place; none in a pod alone.
    pub cores: Vec<Core>,
}

impl From<Pod> for Pods {
    /// A pod alone.
    fn from(pod: Pod) -> Self {
        Self { pods: vec![pod], cores: Vec::new() }
    }
}

/// A core switch: it has a link to the aggregation switch of one number in every pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its number among all switches.
    pub switch: u32,
    /// The number of its aggregation switches in their pods.
    pub agg: u16,
    /// Its number among the core switches of these, from zero.
    pub place: u16,
    /// Propagation to the aggregation switches.
    pub cable: Span,
    /// Its ports by pod, numbered within it.
    pub ports: Vec<u16>,
}

/// A pod: racks of hosts whose switches have a link to each of the aggregation switches, and
/// arbiters with a link to every rack's switch. All links have one rate, and switches cut through.
/// What a sender needs to choose routes and instants (Fastpod §3.1, §3.2). Where there are several
/// pods, arbiters have a link to every aggregation switch too, after those to racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Rate of all links.
    pub rate: Rate,
    /// Bytes that must be in before a switch forwards.
    pub header: Bytes,
    /// Processing in each switch.
    pub switch_latency: Span,
    /// Processing in each host and arbiter.
    pub host_latency: Span,
    /// Rack and cable of each host.
    pub hosts: Vec<PodHost>,
    /// Shortest and longest propagation between a rack's switch and an aggregation switch.
    pub trunks: (Span, Span),
    /// Propagation between each rack's switch and the arbiters: rack, then arbiter.
    pub arbiters: Vec<Vec<Span>>,
    /// Ports of racks' switches to aggregation switches: rack, then aggregation switch.
    pub to_agg: Vec<Vec<u16>>,
    /// Ports of aggregation switches to racks' switches: aggregation switch, then rack.
    pub to_rack: Vec<Vec<u16>>,
    /// Ports of racks' switches to arbiters: rack, then arbiter.
    pub to_arbiter: Vec<Vec<u16>>,
    /// The number of its first host; those of the others follow.
    pub first_host: u32,
    /// Ports of aggregation switches to core switches: aggregation switch, then the core switches
    /// joined to it. Empty in a pod alone.
    pub to_core: Vec<Vec<u16>>,
    /// Propagation between each aggregation switch and the arbiters: aggregation switch, then
    /// arbiter. Empty in a pod alone.
    pub agg_arbiters: Vec<Vec<Span>>,
    /// Ports of aggregation switches to arbiters: aggregation switch, then arbiter. Empty in a pod
    /// alone.
    pub agg_to_arbiter: Vec<Vec<u16>>,
}

/// A host of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodHost {
    /// Its rack.
    pub rack: u16,
    /// Its number among the hosts of the rack, from zero.
    pub place: u16,
    /// The port of the rack's switch that leads to it.
    pub port: u16,
    /// Propagation to the rack's switch.
    pub cable: Span,
}

/// Links between switches of a regular network that have failed, so that routing does not use them.
/// Racks, pods and ways are numbered as in [`RegularPaths`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinksDown {
    /// Ways up from the switch of a rack: (rack, way).
    pub racks: Vec<(u16, u16)>,
    /// Ways up from a switch above the racks: (pod, switch of the pod, way).
    pub pods: Vec<(u16, u16, u16)>,
}

/// What a transport asks of one setting of the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need<T> {
    /// Works with any value; the fabric's default holds.
    #[default]
    Any,
    /// Is designed for this value; a plan may choose another.
    Prefer(T),
    /// Works with this value only; a plan that asks for another is refused.
    Only(T),
}

/// Ports that mark ECN-capable packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkingPorts {
    /// All ports of switches, and interfaces of hosts that queue.
    #[default]
    All,
    /// Ports between switches alone.
    Core,
}

/// What one transport needs of the fabric. The default asks for nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FabricNeeds {
    /// Packet memory of switch ports.
    pub buffer: Need<Buffer>,
    /// What happens when it is full.
    pub overflow: Need<Overflow>,
    /// Path choice of switches.
    pub spray: Need<Spray>,
    /// Where packets wait in hosts.
    pub interface: Need<Interface>,
    /// Queue length, in bytes, from which ports mark ECN-capable packets; `None` for no marks.
    pub ecn: Need<Option<Bytes>>,
    /// Ports that mark.
    pub ecn_ports: Need<MarkingPorts>,
    /// Queue length, in bytes, above which switches drop unscheduled packets; `None` for never.
    pub drop_unscheduled: Need<Option<Bytes>>,
    /// When switches begin to forward.
    pub switching: Need<Forwarding>,
    /// Memory that a waiting packet takes at least, in bytes: as much as a full packet takes where
    /// queues are counted in packets.
    pub slot: Need<u16>,
    /// Packets of the highest priority up to this many bytes do not count as waiting.
    pub express: Need<u16>,
    /// How ports trim; `None` for transports that do not understand trimmed packets. A plan may
    /// choose other values.
    pub trim: Option<Trim>,
    /// Priority flow control: the threshold, or `None` for networks that drop. It needs memory that
    /// ports share; where a plan gives each port its own, a preferred one is left out.
    pub pfc: Need<Option<PfcThreshold>>,
    /// Whether data is never in the highest class, so that a pause may spare that class.
    pub control_class: bool,
    /// Priorities of packets that the transport uses, 1 to 8; 0 where it does not say.
    pub priorities: u8,
    /// The largest difference between hosts' clocks with which they work together; `None` for any.
    pub clocks_within: Option<Span>,
    /// Central controllers, in the order of their numbers.
    pub arbiters: Vec<ArbiterNeed>,
}

/// One central controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterNeed {
    /// The rate of its link, or of each of its links.
    pub rate: ArbiterRate,
    /// Where it is.
    pub place: ArbiterPlace,
}

/// Where a controller is joined to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArbiterPlace {
    /// By one link, at the first rack.
    #[default]
    FirstRack,
    /// By a link to the switch of every rack (Fastpod §3.2).
    EveryRack,
    /// By a link to the switch of every rack of the pod with this number, and then to each of its
    /// aggregation switches (Fastpod §3.4).
    PodSwitches(u16),
}

/// The rate of a controller's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterRate {
    /// That of the slowest link of the network.
    Slowest,
    /// That of as many of the fastest links together as reach so many bits per second: several
    /// interfaces.
    AtLeast(u64),
}

impl ArbiterRate {
    /// The rate in a network whose links have rates from `slowest` to `fastest`.
    pub fn of(self, slowest: Rate, fastest: Rate) -> Rate {
        match self {
            Self::Slowest => slowest,
            Self::AtLeast(bps) => {
                let links = bps.div_ceil(fastest.as_bps()).max(1);
                Rate::from_bps(fastest.as_bps().saturating_mul(links)).unwrap_or(fastest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_route_names_its_ports_in_turn() {
        for ports in [&[][..], &[0], &[39, 0, 1], &[4, 17, 39], &[39, 39, 39]] {
            let route = SourceRoute::new(ports).unwrap();
            let mut path = route.path();
            for &port in ports {
                let (next, rest) = SourceRoute::split(path);
                assert_eq!(next, port);
                path = rest;
            }
            assert_eq!(path, 0);
        }
        assert_eq!((SourceRoute::new(&[40]), SourceRoute::new(&[0; 4])), (None, None));
    }
}
