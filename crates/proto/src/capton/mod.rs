//! CAPTON (Zhou, Lee: *CAPTON—Centralized All-Path Transmission for Over-Subscribed Datacenter
//! Networks*, IEEE Access 2022).
//!
//! A central controller decides which flows transmit, at which rate, and which stop: the flow with
//! the least left first, as far as access links and core links have room. Every flow is spread over
//! all paths, so that parallel links count as one.
//!
//! * [`network`]: hosts, groups and capacities
//! * [`left`]: remaining sizes (equations 1 to 3)
//! * [`figure6`](mod@figure6): the scheduler on a whole set of flows, as the paper has it
//! * [`scheduler`]: the same outcome, incrementally
//! * `link`: what the scheduler knows of a link
//! * [`split`](mod@split): a variant in which flows share links
//! * [`controller`]: the flow register, orders to hosts, and what happens when messages are lost
//! * `arbiter`: the controller as an endpoint
//! * `host`: the host layer around [TCP](crate::tcp) (§IV.C)
//! * `spray`: all-path transmission at switches (§IV.B)
//! * [`config`], [`wire`]: parameters and packets
//!
//! `docs/protocols/capton.md` lists the packets, and what differs from the paper.

pub mod config;
pub mod controller;
pub mod figure6;
pub mod left;
pub mod network;
pub mod scheduler;
pub mod split;
pub mod wire;

mod arbiter;
mod family;
mod host;
mod link;
mod sharing;
mod spray;

#[cfg(test)]
mod tests;

pub use arbiter::CaptonArbiter;
pub use config::{Capton, CaptonConfig};
pub use controller::{Controller, ControllerConfig, ControllerStats, Order, Request};
pub use family::CaptonFamily;
pub use figure6::{Pending, figure6};
pub use host::CaptonHost;
pub use left::Left;
pub use network::{LinkId, Narrow, Network};
pub use scheduler::{Arrival, Change, FlowId, Scheduler};
pub use sharing::Sharing;
pub use split::{LeastShare, SplitScheduler, split};
pub use spray::AllPaths;

/// What a host counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptonStats {
    /// Messages that were sent without asking.
    pub unscheduled: u64,
    /// Messages that asked the controller.
    pub scheduled: u64,
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Times that the host began to do without a controller.
    pub fallbacks: u64,
}

impl CaptonStats {
    /// Tells `each` every count with its name, in the order above.
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
