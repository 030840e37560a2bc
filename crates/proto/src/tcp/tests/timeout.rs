//! The retransmission timer (RFC 6298).

use super::super::config::Timeout;
use super::*;

/// SRTT 100 us, RTTVAR 50 us: 300 us, so the minimum of 1 ms holds.
#[test]
fn the_timeout_is_at_least_the_minimum() {
    let mut script = Script::open(config(), 1_000);
    assert_eq!(script.sent(), ["1..1001", "fin 1001"]);
    assert!(script.at(1_099).sent().is_empty());
    assert_eq!(script.at(1_100).sent_one(), "1..1001");
}

/// The first sample R gives SRTT = R, RTTVAR = R/2, and so three times R (RFC 6298 §2.2).
#[test]
fn the_first_timeout_is_three_round_trips() {
    let mut script = Script::open(TcpConfig { rto_min_us: Some(1), ..config() }, 1_000);
    script.sent();
    assert!(script.at(399).sent().is_empty());
    assert_eq!(script.at(400).sent_one(), "1..1001");
}

/// RFC 6298 §2.3, worked: R' = 180 us after SRTT = 100, RTTVAR = 50.
#[test]
fn later_samples_count_an_eighth() {
    let mut script =
        Script::open(TcpConfig { rto_min_us: Some(1), window_initial: 1, ..config() }, 5_000);
    assert_eq!(script.sent(), segments(0, 1));
    script.at(280).ack(after(1), &[]);
    script.sent();
    // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110: 340 us.
    assert!(script.at(619).sent().is_empty());
    assert_eq!(script.at(620).sent().len(), 1);
}

#[test]
fn a_largest_timeout_is_a_round_trip_or_more() {
    let largest = |rto_min_us, rto_max_us| {
        TcpConfig { rto_min_us: Some(rto_min_us), rto_max_us, ..TcpConfig::cubic() }
            .derive(&facts(), Vec::new())
            .map(|tcp| tcp.rto_max)
    };
    assert_eq!(largest(1, None), Ok(Span::from_us(2_560)));
    assert_eq!(largest(20, None), Ok(Span::from_us(5_120)));
    assert_eq!(largest(1, Some(10)), Ok(Span::from_us(10)));
    let error = BadKey::new("rto-max-us", "at least 10 (rto-min-us, or a round trip)", 9.0);
    assert_eq!(largest(1, Some(9)), Err(error));
}

#[test]
fn each_timeout_doubles_the_next() {
    let mut script = Script::open(config(), 1_000);
    script.sent();
    let mut at = 1_100;
    for wait in [2_000, 4_000, 8_000, 16_000] {
        assert_eq!(script.at(at).sent()[0], "1..1001");
        assert!(script.at(at + wait - 1).sent().is_empty());
        at += wait;
    }
    assert_eq!(script.stats().timeouts, 4);
}

#[test]
fn the_largest_timeout_holds() {
    let mut script = Script::open(TcpConfig { rto_max_us: Some(3_000), ..config() }, 1_000);
    script.sent();
    script.at(1_100).sent();
    script.at(3_100).sent();
    assert!(script.at(6_099).sent().is_empty());
    assert_eq!(script.at(6_100).sent()[0], "1..1001");
}

#[test]
fn a_fixed_timeout_is_never_doubled() {
    let mut script = Script::open(TcpConfig { rto_mode: Timeout::Fixed, ..config() }, 1_000);
    script.sent();
    for n in 0..5 {
        assert!(script.at(1_099 + n * 1_000).sent().is_empty());
        assert_eq!(script.at(1_100 + n * 1_000).sent()[0], "1..1001");
    }
}

#[test]
fn an_acknowledgement_starts_the_timer_again() {
    let mut script = Script::open(config(), 4_000);
    script.sent();
    script.at(1_000).ack(after(1), &[]);
    assert!(script.at(1_999).sent().is_empty());
    assert!(!script.at(3_000).sent().is_empty());
}

#[test]
fn without_data_in_flight_nothing_times_out() {
    let mut script = Script::open(config(), 1_000);
    script.sent();
    script.at(200).ack(1_002, &[]);
    assert!(script.at(100_000).sent().is_empty());
    assert_eq!(script.stats().timeouts, 0);
}

/// One segment after a timeout (RFC 5681 §3.1), then slow start up to half of the bytes in flight.
#[test]
fn a_timeout_starts_slowly_again() {
    let mut script = Script::open(TcpConfig { window_initial: 16, ..config() }, 100_000);
    assert_eq!(script.sent().len(), 16);
    script.at(1_100);
    assert_eq!(script.sent(), segments(0, 1));
    script.at(1_200).ack(after(1), &[]);
    assert_eq!(script.sent(), segments(1, 2));
    script.at(1_300).ack(after(2), &[]).ack(after(3), &[]);
    assert_eq!(script.sent(), segments(3, 4));
    for n in 4..=7 {
        script.at(1_400).ack(after(n), &[]);
    }
    assert_eq!(script.sent(), segments(7, 8));
    for n in 8..=15 {
        script.at(1_500).ack(after(n), &[]);
    }
    // Half of sixteen is reached: one segment more in a round trip.
    assert_eq!(script.sent().len(), 9);
}

#[test]
fn a_second_timeout_in_a_row_does_not_cut_the_threshold_again() {
    let mut script = Script::open(TcpConfig { window_initial: 16, ..config() }, 100_000);
    script.sent();
    script.at(1_100).sent();
    script.at(3_100);
    assert_eq!(script.sent(), segments(0, 1));
    script.at(3_200).ack(after(1), &[]);
    script.sent();
    script.at(3_300).ack(after(2), &[]).ack(after(3), &[]);
    assert_eq!(script.sent(), segments(3, 4), "still below the threshold of eight");
}

#[test]
fn a_connection_fails_after_the_configured_number_of_timeouts() {
    let mut script = Script::open(TcpConfig { attempts_max: 3, ..config() }, 1_000);
    script.at(1_000_000);
    assert_eq!(script.events(), []);
    script.sent();
    script.at(2_000_000);
    let sent = script.sent();
    assert_eq!(script.events(), [Event::Failed { msg: MsgId::new(0) }]);
    assert_eq!(sent.last().map(String::as_str), Some("reset"));
    assert_eq!(script.host.message_counts(), Some((0, 0)));
}
