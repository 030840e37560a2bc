//! The columns that traces may have.

use std::collections::BTreeMap;

use rampmeter_core::quantity::Unit;
use rampmeter_core::units::PS_PER_SECOND;

use super::{Options, TraceError};

/// The columns of workloads besides those of times.
const USED: [&str; 6] = ["src", "dst", "size_bytes", "flow", "after", "tenant"];

/// Times of workloads, before the unit. Only the first is the arrival.
const TIMES: [&str; 3] = ["arrival", "compute", "deadline"];

/// Outcomes of flows, for comparisons.
const RECORDED: [&str; 2] = ["fct_ps", "ideal_ps"];

/// Columns of results and of tables, which workloads have no use for: a table of results is a trace
/// of its flows.
const UNUSED: [&str; 16] = [
    "delivered_ps",
    "acked_ps",
    "acked_ideal_ps",
    "figure_ideal_ps",
    "ideal_is_bound",
    "duplicate_bytes",
    "fate_ps",
    "bound_ps",
    "status",
    "first_byte_ps",
    "sent_bytes",
    "retransmitted_bytes",
    "delivered_bytes",
    "__index_level_0__",
    "Unnamed: 0",
    "",
];

/// The units of times, by the end of their names. The first that a file has is used.
/// With each its picoseconds.
const UNITS: [(&str, u64); 5] = [
    ("ps", 1),
    ("ns", PS_PER_SECOND / 1_000_000_000),
    ("us", PS_PER_SECOND / 1_000_000),
    ("ms", PS_PER_SECOND / 1_000),
    ("s", PS_PER_SECOND),
];

/// A column of times.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Its name, such as `arrival_us`.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// Picoseconds of the unit.
    pub(super) unit_ps: u64,
}

impl Times {
    /// Returns the column of `time`, which is one of [`TIMES`].
    pub(super) fn find(time: &str, has: impl Fn(&str) -> bool) -> Option<Self> {
        UNITS.iter().find_map(|&(symbol, unit_ps)| {
            let name = Some(format!("{time}_{symbol}")).filter(|name| has(name))?;
            Some(Self { name, unit: Unit::of_time(symbol)?, unit_ps })
        })
    }

    /// Returns a phrase for errors.
    pub(super) fn expected(&self) -> String {
        format!("{}, from 0 to 2^63 ps", self.unit.expected())
    }
}

/// Returns the file's names of the columns that have a field of a row, by the names of the fields
/// in errors. `original` are the names in the file, `renamed` those of this module.
pub(super) fn of_fields(original: &[String], renamed: &[String]) -> BTreeMap<&'static str, String> {
    let position = |name: &str| renamed.iter().position(|column| column == name);
    let times = TIMES.iter().filter_map(|&time| {
        let times = Times::find(time, |name| position(name).is_some())?;
        Some((time, position(&times.name)?))
    });
    let others = USED.iter().filter_map(|&name| Some((name, position(name)?)));
    times.chain(others).map(|(field, at)| (field, original[at].clone())).collect()
}

/// Returns the columns of a file by the names in this module.
///
/// # Errors
/// A mapping of an unknown name, or to a column that the file does not have, or a column that it
/// has twice.
pub(super) fn rename(
    file: &str,
    mut header: Vec<String>,
    options: &Options,
) -> Result<Vec<String>, TraceError> {
    let original = header.clone();
    let is_repeated = |name: &str| original.iter().filter(|column| *column == name).count() > 1;
    let twice = |name: &str| TraceError::Column {
        file: file.to_owned(),
        expected: format!("{name} once"),
        got: original.join(","),
    };
    for (ours, theirs) in &options.columns {
        if !is_used(ours) {
            return Err(unknown(file, ours));
        }
        let at = original.iter().position(|column| column == theirs);
        let at = at.ok_or_else(|| TraceError::Column {
            file: file.to_owned(),
            expected: format!("{theirs}, as columns.{ours} says"),
            got: original.join(","),
        })?;
        if is_repeated(theirs) {
            return Err(twice(theirs));
        }
        // Another column of this name is not the one that is meant.
        if let Some(other) = original.iter().position(|column| column == ours)
            && other != at
        {
            header[other] = format!("{ours} of the file");
        }
        header[at].clone_from(ours);
    }
    // Where the plan maps columns, others may be anything.
    let repeated = header
        .iter()
        .find(|name| (options.columns.is_empty() || is_used(name)) && is_repeated(name));
    match repeated {
        Some(name) => Err(twice(name)),
        None => Ok(header),
    }
}

/// Returns a note about the columns that a workload does not use, if there are any. Where the plan
/// maps columns, a file may have any others.
///
/// # Errors
/// A column that is none of a trace.
pub(super) fn notes(
    file: &str,
    columns: &[String],
    options: &Options,
) -> Result<Vec<String>, TraceError> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    let times = TIMES.iter().filter_map(|of| Times::find(of, has)).map(|times| times.name);
    let others = USED.iter().chain(&RECORDED).map(|&name| name.to_owned());
    let chosen: Vec<String> = times.chain(others).collect();
    let mut left = Vec::new();
    for column in columns {
        let is_known = is_used(column)
            || RECORDED.contains(&column.as_str())
            || UNUSED.contains(&column.as_str());
        if !is_known && options.columns.is_empty() {
            return Err(unknown(file, column));
        }
        if !chosen.contains(column) {
            left.push(match column.as_str() {
                "" => "the one without a name (an index of pandas?)",
                name => name,
            });
        }
    }
    let note = format!("{file}: columns are not used: {}", left.join(", "));
    Ok(Some(note).filter(|_| !left.is_empty()).into_iter().collect())
}

/// Returns true if a table has the columns of results, whose rows are in the order of ends.
pub(super) fn is_result(columns: &[String]) -> bool {
    columns.iter().any(|column| column == "status")
}

fn is_used(column: &str) -> bool {
    let time = column.rsplit_once('_');
    USED.contains(&column)
        || time.is_some_and(|(time, unit)| {
            TIMES.contains(&time) && UNITS.iter().any(|&(symbol, _)| symbol == unit)
        })
}

fn unknown(file: &str, column: &str) -> TraceError {
    let times = TIMES.iter().map(|time| format!("{time}_us"));
    let known: Vec<String> = times.chain(USED.iter().map(|&name| name.to_owned())).collect();
    TraceError::Unknown {
        file: file.to_owned(),
        column: column.to_owned(),
        known: known.join(", "),
    }
}
