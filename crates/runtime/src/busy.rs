//! Duration of polling for the next event, adapted to the intervals of earlier events.
//!
//! Waking a sleeping processor takes longer than a round trip between hosts that are awake. A
//! server of successive requests therefore polls for the next one for a while before it sleeps. A
//! program with rare events should sleep at once. The budget adapts to the events, as in
//! hypervisors that poll before they halt. It doubles if polling for the next event would have paid
//! off, and halves if not.

use rampmeter_types::Span;

/// Minimum budget; a shorter one becomes zero.
const BUDGET_MIN: Span = Span::from_us(10);

/// Duration of polling after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    budget: Span,
    budget_max: Span,
}

impl BusyPoll {
    /// Recommended maximum budget: two round trips between hosts that are awake.
    pub const BUDGET_MAX: Span = Span::from_us(100);

    /// Creates a budget of at most `budget_max`; zero disables polling.
    pub fn new(budget_max: Span) -> Self {
        Self { budget: Span::ZERO, budget_max }
    }

    /// Returns the budget.
    pub fn budget(&self) -> Span {
        self.budget
    }

    /// Adapts the budget to an event that arrived after `waited`.
    pub fn on_event(&mut self, waited: Span) {
        if waited <= self.budget {
            return;
        }
        // While both ends sleep, a round trip takes longer than once they are awake.
        self.budget = if waited <= self.budget_max * 2 {
            (self.budget * 2).max(BUDGET_MIN).min(self.budget_max)
        } else if self.budget < BUDGET_MIN * 2 {
            Span::ZERO
        } else {
            self.budget / 2
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events_us: impl IntoIterator<Item = u64>) -> Span {
        let mut busy = BusyPoll::new(BusyPoll::BUDGET_MAX);
        events_us.into_iter().for_each(|us| busy.on_event(Span::from_us(us)));
        busy.budget()
    }

    #[test]
    fn requests_one_after_another_keep_a_node_awake() {
        assert_eq!(after([150; 4]), Span::from_us(80));
        assert_eq!(after([150; 5]), BusyPoll::BUDGET_MAX);
        assert_eq!(after([[150; 5], [40; 5]].concat()), BusyPoll::BUDGET_MAX);
    }

    #[test]
    fn rare_events_do_not_keep_a_node_awake() {
        assert_eq!(after([1_000; 3]), Span::ZERO);
        let rare = [vec![150; 5], vec![1_000; 4]].concat();
        assert_eq!(after(rare), Span::ZERO);
    }

    #[test]
    fn a_budget_of_zero_does_not_grow() {
        let mut busy = BusyPoll::new(Span::ZERO);
        busy.on_event(Span::ZERO);
        busy.on_event(Span::from_us(5));
        assert_eq!(busy.budget(), Span::ZERO);
    }
}
