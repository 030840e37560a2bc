//! Connections: how they open, end, and are shared (RFC 9293 §3.5, §3.6).

use super::super::config::Connections;
use super::*;

#[test]
fn a_message_waits_for_the_handshake_and_ends_with_a_fin() {
    let mut script = Script::open(config(), 1_500);
    assert_eq!(script.sent(), ["1..1001", "1001..1501", "fin 1501"]);
    script.at(200).ack(1_501, &[]);
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(0) }]);
    script.ack(1_502, &[]);
    assert_eq!(script.host.message_counts(), Some((0, 0)));
    assert!(script.at(100_000).sent().is_empty());
}

#[test]
fn a_lost_syn_is_retransmitted_after_twice_the_time() {
    let mut script = Script::new(config());
    script.submit(10);
    assert_eq!(script.sent(), ["syn"]);
    for (before, due) in [(2_999, 3_000), (8_999, 9_000), (20_999, 21_000)] {
        assert!(script.at(before).sent().is_empty());
        assert_eq!(script.at(due).sent(), ["syn"]);
    }
}

#[test]
fn a_receiver_that_never_answers_fails_the_message() {
    let mut script = Script::new(TcpConfig { attempts_max: 2, ..config() });
    let msg = script.submit(10);
    script.at(1_000_000);
    assert_eq!(script.events(), [Event::Failed { msg }]);
    assert_eq!(script.sent(), ["syn", "syn", "syn", "reset"]);
}

/// The round trip of a SYN that was sent twice is not known (Karn).
#[test]
fn a_retransmitted_syn_gives_no_sample() {
    let mut script = Script::new(config());
    script.submit(1_000);
    script.sent();
    script.at(3_000).sent();
    script.at(3_010).syn_ack();
    assert_eq!(script.sent(), ["1..1001", "fin 1001"]);
    // Without a sample the doubled timeout stays (RFC 6298 §5.7).
    assert!(script.at(9_009).sent().is_empty());
    assert_eq!(script.at(9_010).sent_one(), "1..1001");
}

#[test]
fn a_second_syn_ack_changes_nothing() {
    let mut script = Script::open(config(), 9_000);
    assert_eq!(script.sent(), segments(0, 4));
    script.at(150).syn_ack();
    assert!(script.sent().is_empty());
}

#[test]
fn every_copy_of_a_syn_is_answered() {
    let mut script = Script::new(config());
    script.syn(500);
    script.syn(500);
    assert_eq!(script.sent(), ["syn-ack", "syn-ack"]);
}

#[test]
fn the_receiver_forgets_a_connection_at_its_fin_and_answers_late_packets() {
    let mut script = Script::new(config());
    script.syn(0);
    assert_eq!(script.data((1, 501), 500), Receipt::Fresh);
    script.control(TcpHeader::Fin { conn: 0, seq: 501 });
    assert_eq!(script.sent(), ["syn-ack", "ack 501", "ack 502"]);
    assert_eq!(script.events(), [Event::Delivered { src: PEER, msg: MsgId::new(7) }]);
    assert_eq!(script.host.message_counts(), Some((0, 0)));
    assert_eq!(script.data((1, 501), 500), Receipt::Duplicate);
    script.control(TcpHeader::Fin { conn: 0, seq: 501 });
    assert_eq!(script.sent(), ["ended", "ended"]);
}

#[test]
fn a_fin_that_overtakes_data_waits_for_it() {
    let mut script = Script::new(config());
    script.syn(0);
    script.control(TcpHeader::Fin { conn: 0, seq: 501 });
    assert_eq!(script.sent(), ["syn-ack", "ack 1"]);
    script.data((1, 501), 500);
    assert_eq!(script.sent(), ["ack 502"]);
}

#[test]
fn a_sender_completes_when_all_data_is_acknowledged_late() {
    let mut script = Script::open(config(), 2_000);
    script.sent();
    script.control(TcpHeader::Ended { conn: 0 });
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(0) }]);
}

#[test]
fn a_reset_abandons_unfinished_messages() {
    let mut script = Script::new(config());
    script.syn(0);
    script.data((1, 501), 1_000);
    script.control(TcpHeader::Reset { conn: 0 });
    assert_eq!(script.events(), [Event::Abandoned { src: PEER, msg: MsgId::new(7) }]);
    script.sent();
    script.data((501, 1_001), 1_000);
    assert_eq!(script.sent(), ["refused"]);
}

#[test]
fn messages_of_a_persistent_connection_follow_one_another() {
    let keys = TcpConfig { connections: Connections::Persistent, ..config() };
    let mut script = Script::open(keys, 1_500);
    script.submit(700);
    assert_eq!(script.sent(), ["1..1001", "1001..1501", "1501..2201"]);
    script.at(200).ack(1_501, &[]);
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(0) }]);
    script.ack(2_201, &[]);
    assert_eq!(script.events(), [Event::Completed { msg: MsgId::new(1) }]);
    // It stays open.
    script.submit(100);
    assert_eq!(script.sent(), ["2201..2301"]);
}

#[test]
fn a_pool_takes_an_idle_connection_and_opens_another_if_all_are_busy() {
    let keys = TcpConfig { connections: Connections::Pool, handshake: false, ..config() };
    let mut script = Script::new(keys);
    script.submit(1_000);
    assert_eq!(script.sent(), ["1..1001"]);
    script.submit(500);
    assert_eq!(script.sent(), ["syn"]);
    (script.initial, script.conn) = (0, 0);
    script.at(100).ack(1_001, &[]);
    script.submit(300);
    assert_eq!(script.sent(), ["1001..1301"]);
}

#[test]
fn a_cancelled_message_resets_only_its_own_connection() {
    let keys = TcpConfig { connections: Connections::Persistent, ..config() };
    let mut script = Script::open(keys, 4_000);
    let msg = script.submit(1_000);
    assert_eq!(script.sent(), segments(0, 4));
    script.host.cancel(script.now, MsgId::new(0));
    assert_eq!(script.sent(), ["reset", "syn"]);
    script.at(200).syn_ack();
    assert_eq!(script.sent(), ["1..1001"]);
    script.at(300).ack(1_001, &[]);
    assert_eq!(script.events(), [Event::Completed { msg }]);
}

/// RFC 9293 §3.10.7.3: an acknowledgement of unsent bytes opens nothing.
#[test]
fn an_answer_to_another_syn_is_ignored() {
    let mut script = Script::new(config());
    script.submit(3_000);
    assert_eq!(script.sent(), ["syn"]);
    let other = wrap(2, script.initial);
    script.at(100).syn_ack_to(false, other);
    assert!(script.sent().is_empty());
    script.syn_ack();
    assert_eq!(script.sent()[..3], segments(0, 3));
}
