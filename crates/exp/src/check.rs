//! From a plan to one that can be run: files read, numbers checked, pieces built.

use std::path::{Component, Path};

use rampmeter_core::{Bytes, FabricFacts, Span, Time};
use rampmeter_sim::{
    Buffer, ClockSpec, FabricConfig, FaultSpec, LinkFault, Outage, SimSpec, Switching, Target,
    Topology, TopologySpec,
};
use rampmeter_workload::{ValidWorkload, WorkloadContext};

use crate::capture::CaptureConfig;
use crate::plan::{
    ClocksSpec, DeadlinesSpec, FabricSpec, FaultsSpec, OutageSpec, Plan, PlanError, RunSpec,
    SwitchingSpec, locate,
};
use crate::transport::{Cut, TransportSpec, ValidTransport};

/// A plan that has been checked.
#[derive(Clone, Debug)]
pub struct ValidPlan {
    pub(crate) plan: Plan,
    pub(crate) sim: SimSpec,
    pub(crate) facts: FabricFacts,
    pub(crate) transport: ValidTransport,
    pub(crate) workload: ValidWorkload,
    pub(crate) cut: Cut,
    pub(crate) deadlines: Option<DeadlinesSpec>,
    pub(crate) capture: Option<CaptureConfig>,
}

/// Where a plan came from.
struct Context<'a> {
    origin: &'a str,
    base: &'a Path,
}

impl Context<'_> {
    fn bad(&self, key: &str, message: impl ToString) -> PlanError {
        PlanError::Value {
            origin: self.origin.to_owned(),
            key: key.to_owned(),
            message: message.to_string(),
        }
    }

    fn range(&self, key: &str, value: f64, least: f64, most: f64) -> Result<f64, PlanError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.bad(key, format!("expected a number from {least} to {most}, got {value}")))
    }

    /// Microseconds to a span in whole picoseconds.
    fn micros(&self, key: &str, us: f64, least: f64) -> Result<Span, PlanError> {
        let us = self.range(key, us, least, 1e12)?;
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }
}

impl Plan {
    /// Checks the plan and builds what a run needs. Relative file names are relative to `base`;
    /// `origin` names the plan in errors.
    ///
    /// # Errors
    /// [`PlanError::Value`] with the path to the key.
    pub fn check(self, origin: &str, base: &Path) -> Result<ValidPlan, PlanError> {
        let cx = Context { origin, base };
        let topology = self.transport.with_arbiters(topology(&self.topology, &cx)?);
        let cut = self.transport.cut();
        let Cut { payload, header, .. } = cut;
        let facts = topology.facts(payload + header, header);
        if let TransportSpec::Dcpim(spec) = &self.transport {
            cx.range("transport.beta", spec.beta.unwrap_or(1.0), 0.1, 100.0)?;
        }
        let (control, data) = self.transport.told_rtts();
        cx.range("transport.control-rtt-us", control.unwrap_or(1.0), 1e-3, 1e8)?;
        cx.range("transport.data-rtt-us", data.unwrap_or(1.0), 1e-3, 1e8)?;
        let transport = self.transport.on(&facts, &topology).map_err(|e| {
            let message = format!("expected {}, got {}", e.expected, e.got);
            cx.bad(&format!("transport.{}", e.key), message)
        })?;
        let context = WorkloadContext {
            n_hosts: topology.n_hosts(),
            access_rate: facts.access_rate,
            payload,
            wire: payload + header,
            hosts_per_rack: hosts_per_rack(&self.topology),
            base_dir: base.to_owned(),
        };
        let workload = self.workload.clone().validate(&context);
        let workload = workload.map_err(|e| cx.bad("workload", e))?;
        let capture = capture(&self.run, &transport, &topology, &cx)?;
        let sim = SimSpec {
            fabric: fabric(&self.fabric, &cx)?,
            faults: faults(&self.faults, &topology, &cx)?,
            clocks: clocks(&self.clocks, &cx)?,
            topology,
            seed: self.seed,
            drain: cx.micros("run.drain-us", self.run.drain_us, 0.0)?,
            sample: match self.run.sample_us {
                0.0 => None,
                us => Some(cx.micros("run.sample-us", us, 0.001)?),
            },
            paranoid: self.run.paranoid,
        };
        if self.measure.finished_before_arrival == Some(0) {
            let message = "expected a flow's number, from 1, got 0";
            return Err(cx.bad("measure.finished-before-arrival", message));
        }
        let deadlines = self.deadlines.clone();
        if let Some(spec) = &deadlines {
            cx.range("deadlines.mean-us", spec.mean_us, 1e-3, 1e12)?;
            cx.range("deadlines.at-least-ideals", spec.at_least_ideals, 0.0, 1e6)?;
        }
        Ok(ValidPlan { plan: self, sim, facts, transport, workload, cut, deadlines, capture })
    }
}

impl ValidPlan {
    /// The plan that was checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What protocols derive their parameters from.
    pub fn facts(&self) -> &FabricFacts {
        &self.facts
    }
}

fn topology(spec: &TopologySpec, cx: &Context<'_>) -> Result<Topology, PlanError> {
    let TopologySpec::File { file } = spec else {
        return spec.build().map_err(|e| cx.bad("topology", e));
    };
    let path = cx.base.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| cx.bad("topology.file", format!("{}: {e}", path.display())))?;
    let spec: TopologySpec = toml::from_str(&text).map_err(|e| {
        cx.bad("topology.file", format!("{}: {}", path.display(), locate(&e, &text)))
    })?;
    if let TopologySpec::File { .. } = spec {
        let message = format!("{}: expected a topology, got another file", path.display());
        return Err(cx.bad("topology.file", message));
    }
    spec.build().map_err(|e| cx.bad("topology.file", format!("{}: {e}", path.display())))
}

fn hosts_per_rack(spec: &TopologySpec) -> Option<u32> {
    match *spec {
        TopologySpec::LeafSpine { hosts_per_rack, .. } => Some(hosts_per_rack as u32),
        TopologySpec::FatTree { k, .. } => Some(k as u32 / 2),
        TopologySpec::Dumbbell { hosts_per_side, .. } => Some(hosts_per_side as u32),
        TopologySpec::Star { .. } | TopologySpec::Links { .. } | TopologySpec::File { .. } => None,
    }
}

fn fabric(spec: &FabricSpec, cx: &Context<'_>) -> Result<FabricConfig, PlanError> {
    let bytes =
        |key, value: u64, least| cx.range(key, value as f64, least, 4e9).map(|_| Bytes::new(value));
    let buffer = match (spec.buffer_bytes, spec.shared_buffer_bytes) {
        (Some(_), Some(shared)) => {
            let message = format!("expected one of buffer-bytes and this, got both ({shared})");
            return Err(cx.bad("fabric.shared-buffer-bytes", message));
        }
        (Some(own), None) => Buffer::PerPort(bytes("fabric.buffer-bytes", own, 0.0)?),
        (None, Some(shared)) => Buffer::Shared {
            per_switch: bytes("fabric.shared-buffer-bytes", shared, 1500.0)?,
            alpha: cx.range("fabric.alpha", spec.alpha, 1e-3, 1e3)?,
        },
        (None, None) => FabricConfig::default().buffer,
    };
    let burst = cx.micros("fabric.shaper-burst-us", spec.shaper_burst_us, 0.0)?;
    let cut_through = bytes("fabric.cut-through-bytes", spec.cut_through_bytes, 1.0)?;
    let express = cx.range("fabric.express-bytes", spec.express_bytes as f64, 0.0, 9000.0)?;
    Ok(FabricConfig {
        buffer,
        overflow: spec.overflow,
        spray: spec.spray,
        interface: spec.interface,
        switching: match spec.switching {
            SwitchingSpec::StoreAndForward => Switching::StoreAndForward,
            SwitchingSpec::CutThrough => Switching::CutThrough { header: cut_through },
            SwitchingSpec::Shaped => Switching::Shaped { burst },
        },
        express: express as u16,
        ..FabricConfig::default()
    })
}

fn capture(
    spec: &RunSpec,
    transport: &ValidTransport,
    topology: &Topology,
    cx: &Context<'_>,
) -> Result<Option<CaptureConfig>, PlanError> {
    let Some(file) = &spec.capture else {
        if let Some(hosts) = &spec.capture_hosts {
            let message = format!("expected run.capture with it, got {hosts:?} alone");
            return Err(cx.bad("run.capture-hosts", message));
        }
        return Ok(None);
    };
    let is_name = Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
    let stem = file.strip_suffix(".pcapng");
    if !is_name || file.contains('/') || stem.is_none_or(str::is_empty) {
        let message = format!("expected a file name that ends in .pcapng, got {file:?}");
        return Err(cx.bad("run.capture", message));
    }
    if transport.wire_id().is_none() {
        let message = "expected a transport whose packets have a format of their own";
        return Err(cx.bad("run.capture", message));
    }
    let n_ends = topology.n_hosts() + topology.n_arbiters();
    let mut ends = spec.capture_hosts.clone().unwrap_or_else(|| (0..n_ends).collect());
    ends.sort_unstable();
    ends.dedup();
    match ends.last() {
        None => return Err(cx.bad("run.capture-hosts", "expected hosts' numbers, got none")),
        Some(&last) if last >= n_ends => {
            let message = format!("expected numbers below {n_ends}, got {last}");
            return Err(cx.bad("run.capture-hosts", message));
        }
        Some(_) => {}
    }
    cx.range("run.capture-packets", spec.capture_packets as f64, 1.0, 1e12)?;
    Ok(Some(CaptureConfig { file: file.clone(), ends, packets_max: spec.capture_packets }))
}

fn clocks(spec: &ClocksSpec, cx: &Context<'_>) -> Result<ClockSpec, PlanError> {
    Ok(ClockSpec {
        offset_max: cx.micros("clocks.offset-us", spec.offset_us, 0.0)?,
        drift_ppm_max: cx.range("clocks.drift-ppm", spec.drift_ppm, 0.0, 100_000.0)?,
    })
}

fn faults(
    spec: &FaultsSpec,
    topology: &Topology,
    cx: &Context<'_>,
) -> Result<FaultSpec, PlanError> {
    let outage = |(i, outage): (usize, &OutageSpec)| {
        let key = |name: &str| format!("faults.outages[{i}].{name}");
        let number = |name: &str, n: u32, count: u32| {
            if n < count {
                return Ok(n);
            }
            Err(cx.bad(&key(name), format!("expected a number below {count}, got {n}")))
        };
        let target = match (outage.link, outage.switch, outage.arbiter) {
            (Some(link), None, None) => {
                Target::Link(number("link", link, topology.links().len() as u32)?)
            }
            (None, Some(switch), None) => {
                Target::Switch(number("switch", switch, topology.n_switches())?)
            }
            (None, None, Some(arbiter)) => {
                Target::Arbiter(number("arbiter", arbiter, topology.n_arbiters())?)
            }
            (link, switch, arbiter) => {
                let message = format!(
                    "expected one of link, switch and arbiter, got {link:?}, {switch:?} and {arbiter:?}"
                );
                return Err(cx.bad(&key("link"), message));
            }
        };
        let from = Time::ZERO + cx.micros(&key("from-us"), outage.from_us, 0.0)?;
        let until = match outage.until_us {
            None => Time::NEVER,
            Some(us) => {
                let least = (outage.from_us + 1e-6).min(1e12);
                Time::ZERO + cx.micros(&key("until-us"), us, least)?
            }
        };
        Ok(Outage { target, from, until })
    };
    Ok(FaultSpec {
        every_link: LinkFault {
            loss: cx.range("faults.loss", spec.loss, 0.0, 1.0)?,
            duplicate: cx.range("faults.duplicate", spec.duplicate, 0.0, 1.0)?,
            reorder: cx.range("faults.reorder", spec.reorder, 0.0, 1.0)?,
            delay_max: cx.micros("faults.delay-us", spec.delay_us, 0.0)?,
        },
        links: Vec::new(),
        outages: spec.outages.iter().enumerate().map(outage).collect::<Result<_, _>>()?,
    })
}
