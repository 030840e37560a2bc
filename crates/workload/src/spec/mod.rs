//! Workloads as plans write them.
//!
//! ```toml
//! pattern = "all-to-all"
//! sizes = "imc10"            # or { fixed = 71540 }, or { cdf = "sizes.txt", unit = "packets" }
//! load = 0.6
//! flows = 1000000
//! ```
//!
//! Sizes are in bytes, times in microseconds. Every pattern but `collective`, `rpc` and `phases`
//! takes `flows` and `until-us`, and stops at the earlier one. Patterns that would never end need
//! one of them.

mod check;
mod collective;
mod fan;
mod grid;
mod hosts;
mod mix;
mod overlay;
mod pairs;
mod phases;
mod rack_local;
mod rpc;
mod sizes;
mod skewed;
#[cfg(test)]
mod tests;
mod trace;
mod valid;

use std::path::PathBuf;
use std::sync::Arc;

use rampmeter_core::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use collective::CollectiveSpec;
pub use fan::{IncastSpec, OutcastSpec};
pub use grid::{DenseSpec, ShuffleSpec};
pub use hosts::{HostSpec, HostsSpec, RangeSpec};
pub use mix::MixSpec;
pub use overlay::IncastOverlaySpec;
pub use pairs::{AllToAllSpec, BisectionSpec, PermutationSpec, StaggeredSpec, StrideSpec};
pub use phases::PhasesSpec;
pub use rack_local::RackLocalSpec;
pub use rpc::{RpcSpec, Times};
pub use sizes::{Interpolation, SizeSpec, Unit};
pub use skewed::SkewedAllToAllSpec;
pub use trace::TraceSpec;
pub use valid::ValidWorkload;

use crate::size::{SizeDist, SizeError};
use crate::source::Source;
use crate::trace::{HostNames, TraceError};
use check::Checker;

/// The network that a workload is checked against.
#[derive(Clone, Debug)]
pub struct WorkloadContext {
    /// Number of hosts.
    pub n_hosts: u32,
    /// The rate of their links, of which loads are fractions.
    pub access_rate: Rate,
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
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// A traffic pattern: a struct of its keys in plans.
trait Pattern {
    /// Returns the keys that end it.
    fn stop(&self) -> Stop {
        Stop::default()
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
struct CheckedPattern {
    source: Arc<dyn Source>,
    /// The distribution behind random sizes.
    sizes: Option<Arc<SizeDist>>,
}

impl CheckedPattern {
    fn new(source: impl Source + 'static) -> Self {
        Self { source: Arc::new(source), sizes: None }
    }

    fn with_sizes(source: impl Source + 'static, sizes: Arc<SizeDist>) -> Self {
        Self { sizes: Some(sizes), ..Self::new(source) }
    }
}

macro_rules! patterns {
    ($($(#[$about:meta])* $pattern:ident($keys:ident),)+) => {
        /// A workload in a plan.
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
        #[serde(tag = "pattern", rename_all = "kebab-case")]
        pub enum WorkloadSpec {
            $($(#[$about])* $pattern($keys),)+
        }

        impl WorkloadSpec {
            fn keys(&self) -> &dyn Pattern {
                match self {
                    $(Self::$pattern(keys) => keys,)+
                }
            }
        }
    };
}

patterns! {
    /// Every host sends to all others: at a load, every ordered pair is equally likely.
    AllToAll(AllToAllSpec),
    /// Every host sends to one other and receives from one.
    Permutation(PermutationSpec),
    /// Every host sends to the one that is `stride` places on.
    Stride(StrideSpec),
    /// Every host sends to one of the other half, and receives from one there.
    Bisection(BisectionSpec),
    /// Messages are sent to the same rack, the same pod or farther with given probabilities.
    Staggered(StaggeredSpec),
    /// Poisson arrivals with separate loads within racks and between them.
    RackLocal(RackLocalSpec),
    /// All-to-all plus incasts that arrive as a Poisson process.
    IncastOverlay(IncastOverlaySpec),
    /// Many senders to one receiver, all at once.
    Incast(IncastSpec),
    /// One sender to many receivers, all at once.
    Outcast(OutcastSpec),
    /// Every sender to every receiver, all at once.
    Shuffle(ShuffleSpec),
    /// Every ordered pair of hosts, all at once.
    Dense(DenseSpec),
    /// Requests and responses: calls of clients to servers.
    Rpc(RpcSpec),
    /// A collective operation, whose flows wait for each other.
    Collective(CollectiveSpec),
    /// An all-to-all whose receivers differ in popularity, as phases at fixed instants.
    SkewedAllToAll(SkewedAllToAllSpec),
    /// Flows from a file.
    Trace(TraceSpec),
    /// Several workloads at once.
    Mix(MixSpec),
    /// Several workloads one after the other, at each host.
    Phases(PhasesSpec),
}

/// End of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stop {
    flows: Option<u64>,
    until_us: Option<f64>,
}

impl WorkloadSpec {
    /// Returns the load that it offers evenly between all hosts, as a share of their rate.
    pub fn uniform_load(&self) -> f64 {
        self.keys().uniform_load()
    }

    /// Checks this workload against a network and reads the files it names.
    ///
    /// # Errors
    /// Names the key, and the expected and the actual value; for files also the line.
    pub fn validate(self, context: &WorkloadContext) -> Result<ValidWorkload, WorkloadError> {
        check::validate(&self, context, None)
    }

    /// Checks like [`WorkloadSpec::validate`], for a network whose nodes have the names `hosts`.
    ///
    /// # Errors
    /// As [`WorkloadSpec::validate`].
    pub fn validate_with_names(
        self,
        context: &WorkloadContext,
        hosts: &HostNames,
    ) -> Result<ValidWorkload, WorkloadError> {
        check::validate(&self, context, Some(hosts))
    }
}

fn one() -> u64 {
    1
}
