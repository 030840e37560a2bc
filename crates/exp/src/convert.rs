//! Turning traces of other tools into ours.

use std::io;
use std::path::{Path, PathBuf};

use rampmeter_sim::topo::Link;
use rampmeter_sim::{Node, Topology};
use rampmeter_types::without_os_error;
use rampmeter_workload::TraceError;
use rampmeter_workload::import::htsim::{Failure, failures};
use rampmeter_workload::trace::{
    self, FlowOrder, Format, HostNames, Options, Trace, TraceRequirements, read_with_notes,
    write_csv, write_graph_csv, write_graph_parquet, write_parquet, write_reference_csv,
};
use thiserror::Error;

use crate::error::{Problem, of_trace};
use crate::topology::names::sample;
use crate::topology::{self, ImportedTopology};

/// Reason why a trace could not be converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source, the format or the name of the target is wrong.
    #[error("{0}")]
    Input(Problem),
    /// The target could not be written.
    #[error("{}: {}", file.display(), without_os_error(source))]
    Io {
        /// The target.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl From<Problem> for ConvertError {
    fn from(problem: Problem) -> Self {
        Self::Input(problem)
    }
}

impl From<TraceError> for ConvertError {
    fn from(error: TraceError) -> Self {
        Self::Input(of_trace(error))
    }
}

/// Returns the error of a target that could not be written.
fn unwritten(error: TraceError) -> ConvertError {
    match error {
        TraceError::Io { file, source } => ConvertError::Io { file: file.into(), source },
        other => other.into(),
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedFile {
    /// Number of flows, or of the links of a topology.
    pub n_rows: usize,
    /// Sentences about parts of the source that the target does not have, and about likely
    /// mistakes.
    pub notes: Vec<String>,
}

/// Reads `source`, a trace in `format` (`auto`: by its name or contents), and writes `target`,
/// whose name decides its form. If that is TOML, the source is a topology, whose format is
/// recognised by its contents. Completion times that the source has are kept in CSV. With `sort`,
/// flows are put in order of arrival; without, a trace out of order is an error. `topology` is the
/// file that numbers or names the hosts of the source: a topology or a plan.
///
/// # Errors
/// If the source is no such trace or the target cannot be written.
pub fn convert(
    source: &Path,
    format: &str,
    target: &Path,
    sort: bool,
    topology: Option<&Path>,
    options: &Options,
) -> Result<ConvertedFile, ConvertError> {
    if target.extension().is_some_and(|extension| extension == "toml") {
        return convert_topology(source, target);
    }
    let mut options = options.clone();
    let imported = topology.map(topology::read_or_plan).transpose()?;
    if let Some(imported) = &imported {
        options.hosts = Some(imported.host_names());
    }
    let format = format_of(source, format, target)?;
    let form = trace::Format::from_name(target).ok_or_else(|| unknown(target))?;
    if form == Format::Csv && options.hosts.as_ref().is_some_and(HostNames::are_numeric) {
        let problem = Problem::unexpected("a name that ends in .parquet", "one that ends in .csv");
        let problem = problem.with_note(", as nodes of the topology have numbers for names");
        return Err(problem.in_other(target).into());
    }
    // If a host has a number for a name, plans read numbers in CSV as names.
    let names = match (form, format) {
        (Format::Csv, Format::Parquet) => trace::host_names(source)?,
        _ => Vec::new(),
    };
    let names = Some(names).filter(|names| HostNames::has_number(names)).unwrap_or_default();
    let order = if sort { FlowOrder::Sort } else { FlowOrder::Require };
    let built = imported.as_ref().map(|imported| built(topology.unwrap_or(source), imported));
    let n_hosts = built.transpose()?.map_or(u32::MAX, |built| built.n_hosts());
    let check = TraceRequirements::new(n_hosts, order);
    let (trace, mut notes) = read_with_notes(source, format, check, &options)?;
    if format == Format::Htsim
        && let Some(imported) = &imported
    {
        for failure in failures(source)? {
            let note = outage(imported, &failure).map_err(|expected| {
                let problem = Problem::unexpected(expected, &failure);
                problem.at(Some(failure.line as usize), "failure").in_other(source)
            });
            notes.push(note?);
        }
    }
    Ok(ConvertedFile { n_rows: write(target, form, trace, &names)?, notes })
}

/// Returns the format of `source` by its name, or else by its contents, if `name` is `auto`.
fn format_of(source: &Path, name: &str, target: &Path) -> Result<Format, ConvertError> {
    let known = match name {
        "auto" => Format::from_name(source).or_else(|| Format::from_contents(source)),
        name => Format::named(name),
    };
    // A wrong topology is one, too; formats of traces may have its suffix.
    if Format::from_contents(source).is_none()
        && topology::format_of(source).is_some_and(|of| ["auto", of].contains(&name))
    {
        let problem = Problem::unexpected("a trace of flows", "a topology").with_note(&format!(
            "; for that, expected a target whose name ends in .toml, got {:?}",
            target.display().to_string()
        ));
        return Err(problem.in_other(source).into());
    }
    let names = Format::names();
    known.ok_or_else(|| match name {
        "auto" => Problem::unexpected("a format by its name or contents", "none")
            .with_note(&format!(": name one of {names}"))
            .in_other(source)
            .into(),
        name => Problem::unexpected(format!("one of {names}, or auto"), format!("{name:?}"))
            .at(None, "format")
            .into(),
    })
}

/// Returns the error of a target whose name does not determine its format.
fn unknown(target: &Path) -> ConvertError {
    let expected = "a name that ends in .csv, .csv.gz, .parquet or, for topologies, .toml";
    let got = target
        .extension()
        .map_or("no extension".to_owned(), |extension| format!(".{}", extension.to_string_lossy()));
    Problem::unexpected(expected, got).in_other(target).into()
}

/// Writes a trace to `target` and returns the number of its flows. `names` are those of hosts, if
/// rows must have them.
fn write(
    target: &Path,
    form: Format,
    trace: Trace,
    names: &[String],
) -> Result<usize, ConvertError> {
    let rows = match trace {
        Trace::Flows(rows) => rows,
        Trace::Graph(graph) => {
            match form {
                Format::Parquet => write_graph_parquet(target, &graph).map_err(unwritten)?,
                Format::Csv => write_graph_csv(target, &graph).map_err(unwritten)?,
                _ => return Err(unknown(target)),
            }
            return Ok(graph.n_flows() as usize);
        }
    };
    let flows = || rows.iter().map(|row| row.flow);
    match form {
        Format::Parquet => write_parquet(target, flows()).map_err(unwritten)?,
        Format::Csv if !names.is_empty() || rows.iter().any(|row| row.fct.is_some()) => {
            write_reference_csv(target, &rows, names).map_err(unwritten)?;
        }
        Format::Csv => write_csv(target, flows()).map_err(unwritten)?,
        _ => return Err(unknown(target)),
    }
    Ok(rows.len())
}

/// Returns a failure as an outage of a plan. Link `n` of a switch leads to the `n`-th of the
/// switches above it; of a bundle the first link fails, as in htsim. An error is the expected
/// value.
fn outage(imported: &ImportedTopology, failure: &Failure) -> Result<String, String> {
    let built = imported.spec.build().map_err(|error| imported.problem(&error).to_string())?;
    let below = format!("{}{}", failure.tier.to_ascii_lowercase(), failure.switch);
    let switch = imported.names.switches.iter().position(|name| *name == below);
    let switch = switch.ok_or_else(|| {
        let names = (0..built.n_switches()).map(|at| imported.names.node(Node::Switch(at)));
        let names = sample(names, 3);
        match imported.names.switches.iter().any(|name| name == "tor0") {
            true => format!("a switch of the topology ({names})"),
            false => format!(
                "the topology of the matrix's .topo file, whose switches are tor0, agg0 and core0, \
                 and not one with the switches {names}"
            ),
        }
    })? as u32;
    let level = built.level(switch);
    if failure.tier.eq_ignore_ascii_case("core") {
        return Err(format!(
            "a switch that has uplinks, TOR or AGG, and the number of one: core switches have \
             none, so a link of {below} is that of the AGG switch at its other end"
        ));
    }
    let far = |link: &Link| match (link.a, link.b) {
        (Node::Switch(a), Node::Switch(b)) if a == switch => Some(b),
        (Node::Switch(a), Node::Switch(b)) if b == switch => Some(a),
        _ => None,
    };
    let mut above: Vec<u32> =
        built.links().iter().filter_map(far).filter(|&to| built.level(to) > level).collect();
    above.dedup();
    let to = usize::try_from(failure.link).ok().and_then(|n| above.get(n));
    let to = to.ok_or_else(|| format!("an uplink below {} of {below}", above.len()))?;
    let above = imported.names.node(Node::Switch(*to));
    Ok(format!(
        "{failure} as an outage of a plan: faults.outages = [{{ link = \"{below}-{above}\", \
         from-us = 0 }}]"
    ))
}

/// Builds the network of a file.
fn built(file: &Path, imported: &ImportedTopology) -> Result<Topology, ConvertError> {
    imported.spec.build().map_err(|error| imported.problem(&error).in_other(file).into())
}

/// Writes the topology in `source` as a list of links.
fn convert_topology(source: &Path, target: &Path) -> Result<ConvertedFile, ConvertError> {
    let imported =
        topology::read_or_plan(source).map_err(|error| match Format::from_contents(source) {
            Some(format) if topology::format_of(source).is_none() => {
                let got = format!("a trace of flows in format {}", format.name());
                let note = format!(
                    "; for that, expected a target whose name ends in .csv, .csv.gz or .parquet, \
                     got {:?}",
                    target.display().to_string()
                );
                Problem::unexpected("a topology", got).with_note(&note).in_other(source)
            }
            _ => error,
        })?;
    built(source, &imported)?;
    let text = imported.to_toml().map_err(Problem::Other)?;
    std::fs::write(target, &text.0)
        .map_err(|source| ConvertError::Io { file: target.to_owned(), source })?;
    Ok(ConvertedFile { n_rows: text.1, notes: imported.notes })
}
