//! Traces: flows from files, checked before anything runs.
//!
//! A trace has the columns `arrival_ps` (or `arrival_ns`, `arrival_us`, `arrival_ms`, `arrival_s`),
//! `src`, `dst` and `size_bytes`; a header or schema names them, in any order. Times and sizes may
//! be texts with units: `5us`, `2MB`. It may have more columns:
//!
//! | column | |
//! |---|---|
//! | `after` | ids of the flows it depends on; its arrival, then optional, is the earliest start |
//! | `compute_ps` (`_ns`, `_us`, `_ms`, `_s`) | time from the end of these flows to its start |
//! | `flow` | its id, which no other row has; without the column the number of the row, from zero |
//! | `tenant` | its tenant |
//! | `deadline_ps` (`_ns`, `_us`, `_ms`, `_s`) | time from its start to its deadline |
//!
//! Rows that arrive at one instant keep the order of the file, which is that of their numbers: it
//! is part of a trace, as an application submits its messages one after the other.
//!
//! A row with `after` or a time of computing, no bytes, and equal ends is a computation, on which
//! others may depend. Files may also have the completion time of each flow and its ideal (`fct_ps`,
//! `ideal_ps`); see [`read_reference`]. Columns of results are ignored; any other column is an
//! error.

#[cfg(feature = "parquet")]
mod arrays;
mod columns;
mod contents;
mod csv;
mod decimal;
mod dependencies;
mod format;
mod hosts;
mod number;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod source;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use rampmeter_types::{Bytes, NodeId, Span, TenantId, Time};

pub use self::contents::without_mark;
pub use self::csv::{write_csv, write_graph_csv, write_reference_csv};
pub(crate) use self::decimal::parse_ps;
pub use self::format::Format;
pub use self::hosts::HostNames;
#[cfg(feature = "parquet")]
pub use self::parquet::{host_names, write_graph_parquet, write_parquet};
pub(crate) use self::row::{OptionalFields, RawRow};
pub use self::row::{Options, ReferenceRow, TraceError};
pub(crate) use self::source::{Import, Source};
use crate::flow::Flow;
use crate::graph::Graph;

/// Treatment of flows that are not in arrival order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowOrder {
    /// Reject the file.
    #[default]
    Require,
    /// Sort them; the order of flows that arrive together does not change.
    Sort,
}

/// Requirements of a trace, in addition to sizes above zero and no flow from a host to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequirements {
    /// Hosts are numbered below this.
    pub n_hosts: u32,
    /// Treatment of flows out of order.
    pub order: FlowOrder,
    /// Maximum size of a flow in bytes.
    pub size_max: u64,
}

impl TraceRequirements {
    /// Returns requirements with the largest size of all, [`SIZE_MAX`].
    pub fn new(n_hosts: u32, order: FlowOrder) -> Self {
        Self { n_hosts, order, size_max: SIZE_MAX }
    }
}

/// Maximum size of a flow in bytes, whatever its packets.
pub const SIZE_MAX: u64 = 1 << 50;

/// Contents of a file.
#[derive(Clone, Debug)]
pub enum Trace {
    /// Flows without dependencies, in arrival order.
    Flows(Vec<ReferenceRow>),
    /// Flows of which some depend on others; their numbers are those of their rows.
    Graph(Graph),
}

/// Reads the flows of `file`, which have no dependencies.
///
/// # Errors
/// A file that cannot be read, is not of its format or fails a check; the message names file,
/// line or row, and column.
pub fn read(
    file: &Path,
    format: Format,
    check: TraceRequirements,
) -> Result<Vec<Flow>, TraceError> {
    let rows = read_reference(file, format, check)?;
    Ok(rows.into_iter().map(|row| row.flow).collect())
}

/// Reads the flows of `file` with their completion times.
///
/// # Errors
/// As [`read`].
pub fn read_reference(
    file: &Path,
    format: Format,
    check: TraceRequirements,
) -> Result<Vec<ReferenceRow>, TraceError> {
    match read_trace(file, format, check)? {
        Trace::Flows(rows) => Ok(rows),
        Trace::Graph(_) => Err(TraceError::Format {
            file: file.display().to_string(),
            reason: "expected flows that wait for nothing, got some that do".to_owned(),
        }),
    }
}

/// Reads the flows of `file`, with or without dependencies.
///
/// # Errors
/// As [`read`]. Dependencies form a cycle. A flow depends on one that does not exist, or
/// that its source neither sends nor receives.
pub fn read_trace(
    file: &Path,
    format: Format,
    check: TraceRequirements,
) -> Result<Trace, TraceError> {
    read_with_notes(file, format, check, &Options::default()).map(|(trace, _)| trace)
}

/// Reads the flows of `file`, and returns notes about omitted parts.
///
/// # Errors
/// As [`read_trace`].
pub fn read_with_notes(
    file: &Path,
    format: Format,
    check: TraceRequirements,
    options: &Options,
) -> Result<(Trace, Vec<String>), TraceError> {
    let name = file.display().to_string();
    // Commands that convert a file have no network.
    let n_hosts = (check.n_hosts < u32::MAX).then_some(check.n_hosts);
    let import = format.read(&Source { path: file, name: &name, options, n_hosts });
    let import = import.map_err(|error| hinted(error, file, format))?;
    let Import { rows, rounds, notes, is_graph, is_unordered, fields } = import;
    let without_flows = |got: &str| {
        let reason = format!("expected at least one flow, got {got}");
        Err(TraceError::Format { file: name.clone(), reason })
    };
    if rows.is_empty() {
        return without_flows("none");
    }
    dependencies::check_ids(&name, &rows).map_err(|error| error.in_columns(&fields))?;
    let order = if is_unordered { FlowOrder::Sort } else { check.order };
    let check = TraceRequirements { order, ..check };
    let named = |error| named(error, options.hosts.as_ref()).in_columns(&fields);
    let trace = if is_graph || rows.iter().any(dependencies::waits) {
        let graph = dependencies::graph(&name, &rows, rounds, check).map_err(named)?;
        if graph.n_flows() == 0 {
            return without_flows("computations alone");
        }
        Trace::Graph(graph)
    } else {
        checked(&name, rows, check).map(Trace::Flows).map_err(named)?
    };
    Ok((trace, notes))
}

/// Replaces the number of a host by its name, in an error about an end of a flow.
fn named(error: TraceError, hosts: Option<&HostNames>) -> TraceError {
    match error {
        TraceError::Field { file, place, field, expected, got }
            if ["src", "dst"].contains(&&*field) =>
        {
            let name = || hosts?.name_of(got.parse().ok()?).map(str::to_owned);
            let got = name().unwrap_or(got);
            TraceError::Field { file, place, field, expected, got }
        }
        other => other,
    }
}

/// Adds the format that the contents suggest to an error of another format's reader.
fn hinted(error: TraceError, file: &Path, format: Format) -> TraceError {
    let suggested = Format::from_contents(file).filter(|&other| other != format);
    let Some(suggested) = suggested.map(Format::name) else { return error };
    let hint = format!("; the file looks like format {suggested:?}");
    match error {
        TraceError::Field { file, place, field, expected, got } => {
            TraceError::Field { file, place, field, expected, got: got + &hint }
        }
        TraceError::Format { file, reason } => TraceError::Format { file, reason: reason + &hint },
        TraceError::Column { file, expected, got } => {
            TraceError::Column { file, expected, got: got + &hint }
        }
        other => other,
    }
}

/// Applies `check` to rows, in their order.
fn checked(
    file: &str,
    rows: Vec<RawRow>,
    check: TraceRequirements,
) -> Result<Vec<ReferenceRow>, TraceError> {
    let mut before = 0;
    let mut flows = Vec::with_capacity(rows.len());
    for row in rows {
        let wrong = |field: &str, expected, got: u64| {
            let (file, field) = (file.to_owned(), field.to_owned());
            let (place, got) = (row.place, got.to_string());
            Err(TraceError::Field { file, place, field, expected, got })
        };
        let src = host(file, &row, "src", row.src, check)?;
        let dst = host(file, &row, "dst", row.dst, check)?;
        if src == dst {
            return wrong("dst", "a host other than src".to_owned(), row.dst);
        }
        if row.size_bytes == 0 {
            return wrong("size_bytes", "at least 1".to_owned(), 0);
        }
        if row.size_bytes > check.size_max {
            return wrong("size_bytes", format!("at most {}", check.size_max), row.size_bytes);
        }
        if check.order == FlowOrder::Require && row.arrival_ps < before {
            return wrong(
                "arrival",
                format!("at least {before} ps, the one before, unless sort is set"),
                row.arrival_ps,
            );
        }
        before = row.arrival_ps;
        flows.push(ReferenceRow {
            flow: Flow {
                arrival: Time::from_ps(row.arrival_ps),
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                size: Bytes::new(row.size_bytes),
                tenant: tenant(file, &row)?,
                deadline: row.extra.deadline_ps.map_or(Span::MAX, Span::from_ps),
            },
            fct: row.fct_ps.map(Span::from_ps),
            ideal: row.ideal_ps.map(Span::from_ps),
        });
    }
    flows.sort_by_key(|row| row.flow.arrival);
    Ok(flows)
}

/// Maximum number of tenants of a trace; statistics have a column for each.
const TENANTS_MAX: u32 = 1 << 16;

fn host(
    file: &str,
    row: &RawRow,
    field: &str,
    id: u64,
    check: TraceRequirements,
) -> Result<u32, TraceError> {
    let known = u32::try_from(id).ok().filter(|&id| id < check.n_hosts);
    known.ok_or_else(|| TraceError::Field {
        file: file.to_owned(),
        place: row.place,
        field: field.to_owned(),
        expected: format!("a host below {}", check.n_hosts),
        got: id.to_string(),
    })
}

fn tenant(file: &str, row: &RawRow) -> Result<TenantId, TraceError> {
    let known = u32::try_from(row.extra.tenant).ok().filter(|&id| id < TENANTS_MAX);
    known.map(TenantId::new).ok_or_else(|| TraceError::Field {
        file: file.to_owned(),
        place: row.place,
        field: "tenant".to_owned(),
        expected: format!("a tenant below {TENANTS_MAX}"),
        got: row.extra.tenant.to_string(),
    })
}
