//! Requests and responses, as flows that depend on each other.
//!
//! A client calls `fan` servers at once: a request to each, and a response of each after its time
//! of service. The call ends with the last response. In a closed loop a client has a number of
//! calls in flight and thinks between them. In an open loop it calls at random or regular instants.
//! All servers, lengths and times are drawn from the seed before the run, so that transports are
//! compared with the same calls.

use std::sync::Arc;

use rampmeter_types::{Bytes, NodeId, Purpose, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostSet;
use super::pairs::skip;
use crate::flow::Flow;
use crate::graph::Call;
use crate::graph::{Graph, GraphBuilder};
use crate::size::SizeDist;
use crate::source::Source;

/// The law of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeDistribution {
    /// Always the mean.
    #[default]
    Fixed,
    /// An exponential law: of `interval-us` a Poisson process.
    Exponential,
}

/// The pace of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPacing {
    /// A client calls again when a call has ended.
    Closed {
        /// Time between the two.
        think: Span,
        /// Number of calls in flight at a time.
        concurrency: u32,
    },
    /// A client calls whether or not calls have ended.
    Open {
        /// Time from one call to the next.
        interval: Span,
    },
}

/// Calls of clients to servers, still without a seed.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// Calling hosts.
    pub clients: HostSet,
    /// Called hosts.
    pub servers: HostSet,
    /// Lengths of requests.
    pub requests: Arc<SizeDist>,
    /// Lengths of responses.
    pub responses: Arc<SizeDist>,
    /// Number of calls of each client.
    pub calls: u32,
    /// Number of servers of a call.
    pub fan: u32,
    /// The pace of a client.
    pub pace: CallPacing,
    /// Time from a request to its response.
    pub service: Span,
    /// The distribution of all times.
    pub time_distribution: TimeDistribution,
    /// Start of all clients.
    pub start: Time,
    /// Number of the pattern within its workload, which separates its random streams.
    pub stream: u64,
}

impl Rpc {
    /// Returns the number of requests and responses.
    pub fn n_flows(&self) -> u64 {
        let calls = u64::from(self.clients.count()).saturating_mul(self.calls.into());
        calls.saturating_mul(2 * u64::from(self.fan))
    }

    /// Returns the flows under `seed`.
    pub fn graph(&self, seed: u64) -> Graph {
        let mut draft = CallGraphBuilder {
            rpc: self,
            builder: GraphBuilder::default(),
            servers: Rng::new(seed, self.stream, Purpose::Pair),
            sizes: Rng::new(seed, self.stream, Purpose::Size),
            times: Rng::new(seed, self.stream, Purpose::Arrival),
            order: (0..self.servers.count()).collect(),
        };
        for client in self.clients.iter() {
            match self.pace {
                CallPacing::Closed { think, concurrency } => {
                    draft.closed(client, think, concurrency)
                }
                CallPacing::Open { interval } => draft.open(client, interval),
            }
        }
        // Clients depend on responses that they receive, servers on requests.
        draft.builder.build().unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

struct CallGraphBuilder<'a> {
    rpc: &'a Rpc,
    builder: GraphBuilder,
    servers: Rng,
    sizes: Rng,
    times: Rng,
    /// Numbers of servers in a random order.
    order: Vec<u32>,
}

impl CallGraphBuilder<'_> {
    fn closed(&mut self, client: NodeId, think: Span, concurrency: u32) {
        let mut before: Vec<Option<Call>> = vec![None; concurrency as usize];
        for number in 0..self.rpc.calls {
            let slot = (number % concurrency) as usize;
            let delay = if before[slot].is_some() { self.time(think) } else { Span::ZERO };
            before[slot] = Some(self.call(client, self.rpc.start, before[slot], delay));
        }
    }

    fn open(&mut self, client: NodeId, interval: Span) {
        let mut at = self.rpc.start;
        for number in 0..self.rpc.calls {
            if number > 0 || self.rpc.time_distribution == TimeDistribution::Exponential {
                at = at.saturating_add(self.time(interval));
            }
            self.call(client, at, None, Span::ZERO);
        }
    }

    /// Adds a call `delay` after the end of another one.
    fn call(&mut self, client: NodeId, at: Time, before: Option<Call>, delay: Span) -> Call {
        let fan = self.rpc.fan;
        let ends: Vec<u32> =
            before.iter().flat_map(|b| b.first + b.fan..b.first + 2 * b.fan).collect();
        // One node depends on all responses, so that the requests of a call start together.
        let (after, delay) = match &ends[..] {
            [] => (None, delay),
            [end] => (Some(*end), delay),
            ends => {
                let thought = self.builder.computation(client, at, delay);
                ends.iter().for_each(|&end| self.builder.wait(thought, end));
                (Some(thought), Span::ZERO)
            }
        };
        let call = Call { first: self.builder.len(), fan };
        let servers = self.draw(client);
        for &server in &servers {
            let size = self.rpc.requests.sample(&mut self.sizes);
            let request = self.flow(at, client, server, size, delay);
            if let Some(after) = after {
                self.builder.wait(request, after);
            }
        }
        for (&server, request) in servers.iter().zip(call.first..) {
            let size = self.rpc.responses.sample(&mut self.sizes);
            let service = self.time(self.rpc.service);
            let response = self.flow(at, server, client, size, service);
            self.builder.wait(response, request);
        }
        self.builder.call(call);
        call
    }

    fn flow(&mut self, at: Time, src: NodeId, dst: NodeId, size: Bytes, delay: Span) -> u32 {
        self.builder.flow(Flow::new(at, src, dst, size), delay)
    }

    /// Draws the servers of a call: a partial shuffle of all but the client.
    fn draw(&mut self, client: NodeId) -> Vec<NodeId> {
        let servers = &self.rpc.servers;
        let hole = servers.position(client).map_or(usize::MAX, |at| at as usize);
        let others = servers.count() as usize - usize::from(hole != usize::MAX);
        let mut drawn = Vec::with_capacity(self.rpc.fan as usize);
        if self.order.len() != others {
            self.order = (0..others as u32).collect();
        }
        for i in 0..self.rpc.fan as usize {
            let at = i + self.servers.uniform_below(others - i);
            self.order.swap(i, at);
            drawn.push(servers.host(skip(self.order[i] as usize, hole, 1) as u32));
        }
        drawn
    }

    fn time(&mut self, mean: Span) -> Span {
        match self.rpc.time_distribution {
            TimeDistribution::Fixed => mean,
            TimeDistribution::Exponential => {
                let drawn = mean.as_ps() as f64 * self.times.exponential();
                Span::from_ps(drawn.round() as u64)
            }
        }
    }
}

impl Source for Rpc {
    fn graph(&self, seed: u64) -> Option<Arc<Graph>> {
        Some(Arc::new(Rpc::graph(self, seed)))
    }

    fn has_graph(&self) -> bool {
        true
    }

    fn total_flows(&self, _until: Option<Time>) -> Option<u64> {
        Some(self.n_flows())
    }
}
