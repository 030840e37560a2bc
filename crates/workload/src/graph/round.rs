//! Rounds of collectives.

use std::ops::Range;

use rampmeter_types::Bytes;

use crate::pattern::HostSet;
use crate::pattern::collective::{Algorithm, Operation};

/// One round of a collective, and its nodes in the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Operation.
    pub operation: Operation,
    /// Algorithm by which the data move.
    pub algorithm: Algorithm,
    /// Participating hosts.
    pub hosts: HostSet,
    /// Number of the round, from zero.
    pub number: u32,
    /// Bytes for bandwidths: the vector, or for an all-to-all-v the maximum that any host sends.
    pub bytes: Bytes,
    /// Flows and computations of the round.
    pub nodes: Range<u32>,
}
