//! From a plan to one that can be run: files read, numbers checked, pieces built.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rampmeter_core::fabric::Buffer;
use rampmeter_core::fabric::{ArbiterNeed, ArbiterPlace, Spray};
use rampmeter_core::{Bytes, FabricFacts, Span};
use rampmeter_proto::keys::BadKey;
use rampmeter_proto::transport::{Derived, Network, Place, Quantity, Site};
use rampmeter_sim::{
    ClockSpec, Delays, FabricConfig, Shape, SimSpec, Switching, Topology, TopologyError,
    TopologySpec,
};
use rampmeter_workload::{ValidWorkload, WorkloadContext};

use crate::by_port::{self, NeedsByRate, PortBytesSpec};
use crate::capture::CaptureConfig;
use crate::context::Context;
use crate::cut::Cut;
use crate::error::PlanError;
use crate::fabric::{check_buffer, port_memory, resolve, works_without_memory};
use crate::faults::faults;
use crate::names::{NamesSpec, NodeName};
use crate::overload;
use crate::plan::{
    ClocksSpec, DeadlinesSpec, FaultsSpec, LinkFaultSpec, LinkName, LoadSpec, Plan, RunSpec,
};
use crate::sampling;
use crate::topology::{self, Imported};
use crate::trace::{self, TraceConfig};
use crate::transport::{TransportSpec, ValidTransport};

/// A plan that has been checked.
#[derive(Clone, Debug)]
pub struct ValidPlan {
    pub(crate) plan: Plan,
    pub(crate) sim: SimSpec,
    pub(crate) facts: FabricFacts,
    pub(crate) transport: ValidTransport,
    pub(crate) workload: ValidWorkload,
    /// The packets of messages; those of the first of several transports.
    pub(crate) cut: Cut,
    /// The packets of each transport's messages.
    pub(crate) cuts: Vec<Cut>,
    pub(crate) deadlines: Option<DeadlinesSpec>,
    pub(crate) capture: Option<CaptureConfig>,
    pub(crate) warnings: Vec<String>,
    /// True if a warning says that the core cannot carry the load.
    pub(crate) is_overloaded: bool,
    /// The user's names of nodes.
    pub(crate) names: NamesSpec,
    pub(crate) trace: Option<TraceConfig>,
    /// Interval of the rates of flows.
    pub(crate) rates: Option<Span>,
}

impl Plan {
    /// Checks the plan and builds what a run needs. Relative file names are relative to `base`;
    /// `origin` names the plan in errors.
    ///
    /// # Errors
    /// [`PlanError`] with the path to the key.
    pub fn check(mut self, origin: &str, base: &Path) -> Result<ValidPlan, PlanError> {
        let cx = Context::new(origin, base);
        let (topology, imported) = topology(&self.topology, &self.names, &cx)?;
        let cuts = self.transport.cuts();
        let cut = cuts[0];
        let Cut { payload, header, .. } = cut;
        let bad_key = |bad: BadKey| PlanError::of_transport(origin, bad);
        let arbiters = |delays: &Delays| Ok(self.transport.needs(&delays.facts())?.arbiters);
        let packet = (payload + header, header);
        let delays = match self.faults.changes.is_empty() {
            true => delays(&topology, packet, arbiters).map_err(bad_key)?,
            false => {
                // Arbiters have links, too.
                let needs = arbiters(&topology.delays(packet.0, packet.1)).map_err(bad_key)?;
                let all = topology.clone().with_arbiters(&needs);
                let changes = faults(&self.faults, &all, &imported.names, &cx)?.changes;
                delays(&topology.clone().at_longest(&changes), packet, arbiters).map_err(bad_key)?
            }
        };
        let facts = delays.facts();
        let needs = self.transport.needs(&facts).map_err(bad_key)?;
        let spray = self.fabric.spray;
        let express = self.fabric.express_bytes;
        let is_central = |need: &ArbiterNeed| need.place == ArbiterPlace::FirstRack;
        if needs.arbiters.iter().any(is_central) && !topology.common_rack().1 {
            let expected = "one without an arbiter, as no switch is reached by all hosts";
            return Err(cx.unexpected("transport.name", expected, self.transport.name()));
        }
        let topology = topology.with_arbiters(&needs.arbiters);
        let by_rate = NeedsByRate::new(&topology, |rate| {
            let at_rate = self.transport.needs(&FabricFacts { access_rate: rate, ..facts });
            // Whether transports need different fabrics does not depend on rates.
            at_rate.unwrap_or_else(|_| needs.clone())
        });
        let is_derived = self.fabric.buffer_bytes.is_none() || self.fabric.ecn_bytes.is_none();
        let is_memory_written =
            self.fabric.buffer_bytes.is_some() || self.fabric.shared_buffer_bytes.is_some();
        let mut fabric = resolve(&mut self.fabric, &needs, &by_rate, &cx)?;
        if cuts.len() > 1 {
            // Each packet has the path choice of its transport.
            self.fabric.spray = spray;
        }
        let losses = with_losses(&self.faults, &imported.losses, &topology, &imported.names);
        let faults = faults(&losses, &topology, &imported.names, &cx)?;
        let fullest = topology.clone().at_fullest(&faults.changes);
        let on = (&fullest, payload + header, express);
        let long_links =
            crate::pfc::resolve(&mut self.fabric, &mut fabric, &needs, on, is_memory_written, &cx)?;
        let transport = transport(&self.transport, &delays, &topology, (&fabric, spray));
        let transport = transport.map_err(bad_key)?;
        by_port::check(&fabric, &topology, &cx)?;
        if !(fabric.is_memoryless() && works_without_memory(&needs)) {
            let least = transport.ready.buffer_min();
            if let Buffer::PerPort(own) = fabric.buffer
                && own < least
                && !is_memory_written
            {
                fabric.buffer = Buffer::PerPort(least);
                self.fabric.buffer_bytes = Some(PortBytesSpec::All(least.get()));
            }
            check_buffer(&fabric.buffer, least, &cx)?;
        }
        let (load_payload, load_header) = match self.load {
            Some(spec) => load_packet(spec, &cx)?,
            None => (payload, header),
        };
        let sending = topology.host_rates().into_iter().map(|(sends, _)| sends);
        let load_rate = sending.min().unwrap_or(facts.access_rate);
        let context = WorkloadContext {
            n_hosts: topology.n_hosts(),
            access_rate: load_rate,
            payload: load_payload,
            wire: load_payload + load_header,
            hosts_per_rack: hosts_per_rack(&imported.spec),
            hosts_per_pod: hosts_per_pod(&imported.spec),
            base_dir: base.to_owned(),
        };
        let workload = self.workload.clone().validate_with_names(&context, &imported.host_names());
        let workload = workload.map_err(|error| PlanError::of_workload(origin, error))?;
        let names = &imported.names;
        if cuts.len() > 1 && workload.last_tenant() as usize >= cuts.len() {
            let expected =
                format!("a transport for each of the tenants 0 to {}", workload.last_tenant());
            return Err(cx.unexpected(
                "transport",
                &expected,
                format!("{} transports", cuts.len()),
            ));
        }
        let capture = capture(&self.run, &transport, &topology, names, &cx)?;
        let has_packets = transport.ready.has_packets();
        let trace = trace::check(&self.run, has_packets, &topology, names, &cx)?;
        if self.run.paths && !has_packets {
            let got = self.transport.name();
            return Err(cx.unexpected("run.paths", "a transport with packets", got));
        }
        let name = self.transport.name();
        let rates = match self.run.rates_us {
            0.0 => None,
            _ if !has_packets => {
                let expected = "a transport with packets";
                return Err(cx.unexpected("run.rates-us", expected, name));
            }
            us => Some(cx.micros("run.rates-us", us, 0.001)?),
        };
        let sim = SimSpec {
            fabric,
            faults,
            clocks: clocks(&self.clocks, needs.clocks_within, &cx)?,
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
            let expected = "a flow's number, from 1";
            return Err(cx.unexpected("measure.finished-before-arrival", expected, "0"));
        }
        let deadlines = self.deadlines.clone();
        if let Some(spec) = &deadlines {
            cx.range("deadlines.mean-us", spec.mean_us, 1e-3, 1e12)?;
            cx.range("deadlines.at-least-ideals", spec.at_least_ideals, 0.0, 1e6)?;
        }
        let mut warnings = imported.notes;
        warnings.extend_from_slice(workload.warnings());
        warnings.extend(long_links);
        let overload = overload::warning(&sim.topology, load_rate, &self.workload).or_else(|| {
            overload::full_link(&sim.topology, &imported.names, load_rate, &self.workload)
        });
        let is_overloaded = overload.is_some();
        warnings.extend(overload);
        warnings.extend(sampling::many(sim.sample, workload.last_arrival()));
        let unequal = overload::unequal_links(&sim.topology, &imported.names);
        let is_named = unequal.is_some();
        warnings.extend(unequal);
        if has_packets {
            warnings.extend(overload::uneven_paths(&sim, &imported.names).filter(|_| !is_named));
            warnings.extend(overload::partial_pairs(&sim));
        }
        warnings.extend(by_port::never_marks(&sim.fabric, &sim.topology));
        warnings.extend(by_rate.warning.filter(|_| is_derived));
        warnings.extend(self.transport.foreign_settings(&sim.topology));
        let assumptions = transport.ready.assumptions();
        let slots = assumptions.one_rate.then(|| sim.topology.slot_rate());
        if let Some(slots) = slots {
            warnings.extend(overload::one_rate(&sim.topology, slots, name));
            warnings.extend(overload::slowed_links(&sim, &imported.names, slots, name));
        }
        let fastest = slots;
        let on = (&sim.topology, &imported.names);
        warnings.extend(overload::slow_returns(on.0, on.1, name, &cuts, fastest));
        if has_packets {
            let sharing = assumptions.one_round_trip.then_some(name);
            warnings.extend(overload::far_hosts(&delays, sharing));
        }
        if assumptions.one_flow {
            warnings.extend(overload::one_flow(&sim.topology, name));
        }
        let has_faults = self.faults != FaultsSpec::default();
        warnings.extend((has_faults && !has_packets).then(|| {
            format!("transport.name: {name} has no packets, and takes no notice of faults")
        }));
        if assumptions.wide_inner_links {
            warnings.extend(overload::inner_links(&sim.topology, &imported.names, name));
        }
        let slowed = transport.ready.slowed();
        warnings.extend(slowed.map(|slowed| overload::slowed(&slowed, name)));
        if assumptions.full_bisection {
            warnings.extend(overload::narrow_core(&sim.topology, name));
        }
        if assumptions.paced_by_receivers {
            warnings.extend(overload::narrow_core_of_receivers(&sim.topology, name));
        }
        Ok(ValidPlan {
            warnings,
            is_overloaded,
            names: imported.names,
            plan: self,
            sim,
            facts,
            transport,
            workload,
            cut,
            cuts,
            deadlines,
            capture,
            trace,
            rates,
        })
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

    /// What is likely to be a mistake, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        if !self.is_overloaded {
            warnings.extend(self.overloaded());
        }
        warnings.extend(self.short_drain());
        warnings
    }

    /// What follows from plan and network, under names that end in their units.
    pub fn derived(&self) -> BTreeMap<String, f64> {
        let FabricFacts { n_hosts, access_rate, data_rtt, control_rtt, .. } = self.facts;
        let packet = self.cut.payload + self.cut.header;
        let bytes = |name, bytes: Bytes| Derived { name, quantity: Quantity::Bytes(bytes.get()) };
        let common = [
            Derived::count("hosts", n_hosts.into()),
            Derived::count("access-rate-bps", access_rate.as_bps()),
            Derived::time("data-rtt", data_rtt),
            Derived::time("control-rtt", control_rtt),
            bytes("bdp", access_rate.bytes_floor(data_rtt)),
            Derived::packets("bdp", self.facts.bdp_packets(packet)),
            bytes("packet", packet),
            bytes("payload", self.cut.payload),
            Derived::time("packet", access_rate.tx_time(packet)),
            bytes("port-buffer", port_memory(&self.sim.fabric.buffer)),
            Derived::count("arbiters", self.transport.needs.arbiters.len() as u64),
            Derived::count("priorities", self.transport.needs.priorities.into()),
        ];
        let own = self.transport.describe();
        let own = own.iter().map(Derived::entry).map(|(k, v)| (format!("transport.{k}"), v));
        common.iter().map(Derived::entry).chain(own).collect()
    }
}

/// Returns the delays between hosts, and between these and the `arbiters` that follow from them, of
/// full packets and of control packets.
fn delays(
    topology: &Topology,
    (data, control): (Bytes, Bytes),
    arbiters: impl Fn(&Delays) -> Result<Vec<ArbiterNeed>, BadKey>,
) -> Result<Delays, BadKey> {
    let delays = topology.delays(data, control);
    let arbiters = arbiters(&delays)?;
    let rtt = topology.clone().with_arbiters(&arbiters).arbiter_rtt(control);
    Ok(delays.with_control_rtt(rtt))
}

/// Payload and headers of the packets that loads count.
fn load_packet(spec: LoadSpec, cx: &Context<'_>) -> Result<(Bytes, Bytes), PlanError> {
    let LoadSpec { payload_bytes, header_bytes } = spec;
    cx.range("load.payload-bytes", payload_bytes as f64, 1.0, 1e6)?;
    cx.range("load.header-bytes", header_bytes as f64, 0.0, 1e6)?;
    Ok((Bytes::new(payload_bytes), Bytes::new(header_bytes)))
}

/// Reads the topology's file, if it has one, and builds the topology.
fn topology(
    spec: &TopologySpec,
    names: &NamesSpec,
    cx: &Context<'_>,
) -> Result<(Topology, Imported), PlanError> {
    let (mut imported, key) = match spec {
        TopologySpec::File { file, hosts_forward } => {
            let bad = |message| cx.bad("topology.file", message);
            let mut imported = topology::read(&cx.path(file)).map_err(bad)?;
            if let TopologySpec::Links { hosts_forward: forwards, .. } = &mut imported.spec {
                *forwards |= hosts_forward;
            }
            (imported, "topology.file")
        }
        spec => (Imported::plain(spec.clone()), "topology"),
    };
    if !names.hosts.is_empty() {
        imported.names.hosts.clone_from(&names.hosts);
    }
    if !names.switches.is_empty() {
        imported.names.switches.clone_from(&names.switches);
    }
    let built = imported.spec.build().map_err(|error| {
        let message = imported.explain(&error);
        match (spec, error.link()) {
            (TopologySpec::File { file, .. }, _) => {
                cx.bad(key, format!("{}: {message}", cx.path(file).display()))
            }
            (TopologySpec::Links { .. }, Some(link)) => {
                cx.bad(&format!("topology.links[{link}]"), message)
            }
            (_, _) => match error {
                TopologyError::Number { what, expected, got } => {
                    cx.unexpected(&format!("topology.{what}"), expected, got)
                }
                TopologyError::Count { what, expected, got } if !what.contains(' ') => {
                    cx.unexpected(&format!("topology.{what}"), expected, got)
                }
                _ => cx.bad(key, message),
            },
        }
    })?;
    imported.names.add_forwarding(&imported.spec, &built);
    let bad = |(key, message): (&str, String)| cx.bad(&format!("names.{key}"), message);
    imported.names.check(&built).map_err(bad)?;
    Ok((built, imported))
}

/// Returns the faults of the plan with the losses of the topology's file. A fault of the plan
/// replaces that of the file.
fn with_losses(
    spec: &FaultsSpec,
    losses: &[(u32, f64)],
    topology: &Topology,
    names: &NamesSpec,
) -> FaultsSpec {
    let mut all = spec.clone();
    let number = |fault: &LinkFaultSpec| match &fault.link {
        LinkName::Number(number) => Some(*number),
        LinkName::Ends(ends) => names.link(topology, ends),
    };
    let own: Vec<u32> = spec.links.iter().filter_map(number).collect();
    for &(number, loss) in losses.iter().filter(|(number, _)| !own.contains(number)) {
        let link = LinkName::Number(number);
        let fault = LinkFaultSpec { link, loss, duplicate: 0.0, reorder: 0.0, delay_us: 0.0 };
        all.links.push(fault);
    }
    all
}

fn hosts_per_rack(spec: &TopologySpec) -> Option<u32> {
    match *spec {
        TopologySpec::LeafSpine { hosts_per_rack, .. } => Some(hosts_per_rack as u32),
        TopologySpec::FatTree { k, .. } | TopologySpec::Pod { k, .. } => Some(k as u32 / 2),
        TopologySpec::Dumbbell { hosts_per_side, .. } => Some(hosts_per_side as u32),
        TopologySpec::Star { .. } | TopologySpec::Links { .. } | TopologySpec::File { .. } => None,
    }
}

fn hosts_per_pod(spec: &TopologySpec) -> Option<u32> {
    match *spec {
        TopologySpec::FatTree { k, .. } => Some((k * k / 4) as u32),
        _ => None,
    }
}

fn transport(
    spec: &TransportSpec,
    delays: &Delays,
    topology: &Topology,
    (fabric, spray): (&FabricConfig, Option<Spray>),
) -> Result<ValidTransport, BadKey> {
    let Shape { switches, ratio, ports, has_slower, rails } = topology.shape(delays);
    let (slowest, fastest) = topology.arbiter_rates();
    // Paths are alike if links between switches have one rate.
    let paths = topology.regular_paths().filter(|_| topology.has_one_core_rate());
    let racks = topology.rack_uplinks();
    let pods = match fabric.switching {
        Switching::CutThrough { header } => topology.pods(header),
        Switching::StoreAndForward | Switching::Shaped { .. } => None,
    };
    let network = Network {
        switches,
        ratio,
        ports,
        has_slower,
        rails,
        slowest,
        fastest,
        slots: topology.slot_rate(),
        core: topology.core_rate(),
        pairs: Arc::new(topology.pairs().with_round_trips(delays.round_trips().cloned())),
        racks,
        paths,
        pods,
    };
    spec.configure(
        &Site { facts: delays.facts(), place: Place::Network(network), lower: None },
        spray,
    )
}

fn capture(
    spec: &RunSpec,
    transport: &ValidTransport,
    topology: &Topology,
    names: &NamesSpec,
    cx: &Context<'_>,
) -> Result<Option<CaptureConfig>, PlanError> {
    let Some(file) = &spec.capture else {
        if let Some(hosts) = &spec.capture_hosts {
            let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
            let hosts = hosts.join(", ");
            let expected = "run.capture with it";
            return Err(cx.unexpected("run.capture-hosts", expected, format!("[{hosts}] alone")));
        }
        return Ok(None);
    };
    cx.file_name("run.capture", file, &[".pcapng"])?;
    if transport.wire().is_none() {
        let expected = "a transport whose packets have a format of their own";
        return Err(cx.unexpected("run.capture", expected, "one without"));
    }
    let station = |name: &NodeName| {
        let station = names.station(name, topology);
        station.map_err(|expected| cx.unexpected("run.capture-hosts", &expected, name))
    };
    let mut ends: Vec<u32> = match &spec.capture_hosts {
        None => (0..topology.n_hosts() + topology.n_arbiters()).collect(),
        Some(hosts) => hosts.iter().map(station).collect::<Result<_, _>>()?,
    };
    ends.sort_unstable();
    ends.dedup();
    if ends.is_empty() {
        return Err(cx.unexpected("run.capture-hosts", "names or numbers of hosts", "none"));
    }
    cx.range("run.capture-packets", spec.capture_packets as f64, 1.0, 1e12)?;
    Ok(Some(CaptureConfig { file: file.clone(), ends, packets_max: spec.capture_packets }))
}

/// Checks how far clocks start apart against the largest difference `within` that the transport can
/// live with. Drift may exceed it in long runs.
fn clocks(
    spec: &ClocksSpec,
    within: Option<Span>,
    cx: &Context<'_>,
) -> Result<ClockSpec, PlanError> {
    let offset_max = cx.micros("clocks.offset-us", spec.offset_us, 0.0)?;
    let drift_ppm_max = cx.range("clocks.drift-ppm", spec.drift_ppm, 0.0, 100_000.0)?;
    if let Some(within) = within.filter(|within| offset_max > *within) {
        let expected = format!(
            "at most {}, as the transport works only while clocks agree within that",
            within.as_us_f64(),
        );
        return Err(cx.unexpected("clocks.offset-us", expected, spec.offset_us));
    }
    Ok(ClockSpec { offset_max, drift_ppm_max })
}
