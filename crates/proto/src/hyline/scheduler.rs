//! Choice of the flows that transmit, and of their paths.
//!
//! The problem: long flows that share a link slow each other down, and hashing puts several on one
//! link while others are idle.
//!
//! The simple way divides links among all flows, or takes flows by age. Short remainders then wait
//! behind long flows, and paths are not used evenly.
//!
//! The present way: after each change all flows are visited in the order of their remaining sizes;
//! flows with equal sizes in the order of their arrival. A flow transmits if no flow before it uses
//! its access links, and if a path has capacity next to the flows before it. That takes O(F log F)
//! for F flows, times the paths between two hosts.
//!
//! Of several paths, the authors' ns-2 code chooses that on which the fewest flows have to stop.
//! Ties are resolved to the one on which they have most remaining bytes, then to the one with the
//! least spare capacity. This scheduler does the same: a flow that transmits keeps its path if it
//! can. Another takes the path with the fewest links on which transmitting flows no longer fit next
//! to it. Of these it takes the one whose last flow has most remaining bytes, then the one whose
//! fullest link carries most, then the first.
//!
//! Hazards: no link carries more than its capacity, and a flow waits only for flows with less left
//! (`no_link_carries_too_much_and_flows_wait_only_for_flows_with_less_left`). A flow that changes
//! its path reorders packets in flight, so it keeps its path if others permit it. A flow's window
//! may make it slower than its grant, but it occupies its links at the whole rate
//! (`a_window_delays_completions_and_nothing_else`). Every change visits all flows, unlike CAPTON's
//! incremental scheduler.

use std::cmp::Reverse;

use rampmeter_types::collections::{IdMap, Slab};
use rampmeter_types::{Bytes, NodeId, Rate, Time};

use super::path_grant::PathGrant;
use super::paths::{Links, Paths};
use crate::central::remaining::{RemainingLine, RemainingSize};
use crate::central::{Arrival, Change, FlowId, Schedule};

#[derive(Clone, Copy, Debug)]
struct Flow {
    id: FlowId,
    arrival: u64,
    src: NodeId,
    dst: NodeId,
    /// Remaining bytes now.
    remaining: RemainingSize,
    grant: Option<PathGrant>,
}

/// The rates of flows on one link together, in bits per second.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Rate of flows that are to transmit.
    decided: u64,
    /// Rate of flows that transmit and have not been examined yet.
    undecided: u64,
    /// The place in the order of the last flow that transmits.
    last: usize,
}

/// The scheduler.
#[derive(Debug)]
pub struct PathScheduler {
    paths: Paths,
    /// The rate that a flow's window allows, by its source.
    paces: Vec<Rate>,
    now: Time,
    flows: Slab<Flow>,
    slots: IdMap<FlowId, u32>,
    arrivals: u64,
    /// Loads by link.
    loads: Vec<Load>,
    /// All flows: remaining size, number of arrival, slot.
    order: Vec<(RemainingSize, u64, u32)>,
    next: Option<(Time, FlowId)>,
    changes: Vec<Change<PathGrant>>,
}

impl PathScheduler {
    /// Returns a scheduler without flows. A flow from host `h` sends at the rate `paces[h]` at
    /// most, which its window allows. It occupies links at its whole rate all the same.
    pub fn new(paths: Paths, paces: Vec<Rate>) -> Self {
        Self {
            loads: vec![Load::default(); paths.n_links()],
            paths,
            paces,
            now: Time::ZERO,
            flows: Slab::default(),
            slots: IdMap::default(),
            arrivals: 0,
            order: Vec::new(),
            next: None,
            changes: Vec::new(),
        }
    }

    /// Returns the network.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Decides about all flows.
    fn reschedule(&mut self) -> &[Change<PathGrant>] {
        self.loads.fill(Load::default());
        self.order.clear();
        let all = self.flows.iter();
        self.order.extend(all.map(|(slot, flow)| (flow.remaining, flow.arrival, slot)));
        self.order.sort_unstable();
        for (at, &(.., slot)) in self.order.iter().enumerate() {
            let Flow { src, dst, grant, .. } = self.flows[slot];
            if let Some(PathGrant { rate, path }) = grant {
                for &link in self.paths.links(src, dst, path).all() {
                    let load = &mut self.loads[link as usize];
                    (load.undecided, load.last) = (load.undecided + rate.as_bps(), at);
                }
            }
        }
        self.changes.clear();
        self.next = None;
        for at in 0..self.order.len() {
            let slot = self.order[at].2;
            let Flow { id, src, dst, remaining, grant: before, .. } = self.flows[slot];
            if let Some(PathGrant { rate, path }) = before {
                let links = self.paths.links(src, dst, path);
                links.all().iter().for_each(|&l| self.loads[l as usize].undecided -= rate.as_bps());
            }
            let grant = self.decide(src, dst, before.and_then(|grant| grant.path));
            if grant != before {
                self.flows[slot].grant = grant;
                self.changes.push(Change { flow: id, grant });
            }
            if let Some(PathGrant { rate, path }) = grant {
                let links = self.paths.links(src, dst, path);
                links.all().iter().for_each(|&l| self.loads[l as usize].decided += rate.as_bps());
                let speed = rate.min(self.paces[src.idx()]);
                let end = RemainingLine::new(remaining, speed, self.now).end(speed);
                if self.next.is_none_or(|(next, _)| end < next) {
                    self.next = Some((end, id));
                }
            }
        }
        self.changes.sort_by_key(|change| change.grant.is_some());
        &self.changes
    }

    /// Returns the grant of a flow next to those already decided; `own` is its present path.
    fn decide(&self, src: NodeId, dst: NodeId, own: Option<u16>) -> Option<PathGrant> {
        let access = self.paths.links(src, dst, None);
        if access.access().iter().any(|&link| self.loads[link as usize].decided != 0) {
            return None;
        }
        let count = self.paths.count(src, dst);
        if count == 0 {
            return Some(PathGrant { rate: self.paths.rate(&access), path: None });
        }
        let best = |path: u16| {
            let links = self.paths.links(src, dst, Some(path));
            let rate = self.paths.rate(&links);
            let key = (own != Some(path), self.disturbance(&links, rate)?, path);
            Some((key, PathGrant { rate, path: Some(path) }))
        };
        (0..count).filter_map(best).min_by_key(|&(key, _)| key).map(|(_, grant)| grant)
    }

    /// Returns the disturbance of others by a flow of `rate` on the core links of a path, as a
    /// rank. Returns `None` if the decided flows use the capacity that it needs.
    fn disturbance(
        &self,
        links: &Links,
        rate: Rate,
    ) -> Option<(usize, Reverse<usize>, Reverse<u64>)> {
        let (mut crowded, mut last, mut fullest) = (0, usize::MAX, 0);
        for &link in links.core() {
            let capacity = self.paths.capacity(link).as_bps();
            let load = self.loads[link as usize];
            if load.decided + rate.as_bps() > capacity {
                return None;
            }
            let all = load.decided + load.undecided;
            if all + rate.as_bps() > capacity {
                (crowded, last) = (crowded + 1, last.min(load.last));
            }
            fullest = fullest.max(all);
        }
        Some((crowded, Reverse(last), Reverse(fullest)))
    }
}

impl Schedule for PathScheduler {
    type Grant = PathGrant;

    fn n_hosts(&self) -> u32 {
        self.paths.n_hosts()
    }

    fn grant(&self, id: FlowId) -> Option<PathGrant> {
        self.slots.get(&id).and_then(|&slot| self.flows[slot].grant)
    }

    fn remaining(&self, id: FlowId) -> Option<RemainingSize> {
        self.slots.get(&id).map(|&slot| self.flows[slot].remaining)
    }

    #[inline]
    fn next_completion(&self) -> Option<(Time, FlowId)> {
        self.next
    }

    fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        for flow in self.flows.values_mut() {
            if let Some(PathGrant { rate, .. }) = flow.grant {
                let speed = rate.min(self.paces[flow.src.idx()]);
                flow.remaining =
                    RemainingLine::new(flow.remaining, speed, self.now).remaining(speed, now);
            }
        }
        self.now = now;
    }

    /// Panics if the flow is known already or does not lead from one host of the network to
    /// another.
    fn arrive(&mut self, flow: Arrival) -> &[Change<PathGrant>] {
        let Arrival { id, src, dst, remaining } = flow;
        let n_hosts = self.n_hosts();
        assert!(src != dst && src.get().max(dst.get()) < n_hosts, "{flow:?} among {n_hosts} hosts");
        let (arrival, remaining) = (self.arrivals, RemainingSize::from_bytes(remaining));
        let slot = self.flows.insert(Flow { id, arrival, src, dst, remaining, grant: None });
        let before = self.slots.insert(id, slot);
        assert!(before.is_none(), "{flow:?} is known");
        self.arrivals += 1;
        self.reschedule()
    }

    fn complete(&mut self, id: FlowId) -> &[Change<PathGrant>] {
        let Some(slot) = self.slots.remove(&id) else { return &[] };
        self.flows.remove(slot);
        self.reschedule()
    }

    fn correct(&mut self, id: FlowId, remaining: Bytes) -> &[Change<PathGrant>] {
        let Some(&slot) = self.slots.get(&id) else { return &[] };
        self.flows[slot].remaining = RemainingSize::from_bytes(remaining);
        self.reschedule()
    }
}
