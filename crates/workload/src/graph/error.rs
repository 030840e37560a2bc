//! Reasons why edges and flows form no graph.

use thiserror::Error;

/// Reason why edges and flows form no graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// A flow depends on one that its source neither sends nor receives.
    #[error(
        "flow {node} of host {host} waits for flow {dependency}, which host {host} neither \
             sends nor receives"
    )]
    Host {
        /// The flow.
        node: u32,
        /// Source of the flow.
        host: u32,
        /// The flow that it depends on.
        dependency: u32,
    },
    /// A flow depends on one that does not exist.
    #[error("flow {node} depends on flow {dependency}, which does not exist")]
    Unknown {
        /// The flow.
        node: u32,
        /// The flow that it depends on.
        dependency: u32,
    },
    /// A flow depends on itself.
    #[error("flow {node} depends on flow {dependency}, which depends on flow {node}")]
    Cycle {
        /// The flow with the lowest number of a cycle.
        node: u32,
        /// The flow that it depends on.
        dependency: u32,
    },
}
