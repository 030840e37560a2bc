//! Traces as Parquet tables.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use rampmeter_types::quantity::Unit;

use super::arrays::{Column, DependencyRows, Ids, after, numbers, texts};
use super::columns::TimeColumn;
use super::decimal::parse_whole;
use super::number::Number;
use super::row::SIZE_EXPECTED;
use super::write::{Row, TraceRows};
use super::{HostNames, Import, OptionalFields, RawRow, Source, TraceError, columns};
use crate::flow::Flow;
use crate::graph::Graph;

/// Writes `flows`, which have no dependencies, as a table with the columns `arrival_ps`, `src`,
/// `dst` and `size_bytes`.
///
/// # Errors
/// [`TraceError::Io`] or [`TraceError::Format`] with the file's name.
pub fn write_parquet(file: &Path, flows: impl IntoIterator<Item = Flow>) -> Result<(), TraceError> {
    write_sheet(file, &TraceRows::of_flows(flows))
}

/// Writes the flows and computations of `graph` as a table; their numbers are those of the rows.
///
/// # Errors
/// [`TraceError::Io`] or [`TraceError::Format`] with the file's name.
pub fn write_graph_parquet(file: &Path, graph: &Graph) -> Result<(), TraceError> {
    write_sheet(file, &TraceRows::of_graph(graph))
}

fn write_sheet(file: &Path, sheet: &TraceRows) -> Result<(), TraceError> {
    let name = file.display().to_string();
    let io = |source| TraceError::Io { file: name.clone(), source };
    let format = |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => io(*source),
            Err(other) => broken(&name, other),
        },
        other => broken(&name, other),
    };
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let out = File::create(file).map_err(io)?;
    let (fields, _) = table(sheet, &[]);
    let schema = Arc::new(Schema::new(fields));
    let mut writer =
        ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(format)?;
    for rows in sheet.rows.chunks(BATCH) {
        let (_, columns) = table(sheet, rows);
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| broken(&name, error))?;
        writer.write(&batch).map_err(format)?;
    }
    writer.close().map_err(format)?;
    Ok(())
}

/// Returns the columns of `rows`, which are some of `sheet`.
fn table(sheet: &TraceRows, rows: &[Row]) -> (Vec<Field>, Vec<ArrayRef>) {
    let long = |value: fn(&Row) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(value).collect::<UInt64Array>())
    };
    let short = |value: fn(&Row) -> u32| -> ArrayRef {
        Arc::new(rows.iter().map(value).collect::<UInt32Array>())
    };
    let mut columns = vec![
        ("arrival_ps", long(|row| row.flow.arrival.as_ps())),
        ("src", short(|row| row.flow.src.get())),
        ("dst", short(|row| row.flow.dst.get())),
        ("size_bytes", long(|row| row.flow.size.get())),
    ];
    if sheet.has_tenants {
        columns.push(("tenant", short(|row| row.flow.tenant.get())));
    }
    if sheet.has_deadlines {
        let deadline = |row: &Row| Some(row.flow.deadline.as_ps()).filter(|&ps| ps < u64::MAX);
        columns.push(("deadline_ps", Arc::new(rows.iter().map(deadline).collect::<UInt64Array>())));
    }
    if sheet.waits {
        let after = |row: &Row| Some(row.after.iter().map(|&id| Some(id)).collect::<Vec<_>>());
        let after = ListArray::from_iter_primitive::<UInt32Type, _, _>(rows.iter().map(after));
        columns.push(("after", Arc::new(after)));
        columns.push(("compute_ps", long(|row| row.compute.as_ps())));
    }
    let field = |(name, array): &(&str, ArrayRef)| {
        let is_nullable = matches!(*name, "deadline_ps" | "after");
        Field::new(*name, array.data_type().clone(), is_nullable)
    };
    (columns.iter().map(field).collect(), columns.into_iter().map(|(_, array)| array).collect())
}

/// Reads the rows of a table.
pub(crate) fn import(source: &Source<'_>) -> Result<Import, TraceError> {
    let Source { path, name, options, .. } = *source;
    let builder = open(path, name)?;
    let original: Vec<String> =
        builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let header = columns::rename(name, original.clone(), options)?;
    columns::require(name, &header)?;
    let mut import = Import {
        is_unordered: columns::is_result(&header),
        fields: columns::field_columns(&original, &header),
        ..Import::default()
    };
    let reader = builder.build().map_err(|error| broken(name, error))?;
    let (mut first, mut n_not_started) = (1, 0);
    for batch in reader {
        let batch = renamed(&batch.map_err(|error| broken(name, error))?, &header)
            .map_err(|error| broken(name, error))?;
        n_not_started += read_batch(source, &batch, first, &mut import.rows)
            .map_err(|error| error.in_columns(&import.fields))?;
        first += batch.num_rows() as u64;
    }
    import.notes = columns::notes(name, &header, options)?;
    import.notes.extend(columns::note_of_results(name, &header, n_not_started));
    Ok(import)
}

/// Returns the batch with other names of columns.
fn renamed(batch: &RecordBatch, header: &[String]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let field = |(field, name): (&Arc<Field>, &String)| field.as_ref().clone().with_name(name);
    let fields: Vec<Field> = schema.fields().iter().zip(header).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())
}

fn open(file: &Path, name: &str) -> Result<ParquetRecordBatchReaderBuilder<File>, TraceError> {
    let input =
        File::open(file).map_err(|source| TraceError::Io { file: name.to_owned(), source })?;
    let wrong = |error| broken(name, error);
    let metadata = ArrowReaderMetadata::load(&input, ArrowReaderOptions::new()).map_err(wrong)?;
    let fields = metadata.schema().fields();
    if !fields.iter().any(|field| matches!(field.data_type(), DataType::Dictionary(..))) {
        return Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata));
    }
    let plain: Vec<Field> = fields.iter().map(undictionaried).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(plain)));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options);
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata.map_err(wrong)?))
}

/// Returns the column of values for a column with a dictionary of them, as dataframes write
/// categories.
fn undictionaried(field: &Arc<Field>) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, values) => {
            field.as_ref().clone().with_data_type(values.as_ref().clone())
        }
        _ => field.as_ref().clone(),
    }
}

/// Returns the user's names of hosts that a table of results holds; none if it has none.
///
/// # Errors
/// [`TraceError::Io`] or [`TraceError::Format`] with the file's name.
pub fn host_names(file: &Path) -> Result<Vec<String>, TraceError> {
    let name = file.display().to_string();
    let builder = open(file, &name)?;
    let entries = builder.metadata().file_metadata().key_value_metadata();
    let entry = entries.into_iter().flatten().find(|entry| entry.key == HOSTS_KEY);
    let Some(names) = entry.and_then(|entry| entry.value.as_deref()) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(names).map_err(|error| broken(&name, format!("{HOSTS_KEY}: {error}")))
}

/// Place of the user's names of hosts in results.
const HOSTS_KEY: &str = "rampmeter.hosts";

/// Adds the flows of a batch whose first row has the number `first`. Returns the number of flows
/// that were not started in the run that wrote the table; these are left out.
fn read_batch(
    source: &Source<'_>,
    batch: &RecordBatch,
    first: u64,
    rows: &mut Vec<RawRow>,
) -> Result<usize, TraceError> {
    let table = Table { name: source.name, batch, first, n_hosts: source.n_hosts };
    let has = |name: &str| batch.column_by_name(name).is_some();
    let arrival =
        TimeColumn::find("arrival", has).expect("the trace has the columns that it needs");
    let arrivals = table.quantities(&arrival.name, arrival.unit, "arrival", &arrival.expected())?;
    let hosts = source.options.hosts.as_ref();
    let (src, dst) = (table.hosts("src", hosts)?, table.hosts("dst", hosts)?);
    let size = table.quantities("size_bytes", Unit::BYTES, "size_bytes", SIZE_EXPECTED)?;
    let (fct, ideal) = (table.optional("fct_ps")?, table.optional("ideal_ps")?);
    let (flow, tenant) = (table.optional("flow")?, table.optional("tenant")?);
    let (compute, deadline) = (table.times("compute")?, table.times("deadline")?);
    let after = table.after()?;
    let status = batch.column_by_name(columns::STATUS).and_then(texts);
    let is_started = |row: usize| {
        status.as_ref().and_then(|all| all[row].as_deref()) != Some(columns::NOT_STARTED)
    };
    let n_before = rows.len();
    for row in (0..batch.num_rows()).filter(|&row| is_started(row)) {
        let after = match &after {
            Some(after) => table.ids(after, row)?,
            None => Vec::new(),
        };
        let arrival_ps = arrivals[row].and_then(|number| number.ps(arrival.unit_ps));
        // Only flows without dependencies need an arrival.
        let arrival_ps = match arrivals[row] {
            None if !after.is_empty() => Some(0),
            _ => arrival_ps,
        };
        let arrival_ps = arrival_ps
            .ok_or_else(|| table.wrong("arrival", row, &arrival.expected(), &arrivals))?;
        rows.push(RawRow {
            place: table.first + row as u64,
            arrival_ps,
            src: table.value("src", &src, row)?,
            dst: table.value("dst", &dst, row)?,
            size_bytes: table.value("size_bytes", &size, row)?,
            fct_ps: table.maybe("fct_ps", fct.as_ref(), row)?,
            ideal_ps: table.maybe("ideal_ps", ideal.as_ref(), row)?,
            extra: OptionalFields {
                flow: table.maybe("flow", flow.as_ref(), row)?,
                after,
                compute_ps: table.maybe_time("compute", compute.as_ref(), row)?.unwrap_or(0),
                tenant: table.maybe("tenant", tenant.as_ref(), row)?.unwrap_or(0),
                deadline_ps: table.maybe_time("deadline", deadline.as_ref(), row)?,
            },
        });
    }
    Ok(batch.num_rows() - (rows.len() - n_before))
}

/// A batch of the table, and the number of its first row.
struct Table<'a> {
    name: &'a str,
    batch: &'a RecordBatch,
    first: u64,
    /// Number of hosts of the network; `None` if unknown.
    n_hosts: Option<u32>,
}

impl Table<'_> {
    fn required(&self, column: &str) -> Result<Column, TraceError> {
        Ok(self.optional(column)?.expect("the trace has the columns that it needs"))
    }

    /// Returns a column of numbers, or of texts with units, as numbers of `unit`.
    fn quantities(
        &self,
        column: &str,
        unit: Unit,
        field: &str,
        expected: &str,
    ) -> Result<Column, TraceError> {
        let Some(cells) = self.batch.column_by_name(column).and_then(texts) else {
            return self.required(column);
        };
        let number = |(row, cell): (u64, Option<String>)| {
            let Some(cell) = cell.filter(|cell| !cell.trim().is_empty()) else { return Ok(None) };
            let plain = || cell.trim().parse().ok().filter(|number: &f64| number.is_finite());
            let number = unit.parse(&cell).or_else(plain).map(Number::Real);
            number.map(Some).ok_or_else(|| TraceError::Field {
                file: self.name.to_owned(),
                place: self.first + row,
                field: field.to_owned(),
                expected: expected.to_owned(),
                got: format!("\"{cell}\""),
            })
        };
        (0..).zip(cells).map(number).collect()
    }

    fn optional(&self, column: &str) -> Result<Option<Column>, TraceError> {
        let Some(array) = self.batch.column_by_name(column) else { return Ok(None) };
        match numbers(array) {
            Some(column) => Ok(Some(column)),
            None => {
                let reason =
                    format!("column {column}: expected numbers, got {}", array.data_type());
                Err(TraceError::Format { file: self.name.to_owned(), reason })
            }
        }
    }

    /// Returns the hosts of a column of numbers or of names.
    fn hosts(&self, column: &str, hosts: Option<&HostNames>) -> Result<Column, TraceError> {
        let names = self.batch.column_by_name(column).and_then(texts);
        let Some(names) = names else { return self.required(column) };
        let of_text = |name: &str| match hosts {
            Some(hosts) => hosts.host_of_text(name, self.n_hosts),
            None => {
                parse_whole(name).ok_or_else(|| ("a whole number".to_owned(), format!("{name:?}")))
            }
        };
        let host = |(row, name): (u64, Option<String>)| {
            let wrong = |(expected, got)| {
                let (file, place) = (self.name.to_owned(), self.first + row);
                TraceError::Field { file, place, field: column.to_owned(), expected, got }
            };
            let host = name.map(|name| of_text(name.trim()).map_err(wrong)).transpose()?;
            Ok(host.map(|host| Number::Whole(host.into())))
        };
        (0..).zip(names).map(host).collect()
    }

    fn value(&self, field: &str, column: &Column, row: usize) -> Result<u64, TraceError> {
        let whole = column[row].and_then(Number::whole);
        let expected = if field == "size_bytes" { SIZE_EXPECTED } else { "a whole number" };
        whole.ok_or_else(|| self.wrong(field, row, expected, column))
    }

    /// Returns the value of an optional column, which need not have a value in every row.
    fn maybe(
        &self,
        field: &str,
        column: Option<&Column>,
        row: usize,
    ) -> Result<Option<u64>, TraceError> {
        let column = column.filter(|column| column[row].is_some());
        column.map(|column| self.value(field, column, row)).transpose()
    }

    /// Returns an optional column of times.
    fn times(&self, name: &str) -> Result<Option<(Column, TimeColumn)>, TraceError> {
        let found = TimeColumn::find(name, |name| self.batch.column_by_name(name).is_some());
        let Some(times) = found else { return Ok(None) };
        let column = self.quantities(&times.name, times.unit, name, &times.expected())?;
        Ok(Some((column, times)))
    }

    fn maybe_time(
        &self,
        field: &str,
        column: Option<&(Column, TimeColumn)>,
        row: usize,
    ) -> Result<Option<u64>, TraceError> {
        let Some((column, times)) = column else { return Ok(None) };
        let Some(number) = column[row] else { return Ok(None) };
        let ps = number.ps(times.unit_ps);
        ps.map(Some).ok_or_else(|| self.wrong(field, row, &times.expected(), column))
    }

    /// Returns the dependencies of rows: lists of ids, texts of ids, or single ids.
    fn after(&self) -> Result<Option<DependencyRows>, TraceError> {
        let Some(array) = self.batch.column_by_name("after") else { return Ok(None) };
        after(array).map(Some).ok_or_else(|| TraceError::Format {
            file: self.name.to_owned(),
            reason: format!(
                "column after: expected lists of numbers or text, got {}",
                array.data_type()
            ),
        })
    }

    fn ids(&self, after: &DependencyRows, row: usize) -> Result<Vec<u64>, TraceError> {
        let wrong = |got: String| TraceError::Field {
            file: self.name.to_owned(),
            place: self.first + row as u64,
            field: "after".to_owned(),
            expected: "whole numbers".to_owned(),
            got,
        };
        match &after[row] {
            Ids::Numbers(numbers) => {
                let whole = |number: &Option<Number>| {
                    let id = number.and_then(Number::whole);
                    let got = || number.map_or_else(|| "null".to_owned(), |n| n.to_string());
                    id.ok_or_else(|| wrong(got()))
                };
                numbers.iter().map(whole).collect()
            }
            Ids::Text(text) => {
                let ids = text.split([' ', ';']).filter(|id| !id.is_empty());
                let ids: Result<_, _> = ids.map(str::parse).collect();
                ids.map_err(|_| wrong(format!("\"{text}\"")))
            }
        }
    }

    fn wrong(&self, field: &str, row: usize, expected: &str, column: &Column) -> TraceError {
        let got = column[row].map_or_else(|| "null".to_owned(), |number| number.to_string());
        let (file, place) = (self.name.to_owned(), self.first + row as u64);
        let (field, expected) = (field.to_owned(), expected.to_owned());
        TraceError::Field { file, place, field, expected, got }
    }
}

fn broken(name: &str, error: impl std::fmt::Display) -> TraceError {
    TraceError::Format { file: name.to_owned(), reason: error.to_string() }
}

/// Flows a batch.
const BATCH: usize = 1 << 16;
