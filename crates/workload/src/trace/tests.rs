//! Tests that written traces are read again, and that no text makes a reader panic.

mod csv;
mod goal;
mod import;
mod parquet;
mod waiting;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rampmeter_types::{Bytes, NodeId, Span, Time};
use tempfile::TempDir;

use super::{
    FlowOrder, Format, HostNames, Options, ReferenceRow, Trace, TraceRequirements, read,
    read_reference, read_trace, read_with_notes, write_csv, write_parquet, write_reference_csv,
};
use crate::flow::Flow;
use crate::graph::Graph;

fn flow((arrival, src, dst, size): (u64, u32, u32, u64)) -> Flow {
    Flow::new(Time::from_ps(arrival), NodeId::new(src), NodeId::new(dst), Bytes::new(size))
}

fn check(n_hosts: u32, order: FlowOrder) -> TraceRequirements {
    TraceRequirements::new(n_hosts, order)
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
    fn flows_in_csv_gzip_and_parquet_are_read_back_unchanged(flows in flows()) {
        let dir = TempDir::new().unwrap();
        let check = check(50, FlowOrder::Require);
        for name in ["a.csv", "a.csv.gz", "a.parquet"] {
            let file = dir.path().join(name);
            let format = Format::from_name(&file).unwrap();
            match format {
                Format::Parquet => write_parquet(&file, flows.iter().copied()).unwrap(),
                _ => write_csv(&file, flows.iter().copied()).unwrap(),
            }
            prop_assert_eq!(&read(&file, format, check).unwrap(), &flows);
        }
    }

    #[test]
    fn a_reference_file_is_read_back_unchanged(flows in flows(), fct in 0..1u64 << 60) {
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
        write_reference_csv(&file, &rows, &[]).unwrap();
        let read = read_reference(&file, Format::Csv, check(50, FlowOrder::Require)).unwrap();
        prop_assert_eq!(read, rows);
    }

    #[test]
    fn no_text_makes_the_reader_of_traces_panic(text in "[0-9a-z,>. \n-]{0,200}") {
        for format in [Format::Csv, Format::Yaps, Format::Htsim, Format::Hpcc, Format::Parquet] {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("any");
            fs::write(&file, &text).unwrap();
            let _ = read(&file, format, check(50, FlowOrder::Sort));
        }
    }
}

#[test]
fn columns_that_workloads_do_not_use_are_named() {
    let dir = TempDir::new().unwrap();
    let notes = |file: &std::path::Path, format, columns: &[(&str, &str)]| {
        let pair = |&(ours, theirs): &(&str, &str)| (ours.to_owned(), theirs.to_owned());
        let options = Options { columns: columns.iter().map(pair).collect(), ..Options::default() };
        read_with_notes(file, format, check(50, FlowOrder::Require), &options)
            .map(|(_, notes)| notes)
    };
    let name = dir.path().display();
    let file = dir.path().join("t.csv");
    let header = "arrival_ns,status,dst,src,size_bytes,arrival_us,fct_ps,tenant\n";
    fs::write(&file, format!("{header}1,done,2,1,9,1,,0\n")).unwrap();
    let unused = format!("{name}/t.csv: columns are not used: status, arrival_us");
    assert_eq!(notes(&file, Format::Csv, &[]).unwrap(), [unused]);
    let file = dir.path().join("t.parquet");
    write_parquet(&file, [flow((1, 0, 1, 9))]).unwrap();
    assert!(notes(&file, Format::Parquet, &[]).unwrap().is_empty());
    assert!(notes(&fixture("incast.cm"), Format::Csv, &[]).is_err());

    let file = dir.path().join("mine.csv");
    fs::write(&file, "when,from,to,len,src\n1,1,2,9,x\n").unwrap();
    let columns = [("arrival_us", "when"), ("src", "from"), ("dst", "to"), ("size_bytes", "len")];
    let unused = format!("{name}/mine.csv: columns are not used: src of the file");
    assert_eq!(notes(&file, Format::Csv, &columns).unwrap(), [unused]);
    let wrong = notes(&file, Format::Csv, &[("source", "from")]).unwrap_err().to_string();
    assert!(wrong.ends_with(", got source"), "{wrong}");
    let wrong = notes(&file, Format::Csv, &[("src", "From")]).unwrap_err().to_string();
    let expected =
        "mine.csv: expected a column From, as columns.src requires, got when,from,to,len,src";
    assert!(wrong.ends_with(expected), "{wrong}");
}

#[test]
fn numbers_are_names_if_a_node_has_one_for_a_name() {
    let mut names = HostNames::default();
    for (name, host) in [("1", Some(0)), ("2", Some(1)), ("3", Some(2)), ("0", None)] {
        names.insert(name, host);
    }
    let options = Options { hosts: Some(names), ..Options::default() };
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    let ends = |columns: &str, text: &str| {
        fs::write(&file, format!("{columns}\n{text}\n")).unwrap();
        match read_with_notes(&file, Format::Csv, check(3, FlowOrder::Require), &options) {
            Ok((Trace::Flows(rows), _)) => Ok((rows[0].flow.src.get(), rows[0].flow.dst.get())),
            Ok(_) => panic!("no flow waits"),
            Err(error) => Err(error.to_string().split_once("t.csv:").unwrap().1.to_owned()),
        }
    };
    let columns = "arrival_us,src,dst,size_bytes";
    assert_eq!(ends(columns, "1,1,3,9"), Ok((0, 2)));
    let wrong = "2: dst: expected a host of the topology, got \"0\", a switch";
    assert_eq!(ends(columns, "1,1,0,9"), Err(wrong.to_owned()));
    // Results have numbers of hosts.
    assert_eq!(ends("arrival_us,src,dst,size_bytes,status", "1,1,2,9,done"), Ok((1, 2)));
}

#[test]
fn hosts_have_the_names_of_the_network() {
    let mut names = HostNames::default();
    names.insert("gpu-a", Some(1));
    names.insert("gpu-b", Some(2));
    names.insert("leaf", None);
    let options = Options { hosts: Some(names), ..Options::default() };
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    let ends = |text: &str| {
        fs::write(&file, format!("arrival_us,src,dst,size_bytes\n1,{text},9\n")).unwrap();
        match read_with_notes(&file, Format::Csv, check(4, FlowOrder::Require), &options) {
            Ok((Trace::Flows(rows), _)) => Ok((rows[0].flow.src.get(), rows[0].flow.dst.get())),
            Ok(_) => panic!("no flow waits"),
            Err(error) => Err(error.to_string().split_once("t.csv:").unwrap().1.to_owned()),
        }
    };
    assert_eq!(ends("gpu-b,gpu-a"), Ok((2, 1)));
    assert_eq!(ends("3,gpu-a"), Ok((3, 1)));
    let wrong = "2: dst: expected a host of the topology, got \"leaf\", a switch";
    assert_eq!(ends("gpu-a,leaf"), Err(wrong.to_owned()));
    let wrong =
        "2: src: expected a host of the topology, got \"gpu\", which is not in the topology";
    assert_eq!(ends("gpu,gpu-a"), Err(wrong.to_owned()));
    // A network without names.
    let options = Options { hosts: Some(HostNames::default()), ..Options::default() };
    fs::write(&file, "arrival_us,src,dst,size_bytes\n1,h1,h99,9\n").unwrap();
    let error = read_with_notes(&file, Format::Csv, check(4, FlowOrder::Require), &options);
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("t.csv:2: dst: expected a host of h0 to h3, got \"h99\""), "{error}");
    let wrong = "2: dst: expected a host other than src, got gpu-a";
    assert_eq!(ends("gpu-a,gpu-a"), Err(wrong.to_owned()));
}
