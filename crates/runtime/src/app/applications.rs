//! Applications of a node: messages that they submit and receive.

use std::os::fd::BorrowedFd;

use rampmeter_types::{LatencyBound, NodeId, TenantId, Time};

/// Number of a message at the application that submitted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Message to send.
#[derive(Debug)]
pub struct Submission<P> {
    /// Sending application, as its [`Applications`] numbers them.
    pub app: u32,
    /// Number of the message at the application.
    pub ticket: Ticket,
    /// Receiving node.
    pub dst: NodeId,
    /// Receiving service.
    pub service: u16,
    /// Deadline on the node's clock; [`Time::NEVER`] if there is none.
    pub deadline: Time,
    /// Tenant of the message.
    pub tenant: TenantId,
    /// Bytes of the message: at least one.
    pub payload: P,
}

/// Bytes of a message to send.
pub trait Payload {
    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// Copies the bytes from `offset` on to all of `out`; there are that many.
    fn copy_to(&self, offset: usize, out: &mut [u8]);
}

/// A message that is arriving. Its memory is freed when it is dropped.
pub trait Assembly {
    /// Writes bytes at an offset, within the size that the message was opened with.
    fn write(&mut self, offset: usize, bytes: &[u8]);
}

/// Outcome of a submitted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiving node has all of it and has delivered it to the application.
    Completed,
    /// The message may or may not have been delivered.
    Failed(Failure),
}

/// Reason for which a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The receiver does not respond.
    Unreachable,
    /// The receiver was restarted after bytes of the message had been sent: its earlier incarnation
    /// may have delivered it. Messages with a bound fail so at any stage.
    PeerRestarted,
    /// No application there receives messages of this service or size.
    Refused,
    /// No node has this number.
    UnknownPeer,
    /// The message is empty or longer than the maximum.
    BadSize,
    /// This node is being stopped.
    Stopping,
    /// This node has died, or has disconnected the application. Its clients report it.
    NodeGone,
    /// The transport, which promises a bound, does not accept it now. None of it was sent.
    Rejected,
    /// The bytes that arrived differ from those sent, and were dropped. A memory or a network card
    /// is faulty, or the program has changed the message while it was being sent.
    Corrupt,
    /// The receiver could not reassemble the message: its `network.mtu` or transport differs.
    Mismatch,
}

impl Failure {
    /// Returns the number in completion queues and in C: 1 or more.
    pub const fn code(self) -> u32 {
        match self {
            Self::Unreachable => 1,
            Self::PeerRestarted => 2,
            Self::Refused => 3,
            Self::UnknownPeer => 4,
            Self::BadSize => 5,
            Self::Stopping => 6,
            Self::NodeGone => 7,
            Self::Rejected => 8,
            Self::Corrupt => 9,
            Self::Mismatch => 10,
        }
    }

    /// Returns the name in lower case, with hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::PeerRestarted => "peer-restarted",
            Self::Refused => "refused",
            Self::UnknownPeer => "unknown-peer",
            Self::BadSize => "bad-size",
            Self::Stopping => "stopping",
            Self::NodeGone => "node-gone",
            Self::Rejected => "rejected",
            Self::Corrupt => "corrupt",
            Self::Mismatch => "mismatch",
        }
    }

    /// Returns the failure with this number.
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Unreachable,
            2 => Self::PeerRestarted,
            3 => Self::Refused,
            4 => Self::UnknownPeer,
            5 => Self::BadSize,
            6 => Self::Stopping,
            7 => Self::NodeGone,
            8 => Self::Rejected,
            9 => Self::Corrupt,
            10 => Self::Mismatch,
            _ => return None,
        })
    }
}

/// Decision of an application about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The message fits now.
    Accept,
    /// The message fits after the application has read messages that have arrived.
    Wait,
    /// The service has no application. Its program may still be starting, so messages are queued
    /// for a while.
    Absent,
    /// The application never has enough memory for it.
    Refuse,
}

/// All applications of a node.
pub trait Applications {
    /// Message to send.
    type Payload: Payload;
    /// Message that arrives.
    type Assembly: Assembly;

    /// Reports the bound that the transport promises. Called once, before anything else.
    fn on_promise(&mut self, _promise: LatencyBound) {}

    /// Returns the next message to send.
    fn poll_submission(&mut self) -> Option<Submission<Self::Payload>>;

    /// Returns the time of the next submission, if it is known in advance: for loads with a
    /// timetable. Other applications wake the node at a submission.
    fn next_submission(&self) -> Time {
        Time::NEVER
    }

    /// Reports the outcome of a message that `app` submitted.
    fn finish(&mut self, app: u32, ticket: Ticket, outcome: Outcome);

    /// Returns true if a message could be opened.
    fn admission(&self, service: u16, size: u32) -> Admission;

    /// Allocates memory for a message whose first bytes have arrived, after
    /// [`Applications::admission`] has accepted it.
    fn open(&mut self, service: u16, size: u32) -> Self::Assembly;

    /// Delivers a complete message.
    fn deliver(&mut self, from: NodeId, service: u16, message: Self::Assembly);

    /// Delivers a complete message that the application `app` of this node, `own`, has submitted.
    fn deliver_local(&mut self, own: NodeId, app: u32, service: u16, message: Self::Assembly) {
        let _ = app;
        self.deliver(own, service, message);
    }

    /// Calls `each` for every service here. Arguments are its number, the messages that its program
    /// sends, and the messages for it that arrive or are not read yet.
    fn services(&self, _each: &mut dyn FnMut(u16, u32, u32)) {}

    /// Prepares for the node's sleep: from now on a submission must wake it. Returns true if a
    /// submission is pending.
    fn arm(&mut self) -> bool;

    /// Returns descriptors that become readable at a submission after [`Applications::arm`].
    fn wakers(&self) -> Vec<BorrowedFd<'_>>;
}

impl Payload for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self[offset..offset + out.len()]);
    }
}
