//! Losses detected by segments that have arrived above (RFC 6675), and their repair.

use super::super::config::Connections;
use super::*;

fn ten() -> TcpConfig {
    TcpConfig { window_initial: 10, ..config() }
}

#[test]
fn two_segments_above_a_hole_are_not_enough() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(2))]).ack(1, &[(after(1), after(3))]);
    // Limited transmit (RFC 3042): a new segment for each that has arrived.
    assert_eq!(script.sent(), segments(10, 2));
    script.ack(1, &[(after(1), after(4))]);
    assert_eq!(script.sent_one(), "1..1001");
    assert_eq!(script.stats().recoveries, 1);
}

#[test]
fn a_hole_between_ranges_is_lost_when_three_segments_above_have_arrived() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(5), after(6)), (after(3), after(4)), (after(1), after(2))]);
    // Only the first has three above it.
    assert_eq!(script.sent_one(), "1..1001");
    script.ack(1, &[(after(5), after(8))]);
    let sent = script.sent();
    assert!(sent.contains(&"2001..3001".to_owned()), "{sent:?}");
}

#[test]
fn a_segment_is_retransmitted_once_and_its_window_is_cut_once() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(4))]);
    assert_eq!(script.sent_one(), "1..1001");
    for n in 5..=10 {
        script.at(200 + n).ack(1, &[(after(1), after(n))]);
        assert!(!script.sent().contains(&"1..1001".to_owned()));
    }
    assert_eq!(script.stats().recoveries, 1);
}

/// A second loss in the same window causes no second cut (RFC 6675 §5).
#[test]
fn two_losses_of_one_window_are_one_recovery() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(4))]);
    script.sent();
    script.at(210).ack(after(4), &[(after(5), after(9))]);
    let sent = script.sent();
    assert_eq!(sent[0], "4001..5001");
    script.at(310).ack(after(10), &[]);
    assert_eq!(script.stats().recoveries, 1);
}

#[test]
fn a_loss_after_the_recovery_cuts_again() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(10))]);
    // Half of ten: the first is retransmitted, and four are new.
    assert_eq!(script.sent().len(), 5);
    script.at(300).ack(after(10), &[]);
    assert_eq!(script.sent(), segments(14, 1));
    script.at(400).ack(after(10), &[(after(11), after(14))]);
    assert_eq!(script.stats().recoveries, 2);
}

#[test]
fn retransmissions_precede_new_segments() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(3), after(10))]);
    let sent = script.sent();
    assert_eq!(sent[..2], segments(0, 2));
}

/// Three of ten are missing: as many are sent as arrive, in the proportion of the windows (RFC
/// 6937).
#[test]
fn recovery_sends_no_burst() {
    let mut script = Script::open(TcpConfig { window_initial: 20, ..config() }, 200_000);
    assert_eq!(script.sent().len(), 20);
    script.at(200);
    let mut sent = 0;
    for n in 5..=20 {
        script.ack(1, &[(after(4), after(n))]);
        let now = script.sent().len();
        assert!(now <= 2, "{now} at once");
        sent += now;
    }
    // Ten of twenty may be in flight afterwards; sixteen have arrived, four were lost.
    assert_eq!(sent, 10);
}

#[test]
fn a_partial_acknowledgement_repairs_the_next_hole() {
    let mut script = Script::open(ten(), 100_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(2)), (after(4), after(8))]);
    let sent = script.sent();
    assert_eq!(sent[0], "1..1001");
    script.at(300).ack(after(2), &[(after(4), after(8))]);
    let later = script.sent();
    let all = [sent, later].concat();
    assert!(all.contains(&"2001..3001".to_owned()) && all.contains(&"3001..4001".to_owned()));
}

#[test]
fn a_timeout_does_not_retransmit_acknowledged_ranges() {
    let mut script = Script::open(TcpConfig { duplicate_acks: 100, ..ten() }, 10_000);
    script.sent();
    script.at(200).ack(1, &[(after(2), after(9))]);
    script.at(5_000);
    let mut again = script.sent();
    script.at(5_100).ack(after(1), &[(after(2), after(9))]);
    again.extend(script.sent());
    script.at(5_200).ack(after(9), &[]);
    again.extend(script.sent());
    assert_eq!(again, ["1..1001", "1001..2001", "9001..10001", "fin 10001"]);
}

/// Segments that arrive late, not never: nothing is lost if fewer than three overtake.
#[test]
fn mild_reordering_causes_no_retransmission() {
    let mut script = Script::open(ten(), 10_000);
    script.sent();
    script.at(200).ack(1, &[(after(1), after(3))]).ack(after(3), &[]);
    script.ack(after(10), &[]).ack(after(10) + 1, &[]);
    assert_eq!((script.stats(), script.sent().len()), (TcpStats::default(), 0));
}

/// Returns the segments that are sent when these ranges of a message of eight segments in one
/// window have arrived.
fn sent_in_recovery(arrived: &[(u64, u64)]) -> (Script, Vec<String>) {
    let connections = Connections::Persistent;
    let keys = TcpConfig { window_initial: 8, connections, ..config() };
    let mut script = Script::open(keys, 8_000);
    assert_eq!(script.sent(), segments(0, 8));
    let arrived: Vec<_> = arrived.iter().map(|&(from, to)| (after(from), after(to))).collect();
    let sent = script.at(200).ack(1, &arrived).sent();
    (script, sent)
}

/// RFC 6675 §4, NextSeg's rule 3: without new data a hole is filled although too few segments have
/// overtaken it for a loss.
#[test]
fn a_hole_near_the_end_is_filled_in_a_recovery() {
    let (mut script, sent) = sent_in_recovery(&[(7, 8), (1, 5)]);
    assert_eq!(sent, ["1..1001", "5001..6001"]);
    script.at(210).ack(after(6), &[(after(7), after(8))]);
    assert_eq!(script.sent(), segments(6, 1));
}

/// Rule 4: the end of the flight is retransmitted once, as no segment after it can reveal its loss.
#[test]
fn the_last_segment_in_flight_is_retransmitted_once_in_a_recovery() {
    let (mut script, sent) = sent_in_recovery(&[(1, 6)]);
    assert_eq!(sent, ["1..1001", "7001..8001"]);
    script.at(210).ack(after(6), &[]);
    assert!(script.sent().is_empty());
}
