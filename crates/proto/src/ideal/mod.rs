//! The ideal: a clairvoyant scheduler over a network whose only limits are the access links, or the
//! links between racks as well.
//!
//! All flows are known at once, everywhere. At every arrival and completion they are visited by
//! remaining size, shortest first. Each one gets the capacity of its two access links that those
//! before it do not use. This is at most the rate of its pair (pFabric §5.1 draws the same line).
//! Between hosts of one rate that is all of both links or nothing.
//!
//! Inside, the network is one big switch. So no packet ever waits in it, and a flow waits only for
//! a shorter one at one of its ends. A message then takes the time of its service and of its
//! waiting, and the latency of its path.
//!
//! With a [`CoreCapacity`] a flow between racks also needs capacity on the links between them.
//! These count as one link up from a rack and one down to it.
//!
//! It is no transport: nothing here could be run by hosts. It is the reference line in plots.
//!
//! # Design
//!
//! The problem: each arrival and each completion may change the rates of all flows. Above capacity
//! most flows wait.
//!
//! The simple way sorts all flows by remaining size at each event, and visits each of them. Most of
//! them wait, and get nothing at any of these visits.
//!
//! The present way: flows that are served and flows that wait are two lists. A waiting flow does
//! not shrink, so its place in the order never changes. Only flows that are served are sorted.
//! [`IdealScheduler`] merges both lists, and stops visiting waiting flows when no host can send, or
//! none can receive, any more. Between two events it changes nothing: rates are constant then.
//!
//! Hazards: a pass must give each flow the capacity that earlier flows leave, or the allocation is
//! not maximal (`matchings_of_the_ideal_scheduler_are_maximal`). Service is rounded down and times
//! of completion are rounded up, so a flow is complete at its time of completion. Numbers of flows
//! are the last key of the order: simultaneous flows must have the same results in any order of
//! submission. Capacities of a core are rounded up to multiples of the slowest host's rate, so that
//! flows between hosts of one rate get all or nothing.

mod core_capacity;

#[cfg(test)]
mod tests;

pub use self::core_capacity::{CoreCapacity, CoreModel};

use rampmeter_types::{DuplexRates, NodeId, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::{Keys, Preset};
use crate::toolkit::Padding;

/// The parameters of the ideal. [`IdealConfig::paper`] and [`IdealConfig::reference`] are the
/// presets.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IdealConfig {
    /// Charged length of last packets.
    pub padding: Padding,
    /// Capacity of the network between racks.
    pub core_model: CoreModel,
}

impl IdealConfig {
    /// Returns the packets of the `paper` presets of transports.
    pub fn paper() -> Self {
        Self { padding: Padding::Exact, core_model: CoreModel::Wide }
    }

    /// Returns the packets of the `reference` presets of transports.
    pub fn reference() -> Self {
        Self { padding: Padding::Full, core_model: CoreModel::Wide }
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
    /// Number of the flow. Of equal flows that are submitted at once between the same hosts the
    /// lower is served first.
    pub id: u32,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// The number of the links by which the sender sends, and of those by which the receiver
    /// receives.
    pub links: [u32; 2],
    /// The numbers of the parts of these links by which the sender reaches the receiver and by
    /// which the receiver is reached. `None` if they are all of the links.
    pub parts: [Option<u32>; 2],
    /// The rate of the pair.
    pub rate: Rate,
    /// Time that it takes at this rate.
    pub service: Span,
}

/// A flow that is not complete.
#[derive(Clone, Copy, Debug)]
struct ActiveFlow {
    /// The service that it needs.
    remaining: Span,
    submitted: Time,
    job: Job,
    /// The rate at which it is served, in bits per second.
    granted: u64,
}

impl ActiveFlow {
    /// Returns the service of `elapsed`, rounded down.
    fn service_in(&self, elapsed: Span) -> Span {
        if self.granted == self.job.rate.as_bps() {
            return elapsed;
        }
        let ps = u128::from(elapsed.as_ps()) * u128::from(self.granted);
        Span::from_ps((ps / u128::from(self.job.rate.as_bps())) as u64)
    }

    /// Returns the place of the flow among others. Numbers are last: they are in the order of
    /// submission, which simultaneous flows do not have.
    fn sort_key(&self) -> (u128, Time, NodeId, NodeId, u32) {
        (self.remaining_size(), self.submitted, self.job.src, self.job.dst, self.job.id)
    }

    /// Returns its remaining size, in bits times picoseconds per second.
    fn remaining_size(&self) -> u128 {
        u128::from(self.remaining.as_ps()) * u128::from(self.job.rate.as_bps())
    }

    /// Returns the time until its service is complete, rounded up; `None` if it is not served.
    fn remaining_time(&self) -> Option<Span> {
        let ps = u128::from(self.remaining.as_ps()) * u128::from(self.job.rate.as_bps());
        let ps = ps.checked_add(u128::from(self.granted).checked_sub(1)?)?;
        Some(Span::from_ps(u64::try_from(ps / u128::from(self.granted)).unwrap_or(u64::MAX)))
    }
}

/// Place of the rate at which a host sends, and of that at which it receives.
const TX: usize = 0;
const RX: usize = 1;

/// The capacity of links, and the rest that the flows visited so far leave.
#[derive(Debug)]
struct Capacity {
    /// The rates at which hosts send and receive by their links, in bits per second, and the unused
    /// part of them. Links by which a host reaches the same peers are one.
    links: Vec<[u64; 2]>,
    free: Vec<[u64; 2]>,
    /// The same of parts of links, by which hosts reach some of these peers.
    parts: Vec<[u64; 2]>,
    free_parts: Vec<[u64; 2]>,
    core: Option<CoreCapacity>,
    /// Number of links with an unused part, by direction.
    usable: [usize; 2],
}

impl Capacity {
    fn new(links: Vec<[u64; 2]>, parts: Vec<[u64; 2]>, core: Option<CoreCapacity>) -> Self {
        let (free, free_parts) = (links.clone(), parts.clone());
        Self { links, free, parts, free_parts, core, usable: [0; 2] }
    }

    fn clear(&mut self) {
        self.free.clone_from(&self.links);
        self.free_parts.clone_from(&self.parts);
        self.usable = [TX, RX].map(|way| self.free.iter().filter(|f| f[way] > 0).count());
        if let Some(core) = &mut self.core {
            core.clear();
        }
    }

    /// Takes the rate of a flow and returns it, in bits per second.
    fn allocate(&mut self, job: &Job) -> u64 {
        let [from, to] = job.links.map(|links| links as usize);
        let mut most = job.rate.as_bps().min(self.free[from][TX]).min(self.free[to][RX]);
        for (part, way) in job.parts.into_iter().zip([TX, RX]) {
            most = part.map_or(most, |part| most.min(self.free_parts[part as usize][way]));
        }
        if most == 0 {
            return 0;
        }
        let (src, dst) = (job.src.idx(), job.dst.idx());
        let granted = self.core.as_mut().map_or(most, |core| core.take(src, dst, most));
        for (link, way) in [(from, TX), (to, RX)] {
            self.free[link][way] -= granted;
            self.usable[way] -= usize::from(granted > 0 && self.free[link][way] == 0);
        }
        for (part, way) in job.parts.into_iter().zip([TX, RX]) {
            if let Some(part) = part {
                self.free_parts[part as usize][way] -= granted;
            }
        }
        granted
    }

    fn is_exhausted(&self) -> bool {
        self.usable.contains(&0)
    }
}

/// Shortest remaining size first over access links, and over a core that is not wide.
#[derive(Debug)]
pub struct IdealScheduler {
    now: Time,
    /// Flows that are served.
    running: Vec<ActiveFlow>,
    /// Flows that are not, in the order of [`Active::sort_key`], which does not change.
    waiting: Vec<ActiveFlow>,
    capacity: Capacity,
}

impl IdealScheduler {
    /// Returns an idle network of hosts whose links, and parts of links, have these send and
    /// receive rates. `core` is `None` if it does not limit flows.
    pub fn new(
        links: impl IntoIterator<Item = DuplexRates>,
        parts: impl IntoIterator<Item = DuplexRates>,
        core: Option<CoreCapacity>,
    ) -> Self {
        let bps = |rates: DuplexRates| [rates.tx.as_bps(), rates.rx.as_bps()];
        Self {
            now: Time::ZERO,
            running: Vec::new(),
            waiting: Vec::new(),
            capacity: Capacity::new(
                links.into_iter().map(bps).collect(),
                parts.into_iter().map(bps).collect(),
                core,
            ),
        }
    }

    /// A flow arrives at `now`, which is not past [`IdealScheduler::next_completion`].
    pub fn submit(&mut self, now: Time, job: Job) {
        self.advance(now);
        self.running.push(ActiveFlow { remaining: job.service, submitted: now, job, granted: 0 });
        self.schedule();
    }

    /// Returns the time at which the next flow will have been served; [`Time::NEVER`] without
    /// flows.
    pub fn next_completion(&self) -> Time {
        let left = self.running.iter().filter_map(ActiveFlow::remaining_time).min();
        left.map_or(Time::NEVER, |left| self.now.saturating_add(left))
    }

    /// Advances to `now`, which is [`IdealScheduler::next_completion`], and appends the flows that
    /// have then been served to `done`, by number.
    pub fn complete(&mut self, now: Time, done: &mut Vec<u32>) {
        self.advance(now);
        let from = done.len();
        done.extend(self.running.iter().filter(|a| a.remaining == Span::ZERO).map(|a| a.job.id));
        done[from..].sort_unstable();
        self.running.retain(|a| a.remaining > Span::ZERO);
        self.schedule();
    }

    /// Returns the service that each flow still needs at `now`, by its number. Flows that are
    /// complete are left out.
    pub fn remaining(&self, now: Time) -> impl Iterator<Item = (u32, Span)> {
        let elapsed = now - self.now;
        let left =
            move |a: &ActiveFlow| (a.job.id, a.remaining.saturating_sub(a.service_in(elapsed)));
        self.running.iter().chain(&self.waiting).map(left)
    }

    fn advance(&mut self, now: Time) {
        let elapsed = now - self.now;
        for flow in &mut self.running {
            flow.remaining = flow.remaining.saturating_sub(flow.service_in(elapsed));
        }
        self.now = now;
    }

    /// Visits all flows in order and serves those that get capacity. Above capacity most wait, and
    /// few of these are touched.
    fn schedule(&mut self) {
        let Self { running, waiting, capacity, .. } = self;
        running.sort_unstable_by_key(ActiveFlow::sort_key);
        capacity.clear();
        let (mut visited, mut n_started) = (0, 0);
        for flow in running.iter_mut() {
            let until =
                visited + waiting[visited..].partition_point(|w| w.sort_key() < flow.sort_key());
            n_started += allocate_waiting(&mut waiting[visited..until], capacity);
            visited = until;
            flow.granted = capacity.allocate(&flow.job);
        }
        n_started += allocate_waiting(&mut waiting[visited..], capacity);
        if n_started > 0 {
            running.extend(waiting.extract_if(.., |flow| flow.granted > 0));
        }
        for flow in running.extract_if(.., |flow| flow.granted == 0) {
            let place = waiting.partition_point(|w| w.sort_key() < flow.sort_key());
            waiting.insert(place, flow);
        }
    }
}

/// Gives capacity to flows that wait, in order, and returns the number of those that get some.
fn allocate_waiting(flows: &mut [ActiveFlow], capacity: &mut Capacity) -> usize {
    let mut n_started = 0;
    for flow in flows {
        if capacity.is_exhausted() {
            break;
        }
        flow.granted = capacity.allocate(&flow.job);
        n_started += usize::from(flow.granted > 0);
    }
    n_started
}
