//! Windows against the formulas of the standards.

use super::super::control::{
    AckEffect, CongestionControl, ControlParams, Cubic, Dctcp, Growth, HyStart, NewReno,
    SlowStartExit,
};
use super::*;

fn start() -> ControlParams {
    ControlParams {
        mss: MSS,
        initial: 10 * MSS,
        max: 1 << 40,
        granted: 1 << 40,
        slow_start_exit: SlowStartExit::Never,
        fast_initial_growth: false,
        reno_friendly: true,
        reno_catch_up: true,
        gain: 0.0625,
        alpha: 0.0,
    }
}

/// Returns an acknowledgement of one segment.
fn acked(us: u64, n: u64, rtt_us: u64) -> AckEffect {
    let rtt = Some(Span::from_us(rtt_us));
    AckEffect {
        now: at(us),
        bytes: MSS,
        una: after(n),
        next: after(n) + 100 * MSS,
        rtt,
        smoothed: rtt,
        is_marked: false,
        is_limited: true,
        in_recovery: false,
    }
}

/// One round trip: as many acknowledgements as there are segments in the window.
fn round(control: &mut impl CongestionControl, us: u64, rtt_us: u64) {
    let n = control.cwnd() / MSS;
    for i in 0..n {
        control.on_ack(&acked(us + i * rtt_us / n, i, rtt_us));
    }
}

/// RFC 9438 §4.2: W(t) = C (t - K)^3 + W_max, K = cbrt(W_max (1 - beta) / C).
///
/// 1000 segments are lost at time zero, with a round trip of 100 ms, so that the function is above
/// NewReno's.
#[test]
fn cubic_grows_by_its_function() {
    let mut cubic = Cubic::new(&ControlParams { initial: 1_000 * MSS, ..start() });
    cubic.on_loss(at(0), 1_000 * MSS);
    assert_eq!(cubic.cwnd(), 700 * MSS);
    let k = (1_000.0f64 * 0.3 / 0.4).cbrt();
    let (rtt_us, mut us) = (100_000, 0);
    while us < 15_000_000 {
        round(&mut cubic, us, rtt_us);
        us += rtt_us;
        let t = us as f64 / 1e6;
        let expected = 0.4 * (t - k).powi(3) + 1_000.0;
        let got = cubic.cwnd() as f64 / MSS as f64;
        assert!((got / expected - 1.0).abs() < 0.01, "{got} at {t} s, expected {expected}");
    }
}

/// §4.3: if round trips are short it grows as fast as NewReno with the same average window.
#[test]
fn cubic_is_no_slower_than_reno() {
    let mut cubic = Cubic::new(&ControlParams { initial: 100 * MSS, ..start() });
    cubic.on_loss(at(0), 100 * MSS);
    let before = cubic.cwnd() as f64;
    for i in 0..20 {
        round(&mut cubic, i * 100, 100);
    }
    let grown = (cubic.cwnd() as f64 - before) / MSS as f64;
    let slope = 3.0 * 0.3 / 1.7;
    assert!((grown / (20.0 * slope) - 1.0).abs() < 0.02, "{grown} segments in 20 round trips");
}

/// §4.3: beyond the window before the loss it grows by a segment a round trip, in Linux as before.
#[test]
fn cubic_catches_up_with_reno_if_configured() {
    let grown = |reno_catch_up| {
        let mut cubic = Cubic::new(&ControlParams { reno_catch_up, initial: 100 * MSS, ..start() });
        cubic.on_loss(at(0), 100 * MSS);
        let mut us = 0;
        while cubic.cwnd() < 100 * MSS {
            round(&mut cubic, us, 100);
            us += 100;
        }
        let before = cubic.cwnd() as f64;
        for i in 0..20 {
            round(&mut cubic, us + i * 100, 100);
        }
        (cubic.cwnd() as f64 - before) / MSS as f64 / 20.0
    };
    assert!((grown(true) - 1.0).abs() < 0.02, "{} segments a round trip", grown(true));
    assert!((grown(false) - 0.9 / 1.7).abs() < 0.02, "{} segments a round trip", grown(false));
}

/// §4.7: after a second loss below the last maximum the window makes room for others.
#[test]
fn cubic_converges_fast() {
    let mut cubic = Cubic::new(&ControlParams { initial: 100 * MSS, ..start() });
    cubic.on_loss(at(0), 100 * MSS);
    cubic.on_loss(at(100), 70 * MSS);
    assert_eq!(cubic.cwnd(), 49 * MSS);
    // The function is flat at 70 * 0.85 = 59.5 segments, which it reaches after K seconds.
    let k = ((59.5 - 49.0) / 0.4f64).cbrt();
    let (rtt_us, mut us) = (200_000, 0);
    while (us as f64) < k * 1e6 {
        round(&mut cubic, us, rtt_us);
        us += rtt_us;
    }
    let got = cubic.cwnd() as f64 / MSS as f64;
    assert!((got - 59.5).abs() < 1.5, "{got} segments after {k} s");
}

#[test]
fn cubic_grows_by_a_twentieth_before_the_first_loss_if_configured() {
    let exit = |fast_initial_growth| {
        let mut cubic =
            Cubic::new(&ControlParams { fast_initial_growth, initial: 400 * MSS, ..start() });
        cubic.on_idle(400 * MSS);
        cubic
    };
    let mut slow = exit(false);
    let mut fast = exit(true);
    // HyStart has ended slow start.
    for cubic in [&mut slow, &mut fast] {
        cubic.end_slow_start();
        round(cubic, 0, 100);
    }
    assert_eq!((slow.cwnd() + 10) / MSS, 400 + 1);
    assert_eq!(fast.cwnd() / MSS, 420);
}

/// RFC 5681 §3.1: half of the bytes in flight, two segments at least.
#[test]
fn reno_halves_and_keeps_two_segments() {
    let mut reno = NewReno::new(&start());
    reno.on_loss(at(0), 10 * MSS);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (5 * MSS, 5 * MSS));
    reno.on_timeout(at(1), MSS, true);
    assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 2 * MSS));
}

/// The sawtooth between w and w/2 has the 1/sqrt(p) law: one loss in 3/8 w^2 segments (Mathis,
/// Semke, Mahdavi, Ott, 1997).
#[test]
fn reno_keeps_the_square_root_law() {
    let mut reno = NewReno::new(&start());
    reno.on_loss(at(0), 80 * MSS);
    let (mut segments, mut losses) = (0u64, 0u64);
    for i in 0..2_000 {
        let window = reno.cwnd() / MSS;
        segments += window;
        round(&mut reno, i * 100, 100);
        if window >= 80 {
            reno.on_loss(at(i * 100), window * MSS);
            losses += 1;
        }
    }
    let p = losses as f64 / segments as f64;
    let mean = segments as f64 / 2_000.0;
    let law = (1.5 / p).sqrt();
    assert!((mean / law - 1.0).abs() < 0.03, "window {mean}, law {law}");
}

/// RFC 8257 §3.3: with a share f of marked bytes in each window, alpha tends to f.
#[test]
fn alpha_tends_to_the_share_of_marked_bytes() {
    let mut dctcp = Dctcp::new(&start());
    for i in 0..40_000u64 {
        let mut one = acked(i, i, 100);
        one.is_marked = i % 4 == 0;
        one.next = one.una + 100 * MSS;
        dctcp.on_ack(&one);
    }
    assert!((dctcp.alpha() - 0.25).abs() < 0.01, "{}", dctcp.alpha());
}

/// Returns the window growth of HyStart++ at the end of a round of 20 segments, by the round trip
/// time in microseconds.
fn growth_by_round() -> impl FnMut(u64) -> Growth {
    let mut hystart = HyStart::new(SlowStartExit::HystartPp);
    let (mut una, mut us) = (1, 0);
    move |rtt_us| {
        let mut last = Growth::End;
        let next = una + 20 * MSS;
        for _ in 0..20 {
            (una, us) = (una + MSS, us + 5);
            let one = AckEffect { una, next, ..acked(us, 0, rtt_us) };
            last = hystart.on_ack(&one, 20 * MSS, MSS);
        }
        last
    }
}

/// RFC 9406 §4.2: a round trip that is an eighth longer slows growth to a quarter; slow start ends
/// five round trips later.
#[test]
fn hystart_ends_slow_start_when_round_trips_grow() {
    let mut growth = growth_by_round();
    assert_eq!([growth(100), growth(110)], [Growth::Bytes(MSS); 2]);
    assert_eq!([growth(130), growth(130)], [Growth::Bytes(MSS / 4); 2]);
    let later: Vec<Growth> = (0..6).map(|_| growth(130)).collect();
    assert_eq!(later.last(), Some(&Growth::End));
}

/// Slow start resumes if they become short.
#[test]
fn hystart_resumes_slow_start_when_round_trips_are_short_again() {
    let mut growth = growth_by_round();
    assert_eq!([growth(100), growth(130)], [Growth::Bytes(MSS), Growth::Bytes(MSS / 4)]);
    assert_eq!(growth(100), Growth::Bytes(MSS));
}
