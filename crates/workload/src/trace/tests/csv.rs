//! CSV files, right and wrong.

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
        ("1,0,1,9,,7", "t.csv:2: line: expected at most 5 fields, as the header has, got 6"),
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

#[test]
fn a_column_that_is_there_twice_is_an_error() {
    let text = "arrival_ps,src,dst,size_bytes,src\n1,0,1,9,2\n";
    let expected = "t.csv: expected a column src once, got arrival_ps,src,dst,size_bytes,src";
    assert_eq!(parse(text, Order::Require).unwrap_err(), expected);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_header() {
    let text = "\u{feff}arrival_ps,src,dst,size_bytes\n1,0,1,9\n";
    assert_eq!(parse(text, Order::Require).unwrap().len(), 1);
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("t");
    fs::write(&file, text).unwrap();
    assert_eq!(Format::of_contents(&file), Some(Format::Csv));
}

#[test]
fn errors_name_the_line_whatever_ends_lines() {
    let text = "arrival_ps,src,dst,size_bytes\n1,0,1,9\n\n2,x,1,9";
    let expected = "t.csv:4: src: expected a whole number, got \"x\"";
    for end in ["\n", "\r\n", "\r"] {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{}", text.replace('\n', end));
            assert_eq!(parse(&text, Order::Require).unwrap_err(), expected, "{end:?} {mark:?}");
        }
    }
}
