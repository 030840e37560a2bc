//! Traces of Chakra, encoded as the published schema has them.

use proptest::prelude::*;

use super::*;

/// Fields of a message, encoded by hand: the schema's numbers are those of the published file.
#[derive(Clone, Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    fn varint(mut self, field: u64, value: u64) -> Self {
        for mut number in [field << 3, value] {
            while number >= 0x80 {
                self.0.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.0.push(number as u8);
        }
        self
    }

    fn bytes(self, field: u64, value: &[u8]) -> Self {
        let mut this = self.varint(field, value.len() as u64);
        // A field with a length has wire type 2; its key is one byte below field 16.
        let at = this.0.len() - if value.len() < 0x80 { 1 } else { 2 };
        let key = at - if field < 16 { 1 } else { 2 };
        this.0[key] |= 2;
        this.0.extend(value);
        this
    }

    pub(super) fn node(id: u64, kind: u64) -> Self {
        Self::default().varint(1, id).bytes(2, b"a node").varint(3, kind)
    }

    fn attr(self, name: &str, value: impl FnOnce(Self) -> Self) -> Self {
        let attr = value(Self::default().bytes(1, name.as_bytes()));
        self.bytes(10, &attr.0)
    }

    fn int64(self, name: &str, value: u64) -> Self {
        self.attr(name, |attr| attr.varint(9, value))
    }

    fn int32(self, name: &str, value: u64) -> Self {
        self.attr(name, |attr| attr.varint(7, value))
    }

    fn text(self, name: &str, value: &str) -> Self {
        self.attr(name, |attr| attr.bytes(29, value.as_bytes()))
    }

    fn after(self, nodes: &[u8]) -> Self {
        self.bytes(5, nodes)
    }

    fn collective(id: u64, kind: u64, size: u64) -> Self {
        Self::node(id, 7).int64("comm_type", kind).int64("comm_size", size)
    }
}

/// Returns a file of these nodes.
pub(super) fn file(nodes: &[Fields]) -> Vec<u8> {
    let metadata = Fields::default().bytes(1, b"0.0.4");
    let all = std::iter::once(&metadata).chain(nodes);
    all.flat_map(|message| {
        let length = Fields::default().bytes(1, &message.0);
        length.0[1..].to_vec()
    })
    .collect()
}

const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;

fn trace(dir: &TempDir, ranks: &[Vec<Fields>]) {
    for (rank, nodes) in ranks.iter().enumerate() {
        write(dir, &format!("t.{rank}.et"), file(nodes));
    }
}

fn read_trace(dir: &TempDir) -> Result<(Graph, Vec<String>), String> {
    without_idle(read(dir, "t.0.et", Format::Chakra, 8, &Options::default()))
}

#[test]
fn an_all_reduce_after_computing_is_a_ring_with_a_round() {
    let dir = TempDir::new().unwrap();
    let nodes = vec![
        Fields::node(0, COMPUTE).varint(7, 5),
        Fields::collective(1, 0, 8 << 20).after(&[0]).text("pg_name", ""),
        Fields::node(2, COMPUTE).varint(7, 3).after(&[1]),
    ];
    trace(&dir, &vec![nodes; 4]);
    let (graph, notes) = read_trace(&dir).unwrap();
    assert_eq!(notes, [""; 0]);
    assert_eq!(sent(&graph, 4), [6 * (2 << 20); 4]);
    let [round] = graph.rounds() else { panic!("one round") };
    assert_eq!((round.bytes.get(), round.hosts.count(), round.number), (8 << 20, 4, 0));
    assert_eq!(round.nodes.len(), 24);
    let after = graph.dependencies();
    for (number, _) in graph.flows() {
        assert!(round.nodes.contains(&number));
        let computed = after[number as usize].iter().any(|&start| {
            after[start as usize].iter().any(|&of| graph.delay(of).as_ps() == 5_000_000)
        });
        assert!(computed, "each host computes before it sends");
    }
    // The last computation waits for all that its host receives.
    let last = (0..graph.len()).filter(|&node| graph.delay(node).as_ps() == 3_000_000);
    for node in last {
        let [end] = after[node as usize][..] else { panic!("one end") };
        assert_eq!(after[end as usize].len(), 1 + 6);
    }
}

#[test]
fn sends_and_receives_match_by_tag_in_their_order() {
    let dir = TempDir::new().unwrap();
    let send = |id: u64, tag: u64, size: u64| {
        Fields::node(id, SEND).int32("comm_dst", 1).int64("comm_size", size).int32("comm_tag", tag)
    };
    let receive =
        |id: u64, tag: u64| Fields::node(id, RECEIVE).int32("comm_src", 0).int32("comm_tag", tag);
    trace(
        &dir,
        &[
            vec![send(1, 7, 10), send(2, 7, 20).after(&[1]), send(3, 8, 30)],
            vec![receive(1, 8), receive(2, 7), receive(3, 7), Fields::node(4, 4).after(&[3])],
        ],
    );
    let (graph, _) = read_trace(&dir).unwrap();
    let after = graph.dependencies();
    let size = |receive: u32| -> u64 {
        after[receive as usize].iter().map(|&flow| graph.node(flow).size.get()).sum()
    };
    assert_eq!([3, 4, 5].map(size), [30, 10, 20]);
    assert_eq!(after[1], [0]);
    assert_eq!(after[6], [5]);
}

#[test]
fn groups_are_listed_or_guessed_and_all_gather_covers_all_shards() {
    let dir = TempDir::new().unwrap();
    let ranks: Vec<Vec<Fields>> = (0..4)
        .map(|rank| {
            let group = if rank % 2 == 0 { "even" } else { "odd" };
            vec![
                Fields::collective(1, 2, 1000).text("pg_name", group),
                Fields::collective(2, 6, 4000).after(&[1]),
                Fields::collective(3, 9, 0).after(&[2]),
            ]
        })
        .collect();
    trace(&dir, &ranks);
    let (graph, notes) = read_trace(&dir).unwrap();
    assert_eq!(
        notes,
        ["t.0.et: groups without a list of members: the ranks that name them: even, odd"]
    );
    let rounds: Vec<(u32, u64)> =
        graph.rounds().iter().map(|round| (round.hosts.host(0).get(), round.bytes.get())).collect();
    // All ranks (no name) are first, as groups are in the order of their names.
    assert_eq!(rounds, [(0, 4000), (0, 2000), (1, 2000)]);
    let gathers: u64 = graph.rounds()[1..]
        .iter()
        .flat_map(|round| round.nodes.clone())
        .map(|node| graph.node(node).size.get())
        .sum();
    assert_eq!(gathers, 4 * 1000);

    write(&dir, "comm_group.json", "{\"even\": [2, 0], \"odd\": [1, 3]}");
    let (graph, notes) = read_trace(&dir).unwrap();
    assert_eq!((graph.rounds()[1].hosts.host(0).get(), notes.len()), (2, 0));
    write(&dir, "comm_group.json", "{\"even\": [2, 0], \"odd\": [1, 2]}");
    assert_eq!(
        read_trace(&dir).unwrap_err(),
        "t.3.et: node 1 (\"a node\"): pg_name: expected a group of rank 3, got \"odd\""
    );
    write(&dir, "comm_group.json", "{\"even\": [2, 9]}");
    assert_eq!(read_trace(&dir).unwrap_err(), "t.0.et: group even: expected ranks below 4, got 9");
}

#[test]
fn members_of_groups_are_those_of_an_init_node() {
    let dir = TempDir::new().unwrap();
    let values = "[\"[{\\\"pg_name\\\": \\\"3\\\", \\\"ranks\\\": [1, 0]}]\"]";
    let init = Fields::default()
        .varint(1, 1)
        .bytes(2, b"## process_group:init ##")
        .varint(3, 1)
        .bytes(8, &Fields::default().bytes(1, values.as_bytes()).0);
    let nodes = vec![init, Fields::collective(2, 5, 100).text("pg_name", "3")];
    trace(&dir, &[nodes.clone(), nodes]);
    let (graph, notes) = read_trace(&dir).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let flows: Vec<_> = graph.flows().map(|(_, f)| (f.src.get(), f.dst.get())).collect();
    assert_eq!(flows, [(1, 0)], "the first of the group is the root");
}

#[test]
fn nodes_that_are_not_converted_are_named() {
    let dir = TempDir::new().unwrap();
    let nodes = vec![
        Fields::node(1, 4).int64("num_ops", 9),
        Fields::node(2, 2).int64("tensor_size", 9),
        Fields::collective(3, 0, 8)
            .int32("comm_priority", 3)
            .attr("involved_dim", |attr| attr.bytes(28, &Fields::default().bytes(1, &[1, 0]).0)),
    ];
    trace(&dir, &[nodes.clone(), nodes]);
    assert_eq!(
        read_trace(&dir).unwrap().1,
        [
            "t.0.et: 2 computations with num_ops and without duration_micros: no time",
            "t.0.et: 2 nodes of memory or storage without duration_micros: no time",
            "t.0.et: comm_priority of 2 nodes is not used: transports choose priorities",
            "t.0.et: 2 collectives: involved_dim is not used: all ranks of the group take part",
        ]
    );
}

#[test]
fn wrong_traces_name_file_node_and_field() {
    let coll = |size| Fields::collective(1, 0, size);
    let node = || Fields::node(1, COMPUTE);
    let cases: [(Vec<Vec<Fields>>, &str); 8] = [
        (
            vec![vec![node().after(&[9])], vec![node()]],
            "t.0.et: node 1 (\"a node\"): deps: expected nodes of the rank, got 9",
        ),
        (
            vec![vec![node(), node()], vec![]],
            "t.0.et: node 1 (\"a node\"): expected an id that no node before has",
        ),
        (
            vec![vec![coll(8)], vec![coll(9)]],
            "t.1.et: node 1 (\"a node\"): comm_size: expected 8, as of rank 0",
        ),
        (
            vec![vec![coll(8)], vec![node()]],
            "t.0.et: node 1 (\"a node\"): expected a part of rank 1, got none",
        ),
        (
            vec![vec![Fields::node(1, 77)], vec![]],
            "t.0.et: node 1 (\"a node\"): type: expected a node of the schema, got 77",
        ),
        (
            vec![vec![Fields::node(1, SEND)], vec![]],
            "t.0.et: node 1 (\"a node\"): comm_dst: expected another of the 2 ranks, got none",
        ),
        (
            vec![vec![Fields::node(1, SEND).int32("comm_dst", 1).int64("comm_size", 5)], vec![]],
            "t.0.et: node 1 (\"a node\"): expected a receive of rank 1 with tag 0, got none",
        ),
        (
            vec![vec![], vec![Fields::node(1, RECEIVE).int32("comm_src", 0)]],
            "t.1.et: node 1 (\"a node\"): expected a send of rank 0 with tag 0, got none",
        ),
    ];
    for (ranks, message) in cases {
        let dir = TempDir::new().unwrap();
        trace(&dir, &ranks);
        assert_eq!(read_trace(&dir).unwrap_err(), message);
    }
    let dir = TempDir::new().unwrap();
    write(&dir, "t.0.et", file(&[node()]));
    write(&dir, "t.2.et", file(&[node()]));
    assert_eq!(
        read_trace(&dir).unwrap_err(),
        "t.0.et: expected a file of each rank, got none of rank 1"
    );
    let mut cut = file(&[node()]);
    cut.pop();
    write(&dir, "t.1.et", cut);
    assert_eq!(
        read_trace(&dir).unwrap_err(),
        "t.1.et: message 1: expected a message of 12 bytes, got the last 11 of the file"
    );
}

#[test]
fn files_that_are_no_messages_are_named() {
    let dir = TempDir::new().unwrap();
    for (bytes, expected) in [
        (&b""[..], "expected a message, got the end of the file"),
        (b"{\"schema\": 1}", "expected messages of Protobuf, got JSON: Chakra's tools convert it"),
        (&[0xff; 12], "expected the length of a message, got other bytes"),
    ] {
        write(&dir, "t.0.et", bytes);
        write(&dir, "t.1.et", bytes);
        let got = read_trace(&dir).unwrap_err();
        assert!(got.contains(expected), "{got}");
    }
}

#[test]
fn one_rank_alone_has_no_flows() {
    let dir = TempDir::new().unwrap();
    trace(&dir, &[vec![Fields::collective(1, 0, 100).text("pg_name", "0")]]);
    let error = read_trace(&dir).unwrap_err();
    assert_eq!(error, "t.0.et: expected at least one flow, got computations alone");
}

#[test]
fn the_common_name_denotes_all_ranks() {
    let dir = TempDir::new().unwrap();
    trace(&dir, &vec![vec![Fields::collective(1, 0, 100)]; 3]);
    write(&dir, "t.json", "{}");
    let (graph, _) = read(&dir, "t", Format::Chakra, 8, &Options::default()).unwrap();
    assert_eq!(graph.n_flows(), 12);
    let error = read(&dir, "u", Format::Chakra, 8, &Options::default()).unwrap_err();
    assert_eq!(error, "u: expected files u.0.et, u.1.et, ..., got none");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0usize..100,
        byte in any::<u8>(),
    ) {
        let dir = TempDir::new().unwrap();
        write(&dir, "t.0.et", &bytes);
        let _ = read_trace(&dir);
        let nodes = vec![
            Fields::node(1, 4).varint(7, 5),
            Fields::collective(2, 0, 80).after(&[1]).text("pg_name", "0"),
        ];
        let mut changed = file(&nodes);
        let at = at % changed.len();
        changed[at] = byte;
        write(&dir, "t.0.et", &changed);
        write(&dir, "t.1.et", file(&nodes));
        let _ = read_trace(&dir);
    }
}

#[test]
fn sizes_of_both_ends_agree_and_collectives_have_a_type() {
    let dir = TempDir::new().unwrap();
    let send = Fields::node(1, SEND).int32("comm_dst", 1).int64("comm_size", 10);
    let receive = |size| Fields::node(1, RECEIVE).int32("comm_src", 0).int64("comm_size", size);
    trace(&dir, &[vec![send.clone()], vec![receive(10)]]);
    assert_eq!(read_trace(&dir).unwrap().0.n_flows(), 1);
    trace(&dir, &[vec![send], vec![receive(11)]]);
    let error = read_trace(&dir).unwrap_err();
    assert!(error.contains("comm_size: expected 10, as of the send of rank 0, got 11"), "{error}");
    let untyped = vec![Fields::node(1, 7).int64("comm_size", 10)];
    trace(&dir, &[untyped.clone(), untyped]);
    let error = read_trace(&dir).unwrap_err();
    assert!(error.contains("comm_type: expected a collective of the schema, got none"), "{error}");
}
