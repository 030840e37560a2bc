//! The incremental scheduler against figure 6, on random networks, flows and changes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rampmeter_types::{Bytes, NodeId, Rate, Span, Time};

use super::super::figure6::{PendingFlow, schedule_by_figure6};
use super::super::network::Network;
use super::super::scheduler::Scheduler;
use super::{any_network, capacity};
use crate::central::remaining::{RemainingLine, RemainingSize};
use crate::central::{Arrival, Change, FlowId};

#[derive(Clone, Debug)]
enum Step {
    /// A flow of this many bytes, between the hosts of these numbers modulo the number of hosts.
    Arrive(u32, u32, u64),
    /// The flow of this number modulo the number of flows completes.
    Complete(usize),
    /// The flow that is predicted to complete next does so.
    CompleteNext,
    Correct(usize, u64),
    Capacity(usize, Option<Rate>),
    Advance(Span),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u32..100, 0u32..100, 0u64..2_000).prop_map(|(a, b, n)| Step::Arrive(a, b, n)),
        2 => (0usize..100).prop_map(Step::Complete),
        3 => Just(Step::CompleteNext),
        2 => (0usize..100, 0u64..2_000).prop_map(|(n, left)| Step::Correct(n, left)),
        1 => (0usize..100, capacity(10)).prop_map(|(n, rate)| Step::Capacity(n, rate)),
        4 => (0u64..500).prop_map(|ns| Step::Advance(Span::from_ns(ns))),
    ];
    proptest::collection::vec(step, 1..80)
}

/// All flows, scheduled by figure 6 after each change, and equation 1 from change to change.
struct Model {
    network: Network,
    now: Time,
    /// Flows in the order of their arrival, with their rates.
    flows: Vec<(FlowId, PendingFlow, Option<Rate>)>,
    arrivals: u64,
}

impl Model {
    fn advance(&mut self, now: Time) {
        for (_, flow, rate) in &mut self.flows {
            if let Some(rate) = *rate {
                flow.remaining =
                    RemainingLine::new(flow.remaining, rate, self.now).remaining(rate, now);
            }
        }
        self.now = now;
    }

    fn schedule(&mut self) {
        let flows: Vec<PendingFlow> = self.flows.iter().map(|&(_, flow, _)| flow).collect();
        for (flow, rate) in self.flows.iter_mut().zip(schedule_by_figure6(&self.network, &flows)) {
            flow.2 = rate;
        }
    }

    /// Does a step in both, and returns the results of the scheduler.
    fn step(&mut self, scheduler: &mut Scheduler, step: &Step) -> Vec<Change<Rate>> {
        let pick = |flows: &Vec<_>, n: usize| (!flows.is_empty()).then(|| n % flows.len());
        let changes = match *step {
            Step::Arrive(src, dst, bytes) => {
                let n = self.network.n_hosts();
                let (src, away) = (src % n, dst % (n - 1));
                let (src, dst) = (NodeId::new(src), NodeId::new((src + 1 + away) % n));
                let (id, remaining) = (FlowId(self.arrivals), Bytes::new(bytes));
                self.arrivals += 1;
                self.flows.push((
                    id,
                    PendingFlow { src, dst, remaining: RemainingSize::from_bytes(remaining) },
                    None,
                ));
                scheduler.arrive(Arrival { id, src, dst, remaining })
            }
            Step::Complete(n) => {
                let Some(n) = pick(&self.flows, n) else { return Vec::new() };
                let (id, ..) = self.flows.remove(n);
                scheduler.complete(id)
            }
            Step::CompleteNext => {
                let Some((end, id)) = scheduler.next_completion() else { return Vec::new() };
                scheduler.advance(end);
                self.advance(end.max(self.now));
                self.flows.retain(|flow| flow.0 != id);
                scheduler.complete(id)
            }
            Step::Correct(n, bytes) => {
                let Some(n) = pick(&self.flows, n) else { return Vec::new() };
                self.flows[n].1.remaining = RemainingSize::from_bytes(Bytes::new(bytes));
                scheduler.correct(self.flows[n].0, Bytes::new(bytes))
            }
            Step::Capacity(n, capacity) => {
                let link = self.network.links().nth(n % self.network.n_links()).unwrap();
                self.network.set_capacity(link, capacity);
                scheduler.set_capacity(link, capacity)
            }
            Step::Advance(span) => {
                scheduler.advance(self.now + span);
                self.advance(self.now + span);
                &[]
            }
        };
        let changes = changes.to_vec();
        self.schedule();
        changes
    }

    /// The earliest end of a granted flow.
    fn next_completion(&self) -> Option<Time> {
        let ends = self.flows.iter().filter_map(|&(_, flow, rate)| {
            let rate = rate?;
            Some(RemainingLine::new(flow.remaining, rate, self.now).end(rate))
        });
        ends.min()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_incremental_scheduler_does_as_figure_6_does(
        network in any_network(),
        steps in steps(),
    ) {
        let mut scheduler = Scheduler::new(network.clone());
        let (now, flows, arrivals) = (Time::ZERO, Vec::new(), 0);
        let mut model = Model { network, now, flows, arrivals };
        // The state of hosts after the changes that they have received.
        let mut ordered: BTreeMap<FlowId, Rate> = BTreeMap::new();
        for step in &steps {
            for Change { flow, grant: rate } in model.step(&mut scheduler, step) {
                let before = match rate {
                    Some(rate) => ordered.insert(flow, rate),
                    None => ordered.remove(&flow),
                };
                prop_assert_ne!(before, rate, "{:?} is sent no new rate", flow);
            }
            ordered.retain(|id, _| model.flows.iter().any(|flow| flow.0 == *id));
            prop_assert_eq!(scheduler.len(), model.flows.len());
            for &(id, flow, rate) in &model.flows {
                prop_assert_eq!(scheduler.rate(id), rate, "{:?} {:?} after {:?}", id, flow, step);
                prop_assert_eq!(ordered.get(&id).copied(), rate, "{:?} was sent another rate", id);
                prop_assert_eq!(scheduler.remaining(id), Some(flow.remaining));
            }
            let next = scheduler.next_completion();
            prop_assert_eq!(next.map(|(end, _)| end), model.next_completion());
        }
    }

    /// The greedy pass is maximal: a flow that is stopped has a link without room.
    #[test]
    fn no_link_carries_too_much_no_host_two_flows_and_no_flow_waits_for_nothing(
        network in any_network(),
        ends in proptest::collection::vec((0u32..100, 0u32..100, 0u64..2_000), 0..60),
    ) {
        let n = network.n_hosts();
        let pending = ends.into_iter().map(|(src, away, bytes)| {
            let (src, dst) = (src % n, (src + 1 + away % (n - 1)) % n);
            let (src, dst) = (NodeId::new(src % n), NodeId::new(dst));
            PendingFlow { src, dst, remaining: RemainingSize::from_bytes(Bytes::new(bytes)) }
        });
        let flows: Vec<PendingFlow> = pending.collect();
        let rates = schedule_by_figure6(&network, &flows);
        let mut in_use = vec![0; network.n_links()];
        let mut flows_on = vec![0; network.n_links()];
        for (flow, rate) in flows.iter().zip(&rates) {
            for link in network.path(flow.src, flow.dst).links() {
                in_use[link.index()] += rate.map_or(0, Rate::as_bps);
                flows_on[link.index()] += u32::from(rate.is_some());
            }
        }
        for link in network.links() {
            let capacity = network.capacity(link).map_or(0, Rate::as_bps);
            prop_assert!(in_use[link.index()] <= capacity, "{:?} is overfull", link);
            prop_assert!(!network.is_access(link) || flows_on[link.index()] <= 1);
        }
        for (flow, _) in flows.iter().zip(&rates).filter(|(_, rate)| rate.is_none()) {
            let path = network.path(flow.src, flow.dst);
            let Some(rate) = network.rate(&path) else { continue };
            let is_full = path.links().iter().any(|&link| {
                let capacity = network.capacity(link).map_or(0, Rate::as_bps);
                in_use[link.index()] + rate.as_bps() > capacity
                    || network.is_access(link) && flows_on[link.index()] == 1
            });
            prop_assert!(is_full, "{:?} waits for nothing", flow);
        }
    }
}
