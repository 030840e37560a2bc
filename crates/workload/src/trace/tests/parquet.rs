//! Parquet files, right and wrong.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int64Array, RecordBatch, StringArray, UInt8Array,
};

use super::*;
use crate::trace::host_names;

const BYTES: &str = "expected a whole number of bytes, such as 2000000 or \"2MB\"";
const MICROSECONDS: &str = "expected microseconds, such as 5 or \"5us\", from 0 to 2^63 ps";

type NamedColumn = (&'static str, ArrayRef);

fn table(columns: Vec<NamedColumn>, compression: Compression) -> Result<Vec<Flow>, String> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let out = File::create(&file).unwrap();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    read(&file, Format::Parquet, check(16, FlowOrder::Require))
        .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
}

/// Two flows in types that dataframes have.
fn columns(arrival: &'static str, arrivals: [f64; 2]) -> Vec<NamedColumn> {
    vec![
        (arrival, Arc::new(Float64Array::from(arrivals.to_vec()))),
        ("src", Arc::new(Int16Array::from(vec![0, 1]))),
        ("dst", Arc::new(UInt8Array::from(vec![2, 3]))),
        ("size_bytes", Arc::new(Float32Array::from(vec![1460.0, 2920.0]))),
    ]
}

#[test]
fn every_compression_reads_alike() {
    let all = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ];
    let flows = [(24_600, 0, 2, 1460), (1_000_000, 1, 3, 2920)].map(flow);
    for compression in all {
        let read = table(columns("arrival_us", [0.0246, 1.0]), compression).unwrap();
        assert_eq!(read, flows, "{compression:?}");
    }
}

#[test]
fn arrivals_may_be_in_any_unit() {
    for (name, unit) in [
        ("arrival_ps", 1.0),
        ("arrival_ns", 1e3),
        ("arrival_us", 1e6),
        ("arrival_ms", 1e9),
        ("arrival_s", 1e12),
    ] {
        let read = table(columns(name, [2e12 / unit, 3e12 / unit]), Compression::SNAPPY);
        let arrivals: Vec<u64> = read.unwrap().iter().map(|f| f.arrival.as_ps()).collect();
        assert_eq!(arrivals, [2_000_000_000_000, 3_000_000_000_000], "{name}");
    }
}

#[test]
fn texts_may_have_units() {
    let with = |arrivals: [&str; 2], sizes: [&str; 2]| {
        let mut all = columns("arrival_us", [1.0, 2.0]);
        all.retain(|&(column, _)| !["arrival_us", "size_bytes"].contains(&column));
        all.push(("arrival_us", Arc::new(StringArray::from(arrivals.to_vec()))));
        all.push(("size_bytes", Arc::new(StringArray::from(sizes.to_vec()))));
        table(all, Compression::SNAPPY)
    };
    let flows = [(24_600, 0, 2, 1460), (1_000_000_000, 1, 3, 2_000_000)].map(flow);
    assert_eq!(with(["0.0246", "1ms"], ["1460", "2MB"]).unwrap(), flows);
    let expected = format!("t.parquet:2: size_bytes: {BYTES}, got \"2 MBit\"");
    assert_eq!(with(["1", "2"], ["1", "2 MBit"]).unwrap_err(), expected);
    let expected = format!("t.parquet:2: size_bytes: {BYTES}, got null");
    assert_eq!(with(["1", "2"], ["1", " "]).unwrap_err(), expected);
    let expected = format!("t.parquet:1: arrival_us: {MICROSECONDS}, got \"soon\"");
    assert_eq!(with(["soon", "2"], ["1", "2"]).unwrap_err(), expected);
}

#[test]
fn errors_of_parquet_columns_name_place_expectation_and_content() {
    let error = |columns| table(columns, Compression::SNAPPY).unwrap_err();
    let with = |name: &'static str, array: ArrayRef| {
        let mut all = columns("arrival_us", [1.0, 2.0]);
        all.retain(|&(column, _)| column != name);
        all.push((name, array));
        all
    };
    let sizes = |sizes: Vec<Option<f64>>| with("size_bytes", Arc::new(Float64Array::from(sizes)));
    assert_eq!(
        error(sizes(vec![Some(1.0), Some(1.5)])),
        format!("t.parquet:2: size_bytes: {BYTES}, got 1.5")
    );
    assert_eq!(
        error(sizes(vec![None, Some(1.0)])),
        format!("t.parquet:1: size_bytes: {BYTES}, got null")
    );
    assert_eq!(
        error(columns("arrival_us", [1.0, -2.0])),
        format!("t.parquet:2: arrival_us: {MICROSECONDS}, got -2")
    );
    assert_eq!(
        error(with("src", Arc::new(StringArray::from(vec!["a", "b"])))),
        "t.parquet:1: src: expected a whole number, got \"a\""
    );
    assert_eq!(
        error(columns("arrival", [1.0, 2.0])),
        "t.parquet: expected a column arrival_ps (or arrival_ns, arrival_us, arrival_ms, \
         arrival_s), got arrival,src,dst,size_bytes"
    );
    let empty = columns("arrival_us", [1.0, 2.0]).into_iter();
    assert_eq!(
        error(empty.map(|(name, array)| (name, array.slice(0, 0))).collect()),
        "t.parquet: expected at least one flow, got none"
    );
}

/// Hosts as texts, and as the categories of dataframes.
#[test]
fn hosts_may_be_texts_and_categories() {
    let flows = [(1_000_000, 0, 2, 1460), (2_000_000, 1, 3, 2920)].map(flow);
    let texts = ["0", " 1"];
    let categories: DictionaryArray<Int8Type> = ["0", "1"].into_iter().collect();
    let keys = Int8Array::from(vec![1, 0]);
    let numbers = DictionaryArray::new(keys, Arc::new(Int64Array::from(vec![1, 0])));
    let sources: [ArrayRef; 3] =
        [Arc::new(StringArray::from(texts.to_vec())), Arc::new(categories), Arc::new(numbers)];
    for src in sources {
        let kind = src.data_type().clone();
        let mut all = columns("arrival_us", [1.0, 2.0]);
        all[1].1 = src;
        assert_eq!(table(all, Compression::SNAPPY).unwrap(), flows, "{kind}");
    }
}

/// Results have the user's names of hosts next to their numbers.
#[test]
fn names_of_hosts_are_those_of_the_results() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.parquet");
    write_parquet(&file, [flow((1, 0, 1, 9))]).unwrap();
    assert!(host_names(&file).unwrap().is_empty());
    let names = ["1", "2", "0"].map(str::to_owned);
    let entry = KeyValue::new("rampmeter.hosts".to_owned(), Some("[\"1\",\"2\",\"0\"]".to_owned()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![entry])).build();
    let batch = RecordBatch::try_from_iter(columns("arrival_us", [1.0, 2.0])).unwrap();
    let out = File::create(&file).unwrap();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(host_names(&file).unwrap(), names);
    assert!(HostNames::has_number(&names));
    assert!(!HostNames::has_number(&["h1".to_owned()]));
}

#[test]
fn duplicate_ids_in_parquet_are_errors() {
    let mut columns = columns("arrival_us", [1.0, 2.0]);
    columns.push(("flow", Arc::new(Int64Array::from(vec![5, 5]))));
    let got = table(columns, Compression::UNCOMPRESSED).unwrap_err();
    assert!(
        got.contains(":2: flow: expected a number that no row before has, got 5, as "),
        "{got}"
    );
    assert!(got.ends_with(":1 has"), "{got}");
}

#[test]
fn wrong_tables_name_the_row() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.parquet");
    let rows = [(1, 0, 1, 9), (2, 4, 4, 9)].map(flow);
    write_parquet(&file, rows).unwrap();
    let message =
        read(&file, Format::Parquet, check(16, FlowOrder::Require)).unwrap_err().to_string();
    assert!(message.ends_with("t.parquet:2: dst: expected a host other than src, got 4"));
    fs::write(&file, "not a table").unwrap();
    let message =
        read(&file, Format::Parquet, check(16, FlowOrder::Require)).unwrap_err().to_string();
    assert!(message.contains("t.parquet: Parquet error: "), "{message}");
}

/// The arrival of a flow that was not started is the end of its run.
#[test]
fn unstarted_flows_of_results_are_omitted_with_a_note() {
    let dir = TempDir::new().unwrap();
    let notes_of = |name: &str| {
        let path = dir.path().join(name);
        let format = Format::from_name(&path).unwrap();
        let read =
            read_with_notes(&path, format, check(16, FlowOrder::Require), &Options::default());
        read.map(|(trace, notes)| match trace {
            Trace::Flows(rows) => (rows.len(), notes.last().cloned().unwrap_or_default()),
            Trace::Graph(_) => panic!("results have no dependencies"),
        })
    };
    let write = |statuses: [&str; 2]| {
        let mut all = columns("arrival_us", [1.0, 2.0]);
        all.push(("outcome_ps", Arc::new(Int64Array::from(vec![Some(1), None]))));
        all.push(("status", Arc::new(StringArray::from(statuses.to_vec()))));
        let batch = RecordBatch::try_from_iter(all).unwrap();
        let out = File::create(dir.path().join("r.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let [first, second] = statuses;
        let csv = format!(
            "arrival_us,src,dst,size_bytes,outcome_ps,status\n1,0,2,9,1,{first}\n2,1,3,9,,{second}\n"
        );
        fs::write(dir.path().join("r.csv"), csv).unwrap();
    };
    let note = "results have no dependencies (after): flows that waited for others start at the \
                times of that run";
    for name in ["r.parquet", "r.csv"] {
        let file = dir.path().join(name).display().to_string();
        write(["delivered", "unfinished"]);
        assert_eq!(notes_of(name).unwrap(), (2, format!("{file}: {note}")));
        write(["delivered", "not-started"]);
        let left = format!("{file}: {note}, and 1 flow of status not-started is omitted");
        assert_eq!(notes_of(name).unwrap(), (1, left));
        write(["not-started", "not-started"]);
        let error = notes_of(name).unwrap_err().to_string();
        assert_eq!(error, format!("{file}: expected at least one flow, got none"));
    }
}
