//! Interface of protocols and drivers: a protocol is an [`Endpoint`], and drivers run it.
//!
//! An endpoint is the transport of one host (or of one arbiter): its [`Protocol`], its
//! [`Observation`] and the [`HostPolicy`]. It is *sans-IO*: time, randomness
//! and packets are arguments, so the simulator, the host runtime and the fault checker run the same
//! code. A driver loops over
//!
//! 1. one input: [`Protocol::submit`], [`Protocol::handle_packet`], [`Protocol::handle_timeout`],
//!    [`Protocol::cancel`] or [`HostPolicy::forget_peer`];
//! 2. all outputs: [`Protocol::poll_event`] until `None`, [`Protocol::poll_transmit`] as long as
//!    the interface can accept a packet, then [`Protocol::poll_timeout`] for the next deadline.
//!
//! `now` never decreases. The interface *pulls*: it requests a packet when it can send one, so that
//! a protocol chooses at the last moment.

use std::sync::Arc;

use crate::clock::ClockOrigin;
use crate::fabric::LinksDown;
use crate::id::{MsgId, NodeId, TenantId};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Bytes, Span, Time};
use crate::wire::Header;

/// Message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number from the driver, unique among this sender's messages.
    pub id: MsgId,
    /// Receiving host.
    pub dst: NodeId,
    /// Length of the message.
    pub size: Bytes,
    /// Deadline of the application, on this host's clock; [`Time::NEVER`] if there is none.
    pub deadline: Time,
    /// Tenant that the message belongs to.
    pub tenant: TenantId,
}

impl Message {
    /// Creates a message without a deadline, of the default tenant.
    pub fn new(id: MsgId, dst: NodeId, size: Bytes) -> Self {
        Self { id, dst, size, deadline: Time::NEVER, tenant: TenantId::default() }
    }
}

/// Bound that a transport promises: the maximum time from the submission of a message until its
/// outcome is reported (cosy §2.1, delta).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBound {
    /// Constant part, equal for all messages.
    pub fixed: Span,
    /// Additional time for each packet of a message.
    pub per_packet: Span,
    /// Payload of a full packet: at least one byte.
    pub payload: Bytes,
    /// Only tenant whose messages have the bound; `None` if all have.
    pub tenant: Option<TenantId>,
}

impl LatencyBound {
    /// Returns the bound of a message of `size`; `None` if the promise excludes its tenant. A bound
    /// above [`Span::MAX`] saturates.
    pub fn bound(&self, size: Bytes, tenant: TenantId) -> Option<Span> {
        self.tenant.is_none_or(|only| only == tenant).then(|| self.time(size))
    }

    /// Returns the bound of a message of `size` of a tenant that has one.
    pub fn time(&self, size: Bytes) -> Span {
        let sending = self.per_packet.as_ps().saturating_mul(size.packets_ceil(self.payload));
        Span::from_ps(self.fixed.as_ps().saturating_add(sending))
    }
}

/// Events that an endpoint reports to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// At the receiver: every byte of the message has arrived. Reported exactly once per message.
    Delivered {
        /// Sending host.
        src: NodeId,
        /// Number of the message at its sender.
        msg: MsgId,
    },
    /// At the receiver: a partial message was discarded, because its sender failed it or lost its
    /// state. No further events of it follow.
    Abandoned {
        /// Sending host.
        src: NodeId,
        /// Number of the message at its sender.
        msg: MsgId,
    },
    /// At the sender: the receiver acknowledged the whole message.
    Completed {
        /// The message.
        msg: MsgId,
    },
    /// At the sender: the receiver was unreachable and the endpoint aborted the message.
    Failed {
        /// The message.
        msg: MsgId,
    },
    /// At the sender: the network does not accept the message; none of it was sent. Only transports
    /// that promise a bound report this (cosy §2.1).
    Rejected {
        /// The message.
        msg: MsgId,
    },
}

/// Effect of a packet's payload at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The packet has no payload.
    Control,
    /// No effect: the packet is malformed, belongs to an unknown message, or is refused.
    Ignored,
    /// Bytes that had not arrived before.
    Fresh,
    /// Bytes that had arrived before.
    Duplicate,
}

/// Position of an endpoint in its protocol's schedule, for timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Name of the track, as in "matching": phases of one track follow one another.
    pub track: &'static str,
    /// Name of the phase.
    pub name: &'static str,
    /// Number in the schedule, or number of the round.
    pub number: u64,
}

/// Window or credit of an endpoint, for tables of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name, which ends in the unit: `cwnd_bytes`, `credit_packets`.
    pub name: &'static str,
    /// Other host.
    pub peer: NodeId,
    /// Message, in the numbering of its sender; `None` if the gauge belongs to a pair of hosts.
    pub msg: Option<MsgId>,
    /// Value, in the unit of the name.
    pub value: u64,
}

/// Returns the counter `name` of two endpoints together: the greater value if the name ends in
/// `_max`, and else the sum.
pub fn merge_counters(name: &str, a: u64, b: u64) -> u64 {
    if name.ends_with("_max") { a.max(b) } else { a + b }
}

/// Stage at which messages of a transport wait for permission to send.
#[derive(Debug)]
pub struct Stage {
    /// Name in the protocol's own words, as in "matching".
    pub name: &'static str,
    /// Meaning, in one sentence.
    pub meaning: &'static str,
}

impl PartialEq for Stage {
    /// Compares names alone: a name stands for one stage of a transport.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.name == other.name
    }
}

impl Eq for Stage {}

/// Permission of a message to send its next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The message may send a packet as soon as the link of its host is free for it.
    Granted,
    /// The same until this time. Then it waits at this stage, without an input.
    GrantedUntil(Time, &'static Stage),
    /// The message waits at this stage.
    Awaited(&'static Stage),
}

/// Transport of one host: its protocol, its state for observers, and the rules of its host.
pub trait Endpoint: Protocol + Observation + HostPolicy {}

impl<T: Protocol + Observation + HostPolicy> Endpoint for T {}

/// State machine of a protocol: messages, packets and time go in, packets and events come out.
pub trait Protocol: Sized {
    /// Header of its packets.
    type Header: Header;
    /// Parameters, shared by all endpoints of a run.
    type Config;

    /// Creates the endpoint of host `node`.
    fn new(config: Arc<Self::Config>, node: NodeId, rng: Rng, now: Time) -> Self;

    /// Sets the origin of the clock whose times the endpoint receives. Drivers of hosts call it
    /// once, before anything else. Without a call the origin is that of simulations.
    fn set_clock_origin(&mut self, _now: Time, _origin: ClockOrigin) {}

    /// Submits a message of the application.
    fn submit(&mut self, now: Time, message: Message);

    /// Withdraws a message: its timers are stopped, it has no further events, and only packets that
    /// release reservations are sent for it. The receiver drops partial data after its idle
    /// timeout. Does nothing for a message that has ended or was never submitted.
    fn cancel(&mut self, now: Time, msg: MsgId);

    /// Handles a packet that has arrived. Returns the effect of its payload.
    fn handle_packet(&mut self, now: Time, packet: &Packet<Self::Header>) -> Receipt;

    /// Reports the links between switches that have failed. All others work, and routing avoids the
    /// failed ones from now on. Drivers that have the topology call it for arbiters.
    fn handle_links(&mut self, _now: Time, _down: &LinksDown) {}

    /// Handles a deadline that may have passed. Calls before the deadline change nothing.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the next packet to send on the link, if any.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet<Self::Header>>;

    /// Returns the next packet of the highest class to send on the link, if any. Called instead of
    /// [`Protocol::poll_transmit`] while priority flow control has paused the other classes. None
    /// by default: the pause stops all classes.
    fn poll_control(&mut self, _now: Time) -> Option<Packet<Self::Header>> {
        None
    }

    /// Returns true if [`Protocol::poll_transmit`] could return a packet now. A driver with a busy
    /// link calls this instead of polling; a spurious `true` costs one empty poll.
    fn wants_transmit(&self) -> bool {
        true
    }

    /// Returns the next deadline of [`Protocol::handle_timeout`]; [`Time::NEVER`] if there is none.
    fn poll_timeout(&self) -> Time;

    /// Returns the next event for the driver.
    fn poll_event(&mut self) -> Option<Event>;
}

/// State of an endpoint for statistics, timelines and tests. Reading it changes nothing.
pub trait Observation: Protocol {
    /// Returns the bound that the transport promises, if it promises one. It is constant for each
    /// endpoint.
    fn latency_bound(&self) -> Option<LatencyBound> {
        None
    }

    /// Calls `each` with the endpoint's counters by name: a fixed list in a fixed order. Names are
    /// lowercase words joined by underscores; values only grow. See [`merge_counters`].
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}

    /// Calls `each` with the windows and credits of all messages and peers. None by default. Called
    /// only in runs that record them.
    fn gauges(&self, _each: &mut dyn FnMut(Gauge)) {}

    /// Calls `each` with the endpoint's current phases, at most one a track, always in the same
    /// order. None by default: only protocols with a schedule have phases. Called after inputs, and
    /// only in runs with a timeline.
    fn phases(&self, _each: &mut dyn FnMut(Phase)) {}

    /// Returns the permission of a message that is sent by this endpoint to send its next packet.
    /// Returns `None` if the endpoint has no state of it, or does not report permissions. Called
    /// only in runs that explain the times of messages: after submissions, control packets from
    /// the receiver or an arbiter, deadlines, and packets of the message. It must not change at
    /// other times.
    fn permission(&self, _now: Time, _msg: MsgId) -> Option<Permission> {
        None
    }

    /// Returns the next deadline at which [`Observation::permission`] may change.
    fn permission_deadline(&self) -> Time {
        self.poll_timeout()
    }

    /// Returns the numbers of sent and arriving messages of which the endpoint has state; `None` if
    /// it does not count them. Tests use it to prove that all state is freed.
    fn message_counts(&self) -> Option<(usize, usize)> {
        None
    }
}

/// Rules of the host: memory for arriving messages, peers that restart, other settings.
pub trait HostPolicy: Protocol {
    /// Handles a data packet whose message has no memory, instead of [`Protocol::handle_packet`].
    /// Refreshes its sender's state: a paused sender is not unresponsive. Returns true if the
    /// message was delivered here before. The packet must then be handled, to acknowledge it again.
    /// May be true for an abandoned message; never for one with new bytes.
    fn touch_if_delivered(&mut self, now: Time, packet: &Packet<Self::Header>) -> bool;

    /// Returns true if a data packet has no new bytes. Its payload has arrived before, or belongs
    /// to a message that has ended. If true, [`Protocol::handle_packet`] never returns
    /// [`Receipt::Fresh`]; if false, never [`Receipt::Duplicate`]. Changes no state.
    fn is_duplicate(&mut self, packet: &Packet<Self::Header>) -> bool;

    /// Pauses a message that is announced or arriving, because there is no memory for it. From now
    /// on the endpoint requests no more of it, by token, grant or request, and its sender does not
    /// count as unresponsive. The message may be unknown to the endpoint. Packets in flight may
    /// still arrive: the driver drops them, and calls this again for each. Transports whose
    /// receivers do not control their senders do nothing.
    fn pause(&mut self, _now: Time, _src: NodeId, _msg: MsgId) {}

    /// Resumes a paused message, as if its packets had not been dropped on purpose. Drivers resume
    /// every message that they have paused, including abandoned ones.
    fn resume(&mut self, _now: Time, _src: NodeId, _msg: MsgId) {}

    /// Ends an arriving message that the driver refuses, paused or not: nothing more of it is
    /// requested, and its later packets are ignored. The driver notifies its sender. The message
    /// may be unknown to the endpoint. Transports whose receivers request nothing need not override
    /// it.
    fn abandon(&mut self, now: Time, src: NodeId, msg: MsgId) {
        self.resume(now, src, msg);
    }

    /// Limits the number of messages that are arriving from each peer. Packets of further messages
    /// are dropped, and their senders retransmit them. For drivers whose peers must not exhaust its
    /// memory.
    fn limit_arriving(&mut self, _per_peer: u32) {}

    /// Returns the number of dropped packets of messages beyond that limit.
    fn arriving_excess(&self) -> u64 {
        0
    }

    /// Drops the state of a host or arbiter that has lost its own, such as after a restart.
    /// Messages to it fail, and the state of messages from it is discarded. Drivers isolate the
    /// incarnations: packets from the earlier one, and packets meant for it, do not reach the new
    /// one.
    fn forget_peer(&mut self, now: Time, peer: NodeId);

    /// Replaces the parameters: another rate, another round trip. Packets keep their lengths. No
    /// message is lost, and none is delivered twice. Returns false, and changes nothing, if the
    /// endpoint does not support that. A new endpoint must then be created.
    fn reconfigure(&mut self, _now: Time, _config: Arc<Self::Config>) -> bool {
        false
    }
}
