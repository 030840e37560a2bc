//! Flows as controllers see them, and the duties of a scheduler of flows.

use std::fmt::Debug;

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{Bytes, NodeId, Rate, Time};

use super::remaining::RemainingSize;

/// A flow's number: unique among all flows that a scheduler has at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

impl FlowId {
    /// Returns the flow `number` of host `src`.
    pub(crate) fn new(src: NodeId, number: u32) -> Self {
        Self(u64::from(src.get()) << 32 | u64::from(number))
    }

    pub(crate) fn src(self) -> NodeId {
        NodeId::new((self.0 >> 32) as u32)
    }

    pub(crate) fn number(self) -> u32 {
        self.0 as u32
    }
}

/// Grant of a controller to a flow.
pub trait FlowGrant: Copy + Eq + Debug + Send + Sync + 'static {
    /// True if a grant may have a path.
    const HAS_PATH: bool;

    /// Returns the rate at which the flow transmits.
    fn rate(self) -> Rate;

    /// Returns the number of the path that its packets take; `None` if switches choose.
    fn path(self) -> Option<u16>;
}

/// A rate, over all paths.
impl FlowGrant for Rate {
    const HAS_PATH: bool = false;

    fn rate(self) -> Rate {
        self
    }

    fn path(self) -> Option<u16> {
        None
    }
}

/// A flow that requests to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the flow.
    pub id: FlowId,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host, another one.
    pub dst: NodeId,
    /// Remaining size, in the bytes that the capacities of links count.
    pub remaining: Bytes,
}

/// New order for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<G> {
    /// The flow.
    pub flow: FlowId,
    /// Grant of the flow; `None` if it stops.
    pub grant: Option<G>,
}

/// A scheduler: it decides which flows transmit.
///
/// Methods that change something answer with the flows that are stopped, and then with those that
/// are granted something else than before. A flow that arrives and is stopped is not among them.
pub trait Schedule: Debug {
    /// Grant of a flow.
    type Grant: FlowGrant;

    /// Returns the number of hosts.
    fn n_hosts(&self) -> u32;

    /// Returns the grant of a flow; `None` if it is stopped or not known.
    fn grant(&self, id: FlowId) -> Option<Self::Grant>;

    /// Returns the remaining bytes of a flow (equation 1); `None` if the flow is not known.
    fn remaining(&self, id: FlowId) -> Option<RemainingSize>;

    /// Returns the flow that is predicted to complete next, and when (equation 3).
    fn next_completion(&self) -> Option<(Time, FlowId)>;

    /// Moves the clock. Nothing else changes. An earlier time than before does nothing.
    fn advance(&mut self, now: Time);

    /// Adds a flow that requests to transmit. It is not known yet, and leads from one host to
    /// another.
    fn arrive(&mut self, flow: Arrival) -> &[Change<Self::Grant>];

    /// Removes a flow that has completed or failed. Does nothing for one that is not known.
    fn complete(&mut self, id: FlowId) -> &[Change<Self::Grant>];

    /// Sets the remaining bytes of a flow, regardless of the calculation. Does nothing for one that
    /// is not known.
    fn correct(&mut self, id: FlowId, remaining: Bytes) -> &[Change<Self::Grant>];

    /// Routing uses all links but these. Returns the changes, in order: a flow may be in it more
    /// than once. Nothing by default.
    fn set_links(&mut self, _down: &LinksDown) -> Vec<Change<Self::Grant>> {
        Vec::new()
    }
}
