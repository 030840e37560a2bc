//! Files of other simulators, right and wrong.

use super::*;

#[test]
fn yaps_lines_are_sorted_and_lose_the_first_second() {
    let rows =
        read_reference(&fixture("yaps.log"), Format::Yaps, check(144, FlowOrder::Require)).unwrap();
    let flows: Vec<Flow> = rows.iter().map(|row| row.flow).collect();
    let expected =
        [(24_600, 1, 22, 1460), (31_000, 83, 103, 1460), (296_900, 128, 137, 5840)].map(flow);
    assert_eq!(flows, expected);
    assert_eq!(rows[2].fct, Some(Span::from_ps(3_209_600)));
    assert_eq!(rows[0].ideal, Some(Span::from_ps(5_508_000)));
}

#[test]
fn a_connection_matrix_is_read_in_picoseconds() {
    let flows = read(&fixture("incast.cm"), Format::Htsim, check(16, FlowOrder::Require)).unwrap();
    let expected = [(0, 1, 0, 2_000_000), (0, 2, 0, 2_000_000), (5_000_000, 3, 4, 4000)];
    assert_eq!(flows, expected.map(flow));
}

#[test]
fn a_flow_file_is_read_up_to_its_count() {
    let flows = read(&fixture("flow.txt"), Format::Hpcc, check(16, FlowOrder::Require)).unwrap();
    let expected = [(2_000_000_000_000, 2, 1, 200_000), (2_000_015_000_000, 3, 1, 150_000)];
    assert_eq!(flows, expected.map(flow));
}

/// Formats with a wrong file, and the error of each.
const WRONG: &[(Format, &str, &str)] = &[
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
        "1->0 size 5\n",
        "f:1: start: expected a start time or a trigger, got \"none\"",
    ),
    (
        Format::Htsim,
        "failure switch_type AGG switch_id 3 link 1\n",
        "f:1: failure: expected switch_type, switch_id and link_id, each with a value, got \
         \"link\"",
    ),
    (
        Format::Htsim,
        "1->0 start 0\n",
        "f:1: size: expected at least 1 byte: a flow of size 0 or of no size is endless in \
         htsim, and flows of a trace end, got \"none\"",
    ),
    (
        Format::Htsim,
        "1->0 start 0 size 5\n0->1 id 2 start 0 size 0\n",
        "f:2: size: expected at least 1 byte: a flow of size 0 or of no size is endless in \
         htsim, and flows of a trace end, got \"0\"",
    ),
    (
        Format::Htsim,
        "1->0 id 7 start 0 size 5\n\n0->1 id 7 start 0 size 5\n",
        "f:3: id: expected a number that no connection before has, got \"7, as f:1 has\"",
    ),
    (
        Format::Htsim,
        "1->0 size 5 start 0 size 6\n",
        "f:1: connection: expected each key once, got \"size twice\"",
    ),
    (
        Format::Htsim,
        "1->0 start 0 length 5\n",
        "f:1: connection: expected start, size, id, msg, prio, trigger, send_done_trigger or \
         recv_done_trigger, got \"length\"",
    ),
    (
        Format::Htsim,
        "flow 1\n",
        "f:1: line: expected a connection src->dst, a trigger or a failure, got \"flow\"",
    ),
    (
        Format::Htsim,
        "Nodes 4\n4->0 start 0 size 5\n",
        "f:2: src: expected a node below 4, as Nodes requires, got \"4\"",
    ),
    (Format::Hpcc, "", "f:1: count: expected a whole number, got \"\""),
    (
        Format::Hpcc,
        "2\n2 1 3 100 200000 2\n",
        "f:1: count: expected 1, as many as follow, got \"2\"",
    ),
    (
        Format::Hpcc,
        "1\n2 1 200000 2\n",
        "f:2: line: expected src dst pg dport size start, got \"2 1 200000 2\"",
    ),
    (
        Format::Hpcc,
        "1\n2 1 3 60000 2.0 9.5\n",
        "f:2: line: expected src dst pg dport size start, not the src dst pg packets start \
         stop of ns3-rdma, whose lengths are packets, got \"2 1 3 60000 2.0 9.5\"",
    ),
    (Format::Hpcc, "1\n2 1 3 100 0 2\n", "f:2: size_bytes: expected at least 1, got 0"),
    (
        Format::Hpcc,
        "2\n2 1 3 100 5 2\n2 1 3 100 5 1\n",
        "f:3: arrival: expected at least 2000000000000 ps, the one before, \
         unless sort is set, got 1000000000000",
    ),
];

#[test]
fn errors_of_imported_files_name_place_expectation_and_content() {
    let dir = TempDir::new().unwrap();
    for &(format, text, message) in WRONG {
        let file = dir.path().join("f");
        fs::write(&file, text).unwrap();
        let error = read(&file, format, check(144, FlowOrder::Require)).unwrap_err().to_string();
        assert_eq!(error.replace(&format!("{}/", dir.path().display()), ""), message);
    }
}

/// Flows of HPCC usually start at 2 s, and may be shorter than that.
#[test]
fn small_sizes_of_hpcc_are_no_starts() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("f");
    for (text, size) in [("1\n2 1 3 100 1 2\n", 1), ("1\n2 1 3 100 1 2.000\n", 1)] {
        fs::write(&file, text).unwrap();
        let flows = read(&file, Format::Hpcc, check(144, FlowOrder::Require)).unwrap();
        assert_eq!(
            (flows[0].size.get(), flows[0].arrival),
            (size, Time::from_ps(2 * 10u64.pow(12)))
        );
    }
}

/// Reads a connection matrix: the dependencies of each row, and the notes.
fn matrix(text: &str) -> Result<(Vec<Vec<u32>>, Vec<String>), String> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("f.cm");
    fs::write(&file, text).unwrap();
    let plain = |text: &str| text.replace(&format!("{}/", dir.path().display()), "");
    let read =
        read_with_notes(&file, Format::Htsim, check(16, FlowOrder::Require), &Options::default());
    match read {
        Ok((Trace::Graph(graph), notes)) => {
            Ok((graph.dependencies(), notes.iter().map(|note| plain(note)).collect()))
        }
        Ok((Trace::Flows(flows), notes)) => {
            Ok((vec![vec![]; flows.len()], notes.iter().map(|note| plain(note)).collect()))
        }
        Err(error) => Err(plain(&error.to_string())),
    }
}

#[test]
fn triggers_of_htsim_are_dependencies() {
    let text = "Nodes 8\nConnections 7\nTriggers 4\nFailures 1\n# a comment\n\
        0->1 id 1 start 0 size 20 send_done_trigger 1\n\
        0->2 id 2 trigger 1 size 20 prio 3 recv_done_trigger 3\n\
        4->2 id 3 start 0 size 10 recv_done_trigger 3\n\
        2->5 id 4 trigger 3 size 10\n\
        2->6 id 5 trigger 3 size 10 msg 2\n\
        6->1 id 6 start 5000 size 1 msg send_done_trigger 4\n\
        6->2 id 7 trigger 4 size 1\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 barrier count 2\n\
        trigger id 4 multishot\nfailure switch_type TOR switch_id 0 link_id 1\n";
    let (after, notes) = matrix(text).unwrap();
    let expected: [&[u32]; 7] = [&[], &[0], &[], &[1, 2], &[1, 2], &[], &[5]];
    assert_eq!(after, expected);
    assert_eq!(
        notes,
        [
            "f.cm: 1 failure omitted: link 1 of TOR 0; failures are in the plan, `faults.outages` \
             (`rampmeter convert --topology` writes them out)",
            "f.cm: prio of 1 connection is not used: transports choose priorities",
            "f.cm: 2 messages (msg) are separate flows, which share no connection",
            "f.cm: connections at multishot triggers wait in the order of the file; htsim starts \
             them in the order of ends",
            "f.cm: Nodes 8, in a network of 16 hosts",
        ]
    );
}

#[test]
fn triggers_that_flows_cannot_wait_for_are_named() {
    let cases = [
        (
            "0->1 start 0 size 1 send_done_trigger 1\n1->2 trigger 1 size 1\n\
             trigger id 1 oneshot\n",
            "f.cm:2: trigger: expected a connection of host 0, which observes the \
             send_done_trigger of line 1, got \"one of host 1\"",
        ),
        (
            "0->1 start 0 size 1 recv_done_trigger 1\n1->2 trigger 1 size 1\n\
             trigger id 1 barrier count 2\n",
            "f.cm:2: trigger: expected 2 activations of the barrier, as its count requires, got \
             \"1 with 1 connection\"",
        ),
        (
            "1->2 trigger 1 size 1\ntrigger id 1 oneshot\n",
            "f.cm:1: trigger: expected a trigger that a connection activates, got \"1, which none \
             does\"",
        ),
        (
            "0->1 start 0 size 1 recv_done_trigger 1\n1->2 trigger 1 size 1\n",
            "f.cm:2: trigger: expected a trigger that the file defines, got \"1\"",
        ),
        (
            "0->1 start 0 size 1 recv_done_trigger 1\n2->1 start 0 size 1 recv_done_trigger 1\n\
             1->2 trigger 1 size 1\ntrigger id 1 oneshot\n",
            "f.cm:3: trigger: expected one connection that activates a oneshot trigger, as the \
             first to end is not known before the run, got \"1 with 2 connections\"",
        ),
        ("trigger id 1\n", "f.cm:1: trigger: expected oneshot, multishot or barrier, got \"none\""),
        (
            "0->1 start 0 size 0\n",
            "f.cm:1: size: expected at least 1 byte: a flow of size 0 or of no size is endless in \
             htsim, and flows of a trace end, got \"0\"",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(matrix(text).unwrap_err(), message);
    }
}

#[test]
fn starts_in_microseconds_are_questioned() {
    let (_, notes) = matrix("0->1 start 0 size 9\n0->2 start 12.5 size 9\n").unwrap();
    let note = "f.cm: starts are read as picoseconds, the last is 13 ps: are they microseconds, \
                as in the first versions of htsim?";
    assert_eq!(notes, [note]);
}

#[test]
fn a_flow_file_may_number_switches_too() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("flow.txt");
    let mut names = HostNames::default();
    names.insert_number(0, None);
    names.insert_number(1, Some(0));
    names.insert_number(2, Some(1));
    let options = Options { hosts: Some(names), ..Options::default() };
    let read = |text: &str| {
        fs::write(&file, text).unwrap();
        read_with_notes(&file, Format::Hpcc, check(2, FlowOrder::Require), &options)
    };
    let (trace, notes) = read("1\n2 1 3 100 200 0\n").unwrap();
    let Trace::Flows(rows) = trace else { panic!("no flow waits") };
    assert_eq!(rows[0].flow, flow((0, 1, 0, 200)));
    let unused =
        |keys: &str| format!("{}: {keys} not used: transports choose priorities", file.display());
    assert_eq!(notes, [unused("pg and dport of 1 flow are")]);
    let (_, notes) = read("2\n2 1 3 200 0\n1 2 3 200 0\n").unwrap();
    assert_eq!(notes, [unused("pg of 2 flows is")]);
    let error = read("1\n2 0 3 100 200 0\n").unwrap_err().to_string();
    let expected = "flow.txt:2: dst: expected a host of the topology, got node 0, a switch";
    assert!(error.ends_with(expected), "{error}");
}

/// 8 GPUs in groups of 4, a ring of 8 MiB after 5 us.
#[test]
fn a_workload_of_simai_is_a_graph_of_rings() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("w.txt");
    let read = |text: &str| {
        fs::write(&file, text).unwrap();
        let check = check(8, FlowOrder::Require);
        let read = read_with_notes(&file, Format::Simai, check, &Options::default());
        let name = format!("{}: ", file.display());
        match read {
            Ok((Trace::Graph(graph), notes)) => {
                Ok((graph, notes.iter().map(|note| note.replace(&name, "")).collect::<Vec<_>>()))
            }
            Ok(_) => panic!("a workload is a graph"),
            Err(error) => Err(error.to_string().split_once("w.txt:").unwrap().1.to_owned()),
        }
    };
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 4 \
                  ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0";
    let layer = "layer1\t-1\t5000\tALLREDUCE\t8388608\t1\tNONE\t0\t1\tNONE\t0\t1";
    let (graph, notes) = read(&format!("{header}\n1\n{layer}\n")).unwrap();
    assert_eq!(graph.n_flows(), 8 * 6);
    assert!(notes.is_empty(), "{notes:?}");
    assert!(graph.flows().all(|(_, flow)| flow.size.get() == 2 << 20));
    // GPUs 4 and 5 are of the second group.
    assert!(graph.flows().any(|(_, flow)| (flow.src.get(), flow.dst.get()) == (7, 4)));
    assert_eq!(graph.delay(0).as_ps(), 5_000_000);
    let after = graph.dependencies();
    let (first, _) = graph.flows().next().unwrap();
    assert_eq!(after[first as usize], [0]);

    let weights = layer.replace("1\tNONE\t0\t1\tNONE", "1\tALLTOALL_EP\t16\t1\tALLGATHER");
    let weights = weights.replace("ALLGATHER\t0", "ALLGATHER\t100");
    let (graph, _) =
        read(&format!("{}\n1\n{weights}\n", header.replace("ep: 1", "ep: 2"))).unwrap();
    // Rings of four, direct between the two of an expert group, rings of two GPUs four apart.
    assert_eq!(graph.n_flows(), 8 * 6 + 8 + 8);

    let wrong = |from: &str, to: &str| {
        read(&format!("{header}\n1\n{layer}\n").replace(from, to)).unwrap_err()
    };
    assert_eq!(
        wrong("ALLREDUCE", "ALLREDUCED"),
        "3: collective: expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP \
         or _DP_EP if wanted, got \"ALLREDUCED\""
    );
    assert_eq!(wrong("\n1\n", "\n2\n"), "2: layers: expected 1, as many as follow, got \"2\"");
    assert_eq!(
        wrong("all_gpus: 8", "all_gpus: 6"),
        "1: all_gpus: expected 2 or more GPUs in groups of 4 and 1 stages, got \"6\""
    );
}
