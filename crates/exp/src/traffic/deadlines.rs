//! Deadlines by which applications need their messages.

use rampmeter_types::{Purpose, Rng, Span, Time};
use rampmeter_workload::Flow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ideals::Ideals;

/// The `deadlines` table: every flow has an exponentially distributed one (pHost §4.1).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeadlinesSpec {
    /// Mean time from submission to deadline.
    pub mean_us: f64,
    /// No deadline is shorter than this times the flow's ideal (`delivered`).
    #[serde(default = "ideal_factor_min")]
    pub ideal_factor_min: f64,
}

fn ideal_factor_min() -> f64 {
    1.25
}

/// Deadlines of flows, drawn at random (pHost §4.1) unless the workload has them.
pub(crate) struct Deadlines {
    law: Option<DeadlineGenerator>,
}

struct DeadlineGenerator {
    spec: DeadlinesSpec,
    seed: u64,
    rng: Rng,
    ideals: Ideals,
}

impl Deadlines {
    /// Returns the deadlines of the flows of a plan under `seed`, drawn if it has a table of them.
    pub(crate) fn new(
        spec: Option<DeadlinesSpec>,
        seed: u64,
        ideals: impl FnOnce() -> Ideals,
    ) -> Self {
        let rng = Rng::new(seed, 0, Purpose::Deadline);
        Self { law: spec.map(|spec| DeadlineGenerator { spec, seed, rng, ideals: ideals() }) }
    }

    /// Returns the deadline of `flow`.
    pub(super) fn draw(&mut self, flow: &Flow) -> Time {
        match &mut self.law {
            Some(law) => {
                let exponential = law.rng.exponential();
                law.after(flow, exponential)
            }
            None => flow.arrival.saturating_add(flow.deadline),
        }
    }

    /// Returns the deadline of `flow`, number `number` of those that wait for others. The draw is
    /// the same in any order of their starts.
    pub(super) fn draw_waiting(&mut self, number: u32, flow: &Flow) -> Time {
        match &mut self.law {
            Some(law) => {
                let mut rng = Rng::new(law.seed, 1 + u64::from(number), Purpose::Deadline);
                law.after(flow, rng.exponential())
            }
            None => flow.arrival.saturating_add(flow.deadline),
        }
    }
}

impl DeadlineGenerator {
    fn after(&mut self, flow: &Flow, exponential: f64) -> Time {
        let ideal = self.ideals.flow(flow.src, flow.dst, flow.size).delivered;
        let drawn = self.spec.mean_us * 1e6 * exponential;
        let least = self.spec.ideal_factor_min * ideal.as_ps() as f64;
        flow.arrival.saturating_add(Span::from_ps(drawn.max(least).round() as u64))
    }
}
