//! Applications: they submit messages to a node and receive those that arrive.

mod applications;
pub mod hub;

pub use applications::{
    Admission, Applications, Assembly, Failure, Outcome, Payload, Submission, Ticket,
};
pub use hub::{
    Completion, Hub, HubHandle, OpenError, Port, PortConfig, ReceivedMessage, SubmitError,
};
