//! The flows of each source at their receiver, and which of them is served.
//!
//! A source is served by one flow. Of those that are neither silent nor held it is the one with the
//! fewest missing packets, of equals the one announced first, and of those the one entered last.
//! Flows that are silent wait in a heap of their own until their silence is over, held ones until
//! they are released. So the choice and each packet take O(log n) steps.

use std::cmp::Reverse;

use rampmeter_core::collections::{KeyedHeap, Places};
use rampmeter_core::{NodeId, Time};

use super::rx_flow::{Progress, RxFlow};
use crate::parts::ArrivingFlows;

/// No flows: the source has no entry in the pool.
const NONE: u32 = u32::MAX;

/// By what flows of a source are preferred: missing packets, announcement, order of entry.
type Key = (u32, u64, Reverse<u64>);

#[derive(Debug, Default)]
struct Source {
    awake: KeyedHeap<Key>,
    /// By when their silence is over.
    silent: KeyedHeap<Time>,
    /// Packets that flows which are awake miss.
    missing: u64,
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    #[default]
    Outside,
    Silent,
    /// With so many packets missing.
    Awake(u32),
}

/// All sources with flows.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Each source's place in the pool.
    of: Vec<u32>,
    pool: Vec<Source>,
    free: Vec<u32>,
    places: Places,
    /// Sources with flows, in no particular but a reproducible order.
    listed: Vec<u32>,
    entered: u64,
}

impl Sources {
    /// How many sources have flows.
    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    /// A source with flows, by its place in a reproducible order.
    pub(super) fn get(&self, idx: usize) -> NodeId {
        NodeId::new(self.listed[idx])
    }

    /// Takes up a flow that has been entered.
    pub(super) fn enter(&mut self, now: Time, slot: u32, flow: &mut RxFlow) {
        let src = flow.of.src.idx();
        if self.of.len() <= src {
            self.of.resize(src + 1, NONE);
        }
        if self.of[src] == NONE {
            self.of[src] = self.free.pop().unwrap_or_else(|| {
                self.pool.push(Source::default());
                self.pool.len() as u32 - 1
            });
            self.listed.push(flow.of.src.get());
        }
        flow.state.order = self.entered;
        self.entered += 1;
        self.update(now, slot, flow);
    }

    /// A packet has arrived, or the flow's silence has changed.
    pub(super) fn update(&mut self, now: Time, slot: u32, flow: &mut RxFlow) {
        let source = &mut self.pool[self.of[flow.of.src.idx()] as usize];
        let silent_until = if flow.is_held { Time::NEVER } else { flow.state.silent_until };
        if silent_until <= now {
            source.wake(&mut self.places, slot, flow);
        } else if flow.state.standing != Standing::Silent {
            source.take_out(&mut self.places, slot, flow);
            source.silent.set(&mut self.places, slot, silent_until);
            flow.state.standing = Standing::Silent;
        } else {
            source.silent.set(&mut self.places, slot, silent_until);
        }
    }

    /// Drops a flow that is over.
    pub(super) fn leave(&mut self, slot: u32, flow: &RxFlow) {
        let src = flow.of.src;
        let idx = self.of[src.idx()];
        let source = &mut self.pool[idx as usize];
        source.take_out(&mut self.places, slot, flow);
        if source.awake.is_empty() && source.silent.is_empty() {
            self.of[src.idx()] = NONE;
            self.free.push(idx);
            self.listed.retain(|&s| s != src.get());
        }
    }

    /// The flow of a source that is served now.
    pub(super) fn candidate(
        &mut self,
        src: NodeId,
        now: Time,
        flows: &mut ArrivingFlows<Progress>,
    ) -> Option<u32> {
        let idx = *self.of.get(src.idx()).filter(|&&idx| idx != NONE)?;
        let source = &mut self.pool[idx as usize];
        while let Some((until, slot)) = source.silent.first()
            && until <= now
        {
            source.wake(&mut self.places, slot, &mut flows[slot]);
        }
        source.awake.first().map(|(_, slot)| slot)
    }

    /// Packets that the flows of a source miss which were awake when its candidate was last asked
    /// for.
    pub(super) fn missing(&self, src: NodeId) -> u64 {
        self.pool[self.of[src.idx()] as usize].missing
    }
}

impl Source {
    fn take_out(&mut self, places: &mut Places, slot: u32, flow: &RxFlow) {
        match flow.state.standing {
            Standing::Outside => {}
            Standing::Silent => {
                self.silent.remove(places, slot);
            }
            Standing::Awake(missing) => {
                self.missing -= u64::from(missing);
                self.awake.remove(places, slot);
            }
        }
    }

    /// Enters a flow at its place among those that are awake.
    fn wake(&mut self, places: &mut Places, slot: u32, flow: &mut RxFlow) {
        match flow.state.standing {
            Standing::Awake(missing) => self.missing -= u64::from(missing),
            Standing::Silent | Standing::Outside => self.take_out(places, slot, flow),
        }
        let (remaining, announced) = flow.key();
        self.missing += u64::from(remaining);
        flow.state.standing = Standing::Awake(remaining);
        self.awake.set(places, slot, (remaining, announced, Reverse(flow.state.order)));
    }
}
