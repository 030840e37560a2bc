//! Flow files of the HPCC study's ns-3 simulator.
//!
//! ```text
//! 2
//! 2 1 3 100 200000 2
//! 3 1 3 100 150000 2.000015
//! ```
//!
//! The first line counts the flows; then, for each, source, destination, priority group,
//! destination port, size in bytes and start in seconds. Priority group and port are not part of
//! a workload. What follows the counted flows is not read, as in that simulator.

use rampmeter_core::units::PS_PER_SECOND;

use super::Line;
use crate::trace::{Extra, RawRow, TraceError, parse_ps};

pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<RawRow>, TraceError> {
    let mut lines =
        text.lines().zip(1..).map(|(text, number)| (Line { file, number }, text.trim()));
    let (line, count) = lines.next().unwrap_or((Line { file, number: 1 }, ""));
    let n = line.number("count", count)?;
    let mut rows = Vec::new();
    for (line, text) in lines.filter(|(_, text)| !text.is_empty()) {
        if rows.len() as u64 == n {
            break;
        }
        rows.push(parse_flow(line, text)?);
    }
    if (rows.len() as u64) < n {
        let expected = format!("{}, as many as follow", rows.len());
        return Err(line.wrong("count", &expected, count));
    }
    Ok(rows)
}

fn parse_flow(line: Line<'_>, text: &str) -> Result<RawRow, TraceError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [src, dst, _group, _port, size, start] = fields[..] else {
        return Err(line.wrong("line", "src dst pg dport size start", text));
    };
    let arrival_ps =
        parse_ps(start, PS_PER_SECOND).ok_or_else(|| line.wrong("start", "seconds", start))?;
    Ok(RawRow {
        place: line.number,
        src: line.number("src", src)?,
        dst: line.number("dst", dst)?,
        size_bytes: line.number("size", size)?,
        arrival_ps,
        fct_ps: None,
        ideal_ps: None,
        extra: Extra::default(),
    })
}
