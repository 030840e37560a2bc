//! Transports with a central controller that starts and stops flows, around [TCP](crate::tcp): the
//! common part of [CAPTON](crate::capton) and [Hyline](crate::hyline).
//!
//! Short messages are sent at once. Hosts send the controller requests for longer ones. It orders
//! which of them transmit, at which rate, and by which path if it chooses paths. A transport
//! defines its grants ([`FlowGrant`]), the flows that have one ([`Schedule`]) and the packets
//! ([`Orders`]); its [`Central`] joins these.
//!
//! * [`flow`]: flows, their numbers, and the interface of schedulers
//! * [`left`]: remaining sizes (CAPTON's equations 1 to 3)
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
pub mod left;
pub mod settings;
pub mod wire;

mod arbiter;
mod asking;
mod host;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use rampmeter_core::Rate;

pub use agent::CentralAgent;
pub use arbiter::CentralArbiter;
pub use controller::{Controller, ControllerConfig, ControllerStats, Order, Request};
pub use flow::{Arrival, Change, FlowId, Schedule};
pub use host::CentralHost;
pub use left::RemainingSize;
pub use settings::{Settings, Waits};
pub use wire::{CentralHeader, Control, Orders};

/// Grant of a controller to a flow.
pub trait FlowGrant: Copy + Eq + Debug + Send + Sync + 'static {
    /// True if a grant may have a path.
    const HAS_PATH: bool;

    /// Returns the rate at which the flow transmits.
    fn rate(self) -> Rate;

    /// Returns the number of the path that its packets take; `None` if switches choose.
    fn path(self) -> Option<u16>;
}

/// A rate, over all paths.
impl FlowGrant for Rate {
    const HAS_PATH: bool = false;

    fn rate(self) -> Rate {
        self
    }

    fn path(self) -> Option<u16> {
        None
    }
}

/// A transport with a central controller.
pub trait Central: Debug + 'static {
    /// Grant of its controller.
    type Grant: FlowGrant;
    /// Its control messages on the wire.
    type Orders: Orders<Self::Grant>;
    /// Its scheduler.
    type Schedule: Schedule<Grant = Self::Grant>;
    /// Its parameters on one network.
    type Config: Debug + Send + Sync;

    /// Returns the settings shared by hosts and controllers.
    fn settings(config: &Self::Config) -> &Settings;

    /// Returns a scheduler without flows.
    fn schedule(config: &Self::Config) -> Self::Schedule;
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Messages that were sent without a request.
    pub unscheduled: u64,
    /// Messages with a request to the controller.
    pub scheduled: u64,
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Times that the host began to do without a controller.
    pub fallbacks: u64,
}

impl HostStats {
    /// Calls `each` with every counter and its name, in the order above.
    fn tell(self, each: &mut dyn FnMut(&'static str, u64)) {
        let Self { unscheduled, scheduled, requests, fallbacks } = self;
        let all = [
            ("unscheduled", unscheduled),
            ("scheduled", scheduled),
            ("requests", requests),
            ("fallbacks", fallbacks),
        ];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}
