//! Wrong files are recognised, too: the error is that of their format.

use std::path::Path;

use rampmeter_workload::trace::Options;

use super::{NAMED, NS3, TOPO, read};
use crate::convert;

/// Converts `text`, which is in the file `name`, to `target`; returns the notes or the error.
fn converted(
    (name, text): (&str, &str),
    format: &str,
    target: &str,
    topology: Option<(&str, &str)>,
) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path(name), text).unwrap();
    if let Some((name, text)) = topology {
        std::fs::write(path(name), text).unwrap();
        std::fs::write(path("ns3.txt"), NS3).unwrap();
    }
    let file = topology.map(|(name, _)| path(name));
    let (target, options) = (path(target), Options::default());
    let done = convert(&path(name), format, &target, false, file.as_deref(), &options);
    let plain = |text: String| text.replace(&format!("{}/", dir.path().display()), "");
    let notes = |done: crate::ConvertedFile| done.notes.into_iter().map(plain).collect();
    done.map(notes).map_err(|error| plain(error.to_string()))
}

const ASTRA: &str = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 5 ]\n";
const CSV: &str = "from,to,gbps,propagation-ns\na,s,1,1\nb,s,1,1\n";
const JSON: &str = "{\"hosts\": 2, \"switches\": 1, \"links\": [\n\
                    {\"between\": [\"h0\", \"s0\"]},\n{\"between\": [\"h1\", \"s0\"]}]}";

#[test]
fn wrong_topologies_have_the_error_of_their_format_in_every_command() {
    let topo = "line 4: expected Podsize to fill the Radix_Down of tier 0, a multiple of 3, got 4";
    let cases = [
        ("t.topo", TOPO, "Radix_Down 2\nRadix_Up 2", "Radix_Down 3\nRadix_Up 2", topo),
        (
            "t",
            TOPO,
            "Nodes 8",
            "Nodes 9",
            "line 2: expected Nodes to fill pods, a multiple of 4, got 9",
        ),
        ("t", TOPO, "Nodes 8", "Nodes x", "line 2: Nodes: expected a whole number, got \"x\""),
        ("t", TOPO, "Nodes 8", "Node 8", "line 2: expected Nodes, Tiers, Podsize or Tier, got"),
        ("t", TOPO, "Tiers 3\n", "", "expected Tiers, got none"),
        (
            "t",
            TOPO,
            "Downlink_Latency_ns 1000\nSwitch",
            "Switch",
            "line 6: tier 0: expected Downlink_Latency_ns, got none",
        ),
        (
            "t",
            TOPO,
            "Downlink_speed_Gbps 100",
            "Downlink_speed_Gbps 0",
            "line 21: Downlink_speed_Gbps: expected a rate from 0.000001 to 100000 Gbit/s, got \
             \"0\"",
        ),
        ("t.topo", TOPO, TOPO, "nothing\n", "line 1: expected Nodes, Tiers, Podsize or Tier"),
        ("t", NS3, "5 2 4", "5 2", "line 1: expected nodes, switches and links, got \"5 2\""),
        ("t", NS3, "25Gbps", "25G", "line 3: link 0 (n0-n1): rate: expected a rate"),
        ("t.yml", ASTRA, "npus_count", "npus", "npus_count: expected a list, got none"),
        ("t.yml", ASTRA, "[ Ring ]", "[ Ring", "line "),
        (
            "t.yml",
            ASTRA,
            "50.0",
            "0",
            "line 3: bandwidth: expected a bandwidth above 0 and up to 11641 GB/s in dimension 0, \
             got 0",
        ),
        ("t.csv", CSV, "from,to", "from,too", "line 1: expected a column to, got from,too,"),
        ("t.csv", CSV, "a,s,1,", "a,s,0,", "line 2: link 0 (a-s): gbps: expected a rate"),
        ("t.json", JSON, "\"h1\"", "\"h9\"", "line 3: link 1 (h9-s0): between: expected h0 to h1"),
        ("t.json", JSON, "]}]}", "]}]", "line 3, column 26: expected more JSON, got the end"),
        ("t.toml", NAMED, "switches = [\"leaf\"]\n", "", "line 4: link 0 (gpu-a-leaf): between: "),
        ("t.toml", NAMED, "]\n", "\n", "line "),
    ];
    for (name, right, from, to, expected) in cases {
        let text = right.replacen(from, to, 1);
        assert_ne!(text, right, "{name} {from}");
        for format in ["auto", "htsim"] {
            let got = converted((name, &text), format, "out.toml", None).unwrap_err();
            let got = after_file(name, &got);
            assert!(got.starts_with(expected), "{name}, {to:?} by {format}: {got}");
        }
        let got = converted((name, &text), "auto", "out.csv", None).unwrap_err();
        let expected = format!("{name}: expected a trace of flows, got a topology; for that, ");
        assert!(got.starts_with(&expected), "{name}, {to:?}: {got}");
    }
    let of_htsim = converted(("t.topo", TOPO), "htsim", "out.csv", None).unwrap_err();
    assert!(of_htsim.contains("got a topology"), "{of_htsim}");
}

/// Returns an error without its file. A line is after a colon: `t.topo:4`.
fn after_file(name: &str, error: &str) -> String {
    match error.strip_prefix(&format!("{name}:")).unwrap_or(error) {
        rest if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("line {rest}"),
        rest => rest.trim_start().to_owned(),
    }
}

#[test]
fn traces_are_no_topologies() {
    for (name, trace, format) in [
        ("a.cm", "Nodes 8\nConections 1\n0->7 start 5 size 100\n", "htsim"),
        ("a.txt", "1\n0 1 3 100 9 2\n", "hpcc"),
        ("a.csv", "arrival_ps,src,dst,size_bytes\n1,0,x,9\n", "csv"),
    ] {
        let got = converted((name, trace), "auto", "out.toml", None).unwrap_err();
        let expected =
            format!("{name}: expected a topology, got a trace of flows in format {format};");
        assert!(got.starts_with(&expected), "{got}");
    }
}

const MATRIX: &str = "Nodes 3\nConnections 1\nFailures 1\n0->2 start 5000 size 100\n\
                      failure switch_type TOR switch_id 0 link_id 0\n";

#[test]
fn failures_in_other_networks_than_those_of_htsim_name_the_file_that_they_need() {
    let fat_tree = ("fat.toml", "kind = 'fat-tree'\nk = 4\n");
    let got = converted(("a.cm", MATRIX), "auto", "a.csv", Some(fat_tree)).unwrap_err();
    let expected = "a.cm:5: failure: expected the topology of the matrix's .topo file, whose \
                    switches are tor0, agg0 and core0, and not one with the switches s0, s1, s2, \
                    ..., got link 0 of TOR 0";
    assert_eq!(got, expected);
}

/// Transport and workload of such a plan need not be there yet.
#[test]
fn the_network_of_a_plan_numbers_the_hosts_of_a_trace() {
    let trace = ("a.csv", "arrival_ps,src,dst,size_bytes\n1,gpu-b,gpu-c,9\n");
    let star = "names.hosts = ['gpu-a', 'gpu-b', 'gpu-c']\n\
                topology = { kind = 'star', hosts = 3, access-gbps = '25Gbps' }";
    let links = "seed = 1\n[topology]\nkind = 'links'\nhosts = ['gpu-a', 'gpu-b', 'gpu-c']\n\
                 switches = 1\nlinks = [{ between = ['gpu-a', 's0'] }, \
                 { between = ['gpu-b', 's0'] }, { between = ['gpu-c', 's0'] }]";
    let file = "names.hosts = ['gpu-a', 'gpu-b', 'gpu-c']\n\
                topology = { kind = 'file', file = 'ns3.txt' }";
    for plan in [star, links, file] {
        converted(trace, "auto", "out.parquet", Some(("plan.toml", plan))).unwrap();
    }
    let wrong = star.replace("25Gbps", "25G");
    let got = converted(trace, "auto", "out.parquet", Some(("plan.toml", &wrong))).unwrap_err();
    assert!(got.starts_with("plan.toml:2:54: topology.access-gbps: "), "{got}");
    let other = file.replace("ns3.txt", "a.csv");
    let got = converted(trace, "auto", "out.parquet", Some(("plan.toml", &other))).unwrap_err();
    assert!(got.starts_with("a.csv:1: expected a column from, got arrival_ps"), "{got}");
    let two = links.replace(", 'gpu-c']\ns", "]\ns").replace(", { between = ['gpu-c', 's0'] }", "");
    let got = converted(trace, "auto", "out.parquet", Some(("plan.toml", &two))).unwrap_err();
    assert!(got.contains("got \"gpu-c\", which is not in the topology"), "{got}");
}

/// Files of ns-3 list each link once, and links with the same ends are noted.
#[test]
fn links_listed_in_both_directions_are_noted_as_parallel_ones() {
    let text = "kind = 'links'\nhosts = 2\nswitches = ['x', 'y']\nlinks = [\n\
                { between = ['h0', 'x'], gbps = 1, propagation-ns = 1 },\n\
                { between = ['h1', 'y'], gbps = 1, propagation-ns = 1 },\n\
                { between = ['x', 'y'], gbps = 1, propagation-ns = 1 },\n\
                { between = ['x', 'y'], gbps = 1, propagation-ns = 1 },\nMORE]\n";
    assert_eq!(read("t.toml", &text.replace("MORE", "")).1.notes, [""; 0]);
    let more = "{ between = ['y', 'x'], gbps = 1, propagation-ns = 1 },\n";
    let note = "line 7 (x-y) and line 9 (y-x) are parallel links, as a link carries both \
                directions: is each of them meant?";
    assert_eq!(read("t.toml", &text.replace("MORE", more)).1.notes, [note]);
    // Plans have the same note.
    let plan = format!(
        "transport.name = 'dctcp'\nworkload = {{ pattern = 'all-to-all', sizes = 'imc10', load = \
         0.1, flows = 9 }}\n[topology]\n{}",
        text.replace("MORE", more)
    );
    let plan = crate::Plan::from_toml(&plan, "plan", &crate::Registry::for_tests()).unwrap();
    let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
    let notes = warnings.iter().filter(|warning| warning.code == "topology-note");
    let notes: Vec<&str> = notes.map(|warning| &*warning.text).collect();
    let note = "topology: link 2 (x-y) and link 4 (y-x) are parallel links, as a link carries both \
                directions: is each of them meant?";
    assert_eq!(notes, [note]);
}

#[test]
fn rates_and_delays_that_a_file_does_not_have_are_noted() {
    let csv = "from,to,gbps\na,s,\nb,s,25\n";
    let note = "1 link has no gbps: 100 Gbit/s; 2 links have no propagation-ns: 200 ns";
    let (topology, imported) = read("t.csv", csv);
    assert_eq!(super::links(&topology), ["h0-s0 100 200", "h1-s0 25 200"]);
    assert_eq!(imported.notes, [note]);
    assert_eq!(read("t.csv", CSV).1.notes, [""; 0]);
}
