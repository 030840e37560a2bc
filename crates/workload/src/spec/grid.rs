//! Every sender to every receiver, all at once: keys and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostsSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError, one};
use crate::pattern::HostSet;
use crate::pattern::burst::{BatchPattern, Grid};

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

impl Pattern for ShuffleSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let senders = checker.hosts("senders", Some(&self.senders), 1)?;
        let receivers = checker.hosts("receivers", Some(&self.receivers), 1)?;
        if senders.count() == 1 && senders == receivers {
            let same = receivers.host(0).get();
            return checker.wrong("receivers", "a host other than the sender", same);
        }
        let size = checker.bytes("flow-bytes", self.flow_bytes)?;
        let rounds = checker.rounds(self.start_us, self.period_us, self.rounds)?;
        Ok(CheckedPattern::new(
            checker.bursts(BatchPattern::Grid(Grid { senders, receivers, size }), rounds),
        ))
    }
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

impl Pattern for DenseSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let all = HostSet::all(checker.n());
        let size = checker.bytes("flow-bytes", self.flow_bytes)?;
        let rounds = checker.rounds(self.start_us, None, 1)?;
        Ok(CheckedPattern::new(checker.bursts(
            BatchPattern::Grid(Grid { senders: all.clone(), receivers: all, size }),
            rounds,
        )))
    }
}
