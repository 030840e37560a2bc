//! The node's side: all applications that are attached, as the node's thread sees them.
//!
//! What an application writes is read once, checked, and used only as far as it makes sense. The
//! first thing that does not ends that application: its socket is shut down, so that the door lets
//! it go as if it had died. Its messages under way are finished by the transport and their outcomes
//! dropped, and its memory goes with the last of them.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rampmeter_core::collections::IdMap;
use rampmeter_core::{NodeId, Span, TenantId, Time};
use rampmeter_runtime::app::{self, Admission};
use rampmeter_runtime::{Applications, Assembly, Clock, Payload, Submission, Ticket};
use rustix::event::{Timespec, epoll};
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, send, sendmsg, shutdown,
};

use crate::arena::{Arena, Extent, Fit};
use crate::door::{self, DoorConfig, DoorError, Event, Opening};
use crate::entry::{Complete, Submit};
use crate::layout::{CQ_WORDS, Layout, RQ_WORDS, SQ_WORDS};
use crate::map::Memory;
use crate::ring::{Consumer, Producer};

/// The applications that are attached to a node: give it to [`Node::new`](rampmeter_runtime::Node).
///
/// When it is dropped, the socket goes, and applications notice that their node has.
#[derive(Debug)]
pub struct Clients {
    clients: Vec<Client>,
    /// Client that is asked first, for fairness.
    turn: usize,
    is_armed: bool,
    events: Receiver<Event>,
    /// Readable when a doorbell has rung.
    bells: Arc<OwnedFd>,
    clock: Clock,
    door: Option<JoinHandle<()>>,
    stop: Arc<OwnedFd>,
}

/// One application.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its number, which no other ever has.
    pub(crate) app: u32,
    service: u16,
    memory: Arc<Memory>,
    layout: Layout,
    submissions: Consumer<SQ_WORDS>,
    completions: Producer<CQ_WORDS>,
    /// Messages that it submitted and that are not over.
    in_flight: u32,
    intake: Arc<Mutex<Intake>>,
    /// What it rings to wake the node.
    doorbell: OwnedFd,
    /// What the node writes to, to wake it.
    socket: Arc<OwnedFd>,
    is_broken: bool,
}

/// What arrives for an application.
#[derive(Debug)]
struct Intake {
    arena: Arena,
    /// Messages that it has been given, by their offset in the arena.
    held: IdMap<u64, Extent>,
    releases: Consumer<RQ_WORDS>,
    /// Messages that arrive or are held.
    n: u32,
    slots: u32,
    /// Whether it released what it does not hold.
    is_broken: bool,
}

/// A message that an application sends. Keeps its memory.
#[derive(Debug)]
pub struct Outgoing {
    memory: Arc<Memory>,
    offset: usize,
    size: usize,
}

/// A message that arrives for an application. Keeps its memory.
#[derive(Debug)]
pub struct Incoming {
    memory: Arc<Memory>,
    intake: Arc<Mutex<Intake>>,
    /// `None` once the application holds it.
    extent: Option<Extent>,
    offset: usize,
    size: usize,
}

fn lock(intake: &Mutex<Intake>) -> MutexGuard<'_, Intake> {
    intake.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Payload for Outgoing {
    fn size(&self) -> usize {
        self.size
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        let is_within = offset.checked_add(out.len()).is_some_and(|end| end <= self.size);
        assert!(is_within, "{} bytes at {offset} are not within {}", out.len(), self.size);
        self.memory.copy_out(self.offset + offset, out);
    }
}

impl Assembly for Incoming {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let is_within = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.size);
        assert!(is_within, "{} bytes at {offset} are not within {}", bytes.len(), self.size);
        self.memory.copy_in(self.offset + offset, bytes);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(extent) = self.extent.take() {
            let mut intake = lock(&self.intake);
            intake.arena.free(extent);
            intake.n -= 1;
        }
    }
}

impl Intake {
    /// Takes back what the application has released.
    fn take_released(&mut self) {
        while !self.is_broken {
            let Ok(released) = self.releases.pop() else { break };
            let Some([offset]) = released else { return };
            let Some(extent) = self.held.remove(&offset) else { break };
            self.arena.free(extent);
            self.n -= 1;
        }
        self.is_broken = true;
    }

    fn admission(&mut self, size: u32) -> Admission {
        self.take_released();
        match self.arena.fit(size.into()) {
            _ if self.is_broken => Admission::Refuse,
            Fit::Never => Admission::Refuse,
            Fit::Now if self.n < self.slots => Admission::Accept,
            Fit::Now | Fit::Later => Admission::Wait,
        }
    }
}

/// What a client is made of, beside its memory.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) app: u32,
    pub(crate) service: u16,
    pub(crate) doorbell: OwnedFd,
    pub(crate) socket: Arc<OwnedFd>,
}

impl Client {
    pub(crate) fn new(parts: Parts, memory: Arc<Memory>, layout: Layout) -> Self {
        let Parts { app, service, doorbell, socket } = parts;
        let intake = Intake {
            arena: Arena::new(layout.receive.len),
            held: IdMap::default(),
            releases: Consumer::new(Arc::clone(&memory), layout.rq),
            n: 0,
            slots: layout.slots,
            is_broken: false,
        };
        Self {
            app,
            service,
            submissions: Consumer::new(Arc::clone(&memory), layout.sq),
            completions: Producer::new(Arc::clone(&memory), layout.cq),
            memory,
            layout,
            in_flight: 0,
            intake: Arc::new(Mutex::new(intake)),
            doorbell,
            socket,
            is_broken: false,
        }
    }

    /// Hands the application its memory.
    fn admit(&self, answer: &[u8], memory: &OwnedFd) -> io::Result<()> {
        let fds = [memory.as_fd(), self.doorbell.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &[IoSlice::new(answer)], &mut ancillary, flags)?;
        Ok(())
    }

    /// Parts with an application that has broken the rules.
    fn send_away(&self, what: &'static str) {
        tracing::warn!(service = self.service, what, "an application broke the rules of its rings");
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    fn broken(&mut self, what: &'static str) {
        if !self.is_broken {
            self.is_broken = true;
            self.send_away(what);
        }
    }

    /// The next message, if there is one and it makes sense.
    fn poll_submission(&mut self, clock: &Clock) -> Option<Submission<Outgoing>> {
        if self.is_broken {
            return None;
        }
        let Ok(next) = self.submissions.pop() else {
            self.broken("submissions");
            return None;
        };
        let submit = Submit::decode(next?);
        let located = self.layout.send.locate(submit.offset, submit.size.into());
        // Packets have room for so many tenants.
        let is_good = self.in_flight < self.layout.depth && submit.tenant <= u16::MAX.into();
        let Some(offset) = located.filter(|_| is_good) else {
            self.broken("submission");
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
            payload: Outgoing { memory, offset, size },
        })
    }

    /// Writes a completion, and wakes the application if it sleeps.
    fn complete(&mut self, completion: Complete) {
        if self.is_broken {
            return;
        }
        if self.completions.push(completion.encode()).is_err() {
            self.broken("completions");
        } else if self.completions.must_wake() {
            // Where the socket is full there is a wake-up in it. Where it is closed the door knows.
            let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

/// An application's deadline on the node's clock.
fn deadline(deadline_ns: u64, clock: &Clock) -> Time {
    if deadline_ns == u64::MAX {
        return Time::NEVER;
    }
    let left = deadline_ns.saturating_sub(monotonic_ns());
    clock.now().saturating_add(Span::from_ps(left.saturating_mul(1_000)))
}

/// The machine's monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Clients {
    /// Opens the door to applications. `clock` is the node's.
    ///
    /// # Errors
    /// The socket cannot be opened, or a living node has it.
    pub fn listen(config: DoorConfig, clock: Clock) -> Result<Self, DoorError> {
        let opened = door::open(config)?;
        let door::Opened { events, bells, stop, thread: door } = opened;
        let (door, clients) = (Some(door), Vec::new());
        Ok(Self { clients, turn: 0, is_armed: false, events, bells, clock, door, stop })
    }

    /// How many applications are attached.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// The services that applications take messages of, and how many messages of each are on their
    /// way out and on their way in or held.
    pub fn services(&self) -> impl Iterator<Item = (u16, u32, u32)> {
        self.clients.iter().map(|c| (c.service, c.in_flight, lock(&c.intake).n))
    }

    fn take_events(&mut self) {
        for event in self.events.try_iter() {
            match event {
                Event::Opened(opened) => {
                    let Opening { client, answer, memory } = *opened;
                    // From here on the application may count on being known.
                    if let Err(error) = client.admit(&answer, &memory) {
                        tracing::debug!(service = client.service, %error, "gone before it came");
                    }
                    self.clients.push(client);
                }
                Event::Closed(app) => {
                    let Some(idx) = self.clients.iter().position(|c| c.app == app) else {
                        continue;
                    };
                    let client = self.clients.remove(idx);
                    // Whoever still has the doorbell shall not wake the node any more.
                    let _ = epoll::delete(&self.bells, &client.doorbell);
                }
            }
        }
    }

    /// The application of a service: the latest, where an earlier one has gone a moment ago.
    fn client(&self, service: u16) -> Option<&Client> {
        self.clients.iter().rev().find(|client| client.service == service)
    }
}

impl Applications for Clients {
    type Payload = Outgoing;
    type Assembly = Incoming;

    fn poll_submission(&mut self) -> Option<Submission<Outgoing>> {
        if std::mem::take(&mut self.is_armed) {
            self.clients.iter().for_each(|client| client.submissions.disarm());
        }
        self.take_events();
        for _ in 0..self.clients.len() {
            let idx = self.turn % self.clients.len();
            self.turn = idx + 1;
            if let Some(submission) = self.clients[idx].poll_submission(&self.clock) {
                return Some(submission);
            }
        }
        None
    }

    fn finish(&mut self, app: u32, ticket: Ticket, outcome: app::Outcome) {
        // An application that has gone does not care.
        let Some(client) = self.clients.iter_mut().find(|client| client.app == app) else { return };
        client.in_flight -= 1;
        client.complete(Complete::Finished { ticket: ticket.0, outcome: outcome.into() });
    }

    fn admission(&self, service: u16, size: u32) -> Admission {
        let Some(client) = self.client(service).filter(|client| !client.is_broken) else {
            return Admission::Absent;
        };
        let mut intake = lock(&client.intake);
        let was_broken = intake.is_broken;
        let admission = intake.admission(size);
        if intake.is_broken && !was_broken {
            client.send_away("releases");
        }
        admission
    }

    fn open(&mut self, service: u16, size: u32) -> Incoming {
        let accepted = "room for a message that has just been accepted";
        let client = self.client(service).expect(accepted);
        let mut intake = lock(&client.intake);
        let extent = intake.arena.alloc(size.into()).expect(accepted);
        intake.n += 1;
        let located = client.layout.receive.locate(extent.offset(), size.into());
        Incoming {
            memory: Arc::clone(&client.memory),
            intake: Arc::clone(&client.intake),
            offset: located.expect("the arena is within its part of the memory"),
            extent: Some(extent),
            size: size as usize,
        }
    }

    fn deliver(&mut self, from: NodeId, service: u16, mut message: Incoming) {
        // An application that has gone has no use for it; its successor never asked.
        let is_its =
            |c: &&mut Client| c.service == service && Arc::ptr_eq(&c.memory, &message.memory);
        let Some(client) = self.clients.iter_mut().find(is_its) else { return };
        let Some(extent) = message.extent.take() else { return };
        let (offset, size) = (extent.offset(), message.size as u32);
        lock(&client.intake).held.insert(offset, extent);
        client.complete(Complete::Received { offset, size, from: from.get() });
    }

    fn arm(&mut self) -> bool {
        // What has rung until now is forgotten before anybody is asked to ring again.
        let mut rung = [MaybeUninit::uninit(); 32];
        let _ = epoll::wait(&self.bells, &mut rung, Some(&Timespec::default()));
        self.take_events();
        self.is_armed = true;
        self.clients.iter().for_each(|client| client.submissions.arm());
        // What makes no sense is looked at when the next submission is asked for.
        self.clients.iter_mut().any(|c| !c.is_broken && c.submissions.has_next() != Ok(false))
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.bells.as_fd()]
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}
