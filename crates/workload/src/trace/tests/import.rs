//! Files of other simulators, right and wrong.

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
