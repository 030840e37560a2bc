//! What a node is told at its start.

use std::net::IpAddr;

use rampmeter_core::fabric::Spray;
use rampmeter_core::{Bytes, NodeId, Rate, Span};

use crate::agreement::Agreement;
use crate::wire::{Incarnation, TransportId};

/// What a node must be told.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which node this is.
    pub node: NodeId,
    /// The protocol's number on the wire.
    pub transport: TransportId,
    /// This life of the node: a number that no earlier life had.
    pub incarnation: Incarnation,
    /// Rate at which it sends at most.
    pub rate: Rate,
    /// Bytes that may leave together when the node was late.
    pub burst: Bytes,
    /// How packets take one of several paths: with [`Spray::Ecmp`] those of a message take the same,
    /// with the others each takes any.
    pub spray: Spray,
    /// How many data packets in a row take the same path, where each may take any: 1, or more where
    /// the datapath hands packets of one path to the system in one piece.
    pub run: u16,
    /// Bytes of the longest message that it sends or takes: at most 1 GiB.
    pub message_max: u32,
    /// While packets arrive in quick succession: how long control packets wait for others that leave
    /// with them, and the node for more packets. Zero for not at all.
    pub gather: Span,
    /// How long the node stays awake at most after a packet or a submission, where the next ones follow
    /// soon ([`BusyPoll`](crate::BusyPoll)). Zero for not at all.
    pub busy_poll: Span,
    /// How long a message waits for a receiver that has not been heard yet.
    pub patience: Span,
    /// By node number: the address that its packets must come from, if that is to be checked, and
    /// `None` where there is no such node.
    pub peers: Vec<Option<Option<IpAddr>>>,
    /// What its peers should have configured like it.
    pub agreement: Agreement,
    /// Seed of the endpoint's random choices.
    pub seed: u64,
}

impl NodeConfig {
    /// A good [`NodeConfig::gather`]: less than half of the round trip between hosts that sleep where
    /// they have nothing to do, and several times as long as it takes to fall asleep and to wake.
    pub const GATHER: Span = Span::from_us(60);
    /// The longest message that any node can take.
    pub const MESSAGE_MAX: u32 = 1 << 30;
    /// Messages that a peer may have under way to a node: more than any peer with programs of the
    /// usual depths has, and a few megabytes of memory.
    pub const ARRIVING_MAX: u32 = 1 << 16;
}
