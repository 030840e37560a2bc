//! Kernel state of TCP connections (sock_diag), of any process.

use std::io;
use std::net::IpAddr;

use libc::{EAGAIN, MSG_DONTWAIT};
use netlink_packet_core::{
    NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{
    AF_INET, AF_INET6, IPPROTO_TCP, TCP_CLOSE, TCP_LISTEN, TCP_TIME_WAIT,
};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use rampmeter_gate::ConnectionAddresses;

/// Queries the kernel about connections, one at a time.
pub(super) struct Probe {
    socket: Socket,
    serial: u32,
    buffer: Vec<u8>,
}

/// Size of the buffer for an answer in bytes: many times that of an answer without attributes.
const ANSWER_MAX: usize = 8 << 10;

impl Probe {
    /// Opens the socket.
    ///
    /// # Errors
    /// The kernel does not report connections.
    pub(super) fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, serial: 0, buffer: Vec::with_capacity(ANSWER_MAX) })
    }

    /// Returns the bytes of a connection that its peer has not acknowledged; `None` if there is no
    /// such connection.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn unacknowledged(
        &mut self,
        tuple: &ConnectionAddresses,
    ) -> io::Result<Option<u64>> {
        let ConnectionAddresses { local, remote } = *tuple;
        self.serial = self.serial.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        (header.flags, header.sequence_number) = (NLM_F_REQUEST, self.serial);
        let request = InetRequest {
            family: if matches!(local.ip(), IpAddr::V4(_)) { AF_INET } else { AF_INET6 },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::empty(),
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: local.ip(),
                destination_address: remote.ip(),
                interface_id: 0,
                cookie: [0xff; 8],
            },
        };
        let mut packet = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        self.answer()
    }

    /// Reads the answer to the latest request, which is available as soon as the request has been
    /// sent.
    fn answer(&mut self) -> io::Result<Option<u64>> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, MSG_DONTWAIT) {
                Err(error) if error.raw_os_error() == Some(EAGAIN) => return Ok(None),
                result => result?,
            };
            let answer = parse::<SockDiagMessage>(&self.buffer)?;
            if answer.header.sequence_number != self.serial {
                continue;
            }
            let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(found)) = answer.payload
            else {
                return Ok(None);
            };
            // If there is no connection, the kernel reports the listener that would accept one.
            let is_over = matches!(found.header.state, TCP_CLOSE | TCP_LISTEN | TCP_TIME_WAIT);
            return Ok((!is_over).then_some(found.header.send_queue.into()));
        }
    }
}

fn parse<I: NetlinkDeserializable>(bytes: &[u8]) -> io::Result<NetlinkMessage<I>> {
    NetlinkMessage::deserialize(bytes).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_reports_the_unsent_bytes_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let tuple = ConnectionAddresses { local, remote };
        let mut probe = Probe::new().unwrap();
        assert_eq!(probe.unacknowledged(&tuple).unwrap(), Some(0));
        stream.set_nonblocking(true).unwrap();
        while stream.write(&[0; 1 << 16]).is_ok() {}
        let waiting = probe.unacknowledged(&tuple).unwrap();
        assert!(waiting.is_some_and(|bytes| bytes > 1 << 16), "{waiting:?}");
        drop((stream, peer));
        assert_eq!(probe.unacknowledged(&tuple).unwrap(), None);
    }

    #[test]
    fn a_listener_is_no_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let tuple = ConnectionAddresses { local, remote: "127.0.0.1:9".parse().unwrap() };
        assert_eq!(Probe::new().unwrap().unacknowledged(&tuple).unwrap(), None);
    }
}
