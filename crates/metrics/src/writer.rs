//! Flow rows to and from Parquet.

use std::path::Path;

use crate::columns::{Metadata, RowWriter, read_rows};
use crate::row::{FlowColumns, FlowRow};
use crate::table::TableError;

/// Writes flow rows as they arrive.
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
pub type FlowWriter = RowWriter<FlowRow>;

/// Reads a table of flow rows and its metadata strings.
///
/// # Errors
/// Names the file and the fault.
pub fn read_flows(file: &Path) -> Result<(FlowColumns, Metadata), TableError> {
    read_rows::<FlowRow>(file)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};
    use tempfile::TempDir;

    use super::*;
    use crate::columns::BATCH;
    use crate::row::Status;
    use crate::table::TableWriter;

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
            ideal_is_bound: flow.is_multiple_of(2),
            duplicate_bytes: flow % 3,
            deadline_ps: (flow % 5 == 2).then_some(100_000_000),
            outcome_ps: finished.then_some(7_000_000 + flow),
            delay_bound_ps: (flow % 5 == 3).then_some(200_000_000),
            tenant: (flow % 2) as u32,
            status: if finished { Status::Delivered } else { Status::Unfinished },
            first_byte_ps: (flow % 7 < 6).then_some(flow + 2_000_000),
            sent_bytes: 1460 * 60,
            retransmitted_bytes: 1460 * (60 - (flow % 50 + 1)),
            delivered_bytes: 1460 * (flow % 50 + u64::from(finished)),
        }
    }

    #[test]
    fn rows_and_metadata_are_read_back_and_the_file_appears_at_the_end() {
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
    fn errors_of_files_without_a_table_name_the_file() {
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
