//! The same load over the kernel's TCP, for comparison.
//!
//! A message is a header (flow and size) and its bytes, on a connection without other messages
//! meanwhile. Connections are reused, so that only the first messages of a pair include handshakes
//! and slow start. `--connection-per-message` disables that. A message counts as delivered when its
//! last byte has been read, and as completed when the receiver has acknowledged it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use rampmeter_runtime::{Clock, Payload, Signals};
use rampmeter_types::{Span, Time};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};
use tracing::warn;

use crate::config::Setup;
use crate::error::Error;
use crate::pattern::Pattern;
use crate::timetable::{FlowRow, Log, Timetable};

/// Bytes moved by one call.
const CHUNK: usize = 64 << 10;
/// Maximum sleep of the loop before the next arrival.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Maximum number of attempts to connect to a peer that does not listen yet.
const ATTEMPTS_MAX: u32 = 250;

/// Idle connections to each host.
type IdleConnections = Arc<Mutex<BTreeMap<u32, Vec<TcpStream>>>>;

/// Options of the kernel's TCP, without effect for other carriers.
#[derive(Args, Clone, Debug)]
pub(crate) struct KernelTcpArgs {
    /// Congestion control of the kernel, with `--over tcp`; by default the system's. Restricted
    /// ones need CAP_NET_ADMIN.
    #[arg(long)]
    congestion_control: Option<String>,
    /// Open a new connection for each message, with `--over tcp`.
    #[arg(long)]
    connection_per_message: bool,
}

/// Note from the thread of a connection to the loop.
struct ThreadReport(&'static str, u32, Time);

/// Sends and receives until `drain` after the last message was due, or after the last one on which
/// others may depend.
pub(crate) fn run(
    setup: &Setup,
    kernel: &KernelTcpArgs,
    mut timetable: Timetable,
    mut log: Log,
    clock: Clock,
    drain: Span,
    signals: &Signals,
) -> Result<(), Error> {
    let (notes, noted) = mpsc::channel();
    let listener = TcpListener::bind(setup.udp.local)?;
    let accepted = notes.clone();
    thread::spawn(move || accept(&listener, &accepted, clock));
    let (idle, kernel) = (IdleConnections::default(), Arc::new(kernel.clone()));
    let (start, mut over, all) = (timetable.start, 0, timetable.unsent + timetable.expected);
    let mut ends = timetable.last_send.saturating_add(drain);
    while !signals.is_stopping() && clock.now() < ends {
        let now = clock.now();
        match timetable.take(now) {
            Some(row) => {
                log.log_event("submitted", row.flow, now.saturating_since(start));
                let address = setup.udp.peers[row.dst as usize];
                let address = address.expect("each host of the table is a peer");
                let (idle, kernel) = (Arc::clone(&idle), Arc::clone(&kernel));
                let notes = notes.clone();
                thread::spawn(move || send(row, address, &idle, &kernel, &notes, clock));
            }
            None => {
                let at = timetable.next().unwrap_or(ends).min(ends);
                let left = Duration::from_nanos(at.saturating_since(now).as_ps() / 1_000);
                let was_over = over;
                over += write_notes(&noted, &mut log, &mut timetable, left.min(SLEEP_MAX));
                if over > was_over && timetable.has_dependencies {
                    ends = ends.max(clock.now().saturating_add(drain));
                }
                if over == all && was_over < all {
                    log.log_event("done", 0, clock.now().saturating_since(start));
                    log.finish()?;
                }
            }
        }
    }
    while let Ok(ThreadReport(what, flow, at)) = noted.try_recv() {
        log.log_event(what, flow, at.saturating_since(start));
    }
    log.finish()?;
    Ok(())
}

/// Writes the notes to the log and applies them to the timetable. Returns the numbers of messages
/// sent and received that have ended thereby.
fn write_notes(
    noted: &Receiver<ThreadReport>,
    log: &mut Log,
    timetable: &mut Timetable,
    wait: Duration,
) -> usize {
    let Ok(first) = noted.recv_timeout(wait) else { return 0 };
    let mut over = 0;
    for ThreadReport(what, flow, at) in std::iter::once(first).chain(noted.try_iter()) {
        log.log_event(what, flow, at.saturating_since(timetable.start));
        match what {
            "delivered" => timetable.on_delivered(flow, at),
            "completed" => timetable.on_completed(flow, at),
            _ => {}
        }
        over += 1;
    }
    if wait > Duration::ZERO {
        // Programs that show progress read the log.
        let _ = log.finish();
    }
    over
}

fn send(
    row: FlowRow,
    to: SocketAddr,
    idle: &IdleConnections,
    kernel: &KernelTcpArgs,
    notes: &Sender<ThreadReport>,
    clock: Clock,
) {
    let pooled = {
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.get_mut(&row.dst).and_then(Vec::pop)
    };
    let stream = pooled.map_or_else(|| connect(to, kernel), Ok);
    let what = match stream.and_then(|stream| transfer(&row, stream)) {
        Ok(_closed) if kernel.connection_per_message => "completed",
        Ok(stream) => {
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.entry(row.dst).or_default().push(stream);
            "completed"
        }
        Err(error) => {
            warn!(code = "message-failed", flow = row.flow, %to, %error, "message failed");
            "failed"
        }
    };
    let _ = notes.send(ThreadReport(what, row.flow, clock.now()));
}

/// Opens a socket that has its congestion control from the handshake on. Some algorithms do not
/// reset their state, such as pacing, if another replaces them.
fn open(to: SocketAddr, kernel: &KernelTcpArgs) -> io::Result<TcpStream> {
    let Some(control) = &kernel.congestion_control else { return TcpStream::connect(to) };
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_congestion(&socket, control).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("congestion control {control}: {error}"))
    })?;
    rustix::net::connect(&socket, &to)?;
    Ok(socket.into())
}

fn connect(to: SocketAddr, kernel: &KernelTcpArgs) -> io::Result<TcpStream> {
    let mut tries = 0;
    loop {
        match open(to, kernel) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused && tries < ATTEMPTS_MAX =>
            {
                tries += 1;
                thread::sleep(SLEEP_MAX);
            }
            Err(error) => return Err(error),
        }
    }
}

fn transfer(row: &FlowRow, mut stream: TcpStream) -> io::Result<TcpStream> {
    let pattern = Pattern { flow: row.flow, size: row.size() };
    stream.write_all(&[row.flow.to_be_bytes(), pattern.size.to_be_bytes()].concat())?;
    let mut chunk = vec![0; CHUNK.min(pattern.size())];
    for offset in (0..pattern.size()).step_by(chunk.len()) {
        let len = chunk.len().min(pattern.size() - offset);
        pattern.copy_to(offset, &mut chunk[..len]);
        stream.write_all(&chunk[..len])?;
    }
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

fn accept(listener: &TcpListener, notes: &Sender<ThreadReport>, clock: Clock) {
    for stream in listener.incoming().flatten() {
        let notes = notes.clone();
        thread::spawn(move || {
            // The connection ends with its peer.
            let _ = receive(stream, &notes, clock);
        });
    }
}

fn receive(mut stream: TcpStream, notes: &Sender<ThreadReport>, clock: Clock) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut chunk = vec![0; CHUNK];
    let mut expected_bytes = vec![0; CHUNK];
    loop {
        let mut word = [0; 4];
        stream.read_exact(&mut word)?;
        let flow = u32::from_be_bytes(word);
        stream.read_exact(&mut word)?;
        let pattern = Pattern { flow, size: u32::from_be_bytes(word) };
        let mut is_good = true;
        let mut got = 0;
        while got < pattern.size() {
            let most = chunk.len().min(pattern.size() - got);
            let len = stream.read(&mut chunk[..most])?;
            if len == 0 {
                return Ok(());
            }
            pattern.copy_to(got, &mut expected_bytes[..len]);
            is_good &= chunk[..len] == expected_bytes[..len];
            got += len;
        }
        let what = if is_good { "delivered" } else { "altered" };
        let _ = notes.send(ThreadReport(what, flow, clock.now()));
        stream.write_all(&[1])?;
    }
}
