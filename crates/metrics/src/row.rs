//! Schema of results: one row a flow.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use serde::{Deserialize, Serialize};

use crate::columns::{Cell, Source, rows};
use crate::ideal::Ideal;
use crate::table::TableError;

/// Status of a flow at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every byte was delivered.
    Delivered,
    /// The transport aborted it.
    Failed,
    /// The network did not accept it; none of it was sent.
    Rejected,
    /// The run ended before its last byte was delivered.
    Unfinished,
    /// The flow waited for other flows until the end of the run, which is recorded as its arrival.
    NotStarted,
}

impl Status {
    /// Returns its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Unfinished => "unfinished",
            Self::NotStarted => "not-started",
        }
    }

    /// Returns the status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        // Its name in results of earlier versions.
        let name = if name == "finished" { "delivered" } else { name };
        let all =
            [Self::Delivered, Self::Failed, Self::Rejected, Self::Unfinished, Self::NotStarted];
        all.into_iter().find(|status| status.name() == name)
    }
}

impl Cell for Status {
    const KIND: &'static str = "string";

    fn array(values: Vec<Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values.into_iter().map(Self::name)))
    }

    fn read(
        source: &Source<'_>,
        column: &'static str,
        into: &mut Vec<Self>,
    ) -> Result<(), TableError> {
        for (idx, name) in source.strings(column)?.iter().enumerate() {
            let status = name.and_then(Self::from_name).ok_or_else(|| {
                let expected = "delivered, failed, rejected, unfinished or not-started";
                source.invalid_value(idx, column, expected, name.unwrap_or("null"))
            })?;
            into.push(status);
        }
        Ok(())
    }
}

rows! {
    /// Record of one flow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FlowRow, FlowColumns {
        /// Number in the workload, from 0, in the order of submission. Flows that may wait for
        /// others come first, in the order of the workload.
        [""] flow: u64,
        /// Submission time since the start of the run.
        ["ps"] arrival_ps: u64,
        /// Sending host.
        [""] src: u32,
        /// Receiving host.
        [""] dst: u32,
        /// Length of the flow.
        ["B"] size_bytes: u64,
        /// Time from submission until every byte was at the receiver.
        ["ps"] fct_ps: Option<u64>,
        /// Time from submission until the sender was notified that every byte was at the receiver.
        ["ps"] acked_ps: Option<u64>,
        /// Minimum of fct_ps over all shortest paths: the ideal `delivered`.
        ["ps"] ideal_ps: u64,
        /// Minimum of acked_ps: the ideal `acked`.
        ["ps"] acked_ideal_ps: u64,
        /// The ideal `figure` of dcPIM's simulator, which belongs to acked_ps.
        ["ps"] figure_ideal_ps: u64,
        /// True if ideal_ps and acked_ideal_ps are lower bounds that perhaps no transport can
        /// reach: several paths were needed, or a short packet might overtake.
        [""] ideal_is_bound: bool,
        /// Payload that reached the receiver again, until the sender was notified of the delivery.
        ["B"] duplicate_bytes: u64,
        /// Time from submission until the deadline of the application; null if there is none.
        ["ps"] deadline_ps: Option<u64>,
        /// Time from submission until the sender got the outcome: delivered, failed or rejected.
        ["ps"] outcome_ps: Option<u64>,
        /// Upper bound of outcome_ps that the transport promised; null if it promised none.
        ["ps"] delay_bound_ps: Option<u64>,
        /// Tenant of the flow.
        [""] tenant: u32,
        /// Status at the end: delivered, failed, rejected, unfinished or not-started. A flow that
        /// is not-started waited for others until the end of the run, which is then its arrival.
        [""] status: Status,
        /// Time from submission until the first of its bytes was at the receiver; null if none was.
        ["ps"] first_byte_ps: Option<u64>,
        /// Payload that its sender sent, retransmissions included.
        ["B"] sent_bytes: u64,
        /// Payload that its sender sent beyond the flow's length.
        ["B"] retransmitted_bytes: u64,
        /// Payload that reached the receiver, each byte counted once: the progress of a flow that
        /// did not finish.
        ["B"] delivered_bytes: u64,
    }
}

impl FlowRow {
    /// Returns the completion time that belongs to an ideal, if the flow has it.
    pub fn completion_ps(&self, ideal: Ideal) -> Option<u64> {
        match ideal {
            Ideal::Delivered => self.fct_ps,
            Ideal::Acked | Ideal::Figure => self.acked_ps,
        }
    }

    /// Returns the ideal.
    pub fn ideal_ps(&self, ideal: Ideal) -> u64 {
        match ideal {
            Ideal::Delivered => self.ideal_ps,
            Ideal::Acked => self.acked_ideal_ps,
            Ideal::Figure => self.figure_ideal_ps,
        }
    }

    /// Returns the completion time divided by the ideal.
    pub fn slowdown(&self, ideal: Ideal) -> Option<f64> {
        self.completion_ps(ideal).map(|ps| ps as f64 / self.ideal_ps(ideal) as f64)
    }
}
