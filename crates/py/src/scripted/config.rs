//! Keys of transports in Python.

use pyo3::prelude::*;
use rampmeter_types::FabricFacts;
use rampmeter_types::Segmentation;

/// The class, and the facts about the network for its objects.
#[derive(Debug)]
pub(crate) struct ScriptedConfig {
    /// A `functools.partial` of the class and its parameters.
    pub(super) endpoint: Py<PyAny>,
    pub(super) segmentation: Segmentation,
    pub(super) facts: FabricFacts,
}
