//! Connections to the acceptor: foreign programs, and programs of several users.

mod common;

use std::fs::{self, Permissions};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::{Testbed, TestbedConfig};
use rampmeter_ring::handshake::{AttachReply, MAPPED, Request};
use rampmeter_ring::{
    AllowedUsers, AttachError, Completion, Layout, Limits, Port, PortConfig, Services,
};
use rampmeter_types::NodeId;
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType, connect, recv, recvmsg, send, socket,
};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

fn visit(path: &Path) -> OwnedFd {
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(10))).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn say(socket: &OwnedFd, bytes: &[u8]) -> Option<AttachReply> {
    send(socket, bytes, SendFlags::NOSIGNAL).unwrap();
    let mut answer = [0; AttachReply::LEN_MAX];
    let (got, _) = recv(socket, &mut answer, RecvFlags::empty()).unwrap_or((0, 0));
    AttachReply::decode(&answer[..got])
}

const SMALL: PortConfig = PortConfig { depth: 1, send: 4_096, receive: 4_096 };

/// Returns the user id of this process.
fn me() -> u32 {
    rustix::process::getuid().as_raw()
}

/// An unprivileged user.
const OTHER: u32 = 65_534;

/// Runs `act` on a thread that belongs to [`OTHER`]; `None` if this user cannot become others.
#[expect(clippy::print_stdout, reason = "says what was not tested")]
fn as_other<R: Send>(bed: &Testbed, act: impl FnOnce(&Path) -> R + Send) -> Option<R> {
    if me() != 0 {
        println!("skipped: only root can become another user");
        return None;
    }
    let path = bed.sockets[0].as_path();
    let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open(path.parent().unwrap(), 0o755);
    open(path, 0o666);
    let run = || {
        let (uid, gid) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        set_thread_res_gid(gid, gid, gid).unwrap();
        set_thread_res_uid(uid, uid, uid).unwrap();
        act(path)
    };
    thread::scope(|scope| Some(scope.spawn(run).join().unwrap()))
}

fn refusal(path: &Path, service: u16, config: PortConfig) -> String {
    match Port::attach(path, service, config) {
        Err(AttachError::Refused { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn connections_that_one_user_holds_open_do_not_shut_out_others() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let silent = as_other(&bed, |path| {
        let silent: Vec<OwnedFd> = (0..64).map(|_| visit(path)).collect();
        let mut answer = [0; AttachReply::LEN_MAX];
        let (got, _) = recv(&silent[0], &mut answer, RecvFlags::empty()).unwrap();
        let refused = AttachReply::decode(&answer[..got]);
        let expected = "user 65534 has 8 connections without a request already";
        assert_eq!(refused, Some(AttachReply::Refused { code: 11, text: expected.into() }));
        // Other programs of the user are admitted.
        for service in 100..199 {
            drop(Port::attach(path, service, SMALL).unwrap());
        }
        silent
    });
    for service in 0..99 {
        drop(Port::attach(&bed.sockets[0], service, SMALL).unwrap());
    }
    drop(silent);
    bed.stop();
}

#[test]
fn attachments_are_limited_by_user() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { clients_per_user: 2, ..TestbedConfig::default().limits };
    let bed = Testbed::start(dir.path(), &TestbedConfig { limits, ..TestbedConfig::default() });
    let attach = |path: &Path, service| Port::attach(path, service, SMALL).unwrap();
    let fill = |path: &Path, uid: u32, service: u16| {
        let ports = [attach(path, service), attach(path, service + 1)];
        let expected = format!("user {uid} has 2 applications attached already");
        assert_eq!(refusal(path, service + 2, SMALL), expected);
        ports
    };
    // Attachments of one user do not count for another.
    let theirs = as_other(&bed, |path| fill(path, OTHER, 1));
    let [first, _second] = fill(&bed.sockets[0], me(), 10);
    // Attachments that have ended no longer count.
    drop(first);
    drop(attach(&bed.sockets[0], 21));
    drop(theirs);
    bed.stop();
}

/// Returns the bytes that a port of [`SMALL`] shares with its node.
fn small() -> u64 {
    Layout::new(SMALL.depth, SMALL.send, SMALL.receive).unwrap().total()
}

#[test]
fn memory_is_limited_by_user() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { memory_per_user: small() * 5 / 2, ..TestbedConfig::default().limits };
    let bed = Testbed::start(dir.path(), &TestbedConfig { limits, ..TestbedConfig::default() });
    let fill = |path: &Path, uid: u32, service: u16| {
        let ports = [0, 1].map(|n| Port::attach(path, service + n, SMALL).unwrap());
        let (left, requested_bytes) = (small() * 5 / 2 - 2 * small(), small());
        let has = format!("which user {uid} has available");
        let expected = format!("expected at most {left} bytes, {has}, got {requested_bytes}");
        assert_eq!(refusal(path, service + 2, SMALL), expected);
        ports
    };
    let theirs = as_other(&bed, |path| fill(path, OTHER, 1));
    let [first, _second] = fill(&bed.sockets[0], me(), 10);
    // A program that restarts gets the same resources.
    let mut port = first;
    for service in 20..40 {
        drop(port);
        port = Port::attach(&bed.sockets[0], service, SMALL).unwrap();
    }
    drop(theirs);
    bed.stop();
}

#[test]
fn memory_of_all_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { memory_max: small() * 5 / 2, ..TestbedConfig::default().limits };
    let bed = Testbed::start(dir.path(), &TestbedConfig { limits, ..TestbedConfig::default() });
    let theirs = as_other(&bed, |path| Port::attach(path, 1, SMALL).unwrap());
    let path = &bed.sockets[0];
    let n = if theirs.is_some() { 1 } else { 2 };
    let _own: Vec<_> = (0..n).map(|n| Port::attach(path, 10 + n, SMALL).unwrap()).collect();
    let (available, requested) = (small() / 2, small());
    let expected = format!(
        "expected at most {available} bytes, which the node has available, got {requested}"
    );
    assert_eq!(refusal(path, 20, SMALL), expected);
    drop(theirs);
    bed.stop();
}

#[test]
fn services_accept_only_their_allowed_users() {
    let dir = tempfile::tempdir().unwrap();
    let for_user = |uid| AllowedUsers { users: [uid].into(), groups: [].into() };
    let for_group = AllowedUsers { users: [].into(), groups: [OTHER].into() };
    let of_all = [(1, for_user(me())), (2, for_user(OTHER)), (3, for_group)];
    let services = Services(of_all.into());
    let bed = Testbed::start(dir.path(), &TestbedConfig { services, ..TestbedConfig::default() });
    let path = &bed.sockets[0];
    let expected = format!("user {} may not have service 2", me());
    assert_eq!(refusal(path, 2, SMALL), expected);
    for service in [1, 4] {
        drop(Port::attach(path, service, SMALL).unwrap());
    }
    as_other(&bed, |path| {
        assert_eq!(refusal(path, 1, SMALL), "user 65534 may not have service 1");
        for service in [2, 3, 4] {
            drop(Port::attach(path, service, SMALL).unwrap());
        }
    });
    bed.stop();
}

#[test]
fn unauthorised_clients_get_a_reason_and_applications_continue() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let path = &bed.sockets[0];
    let port = Port::attach(path, 1, PortConfig::default()).unwrap();
    let request = Request { service: 2, depth: 1, send: 4_096, receive: 4_096 };
    let good = request.encode();
    let mut wrong_version = good;
    wrong_version[8] = 9;
    let with = |request: Request| request.encode().to_vec();
    let cases: [(Vec<u8>, u32); 8] = [
        (b"GET / HTTP/1.1".to_vec(), 1),
        (good[..39].to_vec(), 1),
        ([&good[..], &[0]].concat(), 1),
        (vec![0xff; 1_000], 1),
        (wrong_version.to_vec(), 2),
        (with(Request { depth: 0, ..request }), 3),
        (with(Request { send: u64::MAX, receive: u64::MAX, ..request }), 4),
        (with(Request { service: 1, ..request }), 5),
    ];
    for (bytes, expected) in cases {
        match say(&visit(path), &bytes) {
            Some(AttachReply::Refused { code, text }) => assert_eq!(code, expected, "{text}"),
            other => panic!("{other:?}"),
        }
    }
    // Connections without a request are not waited for; connections with too many bytes are closed.
    let silent: Vec<OwnedFd> = (0..40).map(|_| visit(path)).collect();
    drop(silent);
    let talker = visit(path);
    assert!(matches!(say(&talker, &good), Some(AttachReply::Granted(_))));
    send(&talker, b"more", SendFlags::NOSIGNAL).unwrap();
    assert!(matches!(recv(&talker, &mut [0; 8], RecvFlags::empty()), Ok((0, _)) | Err(_)));
    drop(Port::attach(path, 2, PortConfig::default()).unwrap());
    port.submit(NodeId::new(0), 1, b"to myself").unwrap();
    match port.wait(Some(Duration::from_secs(10))).unwrap() {
        Some(Completion::Received(message)) => assert_eq!(message.bytes(), b"to myself"),
        other => panic!("{other:?}"),
    }
    bed.stop();
}

/// Receives an answer of the node, and the memory attached to it.
fn receive_memory(socket: &OwnedFd) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut answer = [0; AttachReply::LEN_MAX];
    let mut into = [IoSliceMut::new(&mut answer)];
    recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
    let rights = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    rights.unwrap()
}

/// While the system removes the pages of a hole, the node would wait for them.
#[test]
fn no_program_removes_memory_that_the_node_uses() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let request = Request { service: 2, depth: 1, send: 4_096, receive: 4_096 };
    let punch = |memory: &OwnedFd| {
        fallocate(memory, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4_096)
    };
    let visitor = visit(&bed.sockets[0]);
    send(&visitor, &request.encode(), SendFlags::NOSIGNAL).unwrap();
    let memory = receive_memory(&visitor);
    // The node accesses it after it is sealed.
    punch(&memory).unwrap();
    send(&visitor, &MAPPED, SendFlags::NOSIGNAL).unwrap();
    let (got, _) = recv(&visitor, &mut [0; 8], RecvFlags::empty()).unwrap();
    assert_eq!(got, 1);
    assert_eq!(punch(&memory), Err(Errno::PERM));
    // An application that prevents the seal is disconnected.
    let visitor = visit(&bed.sockets[0]);
    let request = Request { service: 3, ..request };
    send(&visitor, &request.encode(), SendFlags::NOSIGNAL).unwrap();
    let memory = receive_memory(&visitor);
    fcntl_add_seals(&memory, SealFlags::SEAL).unwrap();
    send(&visitor, &MAPPED, SendFlags::NOSIGNAL).unwrap();
    assert!(matches!(recv(&visitor, &mut [0; 8], RecvFlags::empty()), Ok((0, _)) | Err(_)));
    bed.stop();
}

#[test]
fn messages_within_a_node_carry_the_user_of_their_sender() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let here = Port::attach(&bed.sockets[0], 1, SMALL).unwrap();
    let there = Port::attach(&bed.sockets[1], 1, SMALL).unwrap();
    let send = |port: &Port| port.submit(NodeId::new(0), 1, b"x").unwrap();
    let received = || loop {
        match here.wait(Some(Duration::from_secs(20))).unwrap() {
            Some(Completion::Received(message)) => return (message.from.get(), message.uid),
            Some(Completion::Finished { .. }) => {}
            None => panic!("no message"),
        }
    };
    send(&here);
    assert_eq!(received(), (0, Some(me())));
    send(&there);
    assert_eq!(received(), (1, None));
    as_other(&bed, |path| {
        let port = Port::attach(path, 2, SMALL).unwrap();
        send(&port);
        assert_eq!(received(), (0, Some(OTHER)));
        drop(port);
    });
    bed.stop();
}
