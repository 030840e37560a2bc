//! Quantities as texts with units: `"25Gbps"`, `"1us"`, `"2MB"`.
//!
//! Plans, topologies and traces share this parser. It returns the number in the unit of the key or
//! column, so that their readers handle only numbers.

/// Unit of a key's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    quantity: Quantity,
    /// The power of ten of seconds, bit/s or bytes.
    power: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Bytes,
}

impl Unit {
    /// Picoseconds.
    pub const PICOSECONDS: Self = Self { quantity: Quantity::Time, power: -12 };
    /// Nanoseconds.
    pub const NANOSECONDS: Self = Self { quantity: Quantity::Time, power: -9 };
    /// Gbit/s.
    pub const GBPS: Self = Self { quantity: Quantity::Rate, power: 9 };
    /// Bytes.
    pub const BYTES: Self = Self { quantity: Quantity::Bytes, power: 0 };

    /// Returns the unit of time whose name is `symbol`, such as `us`.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Some(Self { quantity: Quantity::Time, power: time(symbol)? })
    }

    /// Returns the unit of the numbers of `key`, which the key's suffix names.
    pub fn from_key(key: &str) -> Option<Self> {
        let (quantity, power) = match key.trim_end_matches("-back").rsplit('-').next()? {
            "ms" => (Quantity::Time, -3),
            "us" => (Quantity::Time, -6),
            "ns" => (Quantity::Time, -9),
            "ps" => (Quantity::Time, -12),
            "gbps" => (Quantity::Rate, 9),
            "mbps" => (Quantity::Rate, 6),
            "bps" => (Quantity::Rate, 0),
            "bytes" | "fixed" => (Quantity::Bytes, 0),
            _ => return None,
        };
        Some(Self { quantity, power })
    }

    /// Returns a regular expression for texts of this quantity, for editors.
    pub fn pattern(self) -> &'static str {
        match self.quantity {
            Quantity::Time => r"^\s*[0-9.][0-9._eE+-]*\s*([munµpf]?s)\s*$",
            Quantity::Rate => r"^\s*[0-9.][0-9._eE+-]*\s*([kKMGT]i?)?(bps|b/s|bit/s|Bps|B/s)\s*$",
            Quantity::Bytes => r"^\s*[0-9.][0-9._eE+-]*\s*([kKMGT]i?)?B\s*$",
        }
    }

    /// Returns a phrase for errors.
    pub fn expected(self) -> &'static str {
        match (self.quantity, self.power) {
            (Quantity::Time, 0) => "seconds, such as 0.5 or \"500ms\"",
            (Quantity::Time, -3) => "milliseconds, such as 5 or \"5ms\"",
            (Quantity::Time, -6) => "microseconds, such as 5 or \"5us\"",
            (Quantity::Time, -9) => "nanoseconds, such as 500 or \"0.5us\"",
            (Quantity::Time, _) => "picoseconds, such as 500 or \"0.5ns\"",
            (Quantity::Rate, 9) => "Gbit/s, such as 25 or \"25Gbps\"",
            (Quantity::Rate, 6) => "Mbit/s, such as 25 or \"25Mbps\"",
            (Quantity::Rate, _) => "bit/s, such as 25000 or \"25kbps\"",
            (Quantity::Bytes, _) => "a whole number of bytes, such as 2000000 or \"2MB\"",
        }
    }

    /// Returns true if this unit may have the number: bytes are whole, and below 2^53.
    pub fn admits(self, number: f64) -> bool {
        let is_whole = number.fract() == 0.0 && number.abs() < BYTES_MAX;
        self.quantity != Quantity::Bytes || is_whole
    }

    /// Returns the number in this unit of a text with a unit. Powers of ten are exact.
    pub fn parse(self, text: &str) -> Option<f64> {
        let (number, unit) = split(text)?;
        let (power, factor) = match self.quantity {
            Quantity::Time => (time(unit)?, 1.0),
            Quantity::Rate => {
                let (prefix, per_bit) = match strip(unit, &["bps", "b/s", "bit/s"]) {
                    Some(prefix) => (prefix, 1.0),
                    None => (strip(unit, &["Bps", "B/s"])?, 8.0),
                };
                let (power, factor) = scale(prefix)?;
                (power, factor * per_bit)
            }
            Quantity::Bytes => scale(unit.strip_suffix('B')?)?,
        };
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let exponent = exponent.parse::<i32>().ok()?.checked_add(power - self.power)?;
        let value = format!("{}e{exponent}", mantissa.replace('_', "")).parse::<f64>().ok()?;
        Some(value * factor).filter(|value| value.is_finite())
    }
}

/// Numbers of bytes below this are exact in floating point.
const BYTES_MAX: f64 = (1u64 << 53) as f64;

/// Returns the power of ten of a unit of time, in seconds.
fn time(unit: &str) -> Option<i32> {
    Some(match unit {
        "s" => 0,
        "ms" => -3,
        "us" | "µs" | "μs" => -6,
        "ns" => -9,
        "ps" => -12,
        "fs" => -15,
        _ => return None,
    })
}

/// Returns the power of ten of a prefix, and the additional factor.
fn scale(prefix: &str) -> Option<(i32, f64)> {
    Some(match prefix {
        "" => (0, 1.0),
        "k" | "K" => (3, 1.0),
        "M" => (6, 1.0),
        "G" => (9, 1.0),
        "T" => (12, 1.0),
        "Ki" => (0, 1024.0),
        "Mi" => (0, 1_048_576.0),
        "Gi" => (0, 1_073_741_824.0),
        "Ti" => (0, 1_099_511_627_776.0),
        _ => return None,
    })
}

fn strip<'a>(unit: &'a str, ends: &[&str]) -> Option<&'a str> {
    ends.iter().find_map(|end| unit.strip_suffix(end))
}

/// Splits a text into its number and its unit.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let is_unit = |c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E');
    let at = text.find(is_unit)?;
    Some((text[..at].trim(), text[at..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_exact() {
        let (rate, delay) = (|text| Unit::GBPS.parse(text), |text| Unit::NANOSECONDS.parse(text));
        assert_eq!(rate("25000000000bps"), Some(25.0));
        assert_eq!(delay("0.001ms"), Some(1000.0));
        assert_eq!(delay("1.1us"), Some(1100.0));
        assert_eq!(rate("1.5MBps"), Some(0.012));
        assert_eq!((rate("25G"), delay("1 min"), delay("us")), (None, None, None));
        assert_eq!(Unit::BYTES.parse("1.5 KiB"), Some(1536.0));
    }

    #[test]
    fn units_are_found_by_their_symbol_and_by_the_key() {
        assert_eq!(Unit::from_symbol("us").and_then(|unit| unit.parse("2ms")), Some(2000.0));
        assert_eq!(Unit::from_key("drain-us"), Unit::from_symbol("us"));
        assert_eq!(Unit::from_symbol("bytes"), None);
    }
}
