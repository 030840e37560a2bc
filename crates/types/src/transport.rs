//! A transport: the endpoints, header and switch program that make up one transport.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::endpoint::{Endpoint, Event, HostPolicy, Message, Observation, Protocol, Receipt};
use crate::id::{MsgId, NodeId};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Bytes, Rate, Span, Time};
use crate::wire::Header;

/// Decision of a [`SwitchProgram`] about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward as routed.
    Forward,
    /// Forward by this port, of those of the switch, whatever the routes are.
    Redirect(u32),
    /// Drop, and count it as dropped by the program.
    Drop,
    /// The program has consumed the packet, which is no longer in the fabric. Packets that it sends
    /// instead are new.
    Consume,
}

/// Choice of the packet that a port sends next, and of the one that it drops when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The oldest packet of the highest [`Priority`](crate::Priority). The fabric's settings decide
    /// which is dropped.
    Classes,
    /// Data packets that do not fit are trimmed. Headers and control packets, those of the highest
    /// [`Priority`](crate::Priority), have a separate queue; all others are data (NDP, section
    /// 3.1). The fabric's settings are a [`Trim`](crate::fabric::Trim).
    Trimming,
    /// The earliest packet of the message with the lowest [`Header::rank`]. Of the packets with the
    /// highest rank the newest is dropped (pFabric §4.1, §4.2).
    Ranks,
}

impl Queueing {
    /// Returns the name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classes => "classes",
            Self::Trimming => "trimming",
            Self::Ranks => "ranks",
        }
    }
}

/// Facts about a switch, for its program. Ports are numbered over the whole fabric, those of a
/// switch consecutively.
#[derive(Clone, Debug)]
pub struct SwitchFacts {
    /// Number among the switches.
    pub number: u32,
    /// Number of its first port.
    pub first_port: u32,
    /// Rates of its ports, in order.
    pub rates: Vec<Rate>,
    /// Random stream of the switch.
    pub rng: Rng,
}

/// A packet in transit through a switch.
#[derive(Clone, Copy, Debug)]
pub struct TransitPacket<'a> {
    /// Time of the decision.
    pub now: Time,
    /// Port by which the packet arrived.
    pub ingress: u32,
    /// Port that routing and path choice of the fabric select; `None` if there is no path.
    pub egress: Option<u32>,
    /// All ports on shortest paths to its destination; none for a packet with a source route.
    pub choices: &'a [u32],
}

/// A packet that starts on the link of a switch's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Instant of its start. The start of express packets is decided on arrival, so their instant
    /// is later than the other times that the program receives.
    pub now: Time,
    /// Port of the link.
    pub port: u32,
    /// Rate of the link.
    pub rate: Rate,
    /// Bytes queued at the port behind the packet.
    pub queued: u32,
    /// Bytes that the port has sent before it.
    pub sent: u64,
}

/// Functions of a switch beyond forwarding: reservations, telemetry, selective drop.
///
/// Constants declare which hooks a program uses. Calls of the others are compiled out.
pub trait SwitchProgram<H> {
    /// True if [`SwitchProgram::on_forward`] has an effect.
    const HANDLES_FORWARD: bool;

    /// True if [`SwitchProgram::on_depart`] has an effect.
    const HANDLES_DEPART: bool = false;

    /// True if the program has deadlines: [`SwitchProgram::poll_timeout`] and
    /// [`SwitchProgram::handle_timeout`].
    const HAS_TIMERS: bool = false;

    /// True if the fabric counts queued bytes by ingress port, as PFC's thresholds need.
    const COUNTS_INGRESS: bool = false;

    /// True if the simulator's fabric records the activity of ports. Programs do not set it: the
    /// simulator does, by a wrapper around them, for runs with a timeline.
    const IS_WATCHED: bool = false;

    /// Queueing discipline of its ports.
    const QUEUEING: Queueing = Queueing::Classes;

    /// Returns true if this switch's program processes packets, if programs differ by switch.
    #[inline]
    fn is_enabled(&self) -> bool {
        true
    }

    /// Handles a packet that is about to be queued for an output port.
    fn on_forward(&mut self, crossing: TransitPacket<'_>, packet: &mut Packet<H>) -> Verdict;

    /// Handles a packet that starts on the link of one of the switch's ports: the moment at which
    /// INT is stamped (HPCC §4.1). The program may change its header, marks and length.
    fn on_depart(&mut self, _departure: Departure, _packet: &mut Packet<H>) {}

    /// Returns the next deadline of [`SwitchProgram::handle_timeout`]; [`Time::NEVER`] if there is
    /// none. Called when the program is new and after every other call except
    /// [`SwitchProgram::on_depart`].
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Handles a deadline that has passed.
    fn handle_timeout(&mut self, _now: Time) {}

    /// Returns the next packet that the switch originates, with its output port. Called after
    /// [`SwitchProgram::on_forward`] and [`SwitchProgram::handle_timeout`].
    fn poll_transmit(&mut self) -> Option<(u32, Packet<H>)> {
        None
    }

    /// Calls `each` with the program's counters since it was created. Results hold the sums over
    /// all endpoints and programs, except that names that end in `_max` have the maximum.
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}

/// Program of an ordinary switch: does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForwardOnly;

impl<H> SwitchProgram<H> for ForwardOnly {
    const HANDLES_FORWARD: bool = false;

    fn on_forward(&mut self, _crossing: TransitPacket<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// Program of a switch that only queues by rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankProgram;

impl<H> SwitchProgram<H> for RankProgram {
    const HANDLES_FORWARD: bool = false;
    const QUEUEING: Queueing = Queueing::Ranks;

    fn on_forward(&mut self, _crossing: TransitPacket<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// Program of a switch that only trims.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrimmingProgram;

impl<H> SwitchProgram<H> for TrimmingProgram {
    const HANDLES_FORWARD: bool = false;
    const QUEUEING: Queueing = Queueing::Trimming;

    fn on_forward(&mut self, _crossing: TransitPacket<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// Facts of a fabric from which protocols derive their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricFacts {
    /// Number of hosts. Arbiters' numbers follow those of hosts.
    pub n_hosts: u32,
    /// Rate of the slowest host link.
    pub access_rate: Rate,
    /// Rate that the narrowest cut of the network has for each host when all send across it. `None`
    /// with full bisection bandwidth, or if it is unknown.
    pub core_rate: Option<Rate>,
    /// Unloaded round trip on the longest path with a full packet in each direction (dcPIM §3.4:
    /// 5.8 us).
    pub data_rtt: Span,
    /// Unloaded round trip with a control packet in each direction (dcPIM's cRTT, 5.2 us).
    pub control_rtt: Span,
    /// Minimum time without an answer before a transport aborts. Zero in simulated networks, in
    /// which only the number of attempts limits it.
    pub abort_timeout_min: Span,
}

impl FabricFacts {
    /// Returns the least rate at which a host's packets are carried when all hosts send: that of
    /// its link or its share of the core.
    pub fn min_rate(&self) -> Rate {
        self.core_rate.map_or(self.access_rate, |core| core.min(self.access_rate))
    }

    /// Returns the bandwidth-delay product in packets of `packet` bytes on the link, rounded up.
    pub fn bdp_packets(&self, packet: Bytes) -> u32 {
        self.data_rtt.as_ps().div_ceil(self.access_rate.tx_time(packet).as_ps()) as u32
    }
}

/// One transport: named once per run, monomorphised into its driver.
pub trait Transport: 'static {
    /// Name in plans.
    const NAME: &'static str;
    /// True if it has arbiters, that is if [`Transport::Arbiter`] is not [`NoArbiter`].
    const HAS_ARBITERS: bool = false;
    /// Events that the simulator handles between two reads of the wall clock, for progress and
    /// interrupts. Lower if calls of an endpoint may be slow.
    const EVENTS_PER_CLOCK_READ: u64 = 1 << 18;
    /// True if one thread must run all endpoints.
    const IS_SINGLE_THREADED: bool = false;
    /// Parameters of the transport.
    type Config: Send + Sync;
    /// Header of its packets.
    type Header: Header;
    /// Endpoint at every host.
    type Host: Endpoint<Header = Self::Header, Config = Self::Config> + Send;
    /// Endpoint of every central controller; [`NoArbiter`] for most.
    type Arbiter: Endpoint<Header = Self::Header, Config = Self::Config> + Send;
    /// Program at every switch; [`ForwardOnly`] for most.
    type SwitchProgram: SwitchProgram<Self::Header> + Send;

    /// Creates the endpoint of arbiter `number`, counted from zero, which is node `node`. A
    /// transport with several kinds of controllers makes `Arbiter` an enum of them and chooses by
    /// the number.
    fn arbiter(
        config: Arc<Self::Config>,
        number: u32,
        node: NodeId,
        rng: Rng,
        now: Time,
    ) -> Self::Arbiter {
        let _ = number;
        Self::Arbiter::new(config, node, rng, now)
    }

    /// Creates the program of one switch. A switch that fails loses its state: a new program is
    /// created after its repair.
    fn switch_program(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::SwitchProgram;
}

/// Arbiter of transports that have none. There is no value of this type, so that all code of
/// drivers for arbiters is compiled out.
#[derive(Debug)]
pub struct NoArbiter<H, C>(Infallible, PhantomData<fn() -> (H, C)>);

impl<H: Header, C> Protocol for NoArbiter<H, C> {
    type Header = H;
    type Config = C;

    /// Panics: drivers make no arbiters for a transport that has none.
    fn new(_config: Arc<C>, _node: NodeId, _rng: Rng, _now: Time) -> Self {
        panic!("this transport has no arbiter")
    }

    fn submit(&mut self, _now: Time, _message: Message) {
        match self.0 {}
    }

    fn cancel(&mut self, _now: Time, _msg: MsgId) {
        match self.0 {}
    }

    fn handle_packet(&mut self, _now: Time, _packet: &Packet<H>) -> Receipt {
        match self.0 {}
    }

    fn handle_timeout(&mut self, _now: Time) {
        match self.0 {}
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<H>> {
        match self.0 {}
    }

    fn poll_timeout(&self) -> Time {
        match self.0 {}
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self.0 {}
    }
}

impl<H: Header, C> Observation for NoArbiter<H, C> {}

impl<H: Header, C> HostPolicy for NoArbiter<H, C> {
    fn touch_if_delivered(&mut self, _now: Time, _packet: &Packet<H>) -> bool {
        match self.0 {}
    }

    fn is_duplicate(&mut self, _packet: &Packet<H>) -> bool {
        match self.0 {}
    }

    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {
        match self.0 {}
    }
}
