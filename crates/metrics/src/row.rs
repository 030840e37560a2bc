//! One row a flow: the schema of results.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use serde::{Deserialize, Serialize};

use crate::columns::{Cell, Source, rows};
use crate::ideal::Ideal;
use crate::table::TableError;

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every byte was delivered.
    Finished,
    /// The transport gave it up.
    Failed,
    /// The network did not take it; nothing of it was sent.
    Rejected,
    /// The run ended first.
    Unfinished,
    /// It waited for others to the end of the run, which stands for its arrival.
    NotStarted,
}

impl Status {
    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Unfinished => "unfinished",
            Self::NotStarted => "not-started",
        }
    }

    /// The status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all =
            [Self::Finished, Self::Failed, Self::Rejected, Self::Unfinished, Self::NotStarted];
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
                let expected = "finished, failed, rejected, unfinished or not-started";
                source.impossible(idx, column, expected, name.unwrap_or("null"))
            })?;
            into.push(status);
        }
        Ok(())
    }
}

rows! {
    /// The record of one flow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FlowRow, FlowColumns {
        /// Its number in the workload, from 0: in the order of submission, but flows that may wait
        /// for others come first, in the order of the workload.
        [""] flow: u64,
        /// When it was submitted, since the start of the run.
        ["ps"] arrival_ps: u64,
        /// The sending host.
        [""] src: u32,
        /// The receiving host.
        [""] dst: u32,
        /// Its length.
        ["B"] size_bytes: u64,
        /// From submission until every byte was at the receiver.
        ["ps"] fct_ps: Option<u64>,
        /// From submission until the sender knew that every byte was at the receiver.
        ["ps"] acked_ps: Option<u64>,
        /// The least that fct_ps could be, over all shortest paths: the ideal `delivered`.
        ["ps"] ideal_ps: u64,
        /// The least that acked_ps could be: the ideal `acked`.
        ["ps"] acked_ideal_ps: u64,
        /// The ideal `figure` of dcPIM's simulator, which goes with acked_ps.
        ["ps"] figure_ideal_ps: u64,
        /// Whether ideal_ps and acked_ideal_ps are bounds from below, which perhaps no transport
        /// can reach: several paths were needed, or a short packet might overtake.
        [""] ideal_is_bound: bool,
        /// Payload that reached the receiver more than once.
        ["B"] duplicate_bytes: u64,
        /// From submission until the application needed it; null if it did not say.
        ["ps"] deadline_ps: Option<u64>,
        /// From submission until its sender knew its fate: that it has arrived, failed or been
        /// rejected.
        ["ps"] fate_ps: Option<u64>,
        /// Within what time after submission the transport promised that; null if it did not.
        ["ps"] bound_ps: Option<u64>,
        /// Whom it belonged to.
        [""] tenant: u32,
        /// How it ended: finished, failed, rejected or unfinished; or not-started, if it waited for
        /// others to the end of the run, which then stands for its arrival.
        [""] status: Status,
        /// From submission until the first of its bytes was at the receiver; null if none was.
        ["ps"] first_byte_ps: Option<u64>,
        /// Payload that its sender put on its link, retransmissions included.
        ["B"] sent_bytes: u64,
        /// Payload that its sender put on its link beyond the flow's length.
        ["B"] retransmitted_bytes: u64,
        /// Payload that reached the receiver, each byte counted once: the progress of a flow that
        /// did not finish.
        ["B"] delivered_bytes: u64,
    }
}

impl FlowRow {
    /// The completion time that goes with an ideal, if the flow got that far.
    pub fn completion_ps(&self, ideal: Ideal) -> Option<u64> {
        match ideal {
            Ideal::Delivered => self.fct_ps,
            Ideal::Acked | Ideal::Figure => self.acked_ps,
        }
    }

    /// The ideal itself.
    pub fn ideal_ps(&self, ideal: Ideal) -> u64 {
        match ideal {
            Ideal::Delivered => self.ideal_ps,
            Ideal::Acked => self.acked_ideal_ps,
            Ideal::Figure => self.figure_ideal_ps,
        }
    }

    /// Completion over ideal.
    pub fn slowdown(&self, ideal: Ideal) -> Option<f64> {
        self.completion_ps(ideal).map(|ps| ps as f64 / self.ideal_ps(ideal) as f64)
    }
}
