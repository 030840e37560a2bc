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
mod draft;
mod htsim;
mod links;
mod ns3;
#[cfg(test)]
mod tests;

use std::path::Path;

use rampmeter_sim::{TopologyError, TopologySpec};
use rampmeter_workload::trace::{HostNames, without_mark};

pub(crate) use links::{inline, lists_links};

use crate::names::NamesSpec;

/// A topology of a file, and what a topology of a plan does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Imported {
    pub(crate) spec: TopologySpec,
    pub(crate) names: NamesSpec,
    /// Loss probabilities by link.
    pub(crate) losses: Vec<(u32, f64)>,
    /// Numbers of the file's nodes, with the host of each; `None` for switches.
    pub(crate) numbers: Vec<(u64, Option<u32>)>,
    /// Sentences about omitted parts and likely mistakes.
    pub(crate) notes: Vec<String>,
    /// Lines of the links in the file; empty if it does not list links.
    pub(crate) lines: Vec<usize>,
}

/// A line of the table of readers.
struct Reader {
    /// Name of the files in errors.
    name: &'static str,
    /// Returns true if a text with this first line, of a file of this name, is one of the reader's.
    recognises: fn(name: &str, first: &str, text: &str) -> bool,
    /// Reads a text. Errors begin with the line.
    read: fn(text: &str) -> Result<Imported, String>,
}

const READERS: &[Reader] = &[
    Reader { name: "ASTRA-sim", recognises: astra::recognises, read: astra::read },
    Reader { name: "ns-3", recognises: ns3::recognises, read: ns3::read },
    Reader { name: "htsim", recognises: htsim::recognises, read: htsim::read },
    Reader { name: "JSON", recognises: links::is_json, read: links::read_json },
    Reader { name: "CSV", recognises: links::is_csv, read: links::read_csv },
    Reader { name: "TOML", recognises: links::is_toml, read: links::read_toml },
];

/// Reads the topology in `file`.
///
/// # Errors
/// The file's name, the line, and what was expected there.
pub(crate) fn read(file: &Path) -> Result<Imported, String> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{name}: expected a topology as text, got a binary file"))?;
    let mut imported = parse(&name, &text).map_err(|error| format!("{name}: {error}"))?;
    imported.notes.iter_mut().for_each(|note| *note = format!("{name}: {note}"));
    Ok(imported)
}

fn parse(name: &str, text: &str) -> Result<Imported, String> {
    let text = without_mark(text);
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let first = text.lines().map(str::trim).find(is_said).unwrap_or_default();
    let reader = READERS.iter().find(|reader| (reader.recognises)(name, first, text));
    let Some(reader) = reader else { return Err(unknown(first)) };
    (reader.read)(text).map_err(|error| match reader.name {
        "TOML" => error,
        format => format!("{error} (read as a topology of {format})"),
    })
}

/// Returns the error of a file that no reader recognises.
fn unknown(first: &str) -> String {
    let names: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
    let got = match first {
        "" => "none in it".to_owned(),
        first => format!("one that begins with {:?}", first.chars().take(60).collect::<String>()),
    };
    format!("expected a topology file of one of the formats {}, got {got}", names.join(", "))
}

impl Imported {
    /// Returns the topology of a file or a plan that names no nodes.
    pub(crate) fn plain(spec: TopologySpec) -> Self {
        let (losses, numbers, notes, lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { spec, names: NamesSpec::default(), losses, numbers, notes, lines }
    }

    /// Returns the message of an error in the user's names, after the line and the link if it is
    /// about one.
    pub(crate) fn explain(&self, error: &TopologyError) -> String {
        let message = self.names.in_message(&error.to_string());
        let Some(number) = error.link() else { return message };
        let link = format!("link {number}");
        let message = message.strip_prefix(&format!("{link}: ")).unwrap_or(&message);
        let line = self.lines.get(number).map_or(String::new(), |line| format!("line {line}: "));
        let ends = match &self.spec {
            TopologySpec::Links { links, .. } => links.get(number).map(|link| &link.between),
            _ => None,
        };
        let ends = ends.map_or(String::new(), |ends| {
            let [a, b] = ends.each_ref().map(|end| self.names.of_default(end));
            format!(" ({a}-{b})")
        });
        format!("{line}{link}{ends}: {message}")
    }

    /// Returns the topology as TOML, with the names of its nodes, and the number of its links.
    pub(crate) fn to_toml(&self) -> Result<(String, usize), String> {
        let mut table = toml::Table::try_from(&self.spec).map_err(|error| error.to_string())?;
        let name = |node: &str, all: &[String]| {
            let number = node[1..].parse::<usize>().ok();
            number.and_then(|number| all.get(number)).cloned()
        };
        let links = table.remove("links").and_then(|links| links.as_array().cloned());
        let mut links = links.unwrap_or_default();
        for (number, link) in (0..).zip(&mut links) {
            let Some(link) = link.as_table_mut() else { continue };
            let ends = link.get_mut("between").and_then(toml::Value::as_array_mut);
            for end in ends.into_iter().flatten() {
                let node = end.as_str().unwrap_or("h0").to_owned();
                let all =
                    if node.starts_with('h') { &self.names.hosts } else { &self.names.switches };
                *end = name(&node, all).unwrap_or(node).into();
            }
            if let Some(&(_, loss)) = self.losses.iter().find(|&&(of, _)| of == number) {
                link.insert("loss".to_owned(), loss.into());
            }
        }
        for (key, names) in [("hosts", &self.names.hosts), ("switches", &self.names.switches)] {
            if !names.is_empty() {
                table.insert(key.to_owned(), names.clone().into());
            }
        }
        let mut text = table.to_string();
        if !links.is_empty() {
            let lines: Vec<String> = links.iter().map(|link| format!("    {link},\n")).collect();
            text = format!("{text}links = [\n{}]\n", lines.concat());
        }
        Ok((text, links.len()))
    }

    /// Returns the names of hosts, and the numbers of nodes, for traces.
    pub(crate) fn host_names(&self) -> HostNames {
        let mut names = self.names.host_names();
        for &(number, host) in &self.numbers {
            names.insert_number(number, host);
        }
        names
    }
}
