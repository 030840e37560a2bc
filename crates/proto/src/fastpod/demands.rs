//! What an arbiter knows of its hosts, and whom it gives the next slot (§3.1): a matching by
//! Fastpass's allocator, and an aggregation switch for each pair by its edge colouring.

use std::collections::VecDeque;

use rampmeter_core::NodeId;
use rampmeter_core::collections::IdMap;

use super::config::Fastpod;
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
}

impl Clients {
    pub(super) fn new(n_hosts: u32) -> Self {
        Self {
            allocator: Allocator::new(n_hosts, 1).that_remembers(),
            colouring: Colouring::default(),
            clients: (0..n_hosts).map(|_| Client::default()).collect(),
            wanted: 0,
            n_news: 0,
            allocations: Vec::new(),
            racks: Vec::new(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.clients.len() as u32);
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

    pub(super) fn on_rts(&mut self, from: NodeId, header: &FastpodHeader, fastpod: &Fastpod) {
        let &FastpodHeader::Rts { incarnation, number, demands, acks, .. } = header else { return };
        if from.idx() >= self.clients.len() {
            return;
        }
        let src = from.get() as u16;
        for &Ack { host, flow } in acks.as_slice() {
            let told = Ack { host: src, flow };
            if usize::from(host) < self.clients.len() && host != src {
                self.change(host.into(), |client| client.acks.push_back(told));
            }
        }
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

    /// Gives out the next slot.
    pub(super) fn give(&mut self, fastpod: &Fastpod) -> Vec<Given> {
        if self.wanted == 0 {
            return Vec::new();
        }
        self.allocations.clear();
        self.allocator.allocate(&mut self.allocations);
        self.wanted -= self.allocations.len() as u64;
        self.allocations.sort_unstable();
        if fastpod.pods.is_none() {
            let give = |a: &Allocation| Given { src: a.src, dst: a.dst, agg: 0 };
            return self.allocations.iter().map(give).collect();
        }
        let timing = fastpod.timing(0);
        self.racks.clear();
        let racks = self.allocations.iter().map(|a| (timing.leaf(a.src), timing.leaf(a.dst)));
        self.racks.extend(racks);
        // No rack sends or receives more than it has hosts, and there are as many switches above.
        let (colours, _) = self.colouring.colour(timing.n_racks(), &self.racks);
        let pairs = self.allocations.iter().zip(colours);
        pairs.map(|(a, &colour)| Given { src: a.src, dst: a.dst, agg: colour as u8 }).collect()
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
