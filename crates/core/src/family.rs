//! A protocol family: the endpoints, header and switch program that make up one transport.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::endpoint::{Endpoint, Event, Message, Receipt};
use crate::id::{MsgId, NodeId};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Bytes, Rate, Span, Time};
use crate::wire::Header;

/// What a switch does with a packet that its [`Hop`] program has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward as routed.
    Forward,
    /// Forward by this port, of those of the switch, whatever the routes say.
    Via(u32),
    /// Drop, and count it as dropped by the program.
    Drop,
    /// The program has taken the packet: it is out of the fabric. What the program sends in its
    /// place is a packet that it has made.
    Keep,
}

/// Which packet a port sends next, and which one it drops when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The oldest packet of the highest [`Priority`](crate::Priority); the fabric's settings say
    /// what is dropped.
    Classes,
    /// Data packets that do not fit are trimmed. Headers and control packets, those of the highest
    /// [`Priority`](crate::Priority), have a queue of their own; all others are data (NDP, section
    /// 3.1). The fabric's settings are a [`Trim`](crate::fabric::Trim).
    Trimming,
    /// The earliest packet of the message that has the lowest [`Header::rank`]; of the packets with
    /// the highest rank the newest is dropped (pFabric §4.1, §4.2).
    Ranks,
}

/// A switch, as its program sees it. Ports are numbered over the whole fabric, those of a switch
/// one after another.
#[derive(Clone, Debug)]
pub struct SwitchFacts {
    /// Its number among the switches.
    pub number: u32,
    /// The number of its first port.
    pub first_port: u32,
    /// The rates of its ports, in order.
    pub rates: Vec<Rate>,
    /// Its random stream.
    pub rng: Rng,
}

/// A packet on its way through a switch.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// The time.
    pub now: Time,
    /// The port whose link brought it.
    pub ingress: u32,
    /// The port that the routes and the path choice of the fabric say; `None` if there is no way.
    pub egress: Option<u32>,
    /// All ports on shortest paths to its destination; none for a packet with a source route.
    pub choices: &'a [u32],
}

/// A packet that starts on the link of a switch's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it starts. For express packets, whose start is decided on arrival, this is ahead of
    /// the other times that the program is told.
    pub now: Time,
    /// The port.
    pub port: u32,
    /// The rate of its link.
    pub rate: Rate,
    /// Bytes that wait at the port behind the packet.
    pub queued: u32,
    /// Bytes that the port has sent before it.
    pub sent: u64,
}

/// What a switch does beyond forwarding: reservations, telemetry, selective drop.
///
/// Constants say which hooks a program uses. Calls of the others are compiled out.
pub trait Hop<H> {
    /// Whether [`Hop::on_forward`] does anything.
    const ACTIVE: bool;

    /// Whether [`Hop::on_depart`] does anything.
    const DEPARTURES: bool = false;

    /// Whether the program has deadlines: [`Hop::poll_timeout`] and [`Hop::handle_timeout`].
    const TIMERS: bool = false;

    /// Whether the fabric keeps account of waiting bytes by the port that they came by, as PFC's
    /// thresholds need.
    const INGRESS: bool = false;

    /// Whether the simulator's fabric notes what ports do. Programs leave this alone: the simulator
    /// sets it by a program around theirs, for runs with a timeline.
    const WATCHED: bool = false;

    /// How its ports queue.
    const QUEUEING: Queueing = Queueing::Classes;

    /// Whether this switch's program wants to see packets, where programs differ by switch.
    #[inline]
    fn is_on(&self) -> bool {
        true
    }

    /// A packet is about to be queued for an output port.
    fn on_forward(&mut self, crossing: Crossing<'_>, packet: &mut Packet<H>) -> Verdict;

    /// A packet starts on the link of one of the switch's ports: the moment at which INT is
    /// stamped (HPCC §4.1). The program may change its header, marks and length.
    fn on_depart(&mut self, _departure: Departure, _packet: &mut Packet<H>) {}

    /// When [`Hop::handle_timeout`] wants to be called; [`Time::NEVER`] for never. Asked when the
    /// program is new and after every other call but [`Hop::on_depart`].
    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    /// The deadline has passed.
    fn handle_timeout(&mut self, _now: Time) {}

    /// The next packet that the switch sends of its own accord, with the port by which; asked for
    /// after [`Hop::on_forward`] and [`Hop::handle_timeout`].
    fn poll_transmit(&mut self) -> Option<(u32, Packet<H>)> {
        None
    }

    /// Tells `each` what the program has counted since it was made. Results hold the sums over all
    /// endpoints and programs, but of names that end in `_max` the greatest.
    fn counters(&self, _each: &mut dyn FnMut(&'static str, u64)) {}
}

/// The hop program of an ordinary switch: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passive;

impl<H> Hop<H> for Passive {
    const ACTIVE: bool = false;

    fn on_forward(&mut self, _crossing: Crossing<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// A switch that does nothing but queue by rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranked;

impl<H> Hop<H> for Ranked {
    const ACTIVE: bool = false;
    const QUEUEING: Queueing = Queueing::Ranks;

    fn on_forward(&mut self, _crossing: Crossing<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// A switch that does nothing but trim.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trimming;

impl<H> Hop<H> for Trimming {
    const ACTIVE: bool = false;
    const QUEUEING: Queueing = Queueing::Trimming;

    fn on_forward(&mut self, _crossing: Crossing<'_>, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// The facts of a fabric from which protocols derive their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricFacts {
    /// How many hosts there are. Arbiters' numbers follow those of hosts.
    pub n_hosts: u32,
    /// Rate of the slowest host link.
    pub access_rate: Rate,
    /// Unloaded round trip on the longest path with a full packet each way (dcPIM §3.4: 5.8 us).
    pub data_rtt: Span,
    /// The same with a control packet each way (dcPIM's cRTT, 5.2 us).
    pub control_rtt: Span,
    /// How many pods without over-subscription the network is made of: none, one, or those of a
    /// fat-tree; see [`Pods`](crate::fabric::Pods).
    pub n_pods: u16,
    /// Time without an answer for which a transport keeps trying at least. Zero in simulated
    /// networks, where the number of attempts alone limits it.
    pub patience: Span,
}

impl FabricFacts {
    /// The bandwidth-delay product in packets that take `packet` bytes of a link, rounded up.
    pub fn bdp_packets(&self, packet: Bytes) -> u32 {
        self.data_rtt.as_ps().div_ceil(self.access_rate.tx_time(packet).as_ps()) as u32
    }
}

/// One transport: named once per run, monomorphised into its driver.
pub trait Family: 'static {
    /// Its name in plans.
    const NAME: &'static str;
    /// Whether it has arbiters: whether [`Family::Arbiter`] is not [`NoArbiter`].
    const HAS_ARBITERS: bool = false;
    /// Events that the simulator handles between two looks at the clock, for progress and interrupts.
    /// Fewer where an endpoint may take long.
    const BATCH: u64 = 1 << 18;
    /// Its parameters.
    type Config: Send + Sync;
    /// Its packet header.
    type Header: Header;
    /// The endpoint at every host.
    type Host: Endpoint<Header = Self::Header, Config = Self::Config>;
    /// The endpoint of every central controller; [`NoArbiter`] for most.
    type Arbiter: Endpoint<Header = Self::Header, Config = Self::Config>;
    /// The program at every switch; [`Passive`] for most.
    type Hop: Hop<Self::Header>;

    /// The endpoint of arbiter `number`, counted from zero, which is node `node`. A family with
    /// several kinds of controllers makes `Arbiter` an enum of them and chooses by the number.
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

    /// The program of one switch. A switch that fails forgets everything: when it is repaired, it
    /// gets a new one.
    fn hop(config: &Arc<Self::Config>, switch: SwitchFacts) -> Self::Hop;
}

/// The arbiter of families that have none. There is no value of this type, so that whatever a
/// driver does for arbiters is compiled out.
#[derive(Debug)]
pub struct NoArbiter<H, C>(Infallible, PhantomData<fn() -> (H, C)>);

impl<H: Header, C> Endpoint for NoArbiter<H, C> {
    type Header = H;
    type Config = C;

    /// Panics: drivers make no arbiters for a family that has none.
    fn new(_config: Arc<C>, _node: NodeId, _rng: Rng, _now: Time) -> Self {
        panic!("this family has no arbiter")
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

    fn has_delivered(&mut self, _now: Time, _packet: &Packet<H>) -> bool {
        match self.0 {}
    }

    fn has_arrived(&mut self, _packet: &Packet<H>) -> bool {
        match self.0 {}
    }

    fn forget_peer(&mut self, _now: Time, _peer: NodeId) {
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
