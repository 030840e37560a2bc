//! Patterns in which hosts have partners: keys and checks.
//!
//! The pattern chooses senders and receivers. With a `load` flows arrive as Poisson processes,
//! optionally in periods that are on and off. Without a load all hosts send at once, in rounds.

use std::sync::Arc;

use rampmeter_types::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use super::{HostsSpec, SizeSpec};
use crate::pattern::HostSet;
use crate::pattern::burst::Rounds;
use crate::pattern::pairs::{Pairs, StaggeredPairs};
use crate::pattern::poisson::{OnOff, Poisson};
use crate::pattern::simultaneous::SimultaneousFlows;

/// Defines the keys of a pattern whose hosts have partners: the pattern's keys, and the common
/// ones.
macro_rules! pairs_spec {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])* pub $field: $of,)*
            /// Lengths of messages.
            pub sizes: SizeSpec,
            /// Offered load of every host, headers included, above 0 and at most 2: a share of the
            /// rate at which the slowest host sends. Without a load all hosts send at once, in
            /// rounds.
            #[schemars(range(min = 0.0, max = 2.0))]
            pub load: Option<f64>,
            /// Participating hosts; default: all.
            pub hosts: Option<HostsSpec>,
            /// Mean time in which a host sends; with `load` and `off-us`. The load is that of all
            /// time.
            pub on_us: Option<f64>,
            /// Mean time in which it then sends nothing. Both are drawn from exponential laws.
            pub off_us: Option<f64>,
            /// Start of the first round, or of arrivals; default: 0.
            pub start_us: Option<f64>,
            /// Time from one round to the next; needed for more than one.
            pub period_us: Option<f64>,
            /// Number of rounds without a load; default: 1.
            pub rounds: Option<u64>,
            /// Stop after this many flows.
            pub flows: Option<u64>,
            /// Stop before this instant.
            pub until_us: Option<f64>,
        }

        impl $name {
            pub(super) fn arrivals(&self) -> ArrivalKeys<'_> {
                ArrivalKeys {
                    sizes: &self.sizes,
                    load: self.load,
                    on_us: self.on_us,
                    off_us: self.off_us,
                    start_us: self.start_us,
                    period_us: self.period_us,
                    rounds: self.rounds,
                    flows: self.flows,
                }
            }
        }
    };
}

pairs_spec! {
    /// Keys of `all-to-all`.
    AllToAllSpec {}
}

pairs_spec! {
    /// Keys of `permutation`.
    PermutationSpec {}
}

pairs_spec! {
    /// Keys of `bisection`.
    BisectionSpec {}
}

pairs_spec! {
    /// Keys of `stride`.
    StrideSpec {
        /// Distance of partners: host `i` of `n` sends to host `i + stride`, around after `n - 1`.
        stride: u32,
    }
}

pairs_spec! {
    /// Keys of `staggered`.
    StaggeredSpec {
        /// Probability that a message is sent to a host of the same rack.
        #[schemars(range(min = 0.0, max = 1.0))]
        rack_share: f64,
        /// Probability that it is sent to another rack of the same pod; default: 0. All others are
        /// sent to other pods, or other racks if there are no pods.
        #[schemars(range(min = 0.0, max = 1.0))]
        pod_share: Option<f64>,
        /// Number of hosts that share a rack; default: that of the topology.
        hosts_per_rack: Option<u32>,
        /// Number of hosts that share a pod; default: that of the topology.
        hosts_per_pod: Option<u32>,
    }
}

/// The keys that these patterns have in common.
#[derive(Clone, Copy)]
pub(super) struct ArrivalKeys<'a> {
    sizes: &'a SizeSpec,
    load: Option<f64>,
    on_us: Option<f64>,
    off_us: Option<f64>,
    start_us: Option<f64>,
    period_us: Option<f64>,
    rounds: Option<u64>,
    flows: Option<u64>,
}

impl Pattern for AllToAllSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        checker.pairs(self.arrivals(), Pairs::AllToAll { n_hosts: hosts.count() }, hosts)
    }

    fn uniform_load(&self) -> f64 {
        if self.hosts.is_none() { self.load.unwrap_or(0.0) } else { 0.0 }
    }
}

impl Pattern for PermutationSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        checker.pairs(self.arrivals(), Pairs::Permutation { n_hosts: hosts.count() }, hosts)
    }
}

impl Pattern for BisectionSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        if !hosts.count().is_multiple_of(2) {
            return checker.wrong(
                "hosts",
                "an even number of hosts, for two halves",
                hosts.count(),
            );
        }
        checker.pairs(self.arrivals(), Pairs::Bisection { n_hosts: hosts.count() }, hosts)
    }
}

impl Pattern for StrideSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        let n_hosts = hosts.count();
        if self.stride.is_multiple_of(n_hosts) {
            let expected =
                format!("no multiple of the {n_hosts} hosts, as no host sends to itself");
            return checker.wrong("stride", &expected, self.stride);
        }
        let by = self.stride % n_hosts;
        checker.pairs(self.arrivals(), Pairs::Stride { n_hosts, by }, hosts)
    }
}

impl Pattern for StaggeredSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let hosts = checker.hosts("hosts", self.hosts.as_ref(), 2)?;
        let pod_share = self.pod_share.unwrap_or(0.0);
        for (key, share) in [("rack-share", self.rack_share), ("pod-share", pod_share)] {
            if !(0.0..=1.0).contains(&share) {
                return checker.wrong(key, "a probability from 0 to 1", share);
            }
        }
        if self.rack_share + pod_share > 1.0 + 1e-9 {
            let rest = 1.0 - self.rack_share;
            let expected = format!("at most {rest} with rack-share = {}", self.rack_share);
            return checker.wrong("pod-share", &expected, pod_share);
        }
        let rack = self.hosts_per_rack.or(checker.context().hosts_per_rack);
        let Some(rack) = rack.filter(|&rack| rack > 0) else {
            return checker.wrong(
                "hosts-per-rack",
                "a number, as the topology has no racks",
                "none",
            );
        };
        let pod = self.hosts_per_pod.or(checker.context().hosts_per_pod);
        let pod = match pod.filter(|&pod| pod > 0) {
            Some(pod) => pod,
            None if pod_share == 0.0 => rack,
            None => {
                let expected = "a number, as the topology has no pods";
                return checker.wrong("hosts-per-pod", expected, "none");
            }
        };
        if !pod.is_multiple_of(rack) {
            let expected = format!("a multiple of the {rack} hosts of a rack");
            return checker.wrong("hosts-per-pod", &expected, pod);
        }
        let mut numbers: Vec<u32> = hosts.iter().map(rampmeter_types::NodeId::get).collect();
        numbers.sort_unstable();
        let staggered = StaggeredPairs::new(&numbers, (rack, pod), (self.rack_share, pod_share));
        match staggered {
            Ok(staggered) => {
                let pairs = Pairs::Staggered(Arc::new(staggered));
                checker.pairs(self.arrivals(), pairs, HostSet::list(&numbers))
            }
            Err((key, expected)) => {
                let share = if key == "pod-share" { pod_share } else { self.rack_share };
                checker.wrong(key, &expected, share)
            }
        }
    }
}

impl Checker<'_> {
    fn pairs(
        &mut self,
        keys: ArrivalKeys<'_>,
        pairs: Pairs,
        hosts: HostSet,
    ) -> Result<CheckedPattern, WorkloadError> {
        let start = self.span("start-us", keys.start_us.unwrap_or(0.0))?;
        let Some(fraction) = keys.load else {
            return self.together(keys, pairs, hosts, start);
        };
        if keys.rounds.is_some() {
            return self.wrong("rounds", "no value with load", "rounds");
        }
        if keys.period_us.is_some() {
            return self.wrong("period-us", "no value with load", "a period");
        }
        let load = self.load_of(&hosts, "load", fraction)?;
        let sizes = self.sizes(keys.sizes)?;
        let poisson = Poisson::new(pairs, hosts, Arc::clone(&sizes), &load, self.stream());
        let poisson = Poisson { start: Time::ZERO + start, ..poisson };
        match (keys.on_us, keys.off_us) {
            (None, None) => Ok(CheckedPattern::with_sizes(vec![poisson], sizes)),
            (Some(on), Some(off)) => {
                let on_mean = self.span("on-us", on)?;
                if on_mean == Span::ZERO {
                    return self.wrong("on-us", "a time above 0", 0);
                }
                let off_mean = self.span("off-us", off)?;
                Ok(CheckedPattern::with_sizes(OnOff { poisson, on_mean, off_mean }, sizes))
            }
            (Some(_), None) => self.wrong("off-us", "a time with on-us", "none"),
            (None, Some(_)) => self.wrong("on-us", "a time with off-us", "none"),
        }
    }

    /// Checks the keys of hosts that send at once.
    fn together(
        &mut self,
        keys: ArrivalKeys<'_>,
        pairs: Pairs,
        hosts: HostSet,
        start: Span,
    ) -> Result<CheckedPattern, WorkloadError> {
        for (key, value) in [("on-us", keys.on_us), ("off-us", keys.off_us)] {
            if let Some(value) = value {
                return self.wrong(key, "no value without a load", value);
            }
        }
        let n = keys.rounds.unwrap_or(1);
        let rounds = self.rounds(0.0, keys.period_us, n)?;
        let rounds = Rounds { start: Time::ZERO + start, ..rounds };
        let sizes = self.sizes(keys.sizes)?;
        let stream = self.stream();
        let together =
            SimultaneousFlows { pairs, hosts, sizes: Arc::clone(&sizes), rounds, stream };
        let (per_round, all) = (together.flows_per_round(), together.n_flows());
        if let Some(flows) = keys.flows.filter(|&flows| flows > all) {
            let path = &self.path;
            self.warn(format!(
                "workload.{path}flows: {flows} are more than the {all} there are without a load: \
                 {per_round} flows in each of {n} rounds"
            ));
        }
        Ok(CheckedPattern::with_sizes(together, sizes))
    }
}
