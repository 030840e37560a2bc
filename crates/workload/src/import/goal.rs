//! Schedules in the GOAL format of `LogGOPSim` and its generators (schedgen and others).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 1500
//!   l2: send 65536b to 1 tag 7
//!   l2 requires l1
//! }
//! rank 1 {
//!   l1: recv 65536b from 0 tag 7
//! }
//! ```
//!
//! A rank is the host of its number. `calc` has its duration in nanoseconds. A `send` is a flow,
//! and the `recv` of the other rank with the same tag is its arrival. If there are several, the
//! first receive matches the first send. `a requires b`: `a` starts when `b` completes. A send
//! completes when its sender is notified that all bytes have arrived. `a irequires b`: `a` starts
//! when `b` does. A receive completes when the flow has arrived and the receive has started. A
//! message of no bytes has one byte. `cpu` and `nic` are not part of a workload: operations of one
//! rank overlap unless one requires the other, and a note reports it. Comments are `//` and `/*
//! */`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Line, count, idle_hosts};
use crate::trace::{Import, OptionalFields, RawRow, Source, TraceError};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    parse(source.name, &source.text()?, source.n_hosts)
}

fn parse(file: &str, text: &str, n_hosts: Option<u32>) -> Result<Import, TraceError> {
    let mut schedule = Schedule::default();
    let mut place = StatementPosition::TopLevel;
    let mut is_comment = false;
    for (text, number) in text.lines().zip(1..) {
        let line = Line { file, number };
        let text = uncommented(text, &mut is_comment);
        let text = text.replace('{', "\n{\n").replace('}', "\n}\n").replace(':', ": ");
        for statement in text.lines() {
            let fields: Vec<&str> = statement.split_whitespace().collect();
            place = match (&fields[..], place) {
                ([], place) => place,
                (["num_ranks", n], StatementPosition::TopLevel) => {
                    schedule.n_ranks = Some(line.number("num_ranks", n)?);
                    place
                }
                (["rank", number], StatementPosition::TopLevel) => {
                    StatementPosition::BeforeBrace(line.number("rank", number)?)
                }
                (["{"], StatementPosition::BeforeBrace(rank)) => StatementPosition::InRank(rank),
                (["}"], StatementPosition::InRank(_)) => {
                    schedule.end_rank(file)?;
                    StatementPosition::TopLevel
                }
                (fields, StatementPosition::InRank(rank)) => {
                    schedule.take(line, rank, fields)?;
                    place
                }
                ([first, ..], StatementPosition::TopLevel) => {
                    return Err(line.wrong("line", "num_ranks or a rank", first));
                }
                ([first, ..], StatementPosition::BeforeBrace(_)) => {
                    return Err(line.wrong("line", "{ after the number of a rank", first));
                }
            };
        }
    }
    schedule.end_rank(file)?;
    let n_ranks = schedule.n_ranks.unwrap_or_else(|| schedule.ranks());
    let (rows, mut notes) = schedule.rows(file)?;
    notes.extend(idle_hosts(n_ranks, "rank", n_hosts).map(|note| format!("{file}: {note}")));
    Ok(Import { rows, notes, is_graph: true, is_unordered: true, ..Import::default() })
}

/// The place of a statement.
#[derive(Clone, Copy, Debug)]
enum StatementPosition {
    TopLevel,
    /// Position between the number of a rank and its brace.
    BeforeBrace(u64),
    InRank(u64),
}

/// Returns the part of a line that is no comment.
fn uncommented(text: &str, is_comment: &mut bool) -> String {
    let mut rest = text;
    let mut kept = String::new();
    loop {
        if *is_comment {
            let Some(end) = rest.find("*/") else { return kept };
            (rest, *is_comment) = (&rest[end + 2..], false);
        }
        let rest_of_line = rest.split("//").next().unwrap_or_default();
        match rest.find("/*").filter(|&at| at < rest_of_line.len()) {
            Some(at) => {
                kept.push_str(&rest[..at]);
                kept.push(' ');
                (rest, *is_comment) = (&rest[at + 2..], true);
            }
            None => {
                kept.push_str(rest_of_line);
                return kept;
            }
        }
    }
}

/// The work of an operation.
#[derive(Clone, Copy, Debug)]
enum OperationWork {
    Calc { ns: u64 },
    Send { bytes: u64, to: u64, tag: u64 },
    Recv { bytes: u64, from: u64, tag: u64 },
}

#[derive(Clone, Debug)]
struct Operation {
    place: u64,
    rank: u64,
    action: OperationWork,
    /// Operations that must have ended before, and those that must have started.
    after: Vec<usize>,
    start_with: Vec<usize>,
}

#[derive(Debug, Default)]
struct Schedule {
    n_ranks: Option<u64>,
    operations: Vec<Operation>,
    /// The operations of the present rank by label. Several may have one label, unless an order
    /// names it.
    labels: HashMap<String, Vec<usize>>,
    /// Orders of the present rank: line, the later label, the earlier one, and true for `requires`.
    orders: Vec<(u64, String, String, bool)>,
    /// True if an operation names a `cpu` or a `nic` other than 0.
    has_units: bool,
}

impl Schedule {
    /// Reads an operation, or an order of two.
    fn take(&mut self, line: Line<'_>, rank: u64, fields: &[&str]) -> Result<(), TraceError> {
        if let [later, order @ ("requires" | "irequires"), earlier] = *fields {
            let is_after = order == "requires";
            self.orders.push((line.number, later.to_owned(), earlier.to_owned(), is_after));
            return Ok(());
        }
        let (label, fields) = match fields {
            [label, ":", rest @ ..] => (Some(*label), rest),
            [first, rest @ ..] if first.ends_with(':') => (Some(first.trim_end_matches(':')), rest),
            _ => (None, fields),
        };
        let action = self.action(line, fields)?;
        if let Some(label) = label {
            self.labels.entry(label.to_owned()).or_default().push(self.operations.len());
        }
        let (after, start_with) = (Vec::new(), Vec::new());
        self.operations.push(Operation { place: line.number, rank, action, after, start_with });
        Ok(())
    }

    /// Applies the orders of a rank, whose labels end with it. Orders may precede operations.
    fn end_rank(&mut self, file: &str) -> Result<(), TraceError> {
        for (number, later, earlier, is_after) in std::mem::take(&mut self.orders) {
            let line = Line { file, number };
            let known = |label: &str| match self.labels.get(label).map(Vec::as_slice) {
                Some(&[one]) => Ok(one),
                Some(&[first, second, ..]) => {
                    let [first, second] = [first, second].map(|at| self.operations[at].place);
                    let expected = format!(
                        "a label of one operation, not of those in lines {first} and {second}"
                    );
                    Err(line.wrong("label", &expected, label))
                }
                _ => Err(line.wrong("label", "an operation of the rank", label)),
            };
            let (later, earlier) = (known(&later)?, known(&earlier)?);
            let operation = &mut self.operations[later];
            if is_after {
                operation.after.push(earlier);
            } else {
                operation.start_with.push(earlier);
            }
        }
        self.labels.clear();
        Ok(())
    }

    /// Returns the number of ranks up to the last that has an operation.
    fn ranks(&self) -> u64 {
        let last = self.operations.iter().map(|operation| operation.rank).max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Returns the rows and the notes: a row for each send and calc, and for each recv that depends
    /// on more than its flow.
    fn rows(self, file: &str) -> Result<(Vec<RawRow>, Vec<String>), TraceError> {
        let sends = self.matched(file)?;
        let n_ranks = self.n_ranks.unwrap_or(u64::MAX);
        // The row of each operation that has a separate one.
        let mut own_row: Vec<Option<usize>> = vec![None; self.operations.len()];
        let mut n_rows = 0;
        for (row, operation) in own_row.iter_mut().zip(&self.operations) {
            let line = Line { file, number: operation.place };
            if operation.rank >= n_ranks {
                let expected = format!("a rank below {n_ranks}");
                return Err(line.wrong("rank", &expected, &operation.rank.to_string()));
            }
            let waits = !operation.after.is_empty() || !operation.start_with.is_empty();
            if waits || !matches!(operation.action, OperationWork::Recv { .. }) {
                *row = Some(n_rows);
                n_rows += 1;
            }
        }
        // The end of an operation is that of its row; a recv without one ends with its send.
        let end = |idx: usize| {
            let row = own_row[idx].or_else(|| own_row[sends[&idx]]);
            row.expect("sends and calcs have rows") as u64
        };
        let starts = self.starts(file)?;
        let mut rows = Vec::with_capacity(n_rows);
        for (idx, operation) in self.operations.iter().enumerate() {
            if own_row[idx].is_none() {
                continue;
            }
            let mut after: Vec<u64> = starts[idx].iter().map(|&of| end(of)).collect();
            let (dst, size_bytes, compute_ps) = match operation.action {
                OperationWork::Send { bytes, to, .. } => (to, bytes.max(1), 0),
                OperationWork::Calc { ns } => (operation.rank, 0, ns.saturating_mul(1_000)),
                OperationWork::Recv { .. } => {
                    after.push(end(sends[&idx]));
                    (operation.rank, 0, 0)
                }
            };
            after.sort_unstable();
            after.dedup();
            rows.push(RawRow {
                place: operation.place,
                arrival_ps: 0,
                src: operation.rank,
                dst,
                size_bytes,
                fct_ps: None,
                ideal_ps: None,
                extra: OptionalFields { after, compute_ps, ..OptionalFields::default() },
            });
        }
        let notes = self.notes(file, &sends);
        Ok((rows, notes))
    }

    fn notes(&self, file: &str, sends: &BTreeMap<usize, usize>) -> Vec<String> {
        let mut notes = Vec::new();
        // Calcs that nothing orders, by rank: two of them start together.
        let mut free_calcs: BTreeMap<u64, usize> = BTreeMap::new();
        let is_free =
            |operation: &&Operation| operation.after.is_empty() && operation.start_with.is_empty();
        for operation in self.operations.iter().filter(is_free) {
            if matches!(operation.action, OperationWork::Calc { .. }) {
                *free_calcs.entry(operation.rank).or_default() += 1;
            }
        }
        if self.has_units || free_calcs.values().any(|&n| n > 1) {
            notes.push(format!(
                "{file}: cpu and nic are not used: operations of a rank overlap unless one \
                 requires the other"
            ));
        }
        let size = |idx: usize| match self.operations[idx].action {
            OperationWork::Send { bytes, .. } | OperationWork::Recv { bytes, .. } => bytes,
            OperationWork::Calc { .. } => 0,
        };
        let n_unequal = sends.iter().filter(|&(&recv, &send)| size(recv) != size(send)).count();
        if n_unequal > 0 {
            let n = count(n_unequal, "recv");
            notes.push(format!("{file}: {n} of another size than the send, which is used"));
        }
        notes
    }

    /// Returns the send of each recv: the first with its ends and tag that no recv before has.
    fn matched(&self, file: &str) -> Result<BTreeMap<usize, usize>, TraceError> {
        let mut open: BTreeMap<(u64, u64, u64), VecDeque<usize>> = BTreeMap::new();
        for (idx, operation) in self.operations.iter().enumerate() {
            if let OperationWork::Send { to, tag, .. } = operation.action {
                open.entry((operation.rank, to, tag)).or_default().push_back(idx);
            }
        }
        let mut sends = BTreeMap::new();
        for (idx, operation) in self.operations.iter().enumerate() {
            let OperationWork::Recv { from, tag, .. } = operation.action else { continue };
            let key = (from, operation.rank, tag);
            let Some(send) = open.get_mut(&key).and_then(VecDeque::pop_front) else {
                let line = Line { file, number: operation.place };
                let expected = format!("a send of rank {from} to rank {}", operation.rank);
                return Err(line.wrong("recv", &expected, &format!("none with tag {tag}")));
            };
            sends.insert(idx, send);
        }
        let left = open.into_values().flatten().min();
        match left.map(|idx| &self.operations[idx]) {
            Some(Operation {
                place, rank, action: OperationWork::Send { to, tag, .. }, ..
            }) => {
                let line = Line { file, number: *place };
                let expected = format!("a recv of rank {to} from rank {rank}");
                Err(line.wrong("send", &expected, &format!("none with tag {tag}")))
            }
            _ => Ok(sends),
        }
    }

    /// Returns the operations that must complete before each one starts. An operation that starts
    /// with another one has the dependencies of that one.
    fn starts(&self, file: &str) -> Result<Vec<Vec<usize>>, TraceError> {
        let mut starts: Vec<Option<Vec<usize>>> = vec![None; self.operations.len()];
        for first in 0..self.operations.len() {
            let mut path = vec![first];
            while let Some(&idx) = path.last() {
                if starts[idx].is_some() {
                    path.pop();
                    continue;
                }
                let Operation { place, after, start_with, .. } = &self.operations[idx];
                match start_with.iter().find(|&&other| starts[other].is_none()) {
                    Some(other) if path.contains(other) => {
                        let line = Line { file, number: *place };
                        return Err(line.wrong("irequires", "no cycle of them", "one"));
                    }
                    Some(&other) => path.push(other),
                    None => {
                        let mut all = after.clone();
                        all.extend(
                            start_with.iter().flat_map(|&o| starts[o].clone().unwrap_or_default()),
                        );
                        all.sort_unstable();
                        all.dedup();
                        starts[idx] = Some(all);
                        path.pop();
                    }
                }
            }
        }
        Ok(starts.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn action(&mut self, line: Line<'_>, fields: &[&str]) -> Result<OperationWork, TraceError> {
        match *fields {
            ["calc", ns, ref rest @ ..] => {
                self.tag(line, rest)?;
                Ok(OperationWork::Calc { ns: line.number("calc", ns)? })
            }
            ["send", bytes, "to", to, ref rest @ ..] => {
                let (bytes, to) = (size(line, bytes)?, line.number("to", to)?);
                Ok(OperationWork::Send { bytes, to, tag: self.tag(line, rest)? })
            }
            ["recv", bytes, "from", from, ref rest @ ..] => {
                let (bytes, from) = (size(line, bytes)?, line.number("from", from)?);
                Ok(OperationWork::Recv { bytes, from, tag: self.tag(line, rest)? })
            }
            _ => {
                let expected = "calc ns, send bytes to rank, or recv bytes from rank";
                Err(line.wrong("line", expected, &fields.join(" ")))
            }
        }
    }

    /// Reads the pairs at the end of an operation, and returns the tag.
    fn tag(&mut self, line: Line<'_>, rest: &[&str]) -> Result<u64, TraceError> {
        let mut tag = 0;
        for pair in rest.chunks(2) {
            match *pair {
                ["tag", value] => tag = line.number("tag", value)?,
                ["cpu", value] => self.has_units |= line.number("cpu", value)? > 0,
                ["nic", value] => self.has_units |= line.number("nic", value)? > 0,
                _ => return Err(line.wrong("line", "tag, cpu or nic with a number", pair[0])),
            }
        }
        Ok(tag)
    }
}

fn size(line: Line<'_>, text: &str) -> Result<u64, TraceError> {
    let digits = text.strip_suffix('b').unwrap_or(text);
    digits.parse().map_err(|_| line.wrong("size", "bytes, as in 4096b", text))
}
