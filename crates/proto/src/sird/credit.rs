//! A receiver's credit: the bucket, the share of each sender, and the sender of the next credit.
//!
//! The problem: a receiver's link should be busy, its port's queue short. Credit that a sender
//! cannot use at once, since many receivers gave it some, is idle there. The receiver then needs
//! more credit for others.
//!
//! The simple way gives every sender a bandwidth-delay product (BDP), as overcommitment does.
//! Queues grow with the number of senders. One BDP in all keeps queues short, but credit that
//! congested senders hold leaves the link idle.
//!
//! The present way: credit is counted in bytes on the wire. That of a packet is outstanding from
//! the CREDIT until the packet arrives or the receiver takes it back. The bucket limits the
//! outstanding credit of all senders ([`Sird::credit`]). Each sender has a limit too: the smaller
//! of two, one by its own marks and one by those of switches (`control`). A sender that holds much
//! credit marks its packets, so its limit falls, and its share of the bucket serves others.
//!
//! A CREDIT is sent if the bucket has room for a full packet, the sender's limit is not exceeded
//! and the pace allows it. Pacing lets packets of idle senders arrive as fast as the link carries
//! them. The next CREDIT is for the sender that the policy prefers ([`ReceiverPolicy`]).
//!
//! Hazards:
//!
//! * Unscheduled packets are charged when the first of them arrives, without a test. So the bucket
//!   and a sender's limit may be exceeded by them. Then no CREDIT is sent until enough has arrived.
//! * A limit is tested before a CREDIT, so that credit may exceed it by a packet, but not the
//!   largest limit. A limit that falls takes nothing back.
//! * Bytes outstanding are the sum over messages and senders
//!   (`credit_is_conserved_and_within_its_limits`). Each change of a message or a limit must be
//!   followed by `place` or `rank`.
//! * Credit of lost packets is taken back by a timeout
//!   (`credit_of_lost_packets_is_taken_back_and_given_again`), or the bucket would shrink forever.
//! * A late timer must not slow the pace: a waiting CREDIT is due by the pace, not by the time of
//!   its timer.

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, Slab};
use rampmeter_types::{Gauge, NodeId, Time};

use super::config::{ReceiverPolicy, Sird};
use super::control::{CreditLimit, LimitConfigs};
use super::rx_flow::{Key, MessageProgress, RxFlow};
use super::wire::SirdHeader;
use crate::toolkit::{ArrivingFlows, Output};

/// A sender from which a packet has arrived.
#[derive(Debug)]
struct Source {
    /// Messages that need credit, by slot.
    flows: KeyedHeap<Key>,
    /// Bytes of its credit that are outstanding, those of unscheduled packets among them.
    outstanding: u64,
    /// Limits by its own marks and by those of switches.
    sender: CreditLimit,
    core: CreditLimit,
    limits: LimitConfigs,
    /// The turn in which it was served last, if senders are served round robin.
    last_served_turn: u64,
}

impl Source {
    /// Credit in bytes that it may have.
    fn limit(&self) -> u64 {
        self.sender.get().min(self.core.get())
    }

    /// Takes a packet into account that its sender (csn) or switches (ce) may have marked.
    fn on_packet(&mut self, csn: bool, ce: bool) {
        let window = self.limit();
        self.core.on_packet(ce, window, &self.limits.core);
        self.sender.on_packet(csn, window, &self.limits.sender);
    }
}

/// The credit of one receiver.
#[derive(Debug)]
pub(super) struct CreditBucket {
    outstanding: u64,
    /// Senders by node. Each stays until its host loses its state.
    numbers: IdMap<u32, u32>,
    sources: Slab<Source>,
    /// Places of messages in the heaps of their senders.
    positions: HeapPositions,
    /// Senders that need credit and may have it.
    order: KeyedHeap<Key>,
    order_positions: HeapPositions,
    turn: u64,
    /// Time at which the next credit may be sent.
    next_at: Time,
    /// The same while a credit waits for it.
    deadline: Time,
}

impl CreditBucket {
    pub(super) fn new() -> Self {
        Self {
            outstanding: 0,
            numbers: IdMap::default(),
            sources: Slab::default(),
            positions: HeapPositions::default(),
            order: KeyedHeap::default(),
            order_positions: HeapPositions::default(),
            turn: 0,
            next_at: Time::ZERO,
            deadline: Time::NEVER,
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns the number of a sender.
    pub(super) fn source(&mut self, node: NodeId, sird: &Sird) -> u32 {
        if let Some(&number) = self.numbers.get(&node.get()) {
            return number;
        }
        let limits = sird.limits_from(node);
        let number = self.sources.insert(Source {
            flows: KeyedHeap::default(),
            outstanding: 0,
            sender: CreditLimit::new(&limits.sender),
            core: CreditLimit::new(&limits.core),
            limits,
            last_served_turn: 0,
        });
        self.numbers.insert(node.get(), number);
        number
    }

    /// Enters a message among those that need credit, changes its place, or drops it.
    pub(super) fn update(&mut self, slot: u32, flow: &RxFlow, sird: &Sird) {
        let source = &mut self.sources[flow.state.source];
        match flow.key(sird).filter(|_| !flow.is_paused) {
            Some(key) => source.flows.set(&mut self.positions, slot, key),
            None => {
                source.flows.remove(&mut self.positions, slot);
            }
        }
        self.rank(flow.state.source, sird);
    }

    /// Removes a completed or dropped message, and takes back its credit.
    pub(super) fn remove(&mut self, slot: u32, flow: &RxFlow, sird: &Sird) {
        let source = &mut self.sources[flow.state.source];
        source.flows.remove(&mut self.positions, slot);
        self.reclaim(flow.state.source, flow.state.outstanding);
        self.rank(flow.state.source, sird);
    }

    /// Handles a sender that has lost its state, and all of its messages.
    pub(super) fn forget(&mut self, node: NodeId) {
        if let Some(number) = self.numbers.remove(&node.get()) {
            self.order.remove(&mut self.order_positions, number);
            let source = self.sources.remove(number);
            debug_assert!(source.is_some_and(|source| source.outstanding == 0));
        }
    }

    /// Credit of a sender is not outstanding any more. It has to be ranked afterwards.
    pub(super) fn reclaim(&mut self, source: u32, bytes: u64) {
        self.outstanding -= bytes;
        self.sources[source].outstanding -= bytes;
    }

    /// Counts the unscheduled packets of a message as credit. Its sender has to be ranked
    /// afterwards.
    pub(super) fn charge(&mut self, source: u32, bytes: u64) {
        self.outstanding += bytes;
        self.sources[source].outstanding += bytes;
    }

    /// Takes a data packet of a sender into account: its sender (csn) or switches (ce) may have
    /// marked it. Its limits may change, so it has to be ranked afterwards.
    pub(super) fn on_data(&mut self, number: u32, csn: bool, ce: bool) {
        self.sources[number].on_packet(csn, ce);
    }

    /// Takes a control packet of a host into account.
    pub(super) fn on_control(&mut self, node: NodeId, sird: &Sird) {
        if let Some(&number) = self.numbers.get(&node.get()) {
            self.on_data(number, false, false);
            self.rank(number, sird);
        }
    }

    /// Enters a sender among those that may have credit, changes its place, or drops it.
    pub(super) fn rank(&mut self, number: u32, sird: &Sird) {
        let source = &self.sources[number];
        let first = source.flows.first();
        let has_room = source.outstanding <= source.limit()
            && source.outstanding + sird.full() <= source.limits.sender.max;
        let Some((key, _)) = first.filter(|_| has_room) else {
            self.order.remove(&mut self.order_positions, number);
            return;
        };
        let key = match sird.config.receiver_policy {
            ReceiverPolicy::Srpt => key,
            ReceiverPolicy::RoundRobin => (source.last_served_turn, u64::from(number)),
        };
        self.order.set(&mut self.order_positions, number, key);
    }

    /// Sends the credits that may be sent now. A credit that waits is due by the pace alone: if
    /// timers are late, those after it make up for that.
    pub(super) fn grant(
        &mut self,
        now: Time,
        flows: &mut ArrivingFlows<MessageProgress>,
        sird: &Sird,
        out: &mut Output<SirdHeader>,
    ) {
        if self.deadline == Time::NEVER {
            self.next_at = self.next_at.max(now);
        }
        self.deadline = Time::NEVER;
        while let Some((_, number)) = self.order.first() {
            if self.outstanding + sird.full() > sird.credit {
                return;
            }
            if self.next_at > now {
                self.deadline = self.next_at;
                return;
            }
            let source = &mut self.sources[number];
            let Some((_, slot)) = source.flows.first() else { return };
            let flow = &mut flows[slot];
            let (seq, bytes) = flow.issue(now, sird);
            source.outstanding += bytes;
            self.outstanding += bytes;
            self.turn += 1;
            source.last_served_turn = self.turn;
            self.next_at += sird.credit_interval_of(bytes);
            let header =
                SirdHeader::Credit { tx_slot: flow.announcement.tx_slot, rx_slot: slot, seq };
            out.send_sized(
                flow.announcement.src,
                flow.announcement.msg,
                header,
                sird.config.packet.grant(),
            );
            self.update(slot, flow, sird);
        }
    }

    /// Reports the credit of each sender that is outstanding, and its limit. Senders without
    /// messages are left out.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        let is_active = |number: &u32| {
            let source = &self.sources[*number];
            source.outstanding > 0 || source.flows.first().is_some()
        };
        let active = self.numbers.iter().filter(|(_, number)| is_active(number));
        let mut nodes: Vec<(u32, u32)> = active.map(|(&node, &number)| (node, number)).collect();
        nodes.sort_unstable();
        for (node, number) in nodes {
            let (source, peer) = (&self.sources[number], NodeId::new(node));
            let own = [("outstanding_bytes", source.outstanding), ("limit_bytes", source.limit())];
            own.into_iter().for_each(|(name, value)| each(Gauge { name, peer, msg: None, value }));
        }
    }

    /// Bytes that are outstanding: of all senders, and of each by its number, with its limit.
    #[cfg(test)]
    pub(super) fn outstanding(&self) -> (u64, Vec<(u32, u64, u64)>) {
        let of = |(number, source): (u32, &Source)| (number, source.outstanding, source.limit());
        (self.outstanding, self.sources.iter().map(of).collect())
    }
}
