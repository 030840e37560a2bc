//! Flows from a file: keys and checks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use crate::source::RecordedFlows;
use crate::trace::{self, FlowOrder, Format, Trace, TraceRequirements};

/// Keys of `trace`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TraceSpec {
    /// The file.
    pub file: PathBuf,
    /// Format of the file; default: by its name or contents.
    pub format: Option<Format>,
    /// Sort flows that are not in arrival order instead of rejecting the file.
    #[serde(default)]
    pub sort: bool,
    /// The file's names of columns, such as `{ src = "from", arrival_us = "start" }`. Other columns
    /// of the file are then left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// The vector of an MSCCL algorithm, whose file has no sizes. It is all that a host has at the
    /// start or at the end, the larger of the two.
    pub vector_bytes: Option<u64>,
    /// The file with the groups of ranks that a Chakra trace names: lists of ranks by name in JSON,
    /// the format of ASTRA-sim. Default: `comm_group.json` next to the trace, if there is one.
    pub groups_file: Option<PathBuf>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

impl Pattern for TraceSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let file = checker.context().base_dir.join(&self.file);
        let known = self
            .format
            .or_else(|| Format::from_name(&file))
            .or_else(|| Format::from_contents(&file));
        let Some(format) = known else {
            let names = Format::names();
            let expected = format!(
                "one of {names}, as neither the name nor the contents of the file suggest one"
            );
            return checker.wrong("format", &expected, "none");
        };
        let order = if self.sort { FlowOrder::Sort } else { FlowOrder::Require };
        let options = trace::Options {
            hosts: checker.names().cloned(),
            columns: self.columns.clone(),
            vector_bytes: self.vector_bytes,
            groups: self.groups_file.as_ref().map(|groups| checker.context().base_dir.join(groups)),
        };
        let size_max = checker.context().size_max();
        let check = TraceRequirements { size_max, ..TraceRequirements::new(checker.n(), order) };
        let read = trace::read_with_notes(&file, format, check, &options);
        let (trace, notes) = read.map_err(|error| {
            let (key, source) = (checker.key("file"), Box::new(error));
            WorkloadError::Trace { key, source }
        })?;
        notes.into_iter().for_each(|note| checker.warn(note));
        match trace {
            Trace::Flows(rows) => {
                let flows = rows.into_iter().map(|row| row.flow).collect();
                Ok(CheckedPattern::new(RecordedFlows(flows)))
            }
            Trace::Graph(_) if self.flows.is_some() || self.until_us.is_some() => {
                let expected = "neither flows nor until-us, as flows of the trace wait for others";
                checker.wrong("flows", expected, "one of them")
            }
            Trace::Graph(graph) => Ok(CheckedPattern::new(Arc::new(graph))),
        }
    }
}
