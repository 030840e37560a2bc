//! Connection matrices of htsim, of the first versions and of those with triggers.
//!
//! ```text
//! Nodes 128
//! Connections 3
//! Triggers 1
//! 1->0 id 1 start 0 size 2000000 send_done_trigger 1
//! 2->0 id 2 start 5000000 size 4000 prio 3
//! 1->2 id 3 trigger 1 size 2000000
//! trigger id 1 oneshot
//! ```
//!
//! Starts are in picoseconds and sizes in bytes. A connection with a `trigger` depends on those
//! that name the trigger: on the acknowledgement of all data (`send_done_trigger`), or on all data
//! at its receiver (`recv_done_trigger`).
//!
//! | trigger | its connections wait for |
//! |---|---|
//! | `oneshot` | the one connection that names it |
//! | `barrier count n` | all `n` connections that name it |
//! | `multishot` | the `i`-th one: the `i`-th connection that names it (htsim: in order of ends) |
//!
//! Only a host that detects an end can start a connection by it. Messages of one connection (`msg`)
//! are separate flows. Notes name the parts that a workload does not have: failures, `prio` and
//! `addon`. Lines that begin with `#` are comments.

mod connection;

use std::collections::BTreeMap;
use std::path::Path;

use super::{Line, count};
use crate::trace::{Import, OptionalFields, Options, RawRow, Source, TraceError};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    parse(source.name, &source.text()?, source.n_hosts)
}

fn parse(file: &str, text: &str, n_hosts: Option<u32>) -> Result<Import, TraceError> {
    let mut matrix = Matrix::default();
    for (text, number) in text.lines().zip(1..) {
        matrix.take(Line { file, number }, &text.split_whitespace().collect::<Vec<_>>())?;
    }
    matrix.check_counts(file)?;
    let after = matrix.dependencies(file)?;
    let mut notes = matrix.notes(file);
    let nodes = matrix.n_nodes.zip(n_hosts).filter(|&(nodes, hosts)| nodes != u64::from(hosts));
    notes.extend(nodes.map(|(nodes, hosts)| {
        format!("{file}: Nodes {nodes}, in a network of {}", count(hosts as usize, "host"))
    }));
    let row = |(connection, after): (&Connection, Vec<u64>)| RawRow {
        place: connection.place,
        src: connection.src,
        dst: connection.dst,
        arrival_ps: connection.start_ps.unwrap_or(0),
        size_bytes: connection.size,
        fct_ps: None,
        ideal_ps: None,
        extra: OptionalFields { after, ..OptionalFields::default() },
    };
    let rows = matrix.connections.iter().zip(after).map(row).collect();
    Ok(Import { rows, notes, is_unordered: true, ..Import::default() })
}

#[derive(Clone, Debug, Default)]
struct Connection {
    place: u64,
    src: u64,
    dst: u64,
    size: u64,
    start_ps: Option<u64>,
    /// The trigger that starts the connection.
    trigger: Option<u64>,
    /// The triggers that its end activates, by the kind of end.
    activates: Vec<(End, u64)>,
}

/// Event of a connection that activates a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The sender has all acknowledgements.
    Sent,
    /// The receiver has all data.
    Received,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OneShot,
    MultiShot,
    Barrier { count: u64 },
}

/// The contents of a file.
#[derive(Clone, Debug, Default)]
struct Matrix {
    n_nodes: Option<u64>,
    /// Announced numbers of connections and triggers, with their lines.
    announced: BTreeMap<&'static str, (u64, u64)>,
    connections: Vec<Connection>,
    /// Lines of the ids of connections.
    ids: BTreeMap<u64, u64>,
    triggers: BTreeMap<u64, Kind>,
    failures: Vec<Failure>,
    n_priorities: usize,
    n_messages: usize,
    n_addons: usize,
    has_fractions: bool,
}

impl Matrix {
    fn take(&mut self, line: Line<'_>, fields: &[&str]) -> Result<(), TraceError> {
        match *fields {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["Nodes", n] => self.n_nodes = Some(line.number("Nodes", n)?),
            ["Connections", n] => self.announce(line, "Connections", n)?,
            ["Triggers", n] => self.announce(line, "Triggers", n)?,
            ["Failures", n] => self.announce(line, "Failures", n)?,
            ["trigger", ref rest @ ..] => self.trigger(line, rest)?,
            ["failure", ref rest @ ..] => self.failures.push(failure(line, rest)?),
            [pair, ref rest @ ..] if pair.contains("->") => {
                let connection = self.connection(line, pair, rest)?;
                self.connections.push(connection);
            }
            [first, ..] => {
                let expected = "a connection src->dst, a trigger or a failure";
                return Err(line.wrong("line", expected, first));
            }
        }
        Ok(())
    }

    fn announce(
        &mut self,
        line: Line<'_>,
        element: &'static str,
        n: &str,
    ) -> Result<(), TraceError> {
        self.announced.insert(element, (line.number(element, n)?, line.number));
        Ok(())
    }

    fn trigger(&mut self, line: Line<'_>, rest: &[&str]) -> Result<(), TraceError> {
        let (mut id, mut kind, mut count) = (None, None, None);
        let mut words = rest.iter();
        while let Some(&word) = words.next() {
            let mut value = || {
                let value = words.next();
                value.ok_or_else(|| line.wrong("trigger", "a value after every key", word))
            };
            match word {
                "id" => id = Some(line.number("trigger", value()?)?),
                "count" => count = Some(line.number("count", value()?)?),
                "oneshot" => kind = Some(Kind::OneShot),
                "multishot" => kind = Some(Kind::MultiShot),
                "barrier" => kind = Some(Kind::Barrier { count: 0 }),
                _ => {
                    let expected = "id, oneshot, multishot, barrier or count";
                    return Err(line.wrong("trigger", expected, word));
                }
            }
        }
        let id = id.ok_or_else(|| line.wrong("trigger", "an id", "none"))?;
        let kind = match (kind, count) {
            (Some(Kind::Barrier { .. }), Some(count)) => Kind::Barrier { count },
            (Some(Kind::Barrier { .. }), None) => {
                return Err(line.wrong("count", "the count of the barrier", "none"));
            }
            (Some(kind), _) => kind,
            (None, _) => {
                return Err(line.wrong("trigger", "oneshot, multishot or barrier", "none"));
            }
        };
        if self.triggers.insert(id, kind).is_some() {
            return Err(line.wrong("trigger", "an id that no trigger before has", &id.to_string()));
        }
        Ok(())
    }

    fn check_counts(&self, file: &str) -> Result<(), TraceError> {
        let found = [
            ("Connections", self.connections.len()),
            ("Triggers", self.triggers.len()),
            ("Failures", self.failures.len()),
        ];
        for (what, n) in found {
            if let Some(&(announced, number)) = self.announced.get(what)
                && announced != n as u64
            {
                let line = Line { file, number };
                let expected = format!("{n}, as many as follow");
                return Err(line.wrong(what, &expected, &announced.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the rows on which each connection depends.
    fn dependencies(&self, file: &str) -> Result<Vec<Vec<u64>>, TraceError> {
        let mut activators: BTreeMap<u64, Vec<(usize, End)>> = BTreeMap::new();
        for (idx, connection) in self.connections.iter().enumerate() {
            for &(end, id) in &connection.activates {
                activators.entry(id).or_default().push((idx, end));
            }
        }
        let mut n_started: BTreeMap<u64, usize> = BTreeMap::new();
        let mut all = Vec::with_capacity(self.connections.len());
        for connection in &self.connections {
            let Some(id) = connection.trigger else {
                all.push(Vec::new());
                continue;
            };
            let line = Line { file, number: connection.place };
            let by = activators.get(&id).map_or(&[][..], Vec::as_slice);
            let number = n_started.entry(id).or_default();
            let waits = self.waits(line, id, by, *number)?;
            *number += 1;
            for &(idx, end) in waits {
                self.check_host(line, connection, &self.connections[idx], end)?;
            }
            all.push(waits.iter().map(|&(idx, _)| idx as u64).collect());
        }
        Ok(all)
    }

    /// Returns the activations on which connection `number` of those at trigger `id` depends, of
    /// all activations.
    fn waits<'a>(
        &self,
        line: Line<'_>,
        id: u64,
        by: &'a [(usize, End)],
        number: usize,
    ) -> Result<&'a [(usize, End)], TraceError> {
        let wrong = |expected: &str, got: String| Err(line.wrong("trigger", expected, &got));
        let named = count(by.len(), "connection");
        match self.triggers.get(&id) {
            None => wrong("a trigger that the file defines", id.to_string()),
            Some(_) if by.is_empty() => {
                wrong("a trigger that a connection activates", format!("{id}, which none does"))
            }
            Some(Kind::OneShot) if by.len() > 1 => wrong(
                "one connection that activates a oneshot trigger, as the first to end is not \
                 known before the run",
                format!("{id} with {named}"),
            ),
            Some(&Kind::Barrier { count }) if count != by.len() as u64 => wrong(
                &format!("{count} activations of the barrier, as its count requires"),
                format!("{id} with {named}"),
            ),
            Some(Kind::OneShot | Kind::Barrier { .. }) => Ok(by),
            Some(Kind::MultiShot) => match by.get(number..=number) {
                Some(one) => Ok(one),
                None => wrong(
                    &format!("at most {} at the multishot trigger, one an activation", by.len()),
                    format!("{id} with more"),
                ),
            },
        }
    }

    /// Checks that the source of `connection` detects the end of `earlier`.
    fn check_host(
        &self,
        line: Line<'_>,
        connection: &Connection,
        earlier: &Connection,
        end: End,
    ) -> Result<(), TraceError> {
        let (knows, key) = match end {
            End::Sent => (earlier.src, "send_done_trigger"),
            End::Received => (earlier.dst, "recv_done_trigger"),
        };
        if connection.src == knows {
            return Ok(());
        }
        let expected = format!(
            "a connection of host {knows}, which observes the {key} of line {}",
            earlier.place
        );
        Err(line.wrong("trigger", &expected, &format!("one of host {}", connection.src)))
    }

    fn notes(&self, file: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.failures.is_empty() {
            let n = count(self.failures.len(), "failure");
            let links: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
            let links = links.join(", ");
            notes.push(format!(
                "{file}: {n} omitted: {links}; failures are in the plan, `faults.outages` \
                 (`rampmeter convert --topology` writes them out)"
            ));
        }
        if self.n_priorities > 0 {
            let n = count(self.n_priorities, "connection");
            notes.push(format!("{file}: prio of {n} is not used: transports choose priorities"));
        }
        if self.n_messages > 0 {
            let n = count(self.n_messages, "message");
            notes.push(format!("{file}: {n} (msg) are separate flows, which share no connection"));
        }
        if self.n_addons > 0 {
            notes.push(format!(
                "{file}: addon of {} is not used",
                count(self.n_addons, "connection")
            ));
        }
        if self.triggers.values().any(|&kind| kind == Kind::MultiShot) {
            notes.push(format!(
                "{file}: connections at multishot triggers wait in the order of the file; htsim \
                 starts them in the order of ends"
            ));
        }
        let last_ps = self.connections.iter().filter_map(|c| c.start_ps).max().unwrap_or(0);
        if self.has_fractions || (1..1_000).contains(&last_ps) {
            notes.push(format!(
                "{file}: starts are read as picoseconds, the last is {last_ps} ps: are they \
                 microseconds, as in the first versions of htsim?"
            ));
        }
        notes
    }
}

/// A link that has failed: an uplink of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line in the file, from 1.
    pub line: u64,
    /// The tier of the switch: `TOR`, `AGG` or `CORE`.
    pub tier: String,
    /// Number of the switch in its tier.
    pub switch: u64,
    /// Number of the link among the uplinks of the switch; a bundle is one.
    pub link: u64,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "link {} of {} {}", self.link, self.tier, self.switch)
    }
}

/// Returns the failures of the connection matrix in `file`.
///
/// # Errors
/// A file that cannot be read, or a line that is wrong.
pub fn failures(file: &Path) -> Result<Vec<Failure>, TraceError> {
    let name = file.display().to_string();
    let options = Options::default();
    let source = Source { path: file, name: &name, options: &options, n_hosts: None };
    let mut matrix = Matrix::default();
    for (number, text) in (1..).zip(source.text()?.lines()) {
        let fields: Vec<&str> = text.split_whitespace().collect();
        matrix.take(Line { file: &name, number }, &fields)?;
    }
    Ok(matrix.failures)
}

/// Reads `switch_type AGG switch_id 3 link_id 1` in any order.
fn failure(line: Line<'_>, fields: &[&str]) -> Result<Failure, TraceError> {
    let (mut switch, mut number, mut link) = (None, None, None);
    for pair in fields.chunks(2) {
        match *pair {
            ["switch_type", kind] => switch = Some(kind),
            ["switch_id", id] => number = Some(line.number("switch_id", id)?),
            ["link_id", id] => link = Some(line.number("link_id", id)?),
            _ => {
                let expected = "switch_type, switch_id and link_id, each with a value";
                return Err(line.wrong("failure", expected, pair[0]));
            }
        }
    }
    match (switch, number, link) {
        (Some(tier), Some(switch), Some(link)) => {
            Ok(Failure { line: line.number, tier: tier.to_owned(), switch, link })
        }
        _ => {
            let expected = "switch_type, switch_id and link_id";
            Err(line.wrong("failure", expected, &fields.join(" ")))
        }
    }
}
