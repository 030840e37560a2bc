//! Warnings of links that delay paths.

use std::path::Path;

use rampmeter_exp::{Plan, Registry};

/// Warnings of a transport with packets; links have a propagation in nanoseconds.
fn warnings_of_delays(transport: &str, links: &[(&str, &str, f64)]) -> Vec<String> {
    let link = |&(a, b, ns): &(&str, &str, f64)| {
        format!("{{ between = ['{a}', '{b}'], gbps = 100, propagation-ns = {ns} }}")
    };
    let links: Vec<String> = links.iter().map(link).collect();
    let text = format!(
        "transport = {{ name = '{transport}' }}\n\
         topology = {{ kind = 'links', hosts = ['a', 'b', 'c', 'd'], switches = 4, \
         host-ns = 0, switch-ns = 0, links = [{}] }}\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10",
        links.join(", ")
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
    warnings.into_iter().map(|warning| warning.text).collect()
}

#[test]
fn links_that_delay_paths_are_reported_with_the_factor() {
    let spines = |far: f64| {
        let hosts =
            [("a", "s0", 500.0), ("b", "s0", 500.0), ("c", "s1", 500.0), ("d", "s1", 500.0)];
        let core = [("s0", "s2", 500.0), ("s1", "s2", 500.0), ("s0", "s3", far), ("s1", "s3", far)];
        [&hosts[..], &core].concat()
    };
    for transport in ["homa", "dctcp", "ndp"] {
        let found = warnings_of_delays(transport, &spines(50_000.0));
        let warning_text = |start: &str, end: &str| {
            found.iter().any(|line| line.starts_with(start) && line.contains(end))
        };
        let start = "topology: the shortest paths from a to c take 2.0";
        assert!(warning_text(start, "links s0-s3 and s1-s3 are up to 50."), "{found:?}");
        let start = "topology: round trips take 2.0";
        assert!(warning_text(start, "from a to c over links s0-s3 and s1-s3"), "{found:?}");
        let equal = warnings_of_delays(transport, &spines(500.0));
        assert!(!equal.iter().any(|line| line.contains(" take ")), "{equal:?}");
    }
}
