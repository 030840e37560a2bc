//! Transports with a central controller that starts and stops flows, around [TCP](crate::tcp): the
//! common part of [CAPTON](crate::capton) and [Hyline](crate::hyline).
//!
//! Short messages are sent at once. Hosts send the controller requests for longer ones. It orders
//! which of them transmit, at which rate, and by which path if it chooses paths. A transport
//! defines its grants ([`FlowGrant`]), the flows that have one ([`Schedule`]) and the packets
//! ([`Orders`]); its [`CentralScheme`] joins these.
//!
//! * [`flow`]: flows, their numbers, and the interface of schedulers
//! * [`remaining`]: remaining sizes (CAPTON's equations 1 to 3)
//! * [`controller`]: the flow register, orders to hosts, and the handling of lost messages
//! * `arbiter`: the controller as an endpoint
//! * `asking`: requests and orders, seen from a host
//! * `host`: the host layer around TCP
//! * [`agent`]: the host layer for programs that have a TCP of their own
//! * [`settings`]: the settings of both
//! * [`wire`]: control messages and packets

pub mod agent;
pub mod controller;
pub mod flow;
pub mod remaining;
pub mod settings;
pub mod wire;

mod arbiter;
mod host;
mod requests;
mod scheme;
mod stats;
#[cfg(test)]
mod tests;

pub use agent::CentralAgent;
pub use arbiter::CentralArbiter;
pub use controller::{Controller, ControllerConfig, ControllerStats, Order, Request};
pub use flow::{Arrival, Change, FlowGrant, FlowId, Schedule};
pub use host::CentralHost;
pub(crate) use host::STAGES;
pub use remaining::RemainingSize;
pub use scheme::CentralScheme;
pub use settings::{ControllerKeys, Settings};
pub use stats::HostStats;
pub use wire::{CentralHeader, Control, Orders};
