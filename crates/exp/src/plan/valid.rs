//! A plan that has been checked, the only type that runs.

use std::collections::BTreeMap;

use rampmeter_core::{Bytes, FabricFacts, Span};
use rampmeter_proto::registered::{DerivedValue, Quantity};
use rampmeter_sim::SimSpec;
use rampmeter_workload::ValidWorkload;

use super::Plan;
use super::fabric::port_memory;
use crate::capture::CaptureConfig;
use crate::simulation::status::ThreadCount;
use crate::topology::names::NamesSpec;
use crate::trace::TraceConfig;
use crate::traffic::deadlines::DeadlinesSpec;
use crate::traffic::segmentation::Segmentation;
use crate::transport::ValidTransport;
use crate::warning::Warning;

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
    pub(crate) trace: Option<TraceConfig>,
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

    /// The plan that was checked.
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
        let packet = self.segmentation.payload + self.segmentation.header;
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
            DerivedValue::count("arbiters", self.transport.needs.arbiters.len() as u64),
            DerivedValue::count("priorities", self.transport.needs.priorities.into()),
        ];
        let own = self.transport.describe();
        let own = own.iter().map(DerivedValue::entry).map(|(k, v)| (format!("transport.{k}"), v));
        common.iter().map(DerivedValue::entry).chain(own).collect()
    }
}
