//! Flows that depend on others, written to files and read again.

use super::*;
use crate::graph::{Graph, GraphBuilder};
use crate::trace::{Trace, read_trace, write_graph_csv, write_graph_parquet};
use rampmeter_types::TenantId;

prop_compose! {
    /// Returns the flows and computations of 5 hosts, with any valid dependencies on earlier ones.
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
            // The first two have a dependency: the first computes, and the second depends on it.
            let src = if number < 2 { 0 } else { src };
            let by = if number == 0 { 0 } else { by.max(u32::from(number == 1)) };
            let size = if by == 0 { 0 } else { size };
            let waiting = Flow {
                tenant: TenantId::new(tenant),
                deadline: deadline.map_or(Span::MAX, Span::from_ps),
                // Arrivals in order, as required for rows without dependencies.
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
    fn dependencies_in_csv_gzip_and_parquet_are_read_back_unchanged(graph in graphs()) {
        let dir = TempDir::new().unwrap();
        for name in ["a.csv", "a.csv.gz", "a.parquet"] {
            let file = dir.path().join(name);
            let format = Format::from_name(&file).unwrap();
            match format {
                Format::Parquet => write_graph_parquet(&file, &graph).unwrap(),
                _ => write_graph_csv(&file, &graph).unwrap(),
            }
            match read_trace(&file, format, check(5, FlowOrder::Require)).unwrap() {
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
        let check = check(50, FlowOrder::Require);
        prop_assert_eq!(&read(&csv, Format::Csv, check).unwrap(), &flows);
        prop_assert_eq!(&read(&parquet, Format::Parquet, check).unwrap(), &flows);
    }
}

fn parse(text: &str) -> Result<Graph, String> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    fs::write(&file, text).unwrap();
    match read_trace(&file, Format::Csv, check(16, FlowOrder::Require)) {
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
fn errors_of_dependencies_name_place_expectation_and_content() {
    let head = "flow,arrival_ps,src,dst,size_bytes,after,compute_ps,tenant,deadline_ns\n";
    let first = "5,1,0,1,9,,,,\n";
    let cases = [
        ("6,,1,2,9,7,,,", "t.csv:3: after: expected numbers of flows of this file, got 7"),
        (
            "6,,1,2,9,x,,,",
            "t.csv:3: after: expected whole numbers, separated by spaces or \
                           semicolons, got \"x\"",
        ),
        ("6,,3,2,9,5,,,", "t.csv:3: after: expected flows that host 3 sends or receives, got 5"),
        ("6,,1,2,9,5 6,,,", "t.csv:3: after: expected flows that do not depend on this one, got 6"),
        (
            "6,,1,2,9,8,,,\n8,,2,1,9,6,,,",
            "t.csv:3: after: expected flows that do not depend on this one, got 8",
        ),
        (
            "5,,1,2,9,5,,,",
            "t.csv:3: flow: expected a number that no row before has, got 5, as t.csv:2 has",
        ),
        (",,1,2,9,5,,,", "t.csv:3: flow: expected a whole number, got none"),
        ("6,,1,2,0,5,,,", "t.csv:3: size_bytes: expected at least 1, got 0"),
        ("6,,1,1,9,5,,,", "t.csv:3: dst: expected a host other than src, got 1"),
        ("6,,1,16,9,5,,,", "t.csv:3: dst: expected a host below 16, got 16"),
        ("6,,1,2,9,5,-1,,", "t.csv:3: compute_ps: expected PICOSECONDS, got \"-1\""),
        ("6,,1,2,9,5,,65536,", "t.csv:3: tenant: expected a tenant below 65536, got 65536"),
        ("6,,1,2,9,5,,,soon", "t.csv:3: deadline_ns: expected NANOSECONDS, got \"soon\""),
        ("6,,1,2,9,,1,,", "t.csv:3: arrival_ps: expected PICOSECONDS, got \"\""),
        (
            "6,0,1,2,9,,1,,",
            "t.csv:3: arrival_ps: expected at least 1 ps, the one before, unless sort is set, got \
             0",
        ),
    ];
    for (line, message) in cases {
        let message = message
            .replace("PICOSECONDS", "picoseconds, such as 500 or \"0.5ns\", from 0 to 2^63 ps")
            .replace("NANOSECONDS", "nanoseconds, such as 500 or \"0.5us\", from 0 to 2^63 ps");
        assert_eq!(parse(&format!("{head}{first}{line}\n")).unwrap_err(), message);
    }
    assert_eq!(
        parse("arrival_ps,src,dst,size_bytes,afterwards\n").unwrap_err(),
        "t.csv: expected columns among arrival_us, compute_us, deadline_us, src, dst, size_bytes, \
         flow, after, tenant, got afterwards"
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
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        match read_trace(&file, Format::Parquet, check(16, FlowOrder::Require)) {
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
    assert!(wrong.unwrap_err().ends_with("t.parquet:3: after: expected whole numbers, got \"a\""));
}
