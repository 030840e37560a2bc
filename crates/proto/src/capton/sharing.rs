//! The choice between the paper's scheduler and the one that splits rates.

use rampmeter_core::{Bytes, Rate, Time};

use super::left::Left;
use super::network::{LinkId, Network};
use super::scheduler::{Arrival, Change, FlowId, Scheduler};
use super::split::{LeastShare, SplitScheduler};

/// How flows share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One flow at a time from each host and to each host, at full rate (figure 6).
    Serial,
    /// A flow takes what others have left, unless that is less than this share.
    Split(LeastShare),
}

/// Either scheduler. Methods are those of [`Scheduler`].
#[derive(Debug)]
pub(super) enum AnyScheduler {
    Serial(Box<Scheduler>),
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
    pub(super) fn new(network: Network, sharing: Sharing) -> Self {
        match sharing {
            Sharing::Serial => Self::Serial(Box::new(Scheduler::new(network))),
            Sharing::Split(least) => Self::Split(Box::new(SplitScheduler::new(network, least))),
        }
    }

    pub(super) fn network(&self) -> &Network {
        either!(self, scheduler => scheduler.network())
    }

    pub(super) fn rate(&self, id: FlowId) -> Option<Rate> {
        either!(self, scheduler => scheduler.rate(id))
    }

    pub(super) fn left(&self, id: FlowId) -> Option<Left> {
        either!(self, scheduler => scheduler.left(id))
    }

    #[inline]
    pub(super) fn next_completion(&self) -> Option<(Time, FlowId)> {
        either!(self, scheduler => scheduler.next_completion())
    }

    pub(super) fn advance(&mut self, now: Time) {
        either!(self, scheduler => scheduler.advance(now));
    }

    pub(super) fn arrive(&mut self, flow: Arrival) -> &[Change] {
        either!(self, scheduler => scheduler.arrive(flow))
    }

    pub(super) fn complete(&mut self, id: FlowId) -> &[Change] {
        either!(self, scheduler => scheduler.complete(id))
    }

    pub(super) fn correct(&mut self, id: FlowId, left: Bytes) -> &[Change] {
        either!(self, scheduler => scheduler.correct(id, left))
    }

    pub(super) fn set_capacity(&mut self, link: LinkId, capacity: Option<Rate>) -> &[Change] {
        either!(self, scheduler => scheduler.set_capacity(link, capacity))
    }
}
