//! Configuration of a node at its start.

use std::net::IpAddr;

use rampmeter_types::fabric::Spray;
use rampmeter_types::{Bytes, NodeId, Rate, Span};

use crate::agreement::SettingDigests;
use rampmeter_types::envelope::{Incarnation, TransportId};

/// Configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Number of this node.
    pub node: NodeId,
    /// Number of the protocol on the wire.
    pub transport: TransportId,
    /// Incarnation of the node: a number that no earlier incarnation had.
    pub incarnation: Incarnation,
    /// Maximum sending rate.
    pub rate: Rate,
    /// Maximum bytes that are sent at once after a delay of the node.
    pub burst: Bytes,
    /// Choice among several paths. With [`Spray::Ecmp`] all packets of a message use the same path;
    /// with the others each packet may use any.
    pub spray: Spray,
    /// Number of successive data packets on the same path, if each may use any: 1, or more if the
    /// datapath coalesces packets of one path.
    pub run: u16,
    /// Maximum bytes of a message that it sends or receives: at most 1 GiB.
    pub message_max: u32,
    /// Time for which control packets are batched, and the node waits for more packets, under load.
    /// Zero disables both.
    pub coalescing: Span,
    /// Maximum duration of polling after a packet or a submission, if the next ones follow soon
    /// ([`BusyPoll`](crate::BusyPoll)). Zero disables it.
    pub busy_poll: Span,
    /// Time for which a message waits for a receiver that has not responded yet.
    pub connect_timeout: Span,
    /// Source addresses that packets must have, by node number, if they are to be checked; `None`
    /// if there is no such node.
    pub peers: Vec<Option<Option<IpAddr>>>,
    /// Settings that its peers should have in common.
    pub agreement: SettingDigests,
    /// Seed of the endpoint's random choices.
    pub seed: u64,
}

impl NodeConfig {
    /// Recommended [`NodeConfig::coalescing`]. It is less than half of the round trip between hosts
    /// that sleep when idle, and several times as long as falling asleep and waking take.
    pub const COALESCING: Span = Span::from_us(60);
    /// Maximum length of a message of any node.
    pub const MESSAGE_MAX: u32 = 1 << 30;
    /// Maximum number of messages of a peer that are arriving at a node. It is above the number of
    /// any peer with programs of the usual depths, and costs a few megabytes of memory.
    pub const ARRIVING_MAX: u32 = 1 << 16;
}
