//! Warnings of outages and of links whose rates change.

use std::path::Path;

use rampmeter_exp::{Plan, Registry};

/// Warnings of `faults` at a load, in racks of four hosts with two spines of `core` Gbit/s.
fn warnings(load: f64, spines: u32, faults: &str) -> Vec<String> {
    let text = format!(
        "transport = {{ name = 'homa' }}\n\
         topology = {{ kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = {spines}, \
         core-gbps = 200 }}\nfaults = {{ {faults} }}\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = {load}\nflows = 10"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let found = plan.check("plan", Path::new(".")).unwrap().warnings();
    let found: Vec<String> = found.into_iter().map(|warning| warning.text).collect();
    found.into_iter().filter(|line| line.starts_with("faults")).collect()
}

/// Four sevenths of the traffic of four hosts leave a rack, by 400 Gbit/s or 200.
#[test]
fn loads_too_high_for_an_outage_are_reported() {
    let down = "outages = [{ switch = 's3', from-us = 5.0, until-us = 90000.0 }]";
    let expected = "faults: the load of 0.9 exceeds 0.875, at which link s0-s2 is full in \
                    the direction from s0 while s3 is down from 5 us on";
    assert_eq!(warnings(0.9, 2, down), [expected]);
    assert!(warnings(0.8, 2, down).is_empty());
    let short = format!("{down}, rerouting-us = 90000.0");
    assert!(warnings(0.9, 2, &short).is_empty());
    let slow = "changes = [{ link = 's0-s2', at-us = 5.0, gbps = 50.0 }]";
    let [warned] = &warnings(0.5, 1, slow)[..] else { panic!("one warning") };
    assert!(
        warned
            .ends_with("link s0-s2 is full in the direction from s0 after faults.changes at 5 us"),
        "{warned}"
    );
    assert!(warnings(0.2, 1, slow).is_empty());
}

#[test]
fn failures_that_disconnect_hosts_are_reported() {
    let down = "outages = [{ switch = 's2', from-us = 5.0, until-us = 90000.0 }]";
    let expected = "faults.outages: while s2 is down from 5 us on no path leads from h0 to h4 \
                    and between 31 more pairs of hosts: flows there wait for the repair, or \
                    fail";
    assert_eq!(warnings(0.1, 1, down), [expected]);
    assert!(warnings(0.1, 2, down).is_empty());
    assert!(warnings(0.1, 1, "outages = [{ host = 'h0', from-us = 5.0 }]").is_empty());
}

/// Warnings of a narrow core, of hosts with 400 Gbit/s and two spines.
fn narrow(transport: &str, faults: &str) -> Vec<String> {
    let text = format!(
        "transport = {{ name = '{transport}' }}\n\
         topology = {{ kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = 2, \
         core-gbps = 200 }}\nfaults = {{ {faults} }}\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let found = plan.check("plan", Path::new(".")).unwrap().warnings();
    let found = found.into_iter().filter(|warning| warning.code == "narrow-core");
    found.map(|warning| warning.text).collect()
}

#[test]
fn a_core_narrowed_by_a_failure_is_reported() {
    for (transport, is_told) in [("fastpass", true), ("ndp", true), ("homa", false)] {
        let down = "outages = [{ link = 's0-s2', from-us = 0.0 }]";
        let found = narrow(transport, down);
        assert_eq!(found.len(), usize::from(is_told), "{found:?}");
        let part = "carry 50.0 % of";
        let state = "while s0-s2 is down from 0 us on";
        assert!(found.iter().all(|warned| warned.contains(part) && warned.contains(state)));
        // All paths, and a host: other warnings.
        let none = "outages = [{ switch = 's2', from-us = 0.0 }, \
                    { switch = 's3', from-us = 0.0 }]";
        for other in [none, "outages = [{ host = 'h0', from-us = 0.0 }]"] {
            assert_eq!(narrow(transport, other), [""; 0]);
        }
    }
}

/// Warnings of changes of links in a dumbbell of hosts and a core of 10 Gbit/s.
fn risen(transport: &str, changes: &str) -> Vec<String> {
    let network = "kind = 'dumbbell', hosts-per-side = 1, access-gbps = 10, core-gbps = 10";
    risen_in(network, transport, changes)
}

fn risen_in(network: &str, transport: &str, changes: &str) -> Vec<String> {
    let text = format!(
        "transport = {{ name = '{transport}' }}\n\
         topology = {{ {network} }}\nfaults = {{ changes = [{changes}] }}\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let found = plan.check("plan", Path::new(".")).unwrap().warnings();
    let found = found.into_iter().filter(|warning| warning.code == "increased-rates");
    found.map(|warning| warning.text).collect()
}

#[test]
fn ports_without_memory_lose_cells_of_faster_links() {
    let network = "kind = 'leaf-spine', racks = 2, hosts-per-rack = 4, spines = 4, \
                   access-gbps = 10, core-gbps = 10";
    let change = "{ link = 'h0-s0', at-us = 20, gbps = 20 }";
    let consequence = |name| risen_in(network, name, change)[0].contains("messages that fail");
    assert!(consequence("fastpod") && !consequence("fastpass"));
}

/// A flow of 10 MB after the change has a slowdown of 1.01 with these three, and of 3 to 10.5
/// with the others.
const GROWING: [&str; 3] = ["dctcp", "pias", "tcp"];

#[test]
fn faster_host_links_are_reported_unless_windows_grow() {
    let changes = "{ link = 'h0-s0', at-us = 20.5, gbps = 40 }, \
                   { link = 's1-h1', at-us = 20.5, gbps = 25, gbps-back = 100 }";
    for transport in Registry::builtin().about().iter().map(|about| about.name) {
        let found = risen(transport, changes);
        if GROWING.contains(&transport) || ["ideal", "python"].contains(&transport) {
            assert!(found.is_empty(), "{transport}: {found:?}");
            continue;
        }
        let expected = format!(
            "faults.changes: link h1-s1 has 100 Gbit/s from 20.5 us on, 10 times the 10 \
             Gbit/s at the start, and 1 more link faster, too: windows, pacing and slots of \
             {transport} follow from the rates at the start, so its flows may use no more \
             than these"
        );
        assert_eq!(found, [expected]);
        // A rate that falls and returns is no higher than at the start.
        let back = "{ link = 'h0-s0', at-us = 2, gbps = 1 }, { link = 'h0-s0', at-us = 4, \
                    gbps = 10 }";
        assert_eq!(risen(transport, back), [""; 0]);
    }
}

/// Hosts limit the flows of the others.
#[test]
fn a_faster_core_is_reported_if_the_transport_schedules_it() {
    let changes = "{ link = 's0-s1', at-us = 20, gbps = 40 }";
    for transport in Registry::builtin().about().iter().map(|about| about.name) {
        let warned = risen(transport, changes).len();
        let expected = usize::from(["capton", "hyline"].contains(&transport));
        assert_eq!(warned, expected, "{transport}");
    }
}
