//! The packet simulator: an event engine and a fabric that run any protocol family.
//!
//! [`Sim`] is generic over the [`Family`](rampmeter_core::Family) and a [`Probe`]; nothing in its
//! loop is dynamic. The same topology, settings, arrivals and seed give the same events in the
//! same order on any machine.

pub mod engine;
pub mod fabric;
pub mod topo;

mod clock;
mod probe;
mod run;

pub use clock::ClockSpec;
pub use fabric::{Buffer, FabricConfig, FaultSpec, LinkFault, Outage, Overflow, Spray};
pub use fabric::{Switching, Target};
pub use probe::{FlowRecord, NoProbe, Probe};
pub use run::{Arrival, Counters, Sim, SimSpec, Status};
pub use topo::{Paths, Topology, TopologyError, TopologySpec};
