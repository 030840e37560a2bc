//! Application's side of the rings.

mod attach;
mod error;
mod message;
mod options;
mod port;
mod shared;

pub use error::{AttachError, NodeGone, SubmitError};
pub use message::{ReceivedMessage, SendBuffer};
pub use options::{Options, PortConfig};
pub use port::{Completion, Port, Submission};
