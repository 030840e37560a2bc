//! What comes to the door and is no application.

mod common;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use common::{Bed, BedConfig};
use rampmeter_core::NodeId;
use rampmeter_ring::handshake::{Answer, Request};
use rampmeter_ring::{Completion, Port, PortConfig};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};

fn visit(path: &Path) -> OwnedFd {
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(10))).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn say(socket: &OwnedFd, bytes: &[u8]) -> Option<Answer> {
    send(socket, bytes, SendFlags::NOSIGNAL).unwrap();
    let mut answer = [0; Answer::LEN_MAX];
    let (got, _) = recv(socket, &mut answer, RecvFlags::empty()).unwrap_or((0, 0));
    Answer::decode(&answer[..got])
}

#[test]
fn strangers_get_a_reason_and_applications_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Bed::start(dir.path(), &BedConfig::default());
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
            Some(Answer::Refused { code, text }) => assert_eq!(code, expected, "{text}"),
            other => panic!("{other:?}"),
        }
    }
    // Who says nothing is not waited for, and who says more than there is to say is sent away.
    let silent: Vec<OwnedFd> = (0..40).map(|_| visit(path)).collect();
    drop(silent);
    let talker = visit(path);
    assert!(matches!(say(&talker, &good), Some(Answer::Granted(_))));
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
