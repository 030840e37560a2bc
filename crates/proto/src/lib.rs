//! The protocols: one folder each, one state machine each.
//!
//! A protocol knows no driver. It implements [`Endpoint`](rampmeter_core::Endpoint) and is run by
//! the simulator, by hosts and by the fault checker alike.

pub mod beside;
pub mod cosy;
pub mod dcpim;
pub mod fastpass;
mod formats;
pub mod ideal;
pub mod pfabric;
pub mod phost;

mod shared;

pub use formats::formats;
pub use shared::{ConfigError, Padding};
