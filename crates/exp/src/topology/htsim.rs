//! `.topo` files of htsim and uet-htsim: fat-trees of two or three tiers.
//!
//! ```text
//! Nodes 32
//! Tiers 2
//! Podsize 32
//!
//! Tier 0
//! Downlink_speed_Gbps 100
//! Radix_Down 8
//! Radix_Up 2
//! Downlink_Latency_ns 1000
//! ```
//!
//! A tier has the links below it: `Downlink_speed_Gbps`, `Downlink_Latency_ns`, `Radix_Down`,
//! `Radix_Up`, `Bundle` (parallel links), `Oversubscribed` and `Switch_Latency_ns`. Hosts are `h0`,
//! switches `tor0`, `agg0` and `core0`, numbered as in htsim. Aggregation switch `a` of a pod is
//! joined to the core switches `c` with `c mod A = a`. `A` is the number of aggregation switches a
//! pod.
//!
//! If latencies of switches differ by tier, all have the smallest one. Half of the rest is added to
//! each of a switch's links, so that every path between hosts keeps its latency. Sizes of queues
//! are not part of a topology.

use super::draft::{Link, TopologyDraft};
use super::import::ImportedTopology;
use crate::error::Problem;
use crate::text::units;

/// Keys that only these files have.
const KEYS: [&str; 7] = [
    "tiers",
    "podsize",
    "tier",
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "radix_down",
    "radix_up",
];

/// Returns true if a line is a key and a value; in TOML and CSV it is not.
pub(super) fn recognises(name: &str, _first: &str, text: &str) -> bool {
    let is_of_key = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let value = fields.get(1);
        value.is_some_and(|value| !value.starts_with('='))
            && KEYS.contains(&&*fields[0].to_ascii_lowercase())
    };
    name.to_ascii_lowercase().ends_with(".topo") || text.lines().any(is_of_key)
}

/// A tier of switches, with the links below it.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    line: usize,
    gbps: Option<f64>,
    latency_ns: Option<f64>,
    switch_ns: f64,
    radix_down: Option<u64>,
    radix_up: Option<u64>,
    bundle: Option<u64>,
    oversubscribed: Option<u64>,
}

pub(super) fn read(text: &str) -> Result<ImportedTopology, Problem> {
    let mut draft = TopologyDraft::default();
    let (mut nodes, mut n_tiers, mut pod) = (None, None, None);
    let mut lines = HostCountLines::default();
    let mut tiers = [Tier::default(); 3];
    let mut current = None;
    let mut has_queues = false;
    for (at, line) in (1_usize..).zip(text.lines().map(str::trim)) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [key, ref values @ ..] = fields[..] else { continue };
        if key.starts_with('#') {
            continue;
        }
        let field = Field { at, key, value: values.first().copied().unwrap_or_default() };
        let key = key.to_ascii_lowercase();
        match (&*key, current) {
            ("nodes", None) => (nodes, lines.nodes) = (Some(field.whole()?), at),
            ("tiers", None) => n_tiers = Some(field.whole()?),
            ("podsize", None) => (pod, lines.pod) = (Some(field.whole()?), at),
            ("tier", _) => {
                let tier = field.whole()? as usize;
                if tier > 2 {
                    return Err(Problem::on_line(at, "a tier from 0 to 2", tier));
                }
                tiers[tier].line = at;
                current = Some(tier);
            }
            (_, None) => {
                let expected = "Nodes, Tiers, Podsize or Tier";
                return Err(Problem::on_line(at, expected, format!("{line:?}")));
            }
            ("queue_up" | "queue_down", Some(_)) => has_queues = true,
            (key, Some(tier)) => {
                if !tiers[tier].set(key, &field)? {
                    let expected = "Downlink_speed_Gbps, Downlink_Latency_ns, Switch_Latency_ns, \
                                    Radix_Down, Radix_Up, Bundle, Oversubscribed, Queue_Up or \
                                    Queue_Down";
                    return Err(Problem::on_line(at, expected, format!("{line:?}")));
                }
            }
        }
    }
    if has_queues {
        let note = "Queue_Up and Queue_Down are not part of a topology: set `fabric.buffer-bytes`";
        draft.notes.push(note.to_owned());
    }
    let need = |value: Option<u64>, key: &str| {
        value.filter(|&value| value > 0).ok_or_else(|| Problem::unexpected(key, "none"))
    };
    let (nodes, n_tiers) = (need(nodes, "Nodes")?, need(n_tiers, "Tiers")? as usize);
    if !(2..=3).contains(&n_tiers) {
        return Err(Problem::unexpected("2 or 3 Tiers", n_tiers));
    }
    // All pods of two tiers share their spines, so that they may be one.
    let pod = if n_tiers == 2 { pod.or(Some(nodes)) } else { pod };
    let pod = need(pod, "Podsize, the number of hosts in a pod of three tiers")?;
    let shape = NodeCounts::new(nodes, pod, lines, &tiers[..n_tiers])?;
    shape.build(&mut draft, &tiers[..n_tiers]);
    Ok(draft.finish()?)
}

/// Lines of numbers of hosts.
#[derive(Clone, Copy, Debug, Default)]
struct HostCountLines {
    nodes: usize,
    pod: usize,
}

/// The first value of a line.
struct Field<'a> {
    at: usize,
    key: &'a str,
    value: &'a str,
}

impl Field<'_> {
    fn whole(&self) -> Result<u64, Problem> {
        let number = self.value.parse::<u64>().ok().filter(|&number| number <= 1 << 20);
        number.ok_or_else(|| self.problem("a whole number"))
    }

    fn real(&self) -> Result<f64, Problem> {
        let number = self.value.parse::<f64>().ok().filter(|number| (0.0..=1e9).contains(number));
        number.ok_or_else(|| self.problem("a number"))
    }

    fn rate(&self) -> Result<f64, Problem> {
        let gbps = Some(self.real()?).filter(|&gbps| units::is_rate(gbps));
        gbps.ok_or_else(|| self.problem("a rate from 0.000001 to 100000 Gbit/s"))
    }

    fn problem(&self, expected: &str) -> Problem {
        Problem::unexpected(expected, format!("{:?}", self.value)).at(Some(self.at), self.key)
    }
}

impl Tier {
    /// Takes a line of the tier. Returns false if the key is none of a tier.
    fn set(&mut self, key: &str, field: &Field<'_>) -> Result<bool, Problem> {
        match key {
            "downlink_speed_gbps" => self.gbps = Some(field.rate()?),
            "downlink_latency_ns" => self.latency_ns = Some(field.real()?),
            "switch_latency_ns" => self.switch_ns = field.real()?,
            "radix_down" => self.radix_down = Some(field.whole()?),
            "radix_up" => self.radix_up = Some(field.whole()?),
            "bundle" => self.bundle = Some(field.whole()?.max(1)),
            "oversubscribed" => self.oversubscribed = Some(field.whole()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns Gbit/s and latency of the links below each tier, which has all its keys.
fn wires(tiers: &[Tier]) -> Result<Vec<(f64, f64)>, Problem> {
    let mut wires = Vec::new();
    for (number, tier) in tiers.iter().enumerate() {
        let at = tier.line;
        if at == 0 {
            return Err(Problem::unexpected(format!("Tier {number}"), "none"));
        }
        let need = |value: Option<f64>, key: &str| {
            let item = format!("tier {number}");
            value.ok_or_else(|| Problem::unexpected(key, "none").at(Some(at), &item))
        };
        let gbps = need(tier.gbps, "Downlink_speed_Gbps")?;
        wires.push((gbps, need(tier.latency_ns, "Downlink_Latency_ns")?));
        need(tier.radix_down.map(|n| n as f64), "Radix_Down")?;
        if number + 1 < tiers.len() {
            need(tier.radix_up.map(|n| n as f64), "Radix_Up")?;
        }
    }
    Ok(wires)
}

/// Numbers of hosts and switches.
struct NodeCounts {
    nodes: u64,
    /// Hosts a rack.
    rack: u64,
    pods: u64,
    tors: u64,
    aggs: u64,
    cores: u64,
    /// Gbit/s and latency of the links below each tier.
    wires: Vec<(f64, f64)>,
    bundles: Vec<u64>,
}

impl NodeCounts {
    fn new(nodes: u64, pod: u64, lines: HostCountLines, tiers: &[Tier]) -> Result<Self, Problem> {
        let n_tiers = tiers.len();
        let wires = wires(tiers)?;
        let down = |tier: usize| tiers[tier].radix_down.unwrap_or(1).max(1);
        let up = |tier: usize| tiers[tier].radix_up.unwrap_or(0);
        let bundles: Vec<u64> = tiers.iter().map(|tier| tier.bundle.unwrap_or(1)).collect();
        let divide = |name: &str, total: u64, by: u64, at: usize| match total.checked_rem(by) {
            Some(0) if total >= by => Ok(total / by),
            _ => Err(Problem::on_line(at, format!("{name}, a multiple of {by}"), total)),
        };
        let at = tiers[0].line;
        let pods = divide("Nodes to fill pods", nodes, pod, lines.nodes)?;
        let rack = down(0);
        // Files of two tiers may omit it.
        let of_pod = if lines.pod == 0 { lines.nodes } else { lines.pod };
        let tors = divide("Podsize to fill the Radix_Down of tier 0", pod, rack, of_pod)?;
        let aggs = divide("Radix_Up of tier 0 to fill bundles of tier 1", up(0), bundles[1], at)?;
        let at = tiers[1].line;
        // The pods of two tiers share their spines, so that a spine has links to all ToRs.
        let below = if n_tiers == 2 { tors * pods } else { tors };
        if down(1) != below * bundles[1] {
            let (links, bundle) = (below * bundles[1], bundles[1]);
            let expected = format!(
                "Radix_Down {links}, a bundle of {bundle} to each of {below} switches of tier 0"
            );
            return Err(Problem::unexpected(expected, down(1)).at(Some(at), "tier 1"));
        }
        let mut cores = 0;
        if n_tiers == 3 {
            let of_agg =
                divide("Radix_Up of tier 1 to fill bundles of tier 2", up(1), bundles[2], at)?;
            cores = of_agg * aggs;
            let at = tiers[2].line;
            if down(2) != pods * bundles[2] {
                let (links, bundle) = (pods * bundles[2], bundles[2]);
                let expected =
                    format!("Radix_Down {links}, a bundle of {bundle} to each of {pods} pods");
                return Err(Problem::unexpected(expected, down(2)).at(Some(at), "tier 2"));
            }
        }
        for (tier, pair) in tiers.windows(2).enumerate() {
            let Some(oversubscribed) = pair[0].oversubscribed else { continue };
            let (radix, number) = (up(tier).max(1), tier);
            if down(tier) / radix != oversubscribed {
                let by_radix = down(tier) / radix;
                let expected = format!("Oversubscribed {by_radix}, as the radixes require");
                let problem = Problem::unexpected(expected, oversubscribed);
                return Err(problem.at(Some(pair[0].line), &format!("tier {number}")));
            }
        }
        Ok(Self { nodes, rack, pods, tors, aggs, cores, wires, bundles })
    }

    fn build(&self, draft: &mut TopologyDraft, tiers: &[Tier]) {
        let (n_tors, is_two) = (self.tors * self.pods, tiers.len() == 2);
        let n_aggs = if is_two { self.aggs } else { self.aggs * self.pods };
        for host in 0..self.nodes {
            draft.host(format!("h{host}"));
        }
        for (name, n) in [("tor", n_tors), ("agg", n_aggs), ("core", self.cores)] {
            for number in 0..n {
                draft.switch(format!("{name}{number}"));
            }
        }
        let [tor, agg, core] = [0, n_tors, n_tors + n_aggs].map(|at| (self.nodes + at) as usize);
        draft.switch_ns = tiers.iter().map(|tier| tier.switch_ns).fold(f64::MAX, f64::min);
        let rest: Vec<f64> =
            tiers.iter().map(|tier| (tier.switch_ns - draft.switch_ns) / 2.0).collect();
        if rest.iter().any(|&ns| ns > 0.0) {
            let note = "latencies of switches differ by tier: the difference is in the propagation \
                        of their links, and paths keep their latency";
            draft.notes.push(note.to_owned());
        }
        let mut join = |below: u64, above: u64, ends: [usize; 2], tier: usize| {
            let (gbps, latency) = self.wires[tier];
            let below_ns = if tier == 0 { 0.0 } else { rest[tier - 1] };
            let propagation_ns = latency + below_ns + rest[tier];
            let ends = [ends[0] + below as usize, ends[1] + above as usize];
            for _ in 0..self.bundles[tier] {
                draft.link(Link { ends, gbps, propagation_ns, loss: 0.0 });
            }
        };
        for host in 0..self.nodes {
            join(host, host / self.rack, [0, tor], 0);
        }
        for below in 0..n_tors {
            for number in 0..self.aggs {
                let first = if is_two { 0 } else { below / self.tors * self.aggs };
                join(below, first + number, [tor, agg], 1);
            }
        }
        if !is_two {
            for below in 0..n_aggs {
                for above in (below % self.aggs..self.cores).step_by(self.aggs as usize) {
                    join(below, above, [agg, core], 2);
                }
            }
        }
    }
}
