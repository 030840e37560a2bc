//! Acceptor: a thread that admits applications and detects their end.
//!
//! Resources are limited per user, so that no user can exhaust them for the others: connections
//! without a request, attachments, memory.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, recv, send, shutdown,
};

use crate::attached::{Client, ClientParts};
use crate::clock::monotonic_ns;
use crate::config::AcceptorConfig;
use crate::handshake::{AttachReply, MAPPED, Refusal, Request};
use crate::layout::Layout;
use crate::listener::{ListenError, Listener};
use crate::map::Memory;
use crate::users::{Access, User};

/// Events from the acceptor to the node.
#[derive(Debug)]
pub(crate) enum Event {
    Opened(Box<AdmittedClient>),
    /// The application has mapped its memory, which is sealed from now on.
    Sealed(u32),
    Closed(u32),
}

/// An application to be admitted, and the memory that the node sends it.
#[derive(Debug)]
pub(crate) struct AdmittedClient {
    pub(crate) client: Client,
    pub(crate) memory: Arc<OwnedFd>,
}

/// A running acceptor, as the node has it.
#[derive(Debug)]
pub(crate) struct Acceptor {
    pub(crate) events: Receiver<Event>,
    pub(crate) doorbells: Arc<OwnedFd>,
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) thread: JoinHandle<()>,
}

/// A connection, before or after it is attached.
#[derive(Debug)]
struct Connection {
    socket: Arc<OwnedFd>,
    user: User,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Connected without a request; closed at `until_ns`.
    Unrequested { until_ns: u64 },
    /// Deferred until `until_ns`: the node is about to free memory.
    Waiting { request: Request, until_ns: u64 },
    /// Attached. `unsealed` is its memory until the application has mapped it.
    Attached { app: u32, service: u16, memory: Arc<Memory>, unsealed: Option<Arc<OwnedFd>> },
}

#[derive(Debug)]
struct AcceptorThread {
    access: Access,
    listener: Listener,
    stop: Arc<OwnedFd>,
    /// Readable when the access rules have changed.
    rules_changed: Arc<OwnedFd>,
    epoll: OwnedFd,
    doorbells: Arc<OwnedFd>,
    /// Written to at each event.
    signal: OwnedFd,
    events: Sender<Event>,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    next_app: u32,
    /// Memory of ended applications, from which messages may still be sent. This thread drops the
    /// last reference, since unmapping is slow and would delay the node.
    ended_memory: Vec<(User, Arc<Memory>)>,
    /// Spare descriptor. It is closed if the process has no other free descriptor, so that a
    /// connection can still be accepted and refused.
    spare: Option<OwnedFd>,
}

/// Maximum number of connections that are not accepted yet.
const BACKLOG: i32 = 64;
const LISTENER: u64 = 0;
const STOP: u64 = 1;
const CHANGED: u64 = 2;
/// Maximum number of connections without a request per user.
const UNREQUESTED_PER_USER: usize = 8;
/// Maximum number of connections without a request of all users. A further one replaces the oldest.
const UNREQUESTED_MAX: usize = 256;
/// Timeout of a connection without a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for which a request is deferred until memory of an ended application is freed.
const DEFER_MAX: Duration = Duration::from_secs(2);
/// Interval of checks that no event triggers.
const SWEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Opens the acceptor. From now on `access` has the limits and services of `config`.
pub(crate) fn open(config: AcceptorConfig, access: &Access) -> Result<Acceptor, ListenError> {
    let AcceptorConfig { path, limits, services } = config;
    let system = |source: io::Error| ListenError::System { path: path.clone(), source };
    let listener = Listener::open(&path, SocketType::SEQPACKET, BACKLOG)?;
    let setup = || -> io::Result<(AcceptorThread, Receiver<Event>)> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (stop, rules_changed, signal) = (Arc::new(event()?), Arc::new(event()?), event()?);
        access.set(limits, services);
        access.notify(Arc::clone(&rules_changed));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let doorbells = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        epoll::add(&epoll, &rules_changed, EventData::new_u64(CHANGED), EventFlags::IN)?;
        // Edge-triggered, so that no thread has to read the counter.
        epoll::add(&doorbells, &signal, EventData::new_u64(0), EventFlags::IN | EventFlags::ET)?;
        let (events, received) = mpsc::channel();
        let acceptor = AcceptorThread {
            access: access.clone(),
            listener,
            stop,
            rules_changed,
            epoll,
            doorbells,
            signal,
            events,
            connections: BTreeMap::new(),
            next: CHANGED + 1,
            next_app: 0,
            ended_memory: Vec::new(),
            spare: Some(event()?),
        };
        Ok((acceptor, received))
    };
    let (acceptor, events) = setup().map_err(system)?;
    let (doorbells, stop) = (Arc::clone(&acceptor.doorbells), Arc::clone(&acceptor.stop));
    let thread =
        thread::Builder::new().name("acceptor".into()).spawn(|| acceptor.run()).map_err(system)?;
    Ok(Acceptor { events, doorbells, stop, thread })
}

impl AcceptorThread {
    fn run(mut self) {
        let mut ready = Vec::with_capacity(32);
        loop {
            ready.clear();
            let is_restless =
                !self.ended_memory.is_empty() || self.pending_connections().next().is_some();
            let timeout = is_restless.then_some(&SWEEP);
            match epoll::wait(&self.epoll, spare_capacity(&mut ready), timeout) {
                Ok(_) | Err(Errno::INTR) => {}
                // A node without an acceptor would seem alive but admit no application.
                Err(error) => panic!("the acceptor cannot wait: {error}"),
            }
            for event in &ready {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    STOP => return,
                    CHANGED => self.on_changed_rules(),
                    client => self.handle_readable(client),
                }
            }
            self.sweep();
        }
    }

    /// Returns the connections without a request, the oldest first, with their users.
    fn pending_connections(&self) -> impl Iterator<Item = (u64, User)> {
        let silent =
            self.connections.iter().filter(|(_, g)| matches!(g.state, State::Unrequested { .. }));
        silent.map(|(&token, client)| (token, client.user))
    }

    /// Returns the number of attached applications of users for which `counts` returns true, and
    /// the bytes that they share with the node. Memory counts until the node has freed it.
    fn taken(&self, counts: impl Fn(User) -> bool) -> (usize, u64) {
        let attached = self.connections.values().filter_map(|client| match &client.state {
            State::Attached { memory, .. } if counts(client.user) => Some(memory.len() as u64),
            _ => None,
        });
        let (n, bytes) = attached.fold((0, 0), |(n, sum), bytes| (n + 1, sum + bytes));
        let retired = self.ended_memory.iter().filter(|(user, _)| counts(*user));
        (n, bytes + retired.map(|(_, memory)| memory.len() as u64).sum::<u64>())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        if self.spare.is_none() {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            self.spare = eventfd(0, flags).ok();
        }
        let accepted = accept_with(&self.listener, flags).or_else(|error| {
            let is_full = matches!(error, Errno::MFILE | Errno::NFILE);
            match self.spare.take_if(|_| is_full) {
                Some(spare) => {
                    drop(spare);
                    accept_with(&self.listener, flags)
                }
                None => Err(error),
            }
        });
        let socket = match accepted {
            Ok(socket) => Arc::new(socket),
            Err(Errno::WOULDBLOCK | Errno::INTR | Errno::CONNABORTED) => return,
            Err(error) => {
                // Out of descriptors: pending connections stay in the backlog.
                tracing::warn!(code = "attach-failed", %error, "cannot attach an application");
                thread::sleep(Duration::from_millis(10));
                return;
            }
        };
        let Ok(user) = socket_peercred(&socket).map(User::from) else { return };
        let token = self.next;
        let flags = EventFlags::IN | EventFlags::RDHUP;
        if epoll::add(&self.epoll, &socket, EventData::new_u64(token), flags).is_err() {
            return;
        }
        self.next += 1;
        let until_ns = monotonic_ns() + REQUEST_TIMEOUT.as_nanos() as u64;
        self.connections
            .insert(token, Connection { socket, user, state: State::Unrequested { until_ns } });
        // Programs send their request with the connection, so most requests are already there.
        self.handle_readable(token);
        self.limit_pending(user);
    }

    /// Closes the oldest connections without a request, if there are too many.
    fn limit_pending(&mut self, user: User) {
        let pending: Vec<_> = self.pending_connections().collect();
        let mut of_user = pending.iter().filter(|(_, of)| of.uid == user.uid);
        if of_user.clone().count() > UNREQUESTED_PER_USER
            && let Some(&(oldest, _)) = of_user.next()
        {
            if let Some(Connection { socket, .. }) = self.connections.get(&oldest) {
                let (uid, max) = (user.uid, UNREQUESTED_PER_USER);
                refuse_program(socket, &Refusal::TooManyConnections { uid, max });
            }
            self.remove_connection(oldest);
        } else if pending.len() > UNREQUESTED_MAX {
            self.remove_connection(pending[0].0);
        }
    }

    /// Handles a request from a connection, or its end.
    fn handle_readable(&mut self, token: u64) {
        let Some(client) = self.connections.get_mut(&token) else { return };
        let mut bytes = [0; Request::LEN + 1];
        let got = match recv(&client.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((got, _)) if got > 0 => got,
            Err(Errno::WOULDBLOCK | Errno::INTR) => return,
            Ok(_) | Err(_) => return self.remove_connection(token),
        };
        match &mut client.state {
            State::Unrequested { .. } => {}
            State::Attached { app, unsealed, .. } => {
                let app = *app;
                let is_sealed = bytes[..got] == MAPPED && unsealed.take().is_some_and(seal);
                return if is_sealed {
                    self.send_event(Event::Sealed(app))
                } else {
                    self.remove_connection(token)
                };
            }
            // An application sends nothing more before its answer.
            State::Waiting { .. } => return self.remove_connection(token),
        }
        let socket = Arc::clone(&client.socket);
        match Request::decode(&bytes[..got]) {
            Ok(request) => {
                let until_ns = monotonic_ns() + DEFER_MAX.as_nanos() as u64;
                self.answer(token, request, until_ns);
            }
            Err(refusal) => {
                refuse_program(&socket, &refusal);
                self.remove_connection(token);
            }
        }
    }

    /// Admits an application, refuses it, or defers it until memory is freed.
    fn answer(&mut self, token: u64, request: Request, until_ns: u64) {
        let Some(client) = self.connections.get(&token) else { return };
        let (socket, user) = (Arc::clone(&client.socket), client.user);
        let Err(refusal) = self.attach(token, &socket, user, request) else { return };
        let may_come = matches!(refusal, Refusal::NoMemory { .. }) && !self.ended_memory.is_empty();
        if may_come && monotonic_ns() < until_ns {
            let state = State::Waiting { request, until_ns };
            self.connections.insert(token, Connection { socket, user, state });
        } else {
            refuse_program(&socket, &refusal);
            self.remove_connection(token);
        }
    }

    fn attach(
        &mut self,
        token: u64,
        socket: &Arc<OwnedFd>,
        user: User,
        request: Request,
    ) -> Result<(), Refusal> {
        let (Request { service, .. }, uid) = (request, user.uid);
        let limits = {
            let rules = self.access.rules();
            if !rules.1.allow(service, user) {
                return Err(Refusal::Forbidden { uid, service });
            }
            rules.0
        };
        let layout = request.layout(limits.arena_max)?;
        // Applications that disconnected before this request are removed, even if epoll has not
        // reported them yet.
        self.sweep_out();
        let is_taken = |client: &Connection| match client.state {
            State::Attached { service: taken, .. } => taken == service,
            State::Unrequested { .. } | State::Waiting { .. } => false,
        };
        if self.connections.values().any(is_taken) {
            return Err(Refusal::ServiceInUse { service });
        }
        self.free_ended_memory();
        let (n, bytes) = self.taken(|_| true);
        let (n_of_user, bytes_of_user) = self.taken(|other| other.uid == uid);
        if n >= limits.clients_max {
            return Err(Refusal::TooManyClients { max: limits.clients_max });
        }
        if n_of_user >= limits.clients_per_user {
            return Err(Refusal::TooManyUserClients { uid, max: limits.clients_per_user });
        }
        let requested = layout.total();
        let available = limits.memory_max.saturating_sub(bytes);
        let left_of_user = limits.memory_per_user.saturating_sub(bytes_of_user);
        if requested > available {
            return Err(Refusal::NoMemory { requested, available, user: None });
        }
        if requested > left_of_user {
            return Err(Refusal::NoMemory { requested, available: left_of_user, user: Some(uid) });
        }
        let system = |error: io::Error| Refusal::System(error.to_string());
        let (file, memory) = make_memory(&layout).map_err(system)?;
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| system(error.into()))?;
        epoll::add(
            &self.doorbells,
            &doorbell,
            EventData::new_u64(0),
            EventFlags::IN | EventFlags::ET,
        )
        .map_err(|error| system(error.into()))?;
        let app = self.next_app;
        self.next_app = self.next_app.wrapping_add(1);
        let (memory, file) = (Arc::new(memory), Arc::new(file));
        let parts = ClientParts { app, service, uid, doorbell, socket: Arc::clone(socket) };
        let client = Client::new(parts, Arc::clone(&memory), layout);
        self.send_event(Event::Opened(Box::new(AdmittedClient {
            client,
            memory: Arc::clone(&file),
        })));
        let state = State::Attached { app, service, memory, unsealed: Some(file) };
        self.connections.insert(token, Connection { socket: Arc::clone(socket), user, state });
        tracing::info!(service, app, uid, bytes = layout.total(), "an application is attached");
        Ok(())
    }

    /// Disconnects applications whose users no longer have the right to their service.
    fn on_changed_rules(&mut self) {
        let _ = rustix::io::read(&self.rules_changed, &mut [0u8; 8]);
        let rules = self.access.rules();
        let is_forbidden = |client: &Connection| match client.state {
            State::Attached { service, .. } => !rules.1.allow(service, client.user),
            State::Unrequested { .. } | State::Waiting { .. } => false,
        };
        let forbidden = self.connections.iter().filter(|(_, client)| is_forbidden(client));
        let forbidden: Vec<_> =
            forbidden.map(|(&token, client)| (token, client.user.uid)).collect();
        drop(rules);
        for (token, uid) in forbidden {
            tracing::info!(uid, "disconnected an application without access to its service");
            self.remove_connection(token);
        }
    }

    /// Removes a connection.
    fn remove_connection(&mut self, token: u64) {
        let Some(Connection { socket, user, state }) = self.connections.remove(&token) else {
            return;
        };
        let _ = epoll::delete(&self.epoll, &socket);
        if let State::Attached { app, service, memory, .. } = state {
            tracing::info!(service, app, "an application has disconnected");
            let _ = shutdown(&socket, Shutdown::Both);
            self.ended_memory.push((user, memory));
            self.send_event(Event::Closed(app));
        }
    }

    fn send_event(&self, event: Event) {
        // A node that has ended will stop the acceptor, too.
        if self.events.send(event).is_ok() {
            let _ = rustix::io::write(&self.signal, &1u64.to_ne_bytes());
        }
    }

    /// Closes connections whose request is overdue, and frees unused memory.
    fn sweep(&mut self) {
        let now_ns = monotonic_ns();
        let overdue = self.connections.iter().filter_map(|(&token, client)| match client.state {
            State::Unrequested { until_ns } if until_ns <= now_ns => Some(token),
            _ => None,
        });
        for token in overdue.collect::<Vec<_>>() {
            self.remove_connection(token);
        }
        self.free_ended_memory();
        let waiting = self.connections.iter().filter_map(|(&token, client)| match client.state {
            State::Waiting { request, until_ns } => Some((token, request, until_ns)),
            _ => None,
        });
        for (token, request, until_ns) in waiting.collect::<Vec<_>>() {
            self.answer(token, request, until_ns);
        }
    }

    /// Frees memory that the node no longer uses.
    fn free_ended_memory(&mut self) {
        self.ended_memory.retain(|(_, memory)| Arc::strong_count(memory) > 1);
    }

    /// Removes all connections whose socket has closed.
    fn sweep_out(&mut self) {
        let has_gone = |client: &Connection| {
            let mut polled = [PollFd::new(&client.socket, PollFlags::RDHUP)];
            let is_attached = matches!(client.state, State::Attached { .. });
            is_attached && poll(&mut polled, Some(&Timespec::default())).is_ok_and(|n| n > 0)
        };
        let gone =
            self.connections.iter().filter(|(_, client)| has_gone(client)).map(|(&token, _)| token);
        for token in gone.collect::<Vec<_>>() {
            self.remove_connection(token);
        }
    }
}

impl Drop for AcceptorThread {
    fn drop(&mut self) {
        for client in self.connections.values() {
            let _ = shutdown(&client.socket, Shutdown::Both);
        }
    }
}

/// Sends a program the reason for which it is refused.
fn refuse_program(socket: &OwnedFd, refusal: &Refusal) {
    tracing::info!(%refusal, "refused to attach a program");
    let answer = AttachReply::from(refusal).encode();
    // Unread input would make the system drop the answer.
    let _ = recv(socket, &mut [0; Request::LEN + 1], RecvFlags::DONTWAIT);
    let _ = send(socket, &answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Makes memory of a sealed size, so that no application can make the node access pages that do not
/// exist.
fn make_memory(layout: &Layout) -> io::Result<(OwnedFd, Memory)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("rampmeter-ring", flags)?;
    rustix::fs::ftruncate(&file, layout.total())?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    let memory = Memory::map(file.as_fd(), layout.total() as usize)?;
    layout.label(&memory);
    Ok((file, memory))
}

/// Seals memory that both sides have mapped. From then on no application can punch holes into it.
/// The node would wait while the system removes the pages of a hole, 0.3 to 0.5 s per gigabyte.
/// Returns false if the application has prevented it.
fn seal(file: Arc<OwnedFd>) -> bool {
    let add = |seals| rustix::fs::fcntl_add_seals(&file, seals);
    match add(SealFlags::FUTURE_WRITE | SealFlags::SEAL) {
        // Linux before 5.1.
        Err(Errno::INVAL) => add(SealFlags::SEAL).is_ok(),
        added => added.is_ok(),
    }
}
