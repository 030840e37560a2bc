//! Execution traces of Chakra (`.et`), by the published schema of mlcommons/chakra.
//!
//! A file is one rank's: messages of protocol buffers, each after its length, first a
//! `GlobalMetadata`, then a `Node` each. Ranks have files of one name with their numbers,
//! `step.0.et`, `step.1.et`, ...; any of them selects all. A rank is the host of its number.
//!
//! | node | becomes |
//! |---|---|
//! | `COMP_NODE`, memory, storage | a computation of `duration_micros` |
//! | `COMM_SEND_NODE` | a flow of `comm_size` bytes to `comm_dst` |
//! | `COMM_RECV_NODE` | the arrival of the next flow from `comm_src` with its `comm_tag` |
//! | `COMM_COLL_NODE` | its part in a collective of `comm_type` among the ranks of `pg_name` |
//!
//! Nodes depend on their `data_deps` and `ctrl_deps`. Collectives of a group are matched in the
//! order of the files. As in ASTRA-sim, `comm_size` of an all-gather is the size of each rank's
//! part, of others the vector. Members of a group are those of a file of groups, or of a
//! `process_group:init` node, or else the ranks that name it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::chakra_schema::{COLLECTIVES, Node, NodeKind, is_trace, nodes};
use super::collective::Collective;
use super::schedule::ROWS_MAX;
use super::schedule::row;
use super::{count, idle_hosts, parse_json};
use crate::graph::Round;
use crate::trace::{Import, RawRow, Source, TraceError};

pub(crate) fn is_chakra(bytes: &[u8]) -> bool {
    is_trace(bytes)
}

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    let files = files(source)?;
    let mut ranks = Vec::with_capacity(files.len());
    for path in files {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path)
            .map_err(|error| TraceError::Io { file: name.clone(), source: error })?;
        let nodes = nodes(&bytes).map_err(|reason| format_error(&name, reason))?;
        ranks.push(Rank { name, nodes });
    }
    let groups = groups(source, &ranks)?;
    let mut draft = ChakraImport::new(&ranks, groups);
    draft.nodes()?;
    draft.messages()?;
    draft.collectives()?;
    let mut notes = draft.notes(source.name);
    let idle = idle_hosts(ranks.len() as u64, "rank", source.n_hosts);
    notes.extend(idle.map(|note| format!("{}: {note}", source.name)));
    Ok(Import {
        rows: draft.rows,
        rounds: draft.rounds,
        notes,
        is_graph: true,
        is_unordered: true,
        ..Import::default()
    })
}

/// The trace of a rank.
struct Rank {
    name: String,
    nodes: Vec<Node>,
}

fn format_error(file: &str, reason: String) -> TraceError {
    TraceError::Format { file: file.to_owned(), reason }
}

/// Returns the files of all ranks in their order, of which the source is one or the common name.
fn files(source: &Source<'_>) -> Result<Vec<PathBuf>, TraceError> {
    let name = source.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.strip_suffix(".et").unwrap_or(name);
    let prefix = match stem.rsplit_once('.') {
        Some((prefix, rank)) if name.ends_with(".et") && rank.parse::<usize>().is_ok() => prefix,
        _ if source.path.is_file() => return Ok(vec![source.path.to_owned()]),
        _ => stem,
    };
    let dir = source.path.parent().unwrap_or(Path::new(""));
    let listed = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let entries = std::fs::read_dir(listed)
        .map_err(|error| TraceError::Io { file: source.name.to_owned(), source: error })?;
    let rank = |name: &str| {
        let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
        rest.strip_suffix(".et")?.parse::<usize>().ok()
    };
    let ranks: BTreeMap<usize, String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some((rank(&name)?, name)))
        .collect();
    let missing = (0..).zip(ranks.keys()).find(|(at, rank)| at != *rank);
    match missing {
        Some((at, _)) => {
            let reason = format!("expected a file of each rank, got none of rank {at}");
            Err(format_error(source.name, reason))
        }
        None if ranks.is_empty() => {
            let reason = format!("expected files {prefix}.0.et, {prefix}.1.et, ..., got none");
            Err(format_error(source.name, reason))
        }
        None => Ok(ranks.into_values().map(|name| dir.join(name)).collect()),
    }
}

/// Members of groups of ranks by name.
type Groups = BTreeMap<String, Vec<usize>>;

/// Returns the groups of the file of groups, or else those of `process_group:init` nodes.
fn groups(source: &Source<'_>, ranks: &[Rank]) -> Result<Groups, TraceError> {
    let groups_file = source.path.with_file_name("comm_group.json");
    let file =
        source.options.groups.clone().or_else(|| groups_file.is_file().then_some(groups_file));
    let mut groups = Groups::new();
    if let Some(file) = file {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|error| TraceError::Io { file: name.clone(), source: error })?;
        groups = parse_json(&text).map_err(|problem| {
            format_error(&name, format!("expected {{\"0\": [0, 1, ...]}}: {problem}"))
        })?;
    } else {
        for node in ranks.iter().flat_map(|rank| &rank.nodes) {
            if node.name.contains("process_group:init") {
                groups.extend(node.process_groups());
            }
        }
    }
    for (name, members) in &groups {
        let distinct: BTreeSet<&usize> = members.iter().collect();
        if let Some(rank) = members.iter().find(|&&rank| rank >= ranks.len()) {
            let expected = format!("group {name}: expected ranks below {}", ranks.len());
            return Err(format_error(source.name, format!("{expected}, got {rank}")));
        }
        if distinct.len() < members.len() {
            let reason = format!("group {name}: expected each rank once, got {members:?}");
            return Err(format_error(source.name, reason));
        }
    }
    Ok(groups)
}

/// Sender, receiver and tag of messages.
type Channel = (usize, usize, i128);

/// A node's rows: the one that ends with it, and the one that it starts with.
#[derive(Clone, Copy)]
struct Rows {
    start: usize,
    end: usize,
}

/// The part of a rank in a collective.
#[derive(Clone, Copy)]
struct Part<'a> {
    rank: usize,
    node: &'a Node,
    rows: Rows,
}

struct ChakraImport<'a> {
    ranks: &'a [Rank],
    groups: Groups,
    rows: Vec<RawRow>,
    rounds: Vec<Round>,
    /// Rows of each node, by rank and id.
    rows_of_node: Vec<HashMap<u64, Rows>>,
    /// Collectives of each group in the order of each rank's file.
    parts: BTreeMap<String, Vec<VecDeque<Part<'a>>>>,
    /// Number of computations without a duration.
    without_time: usize,
    /// Collectives of 0 bytes.
    empty: usize,
    memory: usize,
    priorities: usize,
    partial_dims: usize,
    guessed: BTreeSet<String>,
}

impl<'a> ChakraImport<'a> {
    fn new(ranks: &'a [Rank], groups: Groups) -> Self {
        Self {
            ranks,
            groups,
            rows: Vec::new(),
            rounds: Vec::new(),
            rows_of_node: Vec::new(),
            parts: BTreeMap::new(),
            without_time: 0,
            empty: 0,
            memory: 0,
            priorities: 0,
            partial_dims: 0,
            guessed: BTreeSet::new(),
        }
    }

    fn wrong(&self, rank: usize, node: &Node, fault: &str) -> TraceError {
        let reason = format!("node {} ({:?}): {fault}", node.id, node.name);
        format_error(&self.ranks[rank].name, reason)
    }

    /// Adds the rows of all nodes, with their dependencies.
    fn nodes(&mut self) -> Result<(), TraceError> {
        for (rank, trace) in self.ranks.iter().enumerate() {
            let mut of = HashMap::with_capacity(trace.nodes.len());
            for (place, node) in (1..).zip(&trace.nodes) {
                let rows = self.node(rank, place, node)?;
                if of.insert(node.id, rows).is_some() {
                    return Err(self.wrong(rank, node, "expected an id that no node before has"));
                }
            }
            self.rows_of_node.push(of);
        }
        for (rank, trace) in self.ranks.iter().enumerate() {
            for node in &trace.nodes {
                let mut after = BTreeSet::new();
                for dependency in node.data_deps.iter().chain(&node.ctrl_deps) {
                    let Some(rows) = self.rows_of_node[rank].get(dependency) else {
                        let what = format!("deps: expected nodes of the rank, got {dependency}");
                        return Err(self.wrong(rank, node, &what));
                    };
                    after.insert(rows.end as u64);
                }
                let start = self.rows_of_node[rank][&node.id].start;
                self.rows[start].extra.after.extend(after);
            }
        }
        Ok(())
    }

    fn node(&mut self, rank: usize, place: u64, node: &'a Node) -> Result<Rows, TraceError> {
        let start = self.rows.len();
        let own = [rank, rank];
        let ps = node.duration_micros.saturating_mul(1_000_000);
        let kind = node.kind().ok_or_else(|| {
            let what = format!("type: expected a node of the schema, got {}", node.kind);
            self.wrong(rank, node, &what)
        })?;
        self.priorities += usize::from(node.number("comm_priority") > Some(0));
        match kind {
            NodeKind::Compute => {
                self.without_time += usize::from(ps == 0 && node.number("num_ops") > Some(0));
                self.rows.push(row(place, own, 0, Vec::new(), ps));
            }
            NodeKind::Memory => {
                self.memory += usize::from(ps == 0);
                self.rows.push(row(place, own, 0, Vec::new(), ps));
            }
            NodeKind::Metadata | NodeKind::Receive => {
                self.rows.push(row(place, own, 0, Vec::new(), 0));
            }
            NodeKind::Send => {
                let dst = self.peer(rank, node, "comm_dst")?;
                let size = self.size(rank, node)?.max(1);
                self.rows.push(row(place, [rank, dst], size, Vec::new(), 0));
            }
            NodeKind::Collective => {
                self.rows.push(row(place, own, 0, Vec::new(), 0));
                self.rows.push(row(place, own, 0, vec![start as u64], 0));
                let rows = Rows { start, end: start + 1 };
                self.partial_dims += usize::from(node.has_false("involved_dim"));
                let group = node.text("pg_name").unwrap_or_default();
                let n_ranks = self.ranks.len();
                let parts =
                    self.parts.entry(group).or_insert_with(|| vec![VecDeque::new(); n_ranks]);
                parts[rank].push_back(Part { rank, node, rows });
            }
        }
        Ok(Rows { start, end: self.rows.len() - 1 })
    }

    fn peer(&self, rank: usize, node: &Node, name: &str) -> Result<usize, TraceError> {
        let peer = node.number(name).and_then(|peer| usize::try_from(peer).ok());
        match peer.filter(|&peer| peer < self.ranks.len() && peer != rank) {
            Some(peer) => Ok(peer),
            None => {
                let got = peer.map_or("none".to_owned(), |peer| peer.to_string());
                let expected = format!("another of the {} ranks", self.ranks.len());
                Err(self.wrong(rank, node, &format!("{name}: expected {expected}, got {got}")))
            }
        }
    }

    fn size(&self, rank: usize, node: &Node) -> Result<u64, TraceError> {
        let size = node.number("comm_size").and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| self.wrong(rank, node, "comm_size: expected bytes, got none"))
    }

    /// Makes receives depend on the sends with the same ends and tag, in their order.
    fn messages(&mut self) -> Result<(), TraceError> {
        let mut open: BTreeMap<Channel, VecDeque<(&Node, usize)>> = BTreeMap::new();
        let tag = |node: &Node| node.number("comm_tag").unwrap_or(0);
        for (rank, trace) in self.ranks.iter().enumerate() {
            for node in trace.nodes.iter().filter(|node| node.kind() == Some(NodeKind::Send)) {
                let dst = self.peer(rank, node, "comm_dst")?;
                let flow = self.rows_of_node[rank][&node.id].end;
                open.entry((rank, dst, tag(node))).or_default().push_back((node, flow));
            }
        }
        for (rank, trace) in self.ranks.iter().enumerate() {
            for node in trace.nodes.iter().filter(|node| node.kind() == Some(NodeKind::Receive)) {
                let src = self.peer(rank, node, "comm_src")?;
                let tag = tag(node);
                let sent = open.get_mut(&(src, rank, tag)).and_then(VecDeque::pop_front);
                let Some((sender, flow)) = sent else {
                    let what = format!("expected a send of rank {src} with tag {tag}, got none");
                    return Err(self.wrong(rank, node, &what));
                };
                let (own, other) = (node.number("comm_size"), sender.number("comm_size"));
                if let Some(own) = own.filter(|_| own != other) {
                    let other = other.map_or("none".to_owned(), |size| size.to_string());
                    let of = format!("as of the send of rank {src}");
                    let what = format!("comm_size: expected {other}, {of}, got {own}");
                    return Err(self.wrong(rank, node, &what));
                }
                let end = self.rows_of_node[rank][&node.id].end;
                self.rows[end].extra.after.push(flow as u64);
            }
        }
        match open.into_iter().find_map(|(key, queue)| Some((key, queue.front()?.0))) {
            Some(((src, dst, tag), node)) => {
                let what = format!("expected a receive of rank {dst} with tag {tag}, got none");
                Err(self.wrong(src, node, &what))
            }
            None => Ok(()),
        }
    }

    /// Adds the messages of collectives.
    fn collectives(&mut self) -> Result<(), TraceError> {
        for (group, mut queues) in std::mem::take(&mut self.parts) {
            let members = self.members(&group, &queues);
            let stranger =
                (0..queues.len()).find(|rank| !members.contains(rank) && !queues[*rank].is_empty());
            if let Some(rank) = stranger {
                let what = format!("pg_name: expected a group of rank {rank}, got {group:?}");
                return Err(self.wrong(rank, queues[rank][0].node, &what));
            }
            while let Some(some) = members.iter().find_map(|&rank| queues[rank].front().copied()) {
                let mut parts = Vec::with_capacity(members.len());
                for &rank in &members {
                    let Some(part) = queues[rank].pop_front() else {
                        let what = format!("expected a part of rank {rank}, got none");
                        return Err(self.wrong(some.rank, some.node, &what));
                    };
                    parts.push(part);
                }
                self.collective(&members, &parts)?;
            }
        }
        Ok(())
    }

    /// Returns the ranks of a group: those that are listed, all if it has no name, or else those
    /// that name it.
    fn members(&mut self, group: &str, queues: &[VecDeque<Part<'_>>]) -> Vec<usize> {
        if let Some(members) = self.groups.get(group) {
            return members.clone();
        }
        if group.is_empty() {
            return (0..queues.len()).collect();
        }
        self.guessed.insert(group.to_owned());
        (0..queues.len()).filter(|&rank| !queues[rank].is_empty()).collect()
    }

    fn comm_type(&self, part: Part<'_>) -> Result<i128, TraceError> {
        part.node.number("comm_type").ok_or_else(|| {
            let what = "comm_type: expected a collective of the schema, got none";
            self.wrong(part.rank, part.node, what)
        })
    }

    fn collective(&mut self, members: &[usize], parts: &[Part<'_>]) -> Result<(), TraceError> {
        let first = parts[0];
        let kind = self.comm_type(first)?;
        let collective = usize::try_from(kind).ok().and_then(|kind| COLLECTIVES.get(kind).copied());
        let Some(collective) = collective else {
            let what = format!("comm_type: expected a collective of the schema, got {kind}");
            return Err(self.wrong(first.rank, first.node, &what));
        };
        let size = match collective {
            Collective::Barrier => 1,
            _ => self.size(first.rank, first.node)?,
        };
        for part in parts {
            let other = self.comm_type(*part)?;
            if other != kind {
                let what = format!("comm_type: expected {kind}, as of rank {}", first.rank);
                return Err(self.wrong(part.rank, part.node, &format!("{what}, got {other}")));
            }
            if collective != Collective::Barrier && self.size(part.rank, part.node)? != size {
                let what = format!("comm_size: expected {size}, as of rank {}", first.rank);
                return Err(self.wrong(part.rank, part.node, &what));
            }
        }
        let n = members.len() as u64;
        let vector =
            if collective == Collective::AllGather { size.saturating_mul(n) } else { size };
        if size == 0 {
            self.empty += 1;
            return Ok(());
        }
        let base = self.rows.len();
        let place = self.rows[first.rows.start].place;
        // No algorithm has more than two messages a pair.
        let n_messages = 2 * n * n;
        if base as u64 + n_messages > ROWS_MAX as u64 {
            let what = format!("expected at most {ROWS_MAX} flows and computations in all");
            return Err(self.wrong(first.rank, first.node, &what));
        }
        for step in collective.steps(members.len(), vector) {
            let mut after = vec![parts[step.src].rows.start as u64];
            after.extend(step.after.iter().map(|&at| (base + at) as u64));
            let message = self.rows.len() as u64;
            let ends = [members[step.src], members[step.dst]];
            self.rows.push(row(place, ends, step.bytes, after, 0));
            let end = parts[step.dst].rows.end;
            self.rows[end].extra.after.push(message);
        }
        if self.rows.len() > base {
            let (nodes, number) = (base as u32..self.rows.len() as u32, self.rounds.len() as u32);
            self.rounds.extend(collective.round(members, vector, nodes, number));
        }
        Ok(())
    }

    fn notes(&self, file: &str) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |text: String| notes.push(format!("{file}: {text}"));
        if self.empty > 0 {
            let n = count(self.empty, "collective");
            note(format!("{n} of 0 bytes: omitted, as nothing is sent"));
        }
        if self.without_time > 0 {
            let n = count(self.without_time, "computation");
            note(format!("{n} with num_ops and without duration_micros: no time"));
        }
        if self.memory > 0 {
            let n = count(self.memory, "node");
            note(format!("{n} of memory or storage without duration_micros: no time"));
        }
        if self.priorities > 0 {
            let n = count(self.priorities, "node");
            note(format!("comm_priority of {n} is not used: transports choose priorities"));
        }
        if self.partial_dims > 0 {
            let n = count(self.partial_dims, "collective");
            note(format!("{n}: involved_dim is not used: all ranks of the group take part"));
        }
        if !self.guessed.is_empty() {
            let names: Vec<&str> = self.guessed.iter().map(String::as_str).collect();
            let names = names.join(", ");
            note(format!("groups without a list of members: the ranks that name them: {names}"));
        }
        if self.ranks.len() == 1 {
            note("one rank alone".to_owned());
        }
        notes
    }
}
