//! The scheduler of figure 6, incrementally: it recomputes only flows that a change can affect.
//!
//! The problem: figure 6 walks through all flows at every request and every completion: 640
//! flows in 10 us (§V.C), and 100 000 in some milliseconds. Most changes concern few flows.
//!
//! The simple way repeats the pass for each change. Its time grows with the number of all flows,
//! and almost all of them keep their state.
//!
//! The present way: the scheduler examines only flows whose state may change.
//!
//! **Flows that may change.** The pass of figure 6 takes flows in order. It grants each if
//! flows *before* it do not use the capacity. So a change at one position changes nothing before
//! it. After it, only flows can change that have a link in common with a flow that was granted or
//! stopped. A change is a *sweep*: flows to examine wait in a heap by position, and each flow
//! examined adds those that follow from it.
//!
//! **Stopped flows.** Each waits at one link that had no room for it, though several may have none.
//! Only when a flow before it is removed from that link is it examined. It is then granted, or
//! waits at another link. As long as flows before it use that link, no other state of it matters.
//!
//! **Time.** Between two changes granted flows shrink and stopped flows do not, so that a granted
//! flow overtakes others. The outcome of figure 6 stays the same. Let `g`, which is granted, be
//! directly behind `h`, and exchange them:
//!
//! * `h` is stopped. It took nothing, so that `g` finds the same room before `h` as behind it. `h`
//!   finds less room behind `g` than before it, and there was too little already.
//! * `h` is granted. Both fit together after the flows before them, so each fits first, and the
//!   other next to it.
//!
//! The capacity that both use is the same in either order, so that all later flows find the same
//! capacity. Any number of overtakings is a sequence of such exchanges. A flow that waits at a link
//! may still wait there, since flows before it stay before it. So [`Scheduler::advance`] moves the
//! clock and nothing else.
//!
//! **Cost.** A sweep examines each flow at most once. For each link of the flow that takes O(K²
//! log² F), where F is the number of flows. K is the number of different rates on the link, mostly
//! one. A flow that is granted or stopped is also put into its place among the users of the link.
//! These are at most as many as the hosts below it.
//!
//! In the worst case, a chain, every flow depends on the one before: the sweep then examines as
//! many flows as figure 6 does. Usually they are few: in `benches/capton.rs` 9 of 640 and 20 of
//! 100 000. [`Scheduler::set_capacity`] examines all flows in addition. Memory is O(F + L) for L
//! links, at the highest F that there was.
//!
//! Hazards: a flow whose capacity is freed must be reported to the link at which others wait, or
//! they wait for nothing. The outcome must be that of figure 6, flow by flow
//! (`the_incremental_scheduler_does_as_figure_6_does`,
//! `no_link_carries_too_much_no_host_two_flows_and_no_flow_waits_for_nothing`). The exchange above
//! needs stopped flows that do not shrink, and grants at a whole rate: flows that share links
//! ([`split`](mod@super::split)) may not use it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, Slab};
use rampmeter_types::{Bytes, Rate, Time};

use super::link::{GrantedFlow, Link, Position, StoppedFlow};
use super::network::{LinkId, Network, Path};
use crate::central::remaining::{RemainingLine, RemainingSize};
use crate::central::{Arrival, Change, FlowId};

#[derive(Clone, Copy, Debug)]
enum State {
    /// The flow transmits, along a line of remaining sizes.
    Granted(RemainingLine),
    /// The flow is stopped, and a link has no room for it.
    Waiting(RemainingSize, LinkId),
    /// The flow is in the heap of the sweep, and at no link.
    InSweep(RemainingSize),
}

#[derive(Debug)]
struct Flow {
    id: FlowId,
    arrival: u64,
    path: Path,
    /// The rate that it has if it is granted; `None` if a link is down.
    rate: Option<Rate>,
    state: State,
    /// True if the sweep has noted its previous rate.
    has_previous_rate: bool,
}

impl Flow {
    #[inline]
    fn position(&self, now: Time) -> Position {
        let remaining = match (self.state, self.rate) {
            (State::Granted(line), Some(rate)) => line.remaining(rate, now),
            (State::Waiting(remaining, _) | State::InSweep(remaining), _) => remaining,
            (State::Granted(_), None) => unreachable!("flow {:?} is granted no rate", self.id),
        };
        Position { remaining, arrival: self.arrival }
    }

    /// Returns the rate at which it transmits.
    #[inline]
    fn granted(&self) -> Option<Rate> {
        self.rate.filter(|_| matches!(self.state, State::Granted(_)))
    }
}

/// The scheduler. Methods that change something answer with the flows that are stopped, and then
/// with those that transmit at another rate than before. A flow that arrives and is stopped is not
/// among them.
#[derive(Debug)]
pub struct Scheduler {
    network: Network,
    now: Time,
    flows: Slab<Flow>,
    slots: IdMap<FlowId, u32>,
    links: Vec<Link>,
    /// Arrivals so far.
    arrivals: u64,
    /// Predicted completions of granted flows, by slot.
    ends: KeyedHeap<Time>,
    positions: HeapPositions,
    /// Flows to examine, by position.
    sweep: BinaryHeap<Reverse<(Position, u32)>>,
    /// Flows whose state the sweep has changed, with their rates of before.
    previous_rates: Vec<(u32, Option<Rate>)>,
    changes: Vec<Change<Rate>>,
    examined: u64,
}

impl Scheduler {
    /// Returns a scheduler without flows.
    pub fn new(network: Network) -> Self {
        let link = |id| Link::new(network.capacity(id), network.is_access(id));
        Self {
            links: network.links().map(link).collect(),
            network,
            now: Time::ZERO,
            flows: Slab::default(),
            slots: IdMap::default(),
            arrivals: 0,
            ends: KeyedHeap::default(),
            positions: HeapPositions::default(),
            sweep: BinaryHeap::new(),
            previous_rates: Vec::new(),
            changes: Vec::new(),
            examined: 0,
        }
    }

    /// Returns the network with its present capacities.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns true if there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the flows examined so far, for measurements.
    pub fn n_flows_examined(&self) -> u64 {
        self.examined
    }

    /// Returns the rate at which a flow transmits; `None` if it is stopped or not known.
    pub fn rate(&self, id: FlowId) -> Option<Rate> {
        self.slots.get(&id).and_then(|&slot| self.flows[slot].granted())
    }

    /// Returns the remaining bytes of a flow (equation 1); `None` if the flow is not known.
    pub fn remaining(&self, id: FlowId) -> Option<RemainingSize> {
        self.slots.get(&id).map(|&slot| self.flows[slot].position(self.now).remaining)
    }

    /// Returns the flow that is predicted to complete next, and when (equation 3).
    #[inline]
    pub fn next_completion(&self) -> Option<(Time, FlowId)> {
        self.ends.first().map(|(end, slot)| (end, self.flows[slot].id))
    }

    /// Moves the clock. Nothing else changes. An earlier time than before does nothing.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Adds a flow that requests to transmit. Panics if it is known already or does not lead from
    /// one host of the network to another.
    pub fn arrive(&mut self, flow: Arrival) -> &[Change<Rate>] {
        let Arrival { id, src, dst, remaining } = flow;
        let n_hosts = self.network.n_hosts();
        assert!(src != dst && src.get().max(dst.get()) < n_hosts, "{flow:?} among {n_hosts} hosts");
        let path = self.network.path(src, dst);
        let slot = self.flows.insert(Flow {
            id,
            arrival: self.arrivals,
            path,
            rate: self.network.rate(&path),
            state: State::InSweep(RemainingSize::from_bytes(remaining)),
            has_previous_rate: false,
        });
        let before = self.slots.insert(id, slot);
        assert!(before.is_none(), "{flow:?} is known");
        self.arrivals += 1;
        self.queue(slot);
        self.finish()
    }

    /// Removes a flow that has completed or failed. Does nothing for one that is not known.
    pub fn complete(&mut self, id: FlowId) -> &[Change<Rate>] {
        if let Some(slot) = self.slots.remove(&id) {
            self.displace(slot);
            self.flows.remove(slot);
        }
        self.finish()
    }

    /// Sets the remaining bytes of a flow, regardless of the calculation. Does nothing for one that
    /// is not known.
    pub fn correct(&mut self, id: FlowId, remaining: Bytes) -> &[Change<Rate>] {
        if let Some(&slot) = self.slots.get(&id) {
            self.record_previous_rate(slot);
            self.displace(slot);
            self.flows[slot].state = State::InSweep(RemainingSize::from_bytes(remaining));
            self.queue(slot);
        }
        self.finish()
    }

    /// Sets the capacity of a link; `None` if it is down.
    pub fn set_capacity(&mut self, link: LinkId, capacity: Option<Rate>) -> &[Change<Rate>] {
        self.network.set_capacity(link, capacity);
        self.links[link.index()].set_capacity(self.network.capacity(link));
        let rated = self.flows.iter().filter(|(_, flow)| flow.path.links().contains(&link));
        let rated = rated.map(|(slot, flow)| (slot, self.network.rate(&flow.path)));
        let mut rated: Vec<_> =
            rated.filter(|&(slot, rate)| rate != self.flows[slot].rate).collect();
        // Waiters are removed first, so that the capacity that granted flows release is given to
        // waiters that stay.
        rated.sort_by_key(|&(slot, _)| self.flows[slot].granted().is_some());
        for (slot, rate) in rated {
            self.record_previous_rate(slot);
            self.displace(slot);
            self.flows[slot].rate = rate;
            self.queue(slot);
        }
        self.on_capacity_loss(link, Position::FIRST);
        self.on_capacity_gain(link, Position::FIRST);
        self.finish()
    }

    /// Records the state of a flow before the sweep.
    fn record_previous_rate(&mut self, slot: u32) {
        let flow = &mut self.flows[slot];
        if !flow.has_previous_rate {
            flow.has_previous_rate = true;
            self.previous_rates.push((slot, flow.granted()));
        }
    }

    /// Removes a flow, with its present remaining size, from its links. Others get its capacity.
    fn displace(&mut self, slot: u32) {
        let flow = &mut self.flows[slot];
        let position = flow.position(self.now);
        let (state, path, rate) = (flow.state, flow.path, flow.rate);
        flow.state = State::InSweep(position.remaining);
        match state {
            State::Granted(line) => {
                self.ends.remove(&mut self.positions, slot);
                let rate = rate.expect("a granted flow has a rate");
                let user = GrantedFlow { rate, line, arrival: position.arrival, slot };
                for &link in path.links() {
                    self.links[link.index()].remove_granted(user);
                    self.on_capacity_gain(link, position);
                }
            }
            State::Waiting(_, at) => {
                self.links[at.index()].remove_stopped(&StoppedFlow { rate, position, slot });
            }
            State::InSweep(_) => {}
        }
    }

    /// Puts a flow into the heap of the sweep.
    fn queue(&mut self, slot: u32) {
        self.sweep.push(Reverse((self.flows[slot].position(self.now), slot)));
    }

    /// Handles a link with more capacity than before for flows after a position.
    #[inline]
    fn on_capacity_gain(&mut self, link: LinkId, after: Position) {
        let sweep = &mut self.sweep;
        let each = |position, slot| sweep.push(Reverse((position, slot)));
        self.links[link.index()].find_capacity(after, self.now, each);
    }

    /// Handles a link with less capacity than before for flows after a position.
    #[inline]
    fn on_capacity_loss(&mut self, link: LinkId, after: Position) {
        let sweep = &mut self.sweep;
        let each = |position, slot| sweep.push(Reverse((position, slot)));
        self.links[link.index()].find_excess(after, self.now, each);
    }

    /// Sweeps, and collects the changes.
    fn finish(&mut self) -> &[Change<Rate>] {
        let mut last = None;
        while let Some(Reverse((position, slot))) = self.sweep.pop() {
            // Two links may both have named a flow.
            if last != Some(slot) {
                last = Some(slot);
                self.examine(position, slot);
            }
        }
        self.changes.clear();
        let mut grants = 0;
        for (slot, before) in self.previous_rates.drain(..) {
            let flow = &mut self.flows[slot];
            flow.has_previous_rate = false;
            let rate = flow.granted();
            if rate != before {
                self.changes.push(Change { flow: flow.id, grant: rate });
                grants += usize::from(rate.is_some());
            }
        }
        if grants != 0 && grants != self.changes.len() {
            self.changes.sort_by_key(|change| change.grant.is_some());
        }
        &self.changes
    }

    /// Decides on one flow after all flows before it.
    ///
    /// All flows after it are consistent with the present users before them. Exceptions are flows
    /// on a link with another flow in the heap that is not after them.
    fn examine(&mut self, position: Position, slot: u32) {
        self.examined += 1;
        let flow = &self.flows[slot];
        let (state, path, rate) = (flow.state, flow.path, flow.rate);
        let has_room = |link: &LinkId| {
            rate.is_some_and(|rate| self.links[link.index()].has_capacity(position, rate, self.now))
        };
        let refusing = path.links().iter().copied().find(|link| !has_room(link));
        match (state, refusing) {
            (State::Granted(_), None) => {}
            (State::Granted(_), Some(at)) => {
                self.record_previous_rate(slot);
                self.displace(slot);
                self.stop(slot, position, at);
            }
            (State::Waiting(_, before), _) => {
                if refusing != Some(before) {
                    self.record_previous_rate(slot);
                    self.displace(slot);
                    self.place(slot, position, refusing);
                }
                // The room that it was examined for may do for the next.
                self.on_capacity_gain(before, position);
            }
            (State::InSweep(_), _) => {
                self.record_previous_rate(slot);
                self.place(slot, position, refusing);
            }
        }
        if !matches!((state, refusing), (State::Waiting(..) | State::InSweep(_), Some(_))) {
            path.links().iter().for_each(|&link| self.on_capacity_loss(link, position));
        }
    }

    fn place(&mut self, slot: u32, position: Position, refusing: Option<LinkId>) {
        match refusing {
            Some(at) => self.stop(slot, position, at),
            None => self.grant(slot, position),
        }
    }

    fn stop(&mut self, slot: u32, position: Position, at: LinkId) {
        let flow = &mut self.flows[slot];
        flow.state = State::Waiting(position.remaining, at);
        self.links[at.index()].add_stopped(StoppedFlow { rate: flow.rate, position, slot });
    }

    fn grant(&mut self, slot: u32, position: Position) {
        let flow = &mut self.flows[slot];
        let rate = flow.rate.expect("links that are down have no room");
        let line = RemainingLine::new(position.remaining, rate, self.now);
        flow.state = State::Granted(line);
        let user = GrantedFlow { rate, line, arrival: position.arrival, slot };
        flow.path.links().iter().for_each(|&link| self.links[link.index()].add_granted(user));
        self.ends.set(&mut self.positions, slot, line.end(rate));
    }
}
