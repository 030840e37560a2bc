//! A network in memory with a queue before each receiver, and applications that take none.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rampmeter_core::packet::Marks;
use rampmeter_core::{Bytes, NodeId, Rate, Span, TenantId, Time};
use rampmeter_runtime::app::Admission;
use rampmeter_runtime::datapath::{Arrived, Route};
use rampmeter_runtime::{Applications, Assembly, Datapath, Outcome, Payload, Submission, Ticket};

/// From a node to any other.
pub(crate) const DELAY: Span = Span::from_us(20);
/// Rate of all links.
pub(crate) const RATE: Rate = Rate::from_gbps(10);
/// How long a packet waits at most for the link to its receiver: 500 KB. Others are dropped.
const QUEUE: Span = Span::from_us(400);
/// Bytes of a message.
const SIZE: usize = 200;

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blank;

impl Payload for Blank {
    fn size(&self) -> usize {
        SIZE
    }

    fn copy_to(&self, _offset: usize, out: &mut [u8]) {
        out.fill(1);
    }
}

impl Assembly for Blank {
    fn write(&mut self, _offset: usize, _bytes: &[u8]) {}
}

/// What has become of the messages of all nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fates {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) delivered: u64,
}

/// The application of a node, which has `left` messages for each of some nodes in turn.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) to: Vec<NodeId>,
    pub(crate) left: u64,
    pub(crate) fates: Rc<RefCell<Fates>>,
}

impl Applications for Source {
    type Payload = Blank;
    type Assembly = Blank;

    fn poll_submission(&mut self) -> Option<Submission<Blank>> {
        self.left = self.left.checked_sub(1)?;
        let dst = self.to[self.left as usize % self.to.len()];
        let (app, service, tenant) = (0, 2, TenantId::new(0));
        let (ticket, deadline, payload) = (Ticket(self.left), Time::NEVER, Blank);
        Some(Submission { app, ticket, dst, service, deadline, tenant, payload })
    }

    fn next_submission(&self) -> Time {
        if self.left > 0 { Time::ZERO } else { Time::NEVER }
    }

    fn finish(&mut self, _app: u32, _ticket: Ticket, outcome: Outcome) {
        let fates = &mut *self.fates.borrow_mut();
        match outcome {
            Outcome::Completed => fates.completed += 1,
            Outcome::Failed(_) => fates.failed += 1,
        }
    }

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Accept
    }

    fn open(&mut self, _service: u16, _size: u32) -> Blank {
        Blank
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, _message: Blank) {
        self.fates.borrow_mut().delivered += 1;
    }

    fn arm(&mut self) -> bool {
        self.left > 0
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Packets under way, by their receivers.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) now: Time,
    queues: Vec<VecDeque<(Time, Vec<u8>)>>,
    /// When the link to each node has carried what is in its queue.
    idle_at: Vec<Time>,
    pub(crate) dropped: u64,
    spare: Vec<Vec<u8>>,
}

impl Links {
    pub(crate) fn new(n: usize) -> Self {
        Self { queues: vec![VecDeque::new(); n], idle_at: vec![Time::ZERO; n], ..Self::default() }
    }

    /// When the next packet is at a node.
    pub(crate) fn next_to(&self, node: usize) -> Time {
        self.queues[node].front().map_or(Time::NEVER, |(at, _)| *at)
    }
}

/// A node's access to the network.
#[derive(Debug)]
pub(crate) struct Link(pub(crate) Rc<RefCell<Links>>, pub(crate) NodeId);

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
        links.queues[dst].push_back((at, bytes));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(Arrived<'_>)) -> io::Result<usize> {
        let mut n = 0;
        while n < 64 && self.0.borrow().next_to(self.1.idx()) <= now {
            let packet = self.0.borrow_mut().queues[self.1.idx()].pop_front();
            let Some((_, bytes)) = packet else { break };
            each(Arrived { bytes: &bytes, from: None, rail: 0, marks: Marks::NONE });
            self.0.borrow_mut().spare.push(bytes);
            n += 1;
        }
        Ok(n)
    }

    fn next_arrival(&self) -> Time {
        self.0.borrow().next_to(self.1.idx())
    }
}
