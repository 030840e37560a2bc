//! Turning traces of other tools into ours.

use std::path::Path;

use rampmeter_workload::TraceError;
use rampmeter_workload::trace::{
    self, Check, Format, Order, Trace, read_trace, write_csv, write_graph_csv, write_graph_parquet,
    write_parquet, write_reference_csv,
};
use thiserror::Error;

/// Why a trace could not be converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source cannot be read or the target not written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The format has no such name.
    #[error("format: expected one of csv, parquet, yaps, dcpim, htsim, hpcc, goal, got {0:?}")]
    Format(String),
    /// The target's name does not say what it is.
    #[error("{0}: expected a name that ends in .csv, .csv.gz or .parquet")]
    Target(String),
}

/// Reads `source`, a trace in `format`, and writes `target`, whose name decides its form.
/// Completion times that the source has are kept in CSV. With `sort`, flows are put in order of
/// arrival; without, a trace out of order is an error. Returns the number of flows.
///
/// # Errors
/// If the source is no such trace or the target cannot be written.
pub fn convert(
    source: &Path,
    format: &str,
    target: &Path,
    sort: bool,
) -> Result<usize, ConvertError> {
    let format = match format {
        "csv" => Format::Csv,
        "parquet" => Format::Parquet,
        "yaps" | "dcpim" => Format::Yaps,
        "htsim" => Format::Htsim,
        "goal" => Format::Goal,
        "hpcc" => Format::Hpcc,
        other => return Err(ConvertError::Format(other.to_owned())),
    };
    let order = if sort { Order::Sort } else { Order::Require };
    let unknown = || ConvertError::Target(target.display().to_string());
    let rows = match read_trace(source, format, Check { n_hosts: u32::MAX, order })? {
        Trace::Flows(rows) => rows,
        Trace::Graph(graph) => {
            match trace::Format::of(target).ok_or_else(unknown)? {
                Format::Parquet => write_graph_parquet(target, &graph)?,
                Format::Csv => write_graph_csv(target, &graph)?,
                _ => return Err(unknown()),
            }
            return Ok(graph.n_flows() as usize);
        }
    };
    let flows = || rows.iter().map(|row| row.flow);
    match trace::Format::of(target) {
        Some(Format::Parquet) => write_parquet(target, flows())?,
        Some(Format::Csv) if rows.iter().any(|row| row.fct.is_some()) => {
            write_reference_csv(target, &rows)?;
        }
        Some(Format::Csv) => write_csv(target, flows())?,
        _ => return Err(unknown()),
    }
    Ok(rows.len())
}
