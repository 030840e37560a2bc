//! An attached application, on the node's side.
//!
//! Entries that an application writes are read once and checked. After the first invalid entry the
//! node shuts down the application's socket, and the acceptor removes the application as if it had
//! died. The transport finishes its messages in flight and their outcomes are dropped. Its memory
//! is freed with the last of them.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rampmeter_runtime::app::{Admission, Outcome};
use rampmeter_runtime::{Assembly, Clock, Payload, Submission, Ticket};
use rampmeter_types::collections::IdMap;
use rampmeter_types::{LatencyBound, NodeId, Span, TenantId, Time};
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, send, sendmsg, shutdown,
};

use crate::arena::{AllocationFit, Arena, Extent};
use crate::clock::monotonic_ns;
use crate::entry::{CompletionEntry, SubmissionEntry};
use crate::handshake::{AttachReply, Grant};
use crate::layout::{CQ_WORDS, Layout, RQ_WORDS, SQ_WORDS};
use crate::map::Memory;
use crate::ring::{Consumer, Producer};

/// An attached application.
#[derive(Debug)]
pub(crate) struct Client {
    /// Unique number of the application, which is never reused.
    app: u32,
    service: u16,
    /// User of the program.
    uid: u32,
    memory: Arc<Memory>,
    layout: Layout,
    submissions: Consumer<SQ_WORDS>,
    completions: Producer<CQ_WORDS>,
    /// Messages that it submitted and that have no outcome yet.
    in_flight: u32,
    receive_side: Arc<Mutex<ReceiveSide>>,
    /// Descriptor that the application writes to, to wake the node.
    doorbell: OwnedFd,
    /// Socket that the node writes to, to wake the application.
    socket: Arc<OwnedFd>,
    is_broken: bool,
}

/// Parts of a client other than its memory.
#[derive(Debug)]
pub(crate) struct ClientParts {
    pub(crate) app: u32,
    pub(crate) service: u16,
    pub(crate) uid: u32,
    pub(crate) doorbell: OwnedFd,
    pub(crate) socket: Arc<OwnedFd>,
}

impl Client {
    pub(crate) fn new(parts: ClientParts, memory: Arc<Memory>, layout: Layout) -> Self {
        let ClientParts { app, service, uid, doorbell, socket } = parts;
        let intake = ReceiveSide {
            arena: Arena::new(layout.receive.len),
            held: IdMap::default(),
            releases: Consumer::new(Arc::clone(&memory), layout.rq),
            n_messages: 0,
            slots: layout.slots,
            is_broken: false,
        };
        Self {
            app,
            service,
            uid,
            submissions: Consumer::new(Arc::clone(&memory), layout.sq),
            completions: Producer::new(Arc::clone(&memory), layout.cq),
            memory,
            layout,
            in_flight: 0,
            receive_side: Arc::new(Mutex::new(intake)),
            doorbell,
            socket,
            is_broken: false,
        }
    }

    pub(crate) fn app(&self) -> u32 {
        self.app
    }

    pub(crate) fn service(&self) -> u16 {
        self.service
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    pub(crate) fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Returns the number of messages that it submitted and that have no outcome yet.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of messages that arrive for it or that it holds.
    pub(crate) fn n_received(&self) -> u32 {
        lock(&self.receive_side).n_messages
    }

    /// Returns true if it has violated the protocol of its rings.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Sends the application its memory and the latency bound of its messages.
    pub(crate) fn admit(&self, memory: &OwnedFd, promise: Option<LatencyBound>) -> io::Result<()> {
        let answer = AttachReply::Granted(Grant::new(&self.layout, promise)).encode();
        let fds = [memory.as_fd(), self.doorbell.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut ancillary, flags)?;
        Ok(())
    }

    /// Disconnects an application that has violated the protocol of its rings.
    fn disconnect(&self, cause: &'static str) {
        tracing::warn!(
            code = "ring-violation",
            service = self.service,
            cause,
            "disconnected an application that violated the protocol of its rings"
        );
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    fn report_violation(&mut self, cause: &'static str) {
        if !self.is_broken {
            self.is_broken = true;
            self.disconnect(cause);
        }
    }

    /// Returns the next message, if there is one and its fields are valid.
    pub(crate) fn poll_submission(&mut self, clock: &Clock) -> Option<Submission<OutgoingMessage>> {
        if self.is_broken {
            return None;
        }
        let Ok(next) = self.submissions.pop() else {
            self.report_violation("submissions");
            return None;
        };
        let submit = SubmissionEntry::decode(next?);
        let located = self.layout.send.locate(submit.offset, submit.size.into());
        // Tenant numbers have 16 bits in packets.
        let is_good = self.in_flight < self.layout.depth && submit.tenant <= u16::MAX.into();
        let Some(offset) = located.filter(|_| is_good) else {
            self.report_violation("submission");
            return None;
        };
        self.in_flight += 1;
        let (memory, size) = (Arc::clone(&self.memory), submit.size as usize);
        Some(Submission {
            app: self.app,
            ticket: Ticket(submit.ticket),
            dst: NodeId::new(submit.dst),
            service: submit.service,
            deadline: deadline(submit.deadline_ns, clock),
            tenant: TenantId::new(submit.tenant),
            payload: OutgoingMessage { memory, offset, size },
        })
    }

    /// Requests a doorbell write at the application's next submission.
    pub(crate) fn arm(&self) {
        self.submissions.arm();
    }

    /// Undoes [`Client::arm`].
    pub(crate) fn disarm(&self) {
        self.submissions.disarm();
    }

    /// Returns true if [`Client::poll_submission`] has an entry to check.
    pub(crate) fn has_submission(&mut self) -> bool {
        !self.is_broken && self.submissions.has_next() != Ok(false)
    }

    /// Reports the outcome of a message to the application that submitted it.
    pub(crate) fn finish(&mut self, ticket: Ticket, outcome: Outcome) {
        self.in_flight -= 1;
        self.complete(CompletionEntry::Finished { ticket: ticket.0, outcome });
    }

    /// Returns true if the application has memory for a message of `size` bytes.
    pub(crate) fn admission(&self, size: u32) -> Admission {
        let mut intake = lock(&self.receive_side);
        let was_broken = intake.is_broken;
        let admission = intake.admission(size);
        if intake.is_broken && !was_broken {
            self.disconnect("releases");
        }
        admission
    }

    /// Allocates memory for a message of `size` bytes, which has just been accepted.
    pub(crate) fn open(&self, size: u32) -> IncomingMessage {
        let mut intake = lock(&self.receive_side);
        let extent = intake.arena.alloc(size.into());
        let extent = extent.expect("room for a message that has just been accepted");
        intake.n_messages += 1;
        let located = self.layout.receive.locate(extent.offset(), size.into());
        IncomingMessage {
            memory: Arc::clone(&self.memory),
            receive_side: Arc::clone(&self.receive_side),
            offset: located.expect("the arena is within its part of the memory"),
            extent: Some(extent),
            size: size as usize,
        }
    }

    /// Returns true if the message is in this application's memory.
    pub(crate) fn has_opened(&self, message: &IncomingMessage) -> bool {
        Arc::ptr_eq(&self.memory, &message.memory)
    }

    /// Delivers a complete message to the application. `uid` is the user of the sending program if
    /// the node has it. The application holds the memory until it releases it.
    pub(crate) fn deliver(&mut self, from: NodeId, uid: Option<u32>, mut message: IncomingMessage) {
        let Some(extent) = message.extent.take() else { return };
        let (offset, size) = (extent.offset(), message.size as u32);
        lock(&self.receive_side).held.insert(offset, extent);
        self.complete(CompletionEntry::Received { offset, size, from: from.get(), uid });
    }

    /// Writes a completion, and wakes the application if it sleeps.
    fn complete(&mut self, completion: CompletionEntry) {
        if self.is_broken {
            return;
        }
        if self.completions.push(completion.encode()).is_err() {
            self.report_violation("completions");
        } else if self.completions.take_wake_request() {
            self.wake();
        }
    }

    /// Wakes the application, or notifies it that its memory is sealed.
    pub(crate) fn wake(&self) {
        // A full socket contains a wake-up already. If the socket is closed, the acceptor notices.
        let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Receive side of an application.
#[derive(Debug)]
struct ReceiveSide {
    arena: Arena,
    /// Extents of delivered messages, by their offset in the arena.
    held: IdMap<u64, Extent>,
    releases: Consumer<RQ_WORDS>,
    /// Number of messages that arrive or are held.
    n_messages: u32,
    slots: u32,
    /// True if the application released memory that it does not hold.
    is_broken: bool,
}

/// Message that an application sends. Keeps its memory allocated.
#[derive(Debug)]
pub struct OutgoingMessage {
    memory: Arc<Memory>,
    offset: usize,
    size: usize,
}

/// Message that arrives for an application. Keeps its memory allocated.
#[derive(Debug)]
pub struct IncomingMessage {
    memory: Arc<Memory>,
    receive_side: Arc<Mutex<ReceiveSide>>,
    /// `None` once the application holds it.
    extent: Option<Extent>,
    offset: usize,
    size: usize,
}

fn lock(intake: &Mutex<ReceiveSide>) -> MutexGuard<'_, ReceiveSide> {
    intake.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Payload for OutgoingMessage {
    fn size(&self) -> usize {
        self.size
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        let is_within = offset.checked_add(out.len()).is_some_and(|end| end <= self.size);
        assert!(is_within, "{} bytes at {offset} are not within {}", out.len(), self.size);
        self.memory.copy_out(self.offset + offset, out);
    }
}

impl Assembly for IncomingMessage {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let is_within = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.size);
        assert!(is_within, "{} bytes at {offset} are not within {}", bytes.len(), self.size);
        self.memory.copy_in(self.offset + offset, bytes);
    }
}

impl Drop for IncomingMessage {
    fn drop(&mut self) {
        if let Some(extent) = self.extent.take() {
            let mut intake = lock(&self.receive_side);
            intake.arena.free(extent);
            intake.n_messages -= 1;
        }
    }
}

impl ReceiveSide {
    /// Frees the memory that the application has released.
    fn take_released(&mut self) {
        while !self.is_broken {
            let Ok(released) = self.releases.pop() else { break };
            let Some([offset]) = released else { return };
            let Some(extent) = self.held.remove(&offset) else { break };
            self.arena.free(extent);
            self.n_messages -= 1;
        }
        self.is_broken = true;
    }

    fn admission(&mut self, size: u32) -> Admission {
        self.take_released();
        match self.arena.fit(size.into()) {
            _ if self.is_broken => Admission::Refuse,
            AllocationFit::Never => Admission::Refuse,
            AllocationFit::Now if self.n_messages < self.slots => Admission::Accept,
            AllocationFit::Now | AllocationFit::Later => Admission::Wait,
        }
    }
}

/// Returns an application's deadline on the node's clock.
fn deadline(deadline_ns: u64, clock: &Clock) -> Time {
    if deadline_ns == u64::MAX {
        return Time::NEVER;
    }
    let left = deadline_ns.saturating_sub(monotonic_ns());
    clock.now().saturating_add(Span::from_ps(left.saturating_mul(1_000)))
}
