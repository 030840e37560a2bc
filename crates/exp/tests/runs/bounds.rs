//! No flow is faster than its ideal, and no round of a collective than its bound, in random
//! networks. These have links of several rates, parallel links, second interfaces, and hosts that
//! forward. Links and switches fail or change during the run.
//!
//! `RAMPMETER_SEEDS` is the number of networks.

use std::fmt::Write as _;
use std::path::Path;

use rampmeter_exp::{Observer, Plan, Progress, Registry, Summary, run};
use rampmeter_metrics::{FlowColumns, read_flows};
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;
use rampmeter_types::{Purpose, Rng};

const NETWORKS: u64 = 40;
/// Events after which a run is cut short.
const EVENTS_MAX: u64 = 300_000;
const TRANSPORTS: [&str; 9] =
    ["dcpim", "ndp", "homa", "tcp", "hpcc", "phost", "pfabric", "sird", "ideal"];

/// Ends a run that has become long.
struct Limit;

impl Observer for Limit {
    fn on_progress(&mut self, progress: &Progress) -> bool {
        progress.events < EVENTS_MAX
    }
}

struct Draw(Rng);

impl Draw {
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.uniform_below(choices.len())]
    }

    /// Returns the number of hosts, and the tables of the network and its faults.
    fn network(&mut self) -> (usize, String) {
        let (hosts, switches) = (4 + self.0.uniform_below(4), 2 + self.0.uniform_below(4));
        let mut ends = Vec::new();
        for host in 0..hosts {
            ends.push((format!("h{host}"), format!("s{}", self.0.uniform_below(switches))));
        }
        // A ring, so that there are detours.
        ends.extend((0..switches).map(|s| (format!("s{s}"), format!("s{}", (s + 1) % switches))));
        for _ in 0..self.0.uniform_below(4) {
            let (a, b) = (self.0.uniform_below(switches), self.0.uniform_below(switches));
            if a != b {
                ends.push((format!("s{a}"), format!("s{b}")));
            }
        }
        let forwards = self.0.bernoulli(0.2);
        for host in 0..hosts {
            if self.0.bernoulli(0.2) {
                ends.push((format!("h{host}"), format!("s{}", self.0.uniform_below(switches))));
            }
        }
        let mut links = String::new();
        for (a, b) in &ends {
            let gbps = self.pick(&[1.0, 10.0, 25.0, 100.0]);
            let ns = self.pick(&[100.0, 500.0, 5_000.0]);
            let back = match self.0.bernoulli(0.1) {
                true => format!(", gbps-back = {:?}", self.pick(&[10.0, 100.0])),
                false => String::new(),
            };
            let between = format!("between = ['{a}', '{b}']");
            writeln!(links, "{{ {between}, gbps = {gbps:?}{back}, propagation-ns = {ns:?} }},")
                .unwrap();
        }
        let table = format!(
            "[topology]\nkind = 'links'\nhosts = {hosts}\nswitches = {switches}\n\
             hosts-forward = {forwards}\nlinks = [\n{links}]\n"
        );
        (hosts, table + &self.faults(ends.len(), switches))
    }

    fn faults(&mut self, links: usize, switches: usize) -> String {
        let mut text = format!("[faults]\nrerouting-us = {:?}\n", self.pick(&[0.0, 5.0, 50.0]));
        let from = |draw: &mut Self| 400.0 * draw.0.uniform_unit();
        for _ in 0..self.0.uniform_below(4) {
            let target = match self.0.bernoulli(0.8) {
                true => format!("link = {}", self.0.uniform_below(links)),
                false => format!("switch = {}", self.0.uniform_below(switches)),
            };
            let from = from(self);
            writeln!(text, "[[faults.outages]]\n{target}\nfrom-us = {from:.1}").unwrap();
            if self.0.bernoulli(0.7) {
                writeln!(text, "until-us = {:.1}", from + 1.0 + 400.0 * self.0.uniform_unit())
                    .unwrap();
            }
        }
        for _ in 0..self.0.uniform_below(3) {
            let (link, gbps) = (self.0.uniform_below(links), self.pick(&[1.0, 40.0, 200.0]));
            let at = from(self);
            let change = format!("link = {link}\nat-us = {at:.1}\ngbps = {gbps:?}");
            writeln!(text, "[[faults.changes]]\n{change}").unwrap();
        }
        text
    }

    fn fabric(&mut self) -> String {
        let mut text = String::from("[fabric]\n");
        if self.0.bernoulli(0.5) {
            let spray = self.pick(&["random", "ecmp", "source-round-robin"]);
            writeln!(text, "spray = '{spray}'").unwrap();
        }
        if self.0.bernoulli(0.4) {
            let switching = self.pick(&["cut-through", "shaped"]);
            writeln!(text, "switching = '{switching}'").unwrap();
        }
        text
    }
}

/// Runs a plan, and returns its flows; `None` if it is refused.
fn flows_of(text: &str, registry: &Registry) -> Option<(FlowColumns, Summary)> {
    let plan = Plan::from_toml(text, "plan", registry).unwrap();
    // A refusal names the key.
    let plan = plan.check("plan", Path::new(".")).ok()?;
    let out = tempfile::tempdir().unwrap();
    let summary = run(&plan, out.path(), &mut Limit).unwrap();
    Some((read_flows(&out.path().join("flows.parquet")).unwrap().0, summary))
}

#[test]
fn no_flow_is_faster_than_its_ideal() {
    let registry = Registry::builtin();
    each_seed(here!(), "no_flow_is_faster_than_its_ideal", 0..NETWORKS, |seed| {
        let mut draw = Draw(Rng::new(seed, 0, Purpose::Test));
        let (hosts, network) = draw.network();
        let fabric = draw.fabric();
        let load = "pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.3\nflows = 80";
        let sizes = draw.pick(&[1_000, 100_000]);
        let round = format!(
            "pattern = 'collective'\noperation = 'all-reduce'\nvector-bytes = {}",
            sizes * hosts
        );
        for (name, workload) in TRANSPORTS.iter().flat_map(|name| [(name, load), (name, &round)]) {
            let text = format!(
                "seed = {seed}\n{network}{fabric}[transport]\nname = '{name}'\n\
                 [workload]\n{workload}\n[run]\nsample-us = 0.0\ndrain-us = 20_000.0\n"
            );
            let Some((flows, summary)) = flows_of(&text, &registry) else { continue };
            for (n, fct) in flows.fct_ps.iter().enumerate() {
                let (Some(fct), ideal) = (*fct, flows.ideal_ps[n]) else { continue };
                let flow = flows.flow[n];
                assert!(fct >= ideal, "{name}: flow {flow}: {fct} ps, ideal {ideal} ps\n{text}");
            }
            for round in &summary.collectives {
                assert!(
                    round.lower_bound_ratio.is_none_or(|over| over >= 1.0),
                    "{round:?}\n{text}"
                );
            }
        }
    });
}

/// An outage moves flows to a path of more hops, which is faster than the shortest one.
#[test]
fn a_detour_that_is_faster_counts_in_the_ideal() {
    let registry = Registry::builtin();
    let text = "[topology]\nkind = 'links'\nhosts = 2\nswitches = 4\nlinks = [\n\
                { between = ['h0', 's0'] }, { between = ['h1', 's1'] },\n\
                { between = ['s0', 's1'], gbps = 1.0 }, { between = ['s0', 's2'] },\n\
                { between = ['s2', 's3'] }, { between = ['s3', 's1'] }]\n\
                [transport]\nname = 'homa'\n\
                [workload]\npattern = 'all-to-all'\nsizes = { fixed = 1000000 }\nload = 0.001\n\
                flows = 20\n";
    let outage = "[faults]\nrerouting-us = 0.0\n\
                  outages = [{ link = 's0-s1', from-us = 1.0, until-us = 3_000_000.0 }]\n";
    let least = |text: &str| {
        let (flows, _) = flows_of(text, &registry).unwrap();
        let slowdown = |n: usize| flows.fct_ps[n].unwrap() as f64 / flows.ideal_ps[n] as f64;
        let least = (0..flows.flow.len()).map(slowdown).fold(f64::INFINITY, f64::min);
        (least, flows.ideal_is_bound.iter().all(|&is_bound| is_bound))
    };
    let (slowdown, is_bound) = least(&format!("{text}{outage}"));
    assert!((1.0..1.1).contains(&slowdown) && is_bound, "{slowdown} {is_bound}");
    let (slowdown, is_bound) = least(text);
    assert!((1.0..1.1).contains(&slowdown) && !is_bound, "{slowdown} {is_bound}");
}
