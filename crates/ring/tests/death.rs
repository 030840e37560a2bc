//! Death of an application, a node or a whole process.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Testbed, TestbedConfig};
use rampmeter_ring::{
    AcceptorConfig, AttachError, Clients, Completion, Failure, ListenError, NodeGone, Outcome,
    Port, PortConfig, SubmitError,
};
use rampmeter_runtime::{Clock, ClockSource};
use rampmeter_types::NodeId;

const LONG: Option<Duration> = Some(Duration::from_secs(30));
const SERVICE: u16 = 7;
const ROLE: &str = "RAMPMETER_RING_TEST_ROLE";
const PATH: &str = "RAMPMETER_RING_TEST_PATH";

/// Starts this program as a second process with a role, and waits until it is ready.
fn process(role: &str, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::piped()) // Closes with this process, even if it is killed.
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("ready")));
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Roles of other processes, which run until they are killed.
#[test]
#[ignore = "run by other tests in processes of their own"]
fn child_process() {
    let path = std::env::var_os(PATH).unwrap();
    let ready = || {
        println!("ready");
        std::io::stdout().flush().unwrap();
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    match std::env::var(ROLE).unwrap().as_str() {
        "sender" => {
            let port = Port::attach(&path, SERVICE, PortConfig::default()).unwrap();
            for _ in 0..4 {
                port.submit(NodeId::new(1), SERVICE, &vec![1; 2 << 20]).unwrap();
            }
            ready();
            loop {
                let _ = port.wait(None).unwrap();
            }
        }
        "receiver" => {
            let port = Port::attach(&path, SERVICE, PortConfig::default()).unwrap();
            ready();
            let mut held = Vec::new();
            loop {
                held.extend(port.wait(None).unwrap());
            }
        }
        "node" => {
            // So slow that messages of 16 MiB are still in flight when it is killed.
            let config = TestbedConfig { mbps: 50, ..TestbedConfig::default() };
            let _bed = Testbed::start(Path::new(&path), &config);
            ready();
            std::thread::park();
        }
        other => panic!("no such role: {other}"),
    }
}

/// Checks that a message is delivered from one port to another.
fn works(from: &Port, to: &Port, dst: u32) {
    from.submit(NodeId::new(dst), SERVICE, b"still there").unwrap();
    loop {
        match to.wait(LONG).unwrap() {
            Some(Completion::Received(m)) if m.bytes() == b"still there" => return,
            Some(_) => {}
            None => panic!("nothing arrives"),
        }
    }
}

#[test]
fn a_killed_sender_does_not_damage_its_node_or_service() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig { mbps: 400, ..TestbedConfig::default() });
    let receiver = Port::attach(&bed.sockets[1], SERVICE, PortConfig::default()).unwrap();
    for _ in 0..3 {
        kill(process("sender", &bed.sockets[0]));
    }
    let port = Port::attach(&bed.sockets[0], SERVICE, PortConfig::default()).unwrap();
    port.submit(NodeId::new(1), SERVICE, b"still there").unwrap();
    // Messages in flight complete, from memory that their owner no longer has.
    let (mut n, mut is_there) = (0, false);
    while n < 12 || !is_there {
        let Some(Completion::Received(message)) = receiver.wait(LONG).unwrap() else {
            panic!("{n} arrived")
        };
        if message.bytes() == b"still there" {
            is_there = true;
        } else {
            assert!(message.bytes().iter().all(|&byte| byte == 1));
            assert_eq!(message.bytes().len(), 2 << 20);
            n += 1;
        }
    }
    bed.stop();
}

#[test]
fn a_killed_receiver_does_not_damage_its_node_or_service() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig { mbps: 400, ..TestbedConfig::default() });
    let sender = Port::attach(&bed.sockets[0], SERVICE, PortConfig::default()).unwrap();
    for _ in 0..3 {
        let receiver = process("receiver", &bed.sockets[1]);
        for _ in 0..2 {
            sender.submit(NodeId::new(1), SERVICE, &vec![2; 5 << 20]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
        kill(receiver);
        // Either all of it has arrived in time, or the service has no application any more.
        for _ in 0..2 {
            match sender.wait(LONG).unwrap() {
                Some(Completion::Finished { outcome, .. }) => assert!(matches!(
                    outcome,
                    Outcome::Completed | Outcome::Failed(Failure::Refused)
                )),
                other => panic!("{other:?}"),
            }
        }
    }
    let port = Port::attach(&bed.sockets[1], SERVICE, PortConfig::default()).unwrap();
    works(&sender, &port, 1);
    bed.stop();
}

/// Reads the remaining events of a port whose node has died: an outcome for each ticket, then the
/// error.
fn remains(port: &Port) -> Vec<(u64, Outcome)> {
    let mut outcomes = Vec::new();
    loop {
        match port.wait(LONG) {
            Ok(Some(Completion::Finished { ticket, outcome })) => {
                outcomes.push((ticket.0, outcome))
            }
            Ok(other) => panic!("{other:?}"),
            Err(NodeGone) => return outcomes,
        }
    }
}

#[test]
fn applications_notice_that_their_node_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let node = process("node", dir.path());
    let socket = dir.path().join("node0.sock");
    let port = Port::attach(&socket, SERVICE, PortConfig::default()).unwrap();
    let _receiver =
        Port::attach(dir.path().join("node1.sock"), SERVICE, PortConfig::default()).unwrap();
    for _ in 0..3 {
        port.submit(NodeId::new(1), SERVICE, &vec![0; 16 << 20]).unwrap();
    }
    let fd = port.fd();
    assert!(!port.arm());
    kill(node);
    let mut polled = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut polled, None), Ok(1));
    let outcomes = remains(&port);
    assert_eq!(outcomes.len(), 3);
    for (ticket, (got, outcome)) in outcomes.into_iter().enumerate() {
        assert_eq!(got, ticket as u64);
        assert!(matches!(outcome, Outcome::Failed(Failure::NodeGone)));
    }
    assert!(matches!(port.try_next(), Err(NodeGone)));
    assert_eq!(port.submit(NodeId::new(1), SERVICE, b"x"), Err(SubmitError::NodeGone(NodeGone)));
    assert_eq!(port.in_flight(), 0);
    match Port::attach(&socket, SERVICE, PortConfig::default()) {
        Err(AttachError::NoNode { .. }) => {}
        other => panic!("{other:?}"),
    }
    // The next incarnation of the node replaces the socket of the last one.
    let next = process("node", dir.path());
    assert!(Port::attach(&socket, SERVICE, PortConfig::default()).is_ok());
    kill(next);
}

#[test]
fn messages_of_a_node_that_is_stopped_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let config = TestbedConfig { mbps: 10, ..TestbedConfig::default() };
    let mut bed = Testbed::start(dir.path(), &config);
    let port = Port::attach(&bed.sockets[0], SERVICE, PortConfig::default()).unwrap();
    let _receiver = Port::attach(&bed.sockets[1], SERVICE, PortConfig::default()).unwrap();
    port.submit(NodeId::new(1), SERVICE, &vec![0; 8 << 20]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    bed.stop_one(0);
    assert_eq!(remains(&port), [(0, Outcome::Failed(Failure::Stopping))]);
    bed.stop();
    assert!(!dir.path().join("node0.sock").exists());
}

#[test]
fn a_program_that_only_polls_notices_the_death_of_its_node() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let port = Port::attach(&bed.sockets[0], SERVICE, PortConfig::default()).unwrap();
    bed.stop();
    let noticed = (0..10_000).any(|_| port.try_next().is_err());
    assert!(noticed);
}

/// The lock file is removed, as by programs that clean folders of temporary files: the socket stays
/// its node's.
#[test]
fn a_living_node_keeps_its_socket_without_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let path = &bed.sockets[0];
    std::fs::remove_file(dir.path().join("node0.sock.lock")).unwrap();
    let second = AcceptorConfig::new(path);
    match Clients::listen(second, Clock::start(ClockSource::Monotonic).unwrap()) {
        Err(ListenError::InUse { path: taken }) => assert_eq!(taken, *path),
        other => panic!("{other:?}"),
    }
    drop(Port::attach(path, SERVICE, PortConfig::default()).unwrap());
    bed.stop();
}

#[test]
fn a_socket_is_replaced_only_if_its_node_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listen = || {
        Clients::listen(AcceptorConfig::new(&path), Clock::start(ClockSource::Monotonic).unwrap())
    };
    drop(UnixListener::bind(&path).unwrap());
    let living = listen().unwrap();
    match listen() {
        Err(ListenError::InUse { path: taken }) => assert_eq!(taken, path),
        other => panic!("{other:?}"),
    }
    drop(living);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    match listen() {
        Err(ListenError::NotASocket { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}
