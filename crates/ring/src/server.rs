//! The node's side: all applications that are attached, as the node's thread sees them.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use rampmeter_core::{NodeId, Promise};
use rampmeter_runtime::app::{self, Admission};
use rampmeter_runtime::{Applications, Clock, Submission, Ticket};
use rustix::event::{Timespec, epoll};

use crate::attached::{Client, Incoming, Outgoing};
use crate::door::{self, DoorConfig, Event, Opening};
use crate::listener::DoorError;
use crate::users::Access;

/// The applications that are attached to a node: give it to [`Node::new`](rampmeter_runtime::Node).
///
/// When it is dropped, the socket goes, and applications notice that their node has.
#[derive(Debug)]
pub struct Clients {
    clients: Vec<Client>,
    /// Those that have gone while messages that they submitted were still in their rings.
    leaving: Vec<Client>,
    /// Client that is asked first, for fairness.
    turn: usize,
    is_armed: bool,
    /// What applications are told of the bound of their messages.
    promise: Option<Promise>,
    events: Receiver<Event>,
    /// Readable when a doorbell has rung.
    bells: Arc<OwnedFd>,
    clock: Clock,
    door: Option<JoinHandle<()>>,
    stop: Arc<OwnedFd>,
}

impl Clients {
    /// Opens the door to applications. `clock` is the node's.
    ///
    /// # Errors
    /// The socket cannot be opened, or a living node has it.
    pub fn listen(config: DoorConfig, clock: Clock) -> Result<Self, DoorError> {
        Self::listen_with(config, &Access::default(), clock)
    }

    /// As [`Clients::listen`]; `access` gets the limits and services of `config`, and changes them
    /// later.
    ///
    /// # Errors
    /// As [`Clients::listen`].
    pub fn listen_with(
        config: DoorConfig,
        access: &Access,
        clock: Clock,
    ) -> Result<Self, DoorError> {
        let opened = door::open(config, access)?;
        let door::Opened { events, bells, stop, thread: door } = opened;
        Ok(Self {
            clients: Vec::new(),
            leaving: Vec::new(),
            turn: 0,
            is_armed: false,
            promise: None,
            events,
            bells,
            clock,
            door: Some(door),
            stop,
        })
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
        self.clients.iter().map(|c| (c.service(), c.in_flight(), c.n_received()))
    }

    fn take_events(&mut self) {
        for event in self.events.try_iter() {
            match event {
                Event::Opened(opened) => {
                    let Opening { client, memory } = *opened;
                    // From here on the application may count on being known.
                    if let Err(error) = client.admit(&memory, self.promise) {
                        tracing::debug!(service = client.service(), %error, "gone before it came");
                    }
                    self.clients.push(client);
                }
                Event::Closed(app) => {
                    let Some(idx) = self.clients.iter().position(|c| c.app() == app) else {
                        continue;
                    };
                    let client = self.clients.remove(idx);
                    // Whoever still has the doorbell shall not wake the node any more.
                    let _ = epoll::delete(&self.bells, client.doorbell());
                    self.leaving.push(client);
                }
            }
        }
    }

    /// Gives a message to the application whose memory it is in.
    fn hand(&mut self, from: NodeId, uid: Option<u32>, service: u16, message: Incoming) {
        // An application that has gone has no use for it; its successor never asked.
        let is_its = |c: &&mut Client| c.service() == service && c.has_opened(&message);
        let Some(client) = self.clients.iter_mut().find(is_its) else { return };
        client.deliver(from, uid, message);
    }

    /// The application of a service: the latest, where an earlier one has gone a moment ago.
    fn client(&self, service: u16) -> Option<&Client> {
        self.clients.iter().rev().find(|client| client.service() == service)
    }
}

impl Applications for Clients {
    type Payload = Outgoing;
    type Assembly = Incoming;

    fn on_promise(&mut self, promise: Promise) {
        self.promise = Some(promise);
    }

    fn poll_submission(&mut self) -> Option<Submission<Outgoing>> {
        if std::mem::take(&mut self.is_armed) {
            self.clients.iter().for_each(Client::disarm);
        }
        self.take_events();
        while let Some(client) = self.leaving.last_mut() {
            if let Some(submission) = client.poll_submission(&self.clock) {
                return Some(submission);
            }
            self.leaving.pop();
        }
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
        let Some(client) = self.clients.iter_mut().find(|client| client.app() == app) else {
            return;
        };
        client.finish(ticket, outcome);
    }

    fn admission(&self, service: u16, size: u32) -> Admission {
        let Some(client) = self.client(service).filter(|client| !client.is_broken()) else {
            return Admission::Absent;
        };
        client.admission(size)
    }

    fn open(&mut self, service: u16, size: u32) -> Incoming {
        let client = self.client(service);
        client.expect("room for a message that has just been accepted").open(size)
    }

    fn deliver(&mut self, from: NodeId, service: u16, message: Incoming) {
        self.hand(from, None, service, message);
    }

    fn deliver_local(&mut self, own: NodeId, app: u32, service: u16, message: Incoming) {
        let mut senders = self.clients.iter().chain(&self.leaving);
        let uid = senders.find(|client| client.app() == app).map(Client::uid);
        self.hand(own, uid, service, message);
    }

    fn services(&self, each: &mut dyn FnMut(u16, u32, u32)) {
        Self::services(self)
            .for_each(|(service, sending, arriving)| each(service, sending, arriving));
    }

    fn arm(&mut self) -> bool {
        // What has rung until now is forgotten before anybody is asked to ring again.
        let mut rung = [MaybeUninit::uninit(); 32];
        let _ = epoll::wait(&self.bells, &mut rung, Some(&Timespec::default()));
        self.take_events();
        self.is_armed = true;
        self.clients.iter().for_each(Client::arm);
        // What makes no sense is looked at when the next submission is asked for.
        !self.leaving.is_empty() || self.clients.iter_mut().any(Client::has_submission)
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
