//! The bound that a program receives is the transport's, and outcomes are reported within it.

mod common;

use std::time::{Duration, Instant};

use common::{Testbed, TestbedConfig};
use rampmeter_proto::cosy::CosyTransport;
use rampmeter_ring::{Completion, Options, Outcome, Port, PortConfig, Submission};
use rampmeter_types::{Bytes, NodeId, Span};

const SERVICE: u16 = 7;
/// Maximum delay of this program and two nodes on a fully loaded machine.
const LATE: Duration = Duration::from_millis(500);

/// Returns a configuration with round trips that hosts meet while other programs use their
/// processors.
fn config() -> TestbedConfig {
    TestbedConfig { rtt: Span::from_us(50_000), ..TestbedConfig::default() }
}

fn attach(bed: &Testbed, n: usize) -> Port {
    Port::attach(&bed.sockets[n], SERVICE, PortConfig::default()).unwrap()
}

#[test]
fn the_bound_survives_the_handshake() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::of::<CosyTransport>(dir.path(), &config());
    let (port, cosy) = (attach(&bed, 0), config().protocol::<CosyTransport>());
    let payload = cosy.config.packet.payload.get() as usize;
    let near = |n: usize| [n.saturating_sub(1), n, n + 1];
    let sizes = (0..3_000).chain((0..30).flat_map(|bits| near(1 << bits)));
    for size in sizes.chain((1..2_000).flat_map(|n| near(n * payload))) {
        let bound = cosy.bound(Bytes::new(size as u64)).as_ps();
        let promised = port.bound(size, 0).unwrap();
        assert_eq!(promised.as_nanos(), bound.div_ceil(1_000).into(), "{size} bytes");
        assert_eq!(port.bound(size, 3), Some(promised), "the promise is for every tenant");
    }
    let submitted = port.submit(NodeId::new(1), SERVICE, &[0; 5_000]).unwrap();
    assert_eq!(submitted.bound, port.bound(5_000, 0));
    bed.stop();
}

#[test]
fn transports_without_a_promise_report_no_bound() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::start(dir.path(), &TestbedConfig::default());
    let port = attach(&bed, 0);
    assert_eq!((port.bound(1, 0), port.bound(1 << 20, 1)), (None, None));
    assert_eq!(port.submit(NodeId::new(1), SERVICE, b"some time").unwrap().bound, None);
    bed.stop();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "bounds are of wall time")]
fn outcomes_arrive_within_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::of::<CosyTransport>(dir.path(), &config());
    let (a, _b) = (attach(&bed, 0), attach(&bed, 1));
    let mut completed = 0;
    for n in 0..40 {
        // Also to a node that does not exist, to a service without an application, and of no bytes.
        let (dst, service, size) = match n % 10 {
            7 => (5, SERVICE, 10),
            8 => (1, SERVICE + 1, 3_000),
            9 => (1, SERVICE, 0),
            _ => (1, SERVICE, 1 + n * 5_000),
        };
        let start = Instant::now();
        let buffer = a.alloc(size).unwrap();
        let submitted = a.submit_buffer(NodeId::new(dst), service, buffer, Options::default());
        let Submission { ticket, bound } = submitted.unwrap();
        let limit = bound.unwrap() + LATE;
        let Some(Completion::Finished { ticket: ended, outcome }) = a.wait(Some(limit)).unwrap()
        else {
            panic!("message {n} has no outcome within {limit:?}");
        };
        assert!(start.elapsed() <= limit, "message {n} took {:?} of {limit:?}", start.elapsed());
        assert_eq!(ended, ticket);
        completed += usize::from(outcome == Outcome::Completed);
    }
    // A machine that is busy for longer than the allowance makes some fail.
    assert!((14..=28).contains(&completed), "{completed} of 28 completed");
    bed.stop();
}
