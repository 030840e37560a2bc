//! Messages that a receiver grants (Homa §3.3 to §3.5).
//!
//! The problem: messages share the receiver's link, and short ones should be first. Senders that
//! transmit without control fill the queue of the receiver's port.
//!
//! The simple way grants one message at a time, the one with the fewest bytes to grant. Its sender
//! may be busy with messages for other receivers. The link then has gaps, though other messages
//! could use it. Grants for all messages keep the link busy, but the queue grows with their number.
//!
//! The present way: messages are ordered by their bytes without a grant, fewest first, then by age.
//! Of the messages of one sender only the first counts, as the sender could not send the others at
//! the same time. So the order is one of senders. The first ones, as many as the degree of
//! overcommitment, have grants for [`Homa::window`] bytes in flight each. The window is tested
//! before a grant, which may exceed it by less than a packet. Each arrival of data makes room for
//! the next grant, which the host sends at once.
//!
//! Each grant has a priority. The first message has the highest of those in use, and fewer messages
//! than levels use the lowest levels. A new message with fewer bytes then has a free level above
//! the packets that are in flight (§3.4).
//!
//! A message is removed from the order with its last grant, not with its last byte. So the next
//! sender's packets follow without a gap. With [`Grants::Packet`] a grant is for one packet, and a
//! sender has none before that packet's time on the link.
//!
//! Senders in order are a sorted list. A grant moves one of them by a few places, and lists are as
//! long as a host has senders at a time.
//!
//! Hazards: the queue of the receiver's port may hold a window for each active sender
//! (`as_many_senders_have_grants_as_the_overcommitment`). Unscheduled bytes are in addition; they
//! count as in flight from the first packet of a message. A lost packet keeps its share of the
//! window until it is retransmitted. A key must be changed with [`GrantScheduler::place`] after
//! every change of a message, or the order is wrong. The last grant must hand over
//! (`the_last_grant_hands_over_to_the_next_sender`), and levels must be the lowest
//! (`active_messages_take_the_lowest_levels`).

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, Slab};
use rampmeter_types::{Bytes, Rate, Time};

use super::config::{Grants, Homa};
use super::rx_flow::{Key, MessageProgress, RxFlow};
use super::wire::HomaHeader;
use crate::toolkit::{ArrivingFlows, Output};

/// A sender with messages to grant.
#[derive(Debug, Default)]
struct Source {
    node: u32,
    /// Messages of the sender, by slot.
    flows: KeyedHeap<Key>,
    /// Time of the next grant, if grants are paced.
    grant_at: Time,
}

/// The senders with messages to grant.
#[derive(Debug)]
pub(super) struct GrantScheduler {
    /// Each sender with the key of its first message, in order.
    order: Vec<(Key, u32)>,
    sources: Slab<Source>,
    /// Senders by node.
    numbers: IdMap<u32, u32>,
    positions: HeapPositions,
    /// Time at which a paced sender may have its next grant.
    deadline: Time,
}

/// Further inputs of granting.
pub(super) struct GrantContext<'a> {
    pub(super) now: Time,
    pub(super) homa: &'a Homa,
    pub(super) rate: Rate,
    /// True if the host awaits too many messages.
    pub(super) has_incast: bool,
}

impl GrantScheduler {
    pub(super) fn new() -> Self {
        Self {
            order: Vec::new(),
            sources: Slab::default(),
            numbers: IdMap::default(),
            positions: HeapPositions::default(),
            deadline: Time::NEVER,
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Enters a message, changes its place, or drops it if there is nothing to grant.
    pub(super) fn place(&mut self, slot: u32, flow: &RxFlow, homa: &Homa) {
        let node = flow.announcement.src.get();
        let key = flow.key(homa).filter(|_| !flow.is_paused);
        let source = match (self.numbers.get(&node), key) {
            (Some(&source), _) => source,
            (None, None) => return,
            (None, Some(_)) => {
                let source = self.sources.insert(Source { node, ..Source::default() });
                self.numbers.insert(node, source);
                source
            }
        };
        self.change(source, slot, key);
    }

    /// Removes a completed or dropped message.
    pub(super) fn remove(&mut self, slot: u32, flow: &RxFlow) {
        if let Some(&source) = self.numbers.get(&flow.announcement.src.get()) {
            self.change(source, slot, None);
        }
    }

    /// Gives a message of a sender another key, or none. Returns the sender's place in the order.
    fn change(&mut self, number: u32, slot: u32, key: Option<Key>) -> Option<usize> {
        let source = &mut self.sources[number];
        let before = source.flows.first();
        match key {
            Some(key) => source.flows.set(&mut self.positions, slot, key),
            None => {
                source.flows.remove(&mut self.positions, slot);
            }
        }
        let after = source.flows.first();
        let old = before.map(|(key, _)| self.order.partition_point(|&(other, _)| other < key));
        let Some((key, _)) = after else {
            if let Some(old) = old {
                self.order.remove(old);
            }
            let node = source.node;
            self.sources.remove(number);
            self.numbers.remove(&node);
            return None;
        };
        let Some(old) = old else {
            let new = self.order.partition_point(|&(other, _)| other < key);
            self.order.insert(new, (key, number));
            return Some(new);
        };
        let mut at = old;
        self.order[at].0 = key;
        while at > 0 && self.order[at] < self.order[at - 1] {
            self.order.swap(at, at - 1);
            at -= 1;
        }
        while at + 1 < self.order.len() && self.order[at + 1] < self.order[at] {
            self.order.swap(at, at + 1);
            at += 1;
        }
        Some(at)
    }

    /// Sends the grants that may be sent now.
    pub(super) fn grant(
        &mut self,
        flows: &mut ArrivingFlows<MessageProgress>,
        by: &GrantContext<'_>,
        out: &mut Output<HomaHeader>,
    ) {
        self.deadline = Time::NEVER;
        let mut rank = 0;
        loop {
            let n_active = self.order.len().min(by.homa.overcommitment);
            if rank >= n_active {
                return;
            }
            let number = self.order[rank].1;
            let source = &mut self.sources[number];
            let Some((_, slot)) = source.flows.first() else { return };
            let flow = &mut flows[slot];
            let window = by.homa.window_from(flow.announcement.src);
            if flow.state.in_flight >= window {
                rank += 1;
                continue;
            }
            if source.grant_at > by.now {
                self.deadline = self.deadline.min(source.grant_at);
                rank += 1;
                continue;
            }
            let priority = by.homa.scheduled_priority(rank, n_active);
            let bytes = flow.issue(by.homa);
            let mut again = Time::NEVER;
            if by.homa.config.grants == Grants::Packet {
                source.grant_at = by.now + by.rate.tx_time(Bytes::new(bytes));
                if flow.state.in_flight < window {
                    again = source.grant_at;
                }
            }
            let (tx_slot, rx_slot, credit) = (flow.announcement.tx_slot, slot, flow.state.issued);
            let incast = by.has_incast;
            let grant = HomaHeader::Grant { tx_slot, rx_slot, credit, priority, incast };
            out.send_sized(
                flow.announcement.src,
                flow.announcement.msg,
                grant,
                by.homa.config.packet.grant(),
            );
            let key = flow.key(by.homa);
            let place = self.change(number, slot, key);
            if place.is_some_and(|place| place <= rank) {
                // A sender that moves back is examined twice.
                self.deadline = self.deadline.min(again);
                rank += 1;
            }
        }
    }
}
