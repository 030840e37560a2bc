//! Processor time a message where many wait: 200 B each, submitted at once, at both ends together.
//!
//!     cargo run --release -p rampmeter-runtime --example depth [TRANSPORT] [out|in|one|sim] [MESSAGES ...]
//!
//! In memory, on simulated time; queues of 500 KB at the receivers. `out`: one node sends to 16. `in`: 16 send to one.
//! `one`: one sends to one, of which only 65 536 may be under way. Then as many flows of a pair in the
//! simulator, from a tenth of the least number up to 100 000.

#![allow(clippy::print_stdout, reason = "a program")]

mod net;
mod simulated;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use net::{DELAY, Fates, Link, Links, RATE, Source};
use rampmeter_core::fabric::Spray;
use rampmeter_core::{Bytes, Endpoint, FabricFacts, NodeId, Rate, Span, Time};
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::transport::{Place, Site};
use rampmeter_proto::{Builtin, OnHosts, Transport};
use rampmeter_runtime::wire::{Incarnation, TransportId};
use rampmeter_runtime::{Agreement, Node, NodeConfig};
use rustix::time::{ClockId, clock_gettime};

const PEERS: u32 = 16;
/// Messages that are not over by then are lost.
const LIMIT: Span = Span::from_us(60_000_000);

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Out,
    In,
    One,
}

impl Shape {
    fn destinations(self, node: u32) -> Vec<NodeId> {
        match (self, node) {
            (Shape::Out, 0) => (1..=PEERS).map(NodeId::new).collect(),
            (Shape::In, 1..=PEERS) => vec![NodeId::new(0)],
            (Shape::One, 0) => vec![NodeId::new(1)],
            _ => Vec::new(),
        }
    }
}

/// A node whose endpoint is not known.
trait Turns {
    fn turn(&mut self, now: Time) -> Time;
    fn excess(&self) -> u64;
}

impl<E: Endpoint> Turns for Node<E, Link, Source> {
    fn turn(&mut self, now: Time) -> Time {
        Node::turn(self, now).expect("no datapath fails")
    }

    fn excess(&self) -> u64 {
        self.stats().arriving_excess
    }
}

fn node<E: Endpoint + 'static>(
    node: NodeId,
    n: usize,
    protocol: &Arc<E::Config>,
    rate: Rate,
    links: &Rc<RefCell<Links>>,
    source: Source,
) -> Box<dyn Turns> {
    let config = NodeConfig {
        node,
        transport: TransportId(1),
        incarnation: Incarnation::new(1 + node.get()),
        rate,
        burst: Bytes::new(12_000),
        spray: Spray::Random,
        run: 1,
        gather: Span::ZERO,
        busy_poll: Span::ZERO,
        agreement: Agreement::default(),
        message_max: NodeConfig::MESSAGE_MAX,
        patience: LIMIT,
        peers: vec![Some(None); n],
        seed: 1,
    };
    let link = Link(Rc::clone(links), node);
    Box::new(Node::<E, _, _>::new(config, Arc::clone(protocol), link, source, Time::ZERO))
}

/// What a run has come to.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    fates: Fates,
    excess: u64,
    dropped: u64,
    ended: Time,
    processor: Span,
}

fn run<T: Transport>(shape: Shape, messages: u64) -> Outcome {
    let rate = RATE;
    let (n_hosts, control_rtt) = (1 + PEERS, DELAY * 2);
    let data_rtt = control_rtt + rate.tx_time(Bytes::new(1_500)) * 4;
    let facts = FabricFacts {
        n_hosts,
        access_rate: rate,
        data_rtt,
        control_rtt,
        n_pods: 0,
        patience: Span::ZERO,
    };
    let keys = T::Keys::default();
    let n = n_hosts as usize + T::needs(&keys, &facts).arbiters.len();
    let place = Place::Hosts { payload: Bytes::new(1_360), header: Bytes::new(100) };
    let config = T::configure(keys, &Site { facts, place, lower: None });
    let config = Arc::new(config.expect("a transport of hosts"));
    let links = Rc::new(RefCell::new(Links::new(n)));
    let fates = Rc::new(RefCell::new(Fates::default()));
    let make = |number: u32| {
        let to = shape.destinations(number);
        let left = match shape {
            _ if to.is_empty() => 0,
            Shape::In => messages / u64::from(PEERS),
            _ => messages,
        };
        let (id, source) = (NodeId::new(number), Source { to, left, fates: Rc::clone(&fates) });
        match number < n_hosts {
            true => node::<T::Host>(id, n, &config, rate, &links, source),
            false => node::<T::Arbiter>(id, n, &config, rate, &links, source),
        }
    };
    let mut nodes: Vec<_> = (0..n as u32).map(make).collect();
    let before = processor_time();
    let ended = drive(&mut nodes, &links, &fates, messages);
    let processor = processor_time() - before;
    let excess = nodes.iter().map(|node| node.excess()).sum();
    let (fates, dropped) = (*fates.borrow(), links.borrow().dropped);
    Outcome { fates, excess, dropped, ended, processor }
}

/// Runs until all messages are over; returns when that is.
fn drive(
    nodes: &mut [Box<dyn Turns>],
    links: &Rc<RefCell<Links>>,
    fates: &Rc<RefCell<Fates>>,
    messages: u64,
) -> Time {
    let mut next = vec![Time::ZERO; nodes.len()];
    loop {
        let due = |node: usize| next[node].min(links.borrow().next_to(node));
        let (at, node) = (0..nodes.len()).map(|node| (due(node), node)).min().expect("nodes");
        let Fates { completed, failed, .. } = *fates.borrow();
        let now = links.borrow().now.max(at);
        if completed + failed == messages || now > Time::ZERO + LIMIT {
            return links.borrow().now;
        }
        links.borrow_mut().now = now;
        next[node] = nodes[node].turn(now);
    }
}

fn processor_time() -> Time {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Time::from_ps((time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) * 1_000)
}

/// Runs every transport, or one, with each number of messages.
struct Table {
    only: Option<String>,
    shape: Option<String>,
    messages: Vec<u64>,
}

impl Visitor for Table {
    fn transport<T: Transport>(&mut self) {
        if self.only.as_ref().is_some_and(|only| only != T::NAME) {
            return;
        }
        let is_wanted = |name: &str| self.shape.as_ref().is_none_or(|shape| shape == name);
        let shapes = [("out", Shape::Out), ("in", Shape::In), ("one", Shape::One)];
        for (name, shape) in shapes.into_iter().filter(|(name, _)| is_wanted(name)) {
            let mut first = None;
            for &n in self
                .messages
                .iter()
                .filter(|&&n| shape != Shape::One || n <= 65_000 || self.shape.is_some())
            {
                let n = n / 16 * 16;
                let Outcome { fates, excess, dropped, ended, processor } = run::<T>(shape, n);
                let ns = processor.as_ps() as f64 / 1_000.0 / n as f64;
                let ratio = ns / *first.get_or_insert(ns);
                let Fates { completed, failed, delivered } = fates;
                let ms = ended.as_ps() / 1_000_000_000;
                println!(
                    "{:<12} {name:<4} {n:>8} messages: {ns:>7.0} ns each, {ratio:.2}; {completed} \
                     completed, {failed} failed, {delivered} delivered, {excess} too many, {dropped} packets dropped, {ms} ms",
                    T::NAME,
                );
            }
        }
        if !is_wanted("sim") {
            return;
        }
        let least = self.messages.first().map_or(1_000, |n| n / 10);
        let mut first = None;
        let numbers = [least, least * 10, 100_000];
        for flows in numbers.into_iter().filter(|&n| n < 100_000 || n == 100_000 && least < 10_000)
        {
            let (processor, completed) = simulated::pair::<T>(flows);
            let ns = processor.as_ps() as f64 / 1_000.0 / flows as f64;
            let ratio = ns / *first.get_or_insert(ns);
            println!(
                "{:<12} sim  {flows:>8} flows:    {ns:>7.0} ns each, {ratio:.2}; {completed} completed",
                T::NAME,
            );
        }
    }
}

fn main() {
    let (mut only, mut shape, mut messages) = (None, None, Vec::new());
    for arg in std::env::args().skip(1) {
        match arg.parse() {
            Ok(n) => messages.push(n),
            Err(_) if ["out", "in", "one", "sim"].contains(&arg.as_str()) => shape = Some(arg),
            Err(_) => only = Some(arg),
        }
    }
    if messages.is_empty() {
        messages = vec![10_000, 100_000, 1_000_000];
    }
    OnHosts::<Builtin>::visit(&mut Table { only, shape, messages });
}
