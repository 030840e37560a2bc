//! Flows as controllers know them, and what a scheduler of flows does.

use std::fmt::Debug;

use rampmeter_core::fabric::LinksDown;
use rampmeter_core::{Bytes, NodeId, Time};

use super::Granted;
use super::left::Left;

/// A flow's number: unique among all flows that a scheduler has at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

impl FlowId {
    /// Flow `number` of host `src`.
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

/// A flow that asks to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub id: FlowId,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host, another one.
    pub dst: NodeId,
    /// Its remaining size, in the bytes that the capacities of links count.
    pub left: Bytes,
}

/// What a flow is to do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<G> {
    /// The flow.
    pub flow: FlowId,
    /// What it is granted; `None` if it stops.
    pub grant: Option<G>,
}

/// A scheduler: it decides which flows transmit.
///
/// Methods that change something answer with the flows that are stopped, and then with those that
/// are granted something else than before. A flow that arrives and is stopped is not among them.
pub trait Schedule: Debug {
    /// What a flow is granted.
    type Grant: Granted;

    /// The number of hosts.
    fn n_hosts(&self) -> u32;

    /// What a flow is granted; `None` if it is stopped or not known.
    fn grant(&self, id: FlowId) -> Option<Self::Grant>;

    /// What a flow has left (equation 1); `None` if it is not known.
    fn left(&self, id: FlowId) -> Option<Left>;

    /// The flow that is predicted to complete next, and when (equation 3).
    fn next_completion(&self) -> Option<(Time, FlowId)>;

    /// Moves the clock. Nothing else changes. An earlier time than before does nothing.
    fn advance(&mut self, now: Time);

    /// A flow asks to transmit. It is not known yet, and leads from one host to another.
    fn arrive(&mut self, flow: Arrival) -> &[Change<Self::Grant>];

    /// A flow is over. Does nothing for one that is not known.
    fn complete(&mut self, id: FlowId) -> &[Change<Self::Grant>];

    /// A flow has so much left, whatever was calculated. Does nothing for one that is not known.
    fn correct(&mut self, id: FlowId, left: Bytes) -> &[Change<Self::Grant>];

    /// Routing uses all links but these. Answers with what changes, in order: a flow may be in it
    /// more than once. Nothing by default.
    fn set_links(&mut self, _down: &LinksDown) -> Vec<Change<Self::Grant>> {
        Vec::new()
    }
}
