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

pub mod controller;
pub mod figure6;
pub mod left;
pub mod network;
pub mod scheduler;
pub mod split;

mod link;
mod sharing;

#[cfg(test)]
mod tests;

pub use controller::{Controller, ControllerConfig, ControllerStats, Order, Request};
pub use figure6::{Pending, figure6};
pub use left::Left;
pub use network::{LinkId, Narrow, Network};
pub use scheduler::{Arrival, Change, FlowId, Scheduler};
pub use sharing::Sharing;
pub use split::{LeastShare, SplitScheduler, split};
