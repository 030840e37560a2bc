//! Acknowledgements: ranges, duplicates, delay (RFC 2018, 2883, 5681).

use super::*;

fn receiver(config: TcpConfig) -> Script {
    let mut script = Script::new(config);
    script.syn(4_000_000_000);
    assert_eq!(script.sent(), ["syn-ack"]);
    script
}

const SIZE: u64 = 100_000;

#[test]
fn the_range_of_the_latest_segment_is_first() {
    let mut script = receiver(config());
    for start in [5, 1, 3] {
        script.data((after(start), after(start + 1)), SIZE);
    }
    assert_eq!(
        script.sent(),
        [
            "ack 1 5001..6001",
            "ack 1 1001..2001 5001..6001",
            "ack 1 3001..4001 1001..2001 5001..6001"
        ]
    );
}

#[test]
fn an_acknowledgement_reports_at_most_three_ranges() {
    let mut script = receiver(config());
    for start in [1, 3, 5, 7] {
        script.data((after(start), after(start + 1)), SIZE);
    }
    let last = script.sent().pop();
    assert_eq!(last.as_deref(), Some("ack 1 7001..8001 5001..6001 3001..4001"));
}

#[test]
fn ranges_that_meet_become_one() {
    let mut script = receiver(config());
    for start in [1, 3, 2] {
        script.data((after(start), after(start + 1)), SIZE);
    }
    assert_eq!(script.sent().pop().as_deref(), Some("ack 1 1001..4001"));
    script.data((1, 1_001), SIZE);
    assert_eq!(script.sent(), ["ack 4001"]);
}

/// RFC 2883 §4.1: a duplicate is reported before all other ranges, once.
#[test]
fn a_duplicate_segment_is_reported() {
    let mut script = receiver(config());
    assert_eq!(script.data((1, 1_001), SIZE), Receipt::Fresh);
    assert_eq!(script.data((1, 1_001), SIZE), Receipt::Duplicate);
    script.data((2_001, 3_001), SIZE);
    assert_eq!(script.sent(), ["ack 1001", "ack 1001 1..1001", "ack 1001 2001..3001"]);
}

/// RFC 2883 §4.2: above the acknowledgement too, with the range that holds it.
#[test]
fn a_duplicate_segment_above_a_hole_is_reported() {
    let mut script = receiver(config());
    script.data((2_001, 3_001), SIZE);
    script.data((3_001, 4_001), SIZE);
    assert_eq!(script.data((2_001, 3_001), SIZE), Receipt::Duplicate);
    assert_eq!(script.sent().pop().as_deref(), Some("ack 1 2001..3001 2001..4001"));
}

#[test]
fn every_second_segment_is_acknowledged() {
    let mut script = receiver(TcpConfig { segments_per_ack: 2, ..config() });
    script.data((1, 1_001), SIZE);
    assert!(script.sent().is_empty());
    script.data((1_001, 2_001), SIZE);
    assert_eq!(script.sent(), ["ack 2001"]);
}

#[test]
fn a_delayed_acknowledgement_is_sent_after_its_delay() {
    let mut script = receiver(TcpConfig { segments_per_ack: 2, ack_delay_us: 500, ..config() });
    script.at(1_000).data((1, 1_001), SIZE);
    assert!(script.at(1_499).sent().is_empty());
    assert_eq!(script.at(1_500).sent(), ["ack 1001"]);
}

/// RFC 5681 §4.2.
#[test]
fn segments_out_of_order_are_acknowledged_at_once() {
    let mut script = receiver(TcpConfig { segments_per_ack: 2, ..config() });
    script.data((2_001, 3_001), SIZE);
    assert_eq!(script.sent(), ["ack 1 2001..3001"]);
    script.data((1, 1_001), SIZE);
    assert_eq!(script.sent(), ["ack 1001 2001..3001"]);
    script.data((1_001, 2_001), SIZE);
    assert_eq!(script.sent(), ["ack 3001"], "it fills the hole");
}

#[test]
fn segments_beyond_the_window_are_dropped() {
    let mut script = receiver(TcpConfig { receive_buffer_bytes: Some(3_000), ..config() });
    assert_eq!(script.data((2_001, 3_001), SIZE), Receipt::Fresh);
    assert_eq!(script.data((3_001, 4_001), SIZE), Receipt::Ignored);
    assert_eq!(script.sent().pop().as_deref(), Some("ack 1 2001..3001"));
}

#[test]
fn a_message_without_a_buffer_closes_the_window_until_its_release() {
    let mut script = receiver(config());
    script.data((1, 1_001), SIZE);
    script.sent();
    let now = script.now;
    script.host.pause(now, PEER, MsgId::new(7));
    assert_eq!(script.data((1_001, 2_001), SIZE), Receipt::Ignored);
    assert_eq!(script.sent(), ["ack 1001 window 0"]);
    script.host.resume(now, PEER, MsgId::new(7));
    assert_eq!(script.sent(), ["ack 1001"]);
    assert_eq!(script.data((1_001, 2_001), SIZE), Receipt::Fresh);
}

#[test]
fn contradictory_segments_are_dropped() {
    let mut script = receiver(config());
    script.data((1, 1_001), 5_000);
    // Another size, half of a segment that is here, more than the message.
    assert_eq!(script.data((1_001, 2_001), 6_000), Receipt::Ignored);
    assert_eq!(script.data((501, 1_501), 5_000), Receipt::Ignored);
    assert_eq!(script.data((4_501, 5_501), 5_000), Receipt::Ignored);
    assert_eq!(script.data((1_001, 2_001), 5_000), Receipt::Fresh);
}

#[test]
fn data_of_an_unopened_connection_is_dropped() {
    let mut script = Script::new(config());
    assert_eq!(script.data((1, 1_001), SIZE), Receipt::Ignored);
    assert!(script.sent().is_empty());
}

/// Only a forged header claims so much: the end of its message is no number.
#[test]
fn a_message_that_is_longer_than_the_stream_can_be_is_ignored() {
    let mut script = Script::new(config());
    script.syn(77);
    assert_eq!(script.data((1, 1 + MSS), u64::MAX), Receipt::Ignored);
    let header = TcpHeader::Data { conn: 0, seq: wrap(1, 77), size: u64::MAX, cwr: false };
    let payload = PayloadRef { msg: MsgId::new(7), offset: 0, len: MSS as u16 };
    let packet =
        Packet { payload, ..crate::test_packet::make_control(header, 7, PEER.get(), HOST.get()) };
    assert!(!script.host.touch_if_delivered(script.now, &packet));
    assert_eq!(script.data((1, 1 + MSS), MSS), Receipt::Fresh);
}
