//! `topology.txt` of the HPCC study's ns-3 simulator, and of the programs made of it.
//!
//! ```text
//! 4 1 3
//! 0
//! 0 1 25Gbps 1us 0
//! 0 2 25Gbps 1us 0
//! 0 3 25Gbps 1us 0.001
//! ```
//!
//! The first line counts nodes, switches and links, and the second has the numbers of switches.
//! Each further line is a link: two nodes, rate, delay, and the probability that it loses a packet.
//! Hosts are the other nodes, in the order of their numbers: here nodes 1, 2 and 3 are the hosts 0,
//! 1 and 2.
//!
//! The first line of `SimAI` has nodes, GPUs a server, switches within servers, other switches,
//! links and the kind of GPU. That of `ns3-datacenter` (`PowerTCP`, Reverie) has nodes, switches,
//! ToR switches and links, with or without two rates after them. Nodes are called `n0`, `n1`, ...
//! Rates without a unit are bit/s and delays without a unit seconds, as in ns-3.

use std::collections::BTreeSet;

use rampmeter_workload::import::count;

use super::draft::{Link, TopologyDraft};
use super::import::ImportedTopology;
use crate::error::Problem;
use crate::text::units::{self, DELAY};

/// Returns true if the first line is of three, four or six integers, or of five and a word. If it
/// is not, a line has two nodes and a rate with a unit.
pub(super) fn recognises(_name: &str, first: &str, text: &str) -> bool {
    let is_whole = |field: &&str| field.parse::<u64>().is_ok();
    let is_link = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [a, b, rate, _, ..] = fields[..] else { return false };
        is_whole(&a) && is_whole(&b) && units::rate(rate).is_some()
    };
    let fields: Vec<&str> = first.split_whitespace().collect();
    let is_header = match fields.len() {
        3 | 4 => fields.iter().all(is_whole),
        6 => fields[..5].iter().all(is_whole),
        _ => false,
    };
    is_header || text.lines().any(is_link)
}

/// Returns true if lines after the header have two nodes, a rate and a delay.
pub(super) fn has_links(_first: &str, text: &str) -> bool {
    let is_whole = |field: &&str| field.parse::<u64>().is_ok();
    let is_link = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields.len(), 4 | 5) && fields[..2].iter().all(is_whole)
    };
    text.lines().filter(|line| !line.trim().is_empty()).skip(2).any(is_link)
}

pub(super) fn read(text: &str) -> Result<ImportedTopology, Problem> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut draft = TopologyDraft::default();
    let (at, header) =
        lines.next().ok_or_else(|| Problem::on_line(1, "counts of nodes", "none"))?;
    let (n_nodes, n_switches, n_links) = header_counts(at, header, &mut draft.notes)?;
    if n_nodes > NODES_MAX || n_switches > n_nodes {
        let expected = format!("at most {NODES_MAX} nodes and no more switches than nodes");
        return Err(Problem::on_line(at, expected, format!("{header:?}")));
    }
    let mut switches = BTreeSet::new();
    let mut at_switches = at;
    while (switches.len() as u64) < n_switches {
        let Some((at, line)) = lines.next() else {
            let got = switches.len();
            return Err(counts(at_switches, n_switches, got));
        };
        at_switches = at;
        for field in line.split_whitespace() {
            let switch = node(at, field, n_nodes)?;
            if !switches.insert(switch) {
                return Err(Problem::on_line(at, "each switch once", format!("{switch} twice")));
            }
        }
    }
    if switches.len() as u64 > n_switches {
        return Err(counts(at_switches, n_switches, switches.len()));
    }
    for node in 0..n_nodes {
        draft.add_numbered_node(node, switches.contains(&node));
    }
    let mut found = 0;
    for (at, line) in lines.by_ref().take(n_links as usize) {
        let link = link(at, found, line, n_nodes, &mut draft)?;
        draft.link(link);
        draft.lines.push(at);
        found += 1;
    }
    if found < n_links {
        let links = count(found as usize, "link");
        return Err(Problem::on_line(at, format!("{links}, as many as follow"), n_links));
    }
    let n_left = lines.count();
    if n_left > 0 {
        let left = count(n_left, "line");
        let note = format!("{left} after the links that line {at} counts ({n_links}): not read");
        draft.notes.push(note);
    }
    draft.note_parallel();
    Ok(draft.finish()?)
}

/// Returns the numbers of nodes, of switches and of links in the first line, and adds notes of its
/// other fields.
fn header_counts(
    at: usize,
    header: &str,
    notes: &mut Vec<String>,
) -> Result<(u64, u64, u64), Problem> {
    let fields: Vec<&str> = header.split_whitespace().collect();
    Ok(match fields[..] {
        [nodes, switches, links] => (number(at, nodes)?, number(at, switches)?, number(at, links)?),
        [nodes, switches, _, links] => {
            notes.push("the number of ToR switches is not used".to_owned());
            (number(at, nodes)?, number(at, switches)?, number(at, links)?)
        }
        [nodes, switches, _, links, _, rate] if rate.parse::<f64>().is_ok() => {
            let note = "the number of ToR switches and the two rates of the first line are not \
                        used: each link has its own";
            notes.push(note.to_owned());
            (number(at, nodes)?, number(at, switches)?, number(at, links)?)
        }
        [nodes, _, inner, outer, links, gpu] => {
            notes.push(format!("the kind of GPU ({gpu}) and GPUs a server are not used"));
            (number(at, nodes)?, number(at, inner)? + number(at, outer)?, number(at, links)?)
        }
        _ => {
            let got = format!("{header:?}");
            return Err(Problem::on_line(at, "nodes, switches and links", got));
        }
    })
}

/// Returns an error of the number of switches.
fn counts(at: usize, n_switches: u64, got: usize) -> Problem {
    let expected = match n_switches {
        1 => "1 switch".to_owned(),
        n => format!("{n} switches"),
    };
    Problem::on_line(at, expected, got)
}

fn link(
    at: usize,
    place: u64,
    line: &str,
    n_nodes: u64,
    draft: &mut TopologyDraft,
) -> Result<Link, Problem> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (a, b, rate_text, delay_text, loss_text) = match fields[..] {
        [a, b, rate, delay, loss] => (a, b, rate, delay, loss),
        [a, b, rate, delay] => (a, b, rate, delay, "0"),
        _ => {
            let problem = Problem::unexpected("node node rate delay loss", format!("{line:?}"));
            return Err(problem.at(Some(at), &format!("link {place}")));
        }
    };
    let wrong = |key: &str, expected: &str, got: &str| {
        let item = format!("link {place} (n{a}-n{b}): {key}");
        Problem::unexpected(expected, format!("{got:?}")).at(Some(at), &item)
    };
    let ends = [node(at, a, n_nodes)?, node(at, b, n_nodes)?].map(|end| end as usize);
    if ends[0] == ends[1] {
        let problem = Problem::unexpected("two different nodes", format!("{line:?}"));
        return Err(problem.at(Some(at), &format!("link {place}")));
    }
    let gbps = units::rate(rate_text).or_else(|| Some(rate_text.parse::<f64>().ok()? / 1e9));
    let gbps = gbps.filter(|&gbps| units::is_rate(gbps));
    let gbps = gbps.ok_or_else(|| {
        let expected = "a rate from 1kbps to 100Tbps (a number without a unit is bit/s)";
        wrong("rate", expected, rate_text)
    })?;
    let has_unit = units::delay(delay_text).is_some();
    let ns = units::delay(delay_text).or_else(|| Some(delay_text.parse::<f64>().ok()? * 1e9));
    let propagation_ns = ns.filter(|&ns| units::is_delay(ns)).ok_or_else(|| {
        let expected = format!("{DELAY} (a number without a unit is seconds)");
        wrong("delay", &expected, delay_text)
    })?;
    if !has_unit && propagation_ns > 0.0 {
        draft.notes.push(format!(
            "line {at}: delay {delay_text} has no unit and is read as seconds, as ns-3 does: is \
             that meant?"
        ));
    } else if propagation_ns > 1e7 || rate_text.parse::<f64>().is_ok() && gbps < 1e-3 {
        draft.notes.push(format!(
            "line {at}: {rate_text} and {delay_text} are {gbps} Gbit/s and {propagation_ns} ns: \
             are the units right?"
        ));
    }
    let loss = loss_text.parse::<f64>().ok().filter(|loss| (0.0..=1.0).contains(loss));
    let loss = loss.ok_or_else(|| wrong("loss", "a probability from 0 to 1", loss_text))?;
    Ok(Link { ends, gbps, propagation_ns, loss })
}

fn node(at: usize, text: &str, n_nodes: u64) -> Result<u64, Problem> {
    let node = text.parse().ok().filter(|&node| node < n_nodes);
    let expected = format!("a node below {n_nodes}");
    node.ok_or_else(|| Problem::on_line(at, expected, format!("{text:?}")))
}

fn number(at: usize, text: &str) -> Result<u64, Problem> {
    let number = text.parse().ok().filter(|&number| number <= 1 << 32);
    number.ok_or_else(|| Problem::on_line(at, "a whole number", format!("{text:?}")))
}

const NODES_MAX: u64 = 131_072;
