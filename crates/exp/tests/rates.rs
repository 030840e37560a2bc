//! Every transport at every rate on every kind of network. A lone flow has the link to itself, and
//! at half load no flow fails. No byte is sent twice unless a packet was lost, a timer expired, or
//! it is meant to be.

use std::collections::BTreeMap;
use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, RunStatus, Summary, run};
use rampmeter_proto::{Builtin, RegisteredTransport};
use rampmeter_testkit::{Body, Case, Suite, here};

const GBPS: [u32; 4] = [10, 25, 100, 400];

/// One switch, two tiers, three tiers, and two tiers with half of the capacity between racks. The
/// last number is the load of hosts at half of the capacity of the network.
fn networks(gbps: u32) -> [(&'static str, String, f64); 4] {
    let links = format!("access-gbps = {gbps}\ncore-gbps = {gbps}");
    [
        ("star", format!("kind = \"star\"\nhosts = 8\naccess-gbps = {gbps}"), 0.5),
        (
            "leaf-spine",
            format!("kind = \"leaf-spine\"\nracks = 3\nhosts-per-rack = 4\nspines = 4\n{links}"),
            0.5,
        ),
        ("three tiers", format!("kind = \"fat-tree\"\nk = 4\n{links}"), 0.5),
        (
            "over-subscribed",
            format!("kind = \"leaf-spine\"\nracks = 3\nhosts-per-rack = 4\nspines = 2\n{links}"),
            0.25,
        ),
    ]
}

/// Runs `test` for every rate and network, with the load. It returns the fault, if there is one.
fn each_network(test: impl Fn(u32, &str, f64) -> Option<String>) {
    let mut wrong = Vec::new();
    for gbps in GBPS {
        for (name, topology, load) in networks(gbps) {
            let found = test(gbps, &topology, load);
            wrong.extend(found.map(|found| format!("{name}, {gbps} Gbit/s: {found}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn result(transport: &str, topology: &str, workload: &str) -> (Summary, BTreeMap<String, f64>) {
    let text = format!(
        "[topology]\n{topology}\n[transport]\nname = \"{transport}\"\n[workload]\n{workload}\n\
         [run]\nsample-us = 0\n"
    );
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let plan = plan.check("plan", Path::new(".")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let summary = run(&plan, tempfile::tempdir().unwrap().path(), &mut NullObserver).unwrap();
    (summary, plan.derived())
}

/// Round trips that a transport may take before it sends a flow: two phases of dcPIM are the most.
const START_RTTS: f64 = 12.0;

/// Returns the bytes that are sent twice on purpose. Fastpod sends again with a schedule all that
/// it sent without one, and retransmits a message that is not acknowledged as a whole.
fn sent_twice(summary: &Summary) -> u64 {
    let count = |name| summary.transport.get(name).copied().unwrap_or(0);
    1_460 * (count("cells_unscheduled") + count("cells_retransmitted"))
}

/// A lone flow of 10 MB takes at most 6 % longer than without a protocol, its start not counted. It
/// is between racks if there are several.
#[derive(Clone, Copy)]
struct LoneFlow;

impl Body for LoneFlow {
    const NAME: &'static str = "lone_flow";

    fn test<T: RegisteredTransport>(self, _case: &Case<T>) {
        let workload = "pattern = \"incast\"\nfan = 1\nhub = 0\nflow-bytes = 10_000_000\n\
            peers = { first = 7, count = 1 }";
        each_network(|gbps, topology, _| {
            let (summary, derived) = result(T::NAME, topology, workload);
            let slowdown = summary.slowdown["delivered"].overall.as_ref().map_or(0.0, |s| s.mean);
            let ideal_us = 10e6 * 8.0 * 1500.0 / 1460.0 / f64::from(gbps) / 1e3;
            let most = 1.06 + START_RTTS * derived["data-rtt-us"] / ideal_us;
            let doubled = summary.counters.duplicate_bytes;
            let is_right = (1.0..=most).contains(&slowdown) && doubled <= sent_twice(&summary);
            (!is_right).then(|| format!("slowdown {slowdown:.3} of {most:.3}, {doubled} B twice"))
        });
    }
}

/// At half of the capacity of the network no flow of IMC10 fails. Duplicates are explained by
/// losses and by tokens that have expired. The exception is 2 % of the packets, which were delayed
/// for longer than the transport waits.
#[derive(Clone, Copy)]
struct HalfLoad;

impl Body for HalfLoad {
    const NAME: &'static str = "half_load";

    fn test<T: RegisteredTransport>(self, _case: &Case<T>) {
        each_network(|_, topology, load| {
            let workload =
                format!("pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = {load}\nflows = 1000");
            let (summary, _) = result(T::NAME, topology, &workload);
            let lost: u64 = summary.tiers.iter().flat_map(|t| t.drops.values()).sum();
            let expired = summary.transport.get("tokens_expired").copied().unwrap_or(0);
            // Tokens or slots that were granted again because their data was held up.
            let held_up = summary.counters.data_packets * 1_460 / 50;
            let doubled = summary.counters.duplicate_bytes;
            let (flows, status) = (&summary.flows, summary.status);
            let is_right = matches!(status, RunStatus::Finished | RunStatus::Incomplete)
                && flows.failed == 0
                && doubled <= 1_460 * (lost + expired) + held_up + sent_twice(&summary);
            (!is_right).then(|| {
                format!("{status:?}, {flows:?}, {doubled} B twice, {lost} lost, {expired} expired")
            })
        });
    }
}

fn main() {
    let name = "10-to-400-gbps";
    let suite = Suite::new(here!()).each_transport::<Builtin, _>(name, LoneFlow);
    suite.each_transport::<Builtin, _>(name, HalfLoad).run();
}
