//! Unmodified programs with the library loaded: every byte arrives, for every way of sending and
//! every fault of agent and controller; and the controller decides.

#![allow(clippy::disallowed_methods, reason = "programs run on the real clock")]
#![allow(clippy::print_stdout, reason = "tests say why they are skipped")]

mod host;

use std::thread;
use std::time::{Duration, Instant};

use host::{Host, Receiver, TEST_TIMEOUT, finish, has_python};

const MIB: usize = 1 << 20;

/// Sends in some way, and checks the data that arrive on `streams` connections.
fn all_arrives(way: &str, streams: usize) {
    if !has_python() {
        return;
    }
    let mut host = Host::started(400, "");
    let receiver = Receiver::new(&host);
    let readers: Vec<_> = (0..streams).map(|_| receiver.read()).collect();
    finish(host.send(way, &receiver, 2 * MIB));
    for reader in readers {
        assert_eq!(reader.join().unwrap().0, 2 * MIB);
    }
    assert!(host.counted("scheduled") >= streams as u64, "the controller has been asked");
}

macro_rules! ways {
    ($($name:ident: $way:literal, $streams:literal;)*) => {
        $(#[test]
        fn $name() {
            all_arrives($way, $streams);
        }
        )*
    };
}

ways! {
    a_call_that_blocks: "blocking", 1;
    many_calls: "pieces", 1;
    writev: "vectors", 1;
    sendmsg: "messages", 1;
    sendfile: "files", 1;
    poll: "poll", 1;
    select: "select", 1;
    epoll_by_level: "epoll", 1;
    epoll_by_edge: "epoll-edge", 1;
    epoll_one_shot: "epoll-once", 1;
    epoll_registered_before: "epoll-before", 1;
    threads: "threads", 4;
    fork: "forks", 1;
    exec: "executes", 1;
    half_closed: "half-closes", 1;
}

/// A program that has disabled system calls (seccomp) sends without a schedule. System calls of the
/// library do not end it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_in_a_sandbox_continues() {
    if !has_python() {
        return;
    }
    let host = Host::started(400, "");
    let receiver = Receiver::new(&host);
    let reader = receiver.read();
    finish(host.send("sandboxed", &receiver, 2 * MIB));
    assert_eq!(reader.join().unwrap().0, 2 * MIB);
}

/// State of one connection must not be used for the next one with its number.
#[test]
fn consecutive_connections_deliver_all_bytes() {
    if !has_python() {
        return;
    }
    let mut host = Host::started(400, "");
    let receiver = Receiver::new(&host);
    let readers: Vec<_> = (0..20).map(|_| receiver.read()).collect();
    finish(host.send("in-turn", &receiver, 100_000));
    for reader in readers {
        assert_eq!(reader.join().unwrap().0, 100_000);
    }
    assert_eq!(host.counted("scheduled"), 20);
}

/// Small messages, of ten packets, never cause a request.
#[test]
fn messages_within_the_threshold_are_sent_at_once() {
    if !has_python() {
        return;
    }
    let mut host = Host::started(400, "");
    let receiver = Receiver::new(&host);
    let reader = receiver.read();
    finish(host.send("blocking", &receiver, 13_900));
    assert_eq!(reader.join().unwrap().0, 13_900);
    assert_eq!(host.counted("scheduled"), 0);
}

/// The kernel paces granted bursts.
#[test]
fn the_granted_rate_is_kept() {
    if !has_python() {
        return;
    }
    let host = Host::started(40, "");
    let receiver = Receiver::new(&host);
    let before = Instant::now();
    let reader = receiver.read();
    finish(host.send("blocking", &receiver, 2 * MIB));
    let took = reader.join().unwrap().1 - before;
    // 40 Mbit/s of frames: 2 MiB of segments take 440 ms.
    assert!(took > Duration::from_millis(350), "{took:?}");
}

#[test]
fn a_stalled_receiver_does_not_slow_other_flows() {
    if !has_python() {
        return;
    }
    let host = Host::started(400, "");
    let receiver = Receiver::new(&host);
    let silent = host.send("times-out", &receiver, MIB);
    let _unread = receiver.accept();
    thread::sleep(Duration::from_millis(300));
    let reader = receiver.read();
    finish(host.send("blocking", &receiver, MIB));
    assert_eq!(reader.join().unwrap().0, MIB);
    finish(silent);
}

/// Without agent, controller or both, programs send as usual.
#[test]
fn programs_continue_without_an_agent() {
    if !has_python() {
        return;
    }
    let host = Host::new(40, "");
    for way in ["blocking", "poll", "epoll-edge"] {
        let receiver = Receiver::new(&host);
        let reader = receiver.read();
        finish(host.send(way, &receiver, MIB));
        assert_eq!(reader.join().unwrap().0, MIB);
    }
}

#[test]
fn an_unresponsive_controller_costs_the_fallback_time() {
    if !has_python() {
        return;
    }
    let mut host = Host::new(400, "fallback-us = 500000");
    host.start_agent();
    for way in ["blocking", "poll", "epoll-edge"] {
        let receiver = Receiver::new(&host);
        let reader = receiver.read();
        finish(host.send(way, &receiver, MIB));
        assert_eq!(reader.join().unwrap().0, MIB);
    }
    assert_eq!(host.counted("fallbacks"), 1);
}

/// A restarted controller receives the flows again, and hosts follow its schedule.
#[test]
fn a_killed_controller_restarts() {
    if !has_python() {
        return;
    }
    let mut host = Host::started(40, "fallback-us = 200000");
    let receiver = Receiver::new(&host);
    let reader = receiver.read();
    let long = host.send("blocking", &receiver, 4 * MIB);
    thread::sleep(Duration::from_millis(300));
    host.kill_controller();
    host.start_controller();
    finish(long);
    assert_eq!(reader.join().unwrap().0, 4 * MIB);
    let before = Instant::now();
    let reader = receiver.read();
    finish(host.send("pieces", &receiver, 2 * MIB));
    let took = reader.join().unwrap().1 - before;
    assert!(took > Duration::from_millis(300), "the new controller's rate: {took:?}");
}

/// Held programs continue at once when their agent is killed, in any call; a new agent schedules
/// them again.
#[test]
fn a_killed_agent_releases_programs() {
    if !has_python() {
        return;
    }
    // No controller answers its requests.
    let mut host = Host::new(400, "fallback-us = 60000000");
    for way in ["blocking", "poll", "select", "epoll", "epoll-edge", "files"] {
        host.start_agent();
        let receiver = Receiver::new(&host);
        let reader = receiver.read();
        let mut program = host.send(way, &receiver, MIB);
        thread::sleep(Duration::from_millis(700));
        assert!(program.try_wait().unwrap().is_none(), "{way}: held");
        host.kill_agent();
        let before = Instant::now();
        finish(program);
        assert!(before.elapsed() < TEST_TIMEOUT / 4, "{way}");
        assert_eq!(reader.join().unwrap().0, MIB);
    }
    host.start_controller();
    host.start_agent();
    let receiver = Receiver::new(&host);
    let reader = receiver.read();
    finish(host.send("blocking", &receiver, MIB));
    reader.join().unwrap();
    assert_eq!(host.counted("scheduled"), 1);
}

/// Programs for which the agent has no descriptors continue without it, and attempts to connect do
/// not wake it continuously. With these limits there are descriptors for some of the programs.
#[test]
fn an_agent_without_descriptors_does_not_spin() {
    if !has_python() {
        return;
    }
    for descriptors in [40, 41] {
        let mut host = Host::new(400, "");
        host.start_controller();
        host.start_agent_with(descriptors);
        let receiver = Receiver::new(&host);
        let readers: Vec<_> = (0..12).map(|_| receiver.read()).collect();
        let programs: Vec<_> = (0..12).map(|_| host.send("waits", &receiver, MIB)).collect();
        thread::sleep(Duration::from_secs(1));
        let before = host.agent_ticks();
        thread::sleep(Duration::from_secs(2));
        let ticks = host.agent_ticks() - before;
        assert!(ticks < 50, "{descriptors}: {ticks} hundredths of a second");
        programs.into_iter().for_each(|program| drop(finish(program)));
        readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap().0, MIB));
        let scheduled = host.counted("scheduled");
        assert!((1..12).contains(&scheduled), "{descriptors}: {scheduled} of 12 programs");
    }
}

#[test]
fn a_signal_interrupts_a_held_call() {
    if !has_python() {
        return;
    }
    let mut host = Host::new(400, "fallback-us = 60000000");
    host.start_agent();
    let receiver = Receiver::new(&host);
    let program = host.send("is-interrupted", &receiver, MIB);
    let _unread = receiver.accept();
    finish(program);
}

/// SRPT: while the shorter of two flows is sent, the longer one waits.
#[test]
fn the_shorter_flow_is_sent_first() {
    if !has_python() {
        return;
    }
    let host = Host::started(40, "");
    let receiver = Receiver::new(&host);
    let long_reader = receiver.read();
    let long = host.send("blocking", &receiver, 6 * MIB);
    // It must have connected, so that its reader has it.
    thread::sleep(Duration::from_millis(500));
    let short_reader = receiver.read();
    finish(host.send("blocking", &receiver, MIB));
    let (_, short_ends) = short_reader.join().unwrap();
    finish(long);
    let (_, long_ends) = long_reader.join().unwrap();
    // At 40 Mbit/s about 5 MiB of the long flow remain when the short one begins. With fair sharing
    // the short one would end when 4 MiB of the long one remain, after 880 ms.
    assert!(long_ends > short_ends, "the short flow is over first");
    let after = long_ends - short_ends;
    assert!(after > Duration::from_millis(450), "{after:?}");
}
