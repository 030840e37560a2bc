//! Workloads one after the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkloadSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, WorkloadError};
use crate::flow::FlowLimit;
use crate::phases::Phases;

/// Keys of `phases`. A host begins a phase when it has finished the one before: when it has
/// received all that it receives there, or has sent all if it receives nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PhasesSpec {
    /// The phases in their order; each needs an end. Their times count from the start of the phase
    /// at a host.
    pub parts: Vec<WorkloadSpec>,
    /// Number of times that hosts run all phases.
    #[serde(default = "one")]
    pub rounds: u32,
    /// Pause of a host between two phases.
    #[serde(default)]
    pub pause_us: f64,
}

fn one() -> u32 {
    1
}

/// Maximum number of nodes of all phases together: 60 bytes each are 3 GB.
const NODES_MAX: u64 = 50_000_000;

/// Maximum number of rounds if the number of flows of a part is unknown.
const ROUNDS_MAX: u32 = 10_000;

impl Pattern for PhasesSpec {
    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        if self.parts.is_empty() {
            return checker.wrong("parts", "at least one workload", "none");
        }
        if self.rounds == 0 {
            return checker.wrong("rounds", "at least 1", 0);
        }
        let mut parts = Vec::new();
        for (idx, part) in self.parts.iter().enumerate() {
            parts.push(checker.part(idx, part.keys(), FlowLimit::default())?);
        }
        let pause = checker.span("pause-us", self.pause_us)?;
        let phases = Phases { parts, rounds: self.rounds, pause };
        match phases.total_flows() {
            Some(n) if n > NODES_MAX => {
                checker.wrong("rounds", &format!("at most {NODES_MAX} flows"), n)
            }
            None if self.rounds > ROUNDS_MAX => {
                let expected = format!("at most {ROUNDS_MAX} if a part ends by until-us");
                checker.wrong("rounds", &expected, self.rounds)
            }
            _ => Ok(CheckedPattern::new(phases)),
        }
    }
}
