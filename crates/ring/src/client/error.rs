//! Errors of attaching a port and of submitting a message.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Reason for which a port cannot be attached.
#[derive(Debug, Error)]
pub enum AttachError {
    /// No node listens.
    #[error("no node listens on {}: {source}", path.display())]
    NoNode {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The node refuses the application.
    #[error("the node refuses: {text}")]
    Refused {
        /// Number of the reason: [`Refusal::code`](crate::handshake::Refusal::code).
        code: u32,
        /// Expected and actual value.
        text: String,
    },
    /// The listener is not a node of this version, or does not respond.
    #[error("expected the answer of a node, got {0}")]
    NotANode(&'static str),
    /// The system has no more memory or descriptors.
    #[error("cannot set up the port: {0}")]
    System(io::Error),
}

impl From<io::Error> for AttachError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Reason for which a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The port's window is full: messages of its depth are in flight.
    #[error("{depth} messages are already in flight")]
    Full {
        /// The port's depth.
        depth: u32,
    },
    /// The send arena has no memory for it until earlier messages have completed or failed.
    #[error("the send arena has less than {size} bytes of free memory")]
    NoRoom {
        /// Bytes of the message.
        size: usize,
    },
    /// The send arena is too small for it.
    #[error("expected at most {max} bytes, the send arena's size, got {size}")]
    TooLong {
        /// Bytes of the message.
        size: usize,
        /// Bytes of the arena.
        max: u64,
    },
    /// The node has died or has disconnected the application.
    #[error(transparent)]
    NodeGone(#[from] NodeGone),
}

/// The node has died, or has disconnected the application. All messages in flight have been
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the node has ended, or has disconnected this application")]
pub struct NodeGone;
