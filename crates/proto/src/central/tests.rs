//! The controller and hosts that behave as its documentation requires, over a network that loses
//! and delays control messages, with hosts and controllers that crash.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use rampmeter_types::{Bytes, NodeId, Purpose, Rate, Rng, Span, Time};

use super::{Controller, ControllerConfig, FlowGrant, Order, Request, Schedule};
use crate::capton::tests::two_racks;
use crate::capton::{AnyScheduler, MinShare, SharingPolicy};
use crate::hyline;

/// One step of the simulation.
const STEP: Span = Span::from_us(1);
/// Steps from one message about a flow to the next request.
const RETRY: u64 = 100;

#[derive(Clone, Copy, Debug)]
struct Flow {
    dst: NodeId,
    remaining: Bytes,
    heard: u32,
    rate: Option<Rate>,
    /// The step of the last message about it.
    spoke: u64,
}

#[derive(Clone, Copy, Debug)]
enum Message<G> {
    Request(NodeId, Request),
    Done(NodeId, u32),
    Order(Order<G>),
}

struct World<S: Schedule> {
    rng: Rng,
    step: u64,
    loss: f64,
    controller: Controller<S>,
    hosts: Vec<BTreeMap<u32, Flow>>,
    is_alive: Vec<bool>,
    /// Messages in flight, with the step of their arrival.
    messages: VecDeque<(u64, Message<S::Grant>)>,
}

impl<S: Schedule> World<S> {
    fn now(&self) -> Time {
        Time::ZERO + STEP * self.step
    }

    fn send(&mut self, message: Message<S::Grant>) {
        // A message may be lost, or may arrive twice.
        for chance in [1.0 - self.loss, self.loss / 4.0] {
            if self.rng.bernoulli(chance) {
                let delay = 1 + self.rng.uniform_below(30) as u64;
                self.messages.push_back((self.step + delay, message));
            }
        }
    }

    fn request(&mut self, src: u32, number: u32) {
        let step = self.step;
        let flow = self.hosts[src as usize].get_mut(&number).unwrap();
        flow.spoke = step;
        let Flow { dst, remaining, heard: acked_order, .. } = *flow;
        self.send(Message::Request(
            NodeId::new(src),
            Request { number, dst, remaining, acked_order },
        ));
    }

    fn on_order(&mut self, Order { host, number, order, grant }: Order<S::Grant>) {
        let step = self.step;
        let Some(flow) = self.hosts[host.idx()].get_mut(&number) else {
            self.send(Message::Done(host, number));
            return;
        };
        flow.spoke = step;
        if order > flow.heard {
            (flow.heard, flow.rate) = (order, grant.map(FlowGrant::rate));
            if grant.is_none() {
                self.request(host.get(), number);
            }
        }
    }

    /// Hosts send for a step, and repeat requests.
    fn run_hosts(&mut self) {
        for src in 0..self.hosts.len() as u32 {
            let numbers: Vec<u32> = self.hosts[src as usize].keys().copied().collect();
            for number in numbers {
                let flow = self.hosts[src as usize].get_mut(&number).unwrap();
                let sent = flow.rate.map_or(Bytes::ZERO, |rate| rate.bytes_floor(STEP));
                flow.remaining = flow.remaining - sent.min(flow.remaining);
                if flow.remaining == Bytes::ZERO {
                    self.hosts[src as usize].remove(&number);
                    self.send(Message::Done(NodeId::new(src), number));
                } else if flow.spoke + RETRY <= self.step {
                    self.request(src, number);
                }
            }
        }
    }

    fn run(&mut self) {
        self.step += 1;
        let now = self.now();
        for _ in 0..self.messages.len() {
            let (at, message) = self.messages.pop_front().unwrap();
            let host = match message {
                Message::Request(src, _) | Message::Done(src, _) => src,
                Message::Order(order) => order.host,
            };
            match message {
                _ if at > self.step => self.messages.push_back((at, message)),
                _ if !self.is_alive[host.idx()] => {}
                Message::Request(src, request) => self.controller.handle_request(now, src, request),
                Message::Done(src, number) => self.controller.handle_done(now, src, number),
                Message::Order(order) => self.on_order(order),
            }
        }
        self.run_hosts();
        if self.controller.poll_timeout() <= now {
            self.controller.handle_timeout(now);
        }
        assert!(self.controller.poll_timeout() > now, "a deadline that has passed");
        while let Some(order) = self.controller.poll_order() {
            self.send(Message::Order(order));
        }
    }

    /// A host fails permanently.
    fn crash(&mut self, host: u32) {
        self.hosts[host as usize].clear();
        self.is_alive[host as usize] = false;
    }
}

/// Faults of a run.
#[derive(Clone, Copy, Debug)]
struct FaultScript {
    seed: u64,
    /// The share of control messages that are lost.
    loss: f64,
    /// A host that crashes, the step of its crash, and whether the controller is notified.
    crash: Option<(u32, u64, bool)>,
    /// The step at which the controller crashes.
    restart: Option<u64>,
}

fn mishaps() -> impl Strategy<Value = FaultScript> {
    let crash = proptest::option::of((0u32..8, 1u64..800, any::<bool>()));
    let all = (any::<u64>(), 0.0..0.5, crash, proptest::option::of(1u64..800));
    all.prop_map(|(seed, loss, crash, restart)| FaultScript { seed, loss, crash, restart })
}

/// Checks that every flow completes and no state remains, regardless of losses. `new` makes
/// schedulers for two racks of four hosts.
fn check<S: Schedule>(mishaps: FaultScript, new: impl Fn() -> S) -> Result<(), TestCaseError> {
    let lease = Span::from_us(40 * RETRY);
    let config = ControllerConfig {
        grace: Span::ZERO,
        query_timeout: Span::from_us(70),
        lease,
        flows_max: 64,
    };
    let mut world = World {
        rng: Rng::new(mishaps.seed, 0, Purpose::Test),
        step: 0,
        loss: mishaps.loss,
        controller: Controller::new(new(), config),
        hosts: vec![BTreeMap::new(); 8],
        is_alive: vec![true; 8],
        messages: VecDeque::new(),
    };
    for step in 0..800 {
        world.run();
        if step % 40 == 0 {
            let src = world.rng.uniform_below(8) as u32;
            let dst = NodeId::new((src + 1 + world.rng.uniform_below(7) as u32) % 8);
            let remaining = Bytes::new(1_000 + world.rng.uniform_below(200_000) as u64);
            if world.is_alive[src as usize] {
                let flow = Flow { dst, remaining, heard: 0, rate: None, spoke: 0 };
                world.hosts[src as usize].insert(step as u32, flow);
                world.request(src, step as u32);
            }
        }
        if let Some((host, at, is_told)) = mishaps.crash
            && at == step
        {
            world.crash(host);
            if is_told {
                world.controller.forget(world.now(), NodeId::new(host));
            }
        }
        if mishaps.restart == Some(step) {
            world.controller = Controller::new(new(), config);
        }
    }
    // 20 flows take 3.2 ms at most one after another; a message gets through in a few attempts.
    for _ in 0..100_000 {
        let is_idle = world.hosts.iter().all(BTreeMap::is_empty);
        if is_idle && world.controller.flows() == 0 && world.messages.is_empty() {
            break;
        }
        world.run();
    }
    prop_assert!(world.hosts.iter().all(BTreeMap::is_empty), "unfinished: {:?}", world.hosts);
    prop_assert_eq!(world.controller.flows(), 0);
    Ok(())
}

proptest! {
    #[test]
    fn captons_flows_complete_under_any_loss_without_leftover_state(
        mishaps in mishaps(),
        is_split in any::<bool>(),
    ) {
        let split = SharingPolicy::Split(MinShare::from_milli(100).unwrap());
        let sharing = if is_split { split } else { SharingPolicy::Serial };
        check(mishaps, || AnyScheduler::new(two_racks(), sharing))?;
    }

    #[test]
    fn hylines_flows_complete_under_any_loss_without_leftover_state(mishaps in mishaps()) {
        check(mishaps, || hyline::tests::new(10))?;
    }
}
