//! Common parts of the testbed's loads, for any carrier: a part of the table, and a log.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use rampmeter_runtime::NodeConfig;
use rampmeter_types::{Bytes, NodeId, Span, TenantId, Time};
use rampmeter_workload::table::Records;
use rampmeter_workload::{Flow, Graph, GraphBuilder, GraphError, Releases};

use crate::error::InputError;
use crate::pattern::SIZE_MIN;

/// Schedule of one host. Each message is sent at its time, or when this host has received or
/// completed those on which it depends.
#[derive(Debug)]
pub(crate) struct Timetable {
    rows: Vec<FlowRow>,
    /// Row of each flow.
    places: HashMap<u32, u32>,
    releases: Releases,
    /// Number of messages of this host that are not sent yet.
    pub(crate) unsent: usize,
    /// Time at which the table's time begins.
    pub(crate) start: Time,
    /// Number of messages that will arrive here.
    pub(crate) expected: usize,
    /// Time at which the last message of any host is sent if messages have no duration.
    pub(crate) last_send: Time,
    /// True if some messages depend on others.
    pub(crate) has_dependencies: bool,
}

impl Timetable {
    /// Creates the schedule of the rows of `node`.
    pub(crate) fn new(table: Table, node: u32, start: Time) -> Self {
        let Table { rows, graph } = table;
        let messages = || rows.iter().filter(|row| row.src != row.dst);
        let expected = messages().filter(|row| row.dst == node).count();
        let unsent = messages().filter(|row| row.src == node).count();
        let places = rows.iter().zip(0..).map(|(row, place)| (row.flow, place)).collect();
        let last_send = start.saturating_add(last_start(&graph).saturating_since(Time::ZERO));
        let has_dependencies = (0..graph.len()).any(|node| !graph.dependents(node).is_empty());
        let releases = Releases::for_host(Arc::new(graph), NodeId::new(node));
        Self { rows, places, releases, unsent, start, expected, last_send, has_dependencies }
    }

    /// Removes and returns a message that is due at `now`.
    pub(crate) fn take(&mut self, now: Time) -> Option<FlowRow> {
        if self.next()? > now {
            return None;
        }
        let (place, _) = self.releases.release()?;
        self.unsent -= 1;
        Some(self.rows[place as usize])
    }

    /// Returns the time of the next message; `None` if there is none, or it depends on others.
    pub(crate) fn next(&self) -> Option<Time> {
        let at = Some(self.releases.next_release()).filter(|&at| at < Time::NEVER)?;
        Some(self.start.saturating_add(at - Time::ZERO))
    }

    /// Returns true if all messages have been sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    /// Records that a message has arrived here.
    pub(crate) fn on_delivered(&mut self, flow: u32, now: Time) {
        if let Some(&place) = self.places.get(&flow) {
            self.releases.on_delivered(place, Time::ZERO + now.saturating_since(self.start));
        }
    }

    /// Records that a message of this host has arrived at its receiver.
    pub(crate) fn on_completed(&mut self, flow: u32, now: Time) {
        if let Some(&place) = self.places.get(&flow) {
            self.releases.on_completed(place, Time::ZERO + now.saturating_since(self.start));
        }
    }
}

/// Returns the time at which the last node of `graph` starts if messages have no duration.
fn last_start(graph: &Graph) -> Time {
    let mut starts: Vec<Time> = (0..graph.len()).map(|node| graph.node(node).arrival).collect();
    for node in graph.topological_order() {
        let start = starts[node as usize].saturating_add(graph.delay(node));
        starts[node as usize] = start;
        for &to in graph.dependents(node) {
            starts[to as usize] = starts[to as usize].max(start);
        }
    }
    starts.into_iter().max().unwrap_or(Time::ZERO)
}

/// Messages of all hosts.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<FlowRow>,
    /// Rows as nodes, by their numbers.
    graph: Graph,
}

/// A row of the table: a message, or a computation of a host if `src` is `dst`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRow {
    /// Number of the flow in the whole table.
    pub(crate) flow: u32,
    /// Sending host.
    pub(crate) src: u32,
    /// Receiving host.
    pub(crate) dst: u32,
    /// Length in bytes.
    pub(crate) size_bytes: u64,
    /// Tenant of the message.
    pub(crate) tenant: TenantId,
}

impl FlowRow {
    /// Returns the bytes that are sent for it.
    pub(crate) fn size(&self) -> u32 {
        self.size_bytes.max(SIZE_MIN) as u32
    }
}

/// Columns that a table must have.
const REQUIRED: [&str; 5] = ["flow", "arrival_ps", "src", "dst", "size_bytes"];
/// Columns that a table may have. `after` has the numbers of the flows on which a row depends, with
/// spaces between them.
const OPTIONAL: [&str; 3] = ["tenant", "after", "compute_ps"];

/// A line of the table, with the columns of its header.
struct Line<'a> {
    number: u64,
    header: &'a [String],
    fields: Vec<&'a str>,
}

impl Line<'_> {
    /// Returns the error of the field of a column.
    fn bad(&self, column: &str, expected: impl ToString, got: impl ToString) -> Box<InputError> {
        InputError::unexpected(expected, got).at(column).on_line(self.number)
    }

    /// Returns the field of a column; `None` if it is empty or there is no such column.
    fn field(&self, column: &str) -> Option<&str> {
        let at = self.header.iter().position(|name| name == column)?;
        Some(self.fields[at]).filter(|field| !field.is_empty())
    }

    /// Returns the number in a column, a `noun` from 0 to `max`, or `default` without one.
    fn number(
        &self,
        column: &str,
        noun: &str,
        max: u64,
        default: Option<u64>,
    ) -> Result<u64, Box<InputError>> {
        let got = match self.field(column).map(|field| (field, field.parse::<u64>())) {
            Some((_, Ok(number))) if number <= max => return Ok(number),
            Some((_, Ok(number))) => number.to_string(),
            // Numbers of other ranges and types are not quoted, as in other errors.
            Some((field, Err(_))) if field.parse::<f64>().is_ok() => field.to_owned(),
            Some((field, Err(_))) => format!("{field:?}"),
            None => match default {
                Some(number) => return Ok(number),
                None => "none".to_owned(),
            },
        };
        Err(self.bad(column, format!("{noun} from 0 to {max}"), got))
    }

    /// Parses the row of a table of `n_hosts` hosts; returns it with its arrival and computation.
    fn row(&self, n_hosts: u32) -> Result<(FlowRow, Time, Span), Box<InputError>> {
        let number = |column, max: u64| self.number(column, "a whole number", max, None);
        let optional = |column, max: u64| self.number(column, "a whole number", max, Some(0));
        let host = |column| self.number(column, "a host", u64::from(n_hosts - 1), None);
        let flow = number("flow", u32::MAX.into())? as u32;
        let arrival = Time::from_ps(number("arrival_ps", u64::MAX)?);
        let (src, dst) = (host("src")? as u32, host("dst")? as u32);
        let size_bytes = number("size_bytes", NodeConfig::MESSAGE_MAX.into())?;
        if src == dst && size_bytes > 0 {
            return Err(self.bad("dst", "a host other than src, or a size of 0 bytes", dst));
        }
        let tenant = TenantId::new(optional("tenant", u32::MAX.into())? as u32);
        let computation = Span::from_ps(optional("compute_ps", u64::MAX)?);
        Ok((FlowRow { flow, src, dst, size_bytes, tenant }, arrival, computation))
    }
}

/// A dependency, as written.
struct RawDependency {
    /// Row that waits.
    place: u32,
    /// Its line in the file.
    line: u64,
    /// Number of the flow that it waits for.
    after: String,
}

/// Reads the table: CSV with the columns flow, arrival_ps, src, dst and size_bytes, and optionally
/// tenant, after and compute_ps.
///
/// # Errors
/// The file cannot be read, or a field is invalid: the file, the line and the column.
pub(crate) fn read(file: &Path, n_hosts: u32) -> Result<Table, Box<InputError>> {
    let input = File::open(file).map_err(|error| InputError::unreadable(&error).in_file(file))?;
    let records = Records::new(input, None);
    parse(records, n_hosts).map_err(|error| error.in_file(file))
}

fn parse(mut records: Records<File>, n_hosts: u32) -> Result<Table, Box<InputError>> {
    let header = next_line(&mut records, &[])?;
    let header: Vec<_> = header
        .map_or_else(Vec::new, |line| line.fields.iter().map(|&name| name.to_owned()).collect());
    check_header(&header)?;
    let mut builder = GraphBuilder::default();
    let (mut rows, mut lines, mut places) = (Vec::new(), Vec::new(), HashMap::new());
    let mut dependencies = Vec::new();
    while let Some(line) = next_line(&mut records, &header)? {
        if line.fields.len() != header.len() {
            let expected = format!("{} fields, as the header has", header.len());
            return Err(InputError::unexpected(expected, line.fields.len()).on_line(line.number));
        }
        let (row, arrival, computation) = line.row(n_hosts)?;
        let (src, dst) = (NodeId::new(row.src), NodeId::new(row.dst));
        let flow = Flow::new(arrival, src, dst, Bytes::new(row.size_bytes));
        let place = builder.flow(flow, computation);
        if places.insert(row.flow, place).is_some() {
            return Err(line.bad("flow", "a number that no row before has", row.flow));
        }
        let ids = line.field("after").into_iter().flat_map(str::split_whitespace);
        dependencies.extend(ids.map(|id| RawDependency {
            place,
            line: line.number,
            after: id.to_owned(),
        }));
        rows.push(row);
        lines.push(line.number);
    }
    for RawDependency { place, line, after } in dependencies {
        let dependency = after.parse().ok().and_then(|flow: u32| places.get(&flow));
        let dependency = dependency.ok_or_else(|| {
            InputError::unexpected("flows of the table", &after).at("after").on_line(line)
        })?;
        builder.wait(place, *dependency);
    }
    let graph = builder.build().map_err(|error| dependency_error(&error, &rows, &lines))?;
    Ok(Table { rows, graph })
}

/// Reads the next line with fields; returns `None` at the end.
fn next_line<'a>(
    records: &'a mut Records<File>,
    header: &'a [String],
) -> Result<Option<Line<'a>>, Box<InputError>> {
    match records.next_record() {
        Ok(record) => Ok(record.map(|(number, record)| Line {
            number,
            header,
            fields: record.iter().collect(),
        })),
        Err(error) if error.is_io_error() => Err(InputError::unreadable(&error.into())),
        // The only other fault of records of any length.
        Err(error) => {
            let line = error.position().map_or(1, |position| position.line());
            Err(InputError::unexpected("text in UTF-8", "other bytes").on_line(line))
        }
    }
}

/// Checks that a header has each required column, and no column twice.
fn check_header(header: &[String]) -> Result<(), Box<InputError>> {
    let count = |column: &&str| header.iter().filter(|name| name == column).count();
    if let Some(column) = REQUIRED.iter().find(|column| count(column) == 0) {
        let got = if header.is_empty() { "an empty file".to_owned() } else { header.join(",") };
        let expected = format!("the columns {}", REQUIRED.join(", "));
        return Err(InputError::unexpected(expected, got).at(column).on_line(1));
    }
    match REQUIRED.iter().chain(&OPTIONAL).find(|column| count(column) > 1) {
        Some(column) => {
            let got = format!("{} of them", count(column));
            Err(InputError::unexpected("one column of this name", got).at(column).on_line(1))
        }
        None => Ok(()),
    }
}

/// Returns the error of a graph, with the numbers of flows instead of those of rows. `lines` are
/// those of rows.
fn dependency_error(error: &GraphError, rows: &[FlowRow], lines: &[u64]) -> Box<InputError> {
    let (place, expected, got) = match *error {
        GraphError::Host { node, host, dependency } => {
            (node, format!("flows that host {host} sends or receives"), dependency)
        }
        GraphError::Cycle { node, dependency } => {
            (node, "flows that do not depend on it".to_owned(), dependency)
        }
        _ => return InputError::other(error),
    };
    let got = rows[got as usize].flow;
    InputError::unexpected(expected, got).at("after").on_line(lines[place as usize])
}

/// Log of events, one per line: `what,flow,time_ps` since the start of the table.
#[derive(Debug)]
pub(crate) struct Log(BufWriter<File>);

impl Log {
    pub(crate) fn create(file: &Path) -> io::Result<Self> {
        let create = || {
            let mut log = BufWriter::new(File::create(file)?);
            writeln!(log, "what,flow,time_ps")?;
            Ok(Self(log))
        };
        create().map_err(|error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.display()))
        })
    }

    /// Logs an event. `event` is submitted, delivered, altered, completed, failed or done.
    pub(crate) fn log_event(&mut self, event: &str, flow: u32, at: Span) {
        // A full disk is detected when the log is completed.
        let _ = writeln!(self.0, "{event},{flow},{}", at.as_ps());
    }

    /// Completes the log.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> Result<Table, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("t.csv");
        let head = "flow,arrival_ps,src,dst,size_bytes,tenant,after,compute_ps\n";
        std::fs::write(&file, format!("{head}{rows}")).expect("room for a table");
        read(&file, 4).map_err(|e| e.to_string().replace(&format!("{}: ", file.display()), ""))
    }

    #[test]
    fn a_host_sends_dependent_flows_when_their_dependencies_complete() {
        // Flow 7 is sent to host 1, which computes, sends 9 back, and then 3 is sent when 9 has
        // arrived.
        let rows = "7,100,0,1,9,0,,0\n8,0,1,1,0,0,7,50\n9,0,1,0,9,2,8,0\n3,0,1,2,9,0,9,0\n";
        let start = Time::from_ps(1_000);
        let at = |ps| start + Span::from_ps(ps);
        let mut sender = Timetable::new(table(rows).unwrap(), 0, start);
        assert_eq!(
            (sender.next(), sender.expected, sender.has_dependencies),
            (Some(at(100)), 1, true)
        );
        assert_eq!(sender.take(at(99)).map(|row| row.flow), None);
        assert_eq!(sender.take(at(100)).map(|row| row.flow), Some(7));
        assert!(sender.is_sent());
        let mut other = Timetable::new(table(rows).unwrap(), 1, start);
        assert_eq!((other.next(), other.expected, other.last_send), (None, 1, at(150)));
        other.on_delivered(7, at(400));
        assert_eq!(other.next(), Some(at(450)));
        let row = other.take(at(450)).unwrap();
        assert_eq!((row.flow, row.tenant.get()), (9, 2));
        assert!(other.next().is_none() && !other.is_sent());
        other.on_completed(9, at(500));
        assert_eq!(other.take(at(500)).map(|row| row.flow), Some(3));
        assert!(other.is_sent());
    }

    #[test]
    fn errors_of_tables_name_expectation_and_content() {
        let cases = [
            (
                "5,0,1,1,9,0,,0",
                "2: dst: expected a host other than src, or a size of 0 bytes, got 1",
            ),
            ("5,0,4,1,9,0,,0", "2: src: expected a host from 0 to 3, got 4"),
            ("x,0,0,1,9,0,,0", "2: flow: expected a whole number from 0 to 4294967295, got \"x\""),
            (
                "5,,0,1,9,0,,0",
                "2: arrival_ps: expected a whole number from 0 to 18446744073709551615, got none",
            ),
            (
                "5,0,0,1,2000000000,0,,0",
                "2: size_bytes: expected a whole number from 0 to 1073741824, got 2000000000",
            ),
            ("5,0,0,1,9,-1,,0", "2: tenant: expected a whole number from 0 to 4294967295, got -1"),
            ("5,0,0,1,9,0,6,0", "2: after: expected flows of the table, got 6"),
            ("5,0,0,1,9,0,,0\r\n\r\n6,0,1", "4: expected 8 fields, as the header has, got 3"),
            (
                "5,0,0,1,9,0,,0\n5,0,0,1,9,0,,0",
                "3: flow: expected a number that no row before has, got 5",
            ),
            (
                "5,0,0,1,9,0,,0\n6,0,2,1,9,0,5,0",
                "3: after: expected flows that host 2 sends or receives, got 5",
            ),
            (
                "5,0,0,1,9,0,,0\n6,0,1,0,9,0,6,0",
                "3: after: expected flows that do not depend on it, got 6",
            ),
        ];
        for (rows, message) in cases {
            assert_eq!(table(&format!("{rows}\n")).unwrap_err(), format!("line {message}"));
        }
    }
}
