//! The flows of each source at their receiver, and which of them is served.
//!
//! A source is served by one flow. Of those that are neither silent nor held it is the one with the
//! fewest missing packets, of equals the one announced first, and of those the one entered last.
//! Mostly a source has a single flow, of which only the slot is kept. Of several, those that are
//! silent wait in a heap of their own until their silence is over, held ones until they are
//! released. So the choice and each packet take O(log n) steps.

use std::cmp::Reverse;

use rampmeter_core::collections::{KeyedHeap, Places};
use rampmeter_core::{NodeId, Time};

use super::rx_flow::{Progress, RxFlow};
use crate::parts::ArrivingFlows;

/// By what flows of a source are preferred: missing packets, announcement, order of entry.
type Key = (u32, u64, Reverse<u64>);

/// The flows of a source.
#[derive(Clone, Copy, Debug, Default)]
enum Flows {
    #[default]
    None,
    /// The slot of the only one.
    One(u32),
    /// Their place in [`Several::sources`].
    Several(u32),
}

/// A source that has, or lately had, several flows.
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
    /// In no heap. It is the only one of its source, or new.
    #[default]
    Alone,
    Silent,
    /// With so many packets missing.
    Awake(u32),
}

#[derive(Debug, Default)]
struct Several {
    sources: Vec<Source>,
    free: Vec<u32>,
    places: Places,
}

/// All sources with flows.
#[derive(Debug, Default)]
pub(super) struct Sources {
    of: Vec<Flows>,
    /// Sources with flows, in no particular but a reproducible order.
    listed: Vec<u32>,
    entered: u64,
    /// Apart from the rest, as few packets need it.
    several: Box<Several>,
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

    /// Takes up the flow in `slot`, which has been entered.
    pub(super) fn enter(&mut self, now: Time, slot: u32, flows: &mut ArrivingFlows<Progress>) {
        let src = flows[slot].of.src;
        flows[slot].state.order = self.entered;
        self.entered += 1;
        if self.of.len() <= src.idx() {
            self.of.resize(src.idx() + 1, Flows::None);
        }
        match self.of[src.idx()] {
            Flows::None => {
                self.of[src.idx()] = Flows::One(slot);
                self.listed.push(src.get());
            }
            Flows::One(other) => {
                let Several { sources, free, .. } = &mut *self.several;
                let place = free.pop().unwrap_or_else(|| {
                    sources.push(Source::default());
                    sources.len() as u32 - 1
                });
                self.of[src.idx()] = Flows::Several(place);
                self.place(now, other, &mut flows[other], place);
                self.place(now, slot, &mut flows[slot], place);
            }
            Flows::Several(place) => self.place(now, slot, &mut flows[slot], place),
        }
    }

    /// A packet has arrived, or the flow's silence has changed.
    #[inline]
    pub(super) fn update(&mut self, now: Time, slot: u32, flow: &mut RxFlow) {
        if let Flows::Several(place) = self.of[flow.of.src.idx()]
            && flow.state.standing != Standing::Alone
        {
            self.place(now, slot, flow, place);
        }
    }

    /// Puts a flow where it belongs among those of its source.
    fn place(&mut self, now: Time, slot: u32, flow: &mut RxFlow, place: u32) {
        let Several { sources, places, .. } = &mut *self.several;
        let source = &mut sources[place as usize];
        let silent_until = flow.silent_until();
        if silent_until <= now {
            source.wake(places, slot, flow);
        } else if flow.state.standing != Standing::Silent {
            source.take_out(places, slot, flow);
            source.silent.set(places, slot, silent_until);
            flow.state.standing = Standing::Silent;
        } else {
            source.silent.set(places, slot, silent_until);
        }
    }

    /// Drops a flow that is over.
    pub(super) fn leave(&mut self, slot: u32, flow: &RxFlow) {
        let src = flow.of.src;
        if let Flows::Several(place) = self.of[src.idx()] {
            let Several { sources, free, places } = &mut *self.several;
            let source = &mut sources[place as usize];
            source.take_out(places, slot, flow);
            if !(source.awake.is_empty() && source.silent.is_empty()) {
                return;
            }
            free.push(place);
        }
        self.of[src.idx()] = Flows::None;
        self.listed.retain(|&s| s != src.get());
    }

    /// The flow of a source that is served now.
    pub(super) fn candidate(
        &mut self,
        src: NodeId,
        now: Time,
        flows: &mut ArrivingFlows<Progress>,
    ) -> Option<u32> {
        match *self.of.get(src.idx())? {
            Flows::None => None,
            Flows::One(slot) => (flows[slot].silent_until() <= now).then_some(slot),
            Flows::Several(place) => {
                let Several { sources, places, .. } = &mut *self.several;
                let source = &mut sources[place as usize];
                while let Some((until, slot)) = source.silent.first()
                    && until <= now
                {
                    source.wake(places, slot, &mut flows[slot]);
                }
                source.awake.first().map(|(_, slot)| slot)
            }
        }
    }

    /// Packets that the flows of a source miss which were awake when its candidate was last asked
    /// for, and there was one.
    pub(super) fn missing(&self, src: NodeId, flows: &ArrivingFlows<Progress>) -> u64 {
        match self.of[src.idx()] {
            Flows::None => 0,
            Flows::One(slot) => flows[slot].remaining().into(),
            Flows::Several(place) => self.several.sources[place as usize].missing,
        }
    }
}

impl Source {
    fn take_out(&mut self, places: &mut Places, slot: u32, flow: &RxFlow) {
        match flow.state.standing {
            Standing::Alone => {}
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
        let (remaining, announced) = flow.key();
        let key = (remaining, announced, Reverse(flow.state.order));
        if let Standing::Awake(missing) = flow.state.standing {
            // Of a flow's key only the packets that it misses change, and they become fewer.
            self.missing -= u64::from(missing - remaining);
            self.awake.lower(places, slot, key);
        } else {
            self.take_out(places, slot, flow);
            self.missing += u64::from(remaining);
            self.awake.set(places, slot, key);
        }
        flow.state.standing = Standing::Awake(remaining);
    }
}
