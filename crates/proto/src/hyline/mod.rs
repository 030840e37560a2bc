//! Hyline (Abbasloo, Xu, Chao: *HyLine: A Simple and Practical Flow Scheduling for Commodity
//! Datacenters*, IFIP Networking 2018), as the CAPTON paper compares itself with it.
//!
//! Messages up to a threshold are sent at once by TCP. For larger ones hosts send requests to a
//! central controller. It grants those with the smallest remaining size and chooses one path for
//! each.
//!
//! * [`paths`]: links and paths
//! * [`scheduler`]: the flows that transmit, and their paths
//! * [`config`], [`wire`]: parameters and packets
//! * [`central`](crate::central): the controller and the host layer, which [CAPTON](crate::capton)
//!   has too
//!
//! `docs/protocols/hyline.md` lists the packets, the sources on Hyline, and the differences.

pub mod config;
pub mod paths;
pub mod scheduler;
pub mod wire;

mod path_grant;
mod transport;

#[cfg(test)]
pub(crate) mod tests;

pub use config::{Hyline, HylineConfig};
pub use path_grant::PathGrant;
pub use paths::Paths;
pub use scheduler::PathScheduler;
pub use transport::{HylineArbiter, HylineHost, HylineTransport};
