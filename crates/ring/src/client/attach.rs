//! How a port comes to be.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, send, socket_with,
};
use thiserror::Error;

use super::shared::Shared;
use super::{Port, PortConfig};
use crate::handshake::{Answer, Request};
use crate::layout::Layout;
use crate::map::Memory;

/// Why a port cannot be had.
#[derive(Debug, Error)]
pub enum AttachError {
    /// No node listens.
    #[error("no node listens on {}: {source}", path.display())]
    NoNode {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The node turns the application away.
    #[error("the node refuses: {text}")]
    Refused {
        /// The number of the reason: [`Refusal::code`](crate::handshake::Refusal::code).
        code: u32,
        /// What was expected, and what came.
        text: String,
    },
    /// What listens is no node of this version, or does not answer.
    #[error("expected the answer of a node, got {0}")]
    NotANode(&'static str),
    /// The system has no more memory or descriptors.
    #[error("cannot set up the port: {0}")]
    System(io::Error),
}

/// A node answers at once, unless it is hung.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn attach(path: &Path, service: u16, config: PortConfig) -> Result<Port, AttachError> {
    let PortConfig { depth, send: send_bytes, receive } = config;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(io::Error::from)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(io::Error::from)?;
    let reach = || connect(&socket, &SocketAddrUnix::new(path)?);
    reach().map_err(|error| AttachError::NoNode { path: path.into(), source: error.into() })?;
    let request = Request { service, depth, send: send_bytes, receive };
    send(&socket, &request.encode(), SendFlags::NOSIGNAL).map_err(io::Error::from)?;
    let (answer, memory, doorbell) = receive_answer(&socket)?;
    let grant = match answer {
        Answer::Granted(grant) => grant,
        Answer::Refused { code, text } => return Err(AttachError::Refused { code, text }),
    };
    let (Some(memory), Some(doorbell)) = (memory, doorbell) else {
        return Err(AttachError::NotANode("an answer without descriptors"));
    };
    let layout = Layout::new(grant.depth, grant.send, grant.receive)
        .ok()
        .filter(|layout| layout.total == grant.total && layout.slots == grant.slots)
        .ok_or(AttachError::NotANode("sizes that do not agree"))?;
    let memory = Memory::map(memory.as_fd(), layout.total as usize)?;
    let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let setup = || -> Result<_, Errno> {
        let (kick, watch) = (event()?, epoll::create(epoll::CreateFlags::CLOEXEC)?);
        epoll::add(&watch, &socket, EventData::new_u64(0), EventFlags::IN | EventFlags::RDHUP)?;
        epoll::add(&watch, &kick, EventData::new_u64(1), EventFlags::IN)?;
        Ok((kick, watch))
    };
    let (kick, epoll) = setup().map_err(io::Error::from)?;
    Ok(Port {
        shared: Arc::new(Shared::new(memory, layout)),
        socket,
        doorbell,
        kick,
        is_kicked: AtomicBool::new(false),
        epoll,
        is_gone: AtomicBool::new(false),
        in_vain: AtomicU32::new(0),
    })
}

/// The node's answer, and the descriptors that come with it.
fn receive_answer(
    socket: &OwnedFd,
) -> Result<(Answer, Option<OwnedFd>, Option<OwnedFd>), AttachError> {
    let mut bytes = [0; Answer::LEN_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Err(AttachError::NotANode("nothing in 10 seconds")),
            Err(Errno::CONNRESET) => return Err(AttachError::NotANode("a closed connection")),
            Err(error) => return Err(AttachError::System(error.into())),
        }
    };
    if got == 0 {
        return Err(AttachError::NotANode("a closed connection"));
    }
    let answer = Answer::decode(&bytes[..got]).ok_or(AttachError::NotANode("something else"))?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let mut fds = fds.into_iter();
    Ok((answer, fds.next(), fds.next()))
}
