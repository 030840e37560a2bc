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
use serde::Deserialize;

use crate::error::Error;
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

/// Row as written in the file.
#[derive(Debug, Deserialize)]
struct RawRow {
    flow: u32,
    arrival_ps: u64,
    src: u32,
    dst: u32,
    size_bytes: u64,
    tenant: Option<u32>,
    /// Numbers of flows on which it depends, separated by spaces.
    after: Option<String>,
    compute_ps: Option<u64>,
}

/// Reads the table: CSV with the columns flow, arrival_ps, src, dst and size_bytes, and optionally
/// tenant, after and compute_ps.
pub(crate) fn read(file: &Path, n_hosts: u32) -> Result<Table, Error> {
    let bad = |message: String| Error::Input(format!("{}: {message}", file.display()));
    let input = File::open(file).map_err(|e| bad(e.to_string()))?;
    let mut records = Records::new(input, None);
    let header = records.next_record().map_err(|e| bad(e.to_string()))?;
    let header = header.map(|(_, header)| header.clone()).unwrap_or_default();
    let mut builder = GraphBuilder::default();
    let (mut rows, mut places, mut waits) = (Vec::new(), HashMap::new(), Vec::new());
    while let Some((line, record)) = records.next_record().map_err(|e| bad(e.to_string()))? {
        if record.len() != header.len() {
            let (expected, got) = (header.len(), record.len());
            return Err(bad(format!("line {line}: expected {expected} fields, got {got}")));
        }
        let row: RawRow = record.deserialize(Some(&header)).map_err(|e| bad(e.to_string()))?;
        let RawRow { flow, arrival_ps, src, dst, size_bytes, .. } = row;
        let is_computation = src == dst && size_bytes == 0;
        if src >= n_hosts || dst >= n_hosts || src == dst && !is_computation {
            let hosts = format!("two of {n_hosts} hosts");
            return Err(bad(format!("flow {flow}: expected {hosts}, got {src} and {dst}")));
        }
        if size_bytes > u64::from(NodeConfig::MESSAGE_MAX) {
            return Err(bad(format!("flow {flow}: expected at most 1 GiB, got {size_bytes}")));
        }
        let (from, to) = (NodeId::new(src), NodeId::new(dst));
        let node = Flow::new(Time::from_ps(arrival_ps), from, to, Bytes::new(size_bytes));
        let place = builder.flow(node, Span::from_ps(row.compute_ps.unwrap_or(0)));
        if places.insert(flow, place).is_some() {
            return Err(bad(format!("flow {flow}: expected a number that no row before has")));
        }
        for id in row.after.iter().flat_map(|after| after.split(' ')).filter(|id| !id.is_empty()) {
            waits.push((place, flow, id.to_owned()));
        }
        let tenant = TenantId::new(row.tenant.unwrap_or(0));
        rows.push(FlowRow { flow, src, dst, size_bytes, tenant });
    }
    for (place, flow, id) in waits {
        let dependency = id.parse().ok().and_then(|id: u32| places.get(&id));
        let unknown = || bad(format!("flow {flow}: after: expected flows of the table, got {id}"));
        builder.wait(place, *dependency.ok_or_else(unknown)?);
    }
    let graph = builder.build().map_err(|error| bad(in_ids(&error, &rows)))?;
    Ok(Table { rows, graph })
}

/// Describes the fault of a table, with the numbers of flows instead of those of rows.
fn in_ids(error: &GraphError, rows: &[FlowRow]) -> String {
    let row = |place: u32| rows[place as usize];
    let (place, expected, got) = match *error {
        GraphError::Host { node, host, dependency } => {
            (node, format!("flows that host {host} sends or receives"), dependency)
        }
        GraphError::Cycle { node, dependency } => {
            (node, "flows that do not depend on it".to_owned(), dependency)
        }
        _ => return error.to_string(),
    };
    format!("flow {}: after: expected {expected}, got {}", row(place).flow, row(got).flow)
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
            ("5,0,1,1,9,0,,0", "flow 5: expected two of 4 hosts, got 1 and 1"),
            ("5,0,0,1,9,0,6,0", "flow 5: after: expected flows of the table, got 6"),
            ("5,0,0,1,9,0,,0\r\n\r\n6,0,1", "line 4: expected 8 fields, got 3"),
            ("5,0,0,1,9,0,,0\n5,0,0,1,9,0,,0", "flow 5: expected a number that no row before has"),
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
