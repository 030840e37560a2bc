//! Connection matrices of htsim.
//!
//! ```text
//! Nodes 128
//! Connections 2
//! 1->0 id 1 start 0 size 2000000
//! 2->0 id 2 start 5000000 size 4000 prio 3
//! ```
//!
//! Starts are in picoseconds and sizes in bytes. Connections that a trigger starts have no arrival
//! time and are rejected. Lines that begin with `#`, `Triggers`, `Failures`, `trigger` or
//! `failure`, and a connection's `id`, `prio`, `addon` and the triggers that its end sets off, are
//! not part of a workload and are skipped.

use super::Line;
use crate::trace::{Extra, RawRow, TraceError, parse_ps};

pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<RawRow>, TraceError> {
    let mut rows = Vec::new();
    let mut expected = None;
    for (idx, text) in text.lines().enumerate() {
        let line = Line { file, number: idx as u64 + 1 };
        let fields: Vec<&str> = text.split_whitespace().collect();
        match fields[..] {
            [] | ["Nodes" | "Triggers" | "Failures" | "trigger" | "failure", ..] => {}
            [first, ..] if first.starts_with('#') => {}
            ["Connections", n] => expected = Some((line, line.number("Connections", n)?)),
            [pair, ref rest @ ..] if pair.contains("->") => {
                rows.push(parse_connection(line, pair, rest)?);
            }
            [first, ..] => return Err(line.wrong("line", "a connection src->dst", first)),
        }
    }
    match expected {
        Some((line, n)) if n != rows.len() as u64 => Err(line.wrong(
            "Connections",
            &format!("{}, as many as follow", rows.len()),
            &n.to_string(),
        )),
        _ => Ok(rows),
    }
}

fn parse_connection(line: Line<'_>, pair: &str, rest: &[&str]) -> Result<RawRow, TraceError> {
    let (src, dst) = pair.split_once("->").unwrap_or((pair, ""));
    let (mut start, mut size) = (None, None);
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        if word == "addon" {
            continue;
        }
        let Some(&value) = words.next() else {
            return Err(line.wrong("connection", "a value after every key", word));
        };
        match word {
            "start" => {
                let ps = parse_ps(value, 1);
                start = Some(ps.ok_or_else(|| line.wrong("start", "picoseconds", value))?);
            }
            "size" => size = Some(line.number("size", value)?),
            "id" | "prio" | "send_done_trigger" | "recv_done_trigger" => {}
            "trigger" => {
                return Err(line.wrong("trigger", "a start time instead of a trigger", value));
            }
            _ => return Err(line.wrong("connection", "start, size, id or prio", word)),
        }
    }
    Ok(RawRow {
        place: line.number,
        src: line.number("src", src)?,
        dst: line.number("dst", dst)?,
        arrival_ps: start.ok_or_else(|| line.wrong("start", "a start time", "none"))?,
        size_bytes: size.ok_or_else(|| line.wrong("size", "a size", "none"))?,
        fct_ps: None,
        ideal_ps: None,
        extra: Extra::default(),
    })
}
