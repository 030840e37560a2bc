//! What is written is read again, and no text makes a reader panic.

mod csv;
mod goal;
mod import;
mod parquet;
mod waiting;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rampmeter_core::{Bytes, NodeId, Span, Time};
use tempfile::TempDir;

use super::{
    Check, Format, Order, ReferenceRow, Trace, ignored_columns, read, read_reference, read_trace,
    write_csv, write_parquet, write_reference_csv,
};
use crate::flow::Flow;
use crate::graph::Graph;

fn flow((arrival, src, dst, size): (u64, u32, u32, u64)) -> Flow {
    Flow::new(Time::from_ps(arrival), NodeId::new(src), NodeId::new(dst), Bytes::new(size))
}

fn check(n_hosts: u32, order: Order) -> Check {
    Check { n_hosts, order }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

prop_compose! {
    fn flows()(
        mut rows in prop::collection::vec(
            (0..1u64 << 40, 0..50u32, 1..50u32, 1..1u64 << 50),
            1..300,
        )
    ) -> Vec<Flow> {
        rows.sort_by_key(|row| row.0);
        let flow = |(at, src, by, size)| flow((at, src, (src + by) % 50, size));
        rows.into_iter().map(flow).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn csv_gzip_and_parquet_give_back_what_was_written(flows in flows()) {
        let dir = TempDir::new().unwrap();
        let check = check(50, Order::Require);
        for name in ["a.csv", "a.csv.gz", "a.parquet"] {
            let file = dir.path().join(name);
            let format = Format::of(&file).unwrap();
            match format {
                Format::Parquet => write_parquet(&file, flows.iter().copied()).unwrap(),
                _ => write_csv(&file, flows.iter().copied()).unwrap(),
            }
            prop_assert_eq!(&read(&file, format, check).unwrap(), &flows);
        }
    }

    #[test]
    fn a_reference_file_gives_back_what_was_written(flows in flows(), fct in 0..1u64 << 60) {
        let rows: Vec<ReferenceRow> = flows
            .into_iter()
            .enumerate()
            .map(|(i, flow)| {
                let fct = (i % 3 > 0).then(|| Span::from_ps(fct));
                ReferenceRow { flow, fct, ideal: Some(Span::from_ps(5_508_000)) }
            })
            .collect();
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("reference.csv.gz");
        write_reference_csv(&file, &rows).unwrap();
        let read = read_reference(&file, Format::Csv, check(50, Order::Require)).unwrap();
        prop_assert_eq!(read, rows);
    }

    #[test]
    fn no_text_panics(text in "[0-9a-z,>. \n-]{0,200}") {
        for format in [Format::Csv, Format::Yaps, Format::Htsim, Format::Hpcc, Format::Parquet] {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("any");
            fs::write(&file, &text).unwrap();
            let _ = read(&file, format, check(50, Order::Sort));
        }
    }
}

#[test]
fn columns_that_workloads_do_not_use_are_known() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    fs::write(&file, "arrival_ns,status,dst,src,size_bytes,arrival_us,fct_ps,tenant\n").unwrap();
    assert_eq!(ignored_columns(&file, Format::Csv).unwrap(), ["status", "arrival_us", "fct_ps"]);
    let file = dir.path().join("t.parquet");
    write_parquet(&file, [flow((1, 0, 1, 9))]).unwrap();
    assert!(ignored_columns(&file, Format::Parquet).unwrap().is_empty());
    assert!(ignored_columns(&fixture("incast.cm"), Format::Htsim).unwrap().is_empty());
}
