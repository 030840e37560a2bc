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

mod family;

#[cfg(test)]
pub(crate) mod tests;

use rampmeter_core::Rate;

pub use config::{Hyline, HylineConfig};
pub use family::HylineFamily;
pub use paths::Paths;
pub use scheduler::PathScheduler;

use crate::central::{CentralArbiter, CentralHost, FlowGrant};

/// Hyline at one host.
pub type HylineHost = CentralHost<HylineFamily>;

/// The controller of a network, or its standby.
pub type HylineArbiter = CentralArbiter<HylineFamily>;

/// Grant of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathGrant {
    /// The rate at which it transmits.
    pub rate: Rate,
    /// The number of its path; `None` within a rack, or if paths are not known.
    pub path: Option<u16>,
}

impl FlowGrant for PathGrant {
    const HAS_PATH: bool = true;

    fn rate(self) -> Rate {
        self.rate
    }

    fn path(self) -> Option<u16> {
        self.path
    }
}
