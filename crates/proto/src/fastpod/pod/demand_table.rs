//! State of the ends of a pod at its arbiter: hosts and core switches (§3.1, §3.4). It has their
//! demands and the pending reports to them.

mod allocate;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{NodeId, Time};

use super::backlog::Backlog;
use crate::fastpass::allocate::{Allocation, Allocator};
use crate::fastpass::colour::EdgeColourer;
use crate::fastpod::config::Fastpod;
use crate::fastpod::repair::failures::{FailureStats, Failures};
use crate::fastpod::repair::observations::decode_brief_report;
use crate::fastpod::slot_grant::SlotGrant;
use crate::fastpod::wire::{
    ACKS_MAX, Ack, Demand, FastpodHeader, List, POD_FLAG, RELAYS_MAX, Relay,
};

/// Pending reports of an arbiter to an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingReport {
    pub(super) incarnation: u32,
    pub(super) answered_rts: u32,
    pub(super) granted: u32,
    pub(super) acks: List<Ack, ACKS_MAX>,
    pub(super) relays: List<Relay, RELAYS_MAX>,
}

/// State of an end at the arbiter.
#[derive(Clone, Debug, Default)]
struct Client {
    incarnation: u32,
    last_rts: u32,
    granted: u32,
    /// Slots requested, by destination.
    totals: IdMap<u16, u32>,
    /// Messages of the host that have arrived, of which it has not been notified.
    acks: Backlog<Ack>,
    /// Messages to hosts of the pod that have arrived, of which the core switch must notify their
    /// sources' pods.
    relays: Backlog<Relay>,
    /// The pods for which the core switch has room, a bit each.
    open_pods: u32,
    /// True if it has sent a request and has no answer.
    needs_answer: bool,
}

/// The ends of an arbiter's pod.
#[derive(Clone, Debug)]
pub(super) struct DemandTable {
    pod: u16,
    n_hosts: u16,
    n_pods: u16,
    /// Destinations are ends, and behind them pods.
    allocator: Allocator,
    colouring: EdgeColourer,
    clients: Vec<Client>,
    /// Number of requested slots, and of ends with changes.
    n_requested: u64,
    n_pending_reports: u32,
    allocations: Vec<Allocation>,
    racks: Vec<(u16, u16)>,
    /// Core switches in the order in which they take cells and acknowledgements: the next ones.
    next_core: u16,
    next_relay: u16,
    /// Failures, in pods.
    failures: Option<Failures>,
}

impl DemandTable {
    /// Returns a table without requests up to slot `from`.
    pub(super) fn new(fastpod: &Fastpod, pod: u16, from: u64) -> Self {
        let n_hosts = fastpod.timing(pod).n_hosts();
        let n_ends = n_hosts + u32::from(fastpod.n_cores());
        let n_pods = fastpod.n_pods();
        let all = n_ends + u32::from(n_pods);
        Self {
            pod,
            n_hosts: n_hosts as u16,
            n_pods,
            failures: fastpod.pods.is_some().then(|| Failures::new(fastpod, pod, from)),
            allocator: Allocator::new(all, 1).with_history().with_shared_destinations(n_ends),
            colouring: EdgeColourer::default(),
            clients: (0..n_ends).map(|_| Client::default()).collect(),
            n_requested: 0,
            n_pending_reports: 0,
            allocations: Vec::new(),
            racks: Vec::new(),
            next_core: 0,
            next_relay: 0,
        }
    }

    /// Clears everything but the counters.
    pub(super) fn begin(&mut self, fastpod: &Fastpod, from: u64) {
        let before = std::mem::replace(self, Self::new(fastpod, self.pod, from));
        if let (Some(failures), Some(before)) = (&mut self.failures, before.failures) {
            failures.stats = before.stats;
        }
    }

    /// Calls `each` with every counter.
    pub(super) fn report(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.failures.as_ref().map_or_else(FailureStats::default, |f| f.stats).report(each);
    }

    /// Returns the number of ends.
    #[inline]
    pub(super) fn len(&self) -> u16 {
        self.clients.len() as u16
    }

    /// Returns the core switch that an end is; `None` for hosts.
    #[inline]
    pub(super) fn core(&self, end: u16) -> Option<u16> {
        end.checked_sub(self.n_hosts)
    }

    /// Returns true if there is something to grant or to report.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.n_requested > 0 || self.n_pending_reports > 0
    }

    /// Returns true if there is something to report to an end.
    #[inline]
    pub(super) fn has_pending_report(&self, end: u16) -> bool {
        let client = &self.clients[usize::from(end)];
        client.needs_answer || !client.acks.is_empty() || !client.relays.is_empty()
    }

    /// Changes the pending reports to an end.
    fn change(&mut self, end: u16, change: impl FnOnce(&mut Client)) {
        let had = self.has_pending_report(end);
        change(&mut self.clients[usize::from(end)]);
        let has = self.has_pending_report(end);
        self.n_pending_reports = self.n_pending_reports + u32::from(has) - u32::from(had);
    }

    /// Removes the requests of an end.
    fn withdraw(&mut self, src: u16) {
        let demands = (0..self.len() + self.n_pods).map(|dst| self.allocator.demand(src, dst));
        self.n_requested -= demands.map(u64::from).sum::<u64>();
        self.allocator.withdraw(src);
    }

    /// Returns the number of a host among the ends of its pod.
    fn host(&self, host: u16, fastpod: &Fastpod) -> Option<u16> {
        let is_own = fastpod.hosts_of(self.pod).contains(&host.into());
        is_own.then(|| fastpod.end_of(host))
    }

    /// Handles an RTS that has arrived at an arbiter by the time at which a slot is decided.
    pub(super) fn on_rts(
        &mut self,
        slot: u64,
        received_at: Time,
        arbiter: u32,
        from: NodeId,
        header: &FastpodHeader,
        fastpod: &Fastpod,
    ) {
        let node = from.get() as u16;
        let host = if from.get() < fastpod.n_hosts { self.host(node, fastpod) } else { None };
        let core = fastpod.core_of(from).map(|core| fastpod.end_of_core(core));
        let Some(end) = host.or(core) else { return };
        if let Some(failures) = &mut self.failures {
            failures.on_rts(slot, end);
        }
        match (host, *header) {
            (Some(_), FastpodHeader::Rts { incarnation, number, seen, demands, acks, .. }) => {
                if let Some(failures) = &mut self.failures {
                    let timing = fastpod.timing(self.pod);
                    let about = timing.rts_sent_about(arbiter, end, received_at);
                    let report = decode_brief_report(seen, about, timing.settled);
                    if let Some(report) = report {
                        failures.on_brief(slot, end, report);
                    }
                }
                self.on_acks(node, acks.as_slice(), fastpod);
                self.on_demands(end, incarnation, number, demands.as_slice(), fastpod);
            }
            (Some(_), FastpodHeader::Report { slot: latest, sent, received, acks, .. }) => {
                self.on_acks(node, acks.as_slice(), fastpod);
                if let Some(failures) = &mut self.failures {
                    failures.on_report(slot, end, latest, sent, received);
                }
            }
            (None, FastpodHeader::CoreRts { incarnation, number, open, demands, relays, .. }) => {
                self.clients[usize::from(end)].open_pods = open;
                for &Relay { to, from, flow } in relays.as_slice() {
                    if let Some(source) = self.host(to, fastpod) {
                        let ack = Ack { host: from, flow };
                        self.change(source, |client| _ = client.acks.push(ack));
                    }
                }
                self.on_demands(end, incarnation, number, demands.as_slice(), fastpod);
            }
            _ => {}
        }
    }

    /// Records messages to the host `from` that have arrived. Their sources are of the pod, or are
    /// notified by a core switch.
    fn on_acks(&mut self, from: u16, acks: &[Ack], fastpod: &Fastpod) {
        for &Ack { host, flow } in acks {
            if host == from || u32::from(host) >= fastpod.n_hosts {
                continue;
            }
            if let Some(source) = self.host(host, fastpod) {
                let ack = Ack { host: from, flow };
                self.change(source, |client| _ = client.acks.push(ack));
            } else if let Some(core) = self.relay_by(fastpod.pod_of(host)) {
                let relay = Relay { to: host, from, flow };
                self.change(core, |client| _ = client.relays.push(relay));
            }
        }
    }

    /// Returns the core switch that notifies a pod: the next that responds, if possible one with
    /// space for the pod, because that receives its packets.
    fn relay_by(&mut self, pod: u16) -> Option<u16> {
        let failures = self.failures.as_ref()?;
        let n = self.len() - self.n_hosts;
        let order = (0..n).map(|i| (self.next_relay + i) % n);
        let received_at = order.filter(|core| !failures.is_unresponsive(self.n_hosts + core));
        let has_room = |core: &u16| self.has_core_space(*core, pod);
        let core = received_at.clone().find(has_room).or_else(|| received_at.clone().next())?;
        self.next_relay = (core + 1) % n;
        Some(self.n_hosts + core)
    }

    /// Returns true if a core switch has reported space for cells to a pod.
    fn has_core_space(&self, core: u16, pod: u16) -> bool {
        self.clients[usize::from(self.n_hosts + core)].open_pods >> pod & 1 == 1
    }

    /// Returns the end to which an end may send its demand: an end, or a pod behind these.
    fn destination(&self, src: u16, dst: u16, fastpod: &Fastpod) -> Option<u16> {
        if let Some(end) = self.host(dst, fastpod) {
            return Some(end).filter(|&end| end != src);
        }
        let pod = dst.checked_sub(POD_FLAG).filter(|&pod| pod < self.n_pods && pod != self.pod);
        pod.filter(|_| src < self.n_hosts).map(|pod| self.len() + pod)
    }

    fn on_demands(
        &mut self,
        src: u16,
        incarnation: u32,
        number: u32,
        demands: &[Demand],
        fastpod: &Fastpod,
    ) {
        let client = &mut self.clients[usize::from(src)];
        if incarnation < client.incarnation || demands.is_empty() {
            return;
        }
        if incarnation > client.incarnation {
            (client.incarnation, client.last_rts, client.granted) = (incarnation, 0, 0);
            client.totals.clear();
            self.withdraw(src);
        }
        let client = &mut self.clients[usize::from(src)];
        if number == client.last_rts + 1 {
            client.last_rts = number;
        }
        for &Demand { dst, total } in demands {
            let Some(dst) = self.destination(src, dst, fastpod) else { continue };
            let known = self.clients[usize::from(src)].totals.entry(dst).or_default();
            let more = total.saturating_sub(*known).min(u32::MAX - self.allocator.demand(src, dst));
            self.allocator.request(src, dst, more);
            self.n_requested += u64::from(more);
            *known = total.max(*known);
        }
        self.change(src, |client| client.needs_answer = true);
    }

    /// Handles the start of a slot in which these pairs are scheduled.
    pub(super) fn on_slot(&mut self, slot: u64, mut pairs: Vec<SlotGrant>) {
        if let Some(failures) = &mut self.failures {
            // Core switches do not report arriving packets.
            let n_hosts = self.n_hosts;
            pairs.retain(|pair| pair.src < n_hosts && pair.dst < n_hosts);
            failures.on_slot(slot, pairs);
        }
    }

    /// Takes the pending reports to an end and marks them as sent.
    pub(super) fn take_report(&mut self, end: u16, has_grant: bool) -> PendingReport {
        let mut news = None;
        self.change(end, |client| {
            client.granted += u32::from(has_grant);
            client.needs_answer = false;
            let (acks, relays) = (client.acks.take(), client.relays.take());
            let &mut Client { incarnation, last_rts: answered_rts, granted, .. } = client;
            news = Some(PendingReport { incarnation, answered_rts, granted, acks, relays });
        });
        news.expect("the change is made at once")
    }

    /// Removes the demands of a host that has lost its state.
    pub(super) fn forget(&mut self, peer: NodeId, fastpod: &Fastpod) {
        let host = peer.get() as u16;
        let own = if peer.get() < fastpod.n_hosts { self.host(host, fastpod) } else { None };
        if let Some(end) = own {
            self.change(end, |client| *client = Client::default());
            self.withdraw(end);
            for end in 0..self.len() {
                self.change(end, |client| client.acks.retain(|ack| ack.host != host));
            }
        }
    }
}
