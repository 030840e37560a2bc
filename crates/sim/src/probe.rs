//! Observation of a run, at no cost if nothing is observed.

use rampmeter_types::{
    Bytes, Gauge, Header, MsgId, NodeId, Packet, Phase, Span, SwitchProgram, TenantId, Time,
};

use crate::arrival::Arrival;
use crate::blame::FlowBlame;
use crate::fabric::{Fabric, PortEvent};

/// Record of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Index in the order of submission, from zero.
    pub id: MsgId,
    /// Number in the workload.
    pub number: u32,
    /// Time at which the application submitted it.
    pub arrival: Time,
    /// The sender.
    pub src: NodeId,
    /// The receiver.
    pub dst: NodeId,
    /// Length of the message.
    pub size: Bytes,
    /// Time at which the application needed it; [`Time::NEVER`] if not set.
    pub deadline: Time,
    /// Tenant that owned it.
    pub tenant: TenantId,
    /// Time within which the transport promised that its sender would be notified of its fate.
    pub bound: Option<Span>,
    /// Time at which the receiver had every byte.
    pub delivered: Option<Time>,
    /// Time at which the sender was notified of its delivery.
    pub completed: Option<Time>,
    /// Time at which the sender aborted it.
    pub failed: Option<Time>,
    /// Time at which the sender was notified that the network rejects it.
    pub rejected: Option<Time>,
    /// Bytes that have reached the receiver, each counted once.
    pub fresh_bytes: Bytes,
    /// Bytes that reached the receiver more than once.
    pub duplicate_bytes: Bytes,
    /// Time at which the first byte reached the receiver.
    pub first_byte: Option<Time>,
    /// Bytes that the sender has put on its link, or handed to its interface, each time counted.
    pub sent_bytes: Bytes,
}

impl FlowRecord {
    /// Returns the record of a message just submitted.
    pub fn new(id: MsgId, now: Time, arrival: &Arrival) -> Self {
        Self {
            id,
            number: arrival.number.unwrap_or(id.get()),
            arrival: now,
            src: arrival.src,
            dst: arrival.dst,
            size: arrival.size,
            deadline: arrival.deadline,
            tenant: arrival.tenant,
            bound: None,
            delivered: None,
            completed: None,
            failed: None,
            rejected: None,
            fresh_bytes: Bytes::ZERO,
            duplicate_bytes: Bytes::ZERO,
            first_byte: None,
            sent_bytes: Bytes::ZERO,
        }
    }
}

/// Direction in which a packet passes a host's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The host's link starts to send it.
    Sent,
    /// The packet has reached the host's transport.
    Received,
}

/// A packet at the interface of a host or arbiter.
#[derive(Clone, Copy, Debug)]
pub struct InterfacePacket<'a, H> {
    /// The simulated time.
    pub now: Time,
    /// The host, or the arbiter: those are numbered after the hosts.
    pub end: NodeId,
    /// The direction.
    pub direction: Direction,
    /// The packet.
    pub packet: &'a Packet<H>,
    /// Bytes of the message that it belongs to, unless that has ended or there is none.
    pub message: Option<Bytes>,
}

/// An observer. The methods do nothing unless overridden, and calls to those compile to nothing.
pub trait Probe {
    /// True if [`Probe::on_deliver`] is wanted.
    const LATENCY: bool = false;
    /// True if [`Probe::on_packet`] is wanted.
    const PACKETS: bool = false;
    /// True if [`Probe::on_counters`] is wanted.
    const COUNTERS: bool = false;
    /// True if [`Probe::on_phases`] is wanted.
    const PHASES: bool = false;

    /// Returns false if [`Probe::on_packet`] does nothing, though [`Probe::PACKETS`] is true.
    fn wants_packets(&self) -> bool {
        true
    }

    /// Returns false if [`Probe::on_phases`] does nothing, though [`Probe::PHASES`] is true.
    fn wants_phases(&self) -> bool {
        true
    }

    /// Returns the probe of a partition of the run; `None` if the run must not be divided. It gets
    /// [`Probe::on_deliver`] alone.
    fn partition(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Adds the observations of the probe of a partition.
    fn rejoin(&mut self, _partition: Self)
    where
        Self: Sized,
    {
    }

    /// A message has ended: delivered and confirmed, failed, or cut off by the end of the run.
    fn on_flow(&mut self, _record: &FlowRecord) {}

    /// The last byte of a message has arrived, in a run that records causes.
    fn on_blame(&mut self, _blame: &FlowBlame) {}

    /// The run has ended at `now`, and a message that waited for others was never submitted.
    fn on_withheld(&mut self, _now: Time, _arrival: &Arrival) {}

    /// Returns the interval of [`Probe::on_progress`]; none by default.
    fn progress_interval(&self) -> Option<Span> {
        None
    }

    /// An interval has passed, or the run has ended: the open messages, by number.
    fn on_progress<'a>(&mut self, _now: Time, _open: impl Iterator<Item = &'a FlowRecord>) {}

    /// A window or a credit of `host` after [`Probe::on_progress`], with the number of its flow, if
    /// it is one flow's.
    fn on_gauge(&mut self, _now: Time, _host: NodeId, _flow: Option<u32>, _gauge: &Gauge) {}

    /// A packet reached its host after `latency` in the fabric.
    fn on_deliver(&mut self, _latency: Span, _is_data: bool) {}

    /// A packet is sent or received by a host or an arbiter.
    fn on_packet<H: Header>(&mut self, _passing: &InterfacePacket<'_, H>) {}

    /// The run has ended.
    fn on_end<H, P>(&mut self, _now: Time, _fabric: &mut Fabric<H, P>)
    where
        H: Header,
        P: SwitchProgram<H>,
    {
    }

    /// Something happened at a port. Only of transports that are
    /// [`WatchedTransport`](crate::WatchedTransport).
    fn on_port<H: Header>(&mut self, _event: &PortEvent<H>) {}

    /// A host or an arbiter has had an input, and reports its phases on request.
    fn on_phases(&mut self, _now: Time, _end: NodeId, _tell: impl FnOnce(&mut dyn FnMut(Phase))) {}

    /// The sampling interval has passed, and endpoints have counted this much by name, all hosts
    /// and arbiters together.
    fn on_counters(&mut self, _now: Time, _counters: &[(&'static str, u64)]) {}

    /// The sampling interval has passed. `delivered` holds the message bytes that have arrived so
    /// far, by tenant.
    fn on_sample<H, P>(&mut self, _now: Time, _fabric: &mut Fabric<H, P>, _delivered: &[u64])
    where
        H: Header,
        P: SwitchProgram<H>,
    {
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn partition(&self) -> Option<Self> {
        Some(Self)
    }
}

impl<P: Probe> Probe for &mut P {
    const LATENCY: bool = P::LATENCY;
    const PACKETS: bool = P::PACKETS;
    const COUNTERS: bool = P::COUNTERS;
    const PHASES: bool = P::PHASES;

    fn wants_packets(&self) -> bool {
        (**self).wants_packets()
    }

    fn wants_phases(&self) -> bool {
        (**self).wants_phases()
    }

    fn on_flow(&mut self, record: &FlowRecord) {
        (**self).on_flow(record);
    }

    fn on_blame(&mut self, blame: &FlowBlame) {
        (**self).on_blame(blame);
    }

    fn on_withheld(&mut self, now: Time, arrival: &Arrival) {
        (**self).on_withheld(now, arrival);
    }

    fn progress_interval(&self) -> Option<Span> {
        (**self).progress_interval()
    }

    fn on_progress<'a>(&mut self, now: Time, open: impl Iterator<Item = &'a FlowRecord>) {
        (**self).on_progress(now, open);
    }

    fn on_gauge(&mut self, now: Time, host: NodeId, flow: Option<u32>, gauge: &Gauge) {
        (**self).on_gauge(now, host, flow, gauge);
    }

    fn on_deliver(&mut self, latency: Span, is_data: bool) {
        (**self).on_deliver(latency, is_data);
    }

    fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
        (**self).on_packet(passing);
    }

    fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
        (**self).on_port(event);
    }

    fn on_phases(&mut self, now: Time, end: NodeId, visit: impl FnOnce(&mut dyn FnMut(Phase))) {
        (**self).on_phases(now, end, visit);
    }

    fn on_counters(&mut self, now: Time, counters: &[(&'static str, u64)]) {
        (**self).on_counters(now, counters);
    }

    fn on_end<H, Q>(&mut self, now: Time, fabric: &mut Fabric<H, Q>)
    where
        H: Header,
        Q: SwitchProgram<H>,
    {
        (**self).on_end(now, fabric);
    }

    fn on_sample<H, Q>(&mut self, now: Time, fabric: &mut Fabric<H, Q>, delivered: &[u64])
    where
        H: Header,
        Q: SwitchProgram<H>,
    {
        (**self).on_sample(now, fabric, delivered);
    }
}
