//! Applications in the node's own process: threads with a [`Port`] each.
//!
//! All resources are bounded. A port has a depth, which limits the submitted messages without an
//! outcome. Its budget limits the bytes of messages that arrive or are not read yet. A stalled
//! application slows only the flows to it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rampmeter_types::{NodeId, TenantId, Time};
use rustix::event::{EventfdFlags, eventfd};
use thiserror::Error;

use super::{Admission, Applications, Assembly, Outcome, Submission, Ticket};

/// Limits of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Maximum number of messages in flight.
    pub depth: usize,
    /// Maximum bytes of messages that arrive or are not read yet.
    pub budget: u64,
}

impl Default for PortConfig {
    fn default() -> Self {
        Self { depth: 1_024, budget: 64 << 20 }
    }
}

/// Reason for which a port cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// Another port is open for the service.
    #[error("service {0} is taken")]
    Taken(u16),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// Reason for which a message was not accepted.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The port's window is full: messages of its depth are in flight. The error returns the bytes.
    #[error("{} messages are already in flight", depth)]
    Full {
        /// The port's depth.
        depth: usize,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
}

/// Events that a port reports.
#[derive(Debug)]
pub enum Completion {
    /// A message that it submitted has completed or failed.
    Finished {
        /// The message.
        ticket: Ticket,
        /// Outcome of the message.
        outcome: Outcome,
    },
    /// A message has arrived.
    Received(ReceivedMessage),
}

/// A message that has arrived. Its bytes count against the port's budget until it is dropped.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// Sending node.
    pub from: NodeId,
    buffer: MessageBuffer,
}

/// Bytes of one message, counted against a port's budget.
#[derive(Debug)]
pub struct MessageBuffer {
    bytes: Vec<u8>,
    used: Arc<AtomicU64>,
}

impl Assembly for MessageBuffer {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

impl Drop for MessageBuffer {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

impl ReceivedMessage {
    /// Returns the bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes
    }
}

/// Wakes a sleeping node; costs next to nothing if the node is awake.
#[derive(Debug)]
struct Waker {
    event: OwnedFd,
    is_armed: AtomicBool,
}

impl Waker {
    fn wake(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            // The event's counter cannot overflow with one write a sleep.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

/// Node's side of a port.
#[derive(Debug)]
struct NodePort {
    /// Number of the port. The hub never reuses it.
    app: u32,
    service: u16,
    config: PortConfig,
    submissions: Receiver<Submission<Vec<u8>>>,
    completions: Sender<Completion>,
    used: Arc<AtomicU64>,
    in_flight: Arc<AtomicU64>,
}

/// Services that have a port, and the number of the next port.
type Registry = Arc<Mutex<(BTreeSet<u16>, u32)>>;

/// Ports of one process: the [`Applications`] of a node in the same process.
#[derive(Debug)]
pub struct Hub {
    new_ports: Receiver<NodePort>,
    ports: Vec<NodePort>,
    /// Index of the port that is polled first, for fairness.
    first_polled: usize,
    /// Submission that was read while arming. It is returned next.
    peeked: Option<Submission<Vec<u8>>>,
    waker: Arc<Waker>,
}

/// Opens ports of a [`Hub`]; can be cloned and sent between threads.
#[derive(Clone, Debug)]
pub struct HubHandle {
    new_ports: Sender<NodePort>,
    registry: Registry,
    waker: Arc<Waker>,
}

/// Application's access to a node.
#[derive(Debug)]
pub struct Port {
    service: u16,
    depth: usize,
    next: u64,
    /// Present until the port is dropped.
    submissions: Option<SyncSender<Submission<Vec<u8>>>>,
    completions: Receiver<Completion>,
    in_flight: Arc<AtomicU64>,
    registry: Registry,
    waker: Arc<Waker>,
}

impl Hub {
    /// Creates a hub without ports.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn new() -> io::Result<(Self, HubHandle)> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let waker = Arc::new(Waker { event, is_armed: AtomicBool::new(false) });
        let (open, new_ports) = mpsc::channel();
        let registry = Registry::default();
        let handle = HubHandle { new_ports: open, registry, waker: Arc::clone(&waker) };
        Ok((Self { new_ports, ports: Vec::new(), first_polled: 0, peeked: None, waker }, handle))
    }

    fn take_opened(&mut self) {
        self.ports.extend(self.new_ports.try_iter());
    }

    /// Returns the port of a service: the latest, if an earlier one has just been dropped.
    fn side(&self, service: u16) -> Option<&NodePort> {
        self.ports.iter().rev().find(|side| side.service == service)
    }
}

impl HubHandle {
    /// Opens the port of a service.
    ///
    /// # Errors
    /// Another port is open for the service, or the node has stopped.
    pub fn open(&self, service: u16, config: PortConfig) -> Result<Port, OpenError> {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, next) = &mut *registry;
        if taken.contains(&service) {
            return Err(OpenError::Taken(service));
        }
        let (submissions, submitted) = mpsc::sync_channel(config.depth);
        let (completed, completions) = mpsc::channel();
        let (used, in_flight) = (Arc::default(), Arc::<AtomicU64>::default());
        let side = NodePort {
            app: *next,
            service,
            config,
            submissions: submitted,
            completions: completed,
            used,
            in_flight: Arc::clone(&in_flight),
        };
        self.new_ports.send(side).map_err(|_| OpenError::Stopped)?;
        taken.insert(service);
        *next += 1;
        self.waker.wake();
        Ok(Port {
            service,
            depth: config.depth,
            next: 0,
            submissions: Some(submissions),
            completions,
            in_flight,
            registry: Arc::clone(&self.registry),
            waker: Arc::clone(&self.waker),
        })
    }
}

impl Port {
    /// Submits a message; its outcome is reported once, by a [`Completion::Finished`] with this
    /// ticket.
    ///
    /// # Errors
    /// Too many messages are in flight, or the node has stopped.
    pub fn submit(
        &mut self,
        dst: NodeId,
        service: u16,
        bytes: Vec<u8>,
    ) -> Result<Ticket, SubmitError> {
        if self.in_flight.fetch_add(1, Ordering::AcqRel) >= self.depth as u64 {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return Err(SubmitError::Full { depth: self.depth, bytes });
        }
        let ticket = Ticket(self.next);
        let (deadline, tenant) = (Time::NEVER, TenantId::default());
        let submission =
            Submission { app: 0, ticket, dst, service, deadline, tenant, payload: bytes };
        let Some(submissions) = &self.submissions else { return Err(SubmitError::Stopped) };
        if let Err(error) = submissions.try_send(submission) {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            return Err(match error {
                TrySendError::Full(Submission { payload: bytes, .. }) => {
                    SubmitError::Full { depth: self.depth, bytes }
                }
                TrySendError::Disconnected(_) => SubmitError::Stopped,
            });
        }
        self.next += 1;
        self.waker.wake();
        Ok(ticket)
    }

    /// Returns the next completion; waits without a limit. `None` when the node has stopped.
    pub fn wait(&mut self) -> Option<Completion> {
        self.completions.recv().ok()
    }

    /// Returns the next completion, if there is one.
    pub fn try_next(&mut self) -> Option<Completion> {
        self.completions.try_recv().ok()
    }

    /// Returns the next completion; waits for at most `time`.
    pub fn wait_for(&mut self, time: Duration) -> Option<Completion> {
        self.completions.recv_timeout(time).ok()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.0.remove(&self.service);
        // The queue must be closed before the node wakes.
        self.submissions = None;
        self.waker.wake();
    }
}

impl Applications for Hub {
    type Payload = Vec<u8>;
    type Assembly = MessageBuffer;

    fn poll_submission(&mut self) -> Option<Submission<Vec<u8>>> {
        if let Some(submission) = self.peeked.take() {
            return Some(submission);
        }
        self.take_opened();
        let mut left = self.ports.len();
        while left > 0 {
            left -= 1;
            let idx = self.first_polled % self.ports.len();
            let side = &self.ports[idx];
            match side.submissions.try_recv() {
                Ok(submission) => {
                    self.first_polled = idx + 1;
                    return Some(Submission { app: side.app, ..submission });
                }
                Err(TryRecvError::Empty) => self.first_polled = idx + 1,
                // The port was dropped. Messages for it are refused from now on.
                Err(TryRecvError::Disconnected) => drop(self.ports.remove(idx)),
            }
        }
        None
    }

    fn finish(&mut self, app: u32, ticket: Ticket, outcome: Outcome) {
        if let Some(side) = self.ports.iter().find(|side| side.app == app) {
            side.in_flight.fetch_sub(1, Ordering::AcqRel);
            // A port that has been dropped meanwhile needs no outcome.
            let _ = side.completions.send(Completion::Finished { ticket, outcome });
        }
    }

    fn admission(&self, service: u16, size: u32) -> Admission {
        let Some(side) = self.side(service) else { return Admission::Absent };
        let (size, budget) = (u64::from(size), side.config.budget);
        if size > budget {
            Admission::Refuse
        } else if side.used.load(Ordering::Relaxed) + size > budget {
            Admission::Wait
        } else {
            Admission::Accept
        }
    }

    fn open(&mut self, service: u16, size: u32) -> MessageBuffer {
        let used = self.side(service).map(|side| Arc::clone(&side.used)).unwrap_or_default();
        used.fetch_add(size.into(), Ordering::Relaxed);
        MessageBuffer { bytes: vec![0; size as usize], used }
    }

    fn deliver(&mut self, from: NodeId, service: u16, message: MessageBuffer) {
        // A port that has been dropped meanwhile cannot use it, and its successor did not request
        // it.
        let side = self.side(service).filter(|side| Arc::ptr_eq(&side.used, &message.used));
        if let Some(side) = side {
            let received = ReceivedMessage { from, buffer: message };
            let _ = side.completions.send(Completion::Received(received));
        }
    }

    fn arm(&mut self) -> bool {
        // The event is drained before the flag is set, so that a wake after it is not lost.
        let _ = rustix::io::read(&self.waker.event, &mut [0u8; 8]);
        self.waker.is_armed.store(true, Ordering::SeqCst);
        if self.peeked.is_none() {
            self.peeked = self.poll_submission();
        }
        self.peeked.is_some()
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.waker.event.as_fd()]
    }
}
