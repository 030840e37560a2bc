//! Quantities as texts with units: `"25Gbps"`, `"1us"`, `"2MB"`.
//!
//! The end of a key names its unit (`drain-us`, `flow-bytes`, `core-gbps`). [`without_units`]
//! replaces each text at such a key by the number in that unit, before anything else reads the
//! plan. Readers, ranges and results have numbers only. Whole numbers with an exponent (`1e6`),
//! which TOML counts as fractions, become integers, so that every key may have them.

use std::borrow::Cow;

use rampmeter_types::quantity::Unit;
use toml::de::{DeTable, DeValue};

use super::place::{Path, PathElement, at_path};
use crate::error::{PlanError, Problem};

/// A rate in errors.
pub(crate) const RATE: &str = "a rate from 0.000001 to 100000 Gbit/s, such as 25 or \"25Gbps\"";
/// A delay in errors.
pub(crate) const DELAY: &str = "a delay from 0 to 1000000000 ns, such as 500 or \"0.5us\"";

/// Returns Gbit/s of a rate with a unit, as ns-3 writes them: `25Gbps`, `10Gb/s`, `1.5MBps`.
pub(crate) fn rate(text: &str) -> Option<f64> {
    Unit::GBPS.parse(text)
}

/// Returns nanoseconds of a delay with a unit: `1us`, `0.001ms`.
pub(crate) fn delay(text: &str) -> Option<f64> {
    Unit::NANOSECONDS.parse(text)
}

pub(crate) fn is_rate(gbps: f64) -> bool {
    (1e-6..=1e5).contains(&gbps)
}

pub(crate) fn is_delay(ns: f64) -> bool {
    (0.0..=1e9).contains(&ns)
}

/// Returns the TOML text with numbers instead of texts with units, line by line the same. Text that
/// is not TOML is returned as it is.
///
/// # Errors
/// The line, the column and the path of a text that is no such quantity.
pub(crate) fn without_units<'a>(text: &'a str, origin: &str) -> Result<Cow<'a, str>, PlanError> {
    let Ok(document) = DeTable::parse(text) else { return Ok(text.into()) };
    let mut edits = Vec::new();
    of_table(document.get_ref(), None, &Path::default(), &mut edits)
        .map_err(|(path, problem)| at_path(text, origin, &path, problem, false))?;
    if edits.is_empty() {
        return Ok(text.into());
    }
    edits.sort_unstable_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut plain = text.to_owned();
    for (span, number) in edits {
        plain.replace_range(span, &number);
    }
    Ok(plain.into())
}

/// A place in the text, and the number to be there.
type TextEdit = (std::ops::Range<usize>, String);

fn of_table(
    table: &DeTable<'_>,
    unit: Option<Unit>,
    path: &Path,
    edits: &mut Vec<TextEdit>,
) -> Result<(), (Path, Problem)> {
    for (key, value) in table {
        let path = path.join(PathElement::Key(key.get_ref().to_string()));
        // Links have readers of their own, which name the link; tables of Python transports are
        // their authors'. A sweep puts its values into plans, which are read as such.
        let name = path.to_string();
        let is_parameters = name.starts_with("transport") && name.ends_with(".parameters");
        if is_parameters || ["links", "sweep", "topology.links"].contains(&&*name) {
            continue;
        }
        let unit = Unit::from_key(key.get_ref()).or(unit);
        of_value(value, unit, &path, edits)?;
    }
    Ok(())
}

fn of_value(
    value: &toml::Spanned<DeValue<'_>>,
    unit: Option<Unit>,
    path: &Path,
    edits: &mut Vec<TextEdit>,
) -> Result<(), (Path, Problem)> {
    match (value.get_ref(), unit) {
        (DeValue::Table(table), _) => of_table(table, unit, path, edits),
        (DeValue::Array(items), _) => items.iter().enumerate().try_for_each(|(number, item)| {
            of_value(item, unit, &path.join(PathElement::Item(number)), edits)
        }),
        (DeValue::String(text), Some(unit)) => {
            // Range checks name the number alone, in the unit of the key.
            let number = unit.parse(text).filter(|&number| number >= 0.0 && unit.admits(number));
            let number = number.ok_or_else(|| {
                let (expected, got) = (unit.expected().to_owned(), format!("{text:?}"));
                (path.clone(), Problem::unexpected(expected, got))
            })?;
            edits.push((value.span(), written(number)));
            Ok(())
        }
        (DeValue::Float(number), _) if number.as_str().contains(['e', 'E']) => {
            let number = number.as_str().parse().ok().map(written);
            edits.extend(number.filter(|number| !number.contains('.')).map(|n| (value.span(), n)));
            Ok(())
        }
        (DeValue::Datetime(date), _) => {
            let (expected, got) = ("a number, a text or a list".to_owned(), date.to_string());
            Err((path.clone(), Problem::unexpected(expected, got)))
        }
        _ => Ok(()),
    }
}

/// Returns a number as TOML: whole if it is whole.
fn written(number: f64) -> String {
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    if is_whole { format!("{}", number as i64) } else { format!("{number:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_numbers_in_the_unit_of_their_key() {
        let text = "drain-us = \"1ms\"\nrto-ns = \"1.1us\"\n[a]\ncore-gbps = \"100 Gbit/s\" \
                    # \"1us\"\nsizes = { fixed = \"2MB\" }\nbuffer-bytes = { \"25\" = \"64KiB\" }\n\
                    times-us = [\"1ns\", 2, \"0.3s\"]\ncore-mbps = \"1e1GBps\"\nname = \"1us\"\n";
        let plain = "drain-us = 1000\nrto-ns = 1100\n[a]\ncore-gbps = 100 # \"1us\"\n\
                    sizes = { fixed = 2000000 }\nbuffer-bytes = { \"25\" = 65536 }\n\
                    times-us = [0.001, 2, 300000]\ncore-mbps = 80000\nname = \"1us\"\n";
        assert_eq!(without_units(text, "").unwrap(), plain);
    }

    #[test]
    fn whole_numbers_with_an_exponent_become_integers() {
        let text = "flows = 1e6\n[a]\nsize = [2.5E3, 1e-3, 1.0, 1e30]\n[sweep]\nload = 1e0\n";
        let plain = "flows = 1000000\n[a]\nsize = [2500, 1e-3, 1.0, 1e30]\n[sweep]\nload = 1e0\n";
        assert_eq!(without_units(text, "").unwrap(), plain);
    }

    #[test]
    fn a_wrong_unit_is_an_error_with_line_and_key() {
        for (text, message) in [
            (
                "[run]\ndrain-us = \"5 parsec\"",
                "line 2, column 12: run.drain-us: expected microseconds, such as 5 or \"5us\", got \
                 \"5 parsec\" (at: drain-us = \"5 parsec\")",
            ),
            (
                "[fabric]\nbuffer-bytes = { tor = \"1us\" }",
                "line 2, column 24: fabric.buffer-bytes.tor: expected a whole number of bytes, \
                 such as 2000000 or \"2MB\", got \"1us\" (at: buffer-bytes = { tor = \"1us\" })",
            ),
        ] {
            assert_eq!(without_units(text, "").unwrap_err().to_string(), message);
        }
        let dated = without_units("seed = 2026-01-02", "").unwrap_err().to_string();
        assert!(dated.contains("seed: expected a number, a text or a list, got 2026-01-02"));
        assert!(without_units("a-gbps = \"5\"", "").unwrap_err().to_string().contains("25Gbps"));
        for (key, text) in [
            ("fixed", "0.5B"),
            ("fixed", "1.0001kB"),
            ("fixed", "-2kB"),
            ("fixed", "1e30B"),
            ("fixed", "1e400B"),
            ("core-gbps", "-3Gbps"),
            ("drain-us", "-1ms"),
            ("drain-us", "1e400us"),
            ("drain-us", "infus"),
            ("drain-us", "nan us"),
        ] {
            let got =
                without_units(&format!("[run]\n{key} = \"{text}\""), "").unwrap_err().to_string();
            let unit = Unit::from_key(key).unwrap().expected();
            let expected = format!("run.{key}: expected {unit}, got \"{text}\" (at: ");
            assert!(got.starts_with("line 2, column ") && got.contains(&expected), "{got}");
        }
    }
}
