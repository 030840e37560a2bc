//! Configuration of a node at its start.

use std::net::IpAddr;

use rampmeter_core::fabric::Spray;
use rampmeter_core::{Bytes, NodeId, Rate, Span};

use crate::agreement::Agreement;
use crate::wire::{Incarnation, TransportId};

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
    /// Choice among several paths: with [`Spray::Ecmp`] packets of a message take the same, with
    /// the others each takes any.
    pub spray: Spray,
    /// Number of data packets in a row on the same path, if each may take any: 1, or more if the
    /// datapath coalesces packets of one path.
    pub run: u16,
    /// Maximum bytes of a message that it sends or receives: at most 1 GiB.
    pub message_max: u32,
    /// Time for which control packets wait for others in the same datagram, and the node for more
    /// packets, while packets arrive in quick succession. Zero disables it.
    pub gather: Span,
    /// Maximum duration of polling after a packet or a submission, if the next ones follow soon
    /// ([`BusyPoll`](crate::BusyPoll)). Zero disables it.
    pub busy_poll: Span,
    /// Time for which a message waits for a receiver that has not responded yet.
    pub patience: Span,
    /// Source addresses that packets must have, by node number, if they are to be checked; `None`
    /// if there is no such node.
    pub peers: Vec<Option<Option<IpAddr>>>,
    /// Settings that its peers should have in common.
    pub agreement: Agreement,
    /// Seed of the endpoint's random choices.
    pub seed: u64,
}

impl NodeConfig {
    /// Recommended [`NodeConfig::gather`]: less than half of the round trip between hosts that
    /// sleep when idle, and several times as long as falling asleep and waking take.
    pub const GATHER: Span = Span::from_us(60);
    /// Maximum length of a message of any node.
    pub const MESSAGE_MAX: u32 = 1 << 30;
    /// Maximum number of messages of a peer that are arriving at a node. More than any peer with
    /// programs of the usual depths has, and a few megabytes of memory.
    pub const ARRIVING_MAX: u32 = 1 << 16;
}
