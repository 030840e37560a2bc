//! Windows: slow start, congestion avoidance, the receiver's window, wrapping sequence numbers,
//! idle connections, pacing.

use super::super::config::Connections;
use super::*;

#[test]
fn slow_start_doubles_the_window_of_a_connection_each_round_trip() {
    let mut script = Script::open(config(), 100_000);
    assert_eq!(script.sent(), segments(0, 4));
    for n in 1..=4 {
        script.at(200).ack(after(n), &[]);
    }
    assert_eq!(script.sent(), segments(4, 8));
    for n in 5..=12 {
        script.at(300).ack(after(n), &[]);
    }
    assert_eq!(script.sent(), segments(12, 16));
}

/// RFC 3465 §2.2: an acknowledgement of many segments opens the window by two.
#[test]
fn an_acknowledgement_of_four_segments_opens_the_window_by_two() {
    let mut script = Script::open(config(), 100_000);
    script.sent();
    script.at(200).ack(after(4), &[]);
    assert_eq!(script.sent(), segments(4, 6));
}

/// RFC 5681 §3.1: a segment for each window that was acknowledged.
#[test]
fn congestion_avoidance_adds_a_segment_each_round_trip() {
    let mut script = Script::open(TcpConfig { window_initial: 10, ..config() }, 1_000_000);
    assert_eq!(script.sent().len(), 10);
    // The first is lost: half of ten.
    script.at(200).ack(1, &[(after(1), after(4))]);
    assert_eq!(script.sent(), segments(0, 1));
    for n in 5..=10 {
        script.at(210).ack(1, &[(after(1), after(n))]);
    }
    let in_recovery = script.sent().len();
    script.at(300).ack(after(10), &[]);
    assert_eq!(in_recovery + script.sent().len(), 5, "the window is five");
    let mut acked = 10;
    for round in 0..3 {
        let window = 5 + round;
        for i in 1..=window {
            script.at(400 + round * 100).ack(after(acked + i), &[]);
        }
        acked += window;
        assert_eq!(script.sent().len() as u64, window + 1, "round {round}");
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let keys = TcpConfig { connections: Connections::Persistent, ..config() };
    let mut script = Script::open(keys, 1_000);
    script.sent();
    let mut start = after(1);
    script.at(200).ack(start, &[]);
    for i in 0..20 {
        script.submit(1_000);
        script.sent();
        start += 1_000;
        script.at(210 + i).ack(start, &[]);
    }
    script.submit(100_000);
    assert_eq!(script.sent().len(), 4);
}

#[test]
fn the_window_returns_to_the_first_one_after_idle_time() {
    let keys = TcpConfig { connections: Connections::Persistent, ..config() };
    let mut script = Script::open(keys, 12_000);
    script.sent();
    for n in 1..=12 {
        script.at(200 + n).ack(after(n), &[]);
        script.sent();
    }
    script.at(900).submit(100_000);
    // Eleven acknowledgements arrived while the window was the limit.
    assert_eq!(script.sent().len(), 15, "still open after a short pause");
    for n in 13..=24 {
        script.at(1_000).ack(after(n), &[]);
    }
    script.sent();
    // Everything is acknowledged, and then nothing happens for long.
    let mut script =
        Script::open(TcpConfig { connections: Connections::Persistent, ..config() }, 8_000);
    script.sent();
    for n in 1..=8 {
        script.at(200 + n).ack(after(n), &[]);
        script.sent();
    }
    script.at(50_000).submit(100_000);
    assert_eq!(script.sent().len(), 4);
}

#[test]
fn the_receivers_window_limits_the_data_in_flight() {
    let mut script = Script::new(TcpConfig { window_initial: 10, ..config() });
    script.submit(100_000);
    script.sent();
    script.window = 2_500;
    script.at(100).syn_ack();
    // A part of a segment is not sent while others are in flight (RFC 9293 §3.8.6.2.1).
    assert_eq!(script.sent(), segments(0, 2));
    script.at(200).ack(after(2), &[]);
    assert_eq!(script.sent(), segments(2, 2));
}

#[test]
fn a_closed_window_is_probed_by_one_byte_with_growing_pauses() {
    let keys = TcpConfig { connections: Connections::Persistent, ..config() };
    let mut script = Script::open(keys, 5_000);
    script.sent();
    script.window = 0;
    script.at(200).ack(after(4), &[]);
    assert!(script.sent().is_empty());
    script.at(1_200);
    assert_eq!(script.sent(), ["4001..4002"]);
    // The byte is not taken.
    script.at(1_300).ack(after(4), &[]);
    assert!(script.sent().is_empty());
    // The window opens: the byte that was not taken is retransmitted.
    script.window = 10_000;
    script.at(1_350).ack(after(4), &[]);
    assert_eq!(script.sent(), ["4001..4002", "4002..5001"]);
    script.ack(5_001, &[]);
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(0) }]);
}

/// A receiver that answers probes is probed for as long as it takes.
#[test]
fn a_closed_window_does_not_fail_a_connection() {
    let keys = TcpConfig { connections: Connections::Persistent, attempts_max: 3, ..config() };
    let mut script = Script::open(keys, 5_000);
    script.sent();
    script.window = 0;
    script.at(200).ack(after(4), &[]);
    let mut probes = 0;
    for step in 1..4_000 {
        let us = 200 + step * 1_000;
        for sent in script.at(us).sent() {
            assert_eq!(sent, "4001..4002");
            probes += 1;
            script.ack(after(4), &[]);
        }
    }
    assert!(probes > 40, "{probes} probes");
    assert_eq!(script.events(), []);
    script.window = 10_000;
    script.ack(after(4), &[]);
    assert_eq!(script.sent(), ["4001..4002", "4002..5001"]);
    script.ack(5_001, &[]);
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(0) }]);
}

/// A connection with unanswered window probes is aborted.
#[test]
fn unanswered_window_probes_fail_the_connection() {
    let keys = TcpConfig { connections: Connections::Persistent, attempts_max: 3, ..config() };
    let mut script = Script::open(keys, 5_000);
    script.sent();
    script.window = 0;
    script.at(200).ack(after(4), &[]);
    for step in 1..1_000 {
        script.at(200 + step * 1_000).sent();
    }
    assert_eq!(script.events().len(), 1, "given up");
}

#[test]
fn the_numbers_of_a_receiver_pass_zero() {
    let mut script = Script::new(config());
    script.syn(u32::MAX - 1_500);
    assert_eq!(script.data((1_001, 2_001), 3_000), Receipt::Fresh);
    assert_eq!(script.data((1, 1_001), 3_000), Receipt::Fresh);
    assert_eq!(script.data((2_001, 3_001), 3_000), Receipt::Fresh);
    assert_eq!(script.sent(), ["syn-ack", "ack 1 1001..2001", "ack 2001", "ack 3001"]);
    assert_eq!(script.events().len(), 1);
}

/// A message of 2^32 + 50 000 bytes: the numbers of its segments pass zero.
#[test]
fn a_stream_longer_than_the_sequence_space_continues() {
    let size = (1u64 << 32) + 50_000;
    let keys =
        TcpConfig { packet: PacketSizes::new(9_000, 40), window_initial: 60_000, ..config() };
    let keys = TcpConfig { window_max: 60_000, receive_buffer_bytes: Some(1_000_000_000), ..keys };
    let mut sender = Script::open(keys, size);
    let (mut acked, mut expected) = (1, 0);
    while sender.events().is_empty() {
        while let Some(packet) = sender.host.poll_transmit(sender.now) {
            let TcpHeader::Data { seq, .. } = packet.header else { continue };
            let (offset, len) = (packet.payload.offset, packet.payload.len);
            assert_eq!(offset, expected, "nothing is sent twice or left out");
            assert_eq!(seq, wrap(1 + offset, sender.initial));
            expected += u64::from(len);
        }
        acked = (acked + 500_000_000).min(1 + size);
        let now = sender.now.as_ps() / 1_000_000 + 100;
        sender.at(now).ack(acked, &[]);
    }
    assert_eq!(expected, size);
}

#[test]
fn pacing_spreads_a_window_over_half_a_round_trip_in_slow_start() {
    let mut script = Script::open(TcpConfig { pacing: true, ..config() }, 100_000);
    // Round trip 100 us, window 4: twice that in a round trip, one each 12.5 us and its header.
    assert_eq!(script.sent(), segments(0, 1));
    assert!(script.at(112).sent().is_empty());
    assert_eq!(script.at(113).sent(), segments(1, 1));
    assert_eq!(script.at(126).sent(), segments(2, 1));
}

#[test]
fn old_and_impossible_acknowledgements_are_ignored() {
    let mut script = Script::open(config(), 100_000);
    script.sent();
    script.at(200).ack(after(2), &[]);
    let sent = script.sent().len();
    assert_eq!(sent, 4);
    script.ack(after(1), &[]).ack(after(50), &[]);
    assert!(script.sent().is_empty());
}

#[test]
fn connections_are_served_round_robin() {
    let mut script = Script::new(config());
    script.submit(3_000);
    script.sent();
    let (initial, conn) = (script.initial, script.conn);
    script.submit(3_000);
    script.sent();
    script.at(100).syn_ack();
    (script.initial, script.conn) = (initial, conn);
    script.syn_ack();
    let mut order = Vec::new();
    while let Some(packet) = script.host.poll_transmit(script.now) {
        if let TcpHeader::Data { conn, .. } = packet.header {
            order.push(conn);
        }
    }
    assert_eq!(order, [1, 0, 1, 0, 1, 0]);
}
