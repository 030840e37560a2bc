//! Patterns: keys of a workload that are checked, and their errors.

use std::path::PathBuf;
use std::sync::Arc;

use rampmeter_types::{Bytes, Rate};
use thiserror::Error;

use crate::flow::FlowLimit;
use crate::size::{SizeDist, SizeError};
use crate::source::Source;
use crate::trace::{HostNames, TraceError};

/// The network that a workload is checked against.
#[derive(Clone, Debug)]
pub struct WorkloadContext {
    /// Number of hosts.
    pub n_hosts: u32,
    /// The lowest rate at which a host sends. Loads of all hosts are fractions of it.
    pub access_rate: Rate,
    /// Rates at which hosts send; empty if all send at the same rate. Loads of some hosts are
    /// fractions of the lowest of theirs.
    pub host_rates: Vec<Rate>,
    /// Payload of a full packet.
    pub payload: Bytes,
    /// The same packet's bytes on the wire.
    pub wire: Bytes,
    /// Number of hosts of a rack, if the topology has racks. Host `h` is in rack `h /
    /// hosts_per_rack`.
    pub hosts_per_rack: Option<u32>,
    /// Number of hosts that share a pod, if the topology has pods; host `h` is in pod
    /// `h / hosts_per_pod`.
    pub hosts_per_pod: Option<u32>,
    /// Directory that relative file names are relative to.
    pub base_dir: PathBuf,
}

impl WorkloadContext {
    /// Returns the maximum size of a flow in bytes: 2^50, and at most 2^32 - 1 packets.
    pub fn size_max(&self) -> u64 {
        self.payload.get().saturating_mul(u32::MAX.into()).min(crate::trace::SIZE_MAX)
    }
}

/// Reason why a workload cannot run on a network.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A key is missing or has an impossible value.
    #[error("{key}: expected {expected}, got {got}")]
    Key {
        /// The key, with the path to it.
        key: String,
        /// The values allowed.
        expected: String,
        /// The value in the plan.
        got: String,
    },
    /// The size distribution is not one.
    #[error("{key}: {source}")]
    Sizes {
        /// The key, with the path to it.
        key: String,
        /// The reason.
        source: SizeError,
    },
    /// The trace does not fit.
    #[error("{key}: {source}")]
    Trace {
        /// The key of the file, with the path to it.
        key: String,
        /// The reason.
        source: Box<TraceError>,
    },
}

/// A traffic pattern: a struct of its keys in plans.
pub(super) trait Pattern {
    /// Returns the keys that end it.
    fn stop(&self) -> StopCondition {
        StopCondition::default()
    }

    /// Checks the keys against the network and returns the flows.
    ///
    /// # Errors
    /// A key is missing or has an impossible value, or a file that it names is not valid.
    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError>;

    /// Returns the load that it offers evenly between all hosts.
    fn uniform_load(&self) -> f64 {
        0.0
    }
}

/// The flows of a pattern that fits its network.
pub(super) struct CheckedPattern {
    pub(super) source: Arc<dyn Source>,
    /// The distribution behind random sizes.
    pub(super) sizes: Option<Arc<SizeDist>>,
}

impl CheckedPattern {
    pub(super) fn new(source: impl Source + 'static) -> Self {
        Self { source: Arc::new(source), sizes: None }
    }

    pub(super) fn with_sizes(source: impl Source + 'static, sizes: Arc<SizeDist>) -> Self {
        Self { sizes: Some(sizes), ..Self::new(source) }
    }
}

/// End of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StopCondition {
    pub(super) flows: Option<u64>,
    pub(super) until_us: Option<f64>,
}

pub(super) fn one() -> u64 {
    1
}

/// Checks one workload; those in a mix have their own path and share the stream numbers.
pub(super) struct Checker<'a> {
    pub(super) context: &'a WorkloadContext,
    pub(super) hosts: Option<&'a HostNames>,
    pub(super) path: String,
    /// The limit of the mix that contains the workload, which also ends endless parts.
    pub(super) bound: FlowLimit,
    pub(super) streams: &'a mut u64,
    pub(super) warnings: &'a mut Vec<String>,
}
