//! A graph in a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, is_false};
use crate::topo::{Topology, TopologyError};

/// A file with a table of kind `links`, relative to the plan.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct File {
    /// The file.
    pub file: String,
    /// Hosts with several links, or with a link to a host, forward packets for others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hosts_forward: bool,
}

impl TopologyKind for File {
    fn build(&self) -> Result<Topology, TopologyError> {
        Err(TopologyError::Unread(self.file.clone()))
    }
}
