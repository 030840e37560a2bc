//! Tables whose columns are described at their definition.
//!
//! [`rows!`](crate::columns) makes a row's struct, the struct of its columns, and the description
//! of each column. Its unit and meaning are in the Parquet metadata of the column, under the keys
//! `unit` and `meaning`, and in `docs/results.md`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::table::{TableError, TableWriter, io, parquet_error};

/// Description of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Name of the column.
    pub name: &'static str,
    /// Unit of its values; empty if they have none.
    pub unit: &'static str,
    /// Meaning of its values.
    pub meaning: &'static str,
    /// Name of their type in Arrow.
    pub kind: &'static str,
    /// True if values may be missing.
    pub nullable: bool,
}

/// Row of a table.
pub trait Row: Clone {
    /// Rows as columns.
    type Columns: Columns<Row = Self>;
    /// Descriptions of the columns, in the order of the table.
    const ABOUT: &'static [ColumnInfo];
}

/// Rows as columns.
pub trait Columns: Default {
    /// Row type.
    type Row;

    /// Returns the number of rows.
    fn n_rows(&self) -> usize;
    /// Adds a row.
    fn push(&mut self, row: &Self::Row);
    /// Returns the columns as Arrow arrays, in the order of the table.
    fn into_arrays(self) -> Vec<ArrayRef>;
    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// Names the column that is missing or has another type, or the row with an invalid value.
    fn extend(&mut self, source: &Source<'_>) -> Result<(), TableError>;
}

/// Type of a column's values.
pub trait Cell: Clone {
    /// Name of the type in Arrow.
    const KIND: &'static str;
    /// True if values may be missing.
    const NULLABLE: bool = false;

    /// Returns the column as an Arrow array.
    fn array(values: Vec<Self>) -> ArrayRef;
    /// Adds a column's values of a batch to `into`.
    ///
    /// # Errors
    /// Names the column that is missing or has another type, or the row with an invalid value.
    fn read(
        source: &Source<'_>,
        column: &'static str,
        into: &mut Vec<Self>,
    ) -> Result<(), TableError>;
}

macro_rules! number_cell {
    ($type:ty, $arrow:ty, $kind:literal) => {
        impl Cell for $type {
            const KIND: &'static str = $kind;

            fn array(values: Vec<Self>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from_iter_values(values))
            }

            fn read(
                source: &Source<'_>,
                column: &'static str,
                into: &mut Vec<Self>,
            ) -> Result<(), TableError> {
                source.values::<$arrow>(column, $kind, into)
            }
        }
    };
}

number_cell!(u64, UInt64Type, "uint64");
number_cell!(u32, UInt32Type, "uint32");
number_cell!(f64, Float64Type, "float64");

impl Cell for Option<u64> {
    const KIND: &'static str = "uint64";
    const NULLABLE: bool = true;

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(PrimitiveArray::<UInt64Type>::from(values))
    }

    fn read(
        source: &Source<'_>,
        column: &'static str,
        into: &mut Vec<Self>,
    ) -> Result<(), TableError> {
        let array = source.column(column)?.as_primitive_opt::<UInt64Type>();
        into.extend(array.ok_or_else(|| source.mistyped(column, Self::KIND))?.iter());
        Ok(())
    }
}

impl Cell for bool {
    const KIND: &'static str = "bool";

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(BooleanArray::from(values))
    }

    fn read(
        source: &Source<'_>,
        column: &'static str,
        into: &mut Vec<Self>,
    ) -> Result<(), TableError> {
        let array = source.column(column)?.as_boolean_opt();
        let array = array.ok_or_else(|| source.mistyped(column, Self::KIND))?;
        into.extend(array.iter().map(Option::unwrap_or_default));
        Ok(())
    }
}

impl Cell for Cow<'static, str> {
    const KIND: &'static str = "string";

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values))
    }

    fn read(
        source: &Source<'_>,
        column: &'static str,
        into: &mut Vec<Self>,
    ) -> Result<(), TableError> {
        let names = source.strings(column)?;
        into.extend(names.iter().map(|name| Cow::from(name.unwrap_or_default().to_owned())));
        Ok(())
    }
}

/// Defines the struct of a row, the struct of its columns, and the description of the columns. Each
/// field has a documentation comment, which is the column's meaning, and its unit in brackets.
macro_rules! rows {
    (
        $(#[$meta:meta])*
        pub struct $row:ident, $columns:ident {
            $( $(#[doc = $line:literal])+ [$unit:literal] $name:ident: $type:ty, )+
        }
    ) => {
        $(#[$meta])*
        pub struct $row {
            $( $(#[doc = $line])+ pub $name: $type, )+
        }

        /// Rows as columns.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[expect(missing_docs, reason = "the columns are documented as the fields of the row")]
        pub struct $columns {
            $( pub $name: Vec<$type>, )+
        }

        impl $crate::columns::Row for $row {
            type Columns = $columns;
            const ABOUT: &'static [$crate::columns::ColumnInfo] = &[
                $( $crate::columns::ColumnInfo {
                    name: stringify!($name),
                    unit: $unit,
                    meaning: concat!($($line),+),
                    kind: <$type as $crate::columns::Cell>::KIND,
                    nullable: <$type as $crate::columns::Cell>::NULLABLE,
                }, )+
            ];
        }

        impl $columns {
            /// Returns the number of rows.
            pub fn len(&self) -> usize {
                [$( self.$name.len() ),+][0]
            }

            /// Returns true if there are no rows.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns row number `idx`, which must be below the number of rows.
            pub fn row(&self, idx: usize) -> $row {
                $row { $( $name: self.$name[idx].clone(), )+ }
            }

            /// Iterates over all rows.
            pub fn rows(&self) -> impl Iterator<Item = $row> + '_ {
                (0..self.len()).map(|idx| self.row(idx))
            }
        }

        impl $crate::columns::Columns for $columns {
            type Row = $row;

            fn n_rows(&self) -> usize {
                self.len()
            }

            fn push(&mut self, row: &$row) {
                $( self.$name.push(row.$name.clone()); )+
            }

            fn into_arrays(self) -> Vec<arrow_array::ArrayRef> {
                vec![$( $crate::columns::Cell::array(self.$name) ),+]
            }

            fn extend(
                &mut self,
                source: &$crate::columns::Source<'_>,
            ) -> Result<(), $crate::table::TableError> {
                $( $crate::columns::Cell::read(source, stringify!($name), &mut self.$name)?; )+
                Ok(())
            }
        }

        impl FromIterator<$row> for $columns {
            fn from_iter<I: IntoIterator<Item = $row>>(rows: I) -> Self {
                let mut columns = Self::default();
                for row in rows {
                    $crate::columns::Columns::push(&mut columns, &row);
                }
                columns
            }
        }
    };
}
pub(crate) use rows;

/// Returns the Arrow schema of a table, with unit and meaning at each column.
pub(crate) fn schema<R: Row>() -> SchemaRef {
    let field = |about: &ColumnInfo| {
        let of = match about.kind {
            "uint64" => DataType::UInt64,
            "uint32" => DataType::UInt32,
            "float64" => DataType::Float64,
            "bool" => DataType::Boolean,
            _ => DataType::Utf8,
        };
        let entries = [("unit", about.unit), ("meaning", about.meaning.trim())];
        let entries = entries.into_iter().filter(|(_, text)| !text.is_empty());
        let metadata = entries.map(|(key, text)| (key.to_owned(), text.to_owned()));
        Field::new(about.name, of, about.nullable)
            .with_metadata(metadata.collect::<HashMap<_, _>>())
    };
    Arc::new(Schema::new(R::ABOUT.iter().map(field).collect::<Vec<_>>()))
}

/// Writes rows as they arrive.
pub struct RowWriter<R: Row> {
    table: TableWriter,
    file: PathBuf,
    schema: SchemaRef,
    batch: R::Columns,
    n_rows: u64,
}

impl<R: Row> Debug for RowWriter<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("file", &self.file).finish_non_exhaustive()
    }
}

impl<R: Row> RowWriter<R> {
    /// Starts the table `file`. Until [`RowWriter::finish`] it is `file.partial`.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(file: &Path) -> Result<Self, TableError> {
        let schema = schema::<R>();
        let table = TableWriter::create(file, Arc::clone(&schema))?;
        let batch = R::Columns::default();
        Ok(Self { table, file: file.to_owned(), schema, batch, n_rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a full batch cannot be written.
    pub fn push(&mut self, row: &R) -> Result<(), TableError> {
        self.batch.push(row);
        self.n_rows += 1;
        if self.batch.n_rows() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Returns the number of rows so far.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Writes the remaining rows and the strings of `metadata`, and renames the file to its final
    /// name. Returns the number of rows.
    ///
    /// # Errors
    /// If the rest cannot be written or the file cannot be renamed.
    pub fn finish(mut self, metadata: &[(String, String)]) -> Result<u64, TableError> {
        self.flush()?;
        self.table.finish(metadata)?;
        Ok(self.n_rows)
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let arrays = std::mem::take(&mut self.batch).into_arrays();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(|error| parquet_error(&self.file, error))?;
        self.table.write(&batch)
    }
}

/// Strings in a table's metadata, by key.
pub type Metadata = Vec<(String, String)>;

/// Writes all rows of a table.
///
/// # Errors
/// If the table cannot be written.
pub fn write_rows<R: Row>(
    file: &Path,
    rows: &[R],
    metadata: &[(String, String)],
) -> Result<(), TableError> {
    let mut writer = RowWriter::create(file)?;
    rows.iter().try_for_each(|row| writer.push(row))?;
    writer.finish(metadata).map(|_| ())
}

/// Reads a table of rows and its metadata strings.
///
/// # Errors
/// Names the file and the fault.
pub fn read_rows<R: Row>(file: &Path) -> Result<(R::Columns, Metadata), TableError> {
    let input = File::open(file).map_err(|source| io(file, source))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(input)
        .map_err(|error| parquet_error(file, error))?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let metadata = metadata.into_iter().flatten().filter(|entry| entry.key != ARROW_SCHEMA);
    let metadata = metadata
        .map(|entry| (entry.key.clone(), entry.value.clone().unwrap_or_default()))
        .collect();
    let reader = builder.build().map_err(|error| parquet_error(file, error))?;
    let mut columns = R::Columns::default();
    for batch in reader {
        let batch = batch.map_err(|error| parquet_error(file, error))?;
        let source = Source { file, batch: &batch, before: columns.n_rows() as u64 };
        columns.extend(&source)?;
    }
    Ok((columns, metadata))
}

/// Batch to read, with its file and the number of rows before it.
#[derive(Debug)]
pub struct Source<'a> {
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
                expected: "the table",
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
            return Err(self.invalid_value(idx, column, "a number", "null"));
        }
        into.extend_from_slice(array.values());
        Ok(())
    }

    pub(crate) fn strings(&self, column: &'static str) -> Result<&StringArray, TableError> {
        let array = self.column(column)?.as_string_opt::<i32>();
        array.ok_or_else(|| self.mistyped(column, "strings"))
    }

    /// Returns the error of a value in row `idx` of the batch.
    pub(crate) fn invalid_value(
        &self,
        idx: usize,
        column: &'static str,
        expected: &'static str,
        got: &str,
    ) -> TableError {
        TableError::Value {
            file: self.file.display().to_string(),
            row: self.before + idx as u64 + 1,
            column,
            expected,
            got: got.to_owned(),
        }
    }
}

/// Number of rows in a batch.
pub(crate) const BATCH: usize = 1 << 16;

/// Key of Arrow's own schema in the file.
const ARROW_SCHEMA: &str = "ARROW:schema";
