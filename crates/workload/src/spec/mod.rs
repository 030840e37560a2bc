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
mod hosts;
mod pairs;
mod period;
mod phases;
mod rpc;
mod sizes;
#[cfg(test)]
mod tests;
mod valid;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rampmeter_core::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use hosts::{HostSpec, HostsSpec, RangeSpec};
pub use pairs::{PairsSpec, StaggeredSpec, StrideSpec};
pub use phases::PhasesSpec;
pub use rpc::{RpcSpec, Times};
pub use sizes::{Interpolation, SizeSpec, Unit};
pub use valid::{Process, ValidWorkload};

use crate::pattern::collective::{Algorithm, Operation};
use crate::size::SizeError;
use crate::trace::{Format, HostNames, TraceError};

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

/// A workload in a plan.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(tag = "pattern", rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// Every host sends to all others: at a load, every ordered pair is equally likely.
    AllToAll(PairsSpec),
    /// Every host sends to one other and receives from one.
    Permutation(PairsSpec),
    /// Every host sends to the one that is `stride` places on.
    Stride(StrideSpec),
    /// Every host sends to one of the other half, and receives from one there.
    Bisection(PairsSpec),
    /// Messages are sent to the same rack, the same pod or farther with given probabilities.
    Staggered(StaggeredSpec),
    /// Poisson arrivals with separate loads within racks and between them.
    RackLocal(RackSpec),
    /// All-to-all plus incasts that arrive as a Poisson process.
    IncastOverlay(OverlaySpec),
    /// Many senders to one receiver, all at once.
    Incast(FanSpec),
    /// One sender to many receivers, all at once.
    Outcast(FanSpec),
    /// Every sender to every receiver, all at once.
    Shuffle(ShuffleSpec),
    /// Every ordered pair of hosts, all at once.
    Dense(DenseSpec),
    /// Requests and responses: calls of clients to servers.
    Rpc(RpcSpec),
    /// A collective operation, whose flows wait for each other.
    Collective(CollectiveSpec),
    /// An all-to-all whose receivers differ in popularity, as phases at fixed instants.
    SkewedAllToAll(SkewedSpec),
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

/// Keys of `rack-local`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RackSpec {
    /// Message sizes.
    pub sizes: SizeSpec,
    /// Load of every host on hosts of its rack, headers included, 0 to 2: a share of the rate at
    /// which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub local_load: f64,
    /// Load of every host on hosts of other racks, headers included, 0 to 2: a share of the rate at
    /// which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub remote_load: f64,
    /// Number of hosts of a rack; that of the topology if left out.
    pub hosts_per_rack: Option<u32>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `incast-overlay`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OverlaySpec {
    /// Message sizes of the all-to-all.
    pub sizes: SizeSpec,
    /// Load of the all-to-all alone, headers included, above 0 and at most 2: a share of the rate
    /// at which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub load: f64,
    /// Load of the incasts on top of that, as a fraction of all hosts' capacity.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(default = "overlay_load")]
    pub incast_load: f64,
    /// Senders of an incast.
    #[serde(default = "overlay_fan_in")]
    pub fan_in: u32,
    /// Size of every flow of an incast; by default 86 packets (the dcPIM study's 128 KB).
    #[serde(default = "overlay_bytes")]
    pub incast_bytes: u64,
    /// Stop after this many flows, incasts included.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `incast` and `outcast`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FanSpec {
    /// Number of senders (incast) or receivers (outcast); drawn anew in every round.
    pub fan: u32,
    /// The receiver (incast) or sender (outcast); drawn anew in every round if left out.
    pub hub: Option<HostSpec>,
    /// The hosts among which the senders (incast) or receivers (outcast) are drawn; all if left
    /// out. The hub is never among them.
    pub peers: Option<HostsSpec>,
    /// Size of every flow. Either this or `total-bytes`.
    pub flow_bytes: Option<u64>,
    /// Size of all flows of a round together. Either this or `flow-bytes`.
    pub total_bytes: Option<u64>,
    /// Start of the first round.
    #[serde(default)]
    pub start_us: f64,
    /// Time from one round to the next; needed for more than one.
    pub period_us: Option<f64>,
    /// Number of rounds.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `shuffle`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ShuffleSpec {
    /// Sending hosts.
    pub senders: HostsSpec,
    /// Receiving hosts.
    pub receivers: HostsSpec,
    /// Size of every flow.
    pub flow_bytes: u64,
    /// Start of the first round.
    #[serde(default)]
    pub start_us: f64,
    /// Time from one round to the next; needed for more than one.
    pub period_us: Option<f64>,
    /// Number of rounds.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `dense`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DenseSpec {
    /// Size of every flow.
    pub flow_bytes: u64,
    /// Start of the flows.
    #[serde(default)]
    pub start_us: f64,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `collective`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CollectiveSpec {
    /// Operation that the collective carries out.
    pub operation: Operation,
    /// Algorithm by which the data move; the first that the operation has if left out.
    pub algorithm: Option<Algorithm>,
    /// The whole vector: the data of every host at the start (all-reduce, reduce-scatter,
    /// all-to-all) or at the end (all-reduce, all-gather, broadcast, pipeline). Of an all-to-all it
    /// includes the host's part for itself. Of an all-to-all-v with a skew it is the data that
    /// every host sends.
    pub vector_bytes: Option<u64>,
    /// Of an all-to-all-v, instead of `vector-bytes`: bytes by sender and receiver, row by row.
    pub matrix: Option<Vec<Vec<u64>>>,
    /// Of an all-to-all-v with `vector-bytes`: Zipf exponent of the receivers' popularity, 0 to 10.
    pub skew: Option<f64>,
    /// Participating hosts; all if left out.
    pub hosts: Option<HostsSpec>,
    /// Number of hosts in each of several groups, which do the operation at once; one group of all
    /// if left out.
    pub group_size: Option<u32>,
    /// Distance of the hosts of a group among `hosts`; 1 if left out.
    pub group_step: Option<u32>,
    /// Number of chunks into which a ring, a tree or a chain cuts the data that a host sends.
    #[serde(default = "one_chunk")]
    pub chunks: u32,
    /// Start of the first round.
    #[serde(default)]
    pub start_us: f64,
    /// Time that a host computes after the flows that a flow waits for, before it sends the flow.
    #[serde(default)]
    pub compute_us: f64,
    /// Number of rounds, each after the one before.
    #[serde(default = "one_chunk")]
    pub rounds: u32,
    /// Pause of a host between rounds.
    #[serde(default)]
    pub pause_us: f64,
}

fn one_chunk() -> u32 {
    1
}

/// Keys of `skewed-all-to-all`. Rounds do not wait for each other.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SkewedSpec {
    /// Bytes that every host sends in a round.
    pub host_bytes: u64,
    /// Zipf exponent of the receivers' popularity, 0 (all alike) to 10.
    pub skew: f64,
    /// Participating hosts; all if left out.
    pub hosts: Option<HostsSpec>,
    /// Start of the first round.
    #[serde(default)]
    pub start_us: f64,
    /// Time from one round to the next; needed for more than one.
    pub period_us: Option<f64>,
    /// Number of rounds.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `trace`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TraceSpec {
    /// The file.
    pub file: PathBuf,
    /// Its format; by its name or contents if left out.
    pub format: Option<Format>,
    /// Sort flows that are not in arrival order instead of rejecting the file.
    #[serde(default)]
    pub sort: bool,
    /// The file's names of columns, such as `{ src = "from", arrival_us = "start" }`. Other columns
    /// of the file are then left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// The vector of an MSCCL algorithm, whose file has no sizes: all that a host has at the start
    /// or at the end, the larger of the two.
    pub vector_bytes: Option<u64>,
    /// The file with the groups of ranks that a Chakra trace names: lists of ranks by name in JSON,
    /// the format of ASTRA-sim. If left out, `comm_group.json` next to the trace, if there is one.
    pub groups: Option<PathBuf>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

/// Keys of `mix`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MixSpec {
    /// The workloads, which are merged in arrival order.
    pub parts: Vec<WorkloadSpec>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

impl WorkloadSpec {
    fn stop(&self) -> Stop {
        let (flows, until_us) = match self {
            Self::AllToAll(spec) | Self::Permutation(spec) | Self::Bisection(spec) => {
                (spec.flows, spec.until_us)
            }
            Self::Stride(spec) => (spec.flows, spec.until_us),
            Self::Staggered(spec) => (spec.flows, spec.until_us),
            Self::RackLocal(spec) => (spec.flows, spec.until_us),
            Self::IncastOverlay(spec) => (spec.flows, spec.until_us),
            Self::Incast(spec) | Self::Outcast(spec) => (spec.flows, spec.until_us),
            Self::Shuffle(spec) => (spec.flows, spec.until_us),
            Self::Dense(spec) => (spec.flows, spec.until_us),
            Self::Collective(_) | Self::Rpc(_) | Self::Phases(_) => (None, None),
            Self::SkewedAllToAll(spec) => (spec.flows, spec.until_us),
            Self::Trace(spec) => (spec.flows, spec.until_us),
            Self::Mix(spec) => (spec.flows, spec.until_us),
        };
        Stop { flows, until_us }
    }

    /// Checks this workload against a network and reads the files it names.
    ///
    /// # Errors
    /// Names the key, and the expected and the actual value; for files also the line.
    pub fn validate(self, context: &WorkloadContext) -> Result<ValidWorkload, WorkloadError> {
        check::validate(self, context, None)
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
        check::validate(self, context, Some(hosts))
    }
}

fn one() -> u64 {
    1
}

/// Returns 2 % of capacity, as in the bursty workloads of the HPCC and dcPIM studies.
fn overlay_load() -> f64 {
    0.02
}

/// Fan-in of the dcPIM study's incasts (its table of workloads).
fn overlay_fan_in() -> u32 {
    50
}

/// 86 packets, the dcPIM study's 128 KB.
fn overlay_bytes() -> u64 {
    86 * 1460
}
