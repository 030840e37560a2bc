//! Flow files of the HPCC study's ns-3 simulator, and of the programs made of it.
//!
//! ```text
//! 2
//! 2 1 3 100 200000 2
//! 3 1 3 100 150000 2.000015
//! ```
//!
//! The first line counts the flows; then, for each, source, destination, priority group,
//! destination port, size in bytes and start in seconds. The port may be omitted in all lines, as
//! in ConWeave's files. Priority group and port are not part of a workload, and a note names them.
//! Text after the counted flows is not read, as in that simulator.
//!
//! Sources and destinations are numbers of nodes in the topology file, in which switches have
//! numbers too. They are mapped to hosts if the network is read from such a file; otherwise they
//! are numbers of hosts.

use rampmeter_types::units::PS_PER_SECOND;

use super::{Line, count};
use crate::trace::{HostNames, Import, OptionalFields, RawRow, Source, TraceError, parse_ps};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    let hosts = source.options.hosts.as_ref().filter(|hosts| hosts.has_numbers());
    parse(source.name, &source.text()?, hosts)
}

fn parse(file: &str, text: &str, hosts: Option<&HostNames>) -> Result<Import, TraceError> {
    let mut lines = text
        .lines()
        .zip(1..)
        .map(|(text, number)| (Line { file, number }, text.trim()))
        .filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let (line, counted) = lines.next().unwrap_or((Line { file, number: 1 }, ""));
    let n = line.number("count", counted)?;
    let mut import = Import::default();
    let mut first = None;
    for (line, text) in lines.by_ref().take(n as usize) {
        // The port is in all lines or in none: a line that lacks a field has another meaning.
        let n_fields = text.split_whitespace().count();
        let (number, expected) = *first.get_or_insert((line.number, n_fields));
        if n_fields != expected {
            let expected = format!("{expected} fields, as line {number} has");
            return Err(line.wrong("line", &expected, text));
        }
        import.rows.push(parse_flow(line, text, hosts)?);
    }
    let found = import.rows.len();
    if (found as u64) < n {
        return Err(line.wrong("count", &format!("{found}, as many as follow"), counted));
    }
    let n_left = lines.count();
    if n_left > 0 {
        let left = count(n_left, "line");
        import.notes.push(format!(
            "{file}: {left} after the flows that the first line counts ({n}): not read"
        ));
    }
    if let Some((_, n_fields)) = first {
        let keys = if n_fields == 6 { "pg and dport" } else { "pg" };
        let are = if n_fields == 6 { "are" } else { "is" };
        import.notes.push(format!(
            "{file}: {keys} of {} {are} not used: transports choose priorities",
            count(found, "flow")
        ));
    }
    if hosts.is_none() {
        import.notes.push(format!(
            "{file}: numbers of nodes are read as numbers of hosts: name the topology file if \
             switches have numbers too"
        ));
    }
    let last_ps = import.rows.iter().map(|row| row.arrival_ps).max().unwrap_or(0);
    if last_ps > 1_000 * PS_PER_SECOND {
        let seconds = last_ps / PS_PER_SECOND;
        import.notes.push(format!(
            "{file}: starts are read as seconds, the last is {seconds} s: are they nanoseconds?"
        ));
    }
    Ok(import)
}

fn parse_flow(line: Line<'_>, text: &str, hosts: Option<&HostNames>) -> Result<RawRow, TraceError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let (src, dst, size, start) = match fields[..] {
        [_, _, _, _, start, stop] if is_interval(start, stop) => {
            let expected = "src dst pg dport size start, not the src dst pg packets start stop of \
                            ns3-rdma, whose lengths are packets";
            return Err(line.wrong("line", expected, text));
        }
        [src, dst, _group, _port, size, start] => (src, dst, size, start),
        [src, dst, _group, size, start] => (src, dst, size, start),
        _ => return Err(line.wrong("line", "src dst pg dport size start", text)),
    };
    let arrival_ps = parse_ps(start, PS_PER_SECOND).ok_or_else(|| {
        let is_late = start.parse::<f64>().is_ok_and(|start| start > 0.0);
        let expected = if is_late { "seconds, not nanoseconds" } else { "seconds" };
        line.wrong("start", expected, start)
    })?;
    let host = |field, text: &str| {
        let number = line.number(field, text)?;
        match hosts.map(|hosts| hosts.node(number)) {
            None => Ok(number),
            Some(Ok(host)) => Ok(host.into()),
            Some(Err((expected, got))) => Err(line.wrong_as(field, &expected, got)),
        }
    };
    Ok(RawRow {
        place: line.number,
        src: host("src", src)?,
        dst: host("dst", dst)?,
        size_bytes: line.number("size", size)?,
        arrival_ps,
        fct_ps: None,
        ideal_ps: None,
        extra: OptionalFields::default(),
    })
}

/// Returns true if the fields are a start and a later stop in seconds, and not a size and a start.
/// Sizes are integers without a point.
fn is_interval(start: &str, stop: &str) -> bool {
    let is_size = start.parse::<i64>().is_ok();
    let (Ok(start), Ok(stop)) = (start.parse::<f64>(), stop.parse::<f64>()) else { return false };
    !is_size && start < stop && (start.fract() != 0.0 || start < 10.0)
}
