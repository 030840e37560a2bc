//! Checks a workload against a network.

use std::sync::Arc;

use rampmeter_core::{Bytes, NodeId, Span, Time};

use super::valid::{Source, ValidWorkload};
use super::{
    DenseSpec, FanSpec, MixSpec, OverlaySpec, RackSpec, ShuffleSpec, SizeSpec, SkewedSpec, Stop,
    TraceSpec, WorkloadContext, WorkloadError, WorkloadSpec,
};
use crate::flow::Limit;
use crate::pattern::HostSet;
use crate::pattern::burst::{Bursts, Direction, Fan, Grid, Law, PoissonIncast, Rounds, Volume};
use crate::pattern::pairs::Pairs;
use crate::pattern::poisson::{Load, Poisson};
use crate::pattern::skewed::Skewed;
use crate::size::SizeDist;
use crate::trace::{self, Check, Format, HostNames, Order, Trace};

pub(super) fn validate(
    spec: WorkloadSpec,
    context: &WorkloadContext,
    hosts: Option<&HostNames>,
) -> Result<ValidWorkload, WorkloadError> {
    let (mut streams, mut warnings) = (0, Vec::new());
    let mut checker = Checker {
        context,
        hosts,
        path: String::new(),
        bound: Limit::default(),
        streams: &mut streams,
        warnings: &mut warnings,
    };
    let workload = checker.workload(spec)?;
    Ok(ValidWorkload { warnings, ..workload })
}

/// Checks one workload; those in a mix have their own path and share the stream numbers.
pub(super) struct Checker<'a> {
    context: &'a WorkloadContext,
    hosts: Option<&'a HostNames>,
    pub(super) path: String,
    /// The limit of the mix that contains the workload, which also ends endless parts.
    bound: Limit,
    streams: &'a mut u64,
    warnings: &'a mut Vec<String>,
}

impl Checker<'_> {
    fn workload(&mut self, spec: WorkloadSpec) -> Result<ValidWorkload, WorkloadError> {
        if self.context.n_hosts < 2 {
            let got = self.context.n_hosts;
            return self.wrong("pattern", "a network of at least 2 hosts", got);
        }
        let limit = self.limit(spec.stop())?;
        let mut sizes = None;
        let source = match spec {
            WorkloadSpec::AllToAll(spec) => self.all_to_all(&spec, &mut sizes)?,
            WorkloadSpec::Permutation(spec) => self.permutation(&spec, &mut sizes)?,
            WorkloadSpec::Stride(spec) => self.stride(&spec, &mut sizes)?,
            WorkloadSpec::Bisection(spec) => self.bisection(&spec, &mut sizes)?,
            WorkloadSpec::Staggered(spec) => self.staggered(&spec, &mut sizes)?,
            WorkloadSpec::RackLocal(spec) => self.racks(&spec, &mut sizes)?,
            WorkloadSpec::IncastOverlay(spec) => self.overlay(&spec, &mut sizes)?,
            WorkloadSpec::Incast(spec) => self.fan(&spec, Direction::In)?,
            WorkloadSpec::Outcast(spec) => self.fan(&spec, Direction::Out)?,
            WorkloadSpec::Shuffle(spec) => self.shuffle(&spec)?,
            WorkloadSpec::Dense(spec) => self.dense(&spec)?,
            WorkloadSpec::Rpc(spec) => Source::Rpc(self.rpc(&spec)?),
            WorkloadSpec::Collective(spec) => Source::Collective(self.collective(spec)?),
            WorkloadSpec::SkewedAllToAll(spec) => self.skewed(&spec)?,
            WorkloadSpec::Trace(spec) => self.trace(&spec)?,
            WorkloadSpec::Mix(spec) => self.mix(spec, limit)?,
            WorkloadSpec::Phases(spec) => self.phases(spec)?,
        };
        let endless = source.is_endless();
        if endless && limit == Limit::default() && self.bound == Limit::default() {
            return self.wrong(
                "flows",
                "flows or until-us, for a pattern without an end",
                "neither",
            );
        }
        Ok(ValidWorkload { source, limit, sizes, warnings: Vec::new() })
    }

    fn racks(
        &mut self,
        spec: &RackSpec,
        sizes: &mut Option<Arc<SizeDist>>,
    ) -> Result<Source, WorkloadError> {
        let (n_hosts, known) = (self.n(), spec.hosts_per_rack.or(self.context.hosts_per_rack));
        let Some(rack) = known else {
            return self.wrong("hosts-per-rack", "a number, as the topology has no racks", "none");
        };
        if rack == 0 || !n_hosts.is_multiple_of(rack) {
            let expected = format!("a divisor of the {n_hosts} hosts");
            return self.wrong("hosts-per-rack", &expected, rack);
        }
        let local = self.load("local-load", spec.local_load, 0.0)?;
        let remote = self.load("remote-load", spec.remote_load, 0.0)?;
        if local.fraction > 0.0 && rack < 2 {
            return self.wrong("local-load", "0 with one host in a rack", spec.local_load);
        }
        if remote.fraction > 0.0 && rack == n_hosts {
            return self.wrong("remote-load", "0 with a single rack", spec.remote_load);
        }
        let dist = self.sizes(&spec.sizes, sizes)?;
        let (mut processes, all) = (Vec::new(), HostSet::all(n_hosts));
        for (pairs, load) in [
            (Pairs::SameRack { n_hosts, rack }, local),
            (Pairs::OtherRack { n_hosts, rack }, remote),
        ] {
            // The number of each process does not change if the other's load is zero.
            let stream = self.stream();
            if load.fraction > 0.0 {
                processes.push(Poisson::new(pairs, all.clone(), Arc::clone(&dist), &load, stream));
            }
        }
        if processes.is_empty() {
            return self.wrong("local-load", "a load above 0 here or in remote-load", 0);
        }
        Ok(Source::Poisson(processes))
    }

    fn overlay(
        &mut self,
        spec: &OverlaySpec,
        sizes: &mut Option<Arc<SizeDist>>,
    ) -> Result<Source, WorkloadError> {
        let load = self.load("load", spec.load, f64::MIN_POSITIVE)?;
        let extra = self.load("incast-load", spec.incast_load, f64::MIN_POSITIVE)?;
        let n = self.count("fan-in", spec.fan_in, self.n() - 1)?;
        let size = self.bytes("incast-bytes", spec.incast_bytes)?;
        let dist = self.sizes(&spec.sizes, sizes)?;
        let pairs = Pairs::AllToAll { n_hosts: self.n() };
        let all = HostSet::all(self.n());
        let poisson = Poisson::new(pairs, all.clone(), dist, &load, self.stream());
        let fan = Fan {
            direction: Direction::In,
            n,
            hub: None,
            volume: Volume::PerFlow(size),
            n_hosts: self.n(),
            peers: all,
        };
        let per_host = extra.arrivals_per_ps(size.get() as f64);
        let events_per_ps = per_host * f64::from(self.n()) / f64::from(n);
        Ok(Source::Overlay(poisson, PoissonIncast { fan, events_per_ps, stream: self.stream() }))
    }

    fn fan(&mut self, spec: &FanSpec, direction: Direction) -> Result<Source, WorkloadError> {
        let peers = self.hosts("peers", spec.peers.as_ref(), 1)?;
        let hub = match &spec.hub {
            Some(hub) => Some(NodeId::new(self.host("hub", hub)?)),
            None => None,
        };
        // A hub that is drawn later may be one of the peers.
        let inside = hub.is_none_or(|hub| peers.contains(hub));
        let n = self.count("fan", spec.fan, peers.count() - u32::from(inside))?;
        let volume = match (spec.flow_bytes, spec.total_bytes) {
            (Some(size), None) => Volume::PerFlow(self.bytes("flow-bytes", size)?),
            (None, Some(total)) if total < u64::from(n) => {
                return self.wrong(
                    "total-bytes",
                    &format!("at least a byte for each of {n} flows"),
                    total,
                );
            }
            (None, Some(total)) => Volume::Total(self.bytes("total-bytes", total)?),
            (None, None) => {
                return self.wrong("flow-bytes", "flow-bytes or total-bytes", "neither");
            }
            (Some(_), Some(_)) => {
                return self.wrong("flow-bytes", "flow-bytes or total-bytes", "both");
            }
        };
        let rounds = self.rounds(spec.start_us, spec.period_us, spec.rounds)?;
        Ok(self
            .bursts(Law::Fan(Fan { direction, n, hub, volume, n_hosts: self.n(), peers }), rounds))
    }

    fn shuffle(&mut self, spec: &ShuffleSpec) -> Result<Source, WorkloadError> {
        let senders = self.hosts("senders", Some(&spec.senders), 1)?;
        let receivers = self.hosts("receivers", Some(&spec.receivers), 1)?;
        if senders.count() == 1 && senders == receivers {
            let same = receivers.host(0).get();
            return self.wrong("receivers", "a host other than the sender", same);
        }
        let size = self.bytes("flow-bytes", spec.flow_bytes)?;
        let rounds = self.rounds(spec.start_us, spec.period_us, spec.rounds)?;
        Ok(self.bursts(Law::Grid(Grid { senders, receivers, size }), rounds))
    }

    fn dense(&mut self, spec: &DenseSpec) -> Result<Source, WorkloadError> {
        let all = HostSet::all(self.n());
        let size = self.bytes("flow-bytes", spec.flow_bytes)?;
        let rounds = self.rounds(spec.start_us, None, 1)?;
        Ok(self.bursts(Law::Grid(Grid { senders: all.clone(), receivers: all, size }), rounds))
    }

    fn skewed(&mut self, spec: &SkewedSpec) -> Result<Source, WorkloadError> {
        let hosts = self.hosts("hosts", spec.hosts.as_ref(), 2)?;
        if !(0.0..=10.0).contains(&spec.skew) {
            return self.wrong("skew", "a number from 0 to 10", spec.skew);
        }
        let size = self.bytes("host-bytes", spec.host_bytes)?;
        let rounds = self.rounds(spec.start_us, spec.period_us, spec.rounds)?;
        Ok(self.bursts(Law::Skewed(Skewed { hosts, size, skew: spec.skew }), rounds))
    }

    fn trace(&mut self, spec: &TraceSpec) -> Result<Source, WorkloadError> {
        let file = self.context.base_dir.join(&spec.file);
        let known =
            spec.format.or_else(|| Format::of(&file)).or_else(|| Format::of_contents(&file));
        let Some(format) = known else {
            let names = Format::names();
            let expected = format!(
                "one of {names}, as neither the name nor the contents of the file suggest one"
            );
            return self.wrong("format", &expected, "none");
        };
        let order = if spec.sort { Order::Sort } else { Order::Require };
        let options = trace::Options {
            hosts: self.hosts.cloned(),
            columns: spec.columns.clone(),
            vector_bytes: spec.vector_bytes,
            groups: spec.groups.as_ref().map(|groups| self.context.base_dir.join(groups)),
        };
        let check = Check { n_hosts: self.n(), order };
        let (trace, notes) = trace::read_with_notes(&file, format, check, &options)?;
        self.warnings.extend(notes);
        match trace {
            Trace::Flows(rows) => Ok(Source::Trace(rows.into_iter().map(|row| row.flow).collect())),
            Trace::Graph(_) if spec.flows.is_some() || spec.until_us.is_some() => {
                let expected = "neither flows nor until-us, as flows of the trace wait for others";
                self.wrong("flows", expected, "one of them")
            }
            Trace::Graph(graph) => Ok(Source::Graph(Arc::new(graph))),
        }
    }

    fn mix(&mut self, spec: MixSpec, limit: Limit) -> Result<Source, WorkloadError> {
        if spec.parts.is_empty() {
            return self.wrong("parts", "at least one workload", "none");
        }
        let mut parts = Vec::new();
        let bound = if limit == Limit::default() { self.bound } else { limit };
        for (idx, part) in spec.parts.into_iter().enumerate() {
            parts.push(self.part(idx, part, bound)?);
        }
        if limit != Limit::default() && parts.iter().any(ValidWorkload::has_graph) {
            let expected = "limits of the parts alone, as flows of a part wait for others";
            return self.wrong("flows", expected, "flows or until-us of the mix");
        }
        Ok(Source::Mix(parts))
    }

    /// Checks part `idx`, which ends at `bound` too.
    pub(super) fn part(
        &mut self,
        idx: usize,
        part: WorkloadSpec,
        bound: Limit,
    ) -> Result<ValidWorkload, WorkloadError> {
        let mut checker = Checker {
            context: self.context,
            hosts: self.hosts,
            path: format!("{}parts[{idx}].", self.path),
            bound,
            streams: &mut *self.streams,
            warnings: &mut *self.warnings,
        };
        checker.workload(part)
    }

    fn bursts(&mut self, law: Law, rounds: Rounds) -> Source {
        Source::Bursts(Bursts { law: Arc::new(law), rounds, stream: self.stream() })
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

    /// Names of the network's hosts.
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

    pub(super) fn wrong<T>(
        &self,
        key: &str,
        expected: &str,
        got: impl ToString,
    ) -> Result<T, WorkloadError> {
        let key = format!("{}{key}", self.path);
        Err(WorkloadError::Key { key, expected: expected.to_owned(), got: got.to_string() })
    }

    fn limit(&self, stop: Stop) -> Result<Limit, WorkloadError> {
        if stop.flows == Some(0) {
            return self.wrong("flows", "at least 1", 0);
        }
        let until = stop.until_us.map(|us| self.span("until-us", us)).transpose()?;
        if until == Some(Span::ZERO) {
            return self.wrong("until-us", "a time above 0", 0);
        }
        Ok(Limit { flows: stop.flows, until: until.map(|span| Time::ZERO + span) })
    }

    pub(super) fn load(&self, key: &str, fraction: f64, min: f64) -> Result<Load, WorkloadError> {
        if !(min..=2.0).contains(&fraction) {
            let expected =
                if min > 0.0 { "a load above 0, at most 2" } else { "a load from 0 to 2" };
            return self.wrong(key, expected, fraction);
        }
        let WorkloadContext { access_rate, payload, wire, .. } = *self.context;
        Ok(Load { fraction, access_rate, payload, wire })
    }

    pub(super) fn sizes(
        &mut self,
        spec: &SizeSpec,
        keep: &mut Option<Arc<SizeDist>>,
    ) -> Result<Arc<SizeDist>, WorkloadError> {
        let WorkloadContext { payload, base_dir, .. } = self.context;
        let (dist, notes) = spec.resolve_with_notes(&self.path, *payload, base_dir)?;
        self.warnings.extend(notes);
        Ok(Arc::clone(keep.insert(Arc::new(dist))))
    }

    pub(super) fn span(&self, key: &str, us: f64) -> Result<Span, WorkloadError> {
        if !(0.0..=US_MAX).contains(&us) {
            return self.wrong(key, "microseconds from 0 to 10^13", us);
        }
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }

    pub(super) fn bytes(&self, key: &str, bytes: u64) -> Result<Bytes, WorkloadError> {
        if !(1..=1 << 50).contains(&bytes) {
            return self.wrong(key, "bytes from 1 to 2^50", bytes);
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
