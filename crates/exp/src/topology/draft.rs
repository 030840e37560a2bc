//! A topology in the making: nodes by name, in the order in which a file has them.

use std::collections::BTreeMap;

use rampmeter_sim::TopologySpec;
use rampmeter_workload::import::count;
use serde::Deserialize as _;
use toml::{Table, Value};

use super::import::ImportedTopology;
use super::names::NamesSpec;

/// Pairs of nodes with parallel links that notes name at most.
const PAIRS_NAMED: usize = 4;

/// Nodes and links of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct TopologyDraft {
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// Processing in every switch, in nanoseconds; hosts have none.
    pub(super) switch_ns: f64,
    pub(super) notes: Vec<String>,
    /// Lines of the links, if the file lists them.
    pub(super) lines: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    is_switch: bool,
    number: Option<u64>,
}

/// A link between two nodes of a draft.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) ends: [usize; 2],
    pub(super) gbps: f64,
    pub(super) propagation_ns: f64,
    pub(super) loss: f64,
}

impl TopologyDraft {
    /// Adds a host, and returns its place.
    pub(super) fn host(&mut self, name: String) -> usize {
        self.node(Node { name, is_switch: false, number: None })
    }

    /// Adds a switch, and returns its place.
    pub(super) fn switch(&mut self, name: String) -> usize {
        self.node(Node { name, is_switch: true, number: None })
    }

    /// Adds a node that the file calls by a number, and returns its place.
    pub(super) fn add_numbered_node(&mut self, number: u64, is_switch: bool) -> usize {
        self.node(Node { name: format!("n{number}"), is_switch, number: Some(number) })
    }

    fn node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(super) fn link(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Notes links between the same nodes, which are parallel ones. Lists of links may have one
    /// twice by mistake.
    pub(super) fn note_parallel(&mut self) {
        let mut places: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
        for (link, &line) in self.links.iter().zip(&self.lines) {
            let [a, b] = link.ends;
            places.entry([a.min(b), a.max(b)]).or_default().push(line);
        }
        let several = places.into_iter().filter(|(_, lines)| lines.len() > 1);
        let mut several: Vec<([usize; 2], Vec<usize>)> = several.collect();
        several.sort_by_key(|(_, lines)| lines[0]);
        let n_more = several.len().saturating_sub(PAIRS_NAMED);
        for ([a, b], lines) in several.into_iter().take(PAIRS_NAMED) {
            let [a, b] = [a, b].map(|node| &self.nodes[node].name);
            let all: Vec<String> = lines.iter().map(ToString::to_string).collect();
            self.notes.push(format!(
                "lines {}: {} links {a}-{b}, which are parallel: is each of them meant?",
                all.join(", "),
                lines.len()
            ));
        }
        if n_more > 0 {
            let pairs = count(n_more, "other pair");
            self.notes.push(format!("{pairs} of nodes with parallel links"));
        }
    }

    /// Returns the topology.
    pub(super) fn finish(self) -> Result<ImportedTopology, String> {
        let mut names = NamesSpec::default();
        let mut numbers = Vec::new();
        let mut ends = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let (of_kind, kind) = match node.is_switch {
                true => (&mut names.switches, 's'),
                false => (&mut names.hosts, 'h'),
            };
            let place = of_kind.len() as u32;
            ends.push(format!("{kind}{place}"));
            of_kind.push(node.name.clone());
            let host = Some(place).filter(|_| !node.is_switch);
            numbers.extend(node.number.map(|number| (number, host)));
        }
        let link = |link: &Link| {
            let [a, b] = link.ends.map(|end| Value::from(ends[end].clone()));
            let mut table = Table::new();
            table.insert("between".to_owned(), Value::Array(vec![a, b]));
            table.insert("gbps".to_owned(), link.gbps.into());
            table.insert("propagation-ns".to_owned(), link.propagation_ns.into());
            Value::Table(table)
        };
        let mut table = Table::new();
        table.insert("kind".to_owned(), "links".into());
        table.insert("hosts".to_owned(), (names.hosts.len() as i64).into());
        table.insert("switches".to_owned(), (names.switches.len() as i64).into());
        table.insert("switch-ns".to_owned(), self.switch_ns.into());
        table.insert("host-ns".to_owned(), 0.0.into());
        table.insert("links".to_owned(), self.links.iter().map(link).collect::<Vec<_>>().into());
        let spec = TopologySpec::deserialize(Value::Table(table)).map_err(|e| e.to_string())?;
        let losses = (0..).zip(&self.links).filter(|(_, link)| link.loss > 0.0);
        let losses = losses.map(|(number, link)| (number, link.loss)).collect();
        Ok(ImportedTopology { spec, names, losses, numbers, notes: self.notes, lines: self.lines })
    }
}
