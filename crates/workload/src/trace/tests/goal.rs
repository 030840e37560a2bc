//! Schedules in the GOAL format, right and wrong.

use super::*;

fn graph(text: &str) -> Result<Graph, String> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("f.goal");
    fs::write(&file, text).unwrap();
    let read = read_trace(&file, Format::from_name(&file).unwrap(), check(16, FlowOrder::Require));
    match read {
        Ok(Trace::Graph(graph)) => Ok(graph),
        Ok(Trace::Flows(_)) => panic!("a schedule is a graph"),
        Err(error) => Err(error.to_string().replace(&format!("{}/", dir.path().display()), "")),
    }
}

/// Rows are numbered by operation, without recvs that depend only on their flow.
#[test]
fn sends_calculations_and_their_order_are_a_graph() {
    let text = "num_ranks 3 // ranks\n\
        rank 0 {\n l1: calc 1500 cpu 0\n l2: send 65536b to 1 tag 7 cpu 0 nic 0\n\
        l2 requires l1 /* in order\n over two lines */\n}\n\
        rank 1 {\n l1: recv 65536b from 0 tag 7\n l2: send 10b to 2\n l3: calc 20\n\
        l2 requires l1\n l3 irequires l2\n}\n\
        rank 2 {\n l1: calc 30\n l2: recv 10b from 1\n l3: send 0b to 0 tag 1\n\
        l2 requires l1\n l3 requires l2\n}\n\
        rank 0 {\n x: recv 0b from 2 tag 1\n}\n";
    let graph = graph(text).unwrap();
    let node = |n| {
        let flow = graph.node(n);
        (flow.src.get(), flow.dst.get(), flow.size.get(), graph.delay(n).as_ps() / 1_000)
    };
    let expected = [
        (0, 0, 0, 1_500),
        (0, 1, 65_536, 0),
        (1, 2, 10, 0),
        (1, 1, 0, 20),
        (2, 2, 0, 30),
        (2, 2, 0, 0),
        (2, 0, 1, 0),
    ];
    assert_eq!((0..graph.len()).map(node).collect::<Vec<_>>(), expected);
    let none: Vec<u32> = vec![];
    let after = [none.clone(), vec![0], vec![1], vec![1], none, vec![2, 4], vec![5]];
    assert_eq!(graph.dependencies(), after);
}

/// The first recv matches the first of two messages with the same ends and tag.
#[test]
fn messages_with_one_tag_are_received_in_order() {
    let text = "num_ranks 2\nrank 0 {\na: send 1b to 1\nb: send 2b to 1\n}\n\
        rank 1 {\na: recv 1b from 0\nb: recv 2b from 0\nc: send 3b to 0\nc requires b\n}\n\
        rank 0 {\na: recv 3b from 1\n}\n";
    assert_eq!(graph(text).unwrap().dependencies(), [vec![], vec![], vec![1]]);
}

/// A rank that receives before it sends, and orders before operations.
#[test]
fn a_receive_may_precede_its_send() {
    let gather = "num_ranks 3\nrank 0 {\na: recv 5b from 2\nb: recv 5b from 1\n}\n\
        rank 1 {\na: send 5b to 0\n}\nrank 2 {\na: send 5b to 0\n}\n";
    assert_eq!(graph(gather).unwrap().dependencies(), [vec![0u32; 0], vec![]]);
    let reply = "num_ranks 2\nrank 0 {\nb requires a\na: recv 5b from 1\nb: send 5b to 1\n}\n\
        rank 1 {\na: send 5b to 0 cpu 1 nic 1\nb: recv 5b from 0 cpu 1\n}\n";
    assert_eq!(graph(reply).unwrap().dependencies(), [vec![1u32], vec![]]);
}

/// A file of htsim's converter has a label twice, which no order names.
#[test]
fn labels_that_no_order_names_may_repeat() {
    let text = "num_ranks 2\nrank 0 {\nl1: send 5b to 1\nl1: send 6b to 1\nl2: calc 7\n\
        l3: send 8b to 1\nl3 requires l2\n}\n\
        rank 1 {\nl1: recv 5b from 0\nl1: recv 6b from 0\nl2: recv 8b from 0\n}\n";
    assert_eq!(graph(text).unwrap().dependencies(), [vec![], vec![], vec![], vec![2u32]]);
}

#[test]
fn braces_and_colons_need_no_separate_line_or_space() {
    let plain = "num_ranks 3\nrank 0 {\nl1: send 5b to 1\n}\nrank 1 {\nl1: recv 5b from 0\n}\n";
    for text in [
        "num_ranks 3\nrank 0\n{\nl1:send 5b to 1\n}\nrank 1 /* a */\n\n{ l1 : recv 5b from 0 }\n",
        "num_ranks 3\nrank 0{l1:send 5b to 1}\nrank 1 {l1:recv 5b from 0} rank 2 { }\n",
    ] {
        let (graph, expected) = (graph(text).unwrap(), graph(plain).unwrap());
        assert_eq!(canonical(&graph), canonical(&expected));
    }
}

#[test]
fn cpu_nic_and_unequal_sizes_are_named() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("f.goal");
    fs::write(&file, "rank 0 {\ncalc 5\ncalc 6\nsend 5b to 1\n}\nrank 1 {\nrecv 6b from 0\n}\n")
        .unwrap();
    let check = check(2, FlowOrder::Require);
    let (_, notes) = read_with_notes(&file, Format::Goal, check, &Options::default()).unwrap();
    let name = file.display();
    let expected = [
        format!(
            "{name}: cpu and nic are not used: operations of a rank overlap unless one requires \
             the other"
        ),
        format!("{name}: 1 recv of another size than the send, which is used"),
    ];
    assert_eq!(notes, expected);
}

#[test]
fn errors_of_schedules_name_place_expectation_and_content() {
    let cases = [
        ("send 1b to 1\n", "f.goal:1: line: expected num_ranks or a rank, got \"send\""),
        (
            "rank 0 {\nwait 5\n}\n",
            "f.goal:2: line: expected calc ns, send bytes to rank, or recv bytes from rank, \
             got \"wait 5\"",
        ),
        ("rank 0 {\nsend 5k to 1\n}\n", "f.goal:2: size: expected bytes, as in 4096b, got \"5k\""),
        (
            "rank 0 {\nsend 5b to 1 tag 3\n}\n",
            "f.goal:2: send: expected a recv of rank 1 from rank 0, got \"none with tag 3\"",
        ),
        (
            "rank 0 {\nrecv 5b from 1\n}\n",
            "f.goal:2: recv: expected a send of rank 1 to rank 0, got \"none with tag 0\"",
        ),
        (
            "rank 0 {\na: calc 5\na requires b\n}\n",
            "f.goal:3: label: expected an operation of the rank, got \"b\"",
        ),
        (
            "rank 0 {\na: calc 5\na: calc 6\nb: calc 7\nb requires a\n}\n",
            "f.goal:5: label: expected a label of one operation, not of those in lines 2 and 3, \
             got \"a\"",
        ),
        ("rank 0\ncalc 5\n", "f.goal:2: line: expected { after the number of a rank, got \"calc\""),
        (
            "rank 0 { a: calc 5\n} calc 6\n",
            "f.goal:2: line: expected num_ranks or a rank, got \"calc\"",
        ),
        (
            "rank 0 {\na: calc 5\nb: calc 5\na irequires b\nb irequires a\n}\n",
            "f.goal:3: irequires: expected no cycle of them, got \"one\"",
        ),
        (
            "rank 0 {\na: calc 5\nb: calc 5\na requires b\nb requires a\n}\n",
            "f.goal:2: after: expected flows that do not depend on this one, got 1",
        ),
        ("rank 99 {\ncalc 5\n}\n", "f.goal:2: src: expected a host below 16, got 99"),
        (
            "num_ranks 2\nrank 2 {\ncalc 5\n}\n",
            "f.goal:3: rank: expected a rank below 2, got \"2\"",
        ),
        ("num_ranks 2\n", "f.goal: expected at least one flow, got none"),
    ];
    for (text, expected) in cases {
        assert_eq!(graph(text).unwrap_err(), expected);
    }
}

/// A flow: its ends, and its number among the flows between them.
type Place = (u32, u32, usize);

/// Returns each flow of a graph by its ends and its number among those, with its size and its
/// dependencies.
fn canonical(graph: &Graph) -> Vec<(Place, u64, Vec<Place>)> {
    let ends = |node: u32| {
        let flow = graph.node(node);
        (flow.src.get(), flow.dst.get())
    };
    let name = |node: u32| {
        let (src, dst) = ends(node);
        (src, dst, (0..node).filter(|&other| ends(other) == (src, dst)).count())
    };
    let after = |all: &Vec<u32>| all.iter().map(|&node| name(node)).collect();
    let mut all: Vec<_> = (0..graph.len())
        .zip(graph.dependencies())
        .map(|(node, waits)| (name(node), graph.node(node).size.get(), after(&waits)))
        .collect();
    all.sort_unstable();
    all
}

/// A ring all-reduce as generators write it equals that of the pattern `collective`.
#[test]
fn a_ring_all_reduce_is_that_of_the_pattern() {
    use std::fmt::Write;

    let (n, size) = (8, 8_000);
    let mut text = format!("num_ranks {n}\n");
    for rank in 0..n {
        writeln!(text, "rank {rank} {{").unwrap();
        for step in 0..2 * (n - 1) {
            let (next, last) = ((rank + 1) % n, (rank + n - 1) % n);
            writeln!(text, "s{step}: send {}b to {next} tag {step}", size / n).unwrap();
            writeln!(text, "r{step}: recv {}b from {last} tag {step}", size / n).unwrap();
            if step > 0 {
                writeln!(text, "s{step} requires r{}", step - 1).unwrap();
            }
        }
        writeln!(text, "}}").unwrap();
    }
    let ring = "pattern = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"ring\"\n\
        vector-bytes = 8000\n";
    let spec: crate::WorkloadSpec = toml::from_str(ring).unwrap();
    let context = crate::WorkloadContext {
        n_hosts: n,
        access_rate: rampmeter_types::Rate::from_gbps(100),
        host_rates: Vec::new(),
        payload: Bytes::new(1_460),
        wire: Bytes::new(1_500),
        hosts_per_rack: None,
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let pattern = spec.validate(&context).unwrap().graph(1).unwrap();
    assert_eq!(canonical(&graph(&text).unwrap()), canonical(&pattern));
}
