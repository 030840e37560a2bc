//! Workloads of ASTRA-sim's first versions; those of SimAI are among the tests of traces.

use rampmeter_types::NodeId;

use super::*;
use crate::pattern::HostSet;

fn read_text(text: &str, n: u32) -> Result<(Graph, Vec<String>), String> {
    let dir = TempDir::new().unwrap();
    write(&dir, "w.txt", text);
    read(&dir, "w.txt", Format::Simai, n, &Options::default())
}

#[test]
fn policies_with_one_group_are_among_all_hosts_of_the_network() {
    let micro = "MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5  ALLTOALL 1048576 5\n";
    let (graph, notes) = read_text(micro, 8).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(sent(&graph, 8), [7 * (1 << 17); 8]);
    let data = "DATA\n1\nlayer\t-1\t5\tNONE\t0\t5\tNONE\t0\t5\tALLREDUCE\t8000\t5\n";
    let (graph, _) = read_text(data, 4).unwrap();
    assert_eq!(graph.rounds()[0].hosts.count(), 4);
    assert_eq!(sent(&graph, 4), [12_000; 4]);
}

#[test]
fn numbers_and_columns_that_are_not_used_are_named() {
    let text = "HYBRID_DLRM\t4\n1\nEmbedding\t-1\t300\tALLTOALL\t98304\t300\tALLTOALL\t98304\t300\t\
                NONE\t0\t98\tmore\n";
    let (graph, notes) = read_text(text, 4).unwrap();
    // The collective of layer 0's input begins after layer 5, which is not there.
    assert_eq!(graph.n_flows(), 12);
    assert_eq!(
        notes,
        [
            "w.txt: 1 layer with more than 12 columns, which are not used",
            "w.txt: 1 collective of the file is not used: HYBRID_DLRM does not run it in ASTRA-sim",
        ]
    );
}

#[test]
fn groups_that_a_policy_needs_must_be_there() {
    let layer = "1\nl -1 5 ALLGATHER 37632 5 NONE 0 5 ALLREDUCE 37632 5\n";
    assert_eq!(
        read_text(&format!("HYBRID_DATA_MODEL\n{layer}"), 8).unwrap_err(),
        "w.txt:1: model_parallel_NPU_group: expected hosts that share a model, as in \
         model_parallel_NPU_group: 4, got \"none\""
    );
    let (graph, _) =
        read_text(&format!("HYBRID_DATA_MODEL model_parallel_NPU_group: 4\n{layer}"), 8).unwrap();
    let hosts: Vec<(u32, Option<u32>)> =
        graph.rounds().iter().map(|round| (round.hosts.count(), round.hosts.step())).collect();
    assert_eq!(
        hosts,
        [(4, Some(1)), (4, Some(1)), (2, Some(4)), (2, Some(4)), (2, Some(4)), (2, Some(4))]
    );
    assert_eq!(
        read_text(&format!("DATA\n{layer}"), u32::MAX).unwrap_err(),
        "w.txt:1: all_gpus: expected a number of hosts here or a network, got \"none\""
    );
}

/// The layers after the number were read as keys.
#[test]
fn numbers_beyond_the_largest_network_are_not_cut() {
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 all_gpus: 4000000000";
    let error =
        read_text(&format!("{header}\n1\nl -1 5 NONE 0 1 NONE 0 1 NONE 0 1\n"), 8).unwrap_err();
    assert!(
        error.contains(":1: header: expected all_gpus up to 1048576, got \"4000000000\""),
        "{error}"
    );
}

#[test]
fn lists_of_checkpoints_are_named() {
    let text = "\u{feff}HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 \
                checkpoints: 2 0 1 checkpoint_initiates: 1 1 all_gpus: 4\n1\n\
                l -1 5 ALLGATHER 37632 5 NONE 0 5 NONE 0 5\n";
    let (graph, notes) = read_text(text, 4).unwrap();
    assert_eq!(graph.n_flows(), 4);
    assert_eq!(
        notes,
        [
            "w.txt: checkpoints of layers 0, 1 are not used: no layer is computed again",
            "w.txt: checkpoint_initiates of layer 1 are not used: no layer is computed again",
        ]
    );
    let short = text.replace("checkpoint_initiates: 1 1 all_gpus: 4", "").replace(": 2 0", ": 3 0");
    let error = read_text(&short, 4).unwrap_err();
    assert!(
        error.contains("expected 3 layers after checkpoints, as its number requires"),
        "{error}"
    );
}

/// Returns the messages in the order of their collectives: first pair of hosts, bytes, number of
/// messages.
fn rounds(graph: &Graph) -> Vec<(Vec<u32>, u64)> {
    let hosts = |set: &HostSet| set.iter().take(2).map(NodeId::get).collect();
    graph.rounds().iter().map(|round| (hosts(&round.hosts), round.bytes.get())).collect()
}

/// Order and groups are those of ASTRA-sim's `Workload`, policy by policy.
#[test]
fn each_policy_has_the_order_groups_and_vectors_of_astra_sim() {
    let layers = "2\na -1 1 ALLGATHER 100 2 ALLTOALL 200 3 ALLREDUCE 300 4\n\
                  b -1 1 ALLGATHER 101 2 ALLTOALL 201 3 ALLREDUCE 301 4\n";
    let of = |header: &str| {
        let (graph, notes) = read_text(&format!("{header}\n{layers}"), 4).unwrap();
        let mut seen = rounds(&graph);
        // One group of each collective.
        seen.dedup_by_key(|(_, bytes)| *bytes);
        (seen, notes.len())
    };
    let pair = |a, b| vec![a, b];
    let group = " model_parallel_NPU_group: 2";
    // Inputs before weights; the vector of an all-gather is that of the result.
    let (seen, n_notes) = of(&format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD{group}"));
    let expected = [100, 101, 201, 301, 200, 300];
    assert_eq!(seen.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), expected);
    assert_eq!(n_notes, 0);
    // All-gathers name the bytes of one host; layer 0 has no collective of its input.
    let (seen, n_notes) = of(&format!("HYBRID_DATA_MODEL{group}"));
    let expected = [
        (pair(0, 1), 200),
        (pair(0, 1), 202),
        (pair(0, 1), 201),
        (pair(0, 2), 301),
        (pair(0, 2), 300),
    ];
    assert_eq!((&seen[..], n_notes), (&expected[..], 1));
    let (seen, _) = of(&format!("HYBRID_MODEL_DATA{group}"));
    let expected = [
        (pair(0, 2), 200),
        (pair(0, 2), 202),
        (pair(0, 2), 201),
        (pair(0, 1), 301),
        (pair(0, 1), 300),
    ];
    assert_eq!(&seen[..], &expected[..]);
    let bytes = |header: &str| of(header).0.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>();
    assert_eq!(bytes("MODEL"), [400, 404, 201]);
    assert_eq!(bytes("DATA"), [301, 300]);
    assert_eq!(bytes("MICRO"), [300]);
    assert_eq!(bytes("DISTRIBUTED_INFERENCE"), [400, 404]);
    assert_eq!(bytes("HYBRID_DLRM 0"), [301, 200, 300]);
    assert_eq!(of("MODEL").1, 1);
}

/// Input gradients take 2 us a layer, those of weights 3 us.
#[test]
fn transformers_compute_gradients_of_inputs_before_those_of_weights() {
    let text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n\
                a -1 1 NONE 0 2 ALLREDUCE 200 3 ALLREDUCE 300 4\n";
    let (graph, _) = read_text(text, 4).unwrap();
    // A node's delay is that of the computation before it.
    let delay = |bytes: u64| {
        let flow = graph.flows().find(|(_, flow)| flow.size.get() == bytes / 2).unwrap().0;
        let before = graph.dependencies()[flow as usize][0];
        graph.delay(before).as_ps()
    };
    assert_eq!((delay(200), delay(300)), (2_000, 3_000));
}
