//! Attachment of an application to its node.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rampmeter_types::LatencyBound;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, recvmsg, send, socket_with,
};

use super::error::AttachError;
use super::options::PortConfig;
use crate::handshake::{AttachReply, MAPPED, Request};
use crate::layout::Layout;
use crate::map::Memory;

/// Timeout of the node's answer. A node answers at once unless it is stalled.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Memory and descriptors that a node sends to an application that it admits.
pub(super) struct AttachGrant {
    pub(super) socket: OwnedFd,
    pub(super) doorbell: OwnedFd,
    pub(super) memory: Memory,
    pub(super) layout: Layout,
    pub(super) promise: Option<LatencyBound>,
}

/// Requests shared memory from the node at `path`.
pub(super) fn attach(
    path: &Path,
    service: u16,
    config: PortConfig,
) -> Result<AttachGrant, AttachError> {
    let PortConfig { depth, send: send_bytes, receive } = config;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(io::Error::from)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT)).map_err(io::Error::from)?;
    let reach = || connect(&socket, &SocketAddrUnix::new(path)?);
    reach().map_err(|error| AttachError::NoNode { path: path.into(), source: error.into() })?;
    let request = Request { service, depth, send: send_bytes, receive };
    match send(&socket, &request.encode(), SendFlags::NOSIGNAL) {
        // The node has closed the connection, and may have sent the reason.
        Ok(_) | Err(Errno::PIPE) => {}
        Err(error) => return Err(io::Error::from(error).into()),
    }
    let (answer, memory, doorbell) = receive_answer(&socket)?;
    let grant = match answer {
        AttachReply::Granted(grant) => grant,
        AttachReply::Refused { code, text } => return Err(AttachError::Refused { code, text }),
    };
    let (Some(memory), Some(doorbell)) = (memory, doorbell) else {
        return Err(AttachError::NotANode("an answer without descriptors"));
    };
    let layout = Layout::new(grant.depth, grant.send, grant.receive)
        .ok()
        .filter(|layout| layout.total == grant.total && layout.slots == grant.slots)
        .ok_or(AttachError::NotANode("sizes that do not agree"))?;
    let memory = Memory::map(memory.as_fd(), layout.total as usize)?;
    send(&socket, &MAPPED, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
    receive_seal(&socket)?;
    Ok(AttachGrant { socket, doorbell, memory, layout, promise: grant.promise })
}

/// Waits until the node has sealed the memory.
fn receive_seal(socket: &OwnedFd) -> Result<(), AttachError> {
    loop {
        match recv(socket, &mut [0; 2], RecvFlags::empty()) {
            Ok((1, _)) => return Ok(()),
            Ok((0, _)) | Err(Errno::CONNRESET) => {
                return Err(AttachError::NotANode("a closed connection"));
            }
            Ok(_) => return Err(AttachError::NotANode("something else")),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Err(AttachError::NotANode("nothing in 10 seconds")),
            Err(error) => return Err(AttachError::System(error.into())),
        }
    }
}

/// Receives the node's answer, and the descriptors with it.
fn receive_answer(
    socket: &OwnedFd,
) -> Result<(AttachReply, Option<OwnedFd>, Option<OwnedFd>), AttachError> {
    let mut bytes = [0; AttachReply::LEN_MAX];
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
    let answer =
        AttachReply::decode(&bytes[..got]).ok_or(AttachError::NotANode("something else"))?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let mut fds = fds.into_iter();
    Ok((answer, fds.next(), fds.next()))
}
