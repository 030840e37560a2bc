//! One row a flow: the schema of results.

use serde::{Deserialize, Serialize};

use crate::ideal::Ideal;

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
}

impl Status {
    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Unfinished => "unfinished",
        }
    }

    /// The status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Finished, Self::Failed, Self::Rejected, Self::Unfinished];
        all.into_iter().find(|status| status.name() == name)
    }
}

/// The record of one flow. Times are in picoseconds, sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Its number in arrival order, from 0.
    pub flow: u64,
    /// When it was submitted.
    pub arrival_ps: u64,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Its length.
    pub size_bytes: u64,
    /// From submission until every byte was at the receiver.
    pub fct_ps: Option<u64>,
    /// From submission until the sender knew.
    pub acked_ps: Option<u64>,
    /// The least `fct_ps` could be: the ideal `delivered`.
    pub ideal_ps: u64,
    /// The least `acked_ps` could be: the ideal `acked`.
    pub acked_ideal_ps: u64,
    /// The ideal `figure`, which goes with `acked_ps`.
    pub figure_ideal_ps: u64,
    /// Payload bytes that arrived more than once.
    pub duplicate_bytes: u64,
    /// From submission until the application needed it; null if it did not say.
    pub deadline_ps: Option<u64>,
    /// From submission until its sender knew its fate: that it has arrived, failed or been
    /// rejected.
    pub fate_ps: Option<u64>,
    /// Within what time after submission the transport promised that; null if it did not.
    pub bound_ps: Option<u64>,
    /// Whom it belonged to.
    pub tenant: u32,
    /// How it ended.
    pub status: Status,
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

/// Rows as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are documented as the fields of FlowRow")]
pub struct FlowColumns {
    pub flow: Vec<u64>,
    pub arrival_ps: Vec<u64>,
    pub src: Vec<u32>,
    pub dst: Vec<u32>,
    pub size_bytes: Vec<u64>,
    pub fct_ps: Vec<Option<u64>>,
    pub acked_ps: Vec<Option<u64>>,
    pub ideal_ps: Vec<u64>,
    pub acked_ideal_ps: Vec<u64>,
    pub figure_ideal_ps: Vec<u64>,
    pub duplicate_bytes: Vec<u64>,
    pub deadline_ps: Vec<Option<u64>>,
    pub fate_ps: Vec<Option<u64>>,
    pub bound_ps: Vec<Option<u64>>,
    pub tenant: Vec<u32>,
    pub status: Vec<Status>,
}

impl FlowColumns {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.flow.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.flow.is_empty()
    }

    /// Adds a row.
    pub fn push(&mut self, row: &FlowRow) {
        self.flow.push(row.flow);
        self.arrival_ps.push(row.arrival_ps);
        self.src.push(row.src);
        self.dst.push(row.dst);
        self.size_bytes.push(row.size_bytes);
        self.fct_ps.push(row.fct_ps);
        self.acked_ps.push(row.acked_ps);
        self.ideal_ps.push(row.ideal_ps);
        self.acked_ideal_ps.push(row.acked_ideal_ps);
        self.figure_ideal_ps.push(row.figure_ideal_ps);
        self.duplicate_bytes.push(row.duplicate_bytes);
        self.deadline_ps.push(row.deadline_ps);
        self.fate_ps.push(row.fate_ps);
        self.bound_ps.push(row.bound_ps);
        self.tenant.push(row.tenant);
        self.status.push(row.status);
    }

    /// Row number `idx`, below [`FlowColumns::len`].
    pub fn row(&self, idx: usize) -> FlowRow {
        FlowRow {
            flow: self.flow[idx],
            arrival_ps: self.arrival_ps[idx],
            src: self.src[idx],
            dst: self.dst[idx],
            size_bytes: self.size_bytes[idx],
            fct_ps: self.fct_ps[idx],
            acked_ps: self.acked_ps[idx],
            ideal_ps: self.ideal_ps[idx],
            acked_ideal_ps: self.acked_ideal_ps[idx],
            figure_ideal_ps: self.figure_ideal_ps[idx],
            duplicate_bytes: self.duplicate_bytes[idx],
            deadline_ps: self.deadline_ps[idx],
            fate_ps: self.fate_ps[idx],
            bound_ps: self.bound_ps[idx],
            tenant: self.tenant[idx],
            status: self.status[idx],
        }
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = FlowRow> + '_ {
        (0..self.len()).map(|idx| self.row(idx))
    }
}

impl FromIterator<FlowRow> for FlowColumns {
    fn from_iter<I: IntoIterator<Item = FlowRow>>(rows: I) -> Self {
        let mut columns = Self::default();
        rows.into_iter().for_each(|row| columns.push(&row));
        columns
    }
}
