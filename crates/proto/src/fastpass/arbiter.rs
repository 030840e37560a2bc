//! Arbiter (Fastpass §3 to §5): an endpoint like any other. It grants slots in batches,
//! chooses a path for each packet, and notifies each source. Its standby listens, and answers hosts
//! only if the arbiter has been unresponsive for long.

use std::sync::Arc;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{
    Bytes, ClockOrigin, Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Phase,
    Protocol, Receipt, Rng, Span, Time,
};

use super::allocate::{Allocation, Allocator};
use super::config::{AllocationUnit, Fastpass};
use super::epoch::EpochArbiter;
use super::paths::Paths;
use super::wire::{Demand, FastpassHeader, List, Slot};
use crate::toolkit::{Output, sides};

/// The arbiter of a network, in either model.
#[derive(Debug)]
pub struct FastpassArbiter {
    fastpass: Arc<Fastpass>,
    out: Output<FastpassHeader>,
    role: Role,
}

#[derive(Debug)]
enum Role {
    Slots(Box<SlotArbiter>),
    Epochs(EpochArbiter),
}

/// State of a host at the arbiter.
#[derive(Debug, Default)]
struct Client {
    incarnation: u32,
    last_request: u32,
    granted: u32,
    /// Slots requested, by destination.
    totals: IdMap<u16, u32>,
    /// True if it has sent a request since the last batch, and so gets an answer.
    needs_answer: bool,
}

/// Slots of pairs.
#[derive(Debug)]
struct SlotArbiter {
    is_standby: bool,
    /// Time of the last packet from the other arbiter.
    last_watchdog_at: Time,
    next_watchdog: Time,
    allocator: Allocator,
    clients: Vec<Client>,
    /// The first slot of the next batch, and whether anybody waits for it.
    next_batch: u64,
    is_awake: bool,
    allocations: Vec<Allocation>,
    paths: Paths,
    /// Time at which the batch that is being computed may be sent; [`Time::ZERO`] if none is.
    computed_at: Time,
    clock: ClockOrigin,
}

/// Watchdog intervals after which a standby takes over.
const WATCHDOG_PERIODS: u64 = 4;

impl SlotArbiter {
    fn new(now: Time, is_standby: bool, fastpass: &Fastpass) -> Self {
        let n_hosts = fastpass.n_hosts;
        Self {
            is_standby,
            last_watchdog_at: now,
            next_watchdog: now,
            allocator: Allocator::new(n_hosts, fastpass.config.batch),
            clients: (0..n_hosts).map(|_| Client::default()).collect(),
            next_batch: 0,
            is_awake: false,
            allocations: Vec::new(),
            paths: Paths::default(),
            computed_at: Time::ZERO,
            clock: ClockOrigin::default(),
        }
    }

    fn is_passive(&self, now: Time, fastpass: &Fastpass) -> bool {
        self.is_standby
            && now.saturating_since(self.last_watchdog_at) <= fastpass.watchdog * WATCHDOG_PERIODS
    }

    fn on_request(
        &mut self,
        now: Time,
        src: NodeId,
        header: &FastpassHeader,
        fastpass: &Fastpass,
        out: &mut Output<FastpassHeader>,
    ) {
        let &FastpassHeader::Request { incarnation, number, demands } = header else { return };
        if self.is_passive(now, fastpass) {
            let answer = FastpassHeader::NotActive;
            out.send_sized(src, MsgId::default(), answer, fastpass.control_bytes(&answer));
            return;
        }
        let Some(client) = self.clients.get_mut(src.idx()) else { return };
        if incarnation < client.incarnation {
            return;
        }
        if incarnation > client.incarnation {
            if number != 1 {
                let answer = FastpassHeader::Reset { incarnation };
                out.send_sized(src, MsgId::default(), answer, fastpass.control_bytes(&answer));
                return;
            }
            *client = Client { incarnation, ..Client::default() };
            self.allocator.withdraw(src.get() as u16);
        }
        if number == client.last_request + 1 {
            client.last_request = number;
        }
        client.needs_answer = true;
        for &Demand { dst, total } in demands.as_slice() {
            if u32::from(dst) >= fastpass.n_hosts || u32::from(dst) == src.get() {
                continue;
            }
            let known = client.totals.entry(dst).or_default();
            self.allocator.request(src.get() as u16, dst, total.saturating_sub(*known));
            *known = total.max(*known);
        }
        if !self.is_awake {
            self.is_awake = true;
            let present = self.clock.next_interval(now, fastpass.slot);
            self.next_batch = self.next_batch.max(present + fastpass.lead_slots);
        }
    }

    /// Returns the instant at which the next batch is granted.
    fn batch_due(&self, fastpass: &Fastpass) -> Time {
        match self.is_awake {
            true => {
                let decided = self.next_batch.saturating_sub(fastpass.lead_slots);
                self.clock.interval_start(decided, fastpass.slot)
            }
            false => Time::NEVER,
        }
    }

    fn send_allocations(&mut self, fastpass: &Fastpass, out: &mut Output<FastpassHeader>) {
        let mut allocations = std::mem::take(&mut self.allocations);
        self.allocator.allocate(&mut allocations);
        let mut paths = vec![0u16; allocations.len()];
        if let Some(plan) = &fastpass.paths {
            allocations.sort_unstable();
            let mut from = 0;
            for slot in allocations.chunk_by(|a, b| a.slot == b.slot) {
                self.paths.choose(plan, slot, &mut paths[from..from + slot.len()]);
                from += slot.len();
            }
        }
        let mut of_src: Vec<(u16, Slot)> = allocations
            .drain(..)
            .zip(&paths)
            .map(|(a, &path)| (a.src, Slot { dst: a.dst, offset: a.slot, path: path as u8 }))
            .collect();
        of_src.sort_unstable_by_key(|(src, slot)| (*src, slot.offset));
        let (mut from, mut is_idle) = (0, true);
        for (idx, client) in self.clients.iter_mut().enumerate() {
            let len = of_src[from..].iter().take_while(|(src, _)| usize::from(*src) == idx).count();
            if len == 0 && !std::mem::take(&mut client.needs_answer) {
                continue;
            }
            is_idle = false;
            let mut slots = List::default();
            of_src[from..from + len].iter().for_each(|(_, slot)| assert!(slots.push(*slot)));
            from += len;
            client.granted += len as u32;
            let allocation = FastpassHeader::Allocation {
                incarnation: client.incarnation,
                last_request: client.last_request,
                granted: client.granted,
                first: self.next_batch,
                slots,
            };
            let bytes = fastpass.control_bytes(&allocation);
            out.send_sized(NodeId::new(idx as u32), MsgId::default(), allocation, bytes);
        }
        self.allocations = allocations;
        self.next_batch += u64::from(fastpass.config.batch);
        // With nothing to give and nobody to answer it sleeps until the next request.
        self.is_awake = !is_idle;
    }

    fn handle_timeout(&mut self, now: Time, fastpass: &Fastpass, out: &mut Output<FastpassHeader>) {
        if self.next_watchdog <= now {
            self.next_watchdog = now + fastpass.watchdog;
            if !self.is_standby && fastpass.config.arbiters > 1 {
                let standby = NodeId::new(fastpass.n_hosts + 1);
                let watchdog = FastpassHeader::Watchdog;
                let bytes = fastpass.control_bytes(&watchdog);
                out.send_sized(standby, MsgId::default(), watchdog, bytes);
            }
        }
        if self.computed_at <= now {
            self.computed_at = Time::ZERO;
        }
        while self.batch_due(fastpass) <= now {
            self.send_allocations(fastpass, out);
            if fastpass.compute > Span::ZERO {
                self.computed_at = now + fastpass.compute;
            }
        }
    }

    /// The host restarts its count of incarnations.
    fn forget_peer(&mut self, peer: NodeId) {
        if let Some(client) = self.clients.get_mut(peer.idx()) {
            *client = Client::default();
            self.allocator.withdraw(peer.get() as u16);
        }
    }

    /// Handles a watchdog of the other arbiter. A standby that had taken over forgets its clients,
    /// which will send requests to the other.
    fn on_watchdog(&mut self, now: Time, fastpass: &Fastpass) {
        if self.is_standby {
            if !self.is_passive(now, fastpass) {
                *self = Self::new(now, true, fastpass);
            }
            self.last_watchdog_at = now;
        }
    }

    #[inline]
    fn deadline(&self, fastpass: &Fastpass) -> Time {
        let watchdog = match !self.is_standby && fastpass.config.arbiters > 1 {
            true => self.next_watchdog,
            false => Time::NEVER,
        };
        let computed = match self.is_computing() {
            true => self.computed_at,
            false => Time::NEVER,
        };
        watchdog.min(self.batch_due(fastpass)).min(computed)
    }

    /// Returns true if a batch is being computed. Nothing is sent meanwhile: the arbiter is busy.
    #[inline]
    fn is_computing(&self) -> bool {
        self.computed_at > Time::ZERO
    }
}

impl Protocol for FastpassArbiter {
    type Header = FastpassHeader;
    type Config = Fastpass;

    fn new(config: Arc<Fastpass>, node: NodeId, _rng: Rng, now: Time) -> Self {
        let is_standby = node.get() > config.n_hosts;
        let role = match config.config.allocation_unit {
            AllocationUnit::Slots => {
                Role::Slots(Box::new(SlotArbiter::new(now, is_standby, &config)))
            }
            AllocationUnit::Epochs => Role::Epochs(EpochArbiter::new(now, &config)),
        };
        let out = Output::new(node, config.config.packet.header.get() as u16);
        Self { out, role, fastpass: config }
    }

    fn set_clock_origin(&mut self, _now: Time, origin: ClockOrigin) {
        if let Role::Slots(arbiter) = &mut self.role {
            arbiter.clock = origin;
        }
    }

    fn submit(&mut self, _now: Time, _message: Message) {}

    fn cancel(&mut self, _now: Time, _msg: MsgId) {}

    fn handle_packet(&mut self, now: Time, packet: &Packet<FastpassHeader>) -> Receipt {
        let (src, fastpass, out) = (packet.src, &*self.fastpass, &mut self.out);
        match &mut self.role {
            Role::Slots(arbiter) => match packet.header {
                FastpassHeader::Request { .. } => {
                    arbiter.on_request(now, src, &packet.header, fastpass, out);
                }
                FastpassHeader::Watchdog => arbiter.on_watchdog(now, fastpass),
                _ => {}
            },
            Role::Epochs(arbiter) => arbiter.handle_packet(now, src, &packet.header, fastpass, out),
        }
        Receipt::Control
    }

    fn handle_timeout(&mut self, now: Time) {
        match &mut self.role {
            Role::Slots(arbiter) => arbiter.handle_timeout(now, &self.fastpass, &mut self.out),
            Role::Epochs(arbiter) => arbiter.handle_timeout(now, &self.fastpass, &mut self.out),
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<FastpassHeader>> {
        if self.wants_transmit() { self.out.next_control() } else { None }
    }

    fn wants_transmit(&self) -> bool {
        let is_computing = match &self.role {
            Role::Slots(arbiter) => arbiter.is_computing(),
            Role::Epochs(_) => false,
        };
        !is_computing && self.out.has_control()
    }

    fn poll_timeout(&self) -> Time {
        match &self.role {
            Role::Slots(arbiter) => arbiter.deadline(&self.fastpass),
            Role::Epochs(arbiter) => arbiter.deadline(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Observation for FastpassArbiter {
    /// An arbiter of slots is at work on a batch, named by its first slot.
    fn phases(&self, each: &mut dyn FnMut(Phase)) {
        if let Role::Slots(arbiter) = &self.role
            && arbiter.is_awake
        {
            let name = if arbiter.is_computing() { "computing" } else { "batch" };
            each(Phase { track: "batches", name, number: arbiter.next_batch });
        }
    }
}

impl HostPolicy for FastpassArbiter {
    sides! { no_data }

    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        self.out.forget_peer(peer);
        match &mut self.role {
            Role::Slots(arbiter) => arbiter.forget_peer(peer),
            Role::Epochs(arbiter) => arbiter.forget_peer(peer),
        }
    }
}

/// Returns the bytes of allocations to `n_hosts` hosts, each of a whole batch of `batch` slots.
pub fn allocation_bytes(n_hosts: u32, header: Bytes, batch: u32) -> Bytes {
    let longest = header.get() + 22 + 4 * u64::from(batch);
    Bytes::new(longest * u64::from(n_hosts))
}
