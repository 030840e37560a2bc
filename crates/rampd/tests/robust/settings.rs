//! Nodes whose settings differ: each message has an outcome, and the log names the setting.

use std::thread;
use std::time::{Duration, Instant};

use rampmeter_ring::{Failure, Outcome};

use crate::bed::{self, Testbed, wait_until};

/// Creates nodes whose configurations differ from that of a bed by a replacement in each.
fn bed_of(changes: [&[(&str, &str)]; 2]) -> Testbed {
    let mut bed = Testbed::new("");
    for (node, changes) in changes.into_iter().enumerate() {
        for (from, to) in changes {
            bed.replace(node, from, to);
        }
        bed.start(node);
    }
    bed
}

/// Checks that long messages from node 0 end within seconds: they fail because of the settings that
/// differ, or some arrive if `may_arrive`.
fn long_messages_end(bed: &Testbed, case: &str, may_arrive: bool) {
    let a = bed.port(0);
    let _b = bed.port(1);
    for _ in 0..2 {
        let before = Instant::now();
        let outcome = bed::send(&a, &vec![7; 200_000]);
        let is_right = outcome == Outcome::Failed(Failure::Mismatch)
            || may_arrive && outcome == Outcome::Completed;
        assert!(is_right, "{case}: {outcome:?} {}", bed.log(0));
        assert!(before.elapsed() < Duration::from_secs(6), "{case}: {:?}", before.elapsed());
    }
}

/// The other end has another `network.mtu`, longer or shorter. Messages that cannot be reassembled
/// fail with that reason, and both nodes log both values and no other cause.
#[test]
fn another_mtu_is_named_on_both_sides() {
    const LONG: &[(&str, &str)] = &[("mtu = 1500", "mtu = 9000")];
    let check = |transport: &str, is_longer_here: bool| {
        let name = ("dcpim", transport);
        let (long, short) = ([&[name], LONG].concat(), [name]);
        let changes: [&[_]; 2] = if is_longer_here { [&long, &short] } else { [&short, &long] };
        let bed = bed_of(changes);
        let case = format!("{transport}, longer here: {is_longer_here}");
        if !is_longer_here {
            bed::message(&bed.port(0), &bed.port(1), b"short ones pass");
        }
        // TCP sends a stream of bytes, which packets of any length can carry that the receiver
        // accepts.
        long_messages_end(&bed, &case, transport == "tcp" && !is_longer_here);
        for node in 0..2 {
            let (here, there) =
                if (node == 0) == is_longer_here { (9000, 1500) } else { (1500, 9000) };
            bed.wait_for_line(node, &format!("network.mtu ({here} here, {there} there)"));
            // The lines of a second are written together.
            thread::sleep(Duration::from_millis(1_200));
            let log = bed.log(node);
            for other in ["of unknown senders", "shorter packets", "at fault", "longer than"] {
                assert!(!log.contains(other), "{case}: {log}");
            }
        }
    };
    thread::scope(|scope| {
        for transport in ["dcpim", "tcp", "homa", "phost", "sird"] {
            for is_longer_here in [true, false] {
                scope.spawn(move || check(transport, is_longer_here));
            }
        }
    });
}

/// With another transport at the other end messages fail with that reason, in both directions.
#[test]
fn another_transport_is_named_on_both_sides() {
    let check = |here: &str, there: &str| {
        let bed = bed_of([&[("dcpim", here)], &[("dcpim", there)]]);
        long_messages_end(&bed, &format!("{here} to {there}"), false);
        bed.wait_for_line(0, &format!("transport ({here} here, {there} there)"));
        bed.wait_for_line(1, &format!("transport ({there} here, {here} there)"));
        wait_until(|| bed.status(0).contains("\"differing-keys\":[\"transport\"]"));
        assert!(!bed.log(0).contains("unauthenticated-packets"), "{}", bed.log(0));
    };
    thread::scope(|scope| {
        for (one, other) in [("tcp", "dctcp"), ("homa", "sird"), ("dcpim", "phost")] {
            scope.spawn(move || check(one, other));
            scope.spawn(move || check(other, one));
        }
    });
}

/// A node restarts with another transport, and messages in flight to it fail with that reason.
/// After a restart with the right transport, messages arrive.
#[test]
fn a_peer_that_changes_its_transport_is_noticed_both_times() {
    let mut bed = bed_of([&[], &[]]);
    let a = bed.port(0);
    bed::message(&a, &bed.port(1), b"before");
    bed.stop(1);
    bed.replace(1, "\"dcpim\"", "\"phost\"");
    bed.start(1);
    bed.wait_for_line(0, "transport (dcpim here, phost there)");
    let before = Instant::now();
    assert_eq!(bed::send(&a, b"meanwhile"), Outcome::Failed(Failure::Mismatch));
    assert!(before.elapsed() < Duration::from_secs(6), "{:?}", before.elapsed());
    bed.stop(1);
    bed.replace(1, "\"phost\"", "\"dcpim\"");
    bed.start(1);
    // Until node 0 has received that node 1 runs this transport again, messages still fail after a
    // second.
    let _port = bed.port(1);
    wait_until(|| bed::send(&a, b"after") == Outcome::Completed);
}
