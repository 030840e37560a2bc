//! Workloads: senders, receivers, sizes and times of messages.
//!
//! A workload is described by a [`WorkloadSpec`] (the `[workload]` table of a plan).
//! [`WorkloadSpec::validate`] checks it against the network it runs on. The result is read as an
//! iterator of [`Flow`]s in arrival order; flows that depend on others are in a [`Graph`].
//! Generated workloads are lazy, and equal for equal seeds. Traces and imported files are read
//! completely and checked first.
//!
//! *Load counts headers*: at load 1 the wire bytes of full packets fill every access link. The
//! arrival rate per host is `access rate x load / (8 x mean size x wire / payload)`. By default,
//! 1460 bytes of payload have 1500 wire bytes.

pub mod flow;
pub mod graph;
pub mod import;
mod mix;
pub mod pattern;
mod phases;
pub mod size;
mod source;
pub mod spec;
pub mod table;
pub mod trace;

pub use flow::{Flow, FlowLimit, FlowSource, merge};
pub use graph::{Call, Graph, GraphBuilder, GraphError, ReleaseCause, Releases, Round};

pub use size::{SizeDist, SizeError, SizeInterpolation};
pub use source::Process;
pub use spec::{ValidWorkload, WorkloadContext, WorkloadError, WorkloadSpec};
pub use trace::{ReferenceRow, TraceError};
