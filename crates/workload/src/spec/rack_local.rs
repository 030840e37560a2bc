//! Poisson arrivals with separate loads within racks and between them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SizeSpec;
use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError};
use crate::pattern::HostSet;
use crate::pattern::pairs::Pairs;
use crate::pattern::poisson::Poisson;

/// Keys of `rack-local`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RackLocalSpec {
    /// Message sizes.
    pub sizes: SizeSpec,
    /// Load of every host on hosts of its rack, headers included, 0 to 2: a share of the rate at
    /// which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub local_load: f64,
    /// Load of every host on hosts of other racks, headers included, 0 to 2: a share of the rate at
    /// which the slowest host sends.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub remote_load: f64,
    /// Number of hosts of a rack; default: that of the topology.
    pub hosts_per_rack: Option<u32>,
    /// Stop after this many flows.
    pub flows: Option<u64>,
    /// Stop before this instant.
    pub until_us: Option<f64>,
}

impl Pattern for RackLocalSpec {
    fn stop(&self) -> StopCondition {
        StopCondition { flows: self.flows, until_us: self.until_us }
    }

    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let (n_hosts, known) =
            (checker.n(), self.hosts_per_rack.or(checker.context().hosts_per_rack));
        let Some(rack) = known else {
            return checker.wrong(
                "hosts-per-rack",
                "a number, as the topology has no racks",
                "none",
            );
        };
        if rack == 0 || !n_hosts.is_multiple_of(rack) {
            let expected = format!("a divisor of the {n_hosts} hosts");
            return checker.wrong("hosts-per-rack", &expected, rack);
        }
        let local = checker.load("local-load", self.local_load, 0.0)?;
        let remote = checker.load("remote-load", self.remote_load, 0.0)?;
        if local.fraction > 0.0 && rack < 2 {
            return checker.wrong("local-load", "0 with one host in a rack", self.local_load);
        }
        if remote.fraction > 0.0 && rack == n_hosts {
            return checker.wrong("remote-load", "0 with a single rack", self.remote_load);
        }
        let dist = checker.sizes(&self.sizes)?;
        let (mut processes, all) = (Vec::new(), HostSet::all(n_hosts));
        for (pairs, load) in [
            (Pairs::SameRack { n_hosts, rack }, local),
            (Pairs::OtherRack { n_hosts, rack }, remote),
        ] {
            // The number of each process does not change if the other's load is zero.
            let stream = checker.stream();
            if load.fraction > 0.0 {
                processes.push(Poisson::new(pairs, all.clone(), Arc::clone(&dist), &load, stream));
            }
        }
        if processes.is_empty() {
            return checker.wrong("local-load", "a load above 0 here or in remote-load", 0);
        }
        Ok(CheckedPattern::with_sizes(processes, dist))
    }
}
