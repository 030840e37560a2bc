//! The messages of a plan, for the simulator and the ideal alike.

use rampmeter_metrics::blame::ReleaseRow;
use rampmeter_sim::{Arrival, Source};
use rampmeter_types::{Bytes, TenantId, Time};
use rampmeter_workload::{Flow, FlowSource, Releases, ValidWorkload};

use super::collective::{CollectiveRound, Rounds};
use super::deadlines::Deadlines;
use super::ideals::Ideals;
use super::rpc::{CallTracker, RpcSummary};
use rampmeter_types::Segmentation;

/// The flows of a plan: those without dependencies, which are drawn one by one, and those of its
/// graph. Flows of the graph have the first numbers.
pub(crate) struct PlanSource {
    flows: FlowSource,
    next_number: u32,
    releases: Option<Releases>,
    rounds: Rounds,
    calls: CallTracker,
    deadlines: Deadlines,
    payload: Bytes,
    /// The number of transports to which the flows of one tenant are dealt out in turn.
    n_transports: Option<u32>,
    /// Causes of the releases of flows, if they are kept.
    pub(crate) release_rows: Vec<ReleaseRow>,
    /// Packets of all flows submitted, and of the one that is next.
    pub(crate) offered_packets: u64,
}

impl PlanSource {
    /// Returns the messages of `workload` under `seed`. `segmentations` has the packets of each
    /// transport.
    pub(crate) fn new(
        workload: &ValidWorkload,
        seed: u64,
        segmentations: &[Segmentation],
        deadlines: Deadlines,
    ) -> Self {
        let graph = workload.graph(seed);
        Self {
            flows: workload.flows(seed),
            next_number: graph.as_ref().map_or(0, |graph| graph.len()),
            rounds: graph.as_deref().map(Rounds::new).unwrap_or_default(),
            calls: graph.clone().map(CallTracker::new).unwrap_or_default(),
            releases: graph.map(Releases::new),
            deadlines,
            payload: segmentations[0].payload,
            n_transports: match segmentations.len() as u32 {
                1 => None,
                n => (!workload.has_tenants()).then_some(n),
            },
            release_rows: Vec::new(),
            offered_packets: 0,
        }
    }

    /// Keeps the causes of releases in `release_rows`.
    pub(crate) fn keep_causes(&mut self) {
        if let Some(releases) = &mut self.releases {
            releases.keep_causes();
        }
    }

    /// Returns the results of the rounds of collectives, with their bounds by the ideals of flows.
    pub(crate) fn collectives(&self, ideals: &mut Ideals) -> Vec<CollectiveRound> {
        let graph = self.releases.as_ref().map(Releases::graph);
        graph.map_or_else(Vec::new, |graph| self.rounds.results(graph, ideals))
    }

    /// Returns the times of calls, with their bounds by the ideals of flows.
    pub(crate) fn rpcs(&self, ideals: &mut Ideals) -> Vec<RpcSummary> {
        self.calls.results(ideals)
    }

    fn arrival(&self, number: u32, flow: &Flow, deadline: Time) -> Arrival {
        let Flow { arrival: at, src, dst, size, tenant, .. } = *flow;
        let tenant = self.n_transports.map_or(tenant, |n| TenantId::new(number % n));
        Arrival { number: Some(number), at, src, dst, size, deadline, tenant }
    }

    /// Number `number` as one of the graph, if it is.
    fn of_graph(&mut self, number: u32) -> Option<&mut Releases> {
        self.releases.as_mut().filter(|releases| number < releases.graph().len())
    }
}

impl Source for &mut PlanSource {
    const FEEDBACK: bool = true;

    fn has_dependent_messages(&self) -> bool {
        self.releases.is_some()
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        let flow = self.flows.next()?;
        self.offered_packets += flow.size.packets_ceil(self.payload);
        let deadline = self.deadlines.draw(&flow);
        let number = self.next_number;
        self.next_number += 1;
        Some(self.arrival(number, &flow, deadline))
    }

    fn on_delivered(&mut self, number: u32, at: Time) {
        if let Some(releases) = self.of_graph(number) {
            releases.on_delivered(number, at);
            self.rounds.on_delivered(number, at);
            self.calls.on_delivered(number, at);
        }
    }

    fn on_completed(&mut self, number: u32, at: Time) {
        if let Some(releases) = self.of_graph(number) {
            releases.on_completed(number, at);
        }
    }

    fn next_release(&self) -> Time {
        self.releases.as_ref().map_or(Time::NEVER, Releases::next_release)
    }

    fn release(&mut self) -> Option<Arrival> {
        let releases = self.releases.as_mut()?;
        let (number, flow) = releases.release()?;
        if let Some(cause) = releases.cause(number) {
            let (flow, after) = (u64::from(number), u64::from(cause.flow));
            self.release_rows.push(ReleaseRow { flow, after, notified_ps: cause.at.as_ps() });
        }
        self.offered_packets += flow.size.packets_ceil(self.payload);
        self.rounds.on_start(number, flow.arrival);
        self.calls.on_start(number, flow.arrival);
        let deadline = self.deadlines.draw_waiting(number, &flow);
        Some(self.arrival(number, &flow, deadline))
    }

    fn take_withheld(&mut self) -> Option<Arrival> {
        let (number, flow) = self.releases.as_mut()?.take_withheld()?;
        Some(self.arrival(number, &flow, Time::NEVER))
    }
}
