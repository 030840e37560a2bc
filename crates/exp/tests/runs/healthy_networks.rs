//! Every transport in random networks without faults. They have second interfaces, hosts and links
//! of several rates, near and far hosts, cut-through switches, and every choice of paths. A flow
//! fails or remains unfinished only if a warning reports that packets are lost or links are
//! overloaded.
//!
//! `RAMPMETER_SEEDS` is the number of networks.

use std::fmt::Write as _;
use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, run};
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;
use rampmeter_types::{Purpose, Rng};

/// Parts of warnings that announce flows that may not finish.
const ANNOUNCED: [&str; 4] = ["narrow-core", "narrow-inner-links", "slower-than-slots", "overload"];
const NETWORKS: u64 = 16;

/// A link: its ends, its rate in Gbit/s and its propagation in nanoseconds.
type Link = (String, String, f64, f64);

struct Draw(Rng);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.bernoulli(p)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.uniform_below(choices.len())]
    }

    /// Returns the number of hosts, that of switches, and the links.
    fn network(&mut self) -> (usize, usize, Vec<Link>) {
        let hosts = self.pick(&[4, 6, 8]);
        let racks = self.pick(&[1, 2, 3]);
        let rates: &[f64] = self.pick(&[
            &[1.0, 10.0, 100.0][..],
            &[10.0, 25.0, 40.0, 100.0],
            &[25.0, 100.0, 400.0],
            &[100.0],
        ]);
        let delays: &[f64] = self.pick(&[
            &[200.0][..],
            &[100.0, 500.0, 5_000.0],
            &[500.0, 50_000.0],
            &[100.0, 1_000_000.0],
        ]);
        let link = |draw: &mut Self, a: String, b: String, rates: &[f64]| {
            let (gbps, ns) = (draw.pick(rates), draw.pick(delays));
            (a, b, gbps, ns)
        };
        let mut links = Vec::new();
        for host in 0..hosts {
            let rack = self.0.uniform_below(racks);
            let host = format!("h{host}");
            links.push(link(self, host, format!("s{rack}"), rates));
        }
        let mut switches = racks;
        if racks > 1 {
            let fast = rates[rates.len() - 1];
            let core = self.pick(&[[fast, fast], [fast, 4.0 * fast], [4.0 * fast; 2]]);
            for _ in 0..self.pick(&[1, 2, 3]) {
                for rack in 0..racks {
                    links.push(link(self, format!("s{rack}"), format!("s{switches}"), &core));
                }
                switches += 1;
            }
        }
        if self.chance(0.5) {
            switches = self.second_interfaces(hosts, switches, &mut links);
        }
        let order: Vec<usize> = self.order(switches);
        let renamed = |end: String| match end.strip_prefix('s') {
            Some(switch) => format!("s{}", order[switch.parse::<usize>().unwrap()]),
            None => end,
        };
        let links = links.into_iter().map(|(a, b, gbps, ns)| (renamed(a), renamed(b), gbps, ns));
        (hosts, switches, links.collect())
    }

    /// Adds an interface to some hosts or all, and returns the number of switches then.
    fn second_interfaces(&mut self, hosts: usize, switches: usize, links: &mut Vec<Link>) -> usize {
        let (gbps, ns) = (self.pick(&[1.0, 10.0, 100.0]), self.pick(&[500.0, 50_000.0]));
        let share = self.pick(&[0.4, 1.0]);
        let own = format!("s{switches}");
        let mut added = Vec::new();
        for host in 0..hosts {
            if self.chance(share) {
                added.push((format!("h{host}"), own.clone(), gbps, ns));
            }
        }
        if added.is_empty() {
            return switches;
        }
        if self.chance(0.4) {
            added.push((own, "s0".to_owned(), gbps, ns));
        }
        match self.chance(0.5) {
            true => links.extend(added),
            false => drop(links.splice(0..0, added)),
        }
        switches + 1
    }

    /// Returns the numbers below `n`, in a random order half of the time.
    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        if self.chance(0.5) {
            (1..n).rev().for_each(|last| order.swap(last, self.0.uniform_below(last + 1)));
        }
        order
    }

    fn fabric(&mut self) -> String {
        let mut text = String::from("[fabric]\n");
        if self.chance(0.6) {
            let spray = self.pick(&["random", "ecmp", "source-round-robin"]);
            writeln!(text, "spray = '{spray}'").unwrap();
        }
        if self.chance(0.4) {
            text.push_str("switching = 'cut-through'\n");
        }
        text
    }

    /// Lone flows, far apart in time.
    fn lone(&mut self, hosts: usize, links: &[Link]) -> String {
        let slowest = links.iter().map(|(_, _, gbps, _)| *gbps).fold(f64::INFINITY, f64::min);
        let farthest = links.iter().map(|(_, _, _, ns)| *ns).fold(0.0, f64::max);
        let mut csv = String::from("arrival_us,src,dst,size_bytes\n");
        let mut at = 0.0;
        for size in [1, 1_461, 30_000, 300_000, 3_000_000, 1_461, 100_000] {
            let src = self.0.uniform_below(hosts);
            let dst = (src + 1 + self.0.uniform_below(hosts - 1)) % hosts;
            writeln!(csv, "{at:.0},{src},{dst},{size}").unwrap();
            at += 200.0 + f64::from(size) * 8.0 / slowest / 1e3 * 3.0 + 0.12 * farthest;
        }
        csv
    }
}

/// Runs a plan in `dir`, and returns the faults of its outcome.
fn fault(text: &str, dir: &Path, registry: &Registry) -> Option<String> {
    let plan = Plan::from_toml(text, "plan", registry).unwrap();
    // A refusal names the key.
    let plan = plan.check("plan", dir).ok()?;
    let out = tempfile::tempdir().unwrap();
    let flows = run(&plan, out.path(), &mut NullObserver).unwrap().flows;
    let warnings = plan.warnings();
    let is_announced = warnings.iter().any(|warning| ANNOUNCED.contains(&warning.code));
    let lost = flows.failed + flows.unfinished;
    (lost > 0 && !is_announced).then(|| format!("{flows:?}\n{warnings:?}\n{text}"))
}

#[test]
fn flows_finish_in_healthy_networks() {
    let registry = Registry::builtin();
    let names: Vec<String> = registry.about().into_iter().map(|of| of.name.to_string()).collect();
    each_seed(here!(), "flows_finish_in_healthy_networks", 0..NETWORKS, |seed| {
        let mut draw = Draw(Rng::new(seed, 0, Purpose::Test));
        let (hosts, switches, links) = draw.network();
        let mut topology = format!("kind = 'links'\nhosts = {hosts}\nswitches = {switches}\n");
        topology.push_str("links = [\n");
        for (a, b, gbps, ns) in &links {
            let ends = format!("between = ['{a}', '{b}']");
            writeln!(topology, "{{ {ends}, gbps = {gbps:?}, propagation-ns = {ns:?} }},").unwrap();
        }
        let fabric = draw.fabric();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f.csv"), draw.lone(hosts, &links)).unwrap();
        let lone = "pattern = 'trace'\nfile = 'f.csv'";
        let load = "pattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.3\nflows = 60";
        for (name, workload) in names.iter().flat_map(|name| [(name, lone), (name, load)]) {
            let text = format!(
                "seed = {seed}\n[topology]\n{topology}]\n{fabric}[transport]\nname = '{name}'\n\
                 [workload]\n{workload}\n[run]\nsample-us = 0.0\ndrain-us = 10_000_000.0\n"
            );
            let found = fault(&text, dir.path(), &registry);
            assert!(found.is_none(), "{name}: {}", found.unwrap_or_default());
        }
    });
}

/// Timeouts that are shorter than a round trip: a packet takes 12 us at 1 Gbit/s.
#[test]
fn flows_finish_with_the_shortest_timeouts() {
    let registry = Registry::builtin();
    for name in ["tcp", "dctcp", "pias", "hyline", "capton"] {
        let text = format!(
            "[topology]\nkind = 'star'\nhosts = 4\naccess-gbps = 1.0\n\
             [transport]\nname = '{name}'\nrto-min-us = 1\n\
             [workload]\npattern = 'incast'\nfan = 3\nrounds = 1\nflow-bytes = 6000\n\
             [run]\nsample-us = 0.0\n"
        );
        let found = fault(&text, Path::new("."), &registry);
        assert!(found.is_none(), "{name}: {}", found.unwrap_or_default());
    }
}
