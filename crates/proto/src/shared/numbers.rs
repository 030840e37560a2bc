//! The numbers by which the flows of a pair of hosts are told apart, at both ends.
//!
//! A sender counts the flows to each destination. So a receiver knows which flows it has had from
//! two words a sender, however many there were, and answers what comes late for a flow that is
//! over.

use rampmeter_core::NodeId;

/// The sender's side: the next number for each destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct NextNumber(Vec<u32>);

impl NextNumber {
    /// Takes the number of a new flow to `dst`.
    pub(crate) fn take(&mut self, dst: NodeId) -> u32 {
        if self.0.len() <= dst.idx() {
            self.0.resize(dst.idx() + 1, 0);
        }
        let next = &mut self.0[dst.idx()];
        let number = *next;
        *next = number.wrapping_add(1);
        number
    }

    /// The destination has forgotten everything: its numbers start again.
    pub(crate) fn reset(&mut self, dst: NodeId) {
        if let Some(next) = self.0.get_mut(dst.idx()) {
            *next = 0;
        }
    }
}

/// What a receiver knows of a flow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Never heard of it.
    New,
    /// It was entered.
    Entered,
    /// It was given up. Its sender gets no answer, and gives up too.
    Abandoned,
}

/// The receiver's side: which numbers of each source have been used, and how many of its flows are
/// under way.
#[derive(Clone, Debug)]
pub(crate) struct FlowNumbers {
    by_source: Vec<Numbers>,
    /// Flows that each source may have under way.
    under_way_max: u32,
    /// New flows that came beyond that, each time that they came.
    excess: u64,
}

/// Hosts have one of these for each host that they ever heard of, so it is small.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// Numbers from here on are new.
    next: u32,
    /// Flows that are neither over nor abandoned.
    under_way: u32,
    /// What is out of the ordinary.
    gaps: Option<Box<Gaps>>,
}

#[derive(Clone, Debug, Default)]
struct Gaps {
    /// Numbers below `next` that are new, in order.
    skipped: Vec<u32>,
    /// Below this number nothing is new any more, and nobody knows what was entered.
    forgotten: u32,
    abandoned: Vec<u32>,
}

/// How far ahead of the flows known a number may be; more is taken for a broken packet. Where as
/// many have been left out in all, those that were for longest will not come: their flows were
/// cancelled.
const SKIP_MAX: u32 = 1 << 16;
/// How many abandoned flows are remembered. Their sources have been silent for long.
const ABANDONED_MAX: usize = 1 << 12;

impl Default for FlowNumbers {
    fn default() -> Self {
        Self { by_source: Vec::new(), under_way_max: u32::MAX, excess: 0 }
    }
}

impl FlowNumbers {
    fn of(&mut self, src: NodeId) -> &mut Numbers {
        if self.by_source.len() <= src.idx() {
            self.by_source.resize_with(src.idx() + 1, Numbers::default);
        }
        &mut self.by_source[src.idx()]
    }

    /// From now on no source has more flows under way.
    pub(crate) fn limit(&mut self, under_way_max: u32) {
        self.under_way_max = under_way_max;
    }

    /// How often new flows came beyond the limit.
    pub(crate) fn excess(&self) -> u64 {
        self.excess
    }

    /// What is known of a source's flow.
    pub(crate) fn known(&mut self, src: NodeId, flow: u32) -> Known {
        let numbers = self.of(src);
        if flow >= numbers.next {
            return Known::New;
        }
        match &numbers.gaps {
            Some(gaps) if gaps.skipped.binary_search(&flow).is_ok() => Known::New,
            Some(gaps) if flow < gaps.forgotten => Known::Abandoned,
            Some(gaps) if gaps.abandoned.contains(&flow) => Known::Abandoned,
            _ => Known::Entered,
        }
    }

    /// Enters a flow that is new; false if its number makes no sense, or its source has too many.
    pub(crate) fn enter(&mut self, src: NodeId, flow: u32) -> bool {
        let under_way_max = self.under_way_max;
        let numbers = self.of(src);
        if numbers.under_way >= under_way_max {
            self.excess += 1;
            return false;
        }
        if flow < numbers.next {
            numbers.gaps.get_or_insert_default().skipped.retain(|&n| n != flow);
            numbers.under_way += 1;
            return true;
        }
        if flow - numbers.next > SKIP_MAX {
            return false;
        }
        if flow > numbers.next {
            let gaps = numbers.gaps.get_or_insert_default();
            let leap = (flow - numbers.next) as usize;
            let surplus = (gaps.skipped.len() + leap).saturating_sub(SKIP_MAX as usize);
            if surplus > 0 {
                // Half of them at once, so that not every flow moves the others.
                let old = surplus.max(gaps.skipped.len() / 2);
                gaps.forgotten = gaps.skipped[old - 1] + 1;
                gaps.skipped.drain(..old);
            }
            gaps.skipped.extend(numbers.next..flow);
        }
        numbers.next = flow + 1;
        numbers.under_way += 1;
        true
    }

    /// A flow that was entered is over.
    pub(crate) fn complete(&mut self, src: NodeId) {
        self.of(src).under_way -= 1;
    }

    /// The source has forgotten everything: its numbers start again.
    pub(crate) fn reset(&mut self, src: NodeId) {
        if let Some(numbers) = self.by_source.get_mut(src.idx()) {
            *numbers = Numbers::default();
        }
    }

    /// Gives up a flow that was entered.
    pub(crate) fn abandon(&mut self, src: NodeId, flow: u32) {
        let numbers = self.of(src);
        numbers.under_way -= 1;
        let abandoned = &mut numbers.gaps.get_or_insert_default().abandoned;
        if abandoned.len() == ABANDONED_MAX {
            abandoned.remove(0);
        }
        abandoned.push(flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_number_is_new_exactly_until_it_is_entered(
            flows in proptest::collection::vec((0u32..4, 0u32..40), 0..200),
        ) {
            let mut numbers = FlowNumbers::default();
            let mut model = BTreeSet::new();
            for (src, flow) in flows {
                let known = numbers.known(NodeId::new(src), flow);
                prop_assert_eq!(known == Known::New, !model.contains(&(src, flow)));
                if known == Known::New {
                    prop_assert!(numbers.enter(NodeId::new(src), flow));
                    model.insert((src, flow));
                }
            }
        }
    }

    #[test]
    fn absurd_numbers_are_refused_and_abandoned_ones_stay_so() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        assert!(!numbers.enter(src, SKIP_MAX + 1));
        assert!(numbers.enter(src, 3));
        numbers.abandon(src, 3);
        assert_eq!(numbers.known(src, 3), Known::Abandoned);
        assert_eq!(numbers.known(src, 2), Known::New);
        numbers.reset(src);
        assert_eq!(numbers.known(src, 3), Known::New);
    }

    /// Flows that are cancelled before anything of them arrives leave their numbers out for good.
    #[test]
    fn any_number_of_flows_may_be_left_out() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        for flow in (0..400_000).step_by(2) {
            assert!(numbers.known(src, flow) == Known::New && numbers.enter(src, flow), "{flow}");
            assert_eq!(numbers.known(src, flow), Known::Entered);
        }
        assert_eq!(numbers.known(src, 399_997), Known::New);
        assert_eq!(numbers.known(src, 1), Known::Abandoned);
        for leap in 0..200 {
            assert!(numbers.enter(src, 400_000 + leap * 10_000));
        }
        let gaps = numbers.of(src).gaps.as_ref().unwrap();
        assert!(gaps.skipped.len() <= SKIP_MAX as usize && gaps.skipped.is_sorted());
    }
}
