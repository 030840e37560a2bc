//! Output of YAPS, the simulator of pHost, and of its descendant, the simulator of dcPIM.
//!
//! Both print a line for every flow that finishes, among other lines:
//!
//! ```text
//! id size src dst start finish fct oracle slowdown sent/packets//received drops/drops/drops first
//! 0 1460 1 22 1000000.0246 1000005.5358 5.5112 5.5080 1.0006 1/1//1 0/0/0 0.0000
//! ```
//!
//! The size is in bytes, times are in microseconds with four decimals. The clock starts at one
//! second; if no flow starts before, that second is subtracted. Lines are in the order in which
//! flows finish and are sorted by arrival here, those that start together by their `id`. A flow
//! line is one whose tenth column has `//` in it; the other lines are skipped.

use super::{Line, count};
use crate::trace::{Import, OptionalFields, RawRow, Source, TraceError, parse_ps};

/// Reads the lines of finished flows.
pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    // These simulators print flows as they finish.
    let rows = parse(source.name, &source.text()?)?;
    let note = format!(
        "{}: slowdowns, packets and drops of {} are not used",
        source.name,
        count(rows.len(), "flow")
    );
    Ok(Import { is_unordered: true, notes: vec![note], ..rows.into() })
}

fn parse(file: &str, text: &str) -> Result<Vec<RawRow>, TraceError> {
    let mut rows = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.get(9).is_some_and(|field| field.contains("//")) {
            rows.push(parse_flow(Line { file, number: idx as u64 + 1 }, &fields)?);
        }
    }
    if rows.is_empty() {
        return Err(TraceError::Format {
            file: file.to_owned(),
            reason: "expected lines of finished flows, got none".to_owned(),
        });
    }
    rows.sort_by_key(|(id, row)| (row.arrival_ps, *id));
    let start = if rows[0].1.arrival_ps >= CLOCK_START_PS { CLOCK_START_PS } else { 0 };
    let shifted =
        rows.into_iter().map(|(_, row)| RawRow { arrival_ps: row.arrival_ps - start, ..row });
    Ok(shifted.collect())
}

fn parse_flow(line: Line<'_>, fields: &[&str]) -> Result<(u64, RawRow), TraceError> {
    let micros = |field, text: &str| {
        parse_ps(text, 1_000_000).ok_or_else(|| line.wrong(field, "microseconds", text))
    };
    let row = RawRow {
        place: line.number,
        size_bytes: line.number("size", fields[1])?,
        src: line.number("src", fields[2])?,
        dst: line.number("dst", fields[3])?,
        arrival_ps: micros("start", fields[4])?,
        fct_ps: Some(micros("fct", fields[6])?),
        ideal_ps: Some(micros("oracle", fields[7])?),
        extra: OptionalFields::default(),
    };
    Ok((line.number("id", fields[0])?, row))
}

/// The clock of these simulators starts at one second.
const CLOCK_START_PS: u64 = rampmeter_types::units::PS_PER_SECOND;
