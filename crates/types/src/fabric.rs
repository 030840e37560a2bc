//! Requirements of transports on a fabric, and the settings of a fabric.
//!
//! A transport states its [`FabricNeeds`]; a plan may override mere preferences. The simulator's
//! fabric is built from the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Rate, Span};

/// Choice of a switch among several shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spray {
    /// Each host numbers its packets, from a random start, and switches use the number.
    SourceRoundRobin,
    /// A uniformly random path for each packet at each switch.
    Random,
    /// One path a message, by a hash of its ends and number.
    Ecmp,
    /// One path a pair of hosts, by a hash of the ends: that of a connection that carries all
    /// messages of the pair.
    EcmpPair,
}

impl Spray {
    /// Returns true if all packets of a message use the same path.
    pub const fn is_by_flow(self) -> bool {
        matches!(self, Self::Ecmp | Self::EcmpPair)
    }
}

/// Interface between a host and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// The interface requests a packet when its link is idle, and queues none.
    Pull,
    /// Hosts forward every packet at once; the interface queues and drops like a switch port. If
    /// switches trim, interfaces do not, and their memory is unlimited.
    Queue,
}

/// Treatment of a packet that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Drops the arriving packet.
    TailDrop,
    /// Drops the newest queued packet of the lowest priority, if that is lower than the arriving
    /// packet's; else the arriving packet.
    PushOut,
}

/// Instant from which a switch may forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// After the last bit has arrived.
    StoreAndForward,
    /// After the header has arrived.
    CutThrough,
}

/// Sharing of a switch's packet memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Each port has its own memory. If the size is zero, a packet that arrives at a busy port is
    /// dropped, also at interfaces that queue, and no packet is express.
    PerPort(Bytes),
    /// One memory a switch. A port may use at most `alpha` times the free memory (dynamic
    /// thresholds of Choudhury and Hahne).
    Shared {
        /// Memory of each switch.
        per_switch: Bytes,
        /// Factor of the threshold.
        alpha: f64,
    },
}

/// Choice of the data packet to trim when a port's data queue is full (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrimChoice {
    /// The packet that arrives, or the newest of the queue, with equal chances.
    Coin,
    /// The packet that arrives.
    Arriving,
}

/// Treatment of a trimmed packet that does not fit into the header queue (NDP, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderOverflow {
    /// The packet is returned to its sender, with source and destination exchanged.
    Return,
    /// The packet is dropped.
    Drop,
}

/// Ports that trim: one queue of data packets, one of headers and control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Length of a trimmed packet on the wire.
    pub trimmed_bytes: u16,
    /// Choice of the data packet to trim.
    pub choice: TrimChoice,
    /// Packets of the header queue that a port sends for one data packet while both queues hold
    /// packets; 0 always sends the header queue first.
    pub ratio: u8,
    /// Memory of the header queue.
    pub headers: Bytes,
    /// Treatment of a trimmed packet that does not fit into the header queue.
    pub overflow: HeaderOverflow,
}

impl Trim {
    /// Returns NDP's switch (section 3) for full packets of `packet` bytes. Headers have 64 bytes,
    /// ten of them are sent for one data packet, and they have the memory of eight data packets.
    /// The paper's are jumbo frames, and a few short packets would have room for a few headers
    /// only. So the memory is at least that of eight packets of 1500 bytes.
    pub fn paper(packet: Bytes) -> Self {
        Self {
            trimmed_bytes: 64,
            choice: TrimChoice::Coin,
            ratio: 10,
            headers: packet.max(Bytes::new(1_500)) * 8,
            overflow: HeaderOverflow::Return,
        }
    }
}

/// Classes that a pause of priority flow control stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PfcClasses {
    /// All classes except the highest.
    Data,
    /// All classes.
    All,
}

/// Maximum bytes from one link that may be queued in a switch before it pauses the other end of the
/// link (priority flow control).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PfcThreshold {
    /// `alpha` times the free part of the memory that the ports share.
    Dynamic {
        /// Factor of the free memory.
        alpha: f64,
    },
    /// Fixed number of bytes.
    Static(Bytes),
}

/// Racks: the hosts of each, and the links of its switch to other switches. A rack consists of the
/// hosts whose first link is to the same switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Racks {
    /// The rack of each host.
    pub rack_of: Vec<u16>,
    /// Total rate of the links of each rack's switch to other switches, in bits per second.
    pub uplink_bps: Vec<u64>,
    /// Total rate in the other direction, in bits per second.
    pub downlink_bps: Vec<u64>,
}

/// Paths between racks of a network of two or three tiers in which every rack's switch has the same
/// uplinks. In three tiers the same holds for every switch above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegularPaths {
    /// The rack of each host.
    pub rack_of: Vec<u16>,
    /// The pod of each rack: racks that share the switches above them. In two tiers all racks
    /// belong to one pod.
    pub pod_of: Vec<u16>,
    /// Uplinks of a rack's switch. Path number modulo this is the uplink.
    pub tor_uplinks: u16,
    /// Uplinks of a switch above it; the quotient of the path number is the uplink there. 1 in two
    /// tiers.
    pub agg_uplinks: u16,
}

/// Links between switches of a regular network that have failed, so that routing does not use them.
/// Racks, pods and uplinks are numbered as in [`RegularPaths`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinksDown {
    /// Uplinks of the switch of a rack: (rack, uplink).
    pub racks: Vec<(u16, u16)>,
    /// Uplinks of a switch above the racks: (pod, switch of the pod, uplink).
    pub pods: Vec<(u16, u16, u16)>,
}

/// Requirement of a transport on one setting of the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need<T> {
    /// Works with any value; the fabric's default applies.
    #[default]
    Any,
    /// Is designed for this value; a plan may choose another.
    Prefer(T),
    /// Works with this value only; a plan with another is refused.
    Require(T),
}

/// Maximum memory of a port: fabrics count the bytes of a queue in 32 bits.
pub const PORT_BYTES_MAX: Bytes = Bytes::new(4_000_000_000);

/// Ports that mark ECN-capable packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkingPorts {
    /// All ports of switches, and interfaces of hosts that queue.
    #[default]
    All,
    /// Only ports between switches.
    Core,
}

/// Requirements of one transport on the fabric. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FabricNeeds {
    /// Packet memory of switch ports.
    pub buffer: Need<Buffer>,
    /// Treatment of packets that do not fit into it.
    pub overflow: Need<Overflow>,
    /// Path choice of switches.
    pub spray: Need<Spray>,
    /// Location of queues in hosts.
    pub interface: Need<Interface>,
    /// Queue length, in bytes, from which ports mark ECN-capable packets; `None` for no marks.
    pub ecn: Need<Option<Bytes>>,
    /// Ports that mark.
    pub ecn_ports: Need<MarkingPorts>,
    /// Queue length, in bytes, above which switches drop unscheduled packets; `None` for never.
    pub drop_unscheduled: Need<Option<Bytes>>,
    /// Instant from which switches forward.
    pub switching: Need<Forwarding>,
    /// Minimum memory of a queued packet in bytes: that of a full packet if queues are counted in
    /// packets.
    pub buffer_cell: Need<u16>,
    /// Maximum bytes of packets of the highest priority that do not count as queued.
    pub express_max: Need<u16>,
    /// Trimming of ports; `None` for transports that do not understand trimmed packets. A plan may
    /// choose other values.
    pub trim: Option<Trim>,
    /// Priority flow control: the threshold, or `None` for networks that drop. It needs memory that
    /// ports share. If a plan gives each port its own, a preferred threshold is ignored.
    pub pfc: Need<Option<PfcThreshold>>,
    /// True if data is never in the highest class, so that a pause may spare that class.
    pub control_class: bool,
    /// Number of priorities of packets that the transport uses, 1 to 8; 0 if unspecified.
    pub priorities: u8,
    /// Maximum difference between hosts' clocks with which they work together; `None` for any.
    pub clock_skew_max: Option<Span>,
    /// Central controllers, in the order of their numbers.
    pub arbiters: Vec<ArbiterNeed>,
}

impl FabricNeeds {
    /// Returns needs of which preferred memory and thresholds of ports are at most
    /// [`PORT_BYTES_MAX`].
    #[must_use]
    pub fn limit_to_port_memory(mut self) -> Self {
        if let Need::Prefer(Buffer::PerPort(bytes)) = &mut self.buffer {
            *bytes = PORT_BYTES_MAX.min(*bytes);
        }
        if let Need::Prefer(Some(bytes)) = &mut self.ecn {
            *bytes = PORT_BYTES_MAX.min(*bytes);
        }
        self
    }
}

/// One central controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArbiterNeed {
    /// Rate of its link, or of each of its links.
    pub rate: ArbiterRate,
    /// Location in the network.
    pub place: ArbiterPlace,
}

/// Location of a controller in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArbiterPlace {
    /// One link, at the first rack.
    #[default]
    FirstRack,
    /// A link to the switch of every rack.
    EveryRack,
    /// A link to each of these switches, in this order.
    Switches(Vec<u32>),
}

/// Rate of a controller's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterRate {
    /// Rate of the slowest link of the network.
    Slowest,
    /// Rate of as many of the fastest links together as reach this number of bits per second:
    /// several interfaces.
    AtLeast(u64),
}

impl ArbiterRate {
    /// Returns the rate in a network whose links have rates from `slowest` to `fastest`.
    pub fn resolve(self, slowest: Rate, fastest: Rate) -> Rate {
        match self {
            Self::Slowest => slowest,
            Self::AtLeast(bps) => {
                let links = bps.div_ceil(fastest.as_bps()).max(1);
                Rate::from_bps(fastest.as_bps().saturating_mul(links)).unwrap_or(fastest)
            }
        }
    }
}
