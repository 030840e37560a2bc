//! The columns that traces may have.

use std::path::Path;

use super::decimal::ARRIVAL_UNITS;
use super::{Format, TraceError, csv, parquet};

/// The columns of workloads beside those of times.
const USED: [&str; 6] = ["src", "dst", "size_bytes", "flow", "after", "tenant"];

/// Times of workloads, before the unit. Only the first is the arrival.
const TIMES: [&str; 3] = ["arrival", "compute", "deadline"];

/// Columns of results and of tables, which workloads have no use for: a table of results is a trace
/// of its flows.
const UNUSED: [&str; 15] = [
    "fct_ps",
    "delivered_ps",
    "acked_ps",
    "ideal_ps",
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
    "__index_level_0__",
];

/// The units of times, by the end of their names.
const UNITS: [&str; 4] = ["ps", "ns", "us", "s"];

/// The column of a time among `names`, and picoseconds of its unit: the first of `time_ps`,
/// `time_ns`, `time_us` and `time_s` that is there.
pub(super) fn time<'a>(time: &str, has: impl Fn(&str) -> bool + 'a) -> Option<(&'static str, u64)> {
    let names = match time {
        "arrival" => ARRIVAL_UNITS,
        "compute" => renamed(["compute_ps", "compute_ns", "compute_us", "compute_s"]),
        _ => renamed(["deadline_ps", "deadline_ns", "deadline_us", "deadline_s"]),
    };
    names.into_iter().find(|(name, _)| has(name))
}

fn renamed(names: [&'static str; 4]) -> [(&'static str, u64); 4] {
    let mut units = ARRIVAL_UNITS;
    units.iter_mut().zip(names).for_each(|(unit, name)| unit.0 = name);
    units
}

/// Checks that every column is known.
pub(super) fn check<'a>(
    file: &str,
    columns: impl IntoIterator<Item = &'a str>,
) -> Result<(), TraceError> {
    for column in columns {
        let is_time = column
            .rsplit_once('_')
            .is_some_and(|(time, unit)| TIMES.contains(&time) && UNITS.contains(&unit));
        if !is_time && !USED.contains(&column) && !UNUSED.contains(&column) {
            let times = TIMES.iter().map(|time| format!("{time}_us"));
            let known: Vec<String> =
                times.chain(USED.iter().map(|&name| name.to_owned())).collect();
            return Err(TraceError::Unknown {
                file: file.to_owned(),
                column: column.to_owned(),
                known: known.join(", "),
            });
        }
    }
    Ok(())
}

/// The columns of `file` that a workload does not use, in their order. Formats without names of
/// columns have none.
///
/// # Errors
/// A file that cannot be read or is not of its format.
pub fn ignored_columns(file: &Path, format: Format) -> Result<Vec<String>, TraceError> {
    let name = file.display().to_string();
    let mut columns = match format {
        Format::Csv => csv::columns(file, &name)?,
        Format::Parquet => parquet::columns(file, &name)?,
        Format::Yaps | Format::Htsim | Format::Hpcc | Format::Goal => Vec::new(),
    };
    let has = |name: &str| columns.iter().any(|column| column == name);
    let used: Vec<&str> =
        TIMES.iter().filter_map(|of| time(of, has)).map(|(name, _)| name).chain(USED).collect();
    columns.retain(|column| !used.contains(&column.as_str()));
    Ok(columns)
}
