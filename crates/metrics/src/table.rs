//! Parquet tables that appear under their name only when they are complete.
//!
//! A table is written to `name.partial` in batches and renamed when it is finished, so that a file
//! under its final name is always complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use rampmeter_types::without_os_error;
use thiserror::Error;

/// Reason for which a table cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// Error of the file system.
    #[error("{file}: {}", without_os_error(source))]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// Error of Parquet or Arrow.
    #[error("{file}: {reason}")]
    Format {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A column is missing or has another type.
    #[error("{file}: expected a column {column} of {expected}, got {got}")]
    Column {
        /// The file.
        file: String,
        /// The column.
        column: &'static str,
        /// Expected type.
        expected: &'static str,
        /// Type in the file, or the columns of the file.
        got: String,
    },
    /// A value is invalid.
    #[error("{file}: row {row}: {column}: expected {expected}, got {got}")]
    Value {
        /// The file.
        file: String,
        /// Number of the row, from 1.
        row: u64,
        /// The column.
        column: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// Actual value.
        got: String,
    },
}

/// Table that is being written.
pub struct TableWriter {
    writer: ArrowWriter<File>,
    partial: PathBuf,
    file: PathBuf,
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("file", &self.file).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Starts the table `file`.
    ///
    /// # Errors
    /// If the partial file cannot be made.
    pub fn create(file: &Path, schema: SchemaRef) -> Result<Self, TableError> {
        let mut partial = OsString::from(file);
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let out = File::create(&partial).map_err(|source| io(file, source))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_dictionary_enabled(false);
        // Names have few values. Dictionaries of numbers take long and make files hardly smaller.
        let names = schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
        for field in names {
            let column = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_dictionary_enabled(column, true);
        }
        let writer = ArrowWriter::try_new(out, schema, Some(properties.build()))
            .map_err(|error| parquet_error(file, error))?;
        Ok(Self { writer, partial, file: file.to_owned() })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be encoded or written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(batch).map_err(|error| parquet_error(&self.file, error))
    }

    /// Writes `metadata` and the footer, and renames the file to its final name.
    ///
    /// # Errors
    /// If the rest cannot be written or the file cannot be renamed.
    pub fn finish(mut self, metadata: &[(String, String)]) -> Result<(), TableError> {
        for (key, value) in metadata {
            let entry = KeyValue { key: key.clone(), value: Some(value.clone()) };
            self.writer.append_key_value_metadata(entry);
        }
        self.writer.close().map_err(|error| parquet_error(&self.file, error))?;
        fs::rename(&self.partial, &self.file).map_err(|source| io(&self.file, source))
    }
}

pub(crate) fn io(file: &Path, source: std::io::Error) -> TableError {
    TableError::Io { file: file.display().to_string(), source }
}

/// Returns the error of a table, or that of the system if it is the cause.
pub(crate) fn parquet_error(file: &Path, error: impl Into<ParquetError>) -> TableError {
    let reason = match error.into() {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => return io(file, *source),
            Err(other) => other.to_string(),
        },
        other => other.to_string(),
    };
    TableError::Format { file: file.display().to_string(), reason }
}

/// Number of rows in a group, which a writer holds in memory, encoded.
const ROW_GROUP: usize = 1 << 18;
