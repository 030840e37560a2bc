//! Times in decimal notation, parsed without floating point, and quantities with units.

use rampmeter_types::quantity::Unit;

use super::number::{Number, PS_MAX};

/// Returns picoseconds of `text`: a number of units of `unit_ps` picoseconds, or a number with a
/// unit (`"5us"`). Errors as [`parse_ps`].
pub(super) fn parse_time(text: &str, unit_ps: u64) -> Option<u64> {
    let with_unit = || Number::Real(Unit::PICOSECONDS.parse(text)?).ps(1);
    parse_ps(text, unit_ps).or_else(with_unit)
}

/// Returns the bytes of `text`: a whole number, or one with a unit (`"2MB"`).
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let with_unit = || Number::Real(Unit::BYTES.parse(text)?).whole();
    parse_whole(text).or_else(with_unit)
}

/// Returns a whole number, as programs may write it in a column of floating-point numbers (`7.0`,
/// `1e6`). `None` if it is not whole, is negative, or is written so and not exact.
pub(super) fn parse_whole(text: &str) -> Option<u64> {
    let real = || Number::Real(text.parse().ok()?).whole();
    text.parse().ok().or_else(real)
}

/// Returns the picoseconds in `text`, a plain decimal number of units of `unit_ps` picoseconds.
/// Digits below a picosecond are rounded to nearest. Numbers with an exponent are read as floating
/// point. `None` if it is not a number, is negative or is beyond 2^63 ps (106 days).
pub(crate) fn parse_ps(text: &str, unit_ps: u64) -> Option<u64> {
    if text.contains(['e', 'E']) {
        let ps = (text.parse::<f64>().ok()? * unit_ps as f64).round();
        return (0.0..PS_MAX as f64).contains(&ps).then_some(ps as u64);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut ps: u64 = 0;
    for digit in whole.bytes() {
        ps = ps.checked_mul(10)?.checked_add(digit_of(digit)?)?;
    }
    ps = ps.checked_mul(unit_ps)?;
    let (mut place, mut rest, mut scale) = (unit_ps, 0, 1);
    for digit in fraction.bytes() {
        let digit = digit_of(digit)?;
        if place > 1 {
            place /= 10;
            ps = ps.checked_add(digit * place)?;
        } else if scale == 1 {
            rest = digit;
            scale = 10;
        }
    }
    ps = ps.checked_add(u64::from(rest >= 5))?;
    (ps <= PS_MAX).then_some(ps)
}

fn digit_of(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rampmeter_types::units::PS_PER_SECOND;

    #[test]
    fn decimals_are_exact_and_round_below_a_picosecond() {
        assert_eq!(parse_ps("1000000.0246", 1_000_000), Some(1_000_000_024_600));
        assert_eq!(parse_ps("0.1", PS_PER_SECOND), Some(100_000_000_000));
        assert_eq!(parse_ps(".0005", 1000), Some(1));
        assert_eq!(parse_ps("0.00049", 1000), Some(0));
        assert_eq!(parse_ps("7", 1), Some(7));
        assert_eq!(parse_ps("2.5e-6", PS_PER_SECOND), Some(2_500_000));
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", ".", "-1", "+1", "1,5", "nan", "e", "1e99", "9223372036854775809"] {
            assert_eq!(parse_ps(text, 1), None, "{text}");
        }
    }

    #[test]
    fn units_in_texts_take_precedence_over_those_of_columns() {
        let us = 1_000_000;
        for (text, ps) in [
            ("5us", Some(5 * us)),
            ("1.0246 us", Some(1_024_600)),
            ("2ms", Some(2000 * us)),
            ("1.5 ps", Some(2)),
            ("5", Some(5 * us)),
            ("2 h", None),
            ("5 MB", None),
            ("-5us", None),
            ("1e30s", None),
        ] {
            assert_eq!(parse_time(text, us), ps, "{text}");
        }
        for (text, bytes) in [
            ("2MB", Some(2_000_000)),
            ("1.5 KiB", Some(1536)),
            ("64", Some(64)),
            ("0.5B", None),
            ("1.5", None),
            ("7.0", Some(7)),
            ("1e6", Some(1_000_000)),
            ("1.5E+3", Some(1500)),
            ("1e16", None),
            ("-1.0", None),
            ("inf", None),
            ("1,000", None),
            ("-1kB", None),
            ("2 Mb", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_number_of_picoseconds_survives_printing_in_microseconds(ps in 0..PS_MAX) {
            let text = format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000);
            prop_assert_eq!(parse_ps(&text, 1_000_000), Some(ps));
        }

        #[test]
        fn no_text_makes_the_parser_of_decimals_panic(text in "\\PC*") {
            parse_ps(&text, 1000);
        }
    }
}
