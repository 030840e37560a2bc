//! Which flows count: warm-up and censoring, said explicitly.

use serde::{Deserialize, Serialize};

use crate::ideal::Ideal;
use crate::row::{FlowColumns, FlowRow};

/// An instant of a run, given as such or by the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Picoseconds since the start.
    TimePs(u64),
    /// When the n-th flow arrives, counted from 1 over all flows of the run.
    Arrival(u64),
}

/// Which flows count. The default is all that finished.
///
/// The flows of dcPIM's figures, those that finish before the 400 000th arrival, are
/// `Selection { finished_before: Some(Mark::Arrival(400_000)), ..Selection::default() }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Selection {
    /// Only flows that arrive at this instant or later: the end of the warm-up.
    pub arrived_from: Option<Mark>,
    /// Only flows that arrive before this instant.
    pub arrived_before: Option<Mark>,
    /// Only flows that finish before this instant.
    pub finished_before: Option<Mark>,
}

impl Selection {
    /// The selected rows, all of which have a completion for `ideal`, in the table's order.
    ///
    /// A mark by arrivals beyond the last flow is later than everything.
    pub fn rows(self, columns: &FlowColumns, ideal: Ideal) -> impl Iterator<Item = FlowRow> + '_ {
        let instant = |mark: Option<Mark>, none: u64| match mark {
            None => none,
            Some(Mark::TimePs(ps)) => ps,
            Some(Mark::Arrival(n)) => nth_arrival(columns, n),
        };
        let from = instant(self.arrived_from, 0);
        let before = instant(self.arrived_before, u64::MAX);
        let finished = instant(self.finished_before, u64::MAX);
        columns.rows().filter(move |row| {
            let arrival = row.arrival_ps;
            let end = row.completion_ps(ideal).map(|fct| arrival.saturating_add(fct));
            (from..before).contains(&arrival) && end.is_some_and(|end| end < finished)
        })
    }
}

/// The instant of the `n`-th arrival; rows are in the order in which flows finished.
fn nth_arrival(columns: &FlowColumns, n: u64) -> u64 {
    let Some(idx) = n.checked_sub(1) else { return 0 };
    if idx >= columns.len() as u64 {
        return u64::MAX;
    }
    let mut arrivals = columns.arrival_ps.clone();
    *arrivals.select_nth_unstable(idx as usize).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Status;

    fn columns(rows: &[(u64, Option<u64>)]) -> FlowColumns {
        let row = |(flow, &(arrival_ps, fct_ps)): (usize, &(u64, Option<u64>))| FlowRow {
            flow: flow as u64,
            arrival_ps,
            src: 0,
            dst: 1,
            size_bytes: 1,
            fct_ps,
            acked_ps: fct_ps.map(|fct| fct + 10),
            ideal_ps: 1,
            acked_ideal_ps: 1,
            figure_ideal_ps: 1,
            duplicate_bytes: 0,
            deadline_ps: None,
            fate_ps: None,
            bound_ps: None,
            tenant: 0,
            first_byte_ps: None,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            status: Status::Finished,
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn selected(selection: Selection, ideal: Ideal) -> Vec<u64> {
        let columns = columns(&[(30, Some(1)), (10, Some(25)), (20, None), (40, Some(1))]);
        selection.rows(&columns, ideal).map(|row| row.flow).collect()
    }

    #[test]
    fn all_that_finished_count_by_default() {
        assert_eq!(selected(Selection::default(), Ideal::Delivered), [0, 1, 3]);
    }

    #[test]
    fn marks_by_arrival_count_every_flow_in_arrival_order() {
        let finished_before = Some(Mark::Arrival(4));
        let selection = Selection { finished_before, ..Selection::default() };
        // The fourth flow arrives at 40; by its acknowledgement the first finishes then.
        assert_eq!(selected(selection, Ideal::Delivered), [0, 1]);
        assert_eq!(selected(selection, Ideal::Acked), [0; 0]);
        let beyond = Selection { finished_before: Some(Mark::Arrival(5)), ..selection };
        assert_eq!(selected(beyond, Ideal::Acked), [0, 1, 3]);
    }

    #[test]
    fn arrival_bounds_are_from_inclusive_to_exclusive() {
        let selection = Selection {
            arrived_from: Some(Mark::Arrival(3)),
            arrived_before: Some(Mark::TimePs(40)),
            finished_before: None,
        };
        assert_eq!(selected(selection, Ideal::Delivered), [0]);
    }

    #[test]
    fn plans_name_marks() {
        let text = "{\"finished-before\":{\"arrival\":400000}}";
        let selection: Selection = serde_json::from_str(text).unwrap();
        assert_eq!(selection.finished_before, Some(Mark::Arrival(400_000)));
    }
}
