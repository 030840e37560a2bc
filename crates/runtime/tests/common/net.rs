//! A network in memory with a queue before each receiver, and applications without memory.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rampmeter_runtime::app::Admission;
use rampmeter_runtime::datapath::{ArrivedPacket, Route};
use rampmeter_runtime::wire::Envelope;
use rampmeter_runtime::{Applications, Assembly, Datapath, Outcome, Payload, Submission, Ticket};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Bytes, NodeId, Rate, Rng, Span, TenantId, Time};

/// Delay from a node to any other.
pub(crate) const DELAY: Span = Span::from_us(20);
/// Rate of all links.
pub(crate) const RATE: Rate = Rate::from_gbps(10);
/// Maximum delay of a packet in the queue to its receiver: 500 KB. Further packets are dropped.
const QUEUE: Span = Span::from_us(400);

/// A message of a number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizedPayload(pub(crate) usize);

impl Payload for SizedPayload {
    fn size(&self) -> usize {
        self.0
    }

    fn copy_to(&self, _offset: usize, out: &mut [u8]) {
        out.fill(1);
    }
}

impl Assembly for SizedPayload {
    fn write(&mut self, _offset: usize, _bytes: &[u8]) {}
}

/// Outcomes of the messages of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageOutcomes {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) delivered: u64,
    /// True while the program that receives the messages is not attached.
    pub(crate) is_gone: bool,
    /// Times at which the pings were submitted, and their completion times.
    pub(crate) pings: Vec<(Time, Span)>,
    pub(crate) pings_failed: u64,
}

/// Pings of a program next to the one with many messages: one at a time, to one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    pub(crate) to: NodeId,
    /// Time of the next ping, or of the one in flight.
    pub(crate) at: Time,
    pub(crate) is_in_flight: bool,
}

/// Time from the completion of a ping to the next.
const PING_EVERY: Span = Span::from_us(1_000);
/// Ticket and application number of pings.
const PING: u32 = u32::MAX;

/// Applications of a node: one has `remaining` messages, round-robin for some nodes; another may
/// ping.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) to: Vec<NodeId>,
    pub(crate) remaining: u64,
    /// Bytes of each.
    pub(crate) size: usize,
    /// Number of programs that send them, round-robin.
    pub(crate) programs: u32,
    pub(crate) pings: Option<Pings>,
    /// Offset of the node's clock from the time of the simulation.
    pub(crate) shift: Span,
    pub(crate) links: Rc<RefCell<Links>>,
    pub(crate) fates: Rc<RefCell<MessageOutcomes>>,
}

impl Source {
    fn next_ping(&self) -> Time {
        self.pings.filter(|pings| !pings.is_in_flight).map_or(Time::NEVER, |pings| pings.at)
    }
}

impl Applications for Source {
    type Payload = SizedPayload;
    type Assembly = SizedPayload;

    fn poll_submission(&mut self) -> Option<Submission<SizedPayload>> {
        let (tenant, deadline, payload) = (TenantId::new(0), Time::NEVER, SizedPayload(self.size));
        let (now, ping_at) = (self.links.borrow().now, self.next_ping());
        if let Some(pings) = self.pings.as_mut().filter(|_| ping_at <= now) {
            (pings.at, pings.is_in_flight) = (now, true);
            let (app, service, ticket, dst) = (PING, 3, Ticket(0), pings.to);
            return Some(Submission { app, ticket, dst, service, deadline, tenant, payload });
        }
        self.remaining = self.remaining.checked_sub(1)?;
        let dst = self.to[self.remaining as usize % self.to.len()];
        let app = self.remaining as u32 % self.programs;
        let (service, ticket) = (2, Ticket(self.remaining));
        Some(Submission { app, ticket, dst, service, deadline, tenant, payload })
    }

    fn next_submission(&self) -> Time {
        if self.remaining > 0 { Time::ZERO } else { self.next_ping().saturating_add(self.shift) }
    }

    fn finish(&mut self, app: u32, _ticket: Ticket, outcome: Outcome) {
        let fates = &mut *self.fates.borrow_mut();
        if let Some(pings) = self.pings.as_mut().filter(|_| app == PING) {
            let now = self.links.borrow().now;
            match outcome {
                Outcome::Completed => fates.pings.push((pings.at, now - pings.at)),
                Outcome::Failed(_) => fates.pings_failed += 1,
            }
            (pings.at, pings.is_in_flight) = (now + PING_EVERY, false);
            return;
        }
        match outcome {
            Outcome::Completed => fates.completed += 1,
            Outcome::Failed(_) => fates.failed += 1,
        }
    }

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        if self.fates.borrow().is_gone { Admission::Absent } else { Admission::Accept }
    }

    fn open(&mut self, _service: u16, size: u32) -> SizedPayload {
        SizedPayload(size as usize)
    }

    fn deliver(&mut self, _from: NodeId, service: u16, _message: SizedPayload) {
        if service == 3 {
            return;
        }
        self.fates.borrow_mut().delivered += 1;
    }

    fn arm(&mut self) -> bool {
        self.remaining > 0
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Packets in flight, by their receivers.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) now: Time,
    queues: Vec<VecDeque<(Time, Vec<u8>)>>,
    /// Time at which the queue to each node becomes empty.
    idle_at: Vec<Time>,
    pub(crate) dropped: u64,
    /// Datagrams that each node has sent and received.
    pub(crate) handled: Vec<u64>,
    pub(crate) mutations: Option<Mutations>,
    spare: Vec<Vec<u8>>,
}

impl Links {
    pub(crate) fn new(n: usize) -> Self {
        let (queues, idle_at) = (vec![VecDeque::new(); n], vec![Time::ZERO; n]);
        Self { queues, idle_at, handled: vec![0; n], ..Self::default() }
    }

    /// Returns the arrival time of the next packet at a node.
    pub(crate) fn next_to(&self, node: usize) -> Time {
        self.queues[node].front().map_or(Time::NEVER, |(at, _)| *at)
    }
}

/// Mutated copies that follow the datagrams to a node, with other bytes after the envelope.
#[derive(Debug)]
pub(crate) struct Mutations {
    pub(crate) to: NodeId,
    pub(crate) rng: Rng,
}

/// Number of copies of each datagram.
const COPIES: usize = 3;

impl Mutations {
    /// Changes up to four bytes of a datagram, most to any value.
    fn mutate(&mut self, bytes: &mut [u8]) {
        let Some(len) = bytes.len().checked_sub(Envelope::CONTROL_LEN).filter(|&len| len > 0)
        else {
            return;
        };
        for _ in 0..1 + self.rng.uniform_below(4) {
            let value =
                [0, 0xff, self.rng.bits() as u8, self.rng.bits() as u8][self.rng.uniform_below(4)];
            bytes[Envelope::CONTROL_LEN + self.rng.uniform_below(len)] = value;
        }
    }
}

/// A node's access to the network, and the offset of its clock.
#[derive(Debug)]
pub(crate) struct Link(pub(crate) Rc<RefCell<Links>>, pub(crate) NodeId, pub(crate) Span);

const DATAGRAM_MAX: usize = 1_472;

impl Datapath for Link {
    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    fn overhead(&self) -> usize {
        28
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let links = &mut *self.0.borrow_mut();
        links.handled[self.1.idx()] += 1;
        let mut bytes = links.spare.pop().unwrap_or_default();
        bytes.resize(DATAGRAM_MAX, 0);
        let len = write(&mut bytes);
        bytes.truncate(len);
        let dst = route.dst.idx();
        let begin = links.idle_at[dst].max(links.now + DELAY);
        if begin > links.now + DELAY + QUEUE {
            links.dropped += 1;
            links.spare.push(bytes);
            return Ok(());
        }
        let at = begin + RATE.tx_time(Bytes::new((len + self.overhead()) as u64));
        links.idle_at[dst] = at;
        if let Some(mutations) = links.mutations.as_mut().filter(|of| of.to == route.dst) {
            let copies: [Vec<u8>; COPIES] = std::array::from_fn(|_| {
                let mut copy = bytes.clone();
                mutations.mutate(&mut copy);
                copy
            });
            links.queues[dst].push_back((at, bytes));
            links.queues[dst].extend(copies.map(|copy| (at, copy)));
        } else {
            links.queues[dst].push_back((at, bytes));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let mut n = 0;
        while n < 64 && self.next_arrival() <= now {
            let packet = self.0.borrow_mut().queues[self.1.idx()].pop_front();
            let Some((_, bytes)) = packet else { break };
            each(ArrivedPacket { bytes: &bytes, from: None, rail: 0, marks: Marks::NONE });
            let links = &mut *self.0.borrow_mut();
            links.spare.push(bytes);
            links.handled[self.1.idx()] += 1;
            n += 1;
        }
        Ok(n)
    }

    fn next_arrival(&self) -> Time {
        self.0.borrow().next_to(self.1.idx()).saturating_add(self.2)
    }
}
