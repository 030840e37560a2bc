//! Links that have no rate or no delay in a file.

use rampmeter_sim::LinkSpec;
use rampmeter_workload::import::count;
use toml::Table;

/// Links without a value, and the value that they have by default.
#[derive(Clone, Copy, Debug, Default)]
struct Omitted {
    n_links: usize,
    value: f64,
}

impl Omitted {
    /// Returns a sentence about these links.
    fn note(self, key: &str, unit: &str) -> Option<String> {
        let Self { n_links, value } = self;
        let have = if n_links == 1 { "has" } else { "have" };
        let links = count(n_links, "link");
        (n_links > 0).then(|| format!("{links} {have} no {key}: {value} {unit}"))
    }
}

/// Links of a file without a rate or a delay, and the values that these have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Defaults {
    rates: Omitted,
    delays: Omitted,
}

impl Defaults {
    /// Counts a link of a file, which was read as `spec`.
    pub(super) fn count(&mut self, link: &Table, spec: &LinkSpec) {
        if !link.contains_key("gbps") {
            self.rates = Omitted { n_links: self.rates.n_links + 1, value: spec.gbps };
        }
        if !link.contains_key("propagation-ns") {
            self.delays = Omitted { n_links: self.delays.n_links + 1, value: spec.propagation_ns };
        }
    }

    /// Returns a sentence about these links.
    pub(super) fn note(self) -> Option<String> {
        let rates = self.rates.note("gbps", "Gbit/s");
        let delays = self.delays.note("propagation-ns", "ns");
        let all: Vec<String> = [rates, delays].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
