//! Warnings of links and paths that a transport uses unevenly.

use std::path::Path;

use rampmeter_exp::{Plan, Registry};

const HOSTS: [(&str, &str, f64); 4] =
    [("a", "s0", 100.0), ("b", "s0", 100.0), ("c", "s1", 100.0), ("d", "s1", 100.0)];

fn topology(switches: u32, links: &[(&str, &str, f64)]) -> String {
    let link = |&(a, b, gbps): &(&str, &str, f64)| {
        format!("{{ between = ['{a}', '{b}'], gbps = {gbps} }}")
    };
    let links: Vec<String> = links.iter().map(link).collect();
    let hosts = "hosts = ['a', 'b', 'c', 'd']";
    format!("kind = 'links', {hosts}, switches = {switches}, links = [{}]", links.join(", "))
}

/// Warnings of 10 flows of a transport at load 0.1 in a fabric.
fn warnings_of(transport: &str, fabric: &str, topology: &str) -> Vec<String> {
    let text = format!(
        "transport = {{ name = '{transport}' }}\ntopology = {{ {topology} }}\n\
         fabric = {{ {fabric} }}\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
    warnings.into_iter().map(|warning| warning.text).collect()
}

#[test]
fn a_slow_link_behind_equal_ones_is_reported_for_every_path_choice() {
    let spines = |far| [("s0", "s2", 100.0), ("s0", "s3", 100.0), ("s1", "s2", 100.0), far];
    let slow = topology(4, &[&HOSTS[..], &spines(("s1", "s3", 20.0))].concat());
    let equal = topology(4, &[&HOSTS[..], &spines(("s1", "s3", 100.0))].concat());
    let expected = "topology: link s1-s3 carries 20 Gbit/s in the direction from s3 and gets \
                    50.0 % of the packets from a to c, as switches spread them by the rates of \
                    their own links: expect long flows that are 2.5 times slower, \
                    or more if packets are lost there";
    for spray in ["random", "source-round-robin"] {
        let fabric = format!("spray = '{spray}'");
        let found = warnings_of("ndp", &fabric, &slow);
        assert!(found.iter().any(|line| line == expected), "{spray}: {found:?}");
        assert!(!warnings_of("ndp", &fabric, &equal).iter().any(|line| line.contains("spread")));
    }
}

/// Two spines of 40 Gbit/s, hosts of 100.
#[test]
fn a_core_of_slower_links_is_reported_for_single_path_transports() {
    let spines = |gbps| {
        let core = [("s0", "s2"), ("s0", "s3"), ("s1", "s2"), ("s1", "s3")];
        topology(4, &[&HOSTS[..], &core.map(|(a, b)| (a, b, gbps))].concat())
    };
    let warned = |transport: &str, fabric: &str, gbps| {
        let found = warnings_of(transport, fabric, &spines(gbps));
        let expected = format!(
            "topology: a message of {transport} from a to c has one path, of 40 Gbit/s at most \
             at link s0-s2, and all shortest paths together carry 2.0 times as much, as its \
             ideal does"
        );
        found.contains(&expected)
    };
    for transport in ["tcp", "dctcp", "pias", "hyline", "hpcc"] {
        assert!(warned(transport, "", 40.0), "{transport}");
        assert!(!warned(transport, "", 100.0), "{transport}");
    }
    for transport in ["homa", "dcpim", "phost"] {
        assert!(!warned(transport, "", 40.0), "{transport}");
        assert!(warned(transport, "spray = 'ecmp'", 40.0), "{transport}");
    }
    for fabric in ["", "spray = 'ecmp'"] {
        assert!(!warned("ndp", fabric, 40.0), "{fabric}");
    }
}

#[test]
fn links_that_become_slow_during_the_run_are_reported() {
    let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
    let slow = "faults = { changes = [{ link = 's1-s3', at-us = 5.0, gbps = 10.0 }] }";
    let found = warnings_of("homa", "", spines);
    assert!(!found.iter().any(|line| line.contains("faults.changes")));
    let found = warnings_of("homa", &format!("}}\n{slow}\nclocks = {{"), spines);
    let is_told = |line: &&String| {
        line.starts_with("topology: link s1-s3 carries 10 Gbit/s")
            && line.ends_with("after faults.changes at 5 us")
    };
    assert!(found.iter().any(|line| is_told(&line)), "{found:?}");
}

#[test]
fn path_choices_of_both_the_plan_and_the_transport_are_reported() {
    let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
    let one = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 1";
    let warned = |transport: &str, fabric: &str, topology: &str| {
        let found = warnings_of(transport, fabric, topology);
        let own = format!("fabric.spray: {transport} chooses paths without the fabric");
        found.iter().any(|line| line.starts_with(&own))
    };
    let choosers = ["capton", "cosy", "fastpass", "hyline", "ndp"];
    for name in Registry::builtin().about().iter().map(|about| about.name) {
        // A Python transport has no parameters here, and the ideal no packets.
        if ["ideal", "python"].contains(&name) {
            continue;
        }
        let chooses = choosers.contains(&name);
        for spray in ["spray = 'ecmp'", "spray = 'ecmp-pair'", "spray = 'random'"] {
            assert_eq!(warned(name, spray, spines), chooses, "{name}, {spray}");
            assert!(!warned(name, spray, one), "{name}, {spray}");
        }
        for usual in ["", "spray = 'source-round-robin'"] {
            assert!(!warned(name, usual, spines), "{name}, {usual}");
        }
    }
    // Cells of Fastpod have source routes in pods alone.
    let pod = "kind = 'pod', k = 4";
    assert!(warned("fastpod", "spray = 'ecmp'", pod) && !warned("fastpod", "", pod));
}

#[test]
fn packet_spraying_is_reported_for_transports_that_require_order() {
    let spines = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 2";
    let one = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 2, spines = 1";
    let warned = |transport: &str, fabric: &str, topology: &str| {
        let found = warnings_of(transport, fabric, topology);
        found.iter().any(|line| line.starts_with("fabric.spray: random sends"))
    };
    for transport in ["hpcc", "tcp", "dctcp", "pias"] {
        assert!(warned(transport, "spray = 'random'", spines), "{transport}");
        assert!(!warned(transport, "spray = 'ecmp'", spines), "{transport}");
        assert!(!warned(transport, "spray = 'random'", one), "{transport}");
    }
    assert!(!warned("ndp", "spray = 'random'", spines));
}
