//! RACK-TLP (RFC 8985): losses by time, and probes.

use super::*;

fn rack() -> TcpConfig {
    TcpConfig { loss_detection: LossDetection::RackTlp, window_initial: 10, ..config() }
}

/// §6.2: without reordering seen, three segments above make a hole lost at once.
#[test]
fn three_segments_above_make_a_hole_lost_at_once() {
    let mut script = Script::open(rack(), 100_000);
    for i in 0..10 {
        script.at(100 + i).sent_one();
    }
    script.at(201).ack(1, &[(after(1), after(2))]);
    script.at(202).ack(1, &[(after(1), after(3))]);
    assert_eq!(script.stats().recoveries, 0);
    script.at(203).ack(1, &[(after(1), after(4))]);
    assert_eq!(script.stats().recoveries, 1);
    assert_eq!(script.sent_one(), "1..1001");
}

/// One segment above a hole: it is lost a quarter of a round trip later.
#[test]
fn a_hole_below_one_segment_is_lost_after_a_quarter_of_a_round_trip() {
    let mut script = Script::open(rack(), 2_000);
    assert_eq!(script.sent(), ["1..1001", "1001..2001", "fin 2001"]);
    script.at(200).ack(1, &[(1_001, 2_001)]);
    assert!(script.at(224).sent().is_empty());
    assert_eq!(script.at(225).sent_one(), "1..1001");
}

/// A retransmission that is lost is detected by segments sent after it: no timeout.
#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let mut script = Script::open(rack(), 100_000);
    for i in 0..10 {
        script.at(100 + i).sent_one();
    }
    script.at(205).ack(1, &[(after(1), after(5))]);
    let first = script.sent();
    assert_eq!(first[0], "1..1001");
    for n in 6..=10 {
        script.at(200 + n).ack(1, &[(after(1), after(n))]);
        script.sent();
    }
    // Segments that were sent after the retransmission arrive, it does not.
    let sent_later = after(11);
    script.at(320).ack(1, &[(after(1), sent_later)]);
    let again = script.sent();
    assert!(again.contains(&"1..1001".to_owned()), "{again:?}");
    assert_eq!(script.stats().timeouts, 0);
}

/// §6.2, step 4: if segments have been reordered, three above a hole are no proof. It is lost after
/// a quarter of a round trip.
#[test]
fn reordering_lengthens_the_reordering_window() {
    let mut script = Script::open(rack(), 100_000);
    for i in 0..10 {
        script.at(100 + i).sent_one();
    }
    script.at(202).ack(1, &[(after(1), after(3))]).ack(after(3), &[]);
    script.at(207).ack(after(4), &[(after(5), after(8))]);
    assert_eq!(script.stats().recoveries, 0);
    script.at(245);
    assert_eq!(script.stats().recoveries, 1);
}

/// §7: the end of a flight is probed after two round trips, with new data if there is any.
#[test]
fn the_end_of_a_flight_is_probed() {
    let mut script = Script::open(TcpConfig { rto_min_us: Some(5_000), ..rack() }, 3_000);
    assert_eq!(script.sent().len(), 4);
    assert!(script.at(299).sent().is_empty());
    assert_eq!(script.at(300).sent(), ["fin 3001"]);
    assert_eq!((script.stats().probes, script.stats().timeouts), (1, 0));
}

#[test]
fn a_probe_waits_for_the_configured_delay() {
    let config = TcpConfig { rto_min_us: Some(5_000), probe_slack_us: 1_000, ..rack() };
    let mut script = Script::open(config, 3_000);
    assert_eq!(script.sent().len(), 4);
    assert!(script.at(1_299).sent().is_empty());
    assert_eq!(script.at(1_300).sent(), ["fin 3001"]);
}

#[test]
fn a_probe_is_new_data_if_there_is_any() {
    let mut script = Script::open(TcpConfig { rto_min_us: Some(5_000), ..rack() }, 100_000);
    assert_eq!(script.sent().len(), 10);
    assert_eq!(script.at(300).sent(), segments(10, 1));
}

/// The tail is lost; the probe's acknowledgement shows it, and no timeout is needed.
#[test]
fn a_lost_tail_is_repaired_by_the_probe() {
    let mut script = Script::open(TcpConfig { rto_min_us: Some(5_000), ..rack() }, 4_000);
    assert_eq!(script.sent().len(), 5);
    script.at(200).ack(after(1), &[]);
    script.at(400);
    assert_eq!(script.sent(), ["fin 4001"]);
    script.at(500).ack(after(1), &[(4_001, 4_002)]);
    let mut repaired = script.sent();
    script.at(600).ack(after(2), &[(4_001, 4_002)]);
    repaired.extend(script.sent());
    assert_eq!(repaired, segments(1, 3));
    assert_eq!(script.stats().timeouts, 0);
}

#[test]
fn a_flight_is_probed_once() {
    let mut script = Script::open(TcpConfig { rto_min_us: Some(5_000), ..rack() }, 3_000);
    script.sent();
    assert_eq!(script.at(5_000).sent().len(), 1);
    assert_eq!(script.stats().probes, 1);
}
