//! Lists of links: TOML and JSON with the keys of plans, CSV with a link a line.
//!
//! Hosts and switches may have names: `hosts = ["gpu0", "gpu1"]` instead of a number. Rates and
//! delays may be texts with units (`"25Gbps"`, `"0.5us"`), and a link may have a `loss`. All of
//! these become the keys of plans, link by link, so that an error names the line and the link.

use std::collections::{BTreeMap, BTreeSet};

use csv::StringRecord;
use rampmeter_sim::{LinkSpec, TopologySpec};
use rampmeter_types::NameError;
use rampmeter_types::quantity::Unit;
use rampmeter_workload::import::parse_json;
use rampmeter_workload::table::{Records, separator};
use toml::de::DeTable;
use toml::{Table, Value};

use super::defaults::Defaults;
use super::import::ImportedTopology;
use super::names::{NamesSpec, sample};
use super::node_kinds::{Kind, first_word, kind_of_name, kind_of_names};
use crate::error::{PlanError, Problem};
use crate::text::parse::{of_table, parse};
use crate::text::units::{self, DELAY, RATE};

pub(super) fn is_json(name: &str, first: &str, _text: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".json") || first.starts_with('{')
}

pub(super) fn is_csv(name: &str, first: &str, _text: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".csv")
        || first.contains(',') && !first.contains(['=', '[', '{'])
}

/// Returns true if the first line is a key with a value, or begins a table.
pub(super) fn is_toml(name: &str, first: &str, _text: &str) -> bool {
    let is_of_key = |c: char| c.is_alphanumeric() || "-_.\"' ".contains(c);
    let key = first.split_once('=').map(|(key, _)| key);
    name.to_ascii_lowercase().ends_with(".toml")
        || first.starts_with('[')
        || key.is_some_and(|key| key.chars().all(is_of_key))
}

/// Returns true for a text with the keys of a topology.
pub(super) fn has_topology(_first: &str, text: &str) -> bool {
    ["between", "kind", "topology"].iter().any(|key| text.contains(key))
}

/// Returns true for a header that names the ends of links.
pub(super) fn has_ends(header: &str) -> bool {
    let separator = char::from(separator(header));
    let name = |name: &str| name.trim().trim_matches('"').replace('_', "-");
    let columns: Vec<String> = header.split(separator).map(name).collect();
    let has = |names: &[&str]| columns.iter().any(|column| names.contains(&&**column));
    has(&["from", "to", "gbps", "propagation-ns"]) && !has(&["src", "dst", "size-bytes"])
}

pub(super) fn read_toml(text: &str) -> Result<ImportedTopology, Problem> {
    let mut table: Table = parse(text, "").map_err(PlanError::into_problem)?;
    if table.get("kind").and_then(Value::as_str) == Some("links") {
        return canonical(&mut table, &lines_of(text, &[]), NamesSpec::default());
    }
    // Other kinds have neither names nor single links.
    let spec: TopologySpec = parse(text, "").map_err(PlanError::into_problem)?;
    if let TopologySpec::File(_) = spec {
        return Err(Problem::unexpected("a topology", "another file"));
    }
    Ok(ImportedTopology::without_names(spec))
}

pub(super) fn read_json(text: &str) -> Result<ImportedTopology, Problem> {
    let value: serde_json::Value = parse_json(text)?;
    if !value.is_object() {
        let expected = "a table with hosts, switches and links";
        return Err(Problem::unexpected(expected, "a list or a value"));
    }
    if let Some(path) = null_in(&value) {
        return Err(Problem::unexpected("a value", "null").at(None, &path));
    }
    let mut table =
        Table::try_from(value).map_err(|error| format!("expected numbers and texts: {error}"))?;
    for (key, value) in &mut table {
        let number =
            Unit::from_key(key).zip(value.as_str()).and_then(|(unit, text)| unit.parse(text));
        *value = number.map_or_else(|| value.clone(), Value::from);
    }
    table.entry("kind").or_insert_with(|| "links".into());
    if table.get("kind").and_then(Value::as_str) == Some("links") {
        let key = "\"between\"";
        let lines = (1..).zip(text.lines());
        let lines = lines.flat_map(|(at, line)| line.matches(key).map(move |_| at));
        let lines: Vec<usize> = lines.collect();
        return canonical(&mut table, &lines, NamesSpec::default());
    }
    of_table(&table).map(ImportedTopology::without_names)
}

/// Returns the path of a null, which TOML has no word for.
fn null_in(value: &serde_json::Value) -> Option<String> {
    let inner = |step: String, value: &serde_json::Value| match value {
        serde_json::Value::Null => Some(step),
        value => null_in(value).map(|rest| match rest.starts_with('[') {
            true => format!("{step}{rest}"),
            false => format!("{step}.{rest}"),
        }),
    };
    match value {
        serde_json::Value::Object(table) => {
            table.iter().find_map(|(key, value)| inner(key.clone(), value))
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, value)| inner(format!("[{at}]"), value))
        }
        _ => None,
    }
}

/// Reads a file with the columns `from`, `to`, `gbps`, `propagation-ns` and, if wanted, `loss`. A
/// node that is never in `to` is a host, so that each link must be listed in one direction. If
/// hosts forward, switches are the nodes that are named as such.
pub(super) fn read_csv(text: &str, hosts_forward: bool) -> Result<ImportedTopology, Problem> {
    let header = text.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
    let separator = separator(header.unwrap_or_default());
    let mut records = Records::separated(text.as_bytes(), Some(b'#'), separator);
    let mut next_line = || {
        let record = records.next_record().map_err(|error| Problem::Other(error.to_string()))?;
        let field = |field: &str| field.trim().trim_matches('"').to_owned();
        let fields = |record: &StringRecord| record.iter().map(field).collect::<Vec<String>>();
        Ok::<_, Problem>(record.map(|(at, record)| (at as usize, fields(record))))
    };
    let (at, header) =
        next_line()?.ok_or_else(|| Problem::on_line(1, "names of columns", "none"))?;
    let columns: Vec<String> = header.iter().map(|name| name.replace('_', "-")).collect();
    let place = |name: &str| {
        let place = columns.iter().position(|column| column == name);
        let header = header.join(",");
        place.ok_or_else(|| Problem::on_line(at, format!("a column {name}"), header))
    };
    let first = |name: &String| columns.iter().position(|column| column == name);
    if let Some((_, name)) =
        columns.iter().enumerate().find(|&(number, name)| first(name) != Some(number))
    {
        return Err(Problem::on_line(at, "each column once", format!("{name} twice")));
    }
    let (from, to) = (place("from")?, place("to")?);
    // Dataframes number their rows in a column without a name.
    let note = "the column without a name (an index of pandas?) is not used";
    let notes = Vec::from_iter(columns.iter().any(String::is_empty).then(|| note.to_owned()));
    let (mut links, mut places, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    let mut nodes: Vec<String> = Vec::new();
    let mut directions = BTreeMap::new();
    while let Some((at, fields)) = next_line()? {
        if fields.len() != columns.len() {
            let n = columns.len();
            return Err(Problem::on_line(at, format!("{n} fields"), fields.len()));
        }
        let mut link = Table::new();
        for (idx, (column, field)) in columns.iter().zip(&fields).enumerate() {
            if idx == from || idx == to {
                if field.is_empty() {
                    return Err(Problem::on_line(at, "the name of a node", "none"));
                }
                if !nodes.contains(field) {
                    nodes.push(field.clone());
                }
            } else if !field.is_empty() && !column.is_empty() {
                let value = field.parse::<f64>().map_or_else(|_| field.clone().into(), Value::from);
                link.insert(column.clone(), value);
            }
        }
        check_ends(&fields[from], &fields[to], at, &mut directions)
            .map_err(|problem| problem.at(Some(at), &format!("link {}", links.len())))?;
        pairs.push([fields[from].clone(), fields[to].clone()]);
        let ends = [&fields[from], &fields[to]].map(|end| Value::from(end.clone()));
        link.insert("between".to_owned(), Value::Array(ends.to_vec()));
        links.push(Value::Table(link));
        places.push(at);
    }
    let (hosts, switches) = match hosts_forward {
        true => nodes.into_iter().partition(|name| kind_of_name(name) != Some(Kind::Switch)),
        false => by_direction(&nodes, &pairs)?,
    };
    let mut table = Table::new();
    table.insert("kind".to_owned(), "links".into());
    table.insert("hosts".to_owned(), hosts.into());
    table.insert("switches".to_owned(), switches.into());
    table.insert("links".to_owned(), Value::Array(links));
    let imported = canonical(&mut table, &places, NamesSpec::default())?;
    Ok(ImportedTopology { notes: [notes, imported.notes].concat(), ..imported })
}

/// Divides nodes into hosts, which are never the second end of a link, and switches. Links that
/// lead from the top of a network to its hosts are an error.
fn by_direction(
    nodes: &[String],
    links: &[[String; 2]],
) -> Result<(Vec<String>, Vec<String>), Problem> {
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for ends in links {
        for (end, name) in ends.iter().enumerate() {
            counts.entry(name).or_default()[end] += 1;
        }
    }
    let count = |node: &&String| counts.get(node.as_str()).copied().unwrap_or_default();
    let is_host = |node: &&String| count(node)[1] == 0;
    let (hosts, switches): (Vec<&String>, Vec<&String>) = nodes.iter().partition(is_host);
    let expected = "links from hosts to switches";
    let rule = "a node that is never in column to is a host";
    let remedy = "list links from the hosts upwards, or exchange the names of the columns from \
                  and to";
    let words: BTreeSet<String> = hosts.iter().map(|name| first_word(name)).collect();
    let is_named_host = |name: &&&String| {
        kind_of_name(name) == Some(Kind::Host)
            && (words.is_empty() || words.contains(&first_word(name)))
    };
    if let Some(node) = switches.iter().find(is_named_host) {
        let got = format!("{node} in column to, which is named as a host");
        return Err(Problem::unexpected(expected, got).with_note(&format!(
            ": {rule}; if hosts forward packets, set topology.hosts-forward = true"
        )));
    }
    if hosts.len() < 2 {
        let got = match hosts[..] {
            [] => "none".to_owned(),
            [one, ..] => format!("{one} alone"),
        };
        let problem = Problem::unexpected("at least two hosts", got);
        return Err(problem.with_note(&format!(": {rule}; {remedy}")));
    }
    let several = hosts.iter().find(|node| count(node)[0] > 1);
    let ends: Vec<&&String> = switches.iter().filter(|node| count(node)[0] == 0).collect();
    let mut leaves = ends.iter().filter(|node| count(node) == [0, 1]);
    if let (Some(top), Some(end), Some(_)) = (several, leaves.next(), leaves.next()) {
        let n = count(top)[0];
        let got = format!("host {top} with {n} links and switch {end} with one");
        return Err(Problem::unexpected(expected, got).with_note(&format!(": {rule}; {remedy}")));
    }
    // Hosts with several links may be listed from the top too. They are recognised by name, else by
    // number.
    let has_single = hosts.iter().any(|node| count(node)[0] == 1);
    let (of_hosts, of_ends) = (kind_of_names(&hosts), kind_of_names(&ends));
    let is_from_top = match (of_hosts, of_ends) {
        (Some(Kind::Switch), Some(Kind::Host)) => true,
        (Some(Kind::Host), Some(Kind::Switch)) => false,
        _ => !has_single && ends.len() > hosts.len(),
    };
    if is_from_top && let ([top, ..], [end, ..]) = (&hosts[..], &ends[..]) {
        let (n_hosts, n_ends) = (hosts.len(), ends.len());
        let got = format!("{n_hosts} hosts such as {top} below {n_ends} switches such as {end}");
        return Err(Problem::unexpected(expected, got).with_note(&format!(
            ": {rule}; {remedy}; if these are the hosts, give them names such as h0, or write the \
             topology as TOML"
        )));
    }
    let owned = |nodes: Vec<&String>| nodes.into_iter().cloned().collect();
    Ok((owned(hosts), owned(switches)))
}

/// Checks that a link of a CSV file has two ends, and is not listed in its other direction too.
/// `seen` has the first line of each pair of ends.
fn check_ends(
    from: &str,
    to: &str,
    line: usize,
    seen: &mut BTreeMap<(String, String), usize>,
) -> Result<(), Problem> {
    if from == to {
        return Err(Problem::unexpected("two different nodes", format!("{from:?} twice")));
    }
    if let Some(other) = seen.get(&(to.to_owned(), from.to_owned())) {
        let got = format!("{from}-{to} after {to}-{from} in line {other}");
        return Err(Problem::unexpected("each link in one direction", got).with_note(
            ": a link carries both; gbps-back has the rate from its second end to its first, and \
             several links between two switches have the same first end",
        ));
    }
    seen.entry((from.to_owned(), to.to_owned())).or_insert(line);
    Ok(())
}

/// Reads the `topology` table of a plan that lists links; `text` is the plan.
pub(crate) fn inline(
    mut table: Table,
    text: &str,
    names: NamesSpec,
) -> Result<ImportedTopology, Problem> {
    canonical(&mut table, &lines_of(text, &["topology"]), names)
}

/// Returns true if the topology of a plan lists its links.
pub(crate) fn lists_links(text: &str) -> bool {
    let Ok(document) = DeTable::parse(text) else { return false };
    let topology = document.get_ref().get("topology").and_then(|table| table.get_ref().as_table());
    let kind =
        topology.and_then(|table| table.get("kind")).and_then(|kind| kind.get_ref().as_str());
    kind == Some("links")
}

/// Returns the line of each link of the table at `path`.
fn lines_of(text: &str, path: &[&str]) -> Vec<usize> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let mut table = document.get_ref();
    for key in path {
        let inner = table.get(*key).and_then(|value| value.get_ref().as_table());
        let Some(inner) = inner else { return Vec::new() };
        table = inner;
    }
    let links = table.get("links").and_then(|value| value.get_ref().as_array());
    let mut lines = Vec::new();
    let (mut line, mut seen) = (1, 0);
    for link in links.into_iter().flatten() {
        let at = link.span().start.max(seen);
        line += text[seen..at].matches('\n').count();
        seen = at;
        lines.push(line);
    }
    lines
}

/// Converts names and units of a table of links to those of plans.
fn canonical(
    table: &mut Table,
    lines: &[usize],
    names: NamesSpec,
) -> Result<ImportedTopology, Problem> {
    let names = NamesSpec {
        hosts: listed(table, "hosts", names.hosts)?,
        switches: listed(table, "switches", names.switches)?,
    };
    let nodes = Nodes::new(table, &names)?;
    let mut losses = Vec::new();
    let mut defaults = Defaults::default();
    let links = table.get_mut("links").and_then(Value::as_array_mut);
    for (number, link) in links.into_iter().flatten().enumerate() {
        let line = lines.get(number).copied();
        let Some(link) = link.as_table_mut() else {
            let problem = Problem::unexpected("a table", &*link);
            return Err(problem.at(line, &format!("link {number}")));
        };
        let ends = |link: &Table| {
            let ends = link.get("between").and_then(Value::as_array);
            let ends: Vec<&str> = ends.into_iter().flatten().filter_map(Value::as_str).collect();
            ends.join("-")
        };
        let item = format!("link {number} ({})", ends(link));
        let loss = one_link(link, &nodes).map_err(|problem| problem.at(line, &item))?;
        losses.extend(loss.filter(|&loss| loss > 0.0).map(|loss| (number as u32, loss)));
        let spec =
            of_table::<LinkSpec>(link).map_err(|problem| of_link(problem).at(line, &item))?;
        defaults.count(link, &spec);
    }
    let spec = of_table(table)?;
    let notes = defaults.note().into_iter().collect();
    let lines = lines.to_vec();
    let mut imported =
        ImportedTopology { names, losses, notes, lines, ..ImportedTopology::without_names(spec) };
    imported.note_both_directions();
    Ok(imported)
}

/// Returns the names of `key`, which is a number or a list of names, and makes it a number.
fn listed(table: &mut Table, key: &str, known: Vec<String>) -> Result<Vec<String>, Problem> {
    let Some(Value::Array(list)) = table.get(key) else { return Ok(known) };
    let name = |value: &Value| {
        let name = value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        name.ok_or_else(|| Problem::unexpected("names or a number", value).at(None, key))
    };
    let names: Vec<String> = list.iter().map(name).collect::<Result<_, _>>()?;
    table.insert(key.to_owned(), (names.len() as i64).into());
    Ok(names)
}

/// The nodes that links may name.
struct Nodes {
    /// The node of each name of the user's.
    named: BTreeMap<String, String>,
    names: NamesSpec,
    hosts: u64,
    switches: u64,
}

impl Nodes {
    fn new(table: &Table, names: &NamesSpec) -> Result<Self, Problem> {
        let mut named = BTreeMap::new();
        for (kind, names) in [('h', &names.hosts), ('s', &names.switches)] {
            for (number, name) in names.iter().enumerate() {
                if named.insert(name.clone(), format!("{kind}{number}")).is_some() {
                    let got = format!("{name:?} twice");
                    return Err(Problem::unexpected("each name once", got));
                }
            }
        }
        let count = |key: &str| {
            table.get(key).and_then(Value::as_integer).and_then(|n| u64::try_from(n).ok())
        };
        let (hosts, switches) = (count("hosts"), count("switches"));
        // A missing number is an error of the whole table.
        let [hosts, switches] = [hosts, switches].map(|count| count.unwrap_or(u64::MAX));
        Ok(Self { named, names: names.clone(), hosts, switches })
    }

    fn node(&self, name: &str) -> Result<String, Problem> {
        if let Some(node) = self.named.get(name) {
            return Ok(node.clone());
        }
        let number = |prefix, n| {
            let number = name.strip_prefix(prefix).and_then(|rest| rest.parse::<u64>().ok());
            number.is_some_and(|number| number < n)
        };
        if number('h', self.hosts) || number('s', self.switches) {
            return Ok(name.to_owned());
        }
        let last = |n: u64| n.saturating_sub(1);
        let or_number = |names: &[String], kind: char, count: u64| match names.is_empty() {
            true => format!("{kind}0 to {kind}{}", last(count)),
            false => sample(names.iter().cloned(), 3),
        };
        let hosts = or_number(&self.names.hosts, 'h', self.hosts);
        let expected = match (self.switches, self.named.is_empty()) {
            (0, _) => format!("a host ({hosts})"),
            (n, true) => format!("{hosts} or {}", or_number(&self.names.switches, 's', n)),
            (n, false) => {
                let switches = or_number(&self.names.switches, 's', n);
                format!("a host ({hosts}) or a switch ({switches})")
            }
        };
        Err(Problem::unexpected(expected, format!("{name:?}")).at(None, "between"))
    }
}

/// Converts names and units of one link to those of plans; returns its loss.
fn one_link(link: &mut Table, nodes: &Nodes) -> Result<Option<f64>, Problem> {
    if let Some(Value::Array(ends)) = link.get_mut("between") {
        let written = Value::Array(ends.clone());
        for end in &mut *ends {
            if let Value::String(name) = end {
                *name = nodes.node(name)?;
            }
        }
        if let [a, b] = &ends[..]
            && a == b
        {
            return Err(Problem::unexpected("two different nodes", written).at(None, "between"));
        }
    }
    for (key, value) in link.iter_mut() {
        let parse = if key.contains("gbps") {
            (units::rate as fn(&str) -> Option<f64>, units::is_rate as fn(f64) -> bool, RATE)
        } else if key.ends_with("-ns") {
            (units::delay as fn(&str) -> Option<f64>, units::is_delay as fn(f64) -> bool, DELAY)
        } else {
            continue;
        };
        let (read, is_in_range, expected) = parse;
        let number = match value {
            Value::String(text) => read(text),
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        };
        let number = number.filter(|&number| is_in_range(number));
        let number = number.ok_or_else(|| Problem::unexpected(expected, &*value).at(None, key))?;
        if value.is_str() {
            *value = number.into();
        }
    }
    let Some(value) = link.remove("loss") else { return Ok(None) };
    let loss = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    let loss = loss.filter(|loss| (0.0..=1.0).contains(loss));
    let problem = || Problem::unexpected("a probability from 0 to 1", &value).at(None, "loss");
    loss.map(Some).ok_or_else(problem)
}

/// Returns a problem of the keys of a link, with those that [`one_link`] takes out.
fn of_link(mut problem: Problem) -> Problem {
    if let Problem::Decoder(decoder) = &mut problem
        && let NameError::Unknown { names, .. } = &mut decoder.cause
    {
        names.push("loss".to_owned());
        decoder.message += ", `loss`";
    }
    problem
}
