//! Messages through rings and two nodes.

mod common;

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use common::{Testbed, TestbedConfig};
use rampmeter_ring::{
    AttachError, Completion, Failure, Limits, Options, Outcome, Port, PortConfig, SubmitError,
    Ticket,
};
use rampmeter_types::NodeId;

const LONG: Option<Duration> = Some(Duration::from_secs(30));
const SERVICE: u16 = 7;

fn node(n: u32) -> NodeId {
    NodeId::new(n)
}

fn bed() -> (tempfile::TempDir, Testbed) {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    (dir, bed)
}

fn attach(bed: &Testbed, n: usize, service: u16) -> Port {
    Port::attach(&bed.sockets[n], service, PortConfig::default()).unwrap()
}

fn outcome(port: &Port) -> (Ticket, Outcome) {
    loop {
        match port.wait(LONG).unwrap() {
            Some(Completion::Finished { ticket, outcome }) => return (ticket, outcome),
            Some(Completion::Received(_)) => {}
            None => panic!("no outcome"),
        }
    }
}

/// Returns bytes that follow from a number.
fn pattern(n: u64, size: usize) -> Vec<u8> {
    let mut word = n;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend((word >> 11).to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

#[test]
fn messages_of_all_sizes_arrive_unaltered() {
    let (_dir, bed) = bed();
    let config = PortConfig { send: 80 << 20, receive: 80 << 20, ..PortConfig::default() };
    let a = Port::attach(&bed.sockets[0], SERVICE, config).unwrap();
    let b = Port::attach(&bed.sockets[1], SERVICE, config).unwrap();
    for (n, size) in [1, 2, 63, 64, 65, 1_380, 1_381, 100_000, 64 << 20].into_iter().enumerate() {
        let bytes = pattern(n as u64, size);
        let ticket = a.submit(node(1), SERVICE, &bytes).unwrap().ticket;
        let Some(Completion::Received(message)) = b.wait(LONG).unwrap() else { panic!("{size}") };
        assert_eq!(message.from, node(0));
        assert!(message.bytes() == bytes, "{size} bytes are what they were");
        assert_eq!(outcome(&a), (ticket, Outcome::Completed));
    }
    for stats in bed.stop() {
        assert_eq!((stats.malformed_packets, stats.inconsistent_messages), (0, 0));
    }
}

#[test]
fn every_message_arrives_once_and_has_one_outcome() {
    const N: u64 = 3_000;
    const DEPTH: u32 = 64;
    let (_dir, bed) = bed();
    let config = PortConfig { depth: DEPTH, ..PortConfig::default() };
    let ports = [0, 1].map(|n| Port::attach(&bed.sockets[n], SERVICE, config).unwrap());
    let seen = thread::scope(|scope| {
        let threads = [0usize, 1].map(|me| {
            let port = &ports[me];
            scope.spawn(move || {
                let (mut sent, mut arrived) = (0u64, BTreeMap::new());
                let mut outcomes = BTreeMap::new();
                while outcomes.len() < N as usize || arrived.len() < N as usize {
                    if sent < N {
                        let size = 8 + (sent as usize * 37) % 4_000;
                        let mut bytes = pattern(sent, size);
                        bytes[..8].copy_from_slice(&sent.to_le_bytes());
                        match port.submit(node(1 - me as u32), SERVICE, &bytes) {
                            Ok(submitted) => {
                                assert_eq!(submitted.ticket, Ticket(sent));
                                sent += 1;
                                continue;
                            }
                            Err(error) => assert_eq!(error, SubmitError::Full { depth: DEPTH }),
                        }
                    }
                    match port.wait(LONG).unwrap() {
                        Some(Completion::Finished { ticket, outcome }) => {
                            assert_eq!(outcomes.insert(ticket, outcome), None);
                        }
                        Some(Completion::Received(message)) => {
                            let bytes = message.bytes();
                            let n = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                            assert!(bytes[8..] == pattern(n, bytes.len())[8..]);
                            *arrived.entry(n).or_insert(0) += 1;
                        }
                        None => {
                            let failed =
                                outcomes.values().filter(|o| **o != Outcome::Completed).count();
                            let ended = outcomes.len();
                            panic!("{ended} ended, {failed} failed, {} came", arrived.len());
                        }
                    }
                }
                assert_eq!(port.in_flight(), 0);
                (arrived, outcomes)
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    for (arrived, outcomes) in seen {
        assert!(arrived.into_iter().eq((0..N).map(|n| (n, 1))));
        assert!(outcomes.into_values().all(|outcome| outcome == Outcome::Completed));
    }
    bed.stop();
}

#[test]
fn undeliverable_messages_of_programs_are_refused_or_fail_with_a_reason() {
    let (_dir, bed) = bed();
    let small = PortConfig { depth: 4, send: 65_536, receive: 49_152 };
    let a = Port::attach(&bed.sockets[0], SERVICE, small).unwrap();
    let _b = Port::attach(&bed.sockets[1], SERVICE, small).unwrap();
    let try_one = |dst, service, size| {
        let ticket = a.submit(node(dst), service, &vec![1; size]).unwrap().ticket;
        let (ended, outcome) = outcome(&a);
        assert_eq!(ended, ticket);
        outcome
    };
    assert_eq!(try_one(1, SERVICE, 1), Outcome::Completed);
    assert_eq!(try_one(0, SERVICE, 30_000), Outcome::Completed);
    assert_eq!(try_one(1, SERVICE, 0), Outcome::Failed(Failure::BadSize));
    assert_eq!(try_one(5, SERVICE, 10), Outcome::Failed(Failure::UnknownPeer));
    assert_eq!(try_one(1, 99, 10), Outcome::Failed(Failure::Refused));
    assert_eq!(try_one(1, SERVICE, 60_000), Outcome::Failed(Failure::Refused));
    let too_long = SubmitError::TooLong { size: 65_537, max: 65_536 };
    assert_eq!(a.submit(node(1), SERVICE, &vec![1; 65_537]), Err(too_long));
    let held = a.alloc(65_536).unwrap();
    assert_eq!(a.submit(node(1), SERVICE, &[1]), Err(SubmitError::NoRoom { size: 1 }));
    drop(held);
    for _ in 0..4 {
        a.submit(node(1), SERVICE, &[1; 10_000]).unwrap();
    }
    assert_eq!(a.submit(node(1), SERVICE, &[1]), Err(SubmitError::Full { depth: 4 }));
    bed.stop();
}

/// An application that holds received messages makes its senders wait. After it releases them,
/// everything arrives.
#[test]
fn a_receiver_that_holds_messages_pauses_its_senders() {
    let (_dir, bed) = bed();
    let a = attach(&bed, 0, SERVICE);
    let config = PortConfig { receive: 102_400, ..PortConfig::default() };
    let b = Port::attach(&bed.sockets[1], SERVICE, config).unwrap();
    for n in 0..20 {
        a.submit(node(1), SERVICE, &pattern(n, 20_000)).unwrap();
    }
    let mut held = Vec::new();
    while held.len() < 5 {
        match b.wait(LONG).unwrap() {
            Some(Completion::Received(message)) => held.push(message),
            other => panic!("{other:?}"),
        }
    }
    assert!(b.wait(Some(Duration::from_millis(200))).unwrap().is_none());
    let mut n_held = held.len();
    drop(held);
    while n_held < 20 {
        match b.wait(LONG).unwrap() {
            Some(Completion::Received(message)) => {
                assert_eq!(message.bytes().len(), 20_000);
                n_held += 1;
            }
            other => panic!("{other:?} after {n_held}"),
        }
    }
    let completed = (0..20).filter(|_| outcome(&a).1 == Outcome::Completed).count();
    assert_eq!(completed, 20);
    assert!(bed.stop()[1].no_memory_packets > 0);
}

#[test]
fn buffers_are_sent_without_a_copy_and_with_their_options() {
    let (_dir, bed) = bed();
    let (a, b) = (attach(&bed, 0, SERVICE), attach(&bed, 1, SERVICE));
    let mut buffer = a.alloc(5_000).unwrap();
    buffer.bytes_mut().copy_from_slice(&pattern(1, 5_000));
    let options = Options { deadline: Some(Duration::from_millis(5)), tenant: 3 };
    a.submit_buffer(node(1), SERVICE, buffer, options).unwrap();
    let Some(Completion::Received(message)) = b.wait(LONG).unwrap() else { panic!() };
    assert!(message.bytes() == pattern(1, 5_000));
    // A message may outlive its port.
    drop(b);
    assert!(message.bytes() == pattern(1, 5_000));
    assert_eq!(outcome(&a).1, Outcome::Completed);
    bed.stop();
}

#[test]
fn a_process_has_a_port_for_each_service_and_a_service_one_port() {
    let (_dir, bed) = bed();
    let a = attach(&bed, 0, 1);
    let ports = [attach(&bed, 1, 1), attach(&bed, 1, 2)];
    match Port::attach(&bed.sockets[1], 2, PortConfig::default()) {
        Err(AttachError::Refused { code: 5, text }) => assert_eq!(text, "service 2 is taken"),
        other => panic!("{other:?}"),
    }
    for (service, port) in [1, 2].into_iter().zip(&ports) {
        a.submit(node(1), service, &[service as u8; 9]).unwrap();
        let Some(Completion::Received(message)) = port.wait(LONG).unwrap() else { panic!() };
        assert_eq!(message.bytes(), [service as u8; 9]);
    }
    drop(ports);
    // Resources of a closed port are available at once, repeatedly.
    for n in 0..50 {
        let port = attach(&bed, 1, 2);
        a.submit(node(1), 2, &[n]).unwrap();
        let Some(Completion::Received(message)) = port.wait(LONG).unwrap() else { panic!() };
        assert_eq!(message.bytes(), [n]);
    }
    bed.stop();
}

#[test]
fn refusals_by_limits_name_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { clients_max: 2, arena_max: 1 << 20, ..Limits::default() };
    let config = TestbedConfig { limits, ..TestbedConfig::default() };
    let bed = Testbed::start(dir.path(), &config);
    let refusal = |service, config| match Port::attach(&bed.sockets[0], service, config) {
        Err(AttachError::Refused { text, .. }) => text,
        other => panic!("{other:?}"),
    };
    let small = PortConfig { depth: 1, send: 4_096, receive: 4_096 };
    let large = PortConfig { send: 1 << 20, ..small };
    assert_eq!(refusal(1, large), "expected at most 1048576 bytes for messages, got 1052672");
    let deep = PortConfig { depth: 1 << 20, ..small };
    assert_eq!(refusal(1, deep), "expected a depth of 1 to 65536 messages, got 1048576");
    let _ports = [1, 2].map(|n| Port::attach(&bed.sockets[0], n, small).unwrap());
    assert_eq!(refusal(3, small), "2 applications are attached already");
    bed.stop();
    match Port::attach(dir.path().join("none"), 1, small) {
        Err(AttachError::NoNode { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Four threads wait at one port: each message is returned to one thread, and none is lost.
#[test]
fn threads_share_a_port() {
    const N: u64 = 2_000;
    let (_dir, bed) = bed();
    let (a, b) = (attach(&bed, 0, SERVICE), attach(&bed, 1, SERVICE));
    let (a, b) = (&a, &b);
    thread::scope(|scope| {
        let receivers = [(); 4].map(|()| {
            scope.spawn(move || {
                let mut n = 0;
                loop {
                    match b.wait(LONG).unwrap() {
                        Some(Completion::Received(message)) if message.bytes() == b"end" => {
                            return n;
                        }
                        Some(Completion::Received(_)) => n += 1,
                        other => panic!("{other:?}"),
                    }
                }
            })
        });
        let senders = [(); 2].map(|()| {
            scope.spawn(move || {
                for _ in 0..N / 2 {
                    while a.submit(node(1), SERVICE, &[0; 100]).is_err() {
                        assert_eq!(outcome(a).1, Outcome::Completed);
                    }
                }
            })
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        while a.in_flight() > 0 {
            outcome(a);
        }
        (0..4).for_each(|_| assert!(a.submit(node(1), SERVICE, b"end").is_ok()));
        let got: u64 = receivers.map(|receiver| receiver.join().unwrap()).iter().sum();
        assert_eq!(got, N);
    });
    bed.stop();
}
