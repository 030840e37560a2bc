//! The messages of a plan: their packets, ideal times, deadlines and dependencies.

pub(crate) mod collective;
pub(crate) mod deadlines;
pub(crate) mod ideals;
pub(crate) mod rpc;
pub(crate) mod source;
