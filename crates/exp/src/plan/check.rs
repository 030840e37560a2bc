//! Checks a plan: reads its files, checks its numbers, and builds the parts of a run.

use std::path::Path;

use rampmeter_sim::{ClockSpec, FabricConfig, FaultSpec, SimSpec, Topology};
use rampmeter_types::fabric::Buffer;
use rampmeter_types::{Bytes, Rate, Span};
use rampmeter_workload::{ValidWorkload, WorkloadContext};

use super::Plan;
use super::by_port::{self, PortBytesSpec};
use super::context::PlanOrigin;
use super::fabric::{check_buffer, check_scheduling, resolve, whole_cells, works_without_memory};
use super::faults::{faults, with_losses};
use super::network::PlanNetwork;
use super::pfc::{self, PfcSite};
use super::tables::{ClocksSpec, LoadSpec};
use super::valid::ValidPlan;
use super::warnings::{self, PlanFacts};
use super::{capture, timeline};
use crate::error::PlanError;
use crate::simulation::status::ThreadCount;
use crate::traffic::deadlines::DeadlinesSpec;
use crate::transport::ValidTransport;
use crate::warning::Warning;
use rampmeter_types::Segmentation;

impl Plan {
    /// Checks the plan and builds the parts of a run. Relative file names are relative to `base`;
    /// `origin` names the plan in errors.
    ///
    /// # Errors
    /// [`PlanError`] with the path to the key.
    pub fn check(mut self, origin: &str, base: &Path) -> Result<ValidPlan, PlanError> {
        let cx = PlanOrigin::new(origin, base);
        let segmentations = self.transport.segmentations();
        let segmentation = segmentations[0];

        let network = PlanNetwork::build(&self, segmentation, &cx)?;
        let spray = self.fabric.spray;
        let PortSettings { fabric, faults, transport, long_links, many_rates } =
            self.ports(&network, &segmentations, &cx)?;
        let has_packets = transport.ready.has_packets();
        let PlanNetwork { topology, imported, needs, .. } = &network;
        let facts = network.delays.facts();
        let sending: Vec<Rate> = topology.host_rates().iter().map(|rates| rates.tx).collect();
        let load_rate = sending.iter().copied().min().unwrap_or(facts.access_rate);
        let (payload, header) = match self.load {
            Some(spec) => load_packet(spec, &cx)?,
            None => (segmentation.payload, segmentation.header),
        };
        let context = WorkloadContext {
            n_hosts: topology.n_hosts(),
            access_rate: load_rate,
            host_rates: sending,
            payload,
            wire: payload + header,
            hosts_per_rack: network.hosts_per_rack(),
            hosts_per_pod: network.hosts_per_pod(),
            base_dir: base.to_owned(),
        };
        let workload = self.workload.clone().validate_with_names(&context, &imported.host_names());
        let workload = workload.map_err(|error| PlanError::of_workload(origin, error))?;
        check_tenants(&workload, segmentations.len(), &cx)?;
        let names = &imported.names;
        let capture = capture::check(&self.run, &transport, topology, names, &cx)?;
        let timeline = timeline::check(&self.run, has_packets, topology, names, &cx)?;
        let (rates, threads) = (self.rates(has_packets, &cx)?, self.threads(&cx)?);
        let clocks = clocks(&self.clocks, needs.clock_skew_max, &cx)?;
        let packet = facts.access_rate.tx_time(segmentation.full_wire_bytes());
        let sample = Span::from_us(10).max(packet * 8).max(facts.data_rtt / 20);
        let sim = self.sim(fabric, faults, clocks, topology.clone(), sample, &cx)?;
        let deadlines = self.deadlines(&cx)?;
        let (warnings, is_overloaded) = warnings::plan_warnings(&PlanFacts {
            plan: &self,
            sim: &sim,
            network: &network,
            workload: &workload,
            load_rate,
            transport: &transport,
            segmentations: &segmentations,
            spray,
            long_links,
            many_rates,
        });
        Ok(ValidPlan {
            warnings,
            is_overloaded,
            names: network.imported.names,
            plan: self,
            sim,
            facts,
            transport,
            workload,
            segmentation,
            segmentations,
            deadlines,
            capture,
            timeline,
            rates,
            threads,
        })
    }

    /// Resolves the settings of ports and the faults of links, and configures the transport for
    /// them. Writes each resolved value into the plan.
    fn ports(
        &mut self,
        network: &PlanNetwork,
        segmentations: &[Segmentation],
        cx: &PlanOrigin<'_>,
    ) -> Result<PortSettings, PlanError> {
        let PlanNetwork { topology, imported, needs, .. } = network;
        let (spray, express) = (self.fabric.spray, self.fabric.express_bytes);
        let scheduling = self.fabric.scheduling;
        let by_rate = network.needs_by_rate(&self.transport);
        let is_derived = self.fabric.buffer_bytes.is_none() || self.fabric.ecn_bytes.is_none();
        let is_memory_written =
            self.fabric.buffer_bytes.is_some() || self.fabric.shared_buffer_bytes.is_some();
        let mut fabric = resolve(&mut self.fabric, needs, &by_rate, cx)?;
        let queueing = self.transport.queueing();
        check_scheduling(&mut self.fabric, &fabric, scheduling, queueing, cx)?;
        if segmentations.len() > 1 {
            // Each packet has the path choice of its transport.
            self.fabric.spray = spray;
        }
        self.faults = with_losses(&self.faults, &imported.losses, topology, &imported.names);
        let faults = faults(&self.faults, topology, &imported.names, cx)?;
        let fullest = topology.clone().with_fullest_links(&faults.changes);
        let packet = segmentations[0].full_wire_bytes();
        let site = PfcSite { topology: &fullest, packet, express };
        let long_links =
            pfc::resolve(&mut self.fabric, &mut fabric, needs, site, is_memory_written, cx)?;
        let transport = network.configure(&self.transport, &fabric, spray);
        let transport = transport.map_err(|bad| cx.bad_transport(bad))?;
        by_port::check(&fabric, topology, cx)?;
        if !(fabric.is_memoryless() && works_without_memory(needs)) {
            let cell = fabric.buffer_cell;
            let least = whole_cells(transport.ready.buffer_min(), cell);
            if let Buffer::PerPort(own) = fabric.buffer
                && own < least
                && !is_memory_written
            {
                fabric.buffer = Buffer::PerPort(least);
                self.fabric.buffer_bytes = Some(PortBytesSpec::All(least.get()));
            }
            check_buffer(&fabric.buffer, least, cell, cx)?;
        }
        let many_rates = by_rate.warning.filter(|_| is_derived);
        Ok(PortSettings { fabric, faults, transport, long_links, many_rates })
    }

    fn threads(&self, cx: &PlanOrigin<'_>) -> Result<ThreadCount, PlanError> {
        let count = self.run.threads.unwrap_or(1);
        let count = cx.range("run.threads", count.into(), 1.0, 256.0)? as usize;
        Ok(ThreadCount { count, is_explicit: self.run.threads.is_some() })
    }

    /// Returns the interval of the rates of flows, if they are recorded.
    fn rates(&self, has_packets: bool, cx: &PlanOrigin<'_>) -> Result<Option<Span>, PlanError> {
        let name = self.transport.name();
        let expected = "a transport with packets";
        if self.run.paths && !has_packets {
            return Err(cx.unexpected("run.paths", expected, name));
        }
        match self.run.rates_us {
            0.0 => Ok(None),
            _ if !has_packets => Err(cx.unexpected("run.rates-us", expected, name)),
            us => cx.micros("run.rates-us", us, 0.001).map(Some),
        }
    }

    fn sim(
        &self,
        fabric: FabricConfig,
        faults: FaultSpec,
        clocks: ClockSpec,
        topology: Topology,
        sample: Span,
        cx: &PlanOrigin<'_>,
    ) -> Result<SimSpec, PlanError> {
        Ok(SimSpec {
            fabric,
            faults,
            clocks,
            topology,
            seed: self.seed,
            drain: cx.micros("run.drain-us", self.run.drain_us, 0.0)?,
            sample: match self.run.sample_us {
                None => Some(sample),
                Some(0.0) => None,
                Some(us) => Some(cx.micros("run.sample-us", us, 0.001)?),
            },
            paranoid: self.run.paranoid,
        })
    }

    /// Checks the flows that statistics count and the deadlines.
    fn deadlines(&self, cx: &PlanOrigin<'_>) -> Result<Option<DeadlinesSpec>, PlanError> {
        if self.measure.completed_before_flow == Some(0) {
            let expected = "a flow's number, from 1";
            return Err(cx.unexpected("measure.completed-before-flow", expected, "0"));
        }
        if let Some(spec) = &self.deadlines {
            cx.range("deadlines.mean-us", spec.mean_us, 1e-3, 1e12)?;
            cx.range("deadlines.ideal-factor-min", spec.ideal_factor_min, 0.0, 1e6)?;
        }
        Ok(self.deadlines.clone())
    }
}

/// Settings of the ports of a network, and the transport that works with them.
struct PortSettings {
    fabric: FabricConfig,
    faults: FaultSpec,
    transport: ValidTransport,
    /// A warning if long links need more memory than the transport prefers.
    long_links: Option<Warning>,
    /// A warning if ports have more rates than derived tables have entries.
    many_rates: Option<Warning>,
}

/// Checks that each tenant of the workload has a transport, if there are several.
fn check_tenants(
    workload: &ValidWorkload,
    n_transports: usize,
    cx: &PlanOrigin<'_>,
) -> Result<(), PlanError> {
    let last = workload.last_tenant();
    if n_transports > 1 && last as usize >= n_transports {
        let expected = format!("a transport for each of the tenants 0 to {last}");
        return Err(cx.unexpected("transport", expected, format!("{n_transports} transports")));
    }
    Ok(())
}

/// Returns the payload and headers of the packets that loads count.
fn load_packet(spec: LoadSpec, cx: &PlanOrigin<'_>) -> Result<(Bytes, Bytes), PlanError> {
    let LoadSpec { payload_bytes, header_bytes } = spec;
    cx.range("load.payload-bytes", payload_bytes as f64, 1.0, 1e6)?;
    cx.range("load.header-bytes", header_bytes as f64, 0.0, 1e6)?;
    Ok((Bytes::new(payload_bytes), Bytes::new(header_bytes)))
}

/// Checks how far clocks start apart against the largest difference `within` that the transport can
/// live with. Drift may exceed it in long runs.
fn clocks(
    spec: &ClocksSpec,
    within: Option<Span>,
    cx: &PlanOrigin<'_>,
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
