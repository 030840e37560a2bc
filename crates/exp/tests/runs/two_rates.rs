//! Hosts whose links have several rates: short messages take the fast ones, long messages all.

use std::fmt::Write as _;

use rampmeter_exp::{NullObserver, Plan, Registry, Summary, run};
use rampmeter_metrics::read_flows;

/// Four hosts with a link of each of these rates to a switch each.
fn topology(gbps: &[u32]) -> String {
    let mut links = String::new();
    for (switch, rate) in gbps.iter().enumerate() {
        for host in 0..4 {
            let ends = format!("\"h{host}\", \"s{switch}\"");
            writeln!(links, "  {{ between = [{ends}], gbps = {rate} }},").unwrap();
        }
    }
    let n = gbps.len();
    format!("[topology]\nkind = \"links\"\nhosts = 4\nswitches = {n}\nlinks = [\n{links}]\n")
}

/// Returns the summary and the slowdowns of a transport's flows.
fn results(topology: &str, transport: &str, workload: &str, csv: &str) -> (Summary, Vec<f64>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f.csv"), csv).unwrap();
    let text = format!(
        "{topology}[transport]\nname = \"{transport}\"\n[workload]\n{workload}\n\
         [run]\nsample-us = 0\n"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let plan = plan.check("plan", dir.path()).unwrap_or_else(|error| panic!("{error}"));
    let summary = run(&plan, &dir.path().join("r"), &mut NullObserver).unwrap();
    let (flows, _) = read_flows(&dir.path().join("r").join("flows.parquet")).unwrap();
    let slowdowns = flows
        .fct_ps
        .iter()
        .zip(&flows.ideal_ps)
        .map(|(&f, &i)| f.unwrap() as f64 / i as f64)
        .collect();
    (summary, slowdowns)
}

const TRACE: &str = "pattern = \"trace\"\nfile = \"f.csv\"";

#[test]
fn short_lone_messages_take_the_fast_link_in_any_order_of_links() {
    let mut csv = "arrival_us,src,dst,size_bytes\n".to_owned();
    for n in 0..40 {
        writeln!(csv, "{},{},{},1000", n * 200, n % 4, (n + 1 + n / 4 % 3) % 4).unwrap();
    }
    for transport in ["homa", "homa-aeolus", "ndp", "sird", "pfabric", "dcpim", "tcp"] {
        for gbps in [[1, 100], [100, 1], [25, 100]] {
            let (_, slowdowns) = results(&topology(&gbps), transport, TRACE, &csv);
            let longest = slowdowns.iter().copied().fold(0.0, f64::max);
            // Connections of TCP are opened first.
            let most = if transport == "tcp" { 3.5 } else { 2.0 };
            assert!(longest < most, "{transport}, {gbps:?}: {longest}");
        }
    }
}

#[test]
fn long_messages_take_all_links_by_rate() {
    let csv = "arrival_us,src,dst,size_bytes\n0,0,1,10000000\n";
    for transport in ["homa", "ndp", "pfabric", "sird"] {
        let (_, slowdowns) = results(&topology(&[100, 400]), transport, TRACE, csv);
        // The fast link alone takes 1.25 times the ideal.
        assert!(slowdowns[0] < 1.15, "{transport}: {slowdowns:?}");
    }
}

#[test]
fn the_bound_of_a_ring_counts_only_links_that_lead_to_the_neighbour() {
    // Two servers of two hosts: 2400 Gbit/s within a server, 400 Gbit/s between them.
    let mut links = String::new();
    for host in 0..4 {
        let (ends, nic) = (host / 2, 2 + host % 2);
        writeln!(links, "{{ between = [\"h{host}\", \"s{ends}\"], gbps = 2400 }},").unwrap();
        writeln!(links, "{{ between = [\"h{host}\", \"s{nic}\"], gbps = 400 }},").unwrap();
    }
    for rail in 2..4 {
        writeln!(links, "{{ between = [\"s{rail}\", \"s4\"], gbps = 800 }},").unwrap();
    }
    let topology =
        format!("[topology]\nkind = \"links\"\nhosts = 4\nswitches = 5\nlinks = [\n{links}]\n");
    let ring = "pattern = \"collective\"\noperation = \"all-reduce\"\nvector-bytes = 8000000";
    for transport in ["ideal", "homa"] {
        let (summary, _) = results(&topology, transport, ring, "");
        let over = summary.collectives[0].lower_bound_ratio.unwrap();
        assert!((1.0..1.1).contains(&over), "{transport}: {over}");
    }
}
