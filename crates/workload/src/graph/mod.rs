//! Flows that depend on others.
//!
//! A [`Graph`] has flows and computations, numbered from zero. Each depends on any number of
//! others, and then starts after a computing time. A host must detect the end of its dependencies
//! by itself: it has received a flow, or a flow that it sent has been acknowledged. So a flow may
//! depend only on flows that its source sends or receives, and on computations there. Then real
//! hosts can run the same graph as the simulator, each with its own part.
//!
//! The edges are two flat arrays (compressed sparse rows). A flow needs 52 bytes, 4 for each
//! dependency, and 12 more while a run counts its open dependencies in [`Releases`].

mod call;
mod error;
mod flow_graph;
mod releases;
mod round;
#[cfg(test)]
mod tests;

pub use self::call::Call;
pub use self::flow_graph::{Graph, GraphBuilder};
pub use self::releases::{ReleaseCause, Releases};
pub use self::round::Round;
pub use error::GraphError;
