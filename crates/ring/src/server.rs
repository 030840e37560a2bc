//! The node's side: all attached applications, as the node's thread uses them.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use rampmeter_runtime::app::{self, Admission};
use rampmeter_runtime::{Applications, Clock, Submission, Ticket};
use rampmeter_types::{LatencyBound, NodeId};
use rustix::event::{Timespec, epoll};

use crate::acceptor::{self, AdmittedClient, Event};
use crate::attached::{Client, IncomingMessage, OutgoingMessage};
use crate::config::AcceptorConfig;
use crate::listener::ListenError;
use crate::users::Access;

/// Applications that are attached to a node. Pass it to [`Node::new`](rampmeter_runtime::Node).
///
/// Dropping it removes the socket; applications detect that their node has ended.
#[derive(Debug)]
pub struct Clients {
    clients: Vec<Client>,
    /// Applications whose memory is not sealed yet; it is not accessed.
    unsealed: Vec<Client>,
    /// Applications that ended while messages that they submitted were still in their rings.
    ended: Vec<Client>,
    /// Index of the client that is polled first, for fairness.
    first_polled: usize,
    is_armed: bool,
    /// Latency bound of messages, which applications receive.
    promise: Option<LatencyBound>,
    events: Receiver<Event>,
    /// Readable after a write to a doorbell.
    doorbells: Arc<OwnedFd>,
    clock: Clock,
    acceptor: Option<JoinHandle<()>>,
    stop: Arc<OwnedFd>,
}

impl Clients {
    /// Opens the acceptor. `clock` is the node's.
    ///
    /// # Errors
    /// The socket cannot be opened, or a running node owns it.
    pub fn listen(config: AcceptorConfig, clock: Clock) -> Result<Self, ListenError> {
        Self::listen_with(config, &Access::default(), clock)
    }

    /// Opens the acceptor like [`Clients::listen`]. `access` gets the limits and services of
    /// `config`, and changes them later.
    ///
    /// # Errors
    /// As [`Clients::listen`].
    pub fn listen_with(
        config: AcceptorConfig,
        access: &Access,
        clock: Clock,
    ) -> Result<Self, ListenError> {
        let opened = acceptor::open(config, access)?;
        let acceptor::Acceptor { events, doorbells, stop, thread: acceptor } = opened;
        Ok(Self {
            clients: Vec::new(),
            unsealed: Vec::new(),
            ended: Vec::new(),
            first_polled: 0,
            is_armed: false,
            promise: None,
            events,
            doorbells,
            clock,
            acceptor: Some(acceptor),
            stop,
        })
    }

    /// Returns the number of attached applications.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns true if no application is attached.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Returns each service with an application, the number of its messages in flight, and the
    /// number of its messages that arrive or are held.
    pub fn services(&self) -> impl Iterator<Item = (u16, u32, u32)> {
        self.clients.iter().map(|c| (c.service(), c.in_flight(), c.n_received()))
    }

    fn take_events(&mut self) {
        for event in self.events.try_iter() {
            match event {
                Event::Opened(opened) => {
                    let AdmittedClient { client, memory } = *opened;
                    if let Err(error) = client.admit(&memory, self.promise) {
                        let service = client.service();
                        tracing::debug!(service, %error, "client disconnected before admission");
                    }
                    self.unsealed.push(client);
                }
                Event::Sealed(app) => {
                    let idx = self.unsealed.iter().position(|client| client.app() == app);
                    let Some(idx) = idx else { continue };
                    let client = self.unsealed.remove(idx);
                    // From here on the application may rely on being attached.
                    client.wake();
                    self.clients.push(client);
                }
                Event::Closed(app) => {
                    self.unsealed.retain(|client| client.app() != app);
                    let Some(idx) = self.clients.iter().position(|c| c.app() == app) else {
                        continue;
                    };
                    let client = self.clients.remove(idx);
                    // Other holders of the doorbell must not wake the node any more.
                    let _ = epoll::delete(&self.doorbells, client.doorbell());
                    self.ended.push(client);
                }
            }
        }
    }

    /// Delivers a message to the application whose memory it is in.
    fn hand(&mut self, from: NodeId, uid: Option<u32>, service: u16, message: IncomingMessage) {
        // An application that has ended cannot use it, and its successor did not request it.
        let is_its = |c: &&mut Client| c.service() == service && c.has_opened(&message);
        let Some(client) = self.clients.iter_mut().find(is_its) else { return };
        client.deliver(from, uid, message);
    }

    /// Returns the application of a service: the latest, if an earlier one has ended a moment ago.
    fn client(&self, service: u16) -> Option<&Client> {
        self.clients.iter().rev().find(|client| client.service() == service)
    }
}

impl Applications for Clients {
    type Payload = OutgoingMessage;
    type Assembly = IncomingMessage;

    fn on_promise(&mut self, promise: LatencyBound) {
        self.promise = Some(promise);
    }

    fn poll_submission(&mut self) -> Option<Submission<OutgoingMessage>> {
        if std::mem::take(&mut self.is_armed) {
            self.clients.iter().for_each(Client::disarm);
        }
        self.take_events();
        while let Some(client) = self.ended.last_mut() {
            if let Some(submission) = client.poll_submission(&self.clock) {
                return Some(submission);
            }
            self.ended.pop();
        }
        for _ in 0..self.clients.len() {
            let idx = self.first_polled % self.clients.len();
            self.first_polled = idx + 1;
            if let Some(submission) = self.clients[idx].poll_submission(&self.clock) {
                return Some(submission);
            }
        }
        None
    }

    fn finish(&mut self, app: u32, ticket: Ticket, outcome: app::Outcome) {
        // An application that has ended needs no outcome.
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

    fn open(&mut self, service: u16, size: u32) -> IncomingMessage {
        let client = self.client(service);
        client.expect("room for a message that has just been accepted").open(size)
    }

    fn deliver(&mut self, from: NodeId, service: u16, message: IncomingMessage) {
        self.hand(from, None, service, message);
    }

    fn deliver_local(&mut self, own: NodeId, app: u32, service: u16, message: IncomingMessage) {
        let mut senders = self.clients.iter().chain(&self.ended);
        let uid = senders.find(|client| client.app() == app).map(Client::uid);
        self.hand(own, uid, service, message);
    }

    fn services(&self, each: &mut dyn FnMut(u16, u32, u32)) {
        Self::services(self)
            .for_each(|(service, sending, arriving)| each(service, sending, arriving));
    }

    fn arm(&mut self) -> bool {
        // Earlier doorbell events are cleared before any application is armed again.
        let mut rung = [MaybeUninit::uninit(); 32];
        let _ = epoll::wait(&self.doorbells, &mut rung, Some(&Timespec::default()));
        self.take_events();
        self.is_armed = true;
        self.clients.iter().for_each(Client::arm);
        // An inconsistent counter is handled when the next submission is polled.
        !self.ended.is_empty() || self.clients.iter_mut().any(Client::has_submission)
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.doorbells.as_fd()]
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}
