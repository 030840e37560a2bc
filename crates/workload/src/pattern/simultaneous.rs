//! Hosts that all send at once, each to its partner.

use std::sync::Arc;

use rampmeter_types::{Purpose, Rng, Time};

use super::HostSet;
use super::burst::Rounds;
use super::pairs::{PairSource, Pairs, skip};
use crate::flow::{Flow, FlowSource};
use crate::size::SizeDist;
use crate::source::Source;

/// A flow of each host to its partner in every round, or of each pair of an all-to-all. Partners of
/// a permutation are the same in all rounds.
#[derive(Clone, Debug)]
pub struct SimultaneousFlows {
    /// The partners.
    pub pairs: Pairs,
    /// Participating hosts.
    pub hosts: HostSet,
    /// Lengths of messages.
    pub sizes: Arc<SizeDist>,
    /// The instants.
    pub rounds: Rounds,
    /// Number of the pattern within its workload, which separates its random streams.
    pub stream: u64,
}

impl SimultaneousFlows {
    /// Returns the number of flows of a round.
    pub fn flows_per_round(&self) -> u64 {
        let n = u64::from(self.hosts.count());
        if matches!(self.pairs, Pairs::AllToAll { .. }) { n * (n - 1) } else { n }
    }

    /// Returns the number of flows of all rounds.
    pub fn n_flows(&self) -> u64 {
        self.flows_per_round().saturating_mul(self.rounds.n)
    }

    /// Returns the flows under `seed`.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow> + Send + use<> {
        let this = self.clone();
        let mut size_rng = Rng::new(seed, self.stream, Purpose::Size);
        let mut pairs = PairSource::new(&self.pairs, Rng::new(seed, self.stream, Purpose::Pair));
        let per_round = self.flows_per_round();
        let others = u64::from(self.hosts.count() - 1);
        (0..self.n_flows()).map(move |number| {
            let at = number % per_round;
            let (src, dst) = match this.pairs {
                Pairs::AllToAll { .. } => {
                    let src = at / others;
                    (src as u32, skip((at % others) as usize, src as usize, 1) as u32)
                }
                _ => (at as u32, pairs.partner(at as u32)),
            };
            let arrival = this.rounds.at(number / per_round);
            let size = this.sizes.sample(&mut size_rng);
            Flow::new(arrival, this.hosts.host(src), this.hosts.host(dst), size)
        })
    }
}

impl Source for SimultaneousFlows {
    fn flows(&self, seed: u64) -> FlowSource {
        Box::new(SimultaneousFlows::flows(self, seed))
    }

    fn total_flows(&self, until: Option<Time>) -> Option<u64> {
        until.is_none().then(|| self.n_flows())
    }

    fn mean_bytes(&self) -> Option<f64> {
        Some(self.sizes.mean_bytes())
    }
}
