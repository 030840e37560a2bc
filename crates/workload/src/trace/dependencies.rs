//! Rows that depend on others: conversion of the ids of a file to a graph.
//!
//! A row's id is its number in the column `flow`, or else the number of the row, from zero. In the
//! graph flows have the numbers of their rows. A row without bytes from a host to itself is a
//! computation.

use std::collections::HashMap;

use rampmeter_types::{Bytes, NodeId, Span, Time};

use super::{FlowOrder, RawRow, TraceError, TraceRequirements, host, tenant};
use crate::flow::Flow;
use crate::graph::Round;
use crate::graph::{Graph, GraphBuilder, GraphError};

/// Returns true if a row depends on others, or computes.
pub(super) fn waits(row: &RawRow) -> bool {
    !row.extra.after.is_empty() || row.extra.compute_ps > 0
}

/// Checks that no two rows have the same number in the column `flow`.
pub(super) fn check_ids(file: &str, rows: &[RawRow]) -> Result<(), TraceError> {
    let mut places = HashMap::new();
    for row in rows {
        let Some(id) = row.extra.flow else { continue };
        if let Some(first) = places.insert(id, row.place) {
            let got = format!("{id}, as {file}:{first} has");
            return Err(wrong(file, row, "flow", "a number that no row before has", got));
        }
    }
    Ok(())
}

/// Makes a graph of rows and their rounds, after checking them. Only rows without dependencies must
/// be in order.
pub(super) fn graph(
    file: &str,
    rows: &[RawRow],
    rounds: Vec<Round>,
    check: TraceRequirements,
) -> Result<Graph, TraceError> {
    let ids = Ids::new(file, rows)?;
    let mut builder = GraphBuilder::default();
    rounds.into_iter().for_each(|round| builder.round(round));
    let mut before = 0;
    for row in rows {
        let flow = flow(file, row, check)?;
        if row.extra.after.is_empty() {
            if check.order == FlowOrder::Require && row.arrival_ps < before {
                let expected = format!("at least {before} ps, the one before, unless sort is set");
                return Err(wrong(file, row, "arrival", &expected, row.arrival_ps));
            }
            before = row.arrival_ps;
        }
        let node = builder.flow(flow, Span::from_ps(row.extra.compute_ps));
        for &id in &row.extra.after {
            let expected = || wrong(file, row, "after", "numbers of flows of this file", id);
            builder.wait(node, ids.node(id).ok_or_else(expected)?);
        }
    }
    builder.build().map_err(|error| {
        let (node, dependency) = match error {
            GraphError::Host { node, dependency, .. }
            | GraphError::Unknown { node, dependency }
            | GraphError::Cycle { node, dependency } => (node, dependency),
        };
        let row = &rows[node as usize];
        let expected = match error {
            GraphError::Cycle { .. } => "flows that do not depend on this one".to_owned(),
            _ => format!("flows that host {} sends or receives", row.src),
        };
        wrong(file, row, "after", &expected, ids.id(rows, dependency))
    })
}

/// Returns a row as a flow, or as a computation.
fn flow(file: &str, row: &RawRow, check: TraceRequirements) -> Result<Flow, TraceError> {
    let src = host(file, row, "src", row.src, check)?;
    let dst = host(file, row, "dst", row.dst, check)?;
    if src == dst && row.size_bytes > 0 {
        return Err(wrong(file, row, "dst", "a host other than src", row.dst));
    }
    if src != dst && row.size_bytes == 0 {
        return Err(wrong(file, row, "size_bytes", "at least 1", 0));
    }
    if row.size_bytes > check.size_max {
        let expected = format!("at most {}", check.size_max);
        return Err(wrong(file, row, "size_bytes", &expected, row.size_bytes));
    }
    Ok(Flow {
        arrival: Time::from_ps(row.arrival_ps),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(row.size_bytes),
        tenant: tenant(file, row)?,
        deadline: row.extra.deadline_ps.map_or(Span::MAX, Span::from_ps),
    })
}

fn wrong(file: &str, row: &RawRow, field: &str, expected: &str, got: impl ToString) -> TraceError {
    let (file, field) = (file.to_owned(), field.to_owned());
    let (place, got) = (row.place, got.to_string());
    TraceError::Field { file, place, field, expected: expected.to_owned(), got }
}

/// The rows by their ids in the file.
enum Ids {
    /// Ids are the numbers of rows, which are below this.
    Rows(u64),
    /// Ids are the values of the column `flow`, with the numbers of their rows.
    Column(HashMap<u64, u32>),
}

impl Ids {
    fn new(file: &str, rows: &[RawRow]) -> Result<Self, TraceError> {
        if rows.iter().all(|row| row.extra.flow.is_none()) {
            return Ok(Self::Rows(rows.len() as u64));
        }
        let mut ids = HashMap::new();
        for (row, node) in rows.iter().zip(0..) {
            let Some(id) = row.extra.flow else {
                return Err(wrong(file, row, "flow", "a whole number", "none"));
            };
            ids.insert(id, node);
        }
        Ok(Self::Column(ids))
    }

    fn node(&self, id: u64) -> Option<u32> {
        match self {
            Self::Rows(n) => (id < *n).then_some(id as u32),
            Self::Column(ids) => ids.get(&id).copied(),
        }
    }

    /// Returns the id of row `node` in the file.
    fn id(&self, rows: &[RawRow], node: u32) -> u64 {
        match self {
            Self::Rows(_) => node.into(),
            Self::Column(_) => rows[node as usize].extra.flow.unwrap_or_default(),
        }
    }
}
