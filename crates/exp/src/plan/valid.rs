//! A plan that has been checked, the only type that runs.

use std::collections::BTreeMap;

use rampmeter_proto::registered::{DerivedValue, Quantity};
use rampmeter_sim::SimSpec;
use rampmeter_types::{Bytes, FabricFacts, Span};
use rampmeter_workload::{SizeDist, ValidWorkload};

use super::Plan;
use super::fabric::port_memory;
use crate::capture::CaptureConfig;
use crate::simulation::status::ThreadCount;
use crate::timeline::TimelineConfig;
use crate::topology::names::NamesSpec;
use crate::traffic::deadlines::DeadlinesSpec;
use crate::transport::ValidTransport;
use crate::warning::Warning;
use rampmeter_types::Segmentation;

/// A plan that has been checked.
#[derive(Clone, Debug)]
pub struct ValidPlan {
    pub(crate) plan: Plan,
    pub(crate) sim: SimSpec,
    pub(crate) facts: FabricFacts,
    pub(crate) transport: ValidTransport,
    pub(crate) workload: ValidWorkload,
    /// The packets of messages; those of the first of several transports.
    pub(crate) segmentation: Segmentation,
    /// The packets of each transport's messages.
    pub(crate) segmentations: Vec<Segmentation>,
    pub(crate) deadlines: Option<DeadlinesSpec>,
    pub(crate) capture: Option<CaptureConfig>,
    pub(crate) warnings: Vec<Warning>,
    /// True if a warning reports that the core cannot carry the load.
    pub(crate) is_overloaded: bool,
    /// The user's names of nodes.
    pub(crate) names: NamesSpec,
    pub(crate) timeline: Option<TimelineConfig>,
    /// Interval of the rates of flows.
    pub(crate) rates: Option<Span>,
    pub(crate) threads: ThreadCount,
}

impl ValidPlan {
    /// Sets the threads that a long run uses if the plan has no `run.threads`; 1 by default.
    pub fn set_default_threads(&mut self, count: usize) {
        if !self.threads.is_explicit {
            self.threads.count = count.clamp(1, 256);
        }
    }

    /// Returns the plan that was checked.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the facts from which protocols derive their parameters.
    pub fn facts(&self) -> &FabricFacts {
        &self.facts
    }

    /// Returns the values derived from plan and network, by names that end in their units.
    pub fn derived(&self) -> BTreeMap<String, f64> {
        let FabricFacts { n_hosts, access_rate, data_rtt, control_rtt, .. } = self.facts;
        let packet = self.segmentation.full_wire_bytes();
        let bytes =
            |name, bytes: Bytes| DerivedValue { name, quantity: Quantity::Bytes(bytes.get()) };
        let common = [
            DerivedValue::count("hosts", n_hosts.into()),
            DerivedValue::count("access-rate-bps", access_rate.as_bps()),
            DerivedValue::time("data-rtt", data_rtt),
            DerivedValue::time("control-rtt", control_rtt),
            bytes("bdp", access_rate.bytes_floor(data_rtt)),
            DerivedValue::packets("bdp", self.facts.bdp_packets(packet)),
            bytes("packet", packet),
            bytes("payload", self.segmentation.payload),
            DerivedValue::time("packet", access_rate.tx_time(packet)),
            bytes("port-buffer", port_memory(&self.sim.fabric.buffer)),
            bytes("run-memory", self.estimate_memory()),
            DerivedValue::count("arbiters", self.transport.needs.arbiters.len() as u64),
            DerivedValue::count("priorities", self.transport.needs.priorities.into()),
        ];
        let own = self.transport.describe();
        let own = own.iter().map(DerivedValue::entry).map(|(k, v)| (format!("transport.{k}"), v));
        common.iter().map(DerivedValue::entry).chain(own).collect()
    }

    /// Estimates the memory of a run in one thread, mostly within a factor of two. It is the memory
    /// of the process, ports, hosts, routes, flows and packets in flight. Every host counts with
    /// one bandwidth-delay product in flight. The sizes are fitted to runs of 1024 to 131 072 hosts
    /// (`docs/performance.md`).
    fn estimate_memory(&self) -> Bytes {
        const PROCESS: f64 = 60e6;
        const PORT: f64 = 200.0;
        const HOST: f64 = 12_000.0;
        const ROUTE: f64 = 8.0;
        const FLOW: f64 = 120.0;
        const PACKET: f64 = 130.0;
        let topology = &self.sim.topology;
        let hosts = f64::from(topology.n_hosts());
        let routes = f64::from(topology.n_switches()) * topology.racks().len() as f64;
        let flows = self.workload.total_flows().unwrap_or(0) as f64;
        let sizes = self.workload.sizes().map(SizeDist::mean_bytes);
        let mean = self.workload.mean_bytes().or(sizes).unwrap_or(f64::INFINITY);
        let bdp = self.facts.access_rate.bytes_floor(self.facts.data_rtt).get() as f64;
        let in_flight = (hosts * bdp).min(flows * mean) / self.segmentation.payload.get() as f64;
        let ports = 2.0 * topology.links().len() as f64;
        let fixed = PROCESS + PORT * ports + HOST * hosts + ROUTE * routes;
        Bytes::new((fixed + FLOW * flows + PACKET * in_flight) as u64)
    }
}
