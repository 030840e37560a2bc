//! A protocol family: the endpoints, header and switch program that make up one transport.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::endpoint::{Endpoint, Event, Message, Receipt};
use crate::id::NodeId;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Rate, Span, Time};
use crate::wire::Header;

/// What a switch does with a packet that its [`Hop`] program has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward as routed.
    Forward,
    /// Drop, and count it as dropped by the program.
    Drop,
}

/// What a switch does beyond forwarding: reservations, telemetry, selective drop.
pub trait Hop<H>: Sized {
    /// False if [`Hop::on_forward`] does nothing; the call is then compiled out.
    const ACTIVE: bool;

    /// The program of one switch, numbered among the switches.
    fn new(switch: u32) -> Self;

    /// A packet is about to be queued for `egress`, the switch's port number.
    fn on_forward(&mut self, now: Time, egress: u32, packet: &mut Packet<H>) -> Verdict;
}

/// The hop program of an ordinary switch: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passive;

impl<H> Hop<H> for Passive {
    const ACTIVE: bool = false;

    fn new(_switch: u32) -> Self {
        Self
    }

    fn on_forward(&mut self, _now: Time, _egress: u32, _packet: &mut Packet<H>) -> Verdict {
        Verdict::Forward
    }
}

/// The facts of a fabric from which protocols derive their parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricFacts {
    /// How many hosts there are.
    pub n_hosts: u32,
    /// Rate of the slowest host link.
    pub access_rate: Rate,
    /// Unloaded round trip on the longest path with a full packet each way (dcPIM §3.4: 5.8 us).
    pub data_rtt: Span,
    /// The same with a control packet each way (dcPIM's cRTT, 5.2 us).
    pub control_rtt: Span,
}

/// One transport: named once per run, monomorphised into its driver.
pub trait Family: 'static {
    /// Its name in plans.
    const NAME: &'static str;
    /// Its parameters.
    type Config: Send + Sync;
    /// Its packet header.
    type Header: Header;
    /// The endpoint at every host.
    type Host: Endpoint<Header = Self::Header, Config = Self::Config>;
    /// The endpoint of a central controller; [`NoArbiter`] for most.
    type Arbiter: Endpoint<Header = Self::Header, Config = Self::Config>;
    /// The program at every switch; [`Passive`] for most.
    type Hop: Hop<Self::Header>;
}

/// The arbiter of families that have none. It can be constructed, and does nothing.
#[derive(Debug)]
pub struct NoArbiter<H, C>(PhantomData<fn() -> (H, C)>);

impl<H: Header, C> Endpoint for NoArbiter<H, C> {
    type Header = H;
    type Config = C;

    fn new(_config: Arc<C>, _node: NodeId, _rng: Rng, _now: Time) -> Self {
        Self(PhantomData)
    }

    fn submit(&mut self, _now: Time, _message: Message) {}

    fn handle_packet(&mut self, _now: Time, _packet: &Packet<H>) -> Receipt {
        Receipt::Control
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet<H>> {
        None
    }

    fn wants_transmit(&self) -> bool {
        false
    }

    fn poll_timeout(&self) -> Time {
        Time::NEVER
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
