//! Attached programs: their memory, connections and notes.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rampmeter_gate::{ConnectionAddresses, NOTE_LEN, Region, Settings, SlotNote};
use rampmeter_ring::Listener;
use rampmeter_types::{NodeId, Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{Timespec, epoll::CreateFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, accept_with, recvmsg, sendmsg,
};
use tracing::{debug, warn};

use super::event::{Burst, ProgramEvent};

/// A connection that has a slot.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) tuple: ConnectionAddresses,
    pub(super) dst: NodeId,
    /// Agent's end of the gate.
    pub(super) gate: OwnedFd,
    pub(super) burst: Option<Burst>,
    /// Time of the last kernel query about it.
    pub(super) probed_at: Time,
}

/// A program, with all processes that it has forked.
#[derive(Debug)]
pub(super) struct Program {
    socket: OwnedFd,
    pub(super) region: Region,
    pub(super) connections: BTreeMap<u32, Connection>,
}

/// All programs of a host.
#[derive(Debug)]
pub(super) struct Programs {
    listener: Listener,
    epoll: OwnedFd,
    programs: BTreeMap<u64, Program>,
    next: u64,
    settings: Settings,
    nodes: BTreeMap<IpAddr, NodeId>,
    /// Time at which connections are accepted again after descriptors were exhausted; zero if they
    /// were not.
    accept_at: Time,
}

const LISTENER: u64 = 0;
/// Pause of accepting connections after descriptors were exhausted.
const ACCEPT_PAUSE: Span = Span::from_us(1_000_000);
/// Maximum number of notes that are read from one program before those of others.
const NOTES: usize = 64;
/// Maximum number of programs that are read in one iteration.
const EVENTS: usize = 64;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Programs {
    /// Listens at `path` for programs that send to `nodes`.
    ///
    /// # Errors
    /// Another agent listens there, the path exists and is not a socket, or the system refuses.
    pub(super) fn listen(
        path: &Path,
        settings: Settings,
        nodes: BTreeMap<IpAddr, NodeId>,
    ) -> io::Result<Self> {
        let listener = Listener::open(path, SocketType::SEQPACKET, 1024)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let programs = BTreeMap::new();
        let accept_at = Time::ZERO;
        Ok(Self { listener, epoll, programs, next: 1, settings, nodes, accept_at })
    }

    /// Returns a descriptor that becomes readable when a program sends a note.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(super) fn get_mut(&mut self, program: u64) -> Option<&mut Program> {
        self.programs.get_mut(&program)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Program)> {
        self.programs.iter().map(|(&number, program)| (number, program))
    }

    /// Removes a program.
    pub(super) fn remove(&mut self, program: u64) -> Option<Program> {
        self.programs.remove(&program)
    }

    /// Reads the notes of programs.
    ///
    /// # Errors
    /// Errors of the system's calls for waiting.
    pub(super) fn read_notes(&mut self, now: Time) -> io::Result<Vec<ProgramEvent>> {
        if self.accept_at > Time::ZERO && self.accept_at <= now {
            self.accept_at = Time::ZERO;
            self.watch_listener(EventFlags::IN)?;
        }
        let mut events = Vec::with_capacity(EVENTS);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&NOW)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut notes_read = Vec::new();
        for event in &events {
            match event.data.u64() {
                LISTENER => self.admit(now)?,
                program => self.take_notes(program, &mut notes_read),
            }
        }
        Ok(notes_read)
    }

    /// Accepts programs. Without free descriptors it stops accepting for [`ACCEPT_PAUSE`].
    fn admit(&mut self, now: Time) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = match accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(error) => {
                    warn!(
                        code = "accept-failed",
                        %error, "node.socket: cannot accept a program, retrying"
                    );
                    self.accept_at = now + ACCEPT_PAUSE;
                    return self.watch_listener(EventFlags::empty());
                }
            };
            match self.welcome(&socket) {
                Ok(region) => {
                    let connections = BTreeMap::new();
                    self.programs.insert(self.next, Program { socket, region, connections });
                    self.next += 1;
                }
                // The program continues without the agent.
                Err(error) => debug!(%error, "cannot attach a program"),
            }
        }
    }

    fn watch_listener(&self, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags)?)
    }

    /// Sends a program its memory.
    fn welcome(&self, socket: &OwnedFd) -> io::Result<Region> {
        let addresses: Vec<IpAddr> = self.nodes.keys().copied().collect();
        let (region, file) = Region::create(self.settings, &addresses)?;
        let fds = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(socket, &[IoSlice::new(b"capton")], &mut ancillary, flags)?;
        epoll::add(&self.epoll, socket, EventData::new_u64(self.next), EventFlags::IN)?;
        Ok(region)
    }

    fn take_notes(&mut self, number: u64, notes_read: &mut Vec<ProgramEvent>) {
        let Some(program) = self.programs.get_mut(&number) else { return };
        for _ in 0..NOTES {
            let (note, gate) = match receive(&program.socket) {
                Ok(Some(note)) => note,
                Err(Errno::WOULDBLOCK | Errno::INTR) => return,
                // A program that violates the protocol is removed, like one that has ended.
                Ok(None) | Err(_) => {
                    notes_read.push(ProgramEvent::Exited { program: number });
                    return;
                }
            };
            match (note, gate) {
                (SlotNote::Connected { slot, .. }, _)
                    if program.region.slot(slot).is_none()
                        || program.connections.contains_key(&slot) =>
                {
                    notes_read.push(ProgramEvent::Exited { program: number });
                    return;
                }
                (SlotNote::Connected { slot, tuple }, Some(gate)) => {
                    let Some(&dst) = self.nodes.get(&tuple.remote.ip()) else { continue };
                    let probed_at = Time::ZERO;
                    let connection = Connection { tuple, dst, gate, burst: None, probed_at };
                    program.connections.insert(slot, connection);
                }
                (SlotNote::Connected { .. }, None) => {}
                (SlotNote::BurstStarted { slot }, _) => {
                    notes_read.push(ProgramEvent::BurstStarted { program: number, slot })
                }
                (SlotNote::Closed { slot }, _) => {
                    notes_read.push(ProgramEvent::Closed { program: number, slot })
                }
            }
        }
    }
}

/// Receives a note, and the descriptor attached to it; `None` at the end, and for any other packet.
fn receive(socket: &OwnedFd) -> Result<Option<(SlotNote, Option<OwnedFd>)>, Errno> {
    let mut bytes = [0; NOTE_LEN + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?.bytes;
    let mut gate = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            gate = rights.last().or(gate);
        }
    }
    Ok(bytes.get(..got).and_then(SlotNote::decode).map(|note| (note, gate)))
}
