//! Timeouts of transports whose receivers request missing packets.

use rampmeter_types::{Bytes, FabricFacts, NodeId, Span};

use super::attempt_limit::AttemptLimit;
use super::config::{forget_after, timeout_of};
use super::retransmit_queue::retransmit_gap;
use crate::registered::Peers;

/// Timeouts of messages, and the limit of unanswered attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Timeout: a number of unloaded round trips with control packets, or of times of a full
    /// packet if these are longer.
    pub timeout: Span,
    /// That number.
    round_trips: u32,
    /// Time without packets of its sender after which a receiver drops a message.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// Time between repetitions for two flows, if many are due.
    pub retransmit_gap: Span,
}

impl Recovery {
    /// Returns the timeouts on a fabric, for full packets of `packet` bytes.
    pub fn new(facts: &FabricFacts, round_trips: u32, packet: Bytes, attempts_max: u32) -> Self {
        let attempt_limit = AttemptLimit::new(attempts_max, facts);
        let timeout = timeout_of(facts, round_trips, packet);
        Self {
            timeout,
            round_trips,
            forget_timeout: attempt_limit.forget_timeout(forget_after(timeout, attempts_max)),
            attempt_limit,
            retransmit_gap: retransmit_gap(facts),
        }
    }

    /// Returns the timeout of messages to or from `peer`, if full packets have `packet` bytes.
    /// `peers` has the rates of all hosts, if one is slower.
    #[inline]
    pub fn timeout_of(&self, peers: Option<&Peers>, packet: Bytes, peer: NodeId) -> Span {
        let of_pair =
            |peers: &Peers| peers.scale_timeout(self.timeout, self.round_trips, packet, peer);
        peers.map_or(self.timeout, of_pair)
    }
}
