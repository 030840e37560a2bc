//! Explicit congestion notification: RFC 3168 for all, RFC 8257 for DCTCP.

use super::*;

fn ecn() -> TcpConfig {
    TcpConfig { ecn: true, window_initial: 10, ..config() }
}

fn dctcp() -> TcpConfig {
    TcpConfig {
        loss_detection: LossDetection::DupAck,
        packet: PacketSizes::new(MSS, 40),
        window_initial: 10,
        ..TcpConfig::dctcp()
    }
}

const CE: Marks = Marks::ECN_CAPABLE.union(Marks::CONGESTION);
const SIZE: u64 = 100_000;

#[test]
fn data_may_be_marked_and_control_packets_may_not() {
    let mut script = Script::new(ecn());
    script.submit(1_000);
    assert_eq!(script.sent(), ["syn"]);
    script.at(100).syn_ack();
    assert_eq!(script.sent(), ["1..1001 ect", "fin 1001"]);
    let mut script = Script::new(TcpConfig { ecn_control: true, ..ecn() });
    script.submit(1_000);
    assert_eq!(script.sent(), ["syn ect"]);
}

/// RFC 3168 §6.1.3: the echo stays until the sender reports that it has reacted.
#[test]
fn a_mark_is_echoed_until_the_window_is_reduced() {
    let mut script = Script::new(ecn());
    script.syn(0);
    script.segment(1, 1_001, SIZE, false, CE);
    script.data((1_001, 2_001), SIZE);
    script.segment(2_001, 3_001, SIZE, true, Marks::ECN_CAPABLE);
    script.data((3_001, 4_001), SIZE);
    assert_eq!(script.sent(), ["syn-ack", "ack 1001 ece", "ack 2001 ece", "ack 3001", "ack 4001"]);
}

/// RFC 3168 §6.1.2: once a window, as a loss would, and nothing is retransmitted.
#[test]
fn an_echo_halves_the_window_once_a_round_trip() {
    let mut script = Script::open(ecn(), 100_000);
    assert_eq!(script.sent().len(), 10);
    for n in 1..=10 {
        script.at(200).acknowledge(after(n), &[], true);
    }
    let sent = script.sent();
    assert_eq!(sent.len(), 5);
    assert_eq!(sent[0], "10001..11001 cwr ect");
    assert_eq!(sent[1], "11001..12001 ect");
    assert_eq!((script.stats().echoes, script.stats().recoveries), (1, 0));
}

#[test]
fn an_echo_in_the_next_window_cuts_again() {
    let mut script = Script::open(ecn(), 100_000);
    script.sent();
    for n in 1..=10 {
        script.at(200).acknowledge(after(n), &[], true);
    }
    script.sent();
    script.at(300).acknowledge(after(11), &[], true);
    assert_eq!(script.stats().echoes, 2);
}

/// RFC 8257 §3.2: each acknowledgement carries the mark of its segments.
#[test]
fn dctcp_echoes_each_segments_mark() {
    let mut script = Script::new(dctcp());
    script.syn(0);
    script.segment(1, 1_001, SIZE, false, CE);
    script.data((1_001, 2_001), SIZE);
    assert_eq!(script.sent(), ["syn-ack", "ack 1001 ece", "ack 2001"]);
}

/// With delayed acknowledgements a change is reported at once, with the state before.
#[test]
fn dctcp_reports_a_changed_mark_at_once() {
    let mut script = Script::new(TcpConfig { segments_per_ack: 2, ..dctcp() });
    script.syn(0);
    script.data((1, 1_001), SIZE);
    script.segment(1_001, 2_001, SIZE, false, CE);
    assert_eq!(script.sent(), ["syn-ack", "ack 1001"]);
    script.segment(2_001, 3_001, SIZE, false, CE);
    assert_eq!(script.sent(), ["ack 3001 ece"]);
}

/// Alpha starts at one: the first window with a mark is halved (RFC 8257 §3.3).
#[test]
fn dctcp_cuts_by_half_of_alpha_once_a_window() {
    let mut script = Script::open(dctcp(), 1_000_000);
    script.sent();
    for n in 1..=10 {
        script.at(200).acknowledge(after(n), &[], n == 1);
    }
    assert_eq!(script.sent().len(), 5);
}

/// Alpha falls by g each window without marks. After k of them it is (1 - g)^k, and a mark cuts the
/// window by half of that.
#[test]
fn dctcp_forgets_marks_slowly() {
    let keys = TcpConfig { window_initial: 1_000, window_max: 1_000, gain: 0.25, ..dctcp() };
    let mut script = Script::open(keys, 100_000_000);
    let mut acked = 0;
    for round in 0..4 {
        let n = script.sent().len() as u64;
        assert_eq!(n, 1_000, "round {round}");
        for i in 1..=n {
            script.at(200 + round * 100).acknowledge(after(acked + i), &[], false);
        }
        acked += n;
    }
    script.sent();
    // The window that began with the first acknowledgement, and four more.
    script.at(1_000).acknowledge(after(acked + 1), &[], true);
    let in_flight = 999;
    let alpha = 0.75f64.powi(5);
    let cwnd = 1_000.0 * (1.0 - alpha / 2.0);
    let mut left = acked + 1;
    let mut sent = 0;
    while sent == 0 {
        left += 1;
        script.acknowledge(after(left), &[], false);
        sent = script.sent().len();
    }
    let allowed = in_flight - (left - acked - 1) + 1;
    assert!((allowed as f64 - cwnd).abs() < 2.0, "{allowed} in flight, expected {cwnd}");
}

/// RFC 3168 §6.1.1: both ends have to support ECN.
#[test]
fn segments_are_not_ecn_capable_if_the_receiver_is_not() {
    let mut script = Script::new(TcpConfig { ecn: true, ..config() });
    script.submit(2_000);
    script.sent();
    let ack = wrap(1, script.initial);
    script.at(100).syn_ack_to(false, ack);
    assert_eq!(script.sent()[..2], segments(0, 2));
}
