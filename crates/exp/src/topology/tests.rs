//! Files of topologies, right and wrong.

mod kinds;

use rampmeter_sim::Topology;

use super::import::ImportedTopology;
use super::parse;

fn read(name: &str, text: &str) -> (Topology, ImportedTopology) {
    let imported = parse(name, text, false).unwrap();
    (imported.spec.build().unwrap(), imported)
}

fn error(name: &str, text: &str) -> String {
    parse(name, text, false).map(|imported| imported.spec.build().err()).unwrap_err().to_string()
}

/// Returns the links as `h0-s0 gbps ns`.
fn links(topology: &Topology) -> Vec<String> {
    let link = |link: &rampmeter_sim::topo::Link| {
        let (gbps, ns) = (link.rate.as_bps() as f64 / 1e9, link.propagation.as_ps() as f64 / 1e3);
        format!("{}-{} {gbps} {ns}", link.a, link.b)
    };
    topology.links().iter().map(link).collect()
}

const NS3: &str = "5 2 4\n0 3\n0 1 25Gbps 1000ns 0.000000\n2 0 25000000000.0 0.001ms 0.1\n\
                   0 3 100Gbps 1us 0\n3 4 10Gb/s 0.5us 0\nleft over\n";

#[test]
fn nodes_of_ns_3_are_hosts_in_the_order_of_their_numbers() {
    let (topology, imported) = read("topology.txt", NS3);
    let expected = ["h0-s0 25 1000", "h1-s0 25 1000", "s0-s1 100 1000", "h2-s1 10 500"];
    assert_eq!(links(&topology), expected);
    assert_eq!(imported.names.hosts, ["n1", "n2", "n4"]);
    assert_eq!(imported.names.switches, ["n0", "n3"]);
    assert_eq!(imported.losses, [(1, 0.1)]);
    let hosts = imported.host_names();
    assert_eq!((hosts.node(4), hosts.host("n2")), (Ok(2), Ok(1)));
    assert!(hosts.node(3).is_err());
    let note = "1 line after the links that line 1 counts (4): not read";
    assert_eq!(imported.notes, [note]);
}

#[test]
fn links_of_ns_3_between_the_same_nodes_are_noted() {
    let twice = "4 1 4\n3\n0 3 25Gbps 1us 0\n1 3 25Gbps 1us 0\n0 3 25Gbps 1us 0\n\
                 2 3 25Gbps 1us 0\n";
    let (topology, imported) = read("topology.txt", twice);
    let note = "lines 3, 5: 2 links n0-n3, which are parallel: is each of them meant?";
    assert_eq!((topology.links().len(), &imported.notes[..]), (4, &[note.to_owned()][..]));
    let once = twice.replace("4 1 4", "4 1 3").replacen("0 3 25Gbps 1us 0\n", "", 1);
    assert!(read("topology.txt", &once).1.notes.is_empty());
}

/// Tests that the output of `rampmeter convert` is the same topology.
#[test]
fn a_topology_is_written_as_a_list_of_links() {
    let (topology, imported) = read("topology.txt", NS3);
    let (text, n_links) = imported.to_toml().unwrap();
    let (same, again) = read("t.toml", &text);
    assert_eq!((same, n_links), (topology, 4));
    assert_eq!((again.names, again.losses), (imported.names, imported.losses));
}

#[test]
fn simai_counts_switches_within_servers_apart() {
    let text = "6 2 1 2 5 H100\n2 4 5 \n0 2 2400Gbps 0.000025ms 0\n1 2 2400Gbps 0.000025ms 0\n\
                0 4 400Gbps 0.0005ms 0\n1 5 400Gbps 0.0005ms 0\n3 4 400Gbps 0.0005ms 0\n";
    let imported = parse("HPN", text, false).unwrap();
    assert_eq!(imported.names.hosts, ["n0", "n1", "n3"]);
    assert_eq!(imported.names.switches, ["n2", "n4", "n5"]);
    assert_eq!(imported.notes, ["the kind of GPU (H100) and GPUs a server are not used"]);
}

/// First lines of `PowerTCP`'s and Reverie's files.
#[test]
fn ns3_datacenter_counts_tors_and_names_two_rates() {
    let rest = "\n0\n1 0 25000000000 1us 0\n2 0 25000000000 1us 0\n3 0 25Gbps 1us 0\n";
    for (header, note) in [
        ("4 1 1 3", "the number of ToR switches is not used"),
        (
            "4 1 1 3 25000000000 25000000000",
            "the number of ToR switches and the two rates of the first line are not used: each \
             link has its own",
        ),
    ] {
        let (topology, imported) = read("topology.txt", &format!("{header}{rest}"));
        assert_eq!(links(&topology), ["h0-s0 25 1000", "h1-s0 25 1000", "h2-s0 25 1000"]);
        assert_eq!(imported.names.hosts, ["n1", "n2", "n3"]);
        assert_eq!(imported.notes, [note]);
    }
}

#[test]
fn errors_of_ns_3_files_name_place_expectation_and_content() {
    let of = " (read as a topology of ns-3)";
    let cases = [
        (
            "3 1 2\n0\n0 1 fast 1us 0\n",
            "line 3: link 0 (n0-n1): rate: expected a rate from 1kbps to 100Tbps (a number without \
             a unit is bit/s), got \"fast\"",
        ),
        ("3 1 2\n0\n0 3 1Gbps 1us 0\n", "line 3: expected a node below 3, got \"3\""),
        ("3 1 2\n0\n0 1 1Gbps 1us 0\n", "line 1: expected 1 link, as many as follow, got 2"),
        ("3 1 2\n0 1\n", "line 2: expected 1 switch, got 2"),
        (
            "3 1 2\n0\n0 1 1Gbps 1us 2\n",
            "line 3: link 0 (n0-n1): loss: expected a probability from 0 to 1, got \"2\"",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error("t.txt", text), format!("{message}{of}"));
    }
    let (_, imported) = read("t.txt", "3 1 2\n0\n0 1 1Gbps 0.000001 0\n0 2 1Gbps 1us 0\n");
    let note = "line 3: delay 0.000001 has no unit and is read as seconds, as ns-3 does: is that \
                meant?";
    assert_eq!(imported.notes, [note]);
}

const TOPO: &str = "# a fat-tree\nNodes 8\nTiers 3\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 200\n\
                    Radix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 100\n\n\
                    Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\n\
                    Downlink_Latency_ns 1000\nBundle 1\nSwitch_Latency_ns 100\nTier 2\n\
                    Downlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 500\nBundle 2\n\
                    Switch_Latency_ns 300\nQueue_Down 100\n";

#[test]
fn a_fat_tree_of_htsim_has_its_bundles_and_latencies() {
    let (topology, imported) = read("8nodes.topo", TOPO);
    let links = links(&topology);
    // Hosts, 2 x 2 of ToRs in each pod, and two to each of two cores for each aggregation switch.
    assert_eq!(links.len(), 8 + 8 + 16);
    assert_eq!(links[0], "h0-s0 200 1000");
    // Half of the 200 ns by which the core is slower.
    assert_eq!(links[16..18], ["s4-s8 100 600", "s4-s8 100 600"]);
    assert_eq!((topology.n_hosts(), topology.n_switches()), (8, 4 + 4 + 4));
    assert_eq!(imported.names.switches[3..6], ["tor3", "agg0", "agg1"]);
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
}

#[test]
fn spines_of_htsim_are_shared_by_all_racks() {
    let text = "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                Radix_Up 2\nDownlink_Latency_ns 1000\nOversubscribed 2\nTier 1\n\
                Downlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1000\n";
    let (topology, _) = read("t", text);
    assert_eq!((topology.n_hosts(), topology.n_switches(), topology.links().len()), (8, 4, 12));
    // Two tiers need no pods.
    for pod in ["", "Podsize 4\n"] {
        assert_eq!(read("t", &text.replace("Podsize 8\n", pod)).0, topology, "{pod}");
    }
    let wrong = error("t", &TOPO.replace("Podsize 4\n", ""));
    assert!(
        wrong.starts_with("expected Podsize, the number of hosts in a pod of three"),
        "{wrong}"
    );
    let wrong = error("t", &text.replace("Oversubscribed 2", "Oversubscribed 4"));
    let expected = "line 4: tier 0: expected Oversubscribed 2, as the radixes require, got 4 (read \
                    as a topology of htsim)";
    assert_eq!(wrong, expected);
    let wrong = error("t", &text.replace("Radix_Up", "Radix_Upp"));
    assert!(wrong.starts_with("line 7: expected Downlink_speed_Gbps, "), "{wrong}");
    let wrong = error("t", &text.replace("Radix_Up 2\n", ""));
    assert!(wrong.starts_with("line 4: tier 0: expected Radix_Up, got none"), "{wrong}");
}

#[test]
fn networks_of_astra_sim_are_read_in_yaml_and_json() {
    let yaml = "# one switch\ntopology: [ Switch ]\nnpus_count: [ 4 ]\n\
                bandwidth: [ 50.0 ]  # GB/s\n\
                latency: [ 500.0 ]\n";
    let (topology, imported) = read("network.yml", yaml);
    assert_eq!(links(&topology)[0], "h0-s0 429.4967296 500");
    assert_eq!(imported.names.hosts, ["npu0", "npu1", "npu2", "npu3"]);
    let json = r#"{"topology": ["Ring", "Switch"], "npus_count": [3, 2], "bandwidth": [100, 50],
        "latency": [10, 20]}"#;
    let (topology, _) = read("network.json", json);
    // A link a host, two rings of three, and three switches of two.
    assert_eq!(topology.links().len(), 6 + 6 + 6);
    assert_eq!(links(&topology)[6], "s0-s1 858.9934592 10");
    let old = r#"{"topology-name": "Hierarchical", "topologies-per-dim": ["FullyConnected"],
        "dimensions-count": 1, "units-count": [3], "links-count": [4], "link-latency": [500],
        "link-bandwidth": [25], "nic-latency": [0]}"#;
    let (topology, imported) = read("old.json", old);
    assert_eq!(topology.links().len(), 3 + 2 * 3);
    assert_eq!(imported.notes[0], "nic-latency is not used");
    assert!(error("n.json", r#"{"logical-dims": ["8"]}"#).contains("TOPOLOGY_FILE"));
    let wrong = error("n.yml", &yaml.replace("Switch", "Torus"));
    let expected = "line 2: topology: expected Ring, FullyConnected or Switch, got \"Torus\"";
    assert!(wrong.starts_with(expected), "{wrong}");
}

#[test]
fn networks_of_astra_sim_may_have_one_dimension_without_brackets() {
    let text = "# of\ntopology: Switch  # Ring, Switch\nnpus_count: [4]\nbandwidth: 25.0\n\
                latency: [1.0]\n";
    let (topology, _) = read("e2e.yml", text);
    assert_eq!(links(&topology)[..1], ["h0-s0 214.7483648 1"]);
    assert_eq!(topology.n_hosts(), 4);
    for (from, to, expected) in [
        ("25.0", "25GB/s", "line 4: bandwidth: expected numbers, got \"25GB/s\""),
        ("[4]", "[4, 2]", "line 3: npus_count: expected 1 value, one a dimension, got 2"),
        ("[4]", "{a: 4}", "line 3: npus_count: expected a list, got {\"a\":4}"),
        ("latency: [1.0]", "", "latency: expected a list, got none"),
    ] {
        let got = error("e2e.yml", &text.replace(from, to));
        assert_eq!(got, format!("{expected} (read as a topology of ASTRA-sim)"));
    }
}

const NAMED: &str = "kind = \"links\"\nhosts = [\"gpu-a\", \"gpu-b\"]\nswitches = [\"leaf\"]\n\
                     links = [\n{ between = [\"gpu-a\", \"leaf\"], gbps = \"25Gbps\" },\n\
                     { between = [\"leaf\", \"gpu-b\"], gbps = 25, propagation-ns = \"1us\", \
                     loss = 0.5 },\n]\n";

#[test]
fn nodes_have_names_and_numbers_have_units() {
    let (topology, imported) = read("t.toml", NAMED);
    assert_eq!(links(&topology), ["h0-s0 25 200", "h1-s0 25 1000"]);
    assert_eq!(imported.names.hosts, ["gpu-a", "gpu-b"]);
    assert_eq!(imported.losses, [(1, 0.5)]);
    assert_eq!(imported.names.link(&topology, "leaf-gpu-b"), Some(1));
    assert_eq!(imported.names.link(&topology, "gpu-a-leaf#1"), None);

    let json = r#"{"hosts": ["gpu-a", "gpu-b"], "switches": 1, "links": [
        {"between": ["gpu-a", "s0"], "gbps": 25},
        {"between": ["gpu-b", "s0"], "gbps": "25Gbps", "propagation-ns": "1us", "loss": 0.5}]}"#;
    let (same, _) = read("t.json", json);
    assert_eq!(links(&same), links(&topology));

    let csv = "from,to,gbps,propagation_ns,loss\ngpu-a,leaf,25,200,\ngpu-b,leaf,25Gbps,1us,0.5\n";
    let (same, imported) = read("t.csv", csv);
    assert_eq!(links(&same), links(&topology));
    assert_eq!(imported.names.switches, ["leaf"]);
    assert_eq!(imported.losses, [(1, 0.5)]);
}

#[test]
fn mistakes_in_links_name_line_and_link() {
    let rate = "gbps: expected a rate from 0.000001 to 100000 Gbit/s, such as 25 or \"25Gbps\"";
    let wrong = |from: &str, to: &str| error("t.toml", &NAMED.replace(from, to));
    let got = wrong("25Gbps", "25G");
    assert_eq!(got, format!("line 5: link 0 (gpu-a-leaf): {rate}, got \"25G\""));
    let got = wrong("gbps = 25,", "gbps = 0,");
    assert_eq!(got, format!("line 6: link 1 (leaf-gpu-b): {rate}, got 0"));
    let got = wrong("[\"leaf\", \"gpu-b\"]", "[\"leaf\", \"gpu-c\"]");
    let expected = "line 6: link 1 (leaf-gpu-c): between: expected a host (gpu-a, gpu-b) or a \
                    switch (leaf), got \"gpu-c\"";
    assert_eq!(got, expected);
    let got = wrong("loss = 0.5", "lost = 0.5");
    let expected = "line 6: link 1 (leaf-gpu-b): unknown field `lost`, expected one of `between`, \
                    `gbps`, `gbps-back`, `propagation-ns`, `loss`";
    assert_eq!(got, expected);
    let got = wrong("[\"leaf\", \"gpu-b\"]", "[\"leaf\", \"leaf\"]");
    let expected = "line 6: link 1 (leaf-leaf): between: expected two different nodes, got \
                    [\"leaf\", \"leaf\"]";
    assert_eq!(got, expected);
    let got = wrong("\"gpu-b\"]\nsw", "\"gpu-a\"]\nsw");
    assert_eq!(got, "expected each name once, got \"gpu-a\" twice");
    let got = error("t.csv", "from,to,gbps\na,s,1\nb,s\n");
    assert_eq!(got, "line 3: expected 3 fields, got 2 (read as a topology of CSV)");
    let got = error(
        "t.json",
        "{\"hosts\": 2, \"switches\": 1, \"links\": [\n\n{\"between\": \
        [\"h0\", \"s0\"], \"gbps\": true}]}",
    );
    let expected = format!("line 3: link 0 (h0-s0): {rate}, got true (read as a topology of JSON)");
    assert_eq!(got, expected);
}

/// JSON has values that TOML has no word for, and no lines for keys.
#[test]
fn mistakes_in_json_name_the_key_in_words_of_the_format() {
    for (text, expected) in [
        ("[1]", "expected a table with hosts, switches and links, got a list or a value"),
        ("{'hosts': null}", "hosts: expected a value, got null"),
        ("{'links': [{'gbps': null}]}", "links[0].gbps: expected a value, got null"),
        (
            "{'hosts': -2, 'switches': 1, 'links': []}",
            "hosts: expected a whole number from 0, got -2",
        ),
        (
            "{'hosts': 2, 'switches': 1.5, 'links': []}",
            "switches: expected a whole number, got 1.5",
        ),
        ("{'hosts': 2, 'switches': 1, 'links': {}}", "links: expected a list, got a table"),
        ("{'kind': 'star', 'hosts': 'x'}", "hosts: expected a whole number, got \"x\""),
        (
            "{'hosts': 2, 'switches': 1, 'links': [{'between': ['h1']}]}",
            "line 1: link 0 (h1): between: expected a list of 2 values, got 1",
        ),
        (
            "{'hosts': 2, 'switches': 1, 'links': [{'between': ['h0', 0]}]}",
            "line 1: link 0 (h0): between[1]: expected a text, got 0",
        ),
    ] {
        let got = error("t.json", &text.replace('\'', "\""));
        assert_eq!(got, format!("{expected} (read as a topology of JSON)"));
    }
}

#[test]
fn columns_of_dataframes_and_fields_without_names_are_named() {
    let (_, imported) = read("t.csv", ",from,to\n0,a,s\n1,b,s\n");
    let note = "the column without a name (an index of pandas?) is not used";
    let defaults = "2 links have no gbps: 100 Gbit/s; 2 links have no propagation-ns: 200 ns";
    assert_eq!(imported.notes, [note, defaults]);
    let got = error("t.csv", "from,to\na,s\n,s\n");
    assert!(got.starts_with("line 3: expected the name of a node, got none"), "{got}");
    let got = error("t.txt", "3 1 2\n0\n1 0 25 1us 0\n2 0 25Gbps 1us 0\n");
    assert!(got.contains("(a number without a unit is bit/s), got \"25\""), "{got}");
}

/// Returns the message of a topology that cannot be built.
fn unbuilt(name: &str, text: &str) -> String {
    let imported = parse(name, text, false).unwrap();
    imported.problem(&imported.spec.build().unwrap_err()).to_string()
}

#[test]
fn links_that_cannot_be_built_are_named_with_their_line() {
    let twice = "expected each link of a host once, got \"leaf-gpu-a\" after \"gpu-a-leaf\": a \
                 link carries both directions; links in parallel have the same first end";
    let again = "{ between = [\"leaf\", \"gpu-a\"] },\n]";
    let got = unbuilt("t.toml", &NAMED.replace("\n]", &format!("\n{again}")));
    assert_eq!(got, format!("line 7: link 2 (leaf-gpu-a): {twice}"));
    let json = "{\"hosts\": [\"gpu-a\", \"b\"], \"switches\": [\"leaf\"], \"links\": [\n\
                {\"between\": [\"gpu-a\", \"leaf\"]}, {\"between\": [\"b\", \"leaf\"]},\n\
                {\"between\": [\"leaf\", \"gpu-a\"]}]}";
    assert_eq!(unbuilt("t.json", json), format!("line 3: link 2 (leaf-gpu-a): {twice}"));
    let ns3 = NS3.replace("3 4 10Gb/s", "1 4 10Gb/s");
    let got = unbuilt("t.txt", &ns3);
    assert!(
        got.starts_with("line 6: link 3 (n1-n4): expected links of host n1 to lead to"),
        "{got}"
    );
    let got = error("t.txt", &NS3.replace("0 3 100Gbps", "3 3 100Gbps"));
    assert!(got.starts_with("line 5: link 2: expected two different nodes, got \"3 3 "), "{got}");
}

#[test]
fn hosts_may_have_parallel_links_to_a_switch_in_all_formats() {
    let again = "{ between = [\"gpu-a\", \"leaf\"], gbps = 25 },\n]";
    let (topology, _) = read("t.toml", &NAMED.replace("\n]", &format!("\n{again}")));
    assert_eq!(topology.rails(), [2, 1]);
    let (topology, _) = read("t.csv", "from,to\na,s\nb,s\na,s\nb,s\n");
    assert_eq!(topology.rails(), [2, 2]);
    let ns3 = "3 1 4\n0\n1 0 25Gbps 1us 0\n1 0 25Gbps 1us 0\n2 0 25Gbps 1us 0\n2 0 25Gbps 1us 0\n";
    let (topology, _) = read("t.txt", ns3);
    assert_eq!(topology.rails(), [2, 2]);
    let got = unbuilt("t.txt", &ns3.replacen("1 0 25", "0 1 25", 1));
    assert!(got.starts_with("line 4: link 1 (n1-n0): expected each link of a host once"), "{got}");
}

/// Tables of spreadsheets in other languages, and tables that people align and comment.
#[test]
fn fields_of_csv_may_end_with_semicolons_or_tabs_and_lines_may_be_comments() {
    let text = "# links of a rack\nfrom,to,gbps,propagation_ns,loss\n# first\na,s,25,500,\n\n\
                \"b\",s,25Gbps,0.5us,0.5\n#c,s,1,1,\n";
    let (topology, imported) = read("t.csv", text);
    assert_eq!(links(&topology), ["h0-s0 25 500", "h1-s0 25 500"]);
    for separator in [";", "\t", " , "] {
        let (same, again) = read("t.csv", &text.replace(',', separator));
        assert_eq!(
            (same, again.losses),
            (topology.clone(), imported.losses.clone()),
            "{separator}"
        );
        assert_eq!(again.names, imported.names, "{separator}");
        let got = error("t.csv", &text.replace("25Gbps", "fast").replace(',', separator));
        let expected = "line 6: link 1 (b-s): gbps: expected a rate from";
        assert!(got.starts_with(expected), "{separator}: {got}");
    }
}

#[test]
fn links_of_csv_have_one_direction() {
    let text = "from,to,gbps\na,leaf,25\nb,leaf,25\nleaf,a,25\nleaf,b,25\n";
    let expected = "line 4: link 2: expected each link in one direction, got leaf-a after a-leaf \
                    in line 2: a link carries both; gbps-back has the rate from its second end to \
                    its first, and several links between two switches have the same first end \
                    (read as a topology of CSV)";
    assert_eq!(error("t.csv", text), expected);
    let (topology, _) = read("t.csv", "from,to\na,s\nb,t\ns,t\ns,t\n");
    assert_eq!(topology.links().len(), 4);
    let got = error("t.csv", "from,to\na,s\nb,s\ns,s\n");
    let expected = "line 4: link 2: expected two different nodes, got \"s\" twice (read as a \
                    topology of CSV)";
    assert_eq!(got, expected);
    // Without that link there is one host.
    let got = error("t.csv", "from,to\na,s\nb,b\n");
    assert!(got.starts_with("line 3: link 1: expected two different nodes"), "{got}");
}

#[test]
fn byte_order_marks_are_no_part_of_a_topology() {
    for (name, text) in [("t.txt", NS3), ("t", TOPO), ("t.toml", NAMED)] {
        let (topology, _) = read(name, text);
        assert_eq!(read(name, &format!("\u{feff}{text}")).0, topology, "{name}");
    }
}

#[test]
fn every_line_ending_of_csv_is_counted() {
    let text = "# links\nfrom,to,gbps\n\na,s,1\n# more\nb,s";
    for end in ["\n", "\r\n", "\r"] {
        for mark in ["", "\u{feff}"] {
            let got = error("t.csv", &format!("{mark}{}", text.replace('\n', end)));
            let expected = "line 6: expected 3 fields, got 2 (read as a topology of CSV)";
            assert_eq!(got, expected, "{end:?} {mark:?}");
        }
    }
}

#[test]
fn duplicate_columns_of_links_are_errors() {
    let got = error("t.csv", "from,to,gbps,gbps\na,s,1,2\n");
    let expected = "line 1: expected each column once, got gbps twice (read as a topology of CSV)";
    assert_eq!(got, expected);
    let got = error("t.csv", "from,to\na,s\nb,s,7\n");
    assert_eq!(got, "line 3: expected 2 fields, got 3 (read as a topology of CSV)");
}

#[test]
fn networks_of_astra_sim_may_be_yaml_in_blocks() {
    let block =
        "topology:\n  - Ring\nnpus_count:\n- 4  # NPUs\nbandwidth: [50.0]\nlatency:\n  - 500\n";
    let flow = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
    assert_eq!(read("n.yml", block).0, read("n.yml", flow).0);
    let got = error("n.yml", &block.replace("- 4", "\t- 4"));
    assert!(got.starts_with("line 4: "), "{got}");
}

#[test]
fn files_of_unknown_formats_name_the_known_ones() {
    let known = "expected a topology file of one of the formats ASTRA-sim, ns-3, htsim, JSON, CSV, \
                 TOML, got ";
    for (name, text, got) in [
        ("g.dot", "graph G { a -- s; }\n", "one that begins with \"graph G { a -- s; }\""),
        ("x.yml", "# of\nnodes:\n  - a\n", "one that begins with \"nodes:\""),
        (
            "x.graphml",
            "<graphml xmlns=\"a\">",
            "one that begins with \"<graphml xmlns=\\\"a\\\">\"",
        ),
        ("t.txt", "5 2\n", "one that begins with \"5 2\""),
        ("t.txt", "\n", "none in it"),
    ] {
        assert_eq!(error(name, text), format!("{known}{got}"));
    }
    assert!(error("t.toml", "kind links\n").starts_with("line 1, column 6"));
    assert!(error("t.txt", "kind = links\n").starts_with("line 1, column 8"));
}

#[test]
fn links_of_csv_that_lead_to_the_hosts_are_an_error_with_the_rule() {
    let rule = "a node that is never in column to is a host; list links from the hosts upwards, or \
                exchange the names of the columns from and to (read as a topology of CSV)";
    let down = "from,to,gbps\nspine0,leaf0,100\nspine0,leaf1,100\nspine1,leaf0,100\n\
                spine1,leaf1,100\nleaf0,h0,10\nleaf0,h1,10\nleaf1,h2,10\nleaf1,h3,10\n";
    let got = "expected links from hosts to switches, got host spine0 with 2 links and switch h0 \
               with one";
    assert_eq!(error("t.csv", down), format!("{got}: {rule}"));
    let (topology, imported) = read("t.csv", &down.replace("from,to", "to,from"));
    assert_eq!(imported.names.hosts, ["h0", "h1", "h2", "h3"]);
    assert_eq!(topology.n_switches(), 4);
    let got = "expected at least two hosts, got s alone";
    assert_eq!(error("t.csv", "from,to\ns,a\ns,b\n"), format!("{got}: {rule}"));
    let got = "expected at least two hosts, got none";
    assert_eq!(error("t.csv", "from,to\n"), format!("{got}: {rule}"));
    // Hosts with two interfaces, from the top.
    let two = "from,to\nA,x\nA,y\nA,z\nB,x\nB,y\nB,z\n";
    let (of_two, remedy) = (
        "expected links from hosts to switches, got 2 hosts such as A below 3 switches such as x",
        "if these are the hosts, give them names such as h0, or write the topology as TOML",
    );
    let rule = rule.replace(" (read", &format!("; {remedy} (read"));
    assert_eq!(error("t.csv", two), format!("{of_two}: {rule}"));
    let (_, imported) = read("t.csv", &two.replace("from,to", "to,from"));
    assert_eq!(imported.names.hosts, ["x", "y", "z"]);
    let tiers = "from,to\nsp0,leaf0\nsp0,leaf1\nsp1,leaf0\nsp1,leaf1\nleaf0,h0\nleaf1,h0\n\
                 leaf0,h1\nleaf1,h1\n";
    assert!(error("t.csv", tiers).contains("got 2 hosts such as sp0 below 2 switches such as h0"));
    let (_, imported) = read("t.csv", &tiers.replace("from,to", "to,from"));
    assert_eq!(imported.names.hosts, ["h0", "h1"]);
    // Two servers with a rail for each of three interfaces.
    let rails = two.replace(['A', 'B'], "gpu").replace("gpu,", "gpu0,");
    let rails = rails.replacen("gpu0", "gpu1", 3).replace(",x", ",rail0").replace(",y", ",rail1");
    let (_, imported) = read("t.csv", &rails.replace(",z", ",rail2"));
    assert_eq!(imported.names.hosts, ["gpu1", "gpu0"]);
    // Hosts with two interfaces, and a switch at the top that has one link.
    let (topology, _) = read("t.csv", "from,to\na,s\na,t\nb,s\nb,t\ns,top\n");
    assert_eq!((topology.n_hosts(), topology.n_switches()), (2, 3));
}
