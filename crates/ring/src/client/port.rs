//! Port: submits messages, and reports their outcomes and received messages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rampmeter_runtime::{BusyPoll, Ticket};
use rampmeter_types::{Bytes, LatencyBound, NodeId, Span, TenantId};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::thread::sched_yield;

use super::attach::{AttachGrant, attach};
use super::error::{AttachError, NodeGone, SubmitError};
use super::message::{ReceivedMessage, SendBuffer};
use super::options::{Options, PortConfig};
use super::shared::SharedMemory;
use crate::clock::{monotonic_ns, nanoseconds};
use crate::entry::{CompletionEntry, Failure, Outcome};

/// Events that a port reports.
#[derive(Debug)]
pub enum Completion {
    /// A message that it submitted has completed or failed. Its memory in the send arena is free.
    Finished {
        /// The message.
        ticket: Ticket,
        /// Outcome of the message.
        outcome: Outcome,
    },
    /// A message has arrived.
    Received(ReceivedMessage),
}

/// Result of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Number of the message.
    pub ticket: Ticket,
    /// Time until its outcome is reported, if the node's transport promises a bound: see
    /// [`Port::bound`].
    pub bound: Option<Duration>,
}

/// An application's access to a node, for one service. Threads may share it.
///
/// Messages can be submitted at any time, and each has one outcome, which is reported once.
/// Applications with a custom event loop watch [`Port::fd`]; the others [`wait`](Port::wait).
///
/// ```no_run
/// use rampmeter_types::NodeId;
/// use rampmeter_ring::{Completion, Port, PortConfig};
///
/// let port = Port::attach("/run/rampd.sock", 7, PortConfig::default())?;
/// port.submit(NodeId::new(3), 7, b"hello")?;
/// while let Some(completion) = port.wait(None)? {
///     match completion {
///         Completion::Finished { ticket, outcome } => println!("{ticket:?}: {outcome:?}"),
///         Completion::Received(message) => println!("{} bytes", message.bytes().len()),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Port {
    shared: Arc<SharedMemory>,
    socket: OwnedFd,
    /// Eventfd of the node; a write to it wakes the node.
    doorbell: OwnedFd,
    /// Readable while completions are pending that other threads should read.
    kick: OwnedFd,
    is_kicked: AtomicBool,
    /// Epoll descriptor of the socket and the kick.
    epoll: OwnedFd,
    is_node_gone: AtomicBool,
    /// Number of polls of the queue without a result.
    n_empty_polls: AtomicU32,
    /// Duration for which a waiting thread polls before it sleeps.
    busy: Mutex<BusyPoll>,
    promise: Option<LatencyBound>,
}

/// Maximum waiting time that is measured. Longer times do not change how long threads poll.
const SECOND_NS: u64 = 1_000_000_000;

/// Polls of the queue without a result per poll of the socket.
const POLLS: u32 = 256;

impl Port {
    /// Attaches to the node whose socket is at `path`, to receive the messages of `service`. On
    /// return the node accepts messages for it. A process may attach several times, once for each
    /// service.
    ///
    /// # Errors
    /// There is no node, or it refuses the application. The error has the reason.
    pub fn attach(
        path: impl AsRef<Path>,
        service: u16,
        config: PortConfig,
    ) -> Result<Self, AttachError> {
        let granted = attach(path.as_ref(), service, config)?;
        let AttachGrant { socket, doorbell, memory, layout, promise } = granted;
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let setup = || -> Result<_, Errno> {
            let (kick, watch) = (event()?, epoll::create(epoll::CreateFlags::CLOEXEC)?);
            epoll::add(&watch, &socket, EventData::new_u64(0), EventFlags::IN | EventFlags::RDHUP)?;
            epoll::add(&watch, &kick, EventData::new_u64(1), EventFlags::IN)?;
            Ok((kick, watch))
        };
        let (kick, epoll) = setup().map_err(io::Error::from)?;
        Ok(Self {
            shared: Arc::new(SharedMemory::new(memory, layout)),
            socket,
            doorbell,
            kick,
            is_kicked: AtomicBool::new(false),
            epoll,
            is_node_gone: AtomicBool::new(false),
            n_empty_polls: AtomicU32::new(0),
            busy: Mutex::new(BusyPoll::new(BusyPoll::BUDGET_MAX)),
            promise,
        })
    }

    /// Submits a copy of `bytes` to `service` at `dst`. Its outcome is reported once, by a
    /// [`Completion::Finished`] with this ticket.
    ///
    /// # Errors
    /// There is no memory at present, the message is too long, or the node has ended.
    pub fn submit(
        &self,
        dst: NodeId,
        service: u16,
        bytes: &[u8],
    ) -> Result<Submission, SubmitError> {
        self.submit_with(dst, service, bytes, Options::default())
    }

    /// Submits a message like [`Port::submit`], with options.
    ///
    /// # Errors
    /// As [`Port::submit`].
    pub fn submit_with(
        &self,
        dst: NodeId,
        service: u16,
        bytes: &[u8],
        options: Options,
    ) -> Result<Submission, SubmitError> {
        let mut buffer = self.alloc(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        self.submit_buffer(dst, service, buffer, options).map_err(|(error, _)| error)
    }

    /// Allocates memory for a message of `size` bytes in the send arena, to be filled and submitted
    /// without a copy. Its initial content is undefined: bytes of earlier messages remain in it.
    ///
    /// # Errors
    /// As [`Port::submit`].
    pub fn alloc(&self, size: usize) -> Result<SendBuffer, SubmitError> {
        SendBuffer::new(&self.shared, size)
    }

    /// Submits a message that was written into the arena.
    ///
    /// # Errors
    /// As [`Port::submit`], with the message.
    ///
    /// # Panics
    /// The buffer belongs to another port.
    pub fn submit_buffer(
        &self,
        dst: NodeId,
        service: u16,
        buffer: SendBuffer,
        options: Options,
    ) -> Result<Submission, (SubmitError, SendBuffer)> {
        assert!(buffer.is_of(&self.shared), "the buffer is this port's");
        let bound = self.bound(buffer.bytes().len(), options.tenant);
        let (ticket, must_wake) = buffer.submit(dst, service, options)?;
        if must_wake {
            // The eventfd counter cannot overflow in practice.
            let _ = rustix::io::write(&self.doorbell, &1u64.to_ne_bytes());
        }
        Ok(Submission { ticket, bound })
    }

    /// Returns the time until the outcome of a message of `size` bytes is determined. The bound
    /// starts when the node reads the message from the submission queue. A submission wakes a
    /// sleeping node. `None` if the transport promises no bound for messages of `tenant`.
    ///
    /// The node reports the outcome by then on its clock. The time until node and program are
    /// scheduled on a processor is not included.
    pub fn bound(&self, size: usize, tenant: u32) -> Option<Duration> {
        let bound = self.promise?.bound(Bytes::new(size as u64), TenantId::new(tenant))?;
        Some(Duration::from_nanos(bound.as_ps().div_ceil(1_000)))
    }

    /// Sets the maximum duration for which waiting threads poll before they sleep; they yield the
    /// processor meanwhile. Zero disables polling; the default is [`BusyPoll::BUDGET_MAX`]. The
    /// actual duration adapts to the intervals between completions.
    pub fn set_busy_poll(&self, most: Duration) {
        *self.busy() = BusyPoll::new(Span::from_ns(nanoseconds(most).min(SECOND_NS)));
    }

    fn busy(&self) -> MutexGuard<'_, BusyPoll> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next completion, if there is one.
    ///
    /// # Errors
    /// The node has ended, and all outcomes have been reported.
    pub fn try_next(&self) -> Result<Option<Completion>, NodeGone> {
        let next = self.next()?;
        if next.is_none() && self.n_empty_polls.fetch_add(1, Ordering::Relaxed) % POLLS == POLLS - 1
        {
            self.check_socket();
        }
        Ok(next)
    }

    /// Returns the next completion. Waits for at most `timeout`, or without a limit.
    ///
    /// # Errors
    /// The node has ended, and all outcomes have been reported.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<Completion>, NodeGone> {
        let since_ns = monotonic_ns();
        let until_ns = timeout.map(|t| since_ns.saturating_add(nanoseconds(t)));
        let next = self.wait_until(until_ns)?;
        self.on_waited(since_ns, next.is_some());
        Ok(next)
    }

    fn wait_until(&self, until_ns: Option<u64>) -> Result<Option<Completion>, NodeGone> {
        loop {
            if let Some(completion) = self.next_soon(until_ns)? {
                return Ok(Some(completion));
            }
            if self.arm() {
                continue;
            }
            let left_ns = until_ns.map(|until| until.saturating_sub(monotonic_ns()));
            if left_ns == Some(0) {
                return self.next();
            }
            self.sleep(left_ns);
        }
    }

    /// Records the end of a wait that began at `since_ns`, with a completion or without.
    fn on_waited(&self, since_ns: u64, is_served: bool) {
        let waited_ns = monotonic_ns().saturating_sub(since_ns).min(SECOND_NS);
        self.busy().on_event(Span::from_ns(if is_served { waited_ns } else { SECOND_NS }));
    }

    /// Waits like [`Port::wait`], but returns early, with nothing, if a signal arrives.
    ///
    /// # Errors
    /// As [`Port::wait`].
    pub fn wait_or_signal(&self, timeout: Duration) -> Result<Option<Completion>, NodeGone> {
        let since_ns = monotonic_ns();
        let until_ns = since_ns.saturating_add(nanoseconds(timeout));
        let mut next = self.next_soon(Some(until_ns))?;
        if next.is_none() {
            if !self.arm() {
                self.sleep(Some(until_ns.saturating_sub(monotonic_ns())));
            }
            next = self.next()?;
        }
        self.on_waited(since_ns, next.is_some());
        Ok(next)
    }

    /// Returns a descriptor that becomes readable at the next completion, or when the node has
    /// ended, after [`Port::arm`] has returned false.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Requests that the node makes [`Port::fd`] readable at the next completion. Returns true if a
    /// completion may be pending or the node has ended: call [`Port::try_next`] until it returns
    /// nothing, then arm again. Before the next call the descriptor may be readable without a
    /// completion.
    pub fn arm(&self) -> bool {
        if self.is_kicked.swap(false, Ordering::Acquire) {
            let _ = rustix::io::read(&self.kick, &mut [0u8; 8]);
        }
        match recv(&self.socket, &mut [0u8; 8], RecvFlags::DONTWAIT) {
            Ok((1, _)) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.is_node_gone.store(true, Ordering::SeqCst);
                return true;
            }
        }
        if !self.shared.arm() {
            return false;
        }
        // The wake-up that has just been read may have been meant for another sleeping thread. The
        // order matters: the thread that clears the flag sees all earlier writes.
        let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
        self.is_kicked.store(true, Ordering::Release);
        true
    }

    /// Returns the number of messages that have been submitted and not been reported.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight()
    }

    /// Polls for the next completion until the busy-poll budget or `until_ns` ends.
    fn next_soon(&self, until_ns: Option<u64>) -> Result<Option<Completion>, NodeGone> {
        let next = self.next()?;
        let budget_ns = self.busy().budget().as_ps() / 1_000;
        if next.is_some() || budget_ns == 0 {
            return Ok(next);
        }
        let mut now_ns = monotonic_ns();
        let ends_ns = now_ns.saturating_add(budget_ns).min(until_ns.unwrap_or(u64::MAX));
        while now_ns < ends_ns {
            sched_yield();
            if let Some(completion) = self.next()? {
                return Ok(Some(completion));
            }
            now_ns = monotonic_ns();
        }
        Ok(None)
    }

    /// Returns the next completion, or the next message that failed because the node has ended.
    fn next(&self) -> Result<Option<Completion>, NodeGone> {
        // Read first: completions that the node wrote before it ended are visible then.
        let is_gone = self.is_node_gone.load(Ordering::SeqCst);
        match self.shared.pop() {
            Ok(None) if is_gone => self.fail_next().map(Some),
            Ok(None) => Ok(None),
            Ok(Some(CompletionEntry::Finished { ticket, outcome })) => {
                Ok(Some(Completion::Finished { ticket: Ticket(ticket), outcome }))
            }
            Ok(Some(CompletionEntry::Received { offset, size, from, uid })) => {
                match ReceivedMessage::new(&self.shared, NodeId::new(from), uid, offset, size) {
                    Some(received) => Ok(Some(Completion::Received(received))),
                    None => self.part(),
                }
            }
            Err(_) => self.part(),
        }
    }

    /// Treats the node as ended, because it has written an invalid entry.
    fn part(&self) -> Result<Option<Completion>, NodeGone> {
        self.is_node_gone.store(true, Ordering::SeqCst);
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.fail_next().map(Some)
    }

    /// Reports the next message that is lost with the node.
    fn fail_next(&self) -> Result<Completion, NodeGone> {
        let ticket = self.shared.fail_next().ok_or(NodeGone)?;
        Ok(Completion::Finished { ticket, outcome: Outcome::Failed(Failure::NodeGone) })
    }

    /// Checks the socket for the end of the node.
    fn check_socket(&self) {
        let mut polled = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        if poll(&mut polled, Some(&Timespec::default())).is_ok_and(|n| n > 0) {
            self.is_node_gone.store(true, Ordering::SeqCst);
        }
    }

    /// Returns the memory, for tests that misuse it.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> (&crate::map::Memory, crate::layout::Layout) {
        self.shared.memory()
    }

    #[cfg(test)]
    pub(crate) fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn sleep(&self, left_ns: Option<u64>) {
        let timeout = left_ns.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let flags = PollFlags::IN;
        let mut polled = [PollFd::new(&self.socket, flags), PollFd::new(&self.kick, flags)];
        // A signal counts as a wake-up: the caller polls again.
        let _ = poll(&mut polled, timeout.as_ref());
    }
}
