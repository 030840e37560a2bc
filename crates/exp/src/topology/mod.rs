//! Topologies of files: our own lists of links, and the files of other simulators.
//!
//! | reader | files |
//! |---|---|
//! | [`links`] | TOML and JSON with the keys of plans, CSV with a link a line |
//! | [`ns3`] | `topology.txt` of HPCC's ns-3 and of programs made of it, SimAI's topologies |
//! | [`htsim`] | `.topo` of htsim and uet-htsim |
//! | [`astra`] | networks of ASTRA-sim's analytical simulator (`.yml`, `.json`) |
//!
//! Each reader recognises its files by their contents. A new one is a line of [`READERS`].

mod astra;
mod defaults;
mod draft;
mod htsim;
mod import;
mod links;
pub(crate) mod names;
mod node_kinds;
mod ns3;
#[cfg(test)]
mod tests;

use std::path::Path;

use rampmeter_sim::{TopologySpec, topologies};
use rampmeter_workload::trace::without_mark;
use serde::Deserialize;
use toml::Table;

use crate::error::{PlanError, Problem};
use crate::text;
use names::NamesSpec;

pub(crate) use import::ImportedTopology;
pub(crate) use links::{inline, lists_links};

/// A line of the table of readers.
struct Reader {
    /// Name of the files in errors.
    name: &'static str,
    /// Returns true if a text with this first line, of a file of this name, is one of the reader's.
    recognises: fn(name: &str, first: &str, text: &str) -> bool,
    /// Returns true if a text that is recognised, right or wrong, is no trace of flows.
    is_topology: fn(first: &str, text: &str) -> bool,
    /// Reads a text of a network whose hosts may forward packets. Errors begin with the line.
    read: fn(text: &str, hosts_forward: bool) -> Result<ImportedTopology, Problem>,
}

const READERS: &[Reader] = &[
    Reader {
        name: "ASTRA-sim",
        recognises: astra::recognises,
        is_topology: |_, _| true,
        read: |text, _| astra::read(text),
    },
    Reader {
        name: "ns-3",
        recognises: ns3::recognises,
        is_topology: ns3::has_links,
        read: |text, _| ns3::read(text),
    },
    Reader {
        name: "htsim",
        recognises: htsim::recognises,
        is_topology: |_, _| true,
        read: |text, _| htsim::read(text),
    },
    Reader {
        name: "JSON",
        recognises: links::is_json,
        is_topology: links::has_topology,
        read: |text, _| links::read_json(text),
    },
    Reader {
        name: "CSV",
        recognises: links::is_csv,
        is_topology: |first, _| links::has_ends(first),
        read: links::read_csv,
    },
    Reader {
        name: "TOML",
        recognises: links::is_toml,
        is_topology: links::has_topology,
        read: |text, _| links::read_toml(text),
    },
];

/// Reads the topology in `file`, whose hosts forward packets if `hosts_forward` is true.
///
/// # Errors
/// The file's name, the line, and what was expected there.
pub(crate) fn read(file: &Path, hosts_forward: bool) -> Result<ImportedTopology, Problem> {
    let name = file.display().to_string();
    let imported = parse(&name, &text_of(file)?, hosts_forward);
    let imported = imported.map_err(|problem| problem.in_other(file))?;
    let mut imported = imported.with_forwarding(hosts_forward);
    imported.notes.iter_mut().for_each(|note| *note = format!("{name}: {note}"));
    Ok(imported)
}

/// Reads the topology in `file`, which may be a plan, too.
///
/// # Errors
/// The file's name, the line, and what was expected there.
pub(crate) fn read_or_plan(file: &Path) -> Result<ImportedTopology, Problem> {
    let text = text_of(file)?;
    let plan = toml::from_str::<Table>(without_mark(&text)).ok();
    if plan.is_none_or(|plan| !plan.contains_key("topology")) {
        return read(file, false);
    }
    of_plan(file, &text).map_err(|problem| problem.in_other(file))
}

/// The tables of a plan that make its network.
#[derive(Deserialize)]
struct NetworkTables<T> {
    topology: T,
    #[serde(default)]
    names: NamesSpec,
}

/// Reads the network of the plan `text` in `file`.
fn of_plan(file: &Path, text: &str) -> Result<ImportedTopology, Problem> {
    let text = without_mark(text);
    if lists_links(text) {
        let tables: NetworkTables<Table> =
            text::parse::parse(text, "").map_err(PlanError::into_problem)?;
        return inline(tables.topology, text, tables.names);
    }
    let tables: NetworkTables<TopologySpec> =
        text::parse::parse(text, "").map_err(PlanError::into_problem)?;
    let mut imported = match &tables.topology {
        TopologySpec::File(topologies::File { file: inner, hosts_forward }) => {
            let base = file.parent().unwrap_or(Path::new(""));
            read(&base.join(inner), *hosts_forward)?
        }
        spec => ImportedTopology::without_names(spec.clone()),
    };
    imported.rename(&tables.names);
    Ok(imported)
}

/// Returns the format of the topology in `file`, right or wrong. `None` if it may be something
/// else.
pub(crate) fn format_of(file: &Path) -> Option<&'static str> {
    let text = text_of(file).ok()?;
    let text = without_mark(&text);
    let first = first_line(text);
    let reader = reader_of(&file.display().to_string(), first, text)?;
    (reader.is_topology)(first, text).then_some(reader.name)
}

fn text_of(file: &Path) -> Result<String, Problem> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|error| Problem::system(format!("{name}: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|_| Problem::unexpected("a topology as text", "a binary file").in_other(file))
}

/// Returns the first line of a text that is neither empty nor a comment.
fn first_line(text: &str) -> &str {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines().map(str::trim).find(is_content).unwrap_or_default()
}

fn reader_of(name: &str, first: &str, text: &str) -> Option<&'static Reader> {
    READERS.iter().find(|reader| (reader.recognises)(name, first, text))
}

fn parse(name: &str, text: &str, hosts_forward: bool) -> Result<ImportedTopology, Problem> {
    let text = without_mark(text);
    let first = first_line(text);
    let Some(reader) = reader_of(name, first, text) else { return Err(unknown(first)) };
    (reader.read)(text, hosts_forward).map_err(|error| match reader.name {
        "TOML" => error,
        format => error.with_note(&format!(" (read as a topology of {format})")),
    })
}

/// Returns the error of a file that no reader recognises.
fn unknown(first: &str) -> Problem {
    let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
    let got = match first {
        "" => "none in it".to_owned(),
        first => format!("one that begins with {:?}", first.chars().take(60).collect::<String>()),
    };
    let names = names.join(", ");
    Problem::unexpected(format!("a topology file of one of the formats {names}"), got)
}
