//! The paper's theorems as functions.
//!
//! `rtt` is the unloaded round trip of a full packet (hRTT, §3.1), and `rate` that of every link
//! (B). `packet` is the longest packet (p), `switches` are those on the longest path (#H). `slots`
//! is the number of virtual links of a link (K).

use rampmeter_types::{Bytes, Rate, Span};

/// Returns the least delay bound of any design, delta* = 2 hRTT + s/B (theorem 3.1).
pub fn delta_star(rtt: Span, size: Bytes, rate: Rate) -> Span {
    rtt * 2 + rate.tx_time(size)
}

/// Returns the highest load that any design sustains, Theta* = 1 / (2 (1 + alpha)) with alpha =
/// hRTT / (s/B) (theorem 3.1).
pub fn theta_star(rtt: Span, size: Bytes, rate: Rate) -> f64 {
    let alpha = rtt.as_secs_f64() / rate.tx_time(size).as_secs_f64();
    1.0 / (2.0 * (1.0 + alpha))
}

/// Returns the share of Theta* that cosy sustains in expectation, f(K, C) for `cores` core switches
/// (theorem 3.4, equation 1). It tends to 1 - 1/e for K = 1 and many cores (theorem 3.2), and to 1
/// with K.
pub fn f(slots: u32, cores: u32) -> f64 {
    let (k, c) = (f64::from(slots), f64::from(cores));
    if cores <= 1 {
        return 1.0;
    }
    // Terms from i = 0 on, each from the one before: no binomial is ever computed by itself. The
    // first is a power that may underflow, so the recursion runs on logarithms.
    let balls = k * c;
    let odds = (1.0 / c).ln() - (1.0 - 1.0 / c).ln();
    let mut log = balls * (1.0 - 1.0 / c).ln();
    let (mut sum, mut i) = (0.0, 0.0);
    // Beyond the mean of K balls a bin terms fall, and soon they are negligible.
    while i <= balls && (i <= k || log > NOTHING) {
        sum += f64::min(i, k) * log.exp();
        log += (balls - i).ln() - (i + 1.0).ln() + odds;
        i += 1.0;
    }
    sum / k
}

/// The logarithm of zero.
const NOTHING: f64 = -80.0;

/// Returns the longest queue of any port, #H (K - 1) p (lemma 3.3).
pub fn queue_bound(switches: u32, slots: u32, packet: Bytes) -> Bytes {
    Bytes::new(u64::from(switches) * u64::from(slots.saturating_sub(1)) * packet.get())
}

/// Returns the longest time in queues of a packet (lemma 3.3, appendix A).
///
/// It is `#H (#H + 1) (K F - 1) p / (2 F B)`. Links between switches are up to `ratio` (F) times as
/// fast as those of hosts.
pub fn queueing_bound(switches: u32, slots: u32, ratio: u32, packet: Bytes, rate: Rate) -> Span {
    let pairs = u64::from(switches) * u64::from(switches + 1) / 2;
    let others = (u64::from(slots) * u64::from(ratio)).saturating_sub(1);
    rate.tx_time(packet).scale_floor(pairs * others, u64::from(ratio))
}

/// Returns the virtual links up to which queues fit into `buffer`, K* = S / (#H p) (§3.4).
pub fn slots_max(buffer: Bytes, switches: u32, packet: Bytes) -> u32 {
    let slots = buffer.get() / (u64::from(switches) * packet.get());
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// cosy's delay bound, 2 hRTT + s K / B + the longest time in queues (theorem 3.5).
pub fn delta_cosy(rtt: Span, size: Bytes, rate: Rate, slots: u32, queueing: Span) -> Span {
    rtt * 2 + rate.tx_time(size) * u64::from(slots) + queueing
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_gbps(100);
    const PACKET: Bytes = Bytes::new(1_500);

    /// §3.4: 32 MB buffers, five switches, 1.5 KB packets.
    #[test]
    fn the_analysis_reproduces_the_papers_numbers() {
        assert_eq!(slots_max(Bytes::new(32_000_000), 5, PACKET), 4_266);
        assert_eq!(queueing_bound(5, 4, 1, PACKET, RATE), Span::from_ns(5_400));
        assert_eq!(queue_bound(5, 4, PACKET), Bytes::new(22_500));
    }

    /// Theorem 3.2 and figure 2.
    #[test]
    fn the_sustainable_share_grows_from_1_less_1_over_e_to_1() {
        let limit = 1.0 - (-1.0f64).exp();
        assert!((f(1, 100_000) - limit).abs() < 1e-5, "{}", f(1, 100_000));
        let shares: Vec<f64> = (1..=64).map(|k| f(k, 32)).collect();
        assert!(shares.is_sorted() && shares[0] > limit && shares[63] < 1.0, "{shares:?}");
        assert!(f(4_096, 32) > 0.99);
        assert_eq!(f(3, 1), 1.0);
    }

    /// Two balls and two bins with one place each, by hand: half of the time both are in one bin.
    #[test]
    fn two_balls_in_two_bins_fill_three_quarters_of_them() {
        assert!((f(1, 2) - 0.75).abs() < 1e-12, "{}", f(1, 2));
        // K = 2, C = 2: four balls; a bin has 0..4 of them with 1, 4, 6, 4, 1 sixteenths.
        let expected = (4.0 + 2.0 * (6.0 + 4.0 + 1.0)) / 16.0 / 2.0;
        assert!((f(2, 2) - expected).abs() < 1e-12, "{}", f(2, 2));
    }

    #[test]
    fn bounds_are_those_of_the_theorems() {
        let (rtt, size) = (Span::from_ns(5_500), Bytes::new(128_000));
        assert_eq!(delta_star(rtt, size, RATE), Span::from_ns(21_240));
        assert!((theta_star(rtt, size, RATE) - 0.325).abs() < 1e-3);
        let queueing = queueing_bound(3, 1, 1, PACKET, RATE);
        assert_eq!(delta_cosy(rtt, size, RATE, 1, queueing), delta_star(rtt, size, RATE));
        assert_eq!(queueing_bound(3, 4, 4, PACKET, RATE).as_ps(), 120_000 * 6 * 15 / 4);
    }
}
