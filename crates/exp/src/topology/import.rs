//! A topology that was read from a file, with the names that the file gives to its nodes.

use std::collections::BTreeMap;

use rampmeter_sim::{TopologyError, TopologySpec, topologies};
use rampmeter_workload::import::count;
use rampmeter_workload::trace::HostNames;

use super::names::NamesSpec;
use crate::error::Problem;

/// A topology of a file, and its fields that a topology of a plan does not have.
#[derive(Clone, Debug)]
pub(crate) struct ImportedTopology {
    pub(crate) spec: TopologySpec,
    pub(crate) names: NamesSpec,
    /// Loss probabilities by link.
    pub(crate) losses: Vec<(u32, f64)>,
    /// Numbers of the file's nodes, with the host of each; `None` for switches.
    pub(crate) numbers: Vec<(u64, Option<u32>)>,
    /// Sentences about omitted parts and likely mistakes.
    pub(crate) notes: Vec<String>,
    /// Lines of the links in the file; empty if it does not list links.
    pub(crate) lines: Vec<usize>,
}

impl ImportedTopology {
    /// Returns the topology of a file or a plan that names no nodes.
    pub(crate) fn without_names(spec: TopologySpec) -> Self {
        let (losses, numbers, notes, lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { spec, names: NamesSpec::default(), losses, numbers, notes, lines }
    }

    /// Notes switches that are joined by links listed from either of them. A link carries both
    /// directions, so that these are parallel links.
    pub(crate) fn note_both_directions(&mut self) {
        let TopologySpec::Links(topologies::Links { links, .. }) = &self.spec else { return };
        let mut firsts = BTreeMap::new();
        let place = |number: usize| match self.lines.get(number) {
            Some(line) => format!("line {line}"),
            None => format!("link {number}"),
        };
        let mut found = Vec::new();
        for (number, link) in links.iter().enumerate() {
            let [a, b] = &link.between;
            // A host's link from both of its ends is an error.
            if a.starts_with('h') || b.starts_with('h') {
                continue;
            }
            if let Some(&first) = firsts.get(&(b, a)) {
                found.push((first, number));
            }
            firsts.entry((a, b)).or_insert(number);
        }
        if let Some(&(first, second)) = found.first() {
            let name = |number: usize| {
                let [a, b] =
                    links[number].between.each_ref().map(|end| self.names.custom_name(end));
                format!("{} ({a}-{b})", place(number))
            };
            let more = match found.len() - 1 {
                0 => String::new(),
                n => format!(" and {}", count(n, "more such link")),
            };
            self.notes.push(format!(
                "{} and {}{more} are parallel links, as a link carries both directions: is each \
                 of them meant?",
                name(first),
                name(second)
            ));
        }
    }

    /// Lets hosts forward packets if `hosts_forward` is true.
    pub(crate) fn with_forwarding(mut self, hosts_forward: bool) -> Self {
        if let TopologySpec::Links(topologies::Links { hosts_forward: forwards, .. }) =
            &mut self.spec
        {
            *forwards |= hosts_forward;
        }
        self
    }

    /// Replaces names of nodes by those of a plan, if that has some.
    pub(crate) fn rename(&mut self, names: &NamesSpec) {
        if !names.hosts.is_empty() {
            self.names.hosts.clone_from(&names.hosts);
        }
        if !names.switches.is_empty() {
            self.names.switches.clone_from(&names.switches);
        }
    }

    /// Returns the problem of a network that cannot be built, in the names of its nodes. It has the
    /// line and the link if it is about one.
    pub(crate) fn problem(&self, error: &TopologyError) -> Problem {
        let (expected, got) = error.expected_and_got(|node| self.names.node(node));
        let Some(number) = error.link() else {
            return match error.number() {
                Some(name) => Problem::unexpected(expected, got).at(None, name),
                None => Problem::unexpected(expected, got),
            };
        };
        let ends = match &self.spec {
            TopologySpec::Links(topologies::Links { links, .. }) => {
                links.get(number).map(|link| &link.between)
            }
            _ => None,
        };
        let ends = ends.map_or(String::new(), |ends| {
            let [a, b] = ends.each_ref().map(|end| self.names.custom_name(end));
            format!(" ({a}-{b})")
        });
        let line = self.lines.get(number).copied();
        Problem::unexpected(expected, got).at(line, &format!("link {number}{ends}"))
    }

    /// Returns the topology as TOML, with the names of its nodes, and the number of its links.
    pub(crate) fn to_toml(&self) -> Result<(String, usize), String> {
        let mut table = toml::Table::try_from(&self.spec).map_err(|error| error.to_string())?;
        let name = |node: &str, all: &[String]| {
            let number = node[1..].parse::<usize>().ok();
            number.and_then(|number| all.get(number)).cloned()
        };
        let links = table.remove("links").and_then(|links| links.as_array().cloned());
        let mut links = links.unwrap_or_default();
        for (number, link) in (0..).zip(&mut links) {
            let Some(link) = link.as_table_mut() else { continue };
            let ends = link.get_mut("between").and_then(toml::Value::as_array_mut);
            for end in ends.into_iter().flatten() {
                let node = end.as_str().unwrap_or("h0").to_owned();
                let all =
                    if node.starts_with('h') { &self.names.hosts } else { &self.names.switches };
                *end = name(&node, all).unwrap_or(node).into();
            }
            if let Some(&(_, loss)) = self.losses.iter().find(|&&(of, _)| of == number) {
                link.insert("loss".to_owned(), loss.into());
            }
        }
        for (key, names) in [("hosts", &self.names.hosts), ("switches", &self.names.switches)] {
            if !names.is_empty() {
                table.insert(key.to_owned(), names.clone().into());
            }
        }
        let mut text = table.to_string();
        if !links.is_empty() {
            let lines: Vec<String> = links.iter().map(|link| format!("    {link},\n")).collect();
            text = format!("{text}links = [\n{}]\n", lines.concat());
        }
        Ok((text, links.len()))
    }

    /// Returns the names of hosts, and the numbers of nodes, for traces.
    pub(crate) fn host_names(&self) -> HostNames {
        let mut names = self.names.host_names();
        for &(number, host) in &self.numbers {
            names.insert_number(number, host);
        }
        names
    }
}
