//! The seam: a protocol is an [`Endpoint`], and drivers run it.
//!
//! An endpoint is the transport of one host (or of one arbiter). It is *sans-IO*: time, randomness
//! and packets are arguments, so the simulator, the host runtime and the fault checker run the
//! same code. A driver loops over
//!
//! 1. one input: [`Endpoint::submit`], [`Endpoint::handle_packet`], [`Endpoint::handle_timeout`],
//!    [`Endpoint::cancel`] or [`Endpoint::forget_peer`];
//! 2. all outputs: [`Endpoint::poll_event`] until `None`, [`Endpoint::poll_transmit`] as long as
//!    the interface can take a packet, then [`Endpoint::poll_timeout`] for the next deadline.
//!
//! `now` never goes backwards. The interface *pulls*: it asks for a packet when it can send one,
//! so that a protocol chooses at the last moment.

use std::sync::Arc;

use crate::clock::ClockOrigin;
use crate::fabric::LinksDown;
use crate::id::{MsgId, NodeId, TenantId};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Bytes, Span, Time};
use crate::wire::Header;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The driver's number for it, unique among this sender's messages.
    pub id: MsgId,
    /// The receiving host.
    pub dst: NodeId,
    /// Its length.
    pub size: Bytes,
    /// When the application needs it by, on this host's clock; [`Time::NEVER`] if it does not say.
    pub deadline: Time,
    /// Whom it belongs to.
    pub tenant: TenantId,
}

impl Message {
    /// A message without a deadline, of no particular tenant.
    pub fn new(id: MsgId, dst: NodeId, size: Bytes) -> Self {
        Self { id, dst, size, deadline: Time::NEVER, tenant: TenantId::default() }
    }
}

/// A bound that a transport promises: the time after its submission within which the fate of a
/// message is known (cosy §2.1, delta).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The part that is the same for every message.
    pub fixed: Span,
    /// What each packet of a message adds.
    pub per_packet: Span,
    /// Payload of a full packet: at least one byte.
    pub payload: Bytes,
    /// The only tenant whose messages have the bound; `None` if all have.
    pub tenant: Option<TenantId>,
}

impl Promise {
    /// The bound of a message of `size`; `None` if the promise is not for its tenant. A bound
    /// beyond [`Span::MAX`] becomes that.
    pub fn bound(&self, size: Bytes, tenant: TenantId) -> Option<Span> {
        self.tenant.is_none_or(|only| only == tenant).then(|| self.time(size))
    }

    /// The bound of a message of `size` of a tenant that has one.
    pub fn time(&self, size: Bytes) -> Span {
        let sending = self.per_packet.as_ps().saturating_mul(size.packets_ceil(self.payload));
        Span::from_ps(self.fixed.as_ps().saturating_add(sending))
    }
}

/// What an endpoint tells its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// At the receiver: every byte of the message is here. Said exactly once a message.
    Delivered {
        /// The sender.
        src: NodeId,
        /// The sender's number for the message.
        msg: MsgId,
    },
    /// At the receiver: what had come of the message is forgotten, because its sender gave up or
    /// lost its state. Nothing more is heard of it.
    Abandoned {
        /// The sender.
        src: NodeId,
        /// The sender's number for the message.
        msg: MsgId,
    },
    /// At the sender: the receiver confirmed the whole message.
    Completed {
        /// The message.
        msg: MsgId,
    },
    /// At the sender: the receiver could not be reached and the endpoint gave up.
    Failed {
        /// The message.
        msg: MsgId,
    },
    /// At the sender: the network does not take the message; nothing of it was sent. Only
    /// transports that promise a bound say this (cosy §2.1).
    Rejected {
        /// The message.
        msg: MsgId,
    },
}

/// What a packet's payload was to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It carries none.
    Control,
    /// Nothing: the packet is malformed, comes for a message that is not known, or is refused.
    Ignored,
    /// Bytes that had not arrived before.
    Fresh,
    /// Bytes that had arrived before.
    Duplicate,
}

/// Where an endpoint is in its protocol's schedule, as timelines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it is a phase of, as in "matching": phases of one track follow one another.
    pub track: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its number in the schedule, or its round.
    pub number: u64,
}

/// A window or a credit that an endpoint keeps, as tables of windows show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Its name, which ends in its unit: `cwnd_bytes`, `credit_packets`.
    pub name: &'static str,
    /// The other host.
    pub peer: NodeId,
    /// The message, in the numbering of its sender; `None` if it is that of a pair of hosts.
    pub msg: Option<MsgId>,
    /// Its value.
    pub value: u64,
}

/// The transport of one host.
pub trait Endpoint: Sized {
    /// Its packets' header.
    type Header: Header;
    /// Its parameters, shared by all endpoints of a run.
    type Config;

    /// The endpoint of host `node`.
    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self;

    /// Sets the origin of the clock that the endpoint is given times of. Drivers of hosts call it
    /// once, before anything else; without a call the origin is that of simulations.
    fn set_clock_origin(&mut self, _now: Time, _origin: ClockOrigin) {}

    /// The application hands over a message.
    fn submit(&mut self, now: Time, message: Message);

    /// Withdraws a message: its timers are forgotten, it has no further events, and only packets
    /// that release reservations are sent for it. The receiver drops partial data on its idle
    /// timeout. Does nothing for a message that is over or was never submitted.
    fn cancel(&mut self, now: Time, msg: MsgId);

    /// The bound that the transport promises, if it promises one. It stays the same for as long as
    /// the endpoint lives.
    fn promise(&self) -> Option<Promise> {
        None
    }

    /// A packet has arrived. The answer says what became of its payload.
    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt;

    /// Called instead of [`Endpoint::handle_packet`] for a data packet whose message has no room.
    /// Keeps its sender alive: one that is made to wait is not silent. Returns whether the message
    /// was delivered here before: then the packet must be handled, to tell its sender again. May
    /// be true for an abandoned message; never for one with new bytes.
    fn has_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool;

    /// Whether a data packet brings nothing new: its payload has arrived before, wholly or in part,
    /// or comes for a message that is over. Where this is true [`Endpoint::handle_packet`] never
    /// answers [`Receipt::Fresh`], and where it is false never [`Receipt::Duplicate`]. Nothing
    /// changes.
    fn has_arrived(&mut self, packet: &Packet<Self::Header>) -> bool;

    /// There is no room for a message that is announced or arriving: from now on nothing more of it
    /// is asked for, by token, grant or request, and its sender does not count as silent. The
    /// message need not be known yet. What is under way may still come: the driver drops it, and
    /// says so again with each packet. Transports whose receivers do not steer their senders do
    /// nothing.
    fn hold(&mut self, _now: Time, _src: NodeId, _msg: MsgId) {}

    /// A message that was held goes on, as if nothing of it had been lost on purpose. Drivers
    /// release whatever they have held, also messages that were abandoned.
    fn release(&mut self, _now: Time, _src: NodeId, _msg: MsgId) {}

    /// Tells `each` what the endpoint has counted, by name: a fixed list in a fixed order. Names
    /// are lowercase words joined by underscores; values only grow.
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}

    /// Tells `each` the windows and credits of all messages and peers. Nothing by default. Asked
    /// only in runs that record them.
    fn gauges(&self, _each: &mut dyn FnMut(Gauge)) {}

    /// Tells `each` in which phases the endpoint is, at most one a track, always in the same order.
    /// Nothing by default: only protocols with a schedule have phases. Asked after inputs, and only
    /// in runs with a timeline.
    fn phases(&self, _each: &mut dyn FnMut(Phase)) {}

    /// Messages that the endpoint keeps something of, sent and arriving; `None` if it does not
    /// count them. Tests use it to prove that nothing is left behind.
    fn messages(&self) -> Option<(usize, usize)> {
        None
    }

    /// No peer may have more messages under way to this host; what comes of others is dropped, and
    /// their senders try again. For drivers whose peers are not to be trusted with its memory.
    fn limit_arriving(&mut self, _per_peer: u32) {}

    /// How often packets of messages beyond that limit were dropped.
    fn arriving_excess(&self) -> u64 {
        0
    }

    /// A host or arbiter has lost its state, as one that is started again has: messages to it fail,
    /// and what is known of messages from it is forgotten. Drivers keep packets of its earlier
    /// life, and those meant for it, from its new one.
    fn forget_peer(&mut self, now: Time, peer: NodeId);

    /// The parameters are others from now on: another rate, another round trip. Packets keep their
    /// lengths. No message is lost, and none is delivered twice. Returns false, and changes
    /// nothing, where the endpoint can not do that; it must be made anew then.
    fn reconfigure(&mut self, _now: Time, _config: Arc<Self::Config>) -> bool {
        false
    }

    /// These links between switches have failed, all others work, and routing goes by that from now
    /// on. A driver that knows the network calls it for arbiters.
    fn handle_links(&mut self, _now: Time, _down: &LinksDown) {}

    /// A deadline may have passed. Calls before the deadline change nothing.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet to put on the link, if any.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>>;

    /// The next packet of the highest class to put on the link, if any: asked for instead of
    /// [`Endpoint::poll_transmit`] while priority flow control has paused the other classes. None
    /// by default: the pause stops everything.
    fn poll_control(&mut self, _now: Time) -> Option<Packet<Self::Header>> {
        None
    }

    /// Whether [`Endpoint::poll_transmit`] could answer with a packet now. A driver with a busy
    /// link asks this instead of polling; a spurious `true` costs one empty poll.
    fn wants_transmit(&self) -> bool {
        true
    }

    /// When [`Endpoint::handle_timeout`] wants to be called; [`Time::NEVER`] for never.
    fn poll_timeout(&self) -> Time;

    /// The next thing to tell the driver.
    fn poll_event(&mut self) -> Option<Event>;
}
