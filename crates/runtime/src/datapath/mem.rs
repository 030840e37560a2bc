//! Network in memory, on simulated time, with configurable loss, duplication and reordering.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::rc::Rc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Purpose, Rng, Span, Time};

use super::{ArrivedPacket, Datapath, Route};

/// Impairments of packets, each independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairments {
    /// Delay from node to node.
    pub delay: Span,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet is delayed by up to ten times the delay.
    pub reorder: f64,
}

impl Impairments {
    /// Returns a network without impairments.
    pub fn fair(delay: Span) -> Self {
        Self { delay, loss: 0.0, duplicate: 0.0, reorder: 0.0 }
    }
}

/// A packet in flight: its arrival time, its number, its traffic class and its bytes.
type InFlight = Reverse<(Time, u64, u8, Vec<u8>)>;

#[derive(Debug)]
struct MemNetwork {
    impairments: Impairments,
    rng: Rng,
    now: Time,
    number: u64,
    in_flight: Vec<BinaryHeap<InFlight>>,
    /// True for nodes that are attached to the network.
    is_up: Vec<bool>,
}

/// Network: creates a datapath for each node.
#[derive(Clone, Debug)]
pub struct MemNet(Rc<RefCell<MemNetwork>>);

impl MemNet {
    /// Creates a network of `n_nodes` nodes.
    pub fn new(n_nodes: usize, impairments: Impairments, seed: u64) -> Self {
        Self(Rc::new(RefCell::new(MemNetwork {
            impairments,
            rng: Rng::new(seed, 0, Purpose::Fault),
            now: Time::ZERO,
            number: 0,
            in_flight: vec![BinaryHeap::new(); n_nodes],
            is_up: vec![true; n_nodes],
        })))
    }

    /// Returns the datapath of a node.
    pub fn datapath(&self, node: NodeId) -> MemDatapath {
        MemDatapath { net: self.clone(), node }
    }

    /// Sets the network's time, which is the sending time of packets.
    pub fn set_now(&self, now: Time) {
        self.0.borrow_mut().now = now;
    }

    /// Sets a node's link up or down.
    pub fn set_up(&self, node: NodeId, is_up: bool) {
        self.0.borrow_mut().is_up[node.idx()] = is_up;
    }
}

/// One node's access to a [`MemNet`].
#[derive(Debug)]
pub struct MemDatapath {
    net: MemNet,
    node: NodeId,
}

/// Maximum bytes of a datagram: those of a UDP datagram on an Ethernet.
const DATAGRAM_MAX: usize = 1_472;

impl Datapath for MemDatapath {
    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    fn overhead(&self) -> usize {
        28
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let mut bytes = vec![0; DATAGRAM_MAX];
        let len = write(&mut bytes);
        bytes.truncate(len);
        let net = &mut *self.net.0.borrow_mut();
        let is_connected = net.is_up[self.node.idx()] && net.is_up[route.dst.idx()];
        if !is_connected || net.rng.bernoulli(net.impairments.loss) {
            return Ok(());
        }
        let copies = 1 + u32::from(net.rng.bernoulli(net.impairments.duplicate));
        for _ in 0..copies {
            let mut delay = net.impairments.delay;
            if net.rng.bernoulli(net.impairments.reorder) {
                delay += delay * net.rng.uniform_below(10) as u64;
            }
            net.number += 1;
            let (at, number) = (net.now + delay, net.number);
            net.in_flight[route.dst.idx()].push(Reverse((
                at,
                number,
                route.traffic_class(),
                bytes.clone(),
            )));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let mut n = 0;
        while self.next_arrival() <= now {
            let arrived = self.net.0.borrow_mut().in_flight[self.node.idx()].pop();
            let Some(Reverse((.., class, bytes))) = arrived else { break };
            let marks = Marks::from_traffic_class(class);
            each(ArrivedPacket { bytes: &bytes, from: None, rail: 0, marks });
            n += 1;
        }
        Ok(n)
    }

    fn next_arrival(&self) -> Time {
        let net = self.net.0.borrow();
        net.in_flight[self.node.idx()].peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }
}
