//! Messages for which a receiver's driver has no room, at both ends.

use super::super::config::Connections;
use super::*;

const HELD: MsgId = MsgId::new(8);

/// Returns a segment of a message that starts at byte 5001 of the stream, at which message 7 ends,
/// or with the stream.
fn held_segment(script: &mut Script, start: u64) -> Packet<TcpHeader> {
    let first = if start < after(5) { 1 } else { after(5) };
    let header =
        TcpHeader::Data { conn: 0, seq: wrap(start, script.initial), size: 9_000, cwr: false };
    Packet {
        header,
        payload: PayloadRef { msg: HELD, offset: start - first, len: 1_000 },
        src: PEER,
        dst: HOST,
        wire_bytes: 1_040,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
    }
}

/// Refuses a segment, as a driver without space does.
fn refuse_room(script: &mut Script, start: u64) {
    let packet = held_segment(script, start);
    assert!(!script.host.touch_if_delivered(script.now, &packet));
    script.host.pause(script.now, PEER, HELD);
}

#[test]
fn the_window_ends_at_the_first_message_without_a_buffer() {
    let mut script = Script::new(config());
    script.syn(4_000_000_000).sent();
    script.data((1, 1_001), 5_000);
    assert_eq!(script.sent(), ["ack 1001"]);
    refuse_room(&mut script, after(6));
    assert_eq!(script.sent(), ["ack 1001 window 4000"]);
    for n in 1..5 {
        assert_eq!(script.data((after(n), after(n + 1)), 5_000), Receipt::Fresh);
    }
    assert_eq!(script.sent().pop().as_deref(), Some("ack 5001 window 0"));
    assert_eq!(script.events(), [Event::Delivered { src: PEER, msg: MsgId::new(7) }]);
    // Its sender probes, and is answered each time.
    refuse_room(&mut script, after(5));
    assert_eq!(script.sent(), ["ack 5001 window 0"]);
    script.host.resume(script.now, PEER, HELD);
    assert_eq!(script.sent(), ["ack 5001"]);
    let packet = held_segment(&mut script, after(5));
    assert_eq!(script.host.handle_packet(script.now, &packet), Receipt::Fresh);
    assert_eq!(script.sent(), ["ack 6001"]);
}

/// A message that its sender aborts limits no other.
#[test]
fn a_message_without_a_buffer_ends_with_its_connection() {
    let mut script = Script::new(config());
    script.syn(1).sent();
    refuse_room(&mut script, after(5));
    script.control(TcpHeader::Reset { conn: 0 });
    assert_eq!(script.host.message_counts(), Some((0, 0)));
    script.sent();
    script.host.resume(script.now, PEER, HELD);
    assert!(script.sent().is_empty() && script.events().is_empty());
}

/// The other end takes the first message, and nothing of the second, of which three segments are in
/// flight. The window moves back to the start of that message.
#[test]
fn data_sent_beyond_a_reduced_window_waits() {
    let keys = TcpConfig { connections: Connections::Persistent, window_initial: 8, ..config() };
    let mut script = Script::open(keys, 2_000);
    script.submit(6_000);
    assert_eq!(script.sent().len(), 8);
    let all = script.window;
    script.window = 0;
    script.at(200).ack(after(2), &[]);
    assert!(script.sent().is_empty());
    // One segment probes, after a timeout that doubles. It is answered, and so the connection is
    // kept.
    let mut n_probes = 0;
    for us in (1_000..2_000_000).step_by(1_000) {
        let sent = script.at(us).sent();
        assert!(sent.len() <= 1, "{sent:?}");
        if !sent.is_empty() {
            assert_eq!(sent, segments(2, 1));
            script.ack(after(2), &[]);
            n_probes += 1;
        }
    }
    assert!((20..=60).contains(&n_probes), "{n_probes}");
    assert_eq!(script.stats().recoveries, 0);
    script.window = all;
    script.ack(after(2), &[]);
    let sent = script.sent();
    assert!(sent.len() >= 2 && sent[0] == "2001..3001", "{sent:?}");
    script.at(2_001_000).ack(after(8), &[]);
    let over = |n| Event::Completed { msg: MsgId::new(n) };
    assert_eq!(script.events(), [over(0), over(1)]);
}

/// A receiver repeats its window updates: if many messages wait, their senders rarely probe.
#[test]
fn window_updates_repeat_until_data_arrives() {
    let mut script = Script::new(config());
    script.syn(1).sent();
    refuse_room(&mut script, 1);
    script.sent();
    script.host.resume(script.now, PEER, HELD);
    let mut times = Vec::new();
    for us in (0..1_000_000).step_by(500) {
        if !script.at(us).sent().is_empty() {
            times.push(us);
        }
    }
    assert_eq!(times, [0, 3_000, 9_000, 21_000, 45_000, 93_000, 189_000]);
    refuse_room(&mut script, 1);
    script.sent();
    script.host.resume(script.now, PEER, HELD);
    assert_eq!(script.sent().len(), 1);
    script.data((1, 1_001), 5_000);
    assert_eq!(script.sent().len(), 1);
    script.at(2_000_000);
    assert!(script.sent().is_empty());
}
