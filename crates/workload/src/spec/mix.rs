//! Several workloads at once: keys and checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use super::{ValidWorkload, WorkloadSpec};
use crate::flow::FlowLimit;
use crate::mix::Mix;

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

impl Pattern for MixSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let limit = checker.limit(self.stop())?;
        if self.parts.is_empty() {
            return checker.wrong("parts", "at least one workload", "none");
        }
        let mut parts = Vec::new();
        let bound = if limit == FlowLimit::default() { checker.bound } else { limit };
        for (idx, part) in self.parts.iter().enumerate() {
            parts.push(checker.part(idx, part.keys(), bound)?);
        }
        if limit != FlowLimit::default() && parts.iter().any(ValidWorkload::has_graph) {
            let expected = "limits of the parts alone, as flows of a part wait for others";
            return checker.wrong("flows", expected, "flows or until-us of the mix");
        }
        Ok(CheckedPattern::new(Mix { parts }))
    }

    fn uniform_load(&self) -> f64 {
        self.parts.iter().map(WorkloadSpec::uniform_load).sum()
    }
}
