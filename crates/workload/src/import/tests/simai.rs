//! Workloads of ASTRA-sim's first versions; those of SimAI are among the tests of traces.

use super::*;

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
    assert_eq!(graph.n_flows(), 2 * 12);
    assert_eq!(
        notes,
        [
            "w.txt: HYBRID_DLRM 4: the number is not used, all layers are waited for",
            "w.txt: 1 layer with more than 12 columns, which are not used",
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
    let text = "\u{feff}HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 2 0 \
                1 checkpoint_initiates: 1 1 all_gpus: 4\n1\nl -1 5 ALLGATHER 37632 5 NONE 0 5 NONE 0 \
                5\n";
    let (graph, notes) = read_text(text, 4).unwrap();
    assert_eq!(graph.n_flows(), 4);
    assert_eq!(
        notes,
        [
            "w.txt: checkpoints of layers 0, 1 are not used: no layer is computed again",
            "w.txt: checkpoint_initiates of layers 1 are not used: no layer is computed again",
        ]
    );
    let short = text.replace("checkpoint_initiates: 1 1 all_gpus: 4", "").replace(": 2 0", ": 3 0");
    let error = read_text(&short, 4).unwrap_err();
    assert!(error.contains("expected 3 layers after checkpoints, as its number says"), "{error}");
}
