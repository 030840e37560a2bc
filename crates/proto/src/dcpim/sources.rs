//! The flows of each source at their receiver, and the choice of the one that is served.
//!
//! One flow of a source is served. A flow is eligible if it is not paused and waits for no packets
//! in flight. Among eligible flows the one with the fewest missing packets is served. Ties are
//! resolved to the one announced first, and then to the one entered last. Mostly a source has a
//! single flow, of which only the slot is kept. If it has several, a flow that waits becomes
//! eligible at its timeout, a paused one when it is resumed. So the choice and each packet take
//! O(log n) steps.

use std::cmp::Reverse;

use rampmeter_types::collections::{HeapPositions, IdTable};
use rampmeter_types::{NodeId, Time};

use super::rx_flow::{Progress, RxFlow};
use crate::toolkit::{ArrivingFlows, Candidates};

/// Preference among the flows of a source: missing packets, announcement, order of entry.
type Key = (u32, u64, Reverse<u64>);

/// The flows of a source.
#[derive(Clone, Copy, Debug, Default)]
enum Flows {
    #[default]
    None,
    /// Slot of the only flow.
    One(u32),
    /// Index of the source in [`MultiFlowSources::sources`].
    Several(u32),
}

/// A source that has, or lately had, several flows.
#[derive(Debug, Default)]
struct Source {
    /// Eligible flows by preference. Flows that wait or are paused, by the time at which they
    /// become eligible.
    flows: Candidates<Key>,
    /// Missing packets of the eligible flows.
    missing: u64,
}

#[derive(Debug, Default)]
struct MultiFlowSources {
    sources: Vec<Source>,
    free: Vec<u32>,
    positions: HeapPositions,
}

/// All sources with flows.
#[derive(Debug, Default)]
pub(super) struct Sources {
    by_source: IdTable<Flows>,
    /// Sources with flows, in no particular but a reproducible order.
    active: Vec<u32>,
    n_entered: u64,
    /// Apart from the rest, as few packets need it.
    several: Box<MultiFlowSources>,
}

impl Sources {
    /// Returns the number of sources with flows.
    pub(super) fn len(&self) -> usize {
        self.active.len()
    }

    /// Returns a source with flows, by its place in a reproducible order.
    pub(super) fn get(&self, idx: usize) -> NodeId {
        NodeId::new(self.active[idx])
    }

    #[inline]
    fn flows_of(&self, src: NodeId) -> Flows {
        self.by_source.get(src.get()).copied().unwrap_or_default()
    }

    /// Adds the flow in `slot`, which has been entered.
    pub(super) fn insert(&mut self, now: Time, slot: u32, flows: &mut ArrivingFlows<Progress>) {
        let src = flows[slot].announcement.src;
        flows[slot].state.order = self.n_entered;
        self.n_entered += 1;
        let of_source = self.by_source.entry(src.get());
        match *of_source {
            Flows::None => {
                *of_source = Flows::One(slot);
                self.active.push(src.get());
            }
            Flows::One(other) => {
                let MultiFlowSources { sources, free, .. } = &mut *self.several;
                let place = free.pop().unwrap_or_else(|| {
                    sources.push(Source::default());
                    sources.len() as u32 - 1
                });
                *of_source = Flows::Several(place);
                self.place(now, other, &flows[other], place);
                self.place(now, slot, &flows[slot], place);
            }
            Flows::Several(place) => self.place(now, slot, &flows[slot], place),
        }
    }

    /// Updates a flow after a packet has arrived, or its timeout has changed.
    #[inline]
    pub(super) fn update(&mut self, now: Time, slot: u32, flow: &RxFlow) {
        if let Flows::Several(place) = self.flows_of(flow.announcement.src) {
            self.place(now, slot, flow, place);
        }
    }

    /// Puts a flow into its place among those of its source.
    fn place(&mut self, now: Time, slot: u32, flow: &RxFlow, place: u32) {
        let MultiFlowSources { sources, positions, .. } = &mut *self.several;
        let source = &mut sources[place as usize];
        let waits_until = flow.idle_until();
        if waits_until <= now {
            source.activate(positions, slot, flow);
        } else {
            let before = source.flows.wait(positions, slot, waits_until);
            source.forget(before);
        }
    }

    /// Removes a completed or dropped flow.
    pub(super) fn remove(&mut self, slot: u32, flow: &RxFlow) {
        let src = flow.announcement.src;
        if let Flows::Several(place) = self.flows_of(src) {
            let MultiFlowSources { sources, free, positions } = &mut *self.several;
            let source = &mut sources[place as usize];
            let before = source.flows.remove(positions, slot);
            source.forget(before);
            if !source.flows.is_empty() {
                return;
            }
            free.push(place);
        }
        self.by_source.reset(src.get());
        self.active.retain(|&s| s != src.get());
    }

    /// Returns the flow of a source that is served now.
    pub(super) fn candidate(
        &mut self,
        src: NodeId,
        now: Time,
        flows: &ArrivingFlows<Progress>,
    ) -> Option<u32> {
        match self.flows_of(src) {
            Flows::None => None,
            Flows::One(slot) => (flows[slot].idle_until() <= now).then_some(slot),
            Flows::Several(place) => {
                let MultiFlowSources { sources, positions, .. } = &mut *self.several;
                let source = &mut sources[place as usize];
                while let Some(slot) = source.flows.due(now) {
                    source.activate(positions, slot, &flows[slot]);
                }
                source.flows.first().map(|(_, slot)| slot)
            }
        }
    }

    /// Returns the first time at which a flow of a source without a candidate may be served;
    /// [`Time::NEVER`] if there is none.
    pub(super) fn idle_until(&self, src: NodeId, flows: &ArrivingFlows<Progress>) -> Time {
        match self.flows_of(src) {
            Flows::None => Time::NEVER,
            Flows::One(slot) => flows[slot].idle_until(),
            Flows::Several(place) => self.several.sources[place as usize].flows.deadline(),
        }
    }

    /// Returns the missing packets of the flows that were awake when the source's candidate was
    /// last computed. There must have been one.
    pub(super) fn missing(&self, src: NodeId, flows: &ArrivingFlows<Progress>) -> u64 {
        match self.flows_of(src) {
            Flows::None => 0,
            Flows::One(slot) => flows[slot].remaining().into(),
            Flows::Several(place) => self.several.sources[place as usize].missing,
        }
    }
}

impl Source {
    /// Makes a flow eligible.
    fn activate(&mut self, places: &mut HeapPositions, slot: u32, flow: &RxFlow) {
        let (missing, announced) = flow.key();
        let before =
            self.flows.make_ready(places, slot, (missing, announced, Reverse(flow.state.order)));
        self.missing += u64::from(missing);
        self.forget(before);
    }

    /// Subtracts the missing packets of a flow's earlier key.
    fn forget(&mut self, before: Option<Key>) {
        self.missing -= before.map_or(0, |(missing, ..)| u64::from(missing));
    }
}
