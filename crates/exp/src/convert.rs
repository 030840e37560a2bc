//! Turning traces of other tools into ours.

use std::path::Path;

use rampmeter_sim::topo::Link;
use rampmeter_sim::{Node, Topology};
use rampmeter_workload::TraceError;
use rampmeter_workload::import::htsim::{Failure, failures};
use rampmeter_workload::trace::{
    self, FlowOrder, Format, HostNames, Options, Trace, TraceRequirements, read_with_notes,
    write_csv, write_graph_csv, write_graph_parquet, write_parquet, write_reference_csv,
};
use thiserror::Error;

use crate::error::Problem;
use crate::topology::names::sample;
use crate::topology::{self, ImportedTopology};

/// Reason why a trace could not be converted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The source cannot be read or the target not written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The format has no such name.
    #[error("format: expected one of {}, or auto, got {got:?}", Format::names())]
    Format {
        /// The name.
        got: String,
    },
    /// The source is a topology, and the target's name is that of a trace.
    #[error(
        "{source_file}: expected a trace of flows, got a topology; for that, expected a target \
         whose name ends in .toml, got {target:?}"
    )]
    IsTopology {
        /// The source.
        source_file: String,
        /// The target.
        target: String,
    },
    /// The source is a trace of flows, and the target's name is that of a topology.
    #[error(
        "{source_file}: expected a topology, got a trace of flows in format {format}; for that, \
         expected a target whose name ends in .csv, .csv.gz or .parquet, got {target:?}"
    )]
    IsTrace {
        /// The source.
        source_file: String,
        /// Format of the source.
        format: &'static str,
        /// The target.
        target: String,
    },
    /// Neither the name nor the contents of the file suggest a format.
    #[error(
        "{file}: expected a format by its name or contents, found none: name one of {}",
        Format::names()
    )]
    Unknown {
        /// The file.
        file: String,
    },
    /// Numbers of hosts in the target would be taken for names.
    #[error(
        "{0}: expected a name that ends in .parquet, as nodes of the topology have numbers for \
         names"
    )]
    Numbers(String),
    /// A topology cannot be read or written.
    #[error("{0}")]
    Topology(String),
    /// The target's name does not determine its format.
    #[error("{0}: expected a name that ends in .csv, .csv.gz, .parquet or, for topologies, .toml")]
    Target(String),
}

impl ConvertError {
    fn of_topology(problem: Problem) -> Self {
        Self::Topology(problem.to_string())
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
    let imported =
        topology.map(topology::read_or_plan).transpose().map_err(ConvertError::of_topology)?;
    if let Some(imported) = &imported {
        options.hosts = Some(imported.host_names());
    }
    let format = format_of(source, format, target)?;
    let form = trace::Format::from_name(target).ok_or_else(|| unknown(target))?;
    if form == Format::Csv && options.hosts.as_ref().is_some_and(HostNames::are_numeric) {
        return Err(ConvertError::Numbers(target.display().to_string()));
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
                let place = format!("{}:{}", source.display(), failure.line);
                ConvertError::Topology(format!(
                    "{place}: failure: expected {expected}, got {failure}"
                ))
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
        return Err(ConvertError::IsTopology {
            source_file: source.display().to_string(),
            target: target.display().to_string(),
        });
    }
    known.ok_or_else(|| match name {
        "auto" => ConvertError::Unknown { file: source.display().to_string() },
        name => ConvertError::Format { got: name.to_owned() },
    })
}

/// Returns the error of a target whose name does not determine its format.
fn unknown(target: &Path) -> ConvertError {
    ConvertError::Target(target.display().to_string())
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
                Format::Parquet => write_graph_parquet(target, &graph)?,
                Format::Csv => write_graph_csv(target, &graph)?,
                _ => return Err(unknown(target)),
            }
            return Ok(graph.n_flows() as usize);
        }
    };
    let flows = || rows.iter().map(|row| row.flow);
    match form {
        Format::Parquet => write_parquet(target, flows())?,
        Format::Csv if !names.is_empty() || rows.iter().any(|row| row.fct.is_some()) => {
            write_reference_csv(target, &rows, names)?;
        }
        Format::Csv => write_csv(target, flows())?,
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
    imported.spec.build().map_err(|error| {
        ConvertError::Topology(format!("{}: {}", file.display(), imported.problem(&error)))
    })
}

/// Writes the topology in `source` as a list of links.
fn convert_topology(source: &Path, target: &Path) -> Result<ConvertedFile, ConvertError> {
    let imported =
        topology::read_or_plan(source).map_err(|error| match Format::from_contents(source) {
            Some(format) if topology::format_of(source).is_none() => ConvertError::IsTrace {
                source_file: source.display().to_string(),
                format: format.name(),
                target: target.display().to_string(),
            },
            _ => ConvertError::of_topology(error),
        })?;
    built(source, &imported)?;
    let text = imported.to_toml().map_err(ConvertError::Topology)?;
    std::fs::write(target, &text.0)
        .map_err(|error| ConvertError::Topology(format!("{}: {error}", target.display())))?;
    Ok(ConvertedFile { n_rows: text.1, notes: imported.notes })
}
