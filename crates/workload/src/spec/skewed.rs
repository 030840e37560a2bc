//! An all-to-all with popular receivers: keys and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostsSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError, one};
use crate::pattern::burst::BatchPattern;
use crate::pattern::skewed_all_to_all::SkewedPairs;

/// Keys of `skewed-all-to-all`. Rounds do not wait for each other.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SkewedAllToAllSpec {
    /// Bytes that every host sends in a round.
    pub host_bytes: u64,
    /// Zipf exponent of the receivers' popularity, 0 (all alike) to 10.
    pub skew: f64,
    /// Participating hosts; default: all.
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

impl Pattern for SkewedAllToAllSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        if !(0.0..=10.0).contains(&self.skew) {
            return checker.wrong("skew", "a number from 0 to 10", self.skew);
        }
        let size = checker.bytes("host-bytes", self.host_bytes)?;
        let rounds = checker.rounds(self.start_us, self.period_us, self.rounds)?;
        Ok(CheckedPattern::new(
            checker
                .bursts(BatchPattern::Skewed(SkewedPairs { hosts, size, skew: self.skew }), rounds),
        ))
    }
}
