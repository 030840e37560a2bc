//! How long to stay awake for the next event, by how soon those before it came.
//!
//! Waking a sleeping processor takes longer than a round trip between hosts that are awake. Who answers
//! requests that come one after another therefore looks for the next one for a while before it sleeps.
//! Who has an event now and then should sleep at once. The budget follows the events, as hypervisors
//! poll before they halt: it doubles where the next event would have been worth waiting for, and
//! halves where it was not.

use rampmeter_core::Span;

/// The shortest budget; a shorter one is none.
const LEAST: Span = Span::from_us(10);

/// How long to stay awake after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    budget: Span,
    most: Span,
}

impl BusyPoll {
    /// A good longest budget: two round trips between hosts that are awake.
    pub const MOST: Span = Span::from_us(100);

    /// Never longer than `most`; zero for not at all.
    pub fn new(most: Span) -> Self {
        Self { budget: Span::ZERO, most }
    }

    /// The budget.
    pub fn budget(&self) -> Span {
        self.budget
    }

    /// The next event has come after so long.
    pub fn on_event(&mut self, waited: Span) {
        if waited <= self.budget {
            return;
        }
        // While both ends sleep, a round trip takes longer than once they are awake.
        self.budget = if waited <= self.most * 2 {
            (self.budget * 2).max(LEAST).min(self.most)
        } else if self.budget < LEAST * 2 {
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
        let mut busy = BusyPoll::new(BusyPoll::MOST);
        events_us.into_iter().for_each(|us| busy.on_event(Span::from_us(us)));
        busy.budget()
    }

    #[test]
    fn requests_one_after_another_keep_a_node_awake() {
        assert_eq!(after([150; 4]), Span::from_us(80));
        assert_eq!(after([150; 5]), BusyPoll::MOST);
        assert_eq!(after([[150; 5], [40; 5]].concat()), BusyPoll::MOST);
    }

    #[test]
    fn rare_events_do_not() {
        assert_eq!(after([1_000; 3]), Span::ZERO);
        let rare = [vec![150; 5], vec![1_000; 4]].concat();
        assert_eq!(after(rare), Span::ZERO);
    }

    #[test]
    fn no_budget_grows_where_none_is_wanted() {
        let mut busy = BusyPoll::new(Span::ZERO);
        busy.on_event(Span::ZERO);
        busy.on_event(Span::from_us(5));
        assert_eq!(busy.budget(), Span::ZERO);
    }
}
