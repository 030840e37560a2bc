//! The packet simulator: an event engine and a fabric that run any transport.
//!
//! [`Sim`] is generic over the [`Transport`](rampmeter_types::Transport) and a [`Probe`]; nothing
//! in its loop is dynamic. The same topology, settings, arrivals and seed give the same events in
//! the same order on any machine.

pub mod engine;
pub mod fabric;
pub mod topo;

mod arrival;
mod blame;
mod clock;
mod ledger;
mod probe;
mod role;
mod run;
mod source;
mod watched_transport;

pub use arrival::Arrival;
pub use blame::{Blocker, Cause, FlowBlame, LossSignal};
pub use clock::ClockSpec;
pub use fabric::{Buffer, FabricConfig, FaultSpec, Interface, LinkFault, Outage, Overflow, Spray};
pub use fabric::{PacketFate, PfcConfig, PfcStats, Scheduling, Switching};
pub use fabric::{PortBytes, PortGroup, link_tiers, port_groups, tier_capacities, tier_names};
pub use ledger::{Counters, take_violation};
pub use probe::{Direction, FlowRecord, InterfacePacket, NoProbe, Probe};
pub use run::windows::Partitioning;
pub use run::{Sim, SimSpec, Status, WindowTotals};
pub use source::Source;
pub use topo::kinds as topologies;
pub use topo::{
    ArbiterLink, Delays, HostCut, LinkChange, LinkSpec, NetworkShape, Node, PathHop, PathLink,
    Paths, RegularPaths, Symmetry, Target, Topology, TopologyError, TopologySpec,
};
pub use watched_transport::{WatchedHop, WatchedTransport};
