//! Nothing outside a node stops it: unread logs, files and names that are not available, idle
//! clients, and settings that differ.

#![allow(clippy::disallowed_methods, reason = "nodes run on the real clock")]
#![allow(clippy::print_stdout, reason = "tests say why they are skipped")]

mod bed;
mod settings;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bed::{SERVICE, Testbed, wait_until};
use rampmeter_ring::{Port, PortConfig};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a full pipe, and its read end, which must stay open.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4_096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

/// Standard error is a full disk, a pipe whose reader has ended, or a pipe that nobody reads. The
/// node still accepts packets and programs, and ends at SIGTERM.
#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let full_disk = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, unread) = full_pipe();
    let (closed, broken) = std::io::pipe().unwrap();
    drop(closed);
    let logs: [Stdio; 3] = [full_disk().into(), broken.into(), unread.into()];
    for log in logs {
        let mut bed = Testbed::new("");
        bed.start_with(0, log);
        bed.start(1);
        let (a, b) = (bed.port(0), bed.port(1));
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for n in 0..50u8 {
            stranger.send_to(&[n; 40], bed.address(0)).unwrap();
        }
        bed::message(&a, &b, b"before");
        // Each causes a line.
        for _ in 0..50 {
            assert!(Port::attach(bed.socket(0), SERVICE, PortConfig::default()).is_err());
        }
        std::thread::sleep(SECOND * 5 / 4);
        stranger.send_to(b"more", bed.address(0)).unwrap();
        bed::message(&a, &b, b"after");
        assert_eq!(bed.stop(0), Some(0));
    }
    drop(reader);
}

/// A program that is refused repeatedly does not fill the disk. Log files have no colours.
#[test]
fn lines_that_outsiders_cause_are_limited() {
    let mut bed = Testbed::new("");
    bed.start(0);
    let _port = bed.port(0);
    for _ in 0..2_000 {
        assert!(Port::attach(bed.socket(0), SERVICE, PortConfig::default()).is_err());
    }
    assert_eq!(bed.stop(0), Some(0));
    let log = bed.log(0);
    let n = log.lines().filter(|line| line.contains("refused to attach a program")).count();
    assert!((100..110).contains(&n), "{n} lines");
    assert!(!log.contains('\x1b'));
}

/// A slow read of a configuration: a pipe that no process writes to yet.
#[test]
fn a_slow_reload_does_not_hold_up_the_node() {
    let mut bed = Testbed::new("");
    bed.start(0);
    bed.start(1);
    let (a, b) = (bed.port(0), bed.port(1));
    bed::message(&a, &b, b"first");
    let file = bed.file(0);
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    bed.signal(0, "HUP");
    let ends = Instant::now() + SECOND * 2;
    while Instant::now() < ends {
        let before = Instant::now();
        bed::message(&a, &b, b"meanwhile");
        assert!(before.elapsed() < SECOND / 2, "{:?}", before.elapsed());
    }
    assert!(!bed.log(0).contains("configuration reloaded"));
    bed.signal(0, "HUP");
    bed.wait_for_line(0, "reload deferred");
    fs::write(&file, text).unwrap();
    bed.wait_for_line(0, "configuration reloaded");
}

/// A limit of file sizes costs lines of the log and memory for programs, but ends no node.
#[test]
fn a_limit_of_file_sizes_ends_no_node() {
    let mut bed = Testbed::new("");
    bed.start(0);
    bed.start(1);
    let (a, b) = (bed.port(0), bed.port(1));
    let pid = format!("--pid={}", bed.id(0));
    assert!(Command::new("prlimit").args([&pid, "--fsize=64:64"]).status().unwrap().success());
    for _ in 0..3 {
        // Each causes a line, and requests memory.
        assert!(Port::attach(bed.socket(0), SERVICE + 1, PortConfig::default()).is_err());
    }
    bed::message(&a, &b, b"after");
    assert_eq!(bed.stop(0), Some(0));
}

/// A reload changes the access to services: a user without access any more is disconnected.
#[test]
fn a_reload_changes_the_rights_to_services() {
    let own = rustix::process::geteuid().as_raw();
    let rights = |uid: u32| format!("[[service]]\nid = {SERVICE}\nusers = [{uid}]\n");
    let mut bed = Testbed::new(&rights(own));
    bed.start(0);
    let port = bed.port(0);
    let reload = |bed: &Testbed, uid| {
        let n = bed.log(0).matches("configuration reloaded").count();
        bed.configure(0, &rights(uid));
        bed.signal(0, "HUP");
        wait_until(|| bed.log(0).matches("configuration reloaded").count() > n);
    };
    reload(&bed, own + 1);
    let refused = Port::attach(bed.socket(0), SERVICE, PortConfig::default()).unwrap_err();
    assert!(refused.to_string().contains(&format!("may not have service {SERVICE}")), "{refused}");
    wait_until(|| port.wait(Some(Duration::from_millis(10))).is_err());
    reload(&bed, own);
    drop(port);
    let _port = bed.port(0);
}

/// Clients at `metrics` with half of a request block neither Prometheus nor programs.
#[test]
fn incomplete_requests_for_metrics_do_not_block_others() {
    let mut bed = Testbed::new("");
    let address = format!("127.0.0.1:{}", bed::free_port());
    bed.add_to_node(0, &format!("metrics-address = \"{address}\""));
    bed.start(0);
    let scrape = || {
        let mut stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(SECOND * 5))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    };
    wait_until(|| scrape().is_ok());
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", bed.id(0))).unwrap().count();
    let before = descriptors();
    let half: Vec<_> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let _ = stream.write_all(b"GET /met");
            stream
        })
        .collect();
    assert!(scrape().unwrap().contains("rampd_packets_sent_total"));
    // The server keeps 32 of 400 clients, and one more while it accepts. The node has others.
    let held = descriptors().saturating_sub(before);
    assert!(held <= 48, "{held} more than {before}");
    drop(bed.port(0));
    drop(half);
    assert!(scrape().unwrap().contains("rampd_log_lines_dropped_total"));
}

/// A process of 64 descriptors with idle clients at `metrics`. Programs attach, and are refused at
/// once when descriptors are exhausted; `rampd status` is answered.
#[test]
fn a_lack_of_descriptors_is_reported_at_once() {
    let mut bed = Testbed::new("");
    let address = format!("127.0.0.1:{}", bed::free_port());
    bed.add_to_node(0, &format!("metrics-address = \"{address}\""));
    bed.start(0);
    let first = bed.port(0);
    let pid = format!("--pid={}", bed.id(0));
    assert!(Command::new("prlimit").args([&pid, "--nofile=64:64"]).status().unwrap().success());
    let half: Vec<_> = (0..64).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let before = Instant::now();
    assert!(bed.status(0).contains("peers"));
    assert!(before.elapsed() < SECOND * 2, "{:?}", before.elapsed());
    let (mut ports, mut refusals) = (Vec::new(), Vec::new());
    for service in 100..140 {
        let before = Instant::now();
        match Port::attach(bed.socket(0), service, PortConfig::default()) {
            Ok(port) => ports.push(port),
            Err(error) => refusals.push(error.to_string()),
        }
        assert!(before.elapsed() < SECOND * 2, "{:?}: {refusals:?}", before.elapsed());
    }
    assert!(ports.len() >= 2, "{}: {refusals:?}", ports.len());
    assert!(!refusals.is_empty() && refusals.iter().all(|text| text.contains("Too many open")));
    drop((first, ports, half));
}

/// The service manager is notified that the node is alive, as long as the node's own thread runs.
#[test]
fn the_watchdog_monitors_the_thread_of_the_node() {
    let mut bed = Testbed::new("");
    let path = bed.folder().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SECOND * 10)).unwrap();
    bed.environment("NOTIFY_SOCKET", path.to_str().unwrap());
    bed.environment("WATCHDOG_USEC", "8000000");
    bed.start(0);
    let mut lines_read = Vec::new();
    let mut bytes = [0; 1_000];
    while !lines_read.iter().any(|text: &String| text.contains("WATCHDOG=1")) {
        let n = socket.recv(&mut bytes).unwrap();
        lines_read.push(String::from_utf8_lossy(&bytes[..n]).into_owned());
    }
    assert!(lines_read[0].contains("READY=1"), "{lines_read:?}");
}

/// A path that narrows while nodes run, as the node's own interface reports: bulk traffic continues
/// within a second.
#[test]
fn a_path_that_narrows_is_found_within_a_second() {
    let Some(mut bed) = Testbed::in_namespace("mtu = 9000") else { return };
    bed.start(0);
    bed.start(1);
    let (a, b) = (bed.port(0), bed.port(1));
    let bulk = vec![5; 400_000];
    bed::message(&a, &b, &bulk);
    bed.ip("link set lo mtu 1400");
    let before = Instant::now();
    bed::message(&a, &b, &bulk);
    assert!(before.elapsed() < SECOND, "{:?}", before.elapsed());
    bed.wait_for_line(0, "shorter packets than network.mtu");
}
