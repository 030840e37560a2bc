//! Means, quantiles and samples against the published points.

use rampmeter_types::{Bytes, Purpose, Rng};

use super::published::PACKET;
use super::{NAMES, SizeDist, SizeInterpolation, named};

fn points(name: &str) -> Vec<(f64, f64)> {
    named(name).unwrap().points().collect()
}

/// Returns the probability of at most `at` units: between the points linear, or a step at each.
fn cdf(dist: &SizeDist, at: f64) -> f64 {
    let points: Vec<(f64, f64)> = dist.points().collect();
    match points.partition_point(|&(size, _)| size <= at) {
        0 => 0.0,
        n if n == points.len() => 1.0,
        n if dist.shape == SizeInterpolation::Steps => points[n - 1].1,
        n => {
            let ((from, low), (to, high)) = (points[n - 1], points[n]);
            low + (high - low) * (at - from) / (to - from)
        }
    }
}

mod mean {
    use super::*;

    #[test]
    fn the_mean_of_every_distribution_is_the_published_one() {
        let published = [
            ("imc10", 133.80625 * 1460.0),
            ("web-search", 1140.98 * 1460.0),
            ("data-mining", 5116.6 * 1460.0),
            // Rounding up adds half a packet if sizes are drawn between points.
            ("ns-2-web-search", (1140.98 + 0.5 * 0.85) * 1460.0),
            ("ns-2-data-mining", (5116.6 + 0.5 * 0.5) * 1460.0),
            ("hpcc-web-search", 1_711_250.0),
            ("ali-storage", 40_869.8),
            ("homa-w2", 440.7907),
            ("homa-w3", 2927.68),
            ("homa-w4", 127_796.65),
            ("homa-w5", 1744.7044 * 1442.0),
        ];
        for (name, mean) in published {
            let ours = named(name).unwrap().mean_bytes();
            assert!((ours / mean - 1.0).abs() < 1e-6, "{name}: {ours}, published {mean}");
        }
    }

    #[test]
    fn the_mean_of_homa_w1_is_published_before_rounding_down_sizes() {
        let ours = named("homa-w1").unwrap().mean_bytes();
        assert!((ours - 187.5107).abs() < 1e-3, "{ours}");
        // 300 sizes in the tail lose half a byte each on average; 187.77 is published as 187.8.
        assert!((ours + 0.5 * 0.53 - 187.8).abs() < 0.05, "{ours}");
    }

    #[test]
    fn the_mean_includes_the_rounding_of_points() {
        let shapes =
            [&[(0.0, 0.0), (2.3, 0.4), (7.7, 1.0)][..], &[(0.2, 0.3), (0.9, 0.6), (1.4, 1.0)]];
        for points in shapes {
            let dist = SizeDist::new(points, SizeInterpolation::Linear, Bytes::new(10)).unwrap();
            let n = 1_000_000;
            let sum: u64 =
                (0..n).map(|i| dist.quantile((f64::from(i) + 0.5) / f64::from(n)).get()).sum();
            let mean = sum as f64 / f64::from(n);
            assert!((dist.mean_bytes() - mean).abs() < 1e-4, "{} {mean}", dist.mean_bytes());
        }
    }

    #[test]
    fn the_mean_of_a_fixed_size_is_that_size() {
        assert_eq!(SizeDist::fixed(Bytes::new(71_540)).mean_bytes(), 71_540.0);
    }
}

mod homa {
    use super::*;

    fn has(name: &str, n: usize, entries: &[(f64, f64)]) {
        let points = points(name);
        assert_eq!(points.len(), n, "{name}");
        for &(size, cdf) in entries {
            let near = |&&(at, p): &&(f64, f64)| at == size && (p - cdf).abs() < 1.1e-6;
            assert!(points.iter().any(|point| near(&point)), "{name}: no entry {size} {cdf}");
        }
    }

    #[test]
    fn tables_have_the_published_entries() {
        has("homa-w1", 315, &[(15.0, 0.47), (16.0, 0.472463), (97_119.0, 0.999_999_745)]);
        has("homa-w1", 315, &[(209.0, 0.759054), (1015.0, 0.966837), (100_000.0, 1.0)]);
        has("homa-w2", 155, &[(43.0, 0.257722), (3413.0, 0.992461), (573_085.0, 0.999984)]);
        has("homa-w3", 842, &[(1053.0, 0.865736), (66_272.0, 0.993342), (344_275.0, 0.998952)]);
        has("homa-w3", 842, &[(13_293_619.0, 0.999_997_478), (2_990_000.0 + 1214.0, 0.999_927)]);
        has("homa-w4", 460, &[(53.0, 0.00074), (3544.0, 0.68493), (8_582_787.0, 0.9987)]);
        has("homa-w5", 400, &[(8.0, 0.164286), (254.0, 0.622659), (1317.0, 0.797598)]);
        has("homa-w5", 400, &[(2133.0, 0.84), (7001.0, 0.902505), (19_667.0, 0.997502)]);
    }
}

mod quantile {
    use super::*;

    #[test]
    fn quantiles_match_every_published_point() {
        for name in NAMES {
            let dist = named(name).unwrap();
            for (at, p) in points(name).into_iter().filter(|&(_, p)| p > 0.0) {
                let size = dist.quantile(p).get() as f64 / dist.unit().get() as f64;
                // The table of W1 has sizes twice, each with a separate probability.
                assert_eq!(size, at, "{name} at {p}");
            }
        }
    }

    #[test]
    fn imc10_has_an_atom_of_one_packet_and_is_interpolated_between_points() {
        let dist = named("imc10").unwrap();
        let packets = |p| dist.quantile(p).get() / PACKET.get();
        assert_eq!((packets(0.0), packets(0.3), packets(0.5), packets(0.875)), (1, 1, 1, 202));
        let deciles: Vec<u64> = dist.deciles().iter().map(|d| d.get() / PACKET.get()).collect();
        assert_eq!(deciles, [1, 1, 1, 1, 1, 2, 3, 7, 267]);
    }

    #[test]
    fn a_size_is_at_least_one_unit() {
        let dist = named("ali-storage").unwrap();
        assert_eq!(dist.quantile(0.0), Bytes::new(1));
    }
}

mod sample {
    use super::*;

    /// One sample in a thousand is farther off: the Kolmogorov-Smirnov bound.
    const KS: f64 = 1.95;

    #[test]
    fn samples_match_the_published_points() {
        let n = 200_000;
        for name in NAMES {
            let dist = named(name).unwrap();
            let mut rng = Rng::new(7, 0, Purpose::Size);
            let mut sizes: Vec<u64> = (0..n).map(|_| dist.sample(&mut rng).get()).collect();
            sizes.sort_unstable();
            let unit = dist.unit().get();
            let rounding = if dist.shape == SizeInterpolation::Linear { 0.5 } else { 0.0 };
            let mut worst: f64 = 0.0;
            for (at, _) in points(name) {
                let ours =
                    sizes.partition_point(|&size| size <= at as u64 * unit) as f64 / n as f64;
                worst = worst.max((ours - cdf(&dist, at + rounding)).abs());
            }
            assert!(worst < KS / (n as f64).sqrt(), "{name}: {worst}");
        }
    }

    #[test]
    fn samples_have_the_exact_mean_within_their_error() {
        let n = 400_000;
        for name in NAMES {
            let dist = named(name).unwrap();
            let mut rng = Rng::new(11, 0, Purpose::Size);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let size = dist.sample(&mut rng).get() as f64;
                sum += size;
                squares += size * size;
            }
            let mean = sum / f64::from(n);
            let error = ((squares / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
            let off = (mean - dist.mean_bytes()).abs();
            assert!(off < 4.0 * error, "{name}: {off} with error {error}");
        }
    }
}

#[test]
fn an_error_of_an_unknown_name_lists_all_names() {
    assert_eq!(
        named("imc").unwrap_err().to_string(),
        "expected one of imc10, web-search, data-mining, ns-2-web-search, ns-2-data-mining, \
         hpcc-web-search, ali-storage, homa-w1, homa-w2, homa-w3, homa-w4, homa-w5, got \"imc\""
    );
}

#[test]
fn points_are_checked_by_number() {
    let new =
        |points: &[(f64, f64)]| SizeDist::new(points, SizeInterpolation::Linear, Bytes::new(1460));
    let message = new(&[(1.0, 0.5), (2.0, 0.4)]).unwrap_err().to_string();
    assert_eq!(message, "point 2: expected a probability not below the one before, got 0.4");
    let message = new(&[]).unwrap_err().to_string();
    assert_eq!(message, "the distribution: expected at least one point, got none");
}

/// The shares of messages of up to ten packets. CAPTON's paper measured 17.9 and 80.2 % (tables 5
/// and 6).
#[test]
fn sizes_of_ns_2_are_rounded_up() {
    let share = |name: &str, packets: u64| {
        let sizes = named(name).unwrap();
        let size = |p: f64| sizes.quantile(p).get() / 1460;
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if size(middle) <= packets { low = middle } else { high = middle }
        }
        low
    };
    assert!((share("ns-2-web-search", 10) - (0.15 + 0.05 * 4.0 / 7.0)).abs() < 1e-9);
    assert!((share("ns-2-data-mining", 10) - (0.8 + 0.1 * 3.0 / 260.0)).abs() < 1e-9);
    assert!((share("ns-2-web-search", 13) - 0.2).abs() < 1e-9);
}
