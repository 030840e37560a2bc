//! Common parts of the testbed's loads, for any carrier: a part of the table, and a log.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use csv::StringRecord;
use rampmeter_runtime::NodeConfig;
use rampmeter_types::{Bytes, NodeId, Span, TenantId, Time, without_os_error};
use rampmeter_workload::table::Records;
use rampmeter_workload::{Flow, Graph, GraphBuilder, GraphError, Releases};

use crate::error::{Error, InputError};
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

/// Columns of the file, the required ones first.
const COLUMNS: [&str; 8] =
    ["flow", "arrival_ps", "src", "dst", "size_bytes", "tenant", "after", "compute_ps"];
const N_REQUIRED: usize = 5;

/// A row of the file.
#[derive(Clone, Copy, Debug)]
struct RawRow<'a> {
    record: &'a StringRecord,
    /// Places of [`COLUMNS`].
    places: [Option<usize>; COLUMNS.len()],
}

impl RawRow<'_> {
    /// Returns the text of a column; empty without it.
    fn text(&self, column: usize) -> &str {
        self.places[column].and_then(|place| self.record.get(place)).unwrap_or_default()
    }

    /// Returns the number in a column, which must be at most `max`; an empty optional one is 0.
    fn number(&self, column: usize, max: u64) -> Result<u64, InputError> {
        let text = self.text(column);
        if text.is_empty() && column >= N_REQUIRED {
            return Ok(0);
        }
        text.parse().ok().filter(|&number| number <= max).ok_or_else(|| {
            let expected = format!("a whole number from 0 to {max}");
            InputError::unexpected(expected, format!("{text:?}")).at(COLUMNS[column])
        })
    }
}

/// Returns the places of the columns in a header.
fn places(header: &StringRecord) -> Result<[Option<usize>; COLUMNS.len()], InputError> {
    let places = COLUMNS.map(|column| header.iter().position(|name| name == column));
    match places[..N_REQUIRED].iter().position(Option::is_none) {
        Some(missing) => {
            let got = header.iter().collect::<Vec<_>>().join(", ");
            Err(InputError::unexpected(format!("a column {}", COLUMNS[missing]), got).on_line(1))
        }
        None => Ok(places),
    }
}

/// Reads the table: CSV with the columns flow, arrival_ps, src, dst and size_bytes, and optionally
/// tenant, after and compute_ps.
pub(crate) fn read(file: &Path, n_hosts: u32) -> Result<Table, Error> {
    let input = File::open(file).map_err(|error| InputError::of_file(file, &error))?;
    read_rows(input, n_hosts).map_err(|error| error.in_file(file).into())
}

fn read_rows(input: File, n_hosts: u32) -> Result<Table, InputError> {
    let mut records = Records::new(input, None);
    let header = records.next_record().map_err(of_csv)?;
    let header = header.map(|(_, header)| header.clone()).unwrap_or_default();
    let columns = places(&header)?;
    let mut builder = GraphBuilder::default();
    let (mut rows, mut places, mut waits) = (Vec::new(), HashMap::new(), Vec::new());
    while let Some((line, record)) = records.next_record().map_err(of_csv)? {
        if record.len() != header.len() {
            let expected = format!("{} fields", header.len());
            return Err(InputError::unexpected(expected, record.len()).on_line(line));
        }
        let raw = RawRow { record, places: columns };
        let (row, node, computation) = parse(&raw, n_hosts).map_err(|bad| bad.on_line(line))?;
        let place = builder.flow(node, computation);
        if places.insert(row.flow, place).is_some() {
            let expected = "a number that no row before has";
            return Err(InputError::unexpected(expected, row.flow).at("flow").on_line(line));
        }
        let ids = raw.text(6).split(' ').filter(|id| !id.is_empty());
        waits.extend(ids.map(|id| (line, place, id.to_owned())));
        rows.push(row);
    }
    for (line, place, id) in waits {
        let dependency = id.parse().ok().and_then(|id: u32| places.get(&id));
        let unknown =
            || InputError::unexpected("flows of the table", &id).at("after").on_line(line);
        builder.wait(place, *dependency.ok_or_else(unknown)?);
    }
    let graph = builder.build().map_err(|error| in_ids(&error, &rows))?;
    Ok(Table { rows, graph })
}

/// Returns the message of a row, its node in the graph, and the time of its computation.
fn parse(raw: &RawRow<'_>, n_hosts: u32) -> Result<(FlowRow, Flow, Span), InputError> {
    let number = |column| raw.number(column, u32::MAX.into()).map(|number| number as u32);
    let (flow, src, dst, tenant) = (number(0)?, number(2)?, number(3)?, number(5)?);
    let time = |column| raw.number(column, Time::NEVER.as_ps() - 1);
    let (arrival, computation) = (Time::from_ps(time(1)?), Span::from_ps(time(7)?));
    let size_bytes = raw.number(4, NodeConfig::MESSAGE_MAX.into())?;
    let is_computation = src == dst && size_bytes == 0;
    if src >= n_hosts || dst >= n_hosts || src == dst && !is_computation {
        let expected = format!("two of {n_hosts} hosts");
        return Err(InputError::unexpected(expected, format!("{src} and {dst}")).at("src, dst"));
    }
    let node = Flow::new(arrival, NodeId::new(src), NodeId::new(dst), Bytes::new(size_bytes));
    let row = FlowRow { flow, src, dst, size_bytes, tenant: TenantId::new(tenant) };
    Ok((row, node, computation))
}

/// Returns the error of a file that is no CSV, or cannot be read.
fn of_csv(error: csv::Error) -> InputError {
    let line = error.position().map(csv::Position::line);
    let found = match error.into_kind() {
        csv::ErrorKind::Io(error) => InputError::other(without_os_error(&error)),
        csv::ErrorKind::Utf8 { .. } => InputError::unexpected("text in UTF-8", "other bytes"),
        _ => InputError::unexpected("CSV", "other text"),
    };
    InputError { line, ..found }
}

/// Describes the fault of a graph, with the numbers of flows instead of those of rows.
fn in_ids(error: &GraphError, rows: &[FlowRow]) -> InputError {
    let flow = |place: u32| rows[place as usize].flow;
    let (place, expected, got) = match *error {
        GraphError::Host { node, host, dependency } => {
            (node, format!("flows that host {host} sends or receives"), dependency)
        }
        GraphError::Cycle { node, dependency } => {
            (node, "flows that do not depend on it".to_owned(), dependency)
        }
        _ => return InputError::other(error.to_string()),
    };
    InputError::unexpected(expected, flow(got)).at(format!("flow {}: after", flow(place)))
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
    fn a_table_without_a_column_is_refused() {
        let header = StringRecord::from(vec!["flow", "src", "dst", "size_bytes"]);
        let error = places(&header).unwrap_err().to_string();
        let expected = "line 1: expected a column arrival_ps, got flow, src, dst, size_bytes";
        assert_eq!(error, expected);
    }

    #[test]
    fn errors_of_tables_name_expectation_and_content() {
        let cases = [
            ("5,0,1,1,9,0,,0", "line 2: src, dst: expected two of 4 hosts, got 1 and 1"),
            ("5,0,0,1,9,0,6,0", "line 2: after: expected flows of the table, got 6"),
            ("5,0,0,1,9,0,,0\r\n\r\n6,0,1", "line 4: expected 8 fields, got 3"),
            (
                "5,0,0,1,9,0,,0\n5,0,0,1,9,0,,0",
                "line 3: flow: expected a number that no row before has, got 5",
            ),
            (
                "5,-1,0,1,9,0,,0",
                "line 2: arrival_ps: expected a whole number from 0 to 18446744073709551614, got \
                 \"-1\"",
            ),
            (
                "5,0,0,1,2000000000,0,,0",
                "line 2: size_bytes: expected a whole number from 0 to 1073741824, got \
                 \"2000000000\"",
            ),
            (
                "5,0,0,1,9,x,,0",
                "line 2: tenant: expected a whole number from 0 to 4294967295, got \"x\"",
            ),
            (
                "5,0,0,1,9,0,,0\n6,0,2,1,9,0,5,0",
                "flow 6: after: expected flows that host 2 sends or receives, got 5",
            ),
            (
                "5,0,0,1,9,0,,0\n6,0,1,0,9,0,6,0",
                "flow 6: after: expected flows that do not depend on it, got 6",
            ),
        ];
        for (rows, message) in cases {
            assert_eq!(table(&format!("{rows}\n")).unwrap_err(), message);
        }
    }
}
