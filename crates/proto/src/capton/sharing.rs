//! The choice between the paper's scheduler and the one that splits rates.

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{Bytes, Rate, Time};

use super::network::{LinkId, Network};
use super::scheduler::Scheduler;
use super::split::{MinShare, SplitScheduler};
use crate::central::{Arrival, Change, Controller, FlowId, RemainingSize, Schedule};

/// Sharing of links between flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingPolicy {
    /// One flow at a time from each host and to each host, at full rate (figure 6).
    Serial,
    /// A flow takes the capacity that others do not use, unless that is less than this share.
    Split(MinShare),
}

/// Either scheduler. Methods are those of [`Scheduler`].
#[derive(Debug)]
pub enum AnyScheduler {
    /// The paper's.
    Serial(Box<Scheduler>),
    /// The one that splits rates.
    Split(Box<SplitScheduler>),
}

macro_rules! either {
    ($self:ident, $scheduler:ident => $call:expr) => {
        match $self {
            Self::Serial($scheduler) => $call,
            Self::Split($scheduler) => $call,
        }
    };
}

impl AnyScheduler {
    /// Returns a scheduler without flows.
    pub fn new(network: Network, sharing: SharingPolicy) -> Self {
        match sharing {
            SharingPolicy::Serial => Self::Serial(Box::new(Scheduler::new(network))),
            SharingPolicy::Split(least) => {
                Self::Split(Box::new(SplitScheduler::new(network, least)))
            }
        }
    }

    /// Returns the network with its present capacities.
    pub fn network(&self) -> &Network {
        either!(self, scheduler => scheduler.network())
    }

    /// Sets the capacity of a link; `None` if it is down.
    pub fn set_capacity(&mut self, link: LinkId, capacity: Option<Rate>) -> &[Change<Rate>] {
        either!(self, scheduler => scheduler.set_capacity(link, capacity))
    }
}

impl Schedule for AnyScheduler {
    type Grant = Rate;

    fn n_hosts(&self) -> u32 {
        self.network().n_hosts()
    }

    fn grant(&self, id: FlowId) -> Option<Rate> {
        either!(self, scheduler => scheduler.rate(id))
    }

    fn remaining(&self, id: FlowId) -> Option<RemainingSize> {
        either!(self, scheduler => scheduler.remaining(id))
    }

    #[inline]
    fn next_completion(&self) -> Option<(Time, FlowId)> {
        either!(self, scheduler => scheduler.next_completion())
    }

    fn advance(&mut self, now: Time) {
        either!(self, scheduler => scheduler.advance(now));
    }

    fn arrive(&mut self, flow: Arrival) -> &[Change<Rate>] {
        either!(self, scheduler => scheduler.arrive(flow))
    }

    fn complete(&mut self, id: FlowId) -> &[Change<Rate>] {
        either!(self, scheduler => scheduler.complete(id))
    }

    fn correct(&mut self, id: FlowId, remaining: Bytes) -> &[Change<Rate>] {
        either!(self, scheduler => scheduler.correct(id, remaining))
    }

    fn set_links(&mut self, down: &LinksDown) -> Vec<Change<Rate>> {
        let changed = self.network().degraded_capacities(down);
        let mut changes = Vec::new();
        for (link, capacity) in changed {
            changes.extend_from_slice(self.set_capacity(link, capacity));
        }
        changes
    }
}

impl Controller<AnyScheduler> {
    /// Returns the network with its present capacities.
    pub fn network(&self) -> &Network {
        self.scheduler().network()
    }

    /// Sets the capacity of a link; `None` if it is down.
    pub fn set_capacity(&mut self, now: Time, link: LinkId, capacity: Option<Rate>) {
        self.reschedule(now, |scheduler| scheduler.set_capacity(link, capacity));
    }
}
