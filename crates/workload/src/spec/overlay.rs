//! An all-to-all plus incasts that arrive as a Poisson process.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SizeSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use crate::pattern::HostSet;
use crate::pattern::burst::{Direction, Fan, FlowVolume, IncastOverlay, PoissonIncast};
use crate::pattern::pairs::Pairs;
use crate::pattern::poisson::Poisson;

/// Keys of `incast-overlay`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct IncastOverlaySpec {
    /// Message sizes of the all-to-all.
    pub sizes: SizeSpec,
    /// Load of the all-to-all alone, headers included, above 0 and at most 2: a share of the rate
    /// at which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub load: f64,
    /// Load of the incasts on top of that, as a fraction of all hosts' capacity.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(default = "overlay_load")]
    pub incast_load: f64,
    /// Senders of an incast.
    #[serde(default = "overlay_fan_in")]
    pub fan_in: u32,
    /// Size of every flow of an incast; by default 86 packets (the dcPIM study's 128 KB).
    #[serde(default = "overlay_bytes")]
    pub incast_bytes: u64,
    /// Stop after this many flows, incasts included.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

impl Pattern for IncastOverlaySpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let load = checker.load("load", self.load, f64::MIN_POSITIVE)?;
        let extra = checker.load("incast-load", self.incast_load, f64::MIN_POSITIVE)?;
        let n = checker.count("fan-in", self.fan_in, checker.n() - 1)?;
        let size = checker.bytes("incast-bytes", self.incast_bytes)?;
        let dist = checker.sizes(&self.sizes)?;
        let pairs = Pairs::AllToAll { n_hosts: checker.n() };
        let all = HostSet::all(checker.n());
        let poisson = Poisson::new(pairs, all.clone(), Arc::clone(&dist), &load, checker.stream());
        let fan = Fan {
            direction: Direction::Incast,
            n,
            hub: None,
            volume: FlowVolume::PerFlow(size),
            n_hosts: checker.n(),
            peers: all,
        };
        let per_host = extra.arrivals_per_ps(size.get() as f64);
        let events_per_ps = per_host * f64::from(checker.n()) / f64::from(n);
        let incasts = PoissonIncast { fan, events_per_ps, stream: checker.stream() };
        Ok(CheckedPattern::with_sizes(IncastOverlay { poisson, incasts }, dist))
    }

    fn uniform_load(&self) -> f64 {
        self.load + self.incast_load
    }
}

/// Returns 2 % of capacity, as in the bursty workloads of the HPCC and dcPIM studies.
fn overlay_load() -> f64 {
    0.02
}

/// Fan-in of the dcPIM study's incasts (its table of workloads).
fn overlay_fan_in() -> u32 {
    50
}

/// 86 packets, the dcPIM study's 128 KB.
fn overlay_bytes() -> u64 {
    86 * 1460
}
