//! Flow rows to and from Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::row::{FlowColumns, FlowRow, Status};
use crate::table::{TableError, TableWriter, broken, io};

/// Writes flow rows as they come.
///
/// ```no_run
/// # use rampmeter_metrics::{FlowWriter, FlowRow, TableError};
/// # fn rows() -> Vec<FlowRow> { vec![] }
/// let mut writer = FlowWriter::create("flows.parquet".as_ref())?;
/// for row in rows() {
///     writer.push(&row)?;
/// }
/// writer.finish(&[("seed".to_owned(), "1".to_owned())])?;
/// # Ok::<(), TableError>(())
/// ```
#[derive(Debug)]
pub struct FlowWriter {
    table: TableWriter,
    file: PathBuf,
    schema: SchemaRef,
    batch: FlowColumns,
    n_rows: u64,
}

impl FlowWriter {
    /// Starts the table that will be `file`; until [`FlowWriter::finish`] it is `file.partial`.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(file: &Path) -> Result<Self, TableError> {
        let schema = schema();
        let table = TableWriter::create(file, Arc::clone(&schema))?;
        let batch = FlowColumns::default();
        Ok(Self { table, file: file.to_owned(), schema, batch, n_rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a full batch cannot be written.
    pub fn push(&mut self, row: &FlowRow) -> Result<(), TableError> {
        self.batch.push(row);
        self.n_rows += 1;
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Rows so far.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Writes what is left, the strings of `metadata`, and gives the table its name. Returns the
    /// number of rows.
    ///
    /// # Errors
    /// If the rest cannot be written or the file cannot be renamed.
    pub fn finish(mut self, metadata: &[(String, String)]) -> Result<u64, TableError> {
        self.flush()?;
        self.table.finish(metadata)?;
        Ok(self.n_rows)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.batch);
        let status: StringArray = rows.status.iter().map(|s| Some(s.name())).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(rows.flow)),
            Arc::new(UInt64Array::from(rows.arrival_ps)),
            Arc::new(UInt32Array::from(rows.src)),
            Arc::new(UInt32Array::from(rows.dst)),
            Arc::new(UInt64Array::from(rows.size_bytes)),
            Arc::new(UInt64Array::from(rows.fct_ps)),
            Arc::new(UInt64Array::from(rows.acked_ps)),
            Arc::new(UInt64Array::from(rows.ideal_ps)),
            Arc::new(UInt64Array::from(rows.acked_ideal_ps)),
            Arc::new(UInt64Array::from(rows.figure_ideal_ps)),
            Arc::new(UInt64Array::from(rows.duplicate_bytes)),
            Arc::new(UInt64Array::from(rows.deadline_ps)),
            Arc::new(UInt64Array::from(rows.fate_ps)),
            Arc::new(UInt64Array::from(rows.bound_ps)),
            Arc::new(UInt32Array::from(rows.tenant)),
            Arc::new(status),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| broken(&self.file, error))?;
        self.table.write(&batch)
    }
}

/// Reads a table of flow rows and its metadata strings.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn read_flows(file: &Path) -> Result<(FlowColumns, Vec<(String, String)>), TableError> {
    let input = File::open(file).map_err(|source| io(file, source))?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(input).map_err(|error| broken(file, error))?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let metadata = metadata.into_iter().flatten().filter(|entry| entry.key != ARROW_SCHEMA);
    let metadata = metadata
        .map(|entry| (entry.key.clone(), entry.value.clone().unwrap_or_default()))
        .collect();
    let reader = builder.build().map_err(|error| broken(file, error))?;
    let mut columns = FlowColumns::default();
    for batch in reader {
        let batch = batch.map_err(|error| broken(file, error))?;
        read_batch(&Source { file, batch: &batch, before: columns.len() as u64 }, &mut columns)?;
    }
    Ok((columns, metadata))
}

fn read_batch(source: &Source<'_>, columns: &mut FlowColumns) -> Result<(), TableError> {
    source.values::<UInt64Type>("flow", "uint64", &mut columns.flow)?;
    source.values::<UInt64Type>("arrival_ps", "uint64", &mut columns.arrival_ps)?;
    source.values::<UInt32Type>("src", "uint32", &mut columns.src)?;
    source.values::<UInt32Type>("dst", "uint32", &mut columns.dst)?;
    source.values::<UInt64Type>("size_bytes", "uint64", &mut columns.size_bytes)?;
    source.optional("fct_ps", &mut columns.fct_ps)?;
    source.optional("acked_ps", &mut columns.acked_ps)?;
    source.values::<UInt64Type>("ideal_ps", "uint64", &mut columns.ideal_ps)?;
    source.values::<UInt64Type>("acked_ideal_ps", "uint64", &mut columns.acked_ideal_ps)?;
    source.values::<UInt64Type>("figure_ideal_ps", "uint64", &mut columns.figure_ideal_ps)?;
    let duplicate = &mut columns.duplicate_bytes;
    source.values::<UInt64Type>("duplicate_bytes", "uint64", duplicate)?;
    source.optional("deadline_ps", &mut columns.deadline_ps)?;
    source.optional("fate_ps", &mut columns.fate_ps)?;
    source.optional("bound_ps", &mut columns.bound_ps)?;
    source.values::<UInt32Type>("tenant", "uint32", &mut columns.tenant)?;
    let names = source.column("status")?.as_string_opt::<i32>();
    let names = names.ok_or_else(|| source.mistyped("status", "strings"))?;
    for (idx, name) in names.iter().enumerate() {
        let status = name.and_then(Status::from_name).ok_or_else(|| TableError::Value {
            file: source.file.display().to_string(),
            row: source.before + idx as u64 + 1,
            column: "status",
            expected: "finished, failed, rejected or unfinished",
            got: name.unwrap_or("null").to_owned(),
        })?;
        columns.status.push(status);
    }
    Ok(())
}

/// A batch, where it comes from, and how many rows came before it.
struct Source<'a> {
    file: &'a Path,
    batch: &'a RecordBatch,
    before: u64,
}

impl Source<'_> {
    fn column(&self, column: &'static str) -> Result<&ArrayRef, TableError> {
        self.batch.column_by_name(column).ok_or_else(|| {
            let schema = self.batch.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            TableError::Column {
                file: self.file.display().to_string(),
                column,
                expected: "flow rows",
                got: format!("the columns {}", names.join(", ")),
            }
        })
    }

    fn mistyped(&self, column: &'static str, expected: &'static str) -> TableError {
        let got = self.batch.column_by_name(column).map(|array| array.data_type().to_string());
        let file = self.file.display().to_string();
        TableError::Column { file, column, expected, got: got.unwrap_or_default() }
    }

    fn values<T: ArrowPrimitiveType>(
        &self,
        column: &'static str,
        expected: &'static str,
        into: &mut Vec<T::Native>,
    ) -> Result<(), TableError> {
        let array = self.column(column)?.as_primitive_opt::<T>();
        let array = array.ok_or_else(|| self.mistyped(column, expected))?;
        if let Some(idx) = (0..array.len()).find(|&idx| array.is_null(idx)) {
            return Err(TableError::Value {
                file: self.file.display().to_string(),
                row: self.before + idx as u64 + 1,
                column,
                expected: "a number",
                got: "null".to_owned(),
            });
        }
        into.extend_from_slice(array.values());
        Ok(())
    }

    fn optional(
        &self,
        column: &'static str,
        into: &mut Vec<Option<u64>>,
    ) -> Result<(), TableError> {
        let array = self.column(column)?.as_primitive_opt::<UInt64Type>();
        into.extend(array.ok_or_else(|| self.mistyped(column, "uint64"))?.iter());
        Ok(())
    }
}

fn schema() -> SchemaRef {
    let column = |name, of, nullable| Field::new(name, of, nullable);
    Arc::new(Schema::new(vec![
        column("flow", DataType::UInt64, false),
        column("arrival_ps", DataType::UInt64, false),
        column("src", DataType::UInt32, false),
        column("dst", DataType::UInt32, false),
        column("size_bytes", DataType::UInt64, false),
        column("fct_ps", DataType::UInt64, true),
        column("acked_ps", DataType::UInt64, true),
        column("ideal_ps", DataType::UInt64, false),
        column("acked_ideal_ps", DataType::UInt64, false),
        column("figure_ideal_ps", DataType::UInt64, false),
        column("duplicate_bytes", DataType::UInt64, false),
        column("deadline_ps", DataType::UInt64, true),
        column("fate_ps", DataType::UInt64, true),
        column("bound_ps", DataType::UInt64, true),
        column("tenant", DataType::UInt32, false),
        column("status", DataType::Utf8, false),
    ]))
}

/// Rows a batch.
const BATCH: usize = 1 << 16;

/// The key under which Arrow keeps its own schema in the file.
const ARROW_SCHEMA: &str = "ARROW:schema";

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn row(flow: u64) -> FlowRow {
        let finished = flow % 7 != 3;
        FlowRow {
            flow,
            arrival_ps: flow * 1000,
            src: (flow % 144) as u32,
            dst: ((flow + 1) % 144) as u32,
            size_bytes: 1460 * (flow % 50 + 1),
            fct_ps: finished.then_some(flow + 5_000_000),
            acked_ps: (flow % 7 != 4 && finished).then_some(flow + 6_000_000),
            ideal_ps: 2_900_000,
            acked_ideal_ps: 5_508_000,
            figure_ideal_ps: 5_504_800,
            duplicate_bytes: flow % 3,
            deadline_ps: (flow % 5 == 2).then_some(100_000_000),
            fate_ps: finished.then_some(7_000_000 + flow),
            bound_ps: (flow % 5 == 3).then_some(200_000_000),
            tenant: (flow % 2) as u32,
            status: if finished { Status::Finished } else { Status::Unfinished },
        }
    }

    #[test]
    fn rows_and_metadata_come_back_and_the_name_appears_at_the_end() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("flows.parquet");
        let n = 2 * BATCH as u64 + 17;
        let mut writer = FlowWriter::create(&file).unwrap();
        (0..n).for_each(|flow| writer.push(&row(flow)).unwrap());
        assert!(!file.exists() && dir.path().join("flows.parquet.partial").exists());
        let metadata = vec![("plan".to_owned(), "a = 1".to_owned())];
        assert_eq!(writer.finish(&metadata).unwrap(), n);
        assert!(file.exists() && !dir.path().join("flows.parquet.partial").exists());
        let (columns, read) = read_flows(&file).unwrap();
        assert_eq!(read, metadata);
        assert_eq!(columns.len() as u64, n);
        assert!(columns.rows().eq((0..n).map(row)));
    }

    #[test]
    fn the_same_rows_give_the_same_bytes() {
        let dir = TempDir::new().unwrap();
        let write = |name: &str| {
            let file = dir.path().join(name);
            let mut writer = FlowWriter::create(&file).unwrap();
            (0..1000).for_each(|flow| writer.push(&row(flow)).unwrap());
            writer.finish(&[("seed".to_owned(), "1".to_owned())]).unwrap();
            std::fs::read(file).unwrap()
        };
        assert_eq!(write("a"), write("b"));
    }

    #[test]
    fn other_files_are_errors_that_name_them() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("x.parquet");
        let message = read_flows(&file).unwrap_err().to_string();
        assert!(message.starts_with(&file.display().to_string()), "{message}");
        std::fs::write(&file, "this is not a table").unwrap();
        let message = read_flows(&file).unwrap_err().to_string();
        assert!(message.contains("x.parquet: Parquet error"), "{message}");
        let schema = Arc::new(Schema::new(vec![Field::new("flow", DataType::Int64, false)]));
        let mut table = TableWriter::create(&file, Arc::clone(&schema)).unwrap();
        let flow: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![1]));
        table.write(&RecordBatch::try_new(schema, vec![flow]).unwrap()).unwrap();
        table.finish(&[]).unwrap();
        let message = read_flows(&file).unwrap_err().to_string();
        assert!(message.ends_with("expected a column flow of uint64, got Int64"), "{message}");
    }
}
