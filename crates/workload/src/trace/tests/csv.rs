//! CSV files, right and wrong.

use super::*;

fn parse(text: &str, order: FlowOrder) -> Result<Vec<ReferenceRow>, String> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    fs::write(&file, text).unwrap();
    read_reference(&file, Format::Csv, check(16, order))
        .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
}

#[test]
fn columns_may_be_in_any_order_and_unit_among_those_of_results() {
    let text = "status,size_bytes,dst,src,arrival_us\nx,1460,1,0,0.0246\n\"y,z\",5840,2,0,1\n";
    let rows = parse(text, FlowOrder::Require).unwrap();
    assert_eq!(rows[0].flow, flow((24_600, 0, 1, 1460)));
    assert_eq!(rows[1].flow, flow((1_000_000, 0, 2, 5840)));
    assert_eq!((rows[0].fct, rows[0].ideal), (None, None));
}

#[test]
fn the_format_of_recorded_runs_carries_completion_and_ideal() {
    let text = "flow,arrival_ps,src,dst,size_bytes,fct_ps,ideal_ps\n\
                0,24600,1,12,1460,5.5112us,5508000\n1,31000,3,4,1460,,5508000\n";
    let rows = parse(text, FlowOrder::Require).unwrap();
    assert_eq!(rows[0].fct, Some(Span::from_ps(5_511_200)));
    assert_eq!((rows[1].fct, rows[1].ideal), (None, Some(Span::from_ps(5_508_000))));
}

/// The order of these rows is part of a trace, since flows are numbered in it.
#[test]
fn rows_of_one_instant_keep_the_order_of_the_file() {
    let (header, rows) = ("arrival_ps,src,dst,size_bytes", ["5,7,1,9", "5,2,3,1", "5,7,0,4"]);
    let places = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in [FlowOrder::Require, FlowOrder::Sort] {
        for places in places {
            let text = places.iter().fold(header.to_owned(), |all, &at| all + "\n" + rows[at]);
            let read = parse(&text, order).unwrap();
            let sizes: Vec<u64> = read.iter().map(|row| row.flow.size.get()).collect();
            assert_eq!(sizes, places.map(|at| [9, 1, 4][at]), "{order:?}");
        }
    }
}

#[test]
fn flows_out_of_order_are_rejected_or_sorted() {
    let text = "arrival_ps,src,dst,size_bytes\n5,0,1,1\n4,2,3,1\n5,4,5,1\n";
    assert_eq!(
        parse(text, FlowOrder::Require).unwrap_err(),
        "t.csv:3: arrival_ps: expected at least 5 ps, the one before, \
             unless sort is set, got 4"
    );
    let sources: Vec<u32> =
        parse(text, FlowOrder::Sort).unwrap().iter().map(|row| row.flow.src.get()).collect();
    assert_eq!(sources, [2, 0, 4]);
}

#[test]
fn errors_of_csv_files_name_place_expectation_and_content() {
    let head = "arrival_ps,src,dst,size_bytes,fct_ps\n";
    let cases = [
        ("1,0,1,0,", "t.csv:2: size_bytes: expected at least 1, got 0"),
        ("1,3,3,9,", "t.csv:2: dst: expected a host other than src, got 3"),
        ("1,16,3,9,", "t.csv:2: src: expected a host below 16, got 16"),
        ("1,0,99999999999,9,", "t.csv:2: dst: expected a host below 16, got 99999999999"),
        ("1,0,1,9,\n2,x,1,9,", "t.csv:3: src: expected a whole number, got \"x\""),
        ("1,0,1,1.5,", "t.csv:2: size_bytes: expected BYTES, got \"1.5\""),
        ("-1,0,1,9,", "t.csv:2: arrival_ps: expected TIME, got \"-1\""),
        ("5 MB,0,1,9,", "t.csv:2: arrival_ps: expected TIME, got \"5 MB\""),
        (",0,1,9,", "t.csv:2: arrival_ps: expected TIME, got \"\""),
        ("1,0,1", "t.csv:2: size_bytes: expected BYTES, got \"\""),
        ("1,0,1,2Mb,", "t.csv:2: size_bytes: expected BYTES, got \"2Mb\""),
        ("1,0,1,0B,", "t.csv:2: size_bytes: expected at least 1, got 0"),
        ("1,0,1,9,,7", "t.csv:2: line: expected at most 5 fields, as the header has, got 6"),
        (
            "\"1,0,1,9,\n2,0,1,9,",
            "t.csv:2: arrival_ps: expected TIME, in quotes that close on the line, got \
             \"1,0,1,9,\" and further lines",
        ),
        (
            "1,0,1,9,slow",
            "t.csv:2: fct_ps: expected picoseconds, such as 500 or \"0.5ns\", got \"slow\"",
        ),
    ];
    for (line, message) in cases {
        let bytes = "a whole number of bytes, such as 2000000 or \"2MB\"";
        let time = "picoseconds, such as 500 or \"0.5ns\", from 0 to 2^63 ps";
        let message = message.replace("TIME", time).replace("BYTES", bytes);
        assert_eq!(parse(&format!("{head}{line}\n"), FlowOrder::Require).unwrap_err(), message);
    }
    assert_eq!(
        parse("arrival,src,dst,size_bytes\n", FlowOrder::Require).unwrap_err(),
        "t.csv: expected a column arrival_ps (or arrival_ns, arrival_us, arrival_ms, arrival_s), \
         got arrival,src,dst,size_bytes"
    );
    assert_eq!(
        parse("arrival_ps,source,to,size_bytes\n", FlowOrder::Require).unwrap_err(),
        "t.csv: expected a column src and a column dst, got arrival_ps,source,to,size_bytes"
    );
    assert_eq!(
        parse("arrival_ps,src,dst,size_bytes\n", FlowOrder::Require).unwrap_err(),
        "t.csv: expected at least one flow, got none"
    );
    let message = parse("", FlowOrder::Require).unwrap_err();
    let expected = "t.csv: expected a header with the names of columns, got an empty file";
    assert_eq!(message, expected);
}

#[test]
fn duplicate_ids_are_errors_without_dependencies_too() {
    let text = "flow,arrival_ps,src,dst,size_bytes\n3,1,0,1,9\n\n4,1,0,1,9\n3,1,0,1,9\n";
    let expected = "t.csv:5: flow: expected a number that no row before has, got 3, as t.csv:2 has";
    assert_eq!(parse(text, FlowOrder::Require).unwrap_err(), expected);
    assert_eq!(parse(&text.replace("\n3,", "\n,"), FlowOrder::Require).unwrap().len(), 3);
}

/// Dataframes with missing values have columns of floating-point numbers.
#[test]
fn whole_numbers_may_be_written_as_floating_point() {
    let text = "flow,arrival_us,src,dst,size_bytes\n3.0,1E+03,0.0,1.0,1e6\n4.0,2e3,1.0,0.0,20.0\n";
    let rows = parse(text, FlowOrder::Require).unwrap();
    let expected = [(1_000_000_000, 0, 1, 1_000_000), (2_000_000_000, 1, 0, 20)].map(flow);
    assert_eq!(rows.iter().map(|row| row.flow).collect::<Vec<_>>(), expected);
    let error = parse(&text.replace("0.0,1.0", "0.5,1.0"), FlowOrder::Require).unwrap_err();
    assert_eq!(error, "t.csv:2: src: expected a whole number, got \"0.5\"");
}

#[test]
fn text_in_another_encoding_is_named_with_its_line() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    let text = "arrival_us,src,dst,size_bytes\n0,0,1,9\n";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = [&[0xff, 0xfe][..], &wide].concat();
    let latin = [text.as_bytes(), b"0,caf\xe9,1,9\n"].concat();
    for (bytes, line) in [(wide, 1), (latin, 3)] {
        fs::write(&file, bytes).unwrap();
        let got = read(&file, Format::Csv, check(2, FlowOrder::Require)).unwrap_err().to_string();
        let expected = format!("t.csv: line {line}: expected text in UTF-8, got other bytes");
        assert!(got.contains(&expected), "{got}");
    }
}

#[test]
fn an_uncompressed_file_with_a_compressed_name_is_an_error() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv.gz");
    fs::write(&file, "arrival_ps,src,dst,size_bytes\n").unwrap();
    let message = read(&file, Format::Csv, check(2, FlowOrder::Require)).unwrap_err().to_string();
    assert!(message.contains("t.csv.gz: invalid gzip header"), "{message}");
}

#[test]
fn fields_may_end_with_semicolons_or_tabs_between_comments() {
    let text = "# flows\narrival_ps,src,dst,size_bytes,after\n#1,x\n\n5,0,1,9,\n,1,2,8,0\n";
    let read = |text: &str| {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("t.csv");
        fs::write(&file, text).unwrap();
        assert_eq!(Format::from_contents(&file), Some(Format::Csv));
        match read_trace(&file, Format::Csv, check(16, FlowOrder::Require)) {
            Ok(Trace::Graph(graph)) => Ok(graph.dependencies()),
            Ok(Trace::Flows(_)) => panic!("a flow waits"),
            Err(error) => Err(error.to_string().split_once("t.csv:").unwrap().1.to_owned()),
        }
    };
    for separator in [",", ";", "\t"] {
        let text = text.replace(',', separator);
        assert_eq!(read(&text).unwrap(), [vec![], vec![0u32]], "{separator:?}");
        let wrong = read(&text.replace('8', "x")).unwrap_err();
        assert!(wrong.starts_with("6: size_bytes: expected a whole number"), "{wrong}");
    }
}

/// An index of pandas has no name.
#[test]
fn a_column_without_a_name_is_not_used() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    fs::write(&file, ",arrival_ps,src,dst,size_bytes\n0,1,0,1,9\n").unwrap();
    let read =
        read_with_notes(&file, Format::Csv, check(16, FlowOrder::Require), &Options::default());
    let (_, notes) = read.unwrap();
    assert!(
        notes[0].ends_with("not used: the one without a name (an index of pandas?)"),
        "{notes:?}"
    );
}

#[test]
fn names_tenants_and_deadlines_of_a_record_are_kept() {
    let text = "arrival_ps,src,dst,size_bytes,fct_ps,tenant,deadline_ps\n1,0,1,9,5,2,7\n\
                2,1,0,8,,0,\n";
    let rows = parse(text, FlowOrder::Require).unwrap();
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    let mut names = HostNames::default();
    let own = ["1".to_owned(), "a,\"b\"".to_owned()];
    own.iter().zip(0..).for_each(|(name, host)| names.insert(name, Some(host)));
    for (names, hosts) in [(&own[..], Some(names)), (&[], None)] {
        write_reference_csv(&file, &rows, names).unwrap();
        let options = Options { hosts, ..Options::default() };
        let read = read_with_notes(&file, Format::Csv, check(16, FlowOrder::Require), &options);
        let (Trace::Flows(read), notes) = read.unwrap() else { panic!("no flow waits") };
        assert_eq!((read, notes.len()), (rows.clone(), 0));
    }
}

#[test]
fn a_duplicate_column_is_an_error() {
    let text = "arrival_ps,src,dst,size_bytes,src\n1,0,1,9,2\n";
    let expected = "t.csv: expected a column src once, got arrival_ps,src,dst,size_bytes,src";
    assert_eq!(parse(text, FlowOrder::Require).unwrap_err(), expected);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_header() {
    let text = "\u{feff}arrival_ps,src,dst,size_bytes\n1,0,1,9\n";
    assert_eq!(parse(text, FlowOrder::Require).unwrap().len(), 1);
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t");
    fs::write(&file, text).unwrap();
    assert_eq!(Format::from_contents(&file), Some(Format::Csv));
}

#[test]
fn errors_name_the_line_for_every_line_ending() {
    let text = "arrival_ps,src,dst,size_bytes\n1,0,1,9\n\n2,x,1,9";
    let expected = "t.csv:4: src: expected a whole number, got \"x\"";
    for end in ["\n", "\r\n", "\r"] {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{}", text.replace('\n', end));
            assert_eq!(parse(&text, FlowOrder::Require).unwrap_err(), expected, "{end:?} {mark:?}");
        }
    }
}

#[test]
fn units_of_cells_override_the_unit_of_the_column() {
    let plain = "arrival_us,src,dst,size_bytes,deadline_us\n5,0,1,2000000,10\n6,0,2,1536,\n";
    let rows = parse(plain, FlowOrder::Require).unwrap();
    assert_eq!(rows[0].flow.arrival, Time::from_ps(5_000_000));
    for text in [
        "arrival_us,src,dst,size_bytes,deadline_us\n5us,0,1,2MB,10us\n0.006ms,0,2,1.5KiB,\n",
        "arrival_ms,src,dst,size_bytes,deadline_ms\n0.005,0,1,2 MB,0.01\n6us,0,2,1536B,\n",
        "arrival_s,src,dst,size_bytes,deadline_s\n5us,0,1,2MB,10us\n0.000006,0,2,1536,\n",
        "arrival_ps,src,dst,size_bytes,deadline_ps\n5us,0,1,2e3kB,1e4ns\n6000000,0,2,1536,\n",
    ] {
        assert_eq!(parse(text, FlowOrder::Require).unwrap(), rows, "{text}");
    }
    let text = "arrival_ms,src,dst,size_bytes,deadline_s\n1,0,1,9,2 weeks\n";
    let expected = "t.csv:2: deadline_s: expected seconds, such as 0.5 or \"500ms\", from 0 to \
                    2^63 ps, got \"2 weeks\"";
    assert_eq!(parse(text, FlowOrder::Require).unwrap_err(), expected);
}

/// An error names the column as the file does.
#[test]
fn errors_name_mapped_columns_of_the_file() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t.csv");
    let columns = [("arrival_us", "when"), ("src", "from"), ("dst", "to"), ("size_bytes", "len")];
    let columns = columns.map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned())).into();
    let options = Options { columns, ..Options::default() };
    for (row, expected) in [
        (
            "x,0,1,9",
            "when: expected microseconds, such as 5 or \"5us\", from 0 to 2^63 ps, got \"x\"",
        ),
        (
            "1,0,1,2 MBit",
            "len: expected a whole number of bytes, such as 2000000 or \"2MB\", got \"2 MBit\"",
        ),
        ("1,0,1,0", "len: expected at least 1, got 0"),
        ("1,0,0,9", "to: expected a host other than src, got 0"),
    ] {
        fs::write(&file, format!("when,from,to,len\n{row}\n")).unwrap();
        let check = check(2, FlowOrder::Require);
        let error = read_with_notes(&file, Format::Csv, check, &options).unwrap_err().to_string();
        assert_eq!(error.split_once("t.csv:2: ").unwrap().1, expected);
    }
}
