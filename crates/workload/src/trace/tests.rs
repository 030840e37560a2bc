//! Round trips, imports, and files that are wrong.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rampmeter_core::{Bytes, NodeId, Span, Time};
use tempfile::TempDir;

use super::{
    Check, Format, Order, ReferenceRow, ignored_columns, read, read_reference, write_csv,
    write_parquet, write_reference_csv,
};
use crate::flow::Flow;

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

mod waiting {
    use super::*;
    use crate::graph::{Graph, GraphBuilder};
    use crate::trace::{Trace, read_trace, write_graph_csv, write_graph_parquet};
    use rampmeter_core::TenantId;

    prop_compose! {
        /// Flows and computations of 5 hosts that wait for any before them that they may wait for.
        fn graphs()(rows in prop::collection::vec(
            (
                (0..1u64 << 40, 0..5u32, 0..5u32, 1..1u64 << 40),
                (0..1u64 << 40, 0..3u32, prop::option::of(0..1u64 << 40)),
                prop::collection::vec(0..60usize, 0..4),
            ),
            2..60,
        )) -> Graph {
            let mut builder = GraphBuilder::default();
            for (number, ((at, src, by, size), (delay, tenant, deadline), picks)) in
                rows.into_iter().enumerate()
            {
                // The first two wait: the first computes, and the second waits for it.
                let src = if number < 2 { 0 } else { src };
                let by = if number == 0 { 0 } else { by.max(u32::from(number == 1)) };
                let size = if by == 0 { 0 } else { size };
                let waiting = Flow {
                    tenant: TenantId::new(tenant),
                    deadline: deadline.map_or(Span::MAX, Span::from_ps),
                    // Arrivals in order, as rows that wait for nothing must be.
                    ..flow(((number as u64) << 41 | at, src, (src + by) % 5, size))
                };
                let delay = Span::from_ps(delay.max(1));
                let node = builder.flow(waiting, delay);
                let mut picks: Vec<u32> =
                    picks.iter().map(|pick| (pick % number.max(1)) as u32).collect();
                picks.sort_unstable();
                for pick in picks.into_iter().filter(|_| number > 0) {
                    let (from, to) = builder.ends(pick);
                    if [from, to].contains(&waiting.src) {
                        builder.wait(node, pick);
                    }
                }
            }
            builder.build().unwrap()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn csv_gzip_and_parquet_give_back_what_was_written(graph in graphs()) {
            let dir = TempDir::new().unwrap();
            for name in ["a.csv", "a.csv.gz", "a.parquet"] {
                let file = dir.path().join(name);
                let format = Format::of(&file).unwrap();
                match format {
                    Format::Parquet => write_graph_parquet(&file, &graph).unwrap(),
                    _ => write_graph_csv(&file, &graph).unwrap(),
                }
                match read_trace(&file, format, check(5, Order::Require)).unwrap() {
                    Trace::Graph(read) => prop_assert_eq!(&read, &graph, "{}", name),
                    Trace::Flows(_) => prop_assert!(false, "{name} waits for nothing"),
                }
            }
        }

        #[test]
        fn tenants_and_deadlines_of_plain_flows_survive(
            flows in flows(), tenant in 0..9u32, deadline in prop::option::of(0..1u64 << 50),
        ) {
            let of = |(i, flow): (usize, Flow)| match i % 3 {
                0 => flow,
                _ => Flow {
                    tenant: TenantId::new(tenant),
                    deadline: deadline.map_or(Span::MAX, Span::from_ps),
                    ..flow
                },
            };
            let flows: Vec<Flow> = flows.into_iter().enumerate().map(of).collect();
            prop_assume!(!flows.is_empty());
            let dir = TempDir::new().unwrap();
            let (csv, parquet) = (dir.path().join("a.csv"), dir.path().join("a.parquet"));
            write_csv(&csv, flows.iter().copied()).unwrap();
            write_parquet(&parquet, flows.iter().copied()).unwrap();
            let check = check(50, Order::Require);
            prop_assert_eq!(&read(&csv, Format::Csv, check).unwrap(), &flows);
            prop_assert_eq!(&read(&parquet, Format::Parquet, check).unwrap(), &flows);
        }
    }

    fn parse(text: &str) -> Result<Graph, String> {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.csv");
        fs::write(&file, text).unwrap();
        match read_trace(&file, Format::Csv, check(16, Order::Require)) {
            Ok(Trace::Graph(graph)) => Ok(graph),
            Ok(Trace::Flows(rows)) => panic!("{rows:?}"),
            Err(error) => Err(error.to_string().replace(&format!("{}/", dir.path().display()), "")),
        }
    }

    #[test]
    fn rows_wait_by_number_or_by_the_column_flow_in_any_order() {
        let by_row = "arrival_us,src,dst,size_bytes,after,compute_us\n\
                      ,1,2,9,1;2,0.5\n3,0,1,9,,\n4,5,1,9,,0\n";
        let by_id = "flow,arrival_us,src,dst,size_bytes,after,compute_us\n\
                     7,,1,2,9,40 1000,0.5\n40,3,0,1,9,,\n1000,4,5,1,9,,\n";
        let graph = parse(by_row).unwrap();
        assert_eq!(graph.dependencies(), [vec![1, 2], vec![], vec![]]);
        assert_eq!((graph.delay(0), graph.node(0).arrival), (Span::from_ns(500), Time::ZERO));
        assert_eq!(graph.node(1).arrival, Time::ZERO + Span::from_us(3));
        assert_eq!(parse(by_id).unwrap(), graph);
    }

    #[test]
    fn wrong_rows_say_where_what_was_expected_and_what_came() {
        let head = "flow,arrival_ps,src,dst,size_bytes,after,compute_ps,tenant,deadline_ns\n";
        let first = "5,1,0,1,9,,,,\n";
        let cases = [
            ("6,,1,2,9,7,,,", "t.csv:3: after: expected numbers of flows of this file, got 7"),
            (
                "6,,1,2,9,x,,,",
                "t.csv:3: after: expected whole numbers, separated by spaces or \
                               semicolons, got \"x\"",
            ),
            (
                "6,,3,2,9,5,,,",
                "t.csv:3: after: expected flows that host 3 sends or receives, got 5",
            ),
            (
                "6,,1,2,9,5 6,,,",
                "t.csv:3: after: expected flows that do not wait for this one in turn, got 6",
            ),
            (
                "6,,1,2,9,8,,,\n8,,2,1,9,6,,,",
                "t.csv:3: after: expected flows that do not wait for this one in turn, got 8",
            ),
            ("5,,1,2,9,5,,,", "t.csv:3: flow: expected a number that no row before has, got 5"),
            (",,1,2,9,5,,,", "t.csv:3: flow: expected a whole number, got none"),
            ("6,,1,2,0,5,,,", "t.csv:3: size_bytes: expected at least 1, got 0"),
            ("6,,1,1,9,5,,,", "t.csv:3: dst: expected a host other than src, got 1"),
            ("6,,1,16,9,5,,,", "t.csv:3: dst: expected a host below 16, got 16"),
            ("6,,1,2,9,5,-1,,", "t.csv:3: compute: expected a time from 0 to 2^63 ps, got \"-1\""),
            ("6,,1,2,9,5,,65536,", "t.csv:3: tenant: expected a tenant below 65536, got 65536"),
            (
                "6,,1,2,9,5,,,soon",
                "t.csv:3: deadline: expected a time from 0 to 2^63 ps, got \"soon\"",
            ),
            ("6,,1,2,9,,1,,", "t.csv:3: arrival: expected a time from 0 to 2^63 ps, got \"\""),
            ("6,0,1,2,9,,1,,", "t.csv:3: arrival: expected at least 1 ps, the one before, got 0"),
        ];
        for (line, message) in cases {
            assert_eq!(parse(&format!("{head}{first}{line}\n")).unwrap_err(), message);
        }
        assert_eq!(
            parse("arrival_ps,src,dst,size_bytes,afterwards\n").unwrap_err(),
            "t.csv: unknown column \"afterwards\", expected some of arrival_us, compute_us, \
             deadline_us, src, dst, size_bytes, flow, after, tenant"
        );
    }

    #[test]
    fn a_table_may_hold_ids_as_text_or_as_single_numbers() {
        use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
        use std::sync::Arc;
        let write = |after: ArrayRef| {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("t.parquet");
            let hosts = |ids: [u64; 3]| Arc::new(UInt64Array::from(ids.to_vec())) as ArrayRef;
            let batch = RecordBatch::try_from_iter([
                ("arrival_ps", Arc::new(Int64Array::from(vec![Some(1), None, None])) as ArrayRef),
                ("src", hosts([0, 1, 0])),
                ("dst", hosts([1, 2, 2])),
                ("size_bytes", hosts([9, 9, 9])),
                ("after", after),
            ])
            .unwrap();
            let out = fs::File::create(&file).unwrap();
            let mut writer =
                ::parquet::arrow::ArrowWriter::try_new(out, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            match read_trace(&file, Format::Parquet, check(16, Order::Require)) {
                Ok(Trace::Graph(graph)) => Ok(graph.dependencies()),
                Ok(Trace::Flows(rows)) => panic!("{rows:?}"),
                Err(error) => Err(error.to_string()),
            }
        };
        let expected = [vec![], vec![0], vec![0]];
        let texts = StringArray::from(vec![None, Some("0"), Some("0")]);
        assert_eq!(write(Arc::new(texts)).unwrap(), expected);
        let single = Int64Array::from(vec![None, Some(0), Some(0)]);
        assert_eq!(write(Arc::new(single)).unwrap(), expected);
        let wrong = write(Arc::new(StringArray::from(vec![None, Some("0"), Some("a")])));
        assert!(
            wrong.unwrap_err().ends_with("t.parquet:3: after: expected whole numbers, got \"a\"")
        );
    }
}

mod csv {
    use super::*;

    fn parse(text: &str, order: Order) -> Result<Vec<ReferenceRow>, String> {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.csv");
        fs::write(&file, text).unwrap();
        read_reference(&file, Format::Csv, check(16, order))
            .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    }

    #[test]
    fn columns_may_be_in_any_order_and_unit_among_those_of_results() {
        let text = "status,size_bytes,dst,src,arrival_us\nx,1460,1,0,0.0246\n\"y,z\",5840,2,0,1\n";
        let rows = parse(text, Order::Require).unwrap();
        assert_eq!(rows[0].flow, flow((24_600, 0, 1, 1460)));
        assert_eq!(rows[1].flow, flow((1_000_000, 0, 2, 5840)));
        assert_eq!((rows[0].fct, rows[0].ideal), (None, None));
    }

    #[test]
    fn the_format_of_recorded_runs_carries_completion_and_ideal() {
        let text = "flow,arrival_ps,src,dst,size_bytes,fct_ps,ideal_ps\n\
                    0,24600,1,12,1460,5511200,5508000\n1,31000,3,4,1460,,5508000\n";
        let rows = parse(text, Order::Require).unwrap();
        assert_eq!(rows[0].fct, Some(Span::from_ps(5_511_200)));
        assert_eq!((rows[1].fct, rows[1].ideal), (None, Some(Span::from_ps(5_508_000))));
    }

    #[test]
    fn flows_out_of_order_are_rejected_or_sorted() {
        let text = "arrival_ps,src,dst,size_bytes\n5,0,1,1\n4,2,3,1\n5,4,5,1\n";
        assert_eq!(
            parse(text, Order::Require).unwrap_err(),
            "t.csv:3: arrival: expected at least 5 ps, the one before, got 4"
        );
        let sources: Vec<u32> =
            parse(text, Order::Sort).unwrap().iter().map(|row| row.flow.src.get()).collect();
        assert_eq!(sources, [2, 0, 4]);
    }

    #[test]
    fn wrong_files_say_where_what_was_expected_and_what_came() {
        let head = "arrival_ps,src,dst,size_bytes,fct_ps\n";
        let cases = [
            ("1,0,1,0,", "t.csv:2: size_bytes: expected at least 1, got 0"),
            ("1,3,3,9,", "t.csv:2: dst: expected a host other than src, got 3"),
            ("1,16,3,9,", "t.csv:2: src: expected a host below 16, got 16"),
            ("1,0,99999999999,9,", "t.csv:2: dst: expected a host below 16, got 99999999999"),
            ("1,0,1,9,\n2,x,1,9,", "t.csv:3: src: expected a whole number, got \"x\""),
            ("1,0,1,1.5,", "t.csv:2: size_bytes: expected a whole number, got \"1.5\""),
            ("-1,0,1,9,", "t.csv:2: arrival: expected a time from 0 to 2^63 ps, got \"-1\""),
            (",0,1,9,", "t.csv:2: arrival: expected a time from 0 to 2^63 ps, got \"\""),
            ("1,0,1", "t.csv:2: size_bytes: expected a whole number, got \"\""),
            ("1,0,1,9,slow", "t.csv:2: fct_ps: expected a whole number, got \"slow\""),
        ];
        for (line, message) in cases {
            assert_eq!(parse(&format!("{head}{line}\n"), Order::Require).unwrap_err(), message);
        }
        assert_eq!(
            parse("arrival,src,dst,size_bytes\n", Order::Require).unwrap_err(),
            "t.csv: expected a column arrival_ps (or arrival_ns, arrival_us, arrival_s), \
             got arrival,src,dst,size_bytes"
        );
        assert_eq!(
            parse("arrival_ps,src,size_bytes\n", Order::Require).unwrap_err(),
            "t.csv: expected a column dst, got arrival_ps,src,size_bytes"
        );
        assert_eq!(
            parse("arrival_ps,src,dst,size_bytes\n", Order::Require).unwrap_err(),
            "t.csv: expected at least one flow, got none"
        );
        let message = parse("", Order::Require).unwrap_err();
        assert!(message.starts_with("t.csv: expected a column arrival_ps"), "{message}");
    }

    #[test]
    fn a_file_that_is_not_compressed_although_its_name_says_so_is_an_error() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.csv.gz");
        fs::write(&file, "arrival_ps,src,dst,size_bytes\n").unwrap();
        let message = read(&file, Format::Csv, check(2, Order::Require)).unwrap_err().to_string();
        assert!(message.contains("t.csv.gz: invalid gzip header"), "{message}");
    }
}

mod parquet {
    use std::fs::File;
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use ::parquet::basic::Compression;
    use ::parquet::file::properties::WriterProperties;
    use arrow_array::{
        Array, ArrayRef, Float32Array, Float64Array, Int16Array, RecordBatch, StringArray,
        UInt8Array,
    };

    use super::*;

    type Named = (&'static str, ArrayRef);

    fn table(columns: Vec<Named>, compression: Compression) -> Result<Vec<Flow>, String> {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.parquet");
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_compression(compression).build();
        let out = File::create(&file).unwrap();
        let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        read(&file, Format::Parquet, check(16, Order::Require))
            .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    }

    /// Two flows in types that dataframes have.
    fn columns(arrival: &'static str, arrivals: [f64; 2]) -> Vec<Named> {
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
        for (name, unit) in
            [("arrival_ps", 1.0), ("arrival_ns", 1e3), ("arrival_us", 1e6), ("arrival_s", 1e12)]
        {
            let read = table(columns(name, [2e12 / unit, 3e12 / unit]), Compression::SNAPPY);
            let arrivals: Vec<u64> = read.unwrap().iter().map(|f| f.arrival.as_ps()).collect();
            assert_eq!(arrivals, [2_000_000_000_000, 3_000_000_000_000], "{name}");
        }
    }

    #[test]
    fn wrong_columns_say_where_what_was_expected_and_what_came() {
        let error = |columns| table(columns, Compression::SNAPPY).unwrap_err();
        let with = |name: &'static str, array: ArrayRef| {
            let mut all = columns("arrival_us", [1.0, 2.0]);
            all.retain(|&(column, _)| column != name);
            all.push((name, array));
            all
        };
        let sizes =
            |sizes: Vec<Option<f64>>| with("size_bytes", Arc::new(Float64Array::from(sizes)));
        assert_eq!(
            error(sizes(vec![Some(1.0), Some(1.5)])),
            "t.parquet:2: size_bytes: expected a whole number, got 1.5"
        );
        assert_eq!(
            error(sizes(vec![None, Some(1.0)])),
            "t.parquet:1: size_bytes: expected a whole number, got null"
        );
        assert_eq!(
            error(columns("arrival_us", [1.0, -2.0])),
            "t.parquet:2: arrival: expected a time from 0 to 2^63 ps, got -2"
        );
        assert_eq!(
            error(with("src", Arc::new(StringArray::from(vec!["a", "b"])))),
            "t.parquet: column src: expected numbers, got Utf8"
        );
        assert_eq!(
            error(columns("arrival", [1.0, 2.0])),
            "t.parquet: expected a column arrival_ps (or arrival_ns, arrival_us, arrival_s), \
             got arrival,src,dst,size_bytes"
        );
        let empty = columns("arrival_us", [1.0, 2.0]).into_iter();
        assert_eq!(
            error(empty.map(|(name, array)| (name, array.slice(0, 0))).collect()),
            "t.parquet: expected at least one flow, got none"
        );
    }

    #[test]
    fn wrong_tables_name_the_row() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.parquet");
        let rows = [(1, 0, 1, 9), (2, 4, 4, 9)].map(flow);
        write_parquet(&file, rows).unwrap();
        let message =
            read(&file, Format::Parquet, check(16, Order::Require)).unwrap_err().to_string();
        assert!(message.ends_with("t.parquet:2: dst: expected a host other than src, got 4"));
        fs::write(&file, "not a table").unwrap();
        let message =
            read(&file, Format::Parquet, check(16, Order::Require)).unwrap_err().to_string();
        assert!(message.contains("t.parquet: Parquet error: "), "{message}");
    }
}

mod import {
    use super::*;

    #[test]
    fn yaps_lines_are_sorted_and_lose_the_first_second() {
        let rows =
            read_reference(&fixture("yaps.log"), Format::Yaps, check(144, Order::Require)).unwrap();
        let flows: Vec<Flow> = rows.iter().map(|row| row.flow).collect();
        let expected =
            [(24_600, 1, 22, 1460), (31_000, 83, 103, 1460), (296_900, 128, 137, 5840)].map(flow);
        assert_eq!(flows, expected);
        assert_eq!(rows[2].fct, Some(Span::from_ps(3_209_600)));
        assert_eq!(rows[0].ideal, Some(Span::from_ps(5_508_000)));
    }

    #[test]
    fn a_connection_matrix_is_read_in_picoseconds() {
        let flows = read(&fixture("incast.cm"), Format::Htsim, check(16, Order::Require)).unwrap();
        let expected = [(0, 1, 0, 2_000_000), (0, 2, 0, 2_000_000), (5_000_000, 3, 4, 4000)];
        assert_eq!(flows, expected.map(flow));
    }

    #[test]
    fn a_flow_file_is_read_up_to_its_count() {
        let flows = read(&fixture("flow.txt"), Format::Hpcc, check(16, Order::Require)).unwrap();
        let expected = [(2_000_000_000_000, 2, 1, 200_000), (2_000_015_000_000, 3, 1, 150_000)];
        assert_eq!(flows, expected.map(flow));
    }

    #[test]
    fn wrong_files_say_where_what_was_expected_and_what_came() {
        let dir = TempDir::new().unwrap();
        let cases = [
            (Format::Yaps, "no flows\n", "f: expected lines of finished flows, got none"),
            (
                Format::Yaps,
                "0 1460 a 22 1.0 2.0 1.0 1.0 1.0 1/1//1 0/0/0 0\n",
                "f:1: src: expected a whole number, got \"a\"",
            ),
            (
                Format::Yaps,
                "0 1460 1 22 soon 2.0 1.0 1.0 1.0 1/1//1 0/0/0 0\n",
                "f:1: start: expected microseconds, got \"soon\"",
            ),
            (
                Format::Htsim,
                "Nodes 4\nConnections 2\n1->0 id 1 start 0 size 5\n",
                "f:2: Connections: expected 1, as many as follow, got \"2\"",
            ),
            (
                Format::Htsim,
                "1->0 id 1 trigger 1 size 5\n",
                "f:1: trigger: expected a start time instead of a trigger, got \"1\"",
            ),
            (Format::Htsim, "1->0 size 5\n", "f:1: start: expected a start time, got \"none\""),
            (Format::Htsim, "1->0 start 0\n", "f:1: size: expected a size, got \"none\""),
            (
                Format::Htsim,
                "1->0 start 0 length 5\n",
                "f:1: connection: expected start, size, id or prio, got \"length\"",
            ),
            (Format::Htsim, "flow 1\n", "f:1: line: expected a connection src->dst, got \"flow\""),
            (Format::Hpcc, "", "f:1: count: expected a whole number, got \"\""),
            (
                Format::Hpcc,
                "2\n2 1 3 100 200000 2\n",
                "f:1: count: expected 1, as many as follow, got \"2\"",
            ),
            (
                Format::Hpcc,
                "1\n2 1 3 200000 2\n",
                "f:2: line: expected src dst pg dport size start, got \"2 1 3 200000 2\"",
            ),
            (
                Format::Hpcc,
                "2\n2 1 3 100 5 2\n2 1 3 100 5 1\n",
                "f:3: arrival: expected at least 2000000000000 ps, the one before, \
                 got 1000000000000",
            ),
        ];
        for (format, text, message) in cases {
            let file = dir.path().join("f");
            fs::write(&file, text).unwrap();
            let error = read(&file, format, check(144, Order::Require)).unwrap_err().to_string();
            assert_eq!(error.replace(&format!("{}/", dir.path().display()), ""), message);
        }
    }
}
