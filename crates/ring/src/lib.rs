//! Applications of a node in other processes of its machine.
//!
//! An application attaches to the node's Unix socket and receives shared memory. It has a queue of
//! messages to send, a queue of completions, a queue of released messages, and an arena for each
//! direction. From then on neither side makes a system call while both are awake. [`Port`] is the
//! application's side. [`Clients`] is the node's, an
//! [`Applications`](rampmeter_runtime::Applications).
//!
//! The node does not trust its applications: their entries are copied out once and checked, and an
//! application that violates the protocol is disconnected. Applications trust their node.

mod acceptor;
mod arena;
mod attached;
mod client;
mod clock;
mod config;
mod entry;
pub mod handshake;
#[cfg(test)]
mod hostile;
mod layout;
mod listener;
mod map;
mod ring;
mod server;
mod users;

pub use attached::{IncomingMessage, OutgoingMessage};
pub use client::{
    AttachError, Completion, NodeGone, Options, Port, PortConfig, ReceivedMessage, SendBuffer,
    Submission, SubmitError,
};
pub use config::AcceptorConfig;
pub use entry::{Failure, Outcome};
pub use layout::{Layout, LayoutError};
pub use listener::{ListenError, Listener};
pub use rampmeter_runtime::Ticket;
pub use server::Clients;
pub use users::{Access, AllowedUsers, Limits, Services};
