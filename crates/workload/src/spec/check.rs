//! Checks a workload against a network.

use std::sync::Arc;

use rampmeter_types::{Bytes, Span, Time};

use super::pattern::{
    CheckedPattern, Checker, Pattern, StopCondition, WorkloadContext, WorkloadError,
};
use super::sizes::SizeSpec;
use super::valid::ValidWorkload;
use crate::flow::FlowLimit;
use crate::pattern::HostSet;
use crate::pattern::burst::{BatchPattern, Bursts, Rounds};
use crate::pattern::poisson::Load;
use crate::size::SizeDist;
use crate::trace::HostNames;

/// Limit of sizes in errors.
const PACKETS_MAX: &str = "the size of 2^32 - 1 packets or 2^50";

pub(super) fn validate(
    keys: &dyn Pattern,
    context: &WorkloadContext,
    hosts: Option<&HostNames>,
) -> Result<ValidWorkload, WorkloadError> {
    let (mut streams, mut warnings) = (0, Vec::new());
    let mut checker = Checker {
        context,
        hosts,
        path: String::new(),
        bound: FlowLimit::default(),
        streams: &mut streams,
        warnings: &mut warnings,
    };
    let workload = checker.workload(keys)?;
    Ok(ValidWorkload { warnings, ..workload })
}

impl Checker<'_> {
    fn workload(&mut self, keys: &dyn Pattern) -> Result<ValidWorkload, WorkloadError> {
        if self.context.n_hosts < 2 {
            let got = self.context.n_hosts;
            return self.wrong("pattern", "a network of at least 2 hosts", got);
        }
        let limit = self.limit(keys.stop())?;
        let CheckedPattern { source, sizes } = keys.check(self)?;
        if source.is_endless()
            && limit == FlowLimit::default()
            && self.bound == FlowLimit::default()
        {
            let expected = "flows or until-us, for a pattern without an end";
            return self.wrong("flows", expected, "neither");
        }
        Ok(ValidWorkload { source, limit, sizes, warnings: Vec::new() })
    }

    /// Checks part `idx`, which ends at `bound` too.
    pub(super) fn part(
        &mut self,
        idx: usize,
        keys: &dyn Pattern,
        bound: FlowLimit,
    ) -> Result<ValidWorkload, WorkloadError> {
        let mut checker = Checker {
            context: self.context,
            hosts: self.hosts,
            path: format!("{}parts[{idx}].", self.path),
            bound,
            streams: &mut *self.streams,
            warnings: &mut *self.warnings,
        };
        checker.workload(keys)
    }

    pub(super) fn bursts(&mut self, law: BatchPattern, rounds: Rounds) -> Bursts {
        Bursts { pattern: Arc::new(law), rounds, stream: self.stream() }
    }
}

/// The checks of single keys.
impl Checker<'_> {
    pub(super) fn n(&self) -> u32 {
        self.context.n_hosts
    }

    pub(super) fn context(&self) -> &WorkloadContext {
        self.context
    }

    /// Returns the names of the network's hosts.
    pub(super) fn names(&self) -> Option<&HostNames> {
        self.hosts
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    pub(super) fn stream(&mut self) -> u64 {
        *self.streams += 1;
        *self.streams - 1
    }

    /// Returns the path of a key of this pattern.
    pub(super) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    pub(super) fn wrong<T>(
        &self,
        key: &str,
        expected: &str,
        got: impl ToString,
    ) -> Result<T, WorkloadError> {
        let key = self.key(key);
        Err(WorkloadError::Key { key, expected: expected.to_owned(), got: got.to_string() })
    }

    pub(super) fn limit(&self, stop: StopCondition) -> Result<FlowLimit, WorkloadError> {
        if stop.flows == Some(0) {
            return self.wrong("flows", "at least 1", 0);
        }
        let until = stop.until_us.map(|us| self.span("until-us", us)).transpose()?;
        if until == Some(Span::ZERO) {
            return self.wrong("until-us", "a time above 0", 0);
        }
        Ok(FlowLimit { flows: stop.flows, until: until.map(|span| Time::ZERO + span) })
    }

    /// Returns the load of all hosts.
    pub(super) fn load(&self, key: &str, fraction: f64, min: f64) -> Result<Load, WorkloadError> {
        if !(min..=2.0).contains(&fraction) {
            let expected =
                if min > 0.0 { "a load above 0, at most 2" } else { "a load from 0 to 2" };
            return self.wrong(key, expected, fraction);
        }
        let WorkloadContext { access_rate, payload, wire, .. } = *self.context;
        Ok(Load { fraction, access_rate, payload, wire })
    }

    /// Returns the load of some hosts: a fraction of the lowest rate at which one of them sends.
    pub(super) fn load_of(
        &self,
        hosts: &HostSet,
        key: &str,
        fraction: f64,
    ) -> Result<Load, WorkloadError> {
        let load = self.load(key, fraction, f64::MIN_POSITIVE)?;
        let rates = hosts.iter().filter_map(|host| self.context.host_rates.get(host.idx()));
        Ok(Load { access_rate: rates.min().copied().unwrap_or(load.access_rate), ..load })
    }

    pub(super) fn sizes(&mut self, spec: &SizeSpec) -> Result<Arc<SizeDist>, WorkloadError> {
        let WorkloadContext { payload, base_dir, .. } = self.context;
        let (dist, notes) = spec.resolve_with_notes(&self.path, *payload, base_dir)?;
        self.warnings.extend(notes);
        let (largest, limit) = (dist.quantile(1.0).get(), self.context.size_max());
        if largest > limit {
            return self.wrong("sizes", &format!("at most {limit} bytes, {PACKETS_MAX}"), largest);
        }
        Ok(Arc::new(dist))
    }

    pub(super) fn span(&self, key: &str, us: f64) -> Result<Span, WorkloadError> {
        if !(0.0..=US_MAX).contains(&us) {
            return self.wrong(key, "microseconds from 0 to 10^13", us);
        }
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }

    pub(super) fn bytes(&self, key: &str, bytes: u64) -> Result<Bytes, WorkloadError> {
        let limit = self.context.size_max();
        if !(1..=limit).contains(&bytes) {
            let expected = format!("bytes from 1 to {limit}, {PACKETS_MAX}");
            return self.wrong(key, &expected, bytes);
        }
        Ok(Bytes::new(bytes))
    }

    pub(super) fn count(&self, key: &str, n: u32, max: u32) -> Result<u32, WorkloadError> {
        if !(1..=max).contains(&n) {
            return self.wrong(key, &format!("from 1 to {max}, the other hosts"), n);
        }
        Ok(n)
    }

    pub(super) fn rounds(
        &self,
        start_us: f64,
        period_us: Option<f64>,
        n: u64,
    ) -> Result<Rounds, WorkloadError> {
        let start = Time::ZERO + self.span("start-us", start_us)?;
        let period = match period_us {
            Some(us) => self.span("period-us", us)?,
            None if n > 1 => return self.wrong("period-us", "a period for several rounds", "none"),
            None => Span::ZERO,
        };
        if n == 0 {
            return self.wrong("rounds", "at least 1", 0);
        }
        Ok(Rounds { start, period, n })
    }
}

/// The longest time in a plan: 115 days, within the range of [`Time`].
const US_MAX: f64 = 1e13;
