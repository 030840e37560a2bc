//! CAPTON (Zhou, Lee: *CAPTON—Centralized All-Path Transmission for Over-Subscribed Datacenter
//! Networks*, IEEE Access 2022).
//!
//! A central controller decides which flows transmit, at which rate, and which stop. It grants the
//! flow with the smallest remaining size first, as far as access links and core links have room.
//! Every flow is spread over all paths, so that parallel links count as one.
//!
//! * [`network`]: hosts, groups and capacities
//! * [`figure6`](mod@figure6): the scheduler on a whole set of flows, as the paper has it
//! * [`scheduler`]: the same outcome, incrementally
//! * `link`: the scheduler's state of a link
//! * [`split`](mod@split): a variant in which flows share links
//! * `spray`: all-path transmission at switches (§IV.B)
//! * [`config`], [`wire`]: parameters and packets
//! * [`central`](crate::central): the controller and the host layer, which [Hyline](crate::hyline)
//!   has too
//!
//! `docs/protocols/capton.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod figure6;
pub mod network;
pub mod scheduler;
pub mod split;
pub mod wire;

mod link;
mod sharing;
mod spray;
mod transport;

#[cfg(test)]
pub(crate) mod tests;

pub use config::{Capton, CaptonConfig};
pub use figure6::{PendingFlow, schedule_by_figure6};
pub use network::{LinkId, NarrowCorePolicy, Network};
pub use scheduler::Scheduler;
pub use sharing::{AnyScheduler, SharingPolicy};
pub use split::{MinShare, SplitScheduler, schedule_split};
pub use spray::SprayProgram;
pub use transport::{CaptonAgent, CaptonArbiter, CaptonHost, CaptonTransport};
