//! Why a port cannot be had, and why a message is not taken.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a port cannot be had.
#[derive(Debug, Error)]
pub enum AttachError {
    /// No node listens.
    #[error("no node listens on {}: {source}", path.display())]
    NoNode {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The node turns the application away.
    #[error("the node refuses: {text}")]
    Refused {
        /// The number of the reason: [`Refusal::code`](crate::handshake::Refusal::code).
        code: u32,
        /// What was expected, and what came.
        text: String,
    },
    /// What listens is no node of this version, or does not answer.
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

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// As many messages as the port's depth are under way.
    #[error("{depth} messages are under way already")]
    Full {
        /// The port's depth.
        depth: u32,
    },
    /// The send arena has no room for it until others are over.
    #[error("the send arena has no room for {size} bytes at present")]
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
    /// The node has died or has sent the application away.
    #[error(transparent)]
    NodeGone(#[from] NodeGone),
}

/// The node has died, or has sent the application away. Everything that was under way has been
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the node is gone")]
pub struct NodeGone;
