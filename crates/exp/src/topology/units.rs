//! Rates and delays as texts with units.

/// A rate in errors.
pub(super) const RATE: &str = "a rate from 0.000001 to 100000 Gbit/s, such as 25 or \"25Gbps\"";
/// A delay in errors.
pub(super) const DELAY: &str = "a delay from 0 to 1000000000 ns, such as 500 or \"0.5us\"";

/// Returns Gbit/s of a rate with a unit, as ns-3 writes them: `25Gbps`, `10Gb/s`, `1.5MBps`.
pub(super) fn rate(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (prefix, per_bit) = if let Some(prefix) = strip(unit, &["bps", "b/s", "bit/s"]) {
        (prefix, 1.0)
    } else {
        (strip(unit, &["Bps", "B/s"])?, 8.0)
    };
    let scale = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        _ => return None,
    };
    Some(number * per_bit * scale / 1e9)
}

/// Returns nanoseconds of a delay with a unit: `1us`, `0.001ms`.
pub(super) fn delay(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let ns = match unit {
        "s" => number * 1e9,
        "ms" => number * 1e6,
        "us" | "µs" => number * 1e3,
        "ns" => number,
        "ps" => number / 1e3,
        "fs" => number / 1e6,
        _ => return None,
    };
    // Whole femtoseconds, so that 0.001 ms is 1000 ns.
    Some((ns * 1e6).round() / 1e6)
}

pub(super) fn is_rate(gbps: f64) -> bool {
    (1e-6..=1e5).contains(&gbps)
}

pub(super) fn is_delay(ns: f64) -> bool {
    (0.0..=1e9).contains(&ns)
}

fn strip<'a>(unit: &'a str, ends: &[&str]) -> Option<&'a str> {
    ends.iter().find_map(|end| unit.strip_suffix(end))
}

/// Splits a text into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_unit = |c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E');
    let at = text.find(is_unit)?;
    Some((text[..at].trim().parse().ok()?, text[at..].trim()))
}
