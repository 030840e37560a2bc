//! Gates: descriptors on which a program waits until it may send.
//!
//! The problem: a program that may not send yet must wait. It waits for other descriptors at the
//! same time, and may have no thread of this library. It must continue if its agent ends.
//!
//! The simple way lets a call sleep until the agent permits it, or polls a word of shared memory. A
//! sleeping call blocks the program's other connections. Polling uses a processor, and neither
//! works inside the program's own `poll` or `epoll`. An eventfd keeps its state if the agent ends,
//! and a pipe then reports an error.
//!
//! The present way: a gate is a pair of datagram sockets, of which the program's end has the
//! smallest buffer that the system permits. The program closes its gate by sending one large
//! datagram. Its end is then not writable, until the agent receives the datagram and so opens the
//! gate. If the agent ends, the system discards the datagram, and the end is writable again
//! (`a_gate_opens_when_the_agent_exits`).
//!
//! Hazards: the agent writes the order before it opens the gate, and the program reads it after it
//! has closed the gate. In the other sequence a permission could be lost, and the program would
//! wait forever. A close of a closed gate and an open of an open one must do nothing
//! (`a_gate_is_writable_unless_it_is_closed`). The datagram must exceed a quarter of the buffer, or
//! the system reports the socket as writable. Neither end may report a hang-up, which a program
//! would interpret as the end of its connection.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

/// Requested size of the socket's buffer in bytes. The system raises it to its minimum.
const BUFFER: usize = 1;
/// Datagram that fills more than a quarter of such a buffer, above which a socket is not writable.
const FILL: [u8; 2048] = [0; 2048];
/// Datagrams that are received at once. A program sends one at a time.
const DATAGRAMS: usize = 8;

/// Makes a gate: returns the program's end and the agent's.
///
/// # Errors
/// No more file descriptors.
pub fn gate_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    set_socket_send_buffer_size(&ours, BUFFER)?;
    Ok((ours, theirs))
}

/// Closes a gate from the program's end: it is not writable until the agent opens it or ends. The
/// order must be read after this, since the agent may have written it before.
pub fn close_gate(ours: BorrowedFd<'_>) {
    // The gate is closed already if the buffer is full, and open permanently if the agent has
    // ended.
    let _ = send(ours, &FILL, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Opens a gate from the agent's end. The order must have been written before.
pub fn open_gate(theirs: BorrowedFd<'_>) {
    let mut byte = [0u8; 1];
    for _ in 0..DATAGRAMS {
        if recv(theirs, &mut byte[..], RecvFlags::DONTWAIT).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn events(gate: &OwnedFd) -> PollFlags {
        let mut fds = [PollFd::new(gate, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds[0].revents()
    }

    #[test]
    fn a_gate_is_writable_unless_it_is_closed() {
        let (ours, theirs) = gate_pair().unwrap();
        assert_eq!(events(&ours), PollFlags::OUT);
        for _ in 0..3 {
            close_gate(ours.as_fd());
            close_gate(ours.as_fd());
            assert_eq!(events(&ours), PollFlags::empty());
            open_gate(theirs.as_fd());
            assert_eq!(events(&ours), PollFlags::OUT);
        }
    }

    /// The end is writable and reports nothing else, such as a hang-up, which a program would
    /// interpret as the end of its connection.
    #[test]
    fn a_gate_opens_when_the_agent_exits() {
        let (ours, theirs) = gate_pair().unwrap();
        close_gate(ours.as_fd());
        drop(theirs);
        assert_eq!(events(&ours), PollFlags::OUT);
        close_gate(ours.as_fd());
        assert_eq!(events(&ours), PollFlags::OUT);
    }
}
