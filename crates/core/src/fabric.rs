//! What a transport may need of a fabric, and the settings that a fabric has.
//!
//! A transport states its [`FabricNeeds`]; a plan may override what is only preferred. The
//! simulator's fabric is built from the result.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Rate, Span};

/// How a switch that has several shortest paths chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spray {
    /// Each host numbers its packets, from a random start, and switches use the number.
    SourceRoundRobin,
    /// A uniformly random path for each packet at each switch.
    Random,
    /// One path a message, by a hash of its ends and number.
    Ecmp,
}

/// How hosts hand packets to their interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// The interface asks for a packet when its link is idle, and holds none.
    Pull,
    /// Hosts hand over every packet at once; the interface queues and drops like a switch port.
    Queue,
}

/// What happens to a packet that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// It is dropped.
    TailDrop,
    /// The newest packet of the lowest priority below its own is dropped for it.
    PushOut,
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
    /// Memory that a waiting packet takes at least, in bytes: as much as a full packet takes where
    /// queues are counted in packets.
    pub slot: Need<u16>,
    /// Packets of the highest priority up to this many bytes do not count as waiting.
    pub express: Need<u16>,
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
    /// The rate of its link.
    pub rate: ArbiterRate,
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
