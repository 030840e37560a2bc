//! Homa (Montazeri, Li, Alizadeh, Ousterhout: *Homa: A Receiver-Driven Low-Latency Transport
//! Protocol Using Network Priorities*, SIGCOMM 2018), and Homa with Aeolus (Hu, Bai, Zeng, Wang,
//! Qiao, Chen, Tan, Wang: *Aeolus: A Building Block for Proactive Transport in Datacenters*,
//! SIGCOMM 2020).
//!
//! The first bytes of a message are sent at once, in a priority that follows from its size. The
//! receiver grants the others, to the messages with the fewest remaining bytes, each in a separate
//! priority. It grants more messages than its link can carry, so that a sender that is busy
//! elsewhere causes no gap.
//!
//! * [`config`]: parameters, the `paper` and `reference` presets, derived values
//! * [`cutoffs`]: priorities by the distribution of sizes
//! * [`wire`]: the packets
//! * `sender`: unscheduled and granted packets, fewest remaining bytes first
//! * `receiver`, `rx_flow`: arrival, requests of retransmissions
//! * `grant_scheduler`: the messages that have grants, and their priorities
//! * `rpc`: requests and their answers
//! * `transport`: Homa and Homa Aeolus as transports
//!
//! `docs/protocols/homa.md` and `docs/protocols/homa-aeolus.md` list the packets and the deviations
//! from the papers.

pub mod config;
pub mod cutoffs;
pub mod wire;

mod grant_scheduler;
mod host;
mod receiver;
mod rpc;
mod rx_flow;
mod sender;
mod stats;
mod transport;

#[cfg(test)]
mod tests;

pub use config::{Homa, HomaConfig};
pub use host::HomaHost;
pub use stats::HomaStats;
pub use transport::{AeolusConfig, HomaAeolusTransport, HomaTransport};
