//! Traces as Parquet tables.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::decimal::ARRIVAL_UNITS;
use super::number::{Column, Number, numbers};
use super::{ARRIVAL_EXPECTED, RawRow, TIME_EXPECTED, TraceError};
use crate::flow::Flow;

/// Writes `flows` as a table with the columns `arrival_ps`, `src`, `dst` and `size_bytes`.
///
/// # Errors
/// [`TraceError::Io`] or [`TraceError::Format`] with the file's name.
pub fn write_parquet(file: &Path, flows: impl IntoIterator<Item = Flow>) -> Result<(), TraceError> {
    let name = file.display().to_string();
    let io = |source| TraceError::Io { file: name.clone(), source };
    let format = |error: parquet::errors::ParquetError| broken(&name, error);
    let schema = Arc::new(Schema::new(vec![
        Field::new("arrival_ps", DataType::UInt64, false),
        Field::new("src", DataType::UInt32, false),
        Field::new("dst", DataType::UInt32, false),
        Field::new("size_bytes", DataType::UInt64, false),
    ]));
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let out = File::create(file).map_err(io)?;
    let mut writer =
        ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(format)?;
    let mut flows = flows.into_iter().peekable();
    while flows.peek().is_some() {
        let batch: Vec<Flow> = flows.by_ref().take(BATCH).collect();
        let column = |of: fn(&Flow) -> u64| -> Arc<dyn Array> {
            Arc::new(batch.iter().map(of).collect::<UInt64Array>())
        };
        let hosts = |of: fn(&Flow) -> u32| -> Arc<dyn Array> {
            Arc::new(batch.iter().map(of).collect::<UInt32Array>())
        };
        let columns = vec![
            column(|flow| flow.arrival.as_ps()),
            hosts(|flow| flow.src.get()),
            hosts(|flow| flow.dst.get()),
            column(|flow| flow.size.get()),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| broken(&name, error))?;
        writer.write(&batch).map_err(format)?;
    }
    writer.close().map_err(format)?;
    Ok(())
}

pub(super) fn read(file: &Path, name: &str) -> Result<Vec<RawRow>, TraceError> {
    let reader = open(file, name)?.build().map_err(|error| broken(name, error))?;
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| broken(name, error))?;
        read_batch(name, &batch, &mut rows)?;
    }
    Ok(rows)
}

/// The names of the columns.
pub(super) fn columns(file: &Path, name: &str) -> Result<Vec<String>, TraceError> {
    let builder = open(file, name)?;
    Ok(builder.schema().fields().iter().map(|field| field.name().clone()).collect())
}

fn open(file: &Path, name: &str) -> Result<ParquetRecordBatchReaderBuilder<File>, TraceError> {
    let input =
        File::open(file).map_err(|source| TraceError::Io { file: name.to_owned(), source })?;
    ParquetRecordBatchReaderBuilder::try_new(input).map_err(|error| broken(name, error))
}

fn read_batch(name: &str, batch: &RecordBatch, rows: &mut Vec<RawRow>) -> Result<(), TraceError> {
    let table = Table { name, batch, first: rows.len() as u64 + 1 };
    let (arrival, unit_ps) = ARRIVAL_UNITS
        .into_iter()
        .find(|&(column, _)| batch.column_by_name(column).is_some())
        .ok_or_else(|| table.missing(ARRIVAL_EXPECTED))?;
    let arrivals = table.required(arrival)?;
    let (src, dst) = (table.required("src")?, table.required("dst")?);
    let size = table.required("size_bytes")?;
    let (fct, ideal) = (table.optional("fct_ps")?, table.optional("ideal_ps")?);
    for row in 0..batch.num_rows() {
        let place = table.first + row as u64;
        let arrival_ps = arrivals[row].and_then(|number| number.ps(unit_ps));
        let arrival_ps =
            arrival_ps.ok_or_else(|| table.wrong("arrival", row, TIME_EXPECTED, &arrivals))?;
        rows.push(RawRow {
            place,
            arrival_ps,
            src: table.value("src", &src, row)?,
            dst: table.value("dst", &dst, row)?,
            size_bytes: table.value("size_bytes", &size, row)?,
            fct_ps: table.maybe("fct_ps", fct.as_ref(), row)?,
            ideal_ps: table.maybe("ideal_ps", ideal.as_ref(), row)?,
        });
    }
    Ok(())
}

/// A batch of the table, and the number of its first row.
struct Table<'a> {
    name: &'a str,
    batch: &'a RecordBatch,
    first: u64,
}

impl Table<'_> {
    fn required(&self, column: &'static str) -> Result<Column, TraceError> {
        self.optional(column)?.ok_or_else(|| self.missing(column))
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

    fn value(&self, field: &'static str, column: &Column, row: usize) -> Result<u64, TraceError> {
        let whole = column[row].and_then(Number::whole);
        whole.ok_or_else(|| self.wrong(field, row, "a whole number", column))
    }

    /// The value of a column that need not be there, nor have a value in every row.
    fn maybe(
        &self,
        field: &'static str,
        column: Option<&Column>,
        row: usize,
    ) -> Result<Option<u64>, TraceError> {
        let column = column.filter(|column| column[row].is_some());
        column.map(|column| self.value(field, column, row)).transpose()
    }

    fn missing(&self, column: &str) -> TraceError {
        let schema = self.batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        TraceError::Column {
            file: self.name.to_owned(),
            expected: column.to_owned(),
            got: names.collect::<Vec<_>>().join(","),
        }
    }

    fn wrong(
        &self,
        field: &'static str,
        row: usize,
        expected: &str,
        column: &Column,
    ) -> TraceError {
        let got = column[row].map_or_else(|| "null".to_owned(), |number| number.to_string());
        let (file, place) = (self.name.to_owned(), self.first + row as u64);
        TraceError::Field { file, place, field, expected: expected.to_owned(), got }
    }
}

fn broken(name: &str, error: impl std::fmt::Display) -> TraceError {
    TraceError::Format { file: name.to_owned(), reason: error.to_string() }
}

/// Flows a batch.
const BATCH: usize = 1 << 16;
