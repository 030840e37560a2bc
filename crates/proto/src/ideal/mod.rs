//! The ideal: a clairvoyant scheduler over a network whose only limits are the access links, or the
//! links between racks as well.
//!
//! All flows are known at once, everywhere. At every arrival and completion they are gone through
//! by remaining size, shortest first, and each one whose two access links are still free gets both
//! (pFabric §5.1 draws the same line). Inside, the network is one big switch. So no packet ever
//! waits in it, and what a flow waits for is a shorter one at one of its ends. A message then takes
//! the time of its service and of its waiting, and the latency of its path.
//!
//! With a [`Core`] a flow between racks also needs room on the links between them, which count as
//! one link up from a rack and one down to it.
//!
//! It is no transport: nothing here could be run by hosts. It is the reference line in plots.

mod core;

#[cfg(test)]
mod tests;

pub use self::core::{Core, Reach};

use rampmeter_core::{NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{Keys, Preset};
use crate::parts::Padding;

/// The parameters of the ideal. [`IdealConfig::paper`] and [`IdealConfig::reference`] are the
/// presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IdealConfig {
    /// Charged length of last packets.
    pub padding: Padding,
    /// What the network carries between racks.
    pub reach: Reach,
}

impl IdealConfig {
    /// Packets of the `paper` presets of transports.
    pub fn paper() -> Self {
        Self { padding: Padding::Exact, reach: Reach::Wide }
    }

    /// Packets of the `reference` presets of transports.
    pub fn reference() -> Self {
        Self { padding: Padding::Full, reach: Reach::Wide }
    }
}

impl Default for IdealConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for IdealConfig {
    const PRESETS: &'static [Preset<Self>] =
        &[("paper", Self::paper), ("reference", Self::reference)];
}

/// A flow to schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number; of equals the lower is served first.
    pub id: u32,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// How long it keeps both access links busy.
    pub service: Span,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    remaining: Span,
    job: Job,
    is_served: bool,
}

/// Shortest remaining service first over access links, and over a core that is not wide.
#[derive(Debug)]
pub struct IdealScheduler {
    now: Time,
    /// Flows that are not complete, by remaining service and number.
    active: Vec<Active>,
    src_busy: Vec<bool>,
    dst_busy: Vec<bool>,
    core: Option<Core>,
    /// Service given to all flows so far.
    served: Span,
}

impl IdealScheduler {
    /// An idle network of `n_hosts`, with a core that limits flows or one that is wide.
    pub fn new(n_hosts: u32, core: Option<Core>) -> Self {
        let idle = vec![false; n_hosts as usize];
        Self {
            now: Time::ZERO,
            active: Vec::new(),
            src_busy: idle.clone(),
            dst_busy: idle,
            core,
            served: Span::ZERO,
        }
    }

    /// A flow arrives at `now`, which is not past [`IdealScheduler::next_completion`].
    pub fn submit(&mut self, now: Time, job: Job) {
        self.advance(now);
        self.active.push(Active { remaining: job.service, job, is_served: false });
        self.schedule();
    }

    /// When the next flow will have been served; [`Time::NEVER`] without flows.
    pub fn next_completion(&self) -> Time {
        let served = self.active.iter().filter(|a| a.is_served);
        served.map(|a| self.now + a.remaining).min().unwrap_or(Time::NEVER)
    }

    /// Goes on to `now`, which is [`IdealScheduler::next_completion`], and appends the flows that
    /// have then been served to `done`, by number.
    pub fn complete(&mut self, now: Time, done: &mut Vec<u32>) {
        self.advance(now);
        let from = done.len();
        done.extend(self.active.iter().filter(|a| a.remaining == Span::ZERO).map(|a| a.job.id));
        done[from..].sort_unstable();
        self.active.retain(|a| a.remaining > Span::ZERO);
        self.schedule();
    }

    /// Service given to all flows up to `now`.
    pub fn served(&self, now: Time) -> Span {
        let busy = self.active.iter().filter(|a| a.is_served).count() as u64;
        self.served + (now - self.now) * busy
    }

    /// Returns the service that each flow still needs at `now`, by its number. Flows that are
    /// complete are left out.
    pub fn remaining(&self, now: Time) -> impl Iterator<Item = (u32, Span)> {
        let elapsed = now - self.now;
        let left = move |a: &Active| if a.is_served { a.remaining - elapsed } else { a.remaining };
        self.active.iter().map(move |a| (a.job.id, left(a)))
    }

    fn advance(&mut self, now: Time) {
        self.served = self.served(now);
        let elapsed = now - self.now;
        for flow in self.active.iter_mut().filter(|a| a.is_served) {
            flow.remaining = flow.remaining - elapsed;
        }
        self.now = now;
    }

    fn schedule(&mut self) {
        self.active.sort_unstable_by_key(|a| (a.remaining, a.job.id));
        self.src_busy.fill(false);
        self.dst_busy.fill(false);
        if let Some(core) = &mut self.core {
            core.clear();
        }
        for flow in &mut self.active {
            let (src, dst) = (flow.job.src.idx(), flow.job.dst.idx());
            flow.is_served = !self.src_busy[src]
                && !self.dst_busy[dst]
                && self.core.as_mut().is_none_or(|core| core.take(src, dst));
            if flow.is_served {
                (self.src_busy[src], self.dst_busy[dst]) = (true, true);
            }
        }
    }
}
