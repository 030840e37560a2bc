//! Numbers that distinguish the flows of a pair of hosts, at both ends.
//!
//! A sender counts the flows to each destination. A receiver keeps two words for each sender to
//! distinguish earlier flows from new ones, regardless of their number. So it can answer packets of
//! flows that have ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rampmeter_types::NodeId;
use rampmeter_types::collections::IdTable;

/// The sender's side: the next number for each destination.
#[derive(Clone, Debug, Default)]
pub struct NextNumber(IdTable<u32>);

impl NextNumber {
    /// Takes the number of a new flow to `dst`.
    pub fn take(&mut self, dst: NodeId) -> u32 {
        let next = self.0.entry(dst.get());
        let number = *next;
        *next = number.wrapping_add(1);
        number
    }

    /// Returns the number of the next flow to `dst`.
    pub fn peek(&self, dst: NodeId) -> u32 {
        self.0.get(dst.get()).copied().unwrap_or(0)
    }

    /// Restarts the numbers of flows to `dst` from zero: it has lost its state.
    pub fn reset(&mut self, dst: NodeId) {
        self.0.reset(dst.get());
    }
}

/// State of a flow's number at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberState {
    /// No packet of the flow has arrived.
    New,
    /// The flow was entered.
    Entered,
    /// The flow was aborted. Its sender gets no answer, and aborts it too.
    Abandoned,
}

/// The receiver's side: which numbers of each source have been used, and how many of its flows are
/// in flight.
#[derive(Clone, Debug)]
pub struct FlowNumbers {
    by_source: IdTable<SourceNumbers>,
    /// Flows that each source may have in flight.
    in_flight_max: u32,
    /// Arrivals of new flows beyond that limit.
    excess: u64,
}

/// State of one source. A host has one for each host from which it ever received a packet, so it is
/// small.
#[derive(Clone, Debug, Default)]
struct SourceNumbers {
    /// Numbers from here on are new.
    next: u32,
    /// Flows that are neither over nor abandoned.
    in_flight: u32,
    /// Numbers out of the ordinary; most sources have none.
    gaps: Option<Box<Gaps>>,
}

#[derive(Clone, Debug, Default)]
struct Gaps {
    /// Numbers below `next` that are new, as ranges from the key up to but without the value. Each
    /// range ends at a flow that arrived, so that arrivals bound their number.
    skipped: BTreeMap<u32, u32>,
    /// Number of skipped numbers.
    n_skipped: u32,
    /// Below this number no flow is new, and entered ones are not recorded.
    forgotten: u32,
    abandoned: BTreeSet<u32>,
    /// The same, oldest first.
    abandoned_order: VecDeque<u32>,
}

impl Gaps {
    fn is_skipped(&self, flow: u32) -> bool {
        self.skipped.range(..=flow).next_back().is_some_and(|(_, &end)| flow < end)
    }

    /// Takes a number out of those skipped.
    fn fill(&mut self, flow: u32) {
        let Some((&start, &end)) = self.skipped.range(..=flow).next_back() else { return };
        if flow >= end {
            return;
        }
        self.skipped.remove(&start);
        if start < flow {
            self.skipped.insert(start, flow);
        }
        if flow + 1 < end {
            self.skipped.insert(flow + 1, end);
        }
        self.n_skipped -= 1;
    }

    /// Forgets the lowest `n` numbers skipped.
    fn forget(&mut self, mut n: u32) {
        self.n_skipped -= n;
        while n > 0
            && let Some((start, end)) = self.skipped.pop_first()
        {
            let gone = n.min(end - start);
            n -= gone;
            self.forgotten = self.forgotten.max(start + gone);
            if start + gone < end {
                self.skipped.insert(start + gone, end);
            }
        }
    }
}

/// Maximum distance of a number ahead of the known flows; packets with higher ones are dropped. It
/// also limits the numbers skipped: beyond it the lowest count as cancelled.
const SKIP_MAX: u32 = 1 << 16;
/// Maximum distance ahead of a number that makes the lowest count as cancelled. Damaged packets
/// claim numbers that are further ahead; these must not cost a source the numbers that it uses
/// next.
const LEAP_MAX: u32 = SKIP_MAX / 4;
/// Abandoned flows that are remembered: as many as a source may have in flight. Their sources have
/// been unresponsive for long.
const ABANDONED_MAX: usize = 1 << 16;

impl Default for FlowNumbers {
    fn default() -> Self {
        Self { by_source: IdTable::default(), in_flight_max: u32::MAX, excess: 0 }
    }
}

impl FlowNumbers {
    fn source_mut(&mut self, src: NodeId) -> &mut SourceNumbers {
        self.by_source.entry(src.get())
    }

    /// Limits the flows that a source may have in flight from now on.
    pub fn limit(&mut self, under_way_max: u32) {
        self.in_flight_max = under_way_max;
    }

    /// Returns the number of new flows that arrived beyond the limit.
    pub fn excess(&self) -> u64 {
        self.excess
    }

    /// Returns the flows of a source that are neither over nor abandoned.
    pub fn in_flight(&self, src: NodeId) -> u32 {
        self.by_source.get(src.get()).map_or(0, |numbers| numbers.in_flight)
    }

    /// Returns the state of a source's flow.
    pub fn state(&mut self, src: NodeId, flow: u32) -> NumberState {
        let numbers = self.source_mut(src);
        if flow >= numbers.next {
            return NumberState::New;
        }
        match &numbers.gaps {
            Some(gaps) if gaps.is_skipped(flow) => NumberState::New,
            Some(gaps) if flow < gaps.forgotten => NumberState::Abandoned,
            Some(gaps) if gaps.abandoned.contains(&flow) => NumberState::Abandoned,
            _ => NumberState::Entered,
        }
    }

    /// Enters a flow that is new. Returns false if its number is too far ahead, or its source has
    /// too many in flight.
    pub fn insert(&mut self, src: NodeId, flow: u32) -> bool {
        let under_way_max = self.in_flight_max;
        let numbers = self.source_mut(src);
        if numbers.in_flight >= under_way_max {
            self.excess += 1;
            return false;
        }
        if flow < numbers.next {
            numbers.gaps.get_or_insert_default().fill(flow);
            numbers.in_flight += 1;
            return true;
        }
        let leap = flow - numbers.next;
        if leap > SKIP_MAX {
            return false;
        }
        if leap > 0 {
            let gaps = numbers.gaps.get_or_insert_default();
            let surplus = (gaps.n_skipped + leap).saturating_sub(SKIP_MAX);
            if surplus > 0 && leap > LEAP_MAX {
                return false;
            }
            if surplus > 0 {
                // Half of them at once, so that not every flow has to forget some.
                gaps.forget(surplus.max(gaps.n_skipped / 2));
            }
            gaps.skipped.insert(numbers.next, flow);
            gaps.n_skipped += leap;
        }
        numbers.next = flow + 1;
        numbers.in_flight += 1;
        true
    }

    /// Records the end of a flow that was entered.
    pub fn complete(&mut self, src: NodeId) {
        self.source_mut(src).in_flight -= 1;
    }

    /// Counts a flow that has ended as in flight once more. Returns false at the limit.
    pub fn resume(&mut self, src: NodeId) -> bool {
        let under_way_max = self.in_flight_max;
        let numbers = self.source_mut(src);
        let may = numbers.in_flight < under_way_max;
        numbers.in_flight += u32::from(may);
        self.excess += u64::from(!may);
        may
    }

    /// Expects numbers from zero: the source has lost its state.
    pub fn reset(&mut self, src: NodeId) {
        self.by_source.reset(src.get());
    }

    /// Abandons a flow that was entered.
    pub fn abandon(&mut self, src: NodeId, flow: u32) {
        self.complete(src);
        self.refuse(src, flow);
    }

    /// Counts a flow that has ended as abandoned.
    pub fn refuse(&mut self, src: NodeId, flow: u32) {
        let gaps = self.source_mut(src).gaps.get_or_insert_default();
        if gaps.abandoned_order.len() == ABANDONED_MAX
            && let Some(oldest) = gaps.abandoned_order.pop_front()
        {
            gaps.abandoned.remove(&oldest);
            // It never counts as delivered, which would be reported to its sender.
            gaps.forgotten = gaps.forgotten.max(oldest + 1);
        }
        gaps.abandoned_order.push_back(flow);
        gaps.abandoned.insert(flow);
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
                let known = numbers.state(NodeId::new(src), flow);
                prop_assert_eq!(known == NumberState::New, !model.contains(&(src, flow)));
                if known == NumberState::New {
                    prop_assert!(numbers.insert(NodeId::new(src), flow));
                    model.insert((src, flow));
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused_and_abandoned_ones_stay_so() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        assert!(!numbers.insert(src, SKIP_MAX + 1));
        assert!(numbers.insert(src, 3));
        numbers.abandon(src, 3);
        assert_eq!(numbers.state(src, 3), NumberState::Abandoned);
        assert_eq!(numbers.state(src, 2), NumberState::New);
        numbers.reset(src);
        assert_eq!(numbers.state(src, 3), NumberState::New);
    }

    /// The number of flows that a source has begun and abandoned does not matter.
    #[test]
    fn an_abandoned_flow_never_counts_as_delivered() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        let n = 2 * ABANDONED_MAX as u32;
        for flow in (0..n).filter(|flow| flow % 10 > 0) {
            assert!(numbers.insert(src, flow));
        }
        for flow in (0..n).filter(|flow| flow % 10 > 0) {
            numbers.abandon(src, flow);
        }
        for flow in 0..n {
            let known = if flow % 10 > 0 { NumberState::Abandoned } else { NumberState::New };
            assert_eq!(numbers.state(src, flow), known, "{flow}");
        }
        assert!(numbers.insert(src, n) && numbers.state(src, n) == NumberState::Entered);
    }

    /// Flows that are cancelled before any packet arrives never use their numbers.
    #[test]
    fn any_number_of_flow_numbers_may_be_skipped() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        for flow in (0..400_000).step_by(2) {
            assert!(
                numbers.state(src, flow) == NumberState::New && numbers.insert(src, flow),
                "{flow}"
            );
            assert_eq!(numbers.state(src, flow), NumberState::Entered);
        }
        assert_eq!(numbers.state(src, 399_997), NumberState::New);
        assert_eq!(numbers.state(src, 1), NumberState::Abandoned);
        for leap in 0..200 {
            assert!(numbers.insert(src, 400_000 + leap * 10_000));
        }
        let gaps = numbers.source_mut(src).gaps.as_ref().unwrap();
        let ranges: u32 = gaps.skipped.iter().map(|(start, end)| end - start).sum();
        assert!(gaps.n_skipped <= SKIP_MAX && ranges == gaps.n_skipped);
    }

    /// One flipped bit after another leads ever further ahead. The numbers that the source uses
    /// next stay new.
    #[test]
    fn numbers_with_flipped_bits_do_not_affect_later_numbers() {
        for used in 1..200 {
            let mut numbers = FlowNumbers::default();
            let src = NodeId::new(7);
            assert!((0..used).all(|flow| numbers.insert(src, flow)));
            for bit in 0..32 {
                for flow in 0..used {
                    let damaged = flow ^ 1 << bit;
                    if numbers.state(src, damaged) == NumberState::New {
                        numbers.insert(src, damaged);
                    }
                }
            }
            for flow in used..30_000 {
                let is_new = numbers.state(src, flow) == NumberState::New;
                let is_damaged = (0..32).any(|bit| flow ^ 1 << bit < used);
                assert_eq!(is_new, !is_damaged, "{used}: {flow}");
            }
        }
    }

    /// A flow that arrives adds one range, for any number in its header.
    #[test]
    fn a_gap_in_numbers_takes_the_memory_of_one_flow() {
        let mut numbers = FlowNumbers::default();
        let src = NodeId::new(7);
        assert!(numbers.insert(src, SKIP_MAX) && numbers.insert(src, SKIP_MAX - 2));
        let gaps = numbers.source_mut(src).gaps.as_ref().unwrap();
        assert_eq!((gaps.skipped.len(), gaps.n_skipped), (2, SKIP_MAX - 1));
    }
}
