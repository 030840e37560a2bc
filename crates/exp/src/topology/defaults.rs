//! Links that have no rate or no delay in a file.

use rampmeter_sim::LinkSpec;
use rampmeter_workload::import::count;
use toml::Table;

/// Links of a file without a rate or a delay, and the values that these have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defaults {
    rates: (usize, f64),
    delays: (usize, f64),
}

impl Defaults {
    /// Counts a link of a file, which was read as `spec`.
    pub(super) fn count(&mut self, link: &Table, spec: &LinkSpec) {
        if !link.contains_key("gbps") {
            self.rates = (self.rates.0 + 1, spec.gbps);
        }
        if !link.contains_key("propagation-ns") {
            self.delays = (self.delays.0 + 1, spec.propagation_ns);
        }
    }

    /// Returns a sentence about these links.
    pub(super) fn note(self) -> Option<String> {
        let of = |(n, value): (usize, f64), key: &str, unit: &str| {
            let have = if n == 1 { "has" } else { "have" };
            (n > 0).then(|| format!("{} {have} no {key}: {value} {unit}", count(n, "link")))
        };
        let rates = of(self.rates, "gbps", "Gbit/s");
        let delays = of(self.delays, "propagation-ns", "ns");
        let all: Vec<String> = [rates, delays].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
