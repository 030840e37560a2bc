//! Warnings: a code and values for programs, and a text for people that is made of the values.

use std::collections::BTreeMap;
use std::fmt;

use rampmeter_workload::import::count;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Named numbers and names of a warning.
pub type WarningValues = BTreeMap<&'static str, Value>;

/// A likely mistake in a plan, or a reason to doubt a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Kind of the warning, one of [`WARNINGS`].
    pub code: &'static str,
    /// The numbers and names that the text is made of.
    pub values: WarningValues,
    /// The sentence.
    pub text: String,
}

/// Makes a [`Warning`] of a code, a format, and the values and words in it. Words follow a
/// semicolon and are in the text alone. The compiler rejects a value that is not in the text, and a
/// code or a name of a value that [`WARNINGS`] lacks.
macro_rules! warning {
    (
        $code:literal, $format:literal
        $(, $name:ident = $value:expr)* $(; $($word:ident = $text:expr),+)? $(,)?
    ) => {{
        const {
            assert!($crate::warning::has_code($code));
            $(assert!($crate::warning::has_value($code, stringify!($name)));)*
        }
        match ($($value,)* $($($text,)+)?) {
            ($($name,)* $($($word,)+)?) => $crate::warning::Warning {
                code: $code,
                values: [$((stringify!($name), serde_json::json!($name))),*].into_iter().collect(),
                text: format!($format, $($name = $name,)* $($($word = $word),+)?),
            },
        }
    }};
}

pub(crate) use warning;

/// A number of things, which a text shows with their name.
#[derive(Clone, Copy)]
pub(crate) struct NamedCount(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for NamedCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&count(self.0 as usize, self.1))
    }
}

impl Serialize for NamedCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// Returns true if a warning has the code.
pub(crate) const fn has_code(code: &str) -> bool {
    values_of(code).is_some()
}

/// Returns true if a warning with the code may have a value of this name.
pub(crate) const fn has_value(code: &str, name: &str) -> bool {
    let Some(names) = values_of(code) else { return false };
    let mut idx = 0;
    while idx < names.len() {
        if is_same(names[idx], name) {
            return true;
        }
        idx += 1;
    }
    false
}

const fn values_of(code: &str) -> Option<&'static [&'static str]> {
    let mut idx = 0;
    while idx < WARNINGS.len() {
        if is_same(WARNINGS[idx].0, code) {
            return Some(WARNINGS[idx].1);
        }
        idx += 1;
    }
    None
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut idx = 0;
    while idx < a.len() && idx < b.len() && a[idx] == b[idx] {
        idx += 1;
    }
    idx == a.len() && idx == b.len()
}

/// The codes of all warnings with the names of their values, a subset of which each has. The
/// package explains them in `explanations.toml`.
pub const WARNINGS: [(&str, &[&str]); 47] = [
    ("clock-drift", &["drift_ppm", "allowed_ppm", "transport"]),
    ("clock-offset", &["offset_us", "rtt_us", "transport"]),
    ("common-time", &["transport", "name", "shared_us", "fastest_us"]),
    ("correlated-batches", &[]),
    ("cut-off-by-drain", &["drain_s"]),
    ("deadlock", &["since_us", "ports", "circle"]),
    ("delayed-paths", &["from", "to", "shortest_us", "longest_us", "factor"]),
    ("drain-below-ideal", &["ideal_s", "drain_s"]),
    ("few-flows", &["flows", "flows_min"]),
    ("few-samples", &["samples", "samples_min"]),
    (
        "foreign-preset",
        &["preset", "transport", "preset_gbps", "payload_bytes", "window_bytes", "own_bytes"],
    ),
    ("hosts-cut-off", &["state", "from", "to"]),
    ("ignored-faults", &["transport"]),
    ("ignored-path-choice", &["transports", "spray"]),
    ("increased-rates", &["link", "gbps", "at_us", "factor", "start_gbps", "transports"]),
    ("limited-table", &["file", "rows_max", "from_us"]),
    ("many-port-rates", &["rates", "rates_max"]),
    ("many-samples", &["samples", "interval_us", "last_us", "enough_us"]),
    ("narrow-core", &["transport", "core_percent", "sent_factor"]),
    ("narrow-inner-links", &["transport", "from", "to", "gbps"]),
    ("never-marks", &["tier", "gbps", "memory_bytes", "threshold_bytes"]),
    ("no-flows", &[]),
    ("not-delivered", &["transport", "missing", "flows", "failed", "rejected", "unfinished"]),
    ("not-started", &["flows"]),
    ("one-endpoint", &["transport", "fastest_gbps", "slowest_gbps"]),
    ("one-path", &["transports", "from", "to", "gbps", "link", "factor"]),
    ("one-sample", &["reason"]),
    ("one-slot-rate", &["transport", "fastest_gbps", "slot_gbps"]),
    ("order-lost", &["spray", "transport"]),
    (
        "overload",
        &[
            "load",
            "load_max",
            "hosts",
            "offered_gbps",
            "gbps",
            "link",
            "from",
            "flows",
            "tier",
            "factor",
        ],
    ),
    ("overload-while-down", &["load", "load_max", "link", "from", "state"]),
    ("partial-pairs", &[]),
    ("pfc-memory", &["memory_bytes", "preferred_bytes", "headroom_bytes"]),
    ("retransmissions", &["retransmitted_percent"]),
    ("short-drain", &["drain_s", "flow_bytes", "from", "to", "ideal_s"]),
    ("short-run", &["delivered_percent"]),
    ("short-warm-up", &["flows"]),
    (
        "slow-path",
        &["from", "to", "gbps", "fastest_gbps", "link", "end", "packets_percent", "factor"],
    ),
    ("slow-recovery", &["preset", "transport", "timeout_us", "round_trips"]),
    ("slow-reverse-links", &["gbps", "from", "to", "transport", "data_gbps", "needed_gbps"]),
    ("slower-than-slots", &["transport", "slot_gbps", "link", "gbps"]),
    ("topology-note", &[]),
    ("unequal-links", &["links", "slowest_gbps", "fastest_gbps", "transport"]),
    ("unequal-round-trips", &["shortest_us", "longest_us", "factor"]),
    ("warm-up-of-changing-load", &["reason", "flows"]),
    ("wide-interval", &["ci_percent", "transport", "seeds"]),
    ("workload-note", &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_of_the_values() {
        let warning = warning!(
            "not-started",
            "{flows} never started{end}",
            flows = NamedCount(1, "flow");
            end = ".",
        );
        assert_eq!(warning.text, "1 flow never started.");
        assert_eq!(warning.values, [("flows", Value::from(1))].into_iter().collect());
    }

    #[test]
    fn codes_and_names_of_values_are_known_in_full() {
        assert!(has_code("overload") && !has_code("over") && !has_code("overload-"));
        assert!(has_value("overload", "load_max") && !has_value("overload", "load_ma"));
        assert!(!has_value("no-flows", "flows"));
        assert!(WARNINGS.is_sorted_by_key(|(code, _)| code));
    }
}
