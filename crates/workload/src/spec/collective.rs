//! Collective operations: keys and checks.

use std::sync::Arc;

use rampmeter_types::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostsSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, WorkloadError};
use crate::pattern::HostSet;
use crate::pattern::collective::{Algorithm, Collective, Demand, Operation};

/// Maximum number of flows of all rounds together: 60 bytes each are 3 GB.
const FLOWS_MAX: u64 = 50_000_000;

/// The largest vector, 2^50 bytes.
const BYTES_MAX: u64 = 1 << 50;

/// Keys of `collective`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CollectiveSpec {
    /// Operation that the collective carries out.
    pub operation: Operation,
    /// Algorithm by which the data move; default: the first that the operation has.
    pub algorithm: Option<Algorithm>,
    /// The whole vector: the data of every host at the start (all-reduce, reduce-scatter,
    /// all-to-all) or at the end (all-reduce, all-gather, broadcast, pipeline). Of an all-to-all it
    /// includes the host's part for itself. Of an all-to-all-v with a skew it is the data that
    /// every host sends.
    pub vector_bytes: Option<u64>,
    /// Bytes by sender and receiver, row by row, for an all-to-all-v instead of `vector-bytes`.
    pub matrix: Option<Vec<Vec<u64>>>,
    /// Zipf exponent of the receivers' popularity, 0 to 10, for an all-to-all-v with
    /// `vector-bytes`.
    pub skew: Option<f64>,
    /// Participating hosts; default: all.
    pub hosts: Option<HostsSpec>,
    /// Number of hosts in each of several groups, which do the operation at once; default: one
    /// group of all.
    pub group_size: Option<u32>,
    /// Distance of the hosts of a group among `hosts`; default: 1.
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

impl Pattern for CollectiveSpec {
    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let groups = checker.groups(self)?;
        let mut collectives = Vec::with_capacity(groups.len());
        for hosts in groups {
            collectives.push(checker.of_group(self, hosts)?);
        }
        match collectives.iter().map(Collective::n_flows).fold(0, u64::saturating_add) {
            1..=FLOWS_MAX => Ok(CheckedPattern::new(collectives)),
            0 => checker.wrong("matrix", "bytes from a host to another", "none"),
            n => checker.wrong("rounds", &format!("at most {FLOWS_MAX} flows"), n),
        }
    }
}

impl Checker<'_> {
    /// Returns the groups of hosts, each in its order. The hosts of a group are `group-step` apart,
    /// and blocks of `group-size * group-step` hosts follow one another.
    fn groups(&self, spec: &CollectiveSpec) -> Result<Vec<HostSet>, WorkloadError> {
        let hosts = self.hosts("hosts", spec.hosts.as_ref(), 2)?;
        let Some(size) = spec.group_size else {
            return match spec.group_step {
                None => Ok(vec![hosts]),
                Some(step) => self.wrong("group-step", "no value without group-size", step),
            };
        };
        let step = spec.group_step.unwrap_or(1);
        let block = u64::from(size) * u64::from(step);
        if size < 2 || step == 0 || !u64::from(hosts.count()).is_multiple_of(block) {
            let expected = format!(
                "groups of at least 2 that fill the {} hosts in blocks of group-size * group-step",
                hosts.count()
            );
            return self.wrong("group-size", &expected, format!("{size} * {step}"));
        }
        let firsts = (0..hosts.count()).filter(|first| (first / step).is_multiple_of(size));
        let group = |first: u32| -> Vec<u32> {
            (0..size).map(|member| hosts.host(first + member * step).get()).collect()
        };
        Ok(firsts.map(|first| HostSet::list(&group(first))).collect())
    }

    fn of_group(
        &mut self,
        spec: &CollectiveSpec,
        hosts: HostSet,
    ) -> Result<Collective, WorkloadError> {
        let operation = spec.operation;
        let algorithm = self.algorithm(spec, &hosts)?;
        let (size, demand) = self.demand(spec, &hosts)?;
        if spec.chunks == 0 || spec.chunks > 1 && !algorithm.has_chunks() {
            let most = if algorithm.has_chunks() { "at least 1" } else { "1" };
            let expected = format!("{most} with {}", algorithm.name());
            return self.wrong("chunks", &expected, spec.chunks);
        }
        if spec.rounds == 0 {
            return self.wrong("rounds", "at least 1", 0);
        }
        let collective = Collective {
            operation,
            algorithm,
            hosts,
            size,
            chunks: spec.chunks,
            demand: Arc::new(demand),
            start: Time::ZERO + self.span("start-us", spec.start_us)?,
            compute: self.span("compute-us", spec.compute_us)?,
            rounds: spec.rounds,
            pause: self.span("pause-us", spec.pause_us)?,
            stream: self.stream(),
        };
        if spec.matrix.is_none() && size.get() < collective.pieces() {
            let expected = format!("a byte for each of {} pieces", collective.pieces());
            return self.wrong("vector-bytes", &expected, size.get());
        }
        Ok(collective)
    }

    fn algorithm(
        &self,
        spec: &CollectiveSpec,
        hosts: &HostSet,
    ) -> Result<Algorithm, WorkloadError> {
        let known = spec.operation.algorithms();
        let algorithm = spec.algorithm.unwrap_or(known[0]);
        if !known.contains(&algorithm) {
            let names: Vec<&str> = known.iter().map(|algorithm| algorithm.name()).collect();
            let expected = format!("{} for {}", names.join(", "), spec.operation.name());
            return self.wrong("algorithm", &expected, algorithm.name());
        }
        if algorithm == Algorithm::HalvingDoubling && !hosts.count().is_power_of_two() {
            return self.wrong("hosts", "a power of two for halving-doubling", hosts.count());
        }
        Ok(algorithm)
    }

    /// Returns the vector, and the bytes that hosts send to each other.
    fn demand(
        &self,
        spec: &CollectiveSpec,
        hosts: &HostSet,
    ) -> Result<(Bytes, Demand), WorkloadError> {
        let is_uneven = spec.operation == Operation::AllToAllV;
        let only = "no value except for all-to-all-v";
        match (&spec.matrix, spec.skew, spec.vector_bytes) {
            (Some(_), ..) if !is_uneven => self.wrong("matrix", only, "a matrix"),
            (_, Some(skew), _) if !is_uneven => self.wrong("skew", only, skew),
            (Some(_), Some(skew), _) => self.wrong("skew", "no value with matrix", skew),
            (Some(_), _, Some(bytes)) => self.wrong("vector-bytes", "no value with matrix", bytes),
            (Some(rows), None, None) => {
                self.matrix(rows, hosts.count())?;
                Ok((Bytes::ZERO, Demand::Matrix(rows.clone())))
            }
            (None, _, None) if is_uneven => {
                self.wrong("vector-bytes", "vector-bytes and skew, or matrix", "neither")
            }
            (None, None, Some(_)) if is_uneven => {
                self.wrong("skew", "a skew with vector-bytes", "none")
            }
            (None, _, None) => self.wrong("vector-bytes", "bytes from 1 to 2^50", "none"),
            (None, skew, Some(bytes)) => {
                let size = self.bytes("vector-bytes", bytes)?;
                match skew {
                    None => Ok((size, Demand::Even)),
                    Some(skew) if (0.0..=10.0).contains(&skew) => Ok((size, Demand::Skew(skew))),
                    Some(skew) => self.wrong("skew", "a number from 0 to 10", skew),
                }
            }
        }
    }

    fn matrix(&self, rows: &[Vec<u64>], n: u32) -> Result<(), WorkloadError> {
        let n = n as usize;
        if rows.len() != n {
            return self.wrong("matrix", &format!("a row for each of {n} hosts"), rows.len());
        }
        for (src, row) in rows.iter().enumerate() {
            let key = format!("matrix[{src}]");
            if row.len() != n {
                return self.wrong(&key, &format!("bytes for each of {n} hosts"), row.len());
            }
            if let Some(bytes) = row.iter().find(|&&bytes| bytes > BYTES_MAX) {
                return self.wrong(&key, "bytes from 0 to 2^50", bytes);
            }
        }
        Ok(())
    }
}
