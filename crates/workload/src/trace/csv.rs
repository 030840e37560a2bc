//! Traces as comma-separated values, plain or gzip-compressed.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use csv::StringRecord;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use rampmeter_types::NodeId;
use rampmeter_types::quantity::Unit;

use super::columns::TimeColumn;
use super::decimal::{parse_bytes, parse_time, parse_whole};
use super::row::SIZE_EXPECTED;
use super::write::{Row, TraceRows};
use super::{Import, OptionalFields, RawRow, ReferenceRow, Source, TraceError, columns};
use crate::flow::Flow;
use crate::graph::Graph;
use crate::table::{Records, separator};

/// Writes `flows`, which have no dependencies, with a header; compressed if the name of `file` ends
/// in `.gz`.
///
/// # Errors
/// [`TraceError::Io`] with the file's name.
pub fn write_csv(file: &Path, flows: impl IntoIterator<Item = Flow>) -> Result<(), TraceError> {
    write_sheet(file, &TraceRows::of_flows(flows))
}

/// Writes the flows and computations of `graph`, whose numbers are those of the rows; compressed if
/// the name of `file` ends in `.gz`.
///
/// # Errors
/// [`TraceError::Io`] with the file's name.
pub fn write_graph_csv(file: &Path, graph: &Graph) -> Result<(), TraceError> {
    write_sheet(file, &TraceRows::of_graph(graph))
}

fn write_sheet(file: &Path, sheet: &TraceRows) -> Result<(), TraceError> {
    let lines = sheet.rows.iter().map(|row| line(sheet, row, &[]));
    write_lines(file, &header(sheet), lines)
}

/// Writes flows with their completion and ideal times, in the format of [`super::read_reference`];
/// hosts by their `names`, or by their numbers if there are none.
///
/// # Errors
/// [`TraceError::Io`] with the file's name.
pub fn write_reference_csv(
    file: &Path,
    rows: &[ReferenceRow],
    names: &[String],
) -> Result<(), TraceError> {
    let sheet = TraceRows::of_flows(rows.iter().map(|row| row.flow));
    let header = format!("flow,{},fct_ps,ideal_ps", header(&sheet));
    let text = |span: Option<_>| {
        span.map(rampmeter_types::Span::as_ps).map_or(String::new(), |ps| ps.to_string())
    };
    let lines = rows.iter().zip(&sheet.rows).enumerate().map(|(idx, (row, flow))| {
        format!("{idx},{},{},{}", line(&sheet, flow, names), text(row.fct), text(row.ideal))
    });
    write_lines(file, &header, lines)
}

fn header(sheet: &TraceRows) -> String {
    let mut header = "arrival_ps,src,dst,size_bytes".to_owned();
    for (column, is_there) in [
        ("tenant", sheet.has_tenants),
        ("deadline_ps", sheet.has_deadlines),
        ("after", sheet.waits),
        ("compute_ps", sheet.waits),
    ] {
        if is_there {
            header = format!("{header},{column}");
        }
    }
    header
}

fn line(sheet: &TraceRows, Row { flow, after, compute }: &Row, names: &[String]) -> String {
    let host = |host: NodeId| names.get(host.idx()).map_or(host.get().to_string(), |it| quoted(it));
    let (src, dst) = (host(flow.src), host(flow.dst));
    let mut text = format!("{},{src},{dst},{}", flow.arrival.as_ps(), flow.size.get());
    if sheet.has_tenants {
        text = format!("{text},{}", flow.tenant.get());
    }
    if sheet.has_deadlines {
        let deadline = Some(flow.deadline.as_ps()).filter(|&ps| ps < u64::MAX);
        text = format!("{text},{}", deadline.map_or(String::new(), |ps| ps.to_string()));
    }
    if sheet.waits {
        let after: Vec<String> = after.iter().map(u32::to_string).collect();
        text = format!("{text},{},{}", after.join(" "), compute.as_ps());
    }
    text
}

/// Returns a text as a field.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r', '#']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn write_lines(
    file: &Path,
    header: &str,
    lines: impl Iterator<Item = String>,
) -> Result<(), TraceError> {
    let write = || -> std::io::Result<()> {
        let out = BufWriter::new(File::create(file)?);
        let mut out: Box<dyn Write> = if is_gz(file) {
            Box::new(GzEncoder::new(out, Compression::default()))
        } else {
            Box::new(out)
        };
        writeln!(out, "{header}")?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()
    };
    write().map_err(|source| TraceError::Io { file: file.display().to_string(), source })
}

fn is_gz(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Reads the rows of a file with a header.
pub(crate) fn import(source: &Source<'_>) -> Result<Import, TraceError> {
    let Source { path, name, .. } = *source;
    let mut records = Records::new(open(path, name)?, COMMENT);
    let header = records.next_record().map_err(|error| broken(name, &error))?;
    let Some((_, header)) = header else {
        let reason = "expected a header with the names of columns, got an empty file".to_owned();
        return Err(TraceError::Format { file: name.to_owned(), reason });
    };
    let header: Vec<&str> = header.iter().map(str::trim).collect();
    if header.len() > 1 && header.iter().all(|field| field.parse::<f64>().is_ok()) {
        let got = header.join(",");
        let reason = format!(
            "expected a header with the names of columns, such as \
             arrival_us,src,dst,size_bytes, got numbers: {got}"
        );
        return Err(TraceError::Format { file: name.to_owned(), reason });
    }
    let separator = separator(&header.join(","));
    parse(source, Records::separated(open(path, name)?, COMMENT, separator))
}

/// Begins a line that is not read.
const COMMENT: Option<u8> = Some(b'#');

fn open(file: &Path, name: &str) -> Result<Box<dyn Read>, TraceError> {
    let io = |source| TraceError::Io { file: name.to_owned(), source };
    let input = BufReader::new(File::open(file).map_err(io)?);
    Ok(if is_gz(file) { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) })
}

fn broken(name: &str, error: &csv::Error) -> TraceError {
    let reason = match error.kind() {
        csv::ErrorKind::Utf8 { pos, .. } => {
            let line = pos.as_ref().map_or(String::new(), |pos| format!("line {}: ", pos.line()));
            format!("{line}expected text in UTF-8, got other bytes (UTF-16, or an older encoding?)")
        }
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    TraceError::Format { file: name.to_owned(), reason }
}

/// Positions of the columns.
struct Columns {
    arrival: (usize, TimeColumn),
    src: usize,
    dst: usize,
    size: usize,
    fct: Option<usize>,
    ideal: Option<usize>,
    flow: Option<usize>,
    after: Option<usize>,
    tenant: Option<usize>,
    compute: Option<(usize, TimeColumn)>,
    deadline: Option<(usize, TimeColumn)>,
}

impl Columns {
    fn find(file: &str, header: &[String]) -> Result<Self, TraceError> {
        let position = |name: &str| header.iter().position(|column| column == name);
        columns::require(file, header)?;
        let need = |name: &str| position(name).expect("the trace has the columns that it needs");
        let time = |column: &str| {
            let times = TimeColumn::find(column, |name| position(name).is_some())?;
            Some((position(&times.name)?, times))
        };
        Ok(Self {
            arrival: time("arrival").expect("the trace has the columns that it needs"),
            src: need("src"),
            dst: need("dst"),
            size: need("size_bytes"),
            fct: position("fct_ps"),
            ideal: position("ideal_ps"),
            flow: position("flow"),
            after: position("after"),
            tenant: position("tenant"),
            compute: time("compute"),
            deadline: time("deadline"),
        })
    }
}

fn parse(source: &Source<'_>, mut records: Records<impl Read>) -> Result<Import, TraceError> {
    let Source { name: file, options, .. } = *source;
    let format = |error: csv::Error| broken(file, &error);
    let header = records.next_record().map_err(format)?;
    let header = header.into_iter().flat_map(|(_, header)| header.iter());
    let header: Vec<String> = header.map(|column| column.trim().to_owned()).collect();
    let renamed = columns::rename(file, header.clone(), options)?;
    let columns = Columns::find(file, &renamed)?;
    let mut import =
        Import { notes: columns::notes(file, &renamed, options)?, ..Import::default() };
    import.is_unordered = columns::is_result(&renamed);
    let status = renamed.iter().position(|column| column == columns::STATUS);
    let mut n_not_started = 0;
    import.fields = columns::field_columns(&header, &renamed);
    while let Some((place, record)) = records.next_record().map_err(format)? {
        if record.len() > renamed.len() {
            return Err(TraceError::Field {
                file: file.to_owned(),
                place,
                field: "line".to_owned(),
                expected: format!("at most {} fields, as the header has", renamed.len()),
                got: record.len().to_string(),
            });
        }
        if status.and_then(|at| record.get(at)) == Some(columns::NOT_STARTED) {
            n_not_started += 1;
            continue;
        }
        let is_result = import.is_unordered;
        let row = parse_record(source, place, &columns, record, is_result);
        import.rows.push(row.map_err(|error| error.in_columns(&import.fields))?);
    }
    import.notes.extend(columns::note_of_results(file, &renamed, n_not_started));
    Ok(import)
}

/// Returns the numbers of flows in a field; `None` if there is anything else.
fn parse_ids(field: &str) -> Option<Vec<u64>> {
    let ids = field.split([' ', ';']).filter(|id| !id.is_empty());
    ids.map(|id| id.parse().ok()).collect()
}

const IDS_EXPECTED: &str = "whole numbers, separated by spaces or semicolons";

fn field_error(file: &str, place: u64, field: &str, expected: &str, got: String) -> TraceError {
    let (file, field, expected) = (file.to_owned(), field.to_owned(), expected.to_owned());
    TraceError::Field { file, place, field, expected, got }
}

/// Returns what an error expects, and the field that it got. A field of several lines has a quote
/// that does not close.
fn cite_field(expected: &str, field: &str) -> (String, String) {
    match field.split_once('\n') {
        None => (expected.to_owned(), format!("\"{field}\"")),
        Some((first, _)) => (
            format!("{expected}, in quotes that close on the line"),
            format!("\"{first}\" and further lines"),
        ),
    }
}

fn parse_record(
    source: &Source<'_>,
    place: u64,
    columns: &Columns,
    record: &StringRecord,
    is_result: bool,
) -> Result<RawRow, TraceError> {
    let Source { name: file, options, n_hosts, .. } = *source;
    let get = |at: usize| record.get(at).unwrap_or("").trim();
    let wrong_as =
        |field: &str, expected: &str, got| field_error(file, place, field, expected, got);
    let wrong = |field: &str, expected: &str, got: &str| {
        let (expected, got) = cite_field(expected, got);
        wrong_as(field, &expected, got)
    };
    let number =
        |field, at| parse_whole(get(at)).ok_or_else(|| wrong(field, "a whole number", get(at)));
    // Results have numbers of hosts, and names in separate columns.
    let host = |field, at| match options.hosts.as_ref().filter(|_| !is_result) {
        None => number(field, at),
        Some(hosts) => {
            let host = hosts.host_of_text(get(at), n_hosts);
            host.map_err(|(expected, got)| wrong_as(field, &expected, got))
        }
    };
    let optional = |field, at: Option<usize>| match at.map(|at| (at, get(at))) {
        None | Some((_, "")) => Ok(None),
        Some((at, _)) => number(field, at).map(Some),
    };
    let recorded = |field, at: Option<usize>| {
        let text = at.map(get).filter(|text| !text.is_empty());
        let expected = Unit::PICOSECONDS.expected();
        let ps = |text| parse_time(text, 1).ok_or_else(|| wrong(field, expected, text));
        text.map(ps).transpose()
    };
    let time = |field, (at, times): &(usize, TimeColumn)| {
        let ps = parse_time(get(*at), times.unit_ps);
        ps.ok_or_else(|| wrong(field, &times.expected(), get(*at)))
    };
    let optional_time = |field, column: Option<&(usize, TimeColumn)>| {
        column.filter(|(at, _)| !get(*at).is_empty()).map(|column| time(field, column)).transpose()
    };
    let after = columns.after.map_or("", get);
    let after = parse_ids(after).ok_or_else(|| wrong("after", IDS_EXPECTED, after))?;
    // Only flows without dependencies need an arrival.
    let arrival_ps = match after.is_empty() {
        true => time("arrival", &columns.arrival)?,
        false => optional_time("arrival", Some(&columns.arrival))?.unwrap_or(0),
    };
    let size = get(columns.size);
    Ok(RawRow {
        place,
        arrival_ps,
        src: host("src", columns.src)?,
        dst: host("dst", columns.dst)?,
        size_bytes: parse_bytes(size).ok_or_else(|| wrong("size_bytes", SIZE_EXPECTED, size))?,
        fct_ps: recorded("fct_ps", columns.fct)?,
        ideal_ps: recorded("ideal_ps", columns.ideal)?,
        extra: OptionalFields {
            flow: optional("flow", columns.flow)?,
            after,
            compute_ps: optional_time("compute", columns.compute.as_ref())?.unwrap_or(0),
            tenant: optional("tenant", columns.tenant)?.unwrap_or(0),
            deadline_ps: optional_time("deadline", columns.deadline.as_ref())?,
        },
    })
}
