//! Detection of failures by an arbiter (§4): unresponsive hosts and core switches, and links
//! between racks and aggregation switches that lose scheduled cells.
//!
//! Hosts report the slots in which they sent, and those in which scheduled packets arrived. A
//! packet that was sent and did not arrive was lost on one of two links. Cells of a schedule are
//! lost nowhere else, so a loss is evidence, and an unused slot of a sender is none. Both links are
//! charged with the loss, and both are cleared by a packet that arrives.
//!
//! A link is convicted after [`LOSSES`] losses without a success in between that have no other
//! explanation. If they have one, that other link and this one are both convicted after
//! [`LOSSES_ALONE`]. Convicted links carry only probes. The first probe is sent at once, and its
//! report returns by other links. The first probe that arrives clears them.

use std::collections::{BTreeMap, VecDeque};

use super::observations::BriefReport;
use super::paths::{Link, PairLinks, Paths};
use crate::fastpod::config::Fastpod;
use crate::fastpod::routes::aggs;
use crate::fastpod::slot_grant::SlotGrant;
use crate::fastpod::wire::REPORT_SLOTS;
use crate::toolkit::counters;

/// Losses without a success between them that convict a link: by several others, or by one that
/// has had successes.
const CONVICTION_LOSSES: u32 = 3;
/// Losses that convict a link and the only one that they were shared with, if neither has had a
/// success.
const LOSSES_ALONE: u32 = 6;
/// Slots from one probe of a convicted link to the next.
pub(crate) const PROBE_SLOTS: u64 = 256;
/// Beacons that a host may miss.
const BEACONS: u64 = 3;
/// Interval, in slots, at which unresponsive hosts may be sent to, so that messages to one that has
/// failed permanently fail at their senders.
const RETRY_SLOTS: u64 = 64;

counters! {
    /// Counters of an arbiter's failure detection.
    pub(crate) struct FailureStats {
        pub(crate) hosts_unresponsive: u64,
        pub(crate) cores_unresponsive: u64,
        pub(crate) links_failed: u64,
        pub(crate) links_restored: u64,
        pub(crate) probes: u64,
    }
}

/// Report of a host about `covered` slots up to `slot`, which is bit 0.
#[derive(Clone, Copy, Debug)]
struct Report {
    slot: u64,
    covered: u64,
    sent: u64,
    received: u64,
}

/// Health of a link.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    /// Losses since the last success.
    lost: u32,
    /// The racks of the links that they were shared with, as far as these are not convicted.
    others: u64,
    is_convicted: bool,
}

/// The failures of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    pub(crate) paths: Paths,
    pub(crate) stats: FailureStats,
    n_racks: u16,
    n_aggs: usize,
    /// Slots after which an unresponsive end counts as failed, and after which the events of a slot
    /// have been reported.
    failed_after_slots: u64,
    verdict: u64,
    beacon: u64,
    n_hosts: usize,
    first_host: u16,
    /// State of each end: its switch, the time of its last packet, and whether that is too long
    /// ago.
    leaf_of_end: Vec<u16>,
    last_rts_slot: Vec<u64>,
    is_failed: Vec<bool>,
    n_failed: u32,
    next_check: u64,
    /// Scheduled pairs of slots of which not all reports have arrived.
    trials: VecDeque<(u64, Vec<SlotGrant>)>,
    reports: Vec<VecDeque<Report>>,
    links: Vec<Health>,
    /// Convicted links, and when they are probed next.
    convicted: BTreeMap<Link, u64>,
}

impl Failures {
    /// Returns the state of a pod without failures up to slot `from`.
    pub(crate) fn new(fastpod: &Fastpod, pod: u16, from: u64) -> Self {
        let timing = fastpod.timing(pod);
        let n_hosts = timing.n_hosts() as usize;
        let n_ends = n_hosts + usize::from(fastpod.n_cores());
        let n_aggs = aggs(fastpod);
        let beacon = u64::from(fastpod.config.beacon_slots);
        let answer = fastpod.answer_time.div_floor(fastpod.slot) + 1;
        Self {
            paths: Paths::new(timing.n_racks(), n_aggs),
            stats: FailureStats::default(),
            n_racks: timing.n_racks() as u16,
            n_aggs,
            failed_after_slots: beacon * BEACONS + answer,
            verdict: timing.settled + fastpod.report_slots + answer,
            beacon,
            n_hosts,
            first_host: fastpod.hosts_of(pod).start as u16,
            leaf_of_end: (0..n_ends as u16).map(|end| timing.leaf(end)).collect(),
            last_rts_slot: vec![from; n_ends],
            is_failed: vec![false; n_ends],
            n_failed: 0,
            next_check: from,
            trials: VecDeque::new(),
            reports: vec![VecDeque::new(); n_hosts],
            links: vec![Health::default(); 2 * timing.n_racks() * n_aggs],
            convicted: BTreeMap::new(),
        }
    }

    /// Returns true if an end has been unresponsive for long.
    #[inline]
    pub(crate) fn is_unresponsive(&self, end: u16) -> bool {
        self.is_failed[usize::from(end)]
    }

    /// Returns true if all ends respond and all links work.
    #[inline]
    pub(crate) fn has_no_failures(&self) -> bool {
        self.n_failed == 0 && self.convicted.is_empty()
    }

    /// Returns true if there are links to probe.
    #[inline]
    pub(crate) fn has_convicted(&self) -> bool {
        !self.convicted.is_empty()
    }

    /// Returns true if a pair may be given a slot, as far as its ends respond.
    #[inline]
    pub(crate) fn may_schedule(&self, slot: u64, src: u16, dst: u16) -> bool {
        !self.is_unresponsive(src)
            && (!self.is_unresponsive(dst) || slot.is_multiple_of(RETRY_SLOTS))
    }

    /// Returns the links of a pair of ends. A core switch is joined to one aggregation switch.
    pub(crate) fn route_of(&self, src: u16, dst: u16, agg: Option<u8>) -> PairLinks {
        let (from, to) = (self.leaf_of_end[usize::from(src)], self.leaf_of_end[usize::from(dst)]);
        let rack = |leaf: u16| (leaf < self.n_racks).then_some(leaf);
        let above = |leaf: u16| leaf.checked_sub(self.n_racks).map(|agg| agg as u8);
        PairLinks { up: rack(from), down: rack(to), agg: agg.or(above(from)).or(above(to)) }
    }

    /// Handles an RTS that has arrived by the time at which a slot is decided.
    pub(crate) fn on_rts(&mut self, slot: u64, end: u16) {
        let end = usize::from(end);
        self.last_rts_slot[end] = self.last_rts_slot[end].max(slot);
        self.n_failed -= u32::from(std::mem::take(&mut self.is_failed[end]));
    }

    /// Takes a host's report of the slots up to the latest in which it has sent, and something has
    /// arrived.
    pub(crate) fn on_report(&mut self, now: u64, host: u16, latest: u32, sent: u64, received: u64) {
        let age = u64::from((now as u32).wrapping_sub(latest));
        if let Some(slot) = now.checked_sub(age) {
            self.record_report(now, host, Report { slot, covered: REPORT_SLOTS, sent, received });
        }
    }

    /// Takes a host's report of one slot.
    pub(crate) fn on_brief(&mut self, now: u64, host: u16, brief: BriefReport) {
        let BriefReport { slot, has_sent, has_received } = brief;
        let (sent, received) = (has_sent.into(), has_received.into());
        self.record_report(now, host, Report { slot, covered: 1, sent, received });
    }

    fn record_report(&mut self, now: u64, host: u16, report: Report) {
        let reports = &mut self.reports[usize::from(host)];
        // Slots of hosts that are idle are not requested.
        let oldest = now.saturating_sub(self.verdict + self.beacon);
        while reports.front().is_some_and(|report| report.slot < oldest) {
            reports.pop_front();
        }
        if reports.back().is_none_or(|last| last.slot < report.slot) {
            reports.push_back(report);
        }
    }

    /// Handles the start of a slot in which these pairs are scheduled.
    pub(crate) fn on_slot(&mut self, slot: u64, pairs: Vec<SlotGrant>) {
        self.trials.push_back((slot, pairs));
    }

    /// Evaluates the reports that have arrived by the time at which a slot is decided.
    pub(crate) fn evaluate_reports(&mut self, slot: u64) {
        while self.trials.front().is_some_and(|&(of, _)| of + self.verdict <= slot)
            && let Some((of, pairs)) = self.trials.pop_front()
        {
            for pair in pairs {
                let was = |report: Option<Report>, is_sent: bool| {
                    let bits = |r: Report| if is_sent { r.sent } else { r.received };
                    report.map(|r| bits(r) >> (r.slot - of) & 1 == 1)
                };
                let is_sent = was(self.report(pair.src, of), true);
                let is_got = was(self.report(pair.dst, of), false);
                let rack = |host: u16| self.leaf_of_end[usize::from(host)];
                let up = Link { is_up: true, rack: rack(pair.src), agg: pair.agg };
                let down = Link { is_up: false, rack: rack(pair.dst), agg: pair.agg };
                match (is_sent, is_got) {
                    (Some(true), Some(true)) => {
                        [up, down].into_iter().for_each(|link| self.clear(link))
                    }
                    (Some(true), Some(false)) => self.on_loss(slot, up, down),
                    // Not reported, or not sent.
                    _ if pair.is_probe => self.probe_again(slot, up, down),
                    _ => {}
                }
            }
        }
        if slot >= self.next_check {
            self.next_check = slot + self.beacon;
            for end in 0..self.last_rts_slot.len() {
                let is_unresponsive = self.last_rts_slot[end] + self.failed_after_slots < slot;
                if is_unresponsive && !std::mem::replace(&mut self.is_failed[end], true) {
                    self.n_failed += 1;
                    let is_host = end < self.n_hosts;
                    self.stats.hosts_unresponsive += u64::from(is_host);
                    self.stats.cores_unresponsive += u64::from(!is_host);
                }
            }
        }
    }

    /// Returns the report of a host about a slot. Slots are queried in order.
    fn report(&mut self, host: u16, slot: u64) -> Option<Report> {
        let reports = &mut self.reports[usize::from(host)];
        while reports.front().is_some_and(|report| report.slot < slot) {
            reports.pop_front();
        }
        let near = reports.iter().take_while(|report| report.slot - slot < REPORT_SLOTS);
        near.copied().find(|report| report.slot - slot < report.covered)
    }

    fn health(&mut self, link: Link) -> &mut Health {
        let side = usize::from(link.is_up) * usize::from(self.n_racks);
        &mut self.links[(side + usize::from(link.rack)) * self.n_aggs + usize::from(link.agg)]
    }

    /// Clears the losses of a link by which a packet arrived.
    fn clear(&mut self, link: Link) {
        let before = std::mem::take(self.health(link));
        if before.is_convicted {
            self.convicted.remove(&link);
            self.paths.set_working(link, true);
            self.stats.links_restored += 1;
        }
    }

    /// Handles a loss on one of two links.
    fn on_loss(&mut self, slot: u64, up: Link, down: Link) {
        if self.health(up).is_convicted || self.health(down).is_convicted {
            return;
        }
        for (link, other) in [(up, down), (down, up)] {
            let health = self.health(link);
            health.lost += 1;
            health.others |= 1 << other.rack;
        }
        let (above, below) = (*self.health(up), *self.health(down));
        let is_guilty = |one: Health, other: Health| {
            let is_alone = one.others.count_ones() < 2 && other.lost >= one.lost;
            one.lost >= if is_alone { LOSSES_ALONE } else { CONVICTION_LOSSES }
        };
        if is_guilty(above, below) {
            self.convict(slot, up);
        }
        if is_guilty(below, above) {
            self.convict(slot, down);
        }
    }

    /// Convicts a link that has lost packets. That explains the losses of links that shared them.
    fn convict(&mut self, slot: u64, link: Link) {
        self.health(link).is_convicted = true;
        self.convicted.insert(link, slot);
        self.paths.set_working(link, false);
        self.stats.links_failed += 1;
        for rack in 0..self.n_racks {
            let health = self.health(Link { is_up: !link.is_up, rack, ..link });
            health.others &= !(1 << link.rack);
            if health.others == 0 {
                health.lost = 0;
            }
        }
    }

    /// Notes that a probe had no result.
    fn probe_again(&mut self, slot: u64, up: Link, down: Link) {
        for link in [up, down] {
            if let Some(next) = self.convicted.get_mut(&link) {
                *next = slot;
            }
        }
    }

    /// Returns the pairs that send probes by convicted links in a slot. The other link changes from
    /// probe to probe, and is one that is not convicted if there is any.
    pub(crate) fn probes(&self, slot: u64) -> Vec<SlotGrant> {
        let due = self.convicted.iter().filter(|(_, next)| **next <= slot);
        due.filter_map(|(&link, _)| self.probe(slot, link)).collect()
    }

    /// Handles a probe that has a place in a slot. Others stay due.
    pub(crate) fn on_probe(&mut self, slot: u64, probe: &SlotGrant) {
        let rack = |host: u16| self.leaf_of_end[usize::from(host)];
        let (from, to) = (rack(probe.src), rack(probe.dst));
        self.stats.probes += 1;
        for (is_up, rack) in [(true, from), (false, to)] {
            if let Some(next) = self.convicted.get_mut(&Link { is_up, rack, agg: probe.agg }) {
                *next = slot + PROBE_SLOTS;
            }
        }
    }

    fn probe(&self, slot: u64, link: Link) -> Option<SlotGrant> {
        let turn = (slot / PROBE_SLOTS) as usize;
        let is_fine = |rack: &u16| {
            let other = Link { is_up: !link.is_up, rack: *rack, ..link };
            !self.convicted.contains_key(&other)
        };
        let mut racks: Vec<u16> = (0..self.n_racks).filter(is_fine).collect();
        if racks.is_empty() {
            racks.extend(0..self.n_racks);
        }
        let other = racks[turn % racks.len()];
        let host = |rack: u16, besides: Option<u16>| {
            let is_of = |host: &u16| {
                let place = usize::from(*host);
                self.leaf_of_end[place] == rack && !self.is_failed[place] && besides != Some(*host)
            };
            let hosts: Vec<u16> = (0..self.n_hosts as u16).filter(is_of).collect();
            (!hosts.is_empty()).then(|| hosts[turn / racks.len() % hosts.len()])
        };
        let (from, to) = if link.is_up { (link.rack, other) } else { (other, link.rack) };
        let src = host(from, None)?;
        let dst = host(to, Some(src))?;
        Some(SlotGrant {
            src,
            dst,
            named_dst: self.first_host + dst,
            agg: link.agg,
            is_probe: true,
        })
    }
}
