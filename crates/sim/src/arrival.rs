//! A message that a workload submits.

use rampmeter_types::{Bytes, NodeId, TenantId, Time};

/// A message that an application submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number in the workload; `None` for the place in the order of submission, from zero. A run
    /// has numbers for all of its messages or for none.
    pub number: Option<u32>,
    /// Time of submission.
    pub at: Time,
    /// Source host.
    pub src: NodeId,
    /// Destination host.
    pub dst: NodeId,
    /// Length of the message.
    pub size: Bytes,
    /// Deadline of the application; [`Time::NEVER`] if it has none.
    pub deadline: Time,
    /// Tenant that owns the message.
    pub tenant: TenantId,
}

impl Arrival {
    /// Returns a message without a deadline, of no particular tenant.
    pub fn new(at: Time, src: NodeId, dst: NodeId, size: Bytes) -> Self {
        let (deadline, tenant) = (Time::NEVER, TenantId::default());
        Self { number: None, at, src, dst, size, deadline, tenant }
    }
}
