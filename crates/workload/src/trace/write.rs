//! Rows to write, and the columns that they need.

use rampmeter_types::{Span, TenantId};

use crate::flow::Flow;
use crate::graph::Graph;

/// A row to write: a flow or a computation.
pub(super) struct Row {
    pub(super) flow: Flow,
    pub(super) after: Vec<u32>,
    pub(super) compute: Span,
}

/// Rows, and flags for the optional columns.
pub(super) struct TraceRows {
    pub(super) rows: Vec<Row>,
    pub(super) has_tenants: bool,
    pub(super) has_deadlines: bool,
    pub(super) waits: bool,
}

impl TraceRows {
    /// Creates the rows of flows without dependencies.
    pub(super) fn of_flows(flows: impl IntoIterator<Item = Flow>) -> Self {
        let row = |flow| Row { flow, after: Vec::new(), compute: Span::ZERO };
        Self::new(flows.into_iter().map(row).collect(), false)
    }

    /// Creates the rows of the nodes of a graph. Their numbers are those of the rows.
    pub(super) fn of_graph(graph: &Graph) -> Self {
        let row = |(node, after): (u32, Vec<u32>)| Row {
            flow: *graph.node(node),
            after,
            compute: graph.delay(node),
        };
        Self::new((0..).zip(graph.dependencies()).map(row).collect(), true)
    }

    fn new(rows: Vec<Row>, waits: bool) -> Self {
        let has_tenants = rows.iter().any(|row| row.flow.tenant != TenantId::default());
        let has_deadlines = rows.iter().any(|row| row.flow.deadline < Span::MAX);
        Self { rows, has_tenants, has_deadlines, waits }
    }
}
