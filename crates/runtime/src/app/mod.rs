//! Applications: what submits messages to a node and takes those that arrive.

pub mod hub;

use std::os::fd::BorrowedFd;

use rampmeter_core::{NodeId, Promise, TenantId, Time};

pub use hub::{Completion, Hub, HubHandle, OpenError, Port, PortConfig, Received, SubmitError};

/// The application's number for a message that it submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A message to send.
#[derive(Debug)]
pub struct Submission<P> {
    /// Which application sends it, as its [`Applications`] numbers them.
    pub app: u32,
    /// The application's number for it.
    pub ticket: Ticket,
    /// The receiving node.
    pub dst: NodeId,
    /// The receiving application.
    pub service: u16,
    /// When it is needed, on the node's clock; [`Time::NEVER`] if nobody says.
    pub deadline: Time,
    /// Whom it belongs to.
    pub tenant: TenantId,
    /// Its bytes: at least one.
    pub payload: P,
}

/// The bytes of a message to send.
pub trait Payload {
    /// How many bytes there are.
    fn size(&self) -> usize;

    /// Copies the bytes from `offset` on to all of `out`; there are that many.
    fn copy_to(&self, offset: usize, out: &mut [u8]);
}

/// A message that is arriving, in room that it gives back when it is dropped.
pub trait Assembly {
    /// Puts bytes into their place, which is within the size that it was opened with.
    fn write(&mut self, offset: usize, bytes: &[u8]);
}

/// What became of a message that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiving node has all of it and has handed it to the application.
    Completed,
    /// It may have been delivered or not.
    Failed(Failure),
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The receiver does not answer.
    Unreachable,
    /// The receiver was started again after bytes of the message had left: its earlier life may have
    /// delivered it. Messages with a bound end so wherever they were.
    PeerRestarted,
    /// No application takes messages of this service or size there.
    Refused,
    /// No node has this number.
    UnknownPeer,
    /// The message is empty or longer than nodes take.
    BadSize,
    /// This node is being stopped.
    Stopping,
    /// The transport, which promises a bound, does not take it now. Nothing of it was sent.
    Rejected,
    /// Other bytes have arrived than were sent, and were dropped: a memory or a network card is at
    /// fault, or the program has changed the message while it was being sent.
    Corrupt,
    /// The receiver could not put the message together: it has another `network.mtu` or transport.
    Mismatch,
}

/// Whether an application has room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Accept,
    /// There will be when the application takes what has arrived.
    Wait,
    /// There is no such application. Its program may still be starting, so messages wait a little.
    Absent,
    /// The application will never have that much room.
    Refuse,
}

/// All applications of a node.
pub trait Applications {
    /// Bytes on their way out.
    type Payload: Payload;
    /// Bytes on their way in.
    type Assembly: Assembly;

    /// The transport promises a bound. Called once, before anything else.
    fn on_promise(&mut self, _promise: Promise) {}

    /// The next message to send.
    fn poll_submission(&mut self) -> Option<Submission<Self::Payload>>;

    /// When there will be a message to send, if that is known beforehand: for loads that keep to a
    /// timetable. Others wake the node when they have one.
    fn next_submission(&self) -> Time {
        Time::NEVER
    }

    /// A message that `app` submitted is over.
    fn finish(&mut self, app: u32, ticket: Ticket, outcome: Outcome);

    /// Whether a message could be opened.
    fn admission(&self, service: u16, size: u32) -> Admission;

    /// Makes room for a message whose first bytes have arrived, where [`Applications::admission`]
    /// has just accepted it.
    fn open(&mut self, service: u16, size: u32) -> Self::Assembly;

    /// A message is complete.
    fn deliver(&mut self, from: NodeId, service: u16, message: Self::Assembly);

    /// A message that the application `app` of this node, `own`, has submitted is complete.
    fn deliver_local(&mut self, own: NodeId, app: u32, service: u16, message: Self::Assembly) {
        let _ = app;
        self.deliver(own, service, message);
    }

    /// Tells `each` of every service here: its number, messages that its program sends, and messages
    /// for it that are arriving or have not been taken.
    fn services(&self, _each: &mut dyn FnMut(u16, u32, u32)) {}

    /// The node is about to sleep: from now on a submission must wake it. True if there is one
    /// already.
    fn arm(&mut self) -> bool;

    /// What becomes readable when there is a submission after [`Applications::arm`].
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
