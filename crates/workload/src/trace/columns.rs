//! The columns that traces may have.

use std::collections::BTreeMap;

use rampmeter_types::quantity::Unit;
use rampmeter_types::units::PS_PER_SECOND;

use super::{Options, TraceError};
use crate::import::count;

/// Columns of workloads other than times.
const USED: [&str; 6] = ["src", "dst", "size_bytes", "flow", "after", "tenant"];

/// Times of workloads, before the unit. Only the first is the arrival.
const TIMES: [&str; 3] = ["arrival", "compute", "deadline"];

/// Outcomes of flows, for comparisons.
const RECORDED: [&str; 2] = ["fct_ps", "ideal_ps"];

/// Columns of results and of tables, which workloads do not use: a table of results is a trace of
/// its flows.
const UNUSED: [&str; 18] = [
    "delivered_ps",
    "acked_ps",
    "acked_ideal_ps",
    "figure_ideal_ps",
    "ideal_is_bound",
    "duplicate_bytes",
    "outcome_ps",
    "delay_bound_ps",
    "status",
    "first_byte_ps",
    "sent_bytes",
    "retransmitted_bytes",
    "delivered_bytes",
    // Names of results of earlier versions.
    "fate_ps",
    "bound_ps",
    "__index_level_0__",
    "Unnamed: 0",
    "",
];

/// Column of results with the fate of each flow.
pub(super) const STATUS: &str = "status";

/// Status of a flow that waited for others until the end of its run. Its arrival is that end.
pub(super) const NOT_STARTED: &str = "not-started";

/// The units of times, by the end of their names, with the picoseconds of each. The first unit in a
/// file is used.
const UNITS: [(&str, u64); 5] = [
    ("ps", 1),
    ("ns", PS_PER_SECOND / 1_000_000_000),
    ("us", PS_PER_SECOND / 1_000_000),
    ("ms", PS_PER_SECOND / 1_000),
    ("s", PS_PER_SECOND),
];

/// Columns of every trace other than the arrival.
const REQUIRED: [&str; 3] = ["src", "dst", "size_bytes"];
/// Columns that may hold the arrival, in errors.
const ARRIVAL_EXPECTED: &str = "arrival_ps (or arrival_ns, arrival_us, arrival_ms, arrival_s)";

/// A column of times.
#[derive(Clone, Debug)]
pub(super) struct TimeColumn {
    /// Name of the column, such as `arrival_us`.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// Picoseconds of the unit.
    pub(super) unit_ps: u64,
}

impl TimeColumn {
    /// Returns the column of `time`, which is one of [`TIMES`].
    pub(super) fn find(time: &str, has: impl Fn(&str) -> bool) -> Option<Self> {
        UNITS.iter().find_map(|&(symbol, unit_ps)| {
            let name = Some(format!("{time}_{symbol}")).filter(|name| has(name))?;
            Some(Self { name, unit: Unit::from_symbol(symbol)?, unit_ps })
        })
    }

    /// Returns a phrase for errors.
    pub(super) fn expected(&self) -> String {
        format!("{}, from 0 to 2^63 ps", self.unit.expected())
    }
}

/// Returns the file's names of the columns that have a field of a row, by the names of the fields
/// in errors. `original` are the names in the file, `renamed` those of this module.
pub(super) fn field_columns(
    original: &[String],
    renamed: &[String],
) -> BTreeMap<&'static str, String> {
    let position = |name: &str| renamed.iter().position(|column| column == name);
    let times = TIMES.iter().filter_map(|&time| {
        let times = TimeColumn::find(time, |name| position(name).is_some())?;
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
            expected: format!("{theirs}, as columns.{ours} requires"),
            got: original.join(","),
        })?;
        if is_repeated(theirs) {
            return Err(twice(theirs));
        }
        // Another column with this name is not the mapped one.
        if let Some(other) = original.iter().position(|column| column == ours)
            && other != at
        {
            header[other] = format!("{ours} of the file");
        }
        header[at].clone_from(ours);
    }
    // If the plan maps columns, the others may have any name.
    let repeated = header
        .iter()
        .find(|name| (options.columns.is_empty() || is_used(name)) && is_repeated(name));
    match repeated {
        Some(name) => Err(twice(name)),
        None => Ok(header),
    }
}

/// Checks that a trace has the columns that it needs.
///
/// # Errors
/// All columns that are missing, in one error.
pub(super) fn require(file: &str, header: &[String]) -> Result<(), TraceError> {
    let has = |name: &str| header.iter().any(|column| column == name);
    let arrival = TimeColumn::find("arrival", has).is_none().then_some(ARRIVAL_EXPECTED);
    let others = REQUIRED.into_iter().filter(|name| !has(name));
    let missing: Vec<&str> = arrival.into_iter().chain(others).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (file, expected) = (file.to_owned(), missing.join(" and a column "));
    Err(TraceError::Column { file, expected, got: header.join(",") })
}

/// Returns a note about the columns that a workload does not use, if there are any. If the plan
/// maps columns, a file may have any others.
///
/// # Errors
/// A column that traces do not have.
pub(super) fn notes(
    file: &str,
    columns: &[String],
    options: &Options,
) -> Result<Vec<String>, TraceError> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    let times = TIMES.iter().filter_map(|of| TimeColumn::find(of, has)).map(|times| times.name);
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
    columns.iter().any(|column| column == STATUS)
}

/// Returns a note about dependencies in a table of results, which has times instead.
pub(super) fn note_of_results(
    file: &str,
    columns: &[String],
    n_not_started: usize,
) -> Option<String> {
    let has = |name: &str| columns.iter().any(|column| column == name);
    // Other tables have a status, too.
    let is_of_run =
        is_result(columns) && (has("outcome_ps") || has("fate_ps")) || n_not_started > 0;
    if !is_of_run || has("after") {
        return None;
    }
    let times = "results have no dependencies (after): flows that waited for others start at the \
                 times of that run";
    Some(match n_not_started {
        0 => format!("{file}: {times}"),
        n => format!(
            "{file}: {times}, and {} of status not-started {} omitted",
            count(n, "flow"),
            if n == 1 { "is" } else { "are" }
        ),
    })
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
