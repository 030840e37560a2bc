//! Causes of the time of each message: a partition of the time from its submission until its last
//! byte has arrived, exact to the picosecond.
//!
//! The problem: a message is slow for many reasons at once, and most of them overlap. While a
//! sender waits for a token, its packets queue elsewhere. Sums of all waits exceed the time.
//!
//! The simple way compares means: the delay of packets, the length of queues. It tells nothing
//! about one message, and nothing sums to its time.
//!
//! The present way follows the *completing packet*, the one with the last missing byte. Its times
//! at ports divide the time since its departure ([`links`]). Before the departure its message was
//! at its sender. There the state of the message divides the time ([`timeline`]): its packet was on
//! the link, or it had permission and the link was busy, or it waited for permission at a
//! [`Stage`](rampmeter_core::Stage) of its transport, or all had been sent and a loss was not yet
//! repaired. Each instant has one state, so the parts sum to the time.
//!
//! Whoever had the link meanwhile is a *blocker*. Logs of the transmissions of each port name them.
//!
//! Hazards: the completing packet is known only when it arrives. So logs are kept as far back as
//! the departure of the oldest packet in the fabric (the *horizon*), and older times are added up.
//! Endpoints are asked for permissions only after certain inputs
//! ([`Endpoint::permission`](rampmeter_core::Endpoint::permission)); a transport that changes them
//! at other times has wrong stages, though exact sums.

mod links;
mod message;
mod timeline;

use std::collections::VecDeque;

use rampmeter_core::collections::IdMap;
use rampmeter_core::{MsgId, NodeId, PayloadRef, Permission, Span, Stage, Time};

pub(crate) use links::Transits;
use timeline::Timeline;

use crate::engine::Handle;

/// Maximum number of blockers of a message and cause that are named; the others are a sum.
const BLOCKERS_MAX: usize = 16;

/// Discovery of a loss after all bytes of a message had been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSignal {
    /// By a deadline of the sender.
    Timeout,
    /// By a packet: a negative or duplicate acknowledgement, a token for the packet, a returned
    /// header.
    Packet,
    /// The loss was not yet discovered.
    Open,
}

/// Cause of a part of a message's time. Tiers are numbers of [`Fabric::tier_names`].
///
/// [`Fabric::tier_names`]: crate::fabric::Fabric::tier_names
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The sender waited for permission, at this stage of the transport.
    Permission(&'static Stage),
    /// The packet that ended the stage was on its way to the sender.
    PermissionInFlight(&'static Stage),
    /// The sender had permission, and its link was busy or paused.
    SenderLink,
    /// Bits of the message were put on a link: at the sender those of all its packets, later those
    /// of the completing packet and of packets of the message in front of it.
    Serialisation,
    /// The sender sent bytes again.
    Retransmission,
    /// All bytes had been sent, and a loss was not yet repaired. The tier is that of the last drop.
    Loss(LossSignal, Option<u8>),
    /// The completing packet waited behind packets of others.
    Queueing(u8),
    /// The completing packet waited at a port that sent nothing: paused, or without a link.
    Paused(u8),
    /// The completing packet waited for its own tail, in a fabric of cut-through switches.
    CutThrough(u8),
    /// All bytes had arrived, and the receiver waited for earlier ones of the connection.
    Ordering,
    /// Bits travelled along links.
    Propagation,
    /// Switches and hosts processed the completing packet.
    Switching,
}

/// Part of the time of a message during which others had a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The place of the part among those of the message.
    pub part: u32,
    /// The number in the workload of the message that had the link. `None` for control packets, and
    /// for the sum of messages beyond the first 16.
    pub flow: Option<u32>,
    /// Time for which it had the link.
    pub time: Span,
}

/// The causes of a message's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowBlame {
    /// The number of the message in the workload.
    pub number: u32,
    /// Time from its submission until its last byte arrived.
    pub time: Span,
    /// Parts, which sum to `time`.
    pub parts: Vec<(Cause, Span)>,
    /// Messages that had the link meanwhile. While a message waits for permission that is the link
    /// of its receiver.
    pub blockers: Vec<Blocker>,
}

/// Input of a sender, after which permissions may change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PermissionInput {
    /// A control packet arrived that was sent at this time.
    Packet(Time),
    /// A deadline passed.
    Deadline,
    /// The message was submitted, or a packet of it was sent.
    Own,
}

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
    /// The port of each host's first link, and the port that leads to the host.
    ports: Vec<(u32, u32)>,
    /// True if interfaces of hosts may queue packets.
    has_queues: bool,
    /// Messages whose bytes have arrived and that their receivers have not delivered, by number,
    /// with the time of the arrival.
    arrived: IdMap<u32, (Time, FlowBlame)>,
}

/// The packet with the last missing byte of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletingPacket {
    pub(crate) msg: MsgId,
    pub(crate) handle: Handle,
    /// Time of its departure from the sender.
    pub(crate) sent: Time,
}

/// Fields of a port on which parts depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    pub(crate) tier: u8,
    /// Propagation and processing.
    pub(crate) delay: Span,
    /// Propagation alone.
    pub(crate) propagation: Span,
    /// The cause of waits in which the port sends nothing.
    pub(crate) idle_cause: Cause,
}

impl Blame {
    /// Creates the causes of a network with these ports from and to hosts, whose interfaces queue
    /// packets if `has_queues`.
    pub(crate) fn new(ports: Vec<(u32, u32)>, has_queues: bool) -> Self {
        Self {
            messages: VecDeque::new(),
            first: 0,
            by_host: vec![Vec::new(); ports.len()],
            numbers: Vec::new(),
            ports,
            has_queues,
            arrived: IdMap::default(),
        }
    }

    fn message(&mut self, msg: MsgId) -> Option<&mut Timeline> {
        let idx = msg.get().checked_sub(self.first)?;
        self.messages.get_mut(idx as usize)?.as_deref_mut()
    }

    /// Enters a message that `src` submits to `dst`. Messages come in the order of their ids.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        (msg, number): (MsgId, u32),
        (src, dst): (NodeId, NodeId),
        size: u64,
    ) {
        debug_assert_eq!(self.numbers.len() as u32, msg.get());
        self.numbers.push(number);
        let ports = (self.ports[src.idx()].0, self.ports[dst.idx()].1);
        self.messages.push_back(Some(Box::new(Timeline::new(
            now,
            msg,
            (src, dst),
            ports,
            self.has_queues,
            size,
        ))));
        self.by_host[src.idx()].push((dst.get(), msg.get()));
    }

    /// Returns the messages of `host` that have not arrived: the receiver and the message of number
    /// `idx` among them.
    pub(crate) fn open_of(&self, host: u32, idx: usize) -> Option<(NodeId, MsgId)> {
        let &(dst, msg) = self.by_host.get(host as usize)?.get(idx)?;
        Some((NodeId::new(dst), MsgId::new(msg)))
    }

    /// Returns true if a message has permission to send, as far as it is known.
    pub(crate) fn is_granted(&self, msg: MsgId) -> bool {
        let idx = msg.get().checked_sub(self.first);
        let message = idx.and_then(|idx| self.messages.get(idx as usize));
        message.and_then(Option::as_ref).is_none_or(|message| message.is_granted())
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

    /// The sender hands a packet of a message over, whose transmission ends at `until` if its link
    /// was free. `permission` returns the permission of the next one, by the receiver.
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

    /// A data packet of a message was dropped or trimmed at a port of this tier.
    pub(crate) fn on_drop(&mut self, msg: MsgId, tier: u8) {
        if let Some(message) = self.message(msg) {
            message.dropped_at = Some(tier);
        }
    }

    /// The last missing byte of a message has arrived.
    pub(crate) fn on_complete(
        &mut self,
        now: Time,
        packet: &CompletingPacket,
        transits: &Transits,
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
    pub(crate) fn advance(&mut self, horizon: Time, transits: &Transits) {
        for message in self.messages.iter_mut().flatten() {
            message.advance(horizon, &transits.links);
        }
    }
}
