//! Topologies: which nodes there are and which links join them.
//!
//! A topology is checked once when it is built. Hosts are numbered from zero, each with a link to
//! one switch or to several; switches are numbered from zero too, with a level: 1 for those with
//! hosts, then one more per tier.

mod build;
mod cables;
mod cut;
mod degraded_network;
mod delayed_paths;
mod delays;
mod error;
mod forward;
pub mod kinds;
mod pairs;
mod partitions;
mod paths;
mod port_wiring;
mod regular;
mod routes;
mod symmetry;
mod target;
mod topology;
mod uneven_paths;
mod uplinks;

pub use cut::{HostCut, ReturnPath};
pub use degraded_network::{DegradedTopology, DisconnectedHosts};
pub use delayed_paths::DelayedPath;
pub use delays::{Delays, NetworkShape};
pub use error::TopologyError;
pub use kinds::{LinkSpec, TopologySpec};
pub(crate) use partitions::Partitions;
pub use paths::Paths;
pub use regular::RegularPaths;
pub use routes::Routes;
pub(crate) use routes::distances;
pub use symmetry::Symmetry;
pub use target::{LinkChange, Target};
pub use topology::{ArbiterLink, Link, Node, PathHop, PathLink, Topology};
pub use uneven_paths::{FullLink, NarrowLink, NarrowPath, UnevenPaths};
