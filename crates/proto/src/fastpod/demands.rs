//! What an arbiter knows of its hosts, and whom it gives the next slot (§3.1): a matching by
//! Fastpass's allocator, and an aggregation switch for each pair by its edge colouring.

use std::collections::VecDeque;

use rampmeter_core::NodeId;
use rampmeter_core::collections::IdMap;

use super::config::Fastpod;
use super::failures::{FailureStats, Failures};
use super::wire::{ACKS_MAX, Ack, Demand, FastpodHeader, List};
use crate::fastpass::allocate::{Allocation, Allocator};
use crate::fastpass::colour::Colouring;

/// One host sends to another in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) src: u16,
    pub(super) dst: u16,
    /// The aggregation switch between them.
    pub(super) agg: u8,
    /// The slot is for a probe of a link that is broken.
    pub(super) is_probe: bool,
}

/// What an arbiter tells a host of what it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) incarnation: u32,
    pub(super) heard: u32,
    pub(super) given: u32,
    pub(super) acks: List<Ack, ACKS_MAX>,
}

/// What an arbiter knows of a host.
#[derive(Clone, Debug, Default)]
struct Client {
    incarnation: u32,
    heard: u32,
    given: u32,
    /// Slots asked for, by destination.
    totals: IdMap<u16, u32>,
    /// Messages of the host that have arrived, of which it has not been told.
    acks: VecDeque<Ack>,
    /// It has asked, and has no answer.
    is_owed: bool,
}

fn given(a: &Allocation, agg: u8) -> Given {
    Given { src: a.src, dst: a.dst, agg, is_probe: false }
}

/// The hosts of an arbiter.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    allocator: Allocator,
    colouring: Colouring,
    clients: Vec<Client>,
    /// Slots that are wanted, and hosts with news.
    wanted: u64,
    n_news: u32,
    allocations: Vec<Allocation>,
    racks: Vec<(u16, u16)>,
    /// What has failed, in a pod.
    failures: Option<Failures>,
}

impl Clients {
    /// Nobody has asked for anything up to slot `from`.
    pub(super) fn new(fastpod: &Fastpod, from: u64) -> Self {
        let n_hosts = fastpod.n_hosts;
        Self {
            failures: fastpod.pods.is_some().then(|| Failures::new(fastpod, from)),
            allocator: Allocator::new(n_hosts, 1).that_remembers(),
            colouring: Colouring::default(),
            clients: (0..n_hosts).map(|_| Client::default()).collect(),
            wanted: 0,
            n_news: 0,
            allocations: Vec::new(),
            racks: Vec::new(),
        }
    }

    /// Forgets everything but what has been counted.
    pub(super) fn begin(&mut self, fastpod: &Fastpod, from: u64) {
        let before = std::mem::replace(self, Self::new(fastpod, from));
        if let (Some(failures), Some(before)) = (&mut self.failures, before.failures) {
            failures.stats = before.stats;
        }
    }

    /// Tells `each` what has been counted.
    pub(super) fn tell(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let stats = self.failures.as_ref().map_or_else(FailureStats::default, |f| f.stats);
        each("hosts_unheard", stats.hosts_unheard);
        each("links_convicted", stats.links_convicted);
        each("links_cleared", stats.links_cleared);
        each("probes", stats.probes);
    }

    /// Whether there is something to give or to tell.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.wanted > 0 || self.n_news > 0
    }

    /// Whether there is something to tell a host.
    #[inline]
    pub(super) fn has_news(&self, host: u16) -> bool {
        let client = &self.clients[usize::from(host)];
        client.is_owed || !client.acks.is_empty()
    }

    /// Changes what there is to tell a host.
    fn change(&mut self, host: usize, change: impl FnOnce(&mut Client)) {
        let had = self.has_news(host as u16);
        change(&mut self.clients[host]);
        let has = self.has_news(host as u16);
        self.n_news = self.n_news + u32::from(has) - u32::from(had);
    }

    /// Takes back what a host has asked for.
    fn withdraw(&mut self, src: u16, fastpod: &Fastpod) {
        let demands = (0..fastpod.n_hosts as u16).map(|dst| self.allocator.demand(src, dst));
        self.wanted -= demands.map(u64::from).sum::<u64>();
        self.allocator.withdraw(src);
    }

    /// An RTS has come by the time at which a slot is decided.
    pub(super) fn on_rts(
        &mut self,
        slot: u64,
        from: NodeId,
        header: &FastpodHeader,
        fastpod: &Fastpod,
    ) {
        let (FastpodHeader::Rts { acks, .. } | FastpodHeader::Report { acks, .. }) = *header else {
            return;
        };
        if from.idx() >= self.clients.len() {
            return;
        }
        let src = from.get() as u16;
        if let Some(failures) = &mut self.failures {
            failures.on_heard(slot, src);
            if let &FastpodHeader::Report { slot: latest, sent, got, .. } = header {
                failures.on_report(slot, src, (latest, sent, got));
            }
        }
        for &Ack { host, flow } in acks.as_slice() {
            let told = Ack { host: src, flow };
            if usize::from(host) < self.clients.len() && host != src {
                self.change(host.into(), |client| client.acks.push_back(told));
            }
        }
        let &FastpodHeader::Rts { incarnation, number, demands, .. } = header else { return };
        let client = &mut self.clients[from.idx()];
        if incarnation < client.incarnation || demands.as_slice().is_empty() {
            return;
        }
        if incarnation > client.incarnation {
            (client.incarnation, client.heard, client.given) = (incarnation, 0, 0);
            client.totals.clear();
            self.withdraw(src, fastpod);
        }
        let client = &mut self.clients[from.idx()];
        if number == client.heard + 1 {
            client.heard = number;
        }
        for &Demand { dst, total } in demands.as_slice() {
            if u32::from(dst) >= fastpod.n_hosts || dst == src {
                continue;
            }
            let known = client.totals.entry(dst).or_default();
            let more = total.saturating_sub(*known).min(u32::MAX - self.allocator.demand(src, dst));
            self.allocator.request(src, dst, more);
            self.wanted += u64::from(more);
            *known = total.max(*known);
        }
        self.change(from.idx(), |client| client.is_owed = true);
    }

    /// A slot begins in which these pairs are scheduled.
    pub(super) fn on_slot(&mut self, slot: u64, pairs: Vec<Given>) {
        if let Some(failures) = &mut self.failures {
            failures.on_slot(slot, pairs);
        }
    }

    /// Gives out the next slot, when slot `now` is decided.
    pub(super) fn give(&mut self, now: u64, fastpod: &Fastpod) -> Vec<Given> {
        if let Some(failures) = &mut self.failures {
            failures.judge(now);
            if !failures.is_whole() && (self.wanted > 0 || failures.has_convicted()) {
                return self.give_around(now);
            }
        }
        if self.wanted == 0 {
            return Vec::new();
        }
        self.allocations.clear();
        self.allocator.allocate(&mut self.allocations);
        self.wanted -= self.allocations.len() as u64;
        self.allocations.sort_unstable();
        if fastpod.pods.is_none() {
            return self.allocations.iter().map(|a| given(a, 0)).collect();
        }
        let timing = fastpod.timing(0);
        self.racks.clear();
        let racks = self.allocations.iter().map(|a| (timing.leaf(a.src), timing.leaf(a.dst)));
        self.racks.extend(racks);
        // No rack sends or receives more than it has hosts, and there are as many switches above.
        let (colours, _) = self.colouring.colour(timing.n_racks(), &self.racks);
        let pairs = self.allocations.iter().zip(colours);
        pairs.map(|(a, &colour)| given(a, colour as u8)).collect()
    }

    /// Gives out the next slot where something has failed: hosts that are not heard get none, and
    /// pairs go by links that work (§4).
    fn give_around(&mut self, now: u64) -> Vec<Given> {
        let Some(failures) = &mut self.failures else { return Vec::new() };
        failures.paths.clear();
        let mut plan = Vec::new();
        for probe in failures.probes(now) {
            let way = failures.way(probe.src, probe.dst, Some(probe.agg));
            let is_busy = |p: &Given| p.src == probe.src || p.dst == probe.dst;
            if failures.paths.is_clear(way) && !plan.iter().any(is_busy) {
                failures.paths.probe(way);
                plan.push(probe);
            }
        }
        let is_probing = |a: Allocation| plan.iter().any(|p| p.src == a.src || p.dst == a.dst);
        let mut numbers = Vec::new();
        self.allocations.clear();
        self.allocator.allocate_where(&mut self.allocations, |a| {
            let may = failures.may(now, a.src, a.dst) && !is_probing(a);
            let way = failures.way(a.src, a.dst, None);
            let place = if may { failures.paths.place(way) } else { None };
            numbers.extend(place);
            place.is_some()
        });
        self.wanted -= self.allocations.len() as u64;
        let pairs = self.allocations.iter().zip(&numbers);
        plan.extend(pairs.map(|(a, &number)| given(a, failures.paths.agg(number))));
        plan.sort_unstable_by_key(|given| given.src);
        plan
    }

    /// What there is to tell a host, which then has been told.
    pub(super) fn answer(&mut self, host: u16, has_grant: bool) -> News {
        let mut news = None;
        self.change(host.into(), |client| {
            client.given += u32::from(has_grant);
            client.is_owed = false;
            let mut acks = List::default();
            while let Some(&ack) = client.acks.front()
                && acks.push(ack)
            {
                client.acks.pop_front();
            }
            let &mut Client { incarnation, heard, given, .. } = client;
            news = Some(News { incarnation, heard, given, acks });
        });
        news.expect("the change is made at once")
    }

    /// A host has lost its state.
    pub(super) fn forget(&mut self, peer: NodeId, fastpod: &Fastpod) {
        if peer.idx() < self.clients.len() {
            self.change(peer.idx(), |client| *client = Client::default());
            self.withdraw(peer.get() as u16, fastpod);
            let of_peer = |ack: &Ack| u32::from(ack.host) == peer.get();
            for host in 0..self.clients.len() {
                self.change(host, |client| client.acks.retain(|ack| !of_peer(ack)));
            }
        }
    }
}
