//! Host driver: runs an [`Endpoint`](rampmeter_types::Endpoint) between real machines.
//!
//! A [`Node`] joins four parts and is independent of protocols:
//!
//! * the endpoint;
//! * a [`Datapath`] that carries packets: [`datapath::udp`] by default, `datapath::xdp` with the
//!   feature `xdp`, [`datapath::mem`] for tests;
//! * the [`Applications`] that submit and receive messages: [`app::Hub`] within a process;
//! * the [`peer`] table.
//!
//! The wire format around the protocol's own header is in [`wire`].
//!
//! As for protocols, time is an argument: [`Node::poll`] does all work that is due at an instant
//! and returns the time of the next call. [`drive()`] is the loop that calls it on a real clock.
//! Tests call it on a simulated one, so that crashes, restarts and losses can be replayed from a
//! seed.

pub mod agreement;
pub mod app;
mod busy;
pub mod clock;
pub mod datapath;
pub mod digest;
mod drive;
mod inbox;
mod liveness;
mod mtu;
mod node;
mod outbox;
mod pacer;
pub mod peer;
mod send_queues;
mod stats;

pub use agreement::{Differences, Setting, SettingDigests};
pub use app::{Applications, Assembly, Outcome, Payload, Submission, Ticket};
pub use busy::BusyPoll;
pub use clock::{Clock, ClockError, ClockSource};
pub use datapath::Datapath;
pub use datapath::secure::{PrivateKey, PublicKey, SealConfig, SecureDatapath, Security};
pub use drive::{Signals, WaitMode, drive};
pub use liveness::{RailState, RailView};
pub use node::{Node, NodeConfig};
pub use peer::PeerView;
pub use rampmeter_types::envelope as wire;
pub use stats::{MessageCounts, NodeStats};
