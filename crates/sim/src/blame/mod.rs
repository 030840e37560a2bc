//! Causes of the time of each message: a partition of the time from its submission until its last
//! byte has arrived, exact to the picosecond.
//!
//! The problem: a message is slow for many reasons at once, and most of them overlap. While a
//! sender waits for a token, its packets queue elsewhere. Sums of all waits exceed the time.
//!
//! The simple way compares means: the delay of packets, the length of queues. Means do not
//! describe one message, and nothing sums to its time.
//!
//! The present way follows the *completing packet*, the one with the last missing byte. Its times
//! at ports divide the time since its departure ([`links`]). Before the departure its message was
//! at its sender. There the state of the message divides the time ([`timeline`]):
//!
//! * its packet was on the link,
//! * it had permission and the link was busy,
//! * it waited for permission at a [`Stage`](rampmeter_types::Stage) of its transport,
//! * or all had been sent and a loss was not yet repaired.
//!
//! Each instant has one state, so the parts sum to the time.
//!
//! A message that used the link meanwhile is a *blocker*. Logs of the transmissions of each port
//! name them.
//!
//! Hazards: the completing packet is known only when it arrives. So logs are kept as far back as
//! the departure of the oldest packet in the fabric (the *horizon*), and older times are added up.
//! Permissions of endpoints are read only after certain inputs
//! ([`Observation::permission`](rampmeter_types::Observation::permission)); a transport that
//! changes them at other times has wrong stages, though exact sums.

mod cause;
mod links;
mod message;
mod timeline;

use std::collections::VecDeque;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{MsgId, NodeId, PayloadRef, Permission, Time};

pub use cause::{Blocker, Cause, FlowBlame, LossSignal};
pub(crate) use cause::{CompletingPacket, Period, PermissionInput, PortFacts};
pub(crate) use links::{CLEANING_INTERVAL, HostPorts, PortTimes, TransitPaths};
use timeline::Timeline;

/// The causes of all messages of a run.
#[derive(Debug)]
pub(crate) struct Blame {
    /// Messages from the first that has not arrived.
    messages: VecDeque<Option<Box<Timeline>>>,
    first: u32,
    /// Receivers and numbers of messages of each host that have not arrived.
    by_host: Vec<Vec<(u32, u32)>>,
    /// Numbers in the workload, by message.
    numbers: Vec<u32>,
    /// True if interfaces of hosts may queue packets.
    has_queues: bool,
    /// Tiers of the hosts' links; empty if these are never idle while a message may send.
    pausing_tiers: Vec<u8>,
    /// Messages whose bytes have arrived and that their receivers have not delivered, by number,
    /// with the time of the arrival.
    arrived: IdMap<u32, (Time, FlowBlame)>,
}

impl Blame {
    /// Creates the causes of a network of `n_hosts`, whose interfaces queue packets if
    /// `has_queues`.
    pub(crate) fn new(n_hosts: usize, has_queues: bool, pausing_tiers: Vec<u8>) -> Self {
        Self {
            messages: VecDeque::new(),
            first: 0,
            by_host: vec![Vec::new(); n_hosts],
            numbers: Vec::new(),
            has_queues,
            pausing_tiers,
            arrived: IdMap::default(),
        }
    }

    #[inline]
    fn message(&mut self, msg: MsgId) -> Option<&mut Timeline> {
        let idx = msg.get().checked_sub(self.first)?;
        self.messages.get_mut(idx as usize)?.as_deref_mut()
    }

    /// Enters a message that `src` submits to `dst`. Messages come in the order of their ids.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        msg: MsgId,
        number: u32,
        src: NodeId,
        dst: NodeId,
        size: u64,
    ) {
        debug_assert_eq!(self.numbers.len() as u32, msg.get());
        self.numbers.push(number);
        let pausing_tier = self.pausing_tiers.get(src.idx()).copied();
        let timeline = Timeline::new(now, msg, src, dst, self.has_queues, pausing_tier, size);
        self.messages.push_back(Some(Box::new(timeline)));
        self.by_host[src.idx()].push((dst.get(), msg.get()));
    }

    /// Returns the messages of `host` that have not arrived: the receiver and the message of number
    /// `idx` among them.
    pub(crate) fn open_of(&self, host: u32, idx: usize) -> Option<(NodeId, MsgId)> {
        let &(dst, msg) = self.by_host.get(host as usize)?.get(idx)?;
        Some((NodeId::new(dst), MsgId::new(msg)))
    }

    /// Returns true if messages of `host` have not arrived.
    #[inline]
    pub(crate) fn has_open(&self, host: u32) -> bool {
        self.by_host.get(host as usize).is_some_and(|open| !open.is_empty())
    }

    /// Returns true if a message has permission to send, as far as it is known.
    pub(crate) fn is_granted(&self, now: Time, msg: MsgId) -> Option<bool> {
        let idx = msg.get().checked_sub(self.first);
        let message = idx.and_then(|idx| self.messages.get(idx as usize));
        message.and_then(Option::as_ref).map(|message| message.is_granted(now))
    }

    /// Takes the permission of a message after an input of its sender.
    pub(crate) fn on_permission(
        &mut self,
        now: Time,
        msg: MsgId,
        permission: Option<Permission>,
        input: PermissionInput,
    ) {
        if let Some(message) = self.message(msg) {
            message.on_permission(now, permission, input);
        }
    }

    /// Takes the permissions of messages of `host` to `peer`, or of all, after an input of `host`.
    /// `read` returns that of a message, by its receiver.
    #[inline]
    pub(crate) fn on_permissions(
        &mut self,
        now: Time,
        host: u32,
        peer: Option<NodeId>,
        input: PermissionInput,
        read: impl Fn(NodeId, MsgId) -> Option<Permission>,
    ) {
        let Some(open) = self.by_host.get(host as usize) else { return };
        for &(dst, msg) in open {
            let dst = NodeId::new(dst);
            if peer.is_none_or(|peer| peer == dst)
                && let Some(message) = &mut self.messages[(msg - self.first) as usize]
            {
                message.on_permission(now, read(dst, MsgId::new(msg)), input);
            }
        }
    }

    /// The sender hands a packet of a message over, whose transmission ends at `until` if its link
    /// was free. `permission` returns the permission of the next one, by the receiver.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        payload: PayloadRef,
        until: Option<Time>,
        permission: impl FnOnce(NodeId) -> Option<Permission>,
    ) {
        if let Some(message) = self.message(payload.msg) {
            message.on_sent(now, payload, until);
            message.on_permission(now, permission(message.dst), PermissionInput::Own);
        }
    }

    /// Notes a data packet that was dropped or trimmed at a port of this tier.
    pub(crate) fn on_drop(&mut self, msg: MsgId, tier: u8) {
        if let Some(message) = self.message(msg) {
            message.dropped_at = Some(tier);
        }
    }

    /// Handles the last missing byte of a message.
    pub(crate) fn on_complete(
        &mut self,
        now: Time,
        packet: &CompletingPacket,
        transits: &TransitPaths,
        port: impl Fn(u32) -> PortFacts,
    ) {
        let msg = packet.msg;
        let idx = msg.get().checked_sub(self.first);
        let message = idx.and_then(|idx| self.messages.get_mut(idx as usize));
        let Some(message) = message.and_then(Option::take) else { return };
        let of_host = &mut self.by_host[message.src.idx()];
        of_host.retain(|&(_, other)| other != msg.get());
        let number = self.numbers[msg.get() as usize];
        let parts = message.finish(now, packet, transits, port);
        let blame = parts.into_blame(number, |msg| self.numbers[msg as usize]);
        self.arrived.insert(msg.get(), (now, blame));
        while self.messages.front().is_some_and(Option::is_none) {
            self.messages.pop_front();
            self.first += 1;
        }
    }

    /// Returns the causes of a message that its receiver delivers.
    pub(crate) fn on_delivered(&mut self, now: Time, msg: MsgId) -> Option<FlowBlame> {
        let (at, mut blame) = self.arrived.remove(&msg.get())?;
        if now > at {
            blame.time += now - at;
            blame.parts.push((Cause::Ordering, now - at));
        }
        Some(blame)
    }

    /// Adds up the parts before `horizon`, which no packet in the fabric can change.
    pub(crate) fn advance(&mut self, horizon: Time, transits: &TransitPaths) {
        for message in self.messages.iter_mut().flatten() {
            message.advance(horizon, &transits.links);
        }
    }
}
