//! The kernel's TCP, through plain sockets.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::netns::Net;
use crate::{CHUNK, LIMIT, PORT, Times, both};

/// Sends `bytes` over a connection.
pub(crate) fn transfer(net: &Net, bytes: u64) -> io::Result<Times> {
    let to = SocketAddr::from((net.hosts[1].ip, PORT));
    let listener = net.hosts[1].within(|| TcpListener::bind(to))?;
    // Connect first, so that no thread waits for a connection that never arrives.
    let mut stream = net.hosts[0].within(|| TcpStream::connect(to))?;
    let send = || {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let (chunk, mut left) = ([1; CHUNK], bytes);
        while left > 0 {
            let len = left.min(CHUNK as u64);
            stream.write_all(&chunk[..len as usize])?;
            left -= len;
        }
        stream.shutdown(Shutdown::Write)?;
        // The receiver closes the connection after the last byte.
        stream.read_exact(&mut [0]).or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(()),
            _ => Err(error),
        })
    };
    let receive = || {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        let (mut chunk, mut got) = ([0; CHUNK], 0);
        loop {
            match stream.read(&mut chunk)? {
                0 => break,
                len => got += len as u64,
            }
        }
        crate::expect_all(bytes, got)
    };
    both(net, send, receive)
}
