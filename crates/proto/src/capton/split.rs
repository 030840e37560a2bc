//! A scheduler that splits rates: a variant of figure 6 that the paper does not have.
//!
//! Figure 6 does not use all capacity. An access link faster than the one at the other end carries
//! one flow all the same. The rest of a core link is of no use if it is less than a flow's full
//! rate. Here a host may have several flows. On all of its links, a flow takes the capacity that
//! flows before it do not use, unless that is less than a least share.
//!
//! [`schedule_split`] is the specification, in the manner of figure 6. With a least share of the
//! whole, equal access links and core links that are no slower it is figure 6.
//!
//! Unlike figure 6's, the outcome may change with time alone. Of two flows that share a link the
//! later one may be the faster, if another link limits the first. Once its remaining size is
//! smaller it would be the first. As in the paper the outcome is renewed at requests and
//! completions only.
//!
//! [`SplitScheduler`] redoes the whole pass, O(F log F), at each change.

use std::collections::BTreeMap;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{Bytes, Rate, Time};

use super::figure6::PendingFlow;
use super::network::{LinkId, Network};
use crate::central::remaining::{RemainingLine, RemainingSize};
use crate::central::{Arrival, Change, FlowId};

/// The least share of a flow, in thousandths of the rate that it has alone: 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinShare(u64);

impl MinShare {
    /// Returns a share in thousandths; `None` unless there are 1 to 1000.
    pub fn from_milli(milli: u32) -> Option<Self> {
        (1..=1_000).contains(&milli).then_some(Self(milli.into()))
    }

    /// Returns the least rate of a flow that alone has `rate`, rounded up to a bit per second.
    fn min_rate(self, rate: Rate) -> u64 {
        let least = (u128::from(rate.as_bps()) * u128::from(self.0)).div_ceil(1_000);
        u64::try_from(least).expect("a share is not more than the whole")
    }
}

/// Schedules `flows`, which are in the order of their arrival. The answer has, in the same order,
/// the rate of each flow that is to transmit, and `None` for each that is to stop.
pub fn schedule_split(
    network: &Network,
    flows: &[PendingFlow],
    least: MinShare,
) -> Vec<Option<Rate>> {
    let mut granted = vec![None; flows.len()];
    let free = |link| network.capacity(link).map_or(0, Rate::as_bps);
    let mut free: Vec<u64> = network.links().map(free).collect();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&f| flows[f].remaining);
    for f in order {
        let path = network.path(flows[f].src, flows[f].dst);
        let Some(whole) = network.rate(&path) else { continue };
        let free_on = |link: &LinkId| free[link.index()];
        let room = path.links().iter().map(free_on).fold(whole.as_bps(), u64::min);
        if room >= least.min_rate(whole) {
            granted[f] = Rate::from_bps(room);
            path.links().iter().for_each(|link| free[link.index()] -= room);
        }
    }
    granted
}

#[derive(Debug)]
struct Flow {
    id: FlowId,
    pending: PendingFlow,
    rate: Option<Rate>,
}

/// [`schedule_split`] at each change. The methods are those of [`Scheduler`](super::Scheduler), and
/// answer as those do.
#[derive(Debug)]
pub struct SplitScheduler {
    network: Network,
    min_share: MinShare,
    now: Time,
    /// Flows by number of arrival.
    flows: BTreeMap<u64, Flow>,
    arrivals: u64,
    numbers: IdMap<FlowId, u64>,
    next: Option<(Time, FlowId)>,
    changes: Vec<Change<Rate>>,
}

impl SplitScheduler {
    /// Returns a scheduler without flows.
    pub fn new(network: Network, min_share: MinShare) -> Self {
        Self {
            network,
            min_share,
            now: Time::ZERO,
            flows: BTreeMap::new(),
            arrivals: 0,
            numbers: IdMap::default(),
            next: None,
            changes: Vec::new(),
        }
    }

    /// Returns the network with its present capacities.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the rate at which a flow transmits; `None` if it is stopped or not known.
    pub fn rate(&self, id: FlowId) -> Option<Rate> {
        self.numbers.get(&id).and_then(|number| self.flows[number].rate)
    }

    /// Returns the remaining bytes of a flow (equation 1); `None` if the flow is not known.
    pub fn remaining(&self, id: FlowId) -> Option<RemainingSize> {
        self.numbers.get(&id).map(|number| self.flows[number].pending.remaining)
    }

    /// Returns the flow that is predicted to complete next, and when (equation 3).
    pub fn next_completion(&self) -> Option<(Time, FlowId)> {
        self.next
    }

    /// Moves the clock, and subtracts sent bytes from the remaining sizes. Nothing else changes. An
    /// earlier time than before does nothing.
    pub fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        for flow in self.flows.values_mut() {
            if let Some(rate) = flow.rate {
                flow.pending.remaining =
                    RemainingLine::new(flow.pending.remaining, rate, self.now).remaining(rate, now);
            }
        }
        self.now = now;
    }

    /// Adds a flow that requests to transmit. Panics if it is known already or does not lead from
    /// one host of the network to another.
    pub fn arrive(&mut self, flow: Arrival) -> &[Change<Rate>] {
        let Arrival { id, src, dst, remaining } = flow;
        let n_hosts = self.network.n_hosts();
        assert!(src != dst && src.get().max(dst.get()) < n_hosts, "{flow:?} among {n_hosts} hosts");
        let pending = PendingFlow { src, dst, remaining: RemainingSize::from_bytes(remaining) };
        self.flows.insert(self.arrivals, Flow { id, pending, rate: None });
        let before = self.numbers.insert(id, self.arrivals);
        assert!(before.is_none(), "{flow:?} is known");
        self.arrivals += 1;
        self.reschedule()
    }

    /// Removes a flow that has completed or failed. Does nothing for one that is not known.
    pub fn complete(&mut self, id: FlowId) -> &[Change<Rate>] {
        let Some(number) = self.numbers.remove(&id) else { return &[] };
        self.flows.remove(&number);
        self.reschedule()
    }

    /// Sets the remaining bytes of a flow, regardless of the calculation. Does nothing for one that
    /// is not known.
    pub fn correct(&mut self, id: FlowId, remaining: Bytes) -> &[Change<Rate>] {
        let Some(flow) = self.numbers.get(&id).and_then(|number| self.flows.get_mut(number)) else {
            return &[];
        };
        flow.pending.remaining = RemainingSize::from_bytes(remaining);
        self.reschedule()
    }

    /// Sets the capacity of a link; `None` if it is down.
    pub fn set_capacity(&mut self, link: LinkId, capacity: Option<Rate>) -> &[Change<Rate>] {
        self.network.set_capacity(link, capacity);
        self.reschedule()
    }

    fn reschedule(&mut self) -> &[Change<Rate>] {
        let pending: Vec<PendingFlow> = self.flows.values().map(|flow| flow.pending).collect();
        let rates = schedule_split(&self.network, &pending, self.min_share);
        self.changes.clear();
        self.next = None;
        for (flow, rate) in self.flows.values_mut().zip(rates) {
            if flow.rate != rate {
                flow.rate = rate;
                self.changes.push(Change { flow: flow.id, grant: rate });
            }
            if let Some(rate) = rate {
                let end = RemainingLine::new(flow.pending.remaining, rate, self.now).end(rate);
                if self.next.is_none_or(|(next, _)| end < next) {
                    self.next = Some((end, flow.id));
                }
            }
        }
        self.changes.sort_by_key(|change| change.grant.is_some());
        &self.changes
    }
}
