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

mod bimodal;
mod check;
mod collective;
mod fan;
mod grid;
mod hosts;
mod mix;
mod overlay;
mod pairs;
mod pattern;
mod phases;
mod rack_local;
mod rpc;
mod sizes;
mod skewed;
#[cfg(test)]
mod tests;
mod trace;
mod valid;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use bimodal::{BimodalSpec, PeriodDistribution};
pub use collective::CollectiveSpec;
pub use fan::{IncastSpec, OutcastSpec};
pub use grid::{DenseSpec, ShuffleSpec};
pub use hosts::{HostSpec, HostsSpec, RangeSpec};
pub use mix::MixSpec;
pub use overlay::IncastOverlaySpec;
pub use pairs::{AllToAllSpec, BisectionSpec, PermutationSpec, StaggeredSpec, StrideSpec};
pub use phases::PhasesSpec;
pub use rack_local::RackLocalSpec;
pub use rpc::{RpcSpec, TimeDistribution};
pub use sizes::{Interpolation, SizeSpec, Unit};
pub use skewed::SkewedAllToAllSpec;
pub use trace::TraceSpec;
pub use valid::ValidWorkload;

use crate::trace::HostNames;
use pattern::Pattern;
pub use pattern::{WorkloadContext, WorkloadError};

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
    /// Hosts that alternate between a high and a low rate, independently of each other.
    Bimodal(BimodalSpec),
    /// Flows from a file.
    Trace(TraceSpec),
    /// Several workloads at once.
    Mix(MixSpec),
    /// Several workloads one after the other, at each host.
    Phases(PhasesSpec),
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
        check::validate(self.keys(), context, None)
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
        check::validate(self.keys(), context, Some(hosts))
    }
}
