//! Server of short answers to outsiders, with limits.
//!
//! # Design
//!
//! The simple way, a thread per connection without a deadline, allows any client to use up the
//! descriptors of the node. A server that stops when there are none never recovers.
//!
//! One thread polls the listening socket and at most [`CONNECTIONS_MAX`] connections. A connection
//! is answered as soon as its request is complete. After the answer the server closes its direction
//! and discards input until the client closes the other. Closing a socket with unread bytes would
//! reset the connection, and the client might lose the answer. If there are too many connections
//! the oldest is closed, so that idle ones do not block others. The maximum is lower if the process
//! may have few descriptors. No connection lasts longer than [`DEADLINE`]. If there is no free
//! descriptor, connections stay in the backlog.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use tracing::warn;

/// Maximum number of connections, if the process may have many descriptors.
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// Number of connections in any case, and the descriptors of the process for each further one: most
/// are for programs.
const CONNECTIONS_MIN: usize = 2;
const DESCRIPTORS: u64 = 16;
/// Maximum duration of a connection.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// Maximum bytes of a request, and of input that is discarded after the answer.
const REQUEST_MAX: usize = 8 << 10;
/// Pause after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Outcome of parsing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The request is not complete.
    Incomplete,
    /// Complete answer.
    Bytes(Vec<u8>),
}

struct Connection {
    socket: OwnedFd,
    until_ns: u64,
    state: State,
}

enum State {
    /// Bytes of the request so far.
    Request(Vec<u8>),
    /// The answer, and the number of its bytes that are sent.
    Answer(Vec<u8>, usize),
    /// Number of bytes that have been discarded since the answer.
    Closing(usize),
}

/// Starts a thread that answers the connections of a listening socket. `reply` makes an answer from
/// the bytes received so far, initially none.
///
/// # Errors
/// The system has no thread.
pub(crate) fn start(
    name: &'static str,
    listener: OwnedFd,
    reply: impl FnMut(&[u8]) -> Reply + Send + 'static,
) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&listener, true)?;
    let server = Server { name, listener, reply, connections: VecDeque::new() };
    std::thread::Builder::new().name(name.to_owned()).spawn(|| server.run())?;
    Ok(())
}

struct Server<R> {
    name: &'static str,
    listener: OwnedFd,
    reply: R,
    /// Connections, the oldest first.
    connections: VecDeque<Connection>,
}

impl<R: FnMut(&[u8]) -> Reply> Server<R> {
    fn run(mut self) {
        loop {
            let timeout = self.connections.front().map(|oldest| {
                let left_ns = oldest.until_ns.saturating_sub(monotonic_ns());
                timespec(Duration::from_nanos(left_ns))
            });
            let mut polled = vec![PollFd::new(&self.listener, PollFlags::IN)];
            polled.extend(self.connections.iter().map(|connection| {
                let is_sending = matches!(connection.state, State::Answer(..));
                let flags = if is_sending { PollFlags::OUT } else { PollFlags::IN };
                PollFd::new(&connection.socket, flags)
            }));
            let result = poll(&mut polled, timeout.as_ref());
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            match result {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    warn!(
                        code = "accept-failed",
                        %error, server = self.name, "cannot poll for connections"
                    );
                    std::thread::sleep(PAUSE);
                    continue;
                }
            }
            let now_ns = monotonic_ns();
            let mut ready = ready.into_iter();
            let is_called = ready.next().unwrap_or(false);
            let reply = &mut self.reply;
            self.connections.retain_mut(|connection| {
                let is_ready = ready.next().unwrap_or(false);
                let goes_on = !is_ready || connection.advance(reply);
                goes_on && connection.until_ns > now_ns
            });
            if is_called {
                self.accept(now_ns);
            }
        }
    }

    fn accept(&mut self, now_ns: u64) {
        for _ in 0..CONNECTIONS_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(&self.listener, flags) {
                Ok(socket) => {
                    let until_ns = now_ns + DEADLINE.as_nanos() as u64;
                    let state = State::Request(Vec::new());
                    let mut connection = Connection { socket, until_ns, state };
                    if !connection.advance(&mut self.reply) {
                        continue;
                    }
                    while self.connections.len() >= connections_max() {
                        self.connections.pop_front();
                    }
                    self.connections.push_back(connection);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR | Errno::CONNABORTED) => return,
                Err(error) => {
                    warn!(
                        code = "accept-failed",
                        %error, "{}: cannot accept a connection", self.name
                    );
                    std::thread::sleep(PAUSE);
                    return;
                }
            }
        }
    }
}

/// Returns the maximum number of connections of the server.
fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit / DESCRIPTORS).clamp(CONNECTIONS_MIN as u64, CONNECTIONS_MAX as u64) as usize
}

impl Connection {
    /// Reads the request, sends the answer and reads until the client closes, as far as that does
    /// not block. Returns false after the end.
    fn advance(&mut self, reply: &mut impl FnMut(&[u8]) -> Reply) -> bool {
        let mut bytes = [0; 1_024];
        loop {
            let goes_on = match &mut self.state {
                State::Request(request) => match reply(request) {
                    Reply::Bytes(answer) => {
                        self.state = State::Answer(answer, 0);
                        Ok(true)
                    }
                    Reply::Incomplete => {
                        recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT).map(|(n, _)| {
                            request.extend_from_slice(&bytes[..n]);
                            n > 0 && request.len() <= REQUEST_MAX
                        })
                    }
                },
                State::Answer(answer, sent) if *sent < answer.len() => {
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    send(&self.socket, &answer[*sent..], flags).map(|n| {
                        *sent += n;
                        true
                    })
                }
                State::Answer(..) => shutdown(&self.socket, Shutdown::Write).map(|()| {
                    self.state = State::Closing(0);
                    true
                }),
                State::Closing(discarded) => recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT)
                    .map(|(n, _)| {
                        *discarded += n;
                        n > 0 && *discarded <= REQUEST_MAX
                    }),
            };
            match goes_on {
                Ok(true) => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => return true,
                Ok(false) | Err(_) => return false,
            }
        }
    }
}

/// Answers requests of HTTP/1: `page` returns the text for a path, if there is one.
pub(crate) fn http(request: &[u8], page: impl Fn(&str) -> Option<String>) -> Reply {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let (status, body) = match parsed.parse(request) {
        Ok(httparse::Status::Partial) => return Reply::Incomplete,
        Ok(httparse::Status::Complete(_)) => match (parsed.method, parsed.path.and_then(page)) {
            (Some("GET" | "HEAD"), Some(body)) => ("200 OK", body),
            (Some("GET" | "HEAD"), None) => ("404 Not Found", String::new()),
            _ => ("405 Method Not Allowed", String::new()),
        },
        Err(_) => ("400 Bad Request", String::new()),
    };
    let len = body.len();
    let body = if parsed.method == Some("HEAD") { "" } else { &body };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    Reply::Bytes(answer.into_bytes())
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn page(path: &str) -> Option<String> {
        (path == "/metrics").then(|| "a 1\n".repeat(100_000))
    }

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        start("metrics", listener.into(), |request| http(request, page)).unwrap();
        address
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE * 2)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_get_pages_or_errors() {
        let address = server();
        let text = get(address, "/metrics");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &text[..80]);
        assert!(text.ends_with("a 1\n") && text.len() > 400_000);
        assert!(get(address, "/other").starts_with("HTTP/1.1 404"));
        assert!(get(address, "\0").starts_with("HTTP/1.1 400"));
    }

    /// A client that sends more than a request reads the whole answer: the connection is not reset.
    #[test]
    fn bytes_after_a_request_do_not_reset_the_connection() {
        let address = server();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /other HTTP/1.1\r\n\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(b"more").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    }

    /// 300 connections with half of a request: whole requests are answered, and the server has no
    /// more descriptors than its limit.
    #[test]
    fn incomplete_requests_do_not_block_others() {
        let address = server();
        let mut half = Vec::new();
        for n in 0..300 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metr").unwrap();
            half.push(stream);
            if n % 50 == 0 {
                assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
            }
        }
        // The answer comes after the server has accepted all earlier connections.
        assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
        // The oldest have been closed: they read the end.
        let is_closed = |stream: &mut TcpStream| {
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let kind = stream.read(&mut [0]).map_err(|error| error.kind());
            kind != Err(io::ErrorKind::WouldBlock)
        };
        let n_open =
            half.iter_mut().filter_map(|stream| (!is_closed(stream)).then_some(())).count();
        assert!(n_open <= CONNECTIONS_MAX, "{n_open}");
    }
}
