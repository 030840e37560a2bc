//! Plans as people write them: TOML with defaults, unknown keys refused.

pub(crate) mod by_port;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod context;
pub(crate) mod fabric;
mod fabric_keys;
pub(crate) mod faults;
pub(crate) mod network;
pub(crate) mod offered;
pub(crate) mod pfc;
pub(crate) mod schema;
pub(crate) mod tables;
pub(crate) mod timeline;
pub(crate) mod valid;
pub(crate) mod warmup;
pub(crate) mod warnings;

use rampmeter_sim::TopologySpec;
use rampmeter_workload::WorkloadSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::PlanError;
use crate::text::parse::parse;
use crate::topology;
use crate::topology::names::NamesSpec;
use crate::traffic::deadlines::DeadlinesSpec;
use crate::transport::{Registry, TransportSpec};
use fabric_keys::FabricSpec;
use tables::{ClocksSpec, FaultsSpec, LinkFaultSpec, LinkName, LoadSpec, MeasureSpec, RunSpec};

/// A plan: everything that decides the result of a run. `T` is its `transport` table and `N` its
/// `topology` table, read or not.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan<T = TransportSpec, N = TopologySpec> {
    /// The seed of every random stream.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Nodes and links.
    pub topology: N,
    /// The user's names of hosts and switches.
    #[serde(default, skip_serializing_if = "NamesSpec::is_empty")]
    pub names: NamesSpec,
    /// Buffers, spraying, switching.
    #[serde(default)]
    pub fabric: FabricSpec,
    /// The protocol and its parameters.
    pub transport: T,
    /// Traffic: senders, receivers, sizes and times.
    pub workload: WorkloadSpec,
    /// End of the run, and the data that it records.
    #[serde(default)]
    pub run: RunSpec,
    /// Flows that the statistics count.
    #[serde(default)]
    pub measure: MeasureSpec,
    /// Host clocks.
    #[serde(default)]
    pub clocks: ClocksSpec,
    /// Faults of links and nodes.
    #[serde(default)]
    pub faults: FaultsSpec,
    /// Deadlines by which applications need their messages.
    pub deadlines: Option<DeadlinesSpec>,
    /// The packets that loads count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadSpec>,
    /// Points, transports and seeds of a sweep, which a run ignores.
    #[serde(skip_serializing)]
    #[schemars(skip)]
    pub sweep: Option<toml::Table>,
}

fn default_seed() -> u64 {
    1
}

impl Plan {
    /// Reads a plan, whose transport must be one of `registry`. `origin` names the text in errors.
    ///
    /// # Errors [`PlanError`] of the code `Syntax` with line and column. For keys of the
    /// `transport` table, it is of the code `Value` with line and key.
    pub fn from_toml(text: &str, origin: &str, registry: &Registry) -> Result<Self, PlanError> {
        let plan: Plan<toml::Value> = if topology::lists_links(text) {
            let plan: Plan<toml::Value, toml::Table> = parse(text, origin)?;
            plan.with_links(text, origin)?
        } else {
            parse(text, origin)?
        };
        let transport = registry
            .read(&plan.transport)
            .map_err(|bad| PlanError::of_transport(origin, bad).in_text(text))?;
        Ok(plan.with_tables(|_, topology| (transport, topology)))
    }

    /// Returns the plan as TOML with every default written out.
    pub fn to_toml(&self) -> String {
        // Every type here serialises to a table of plain values.
        toml::to_string(self).unwrap_or_else(|e| format!("# cannot be written as TOML: {e}\n"))
    }
}

impl<T> Plan<T, toml::Table> {
    /// Reads a topology that lists its links, with names and units as users write them.
    fn with_links(mut self, text: &str, origin: &str) -> Result<Plan<T>, PlanError> {
        let table = std::mem::take(&mut self.topology);
        let read = topology::inline(table, text, self.names.clone());
        let imported = read.map_err(|problem| PlanError::value(origin, "topology", problem))?;
        self.names = imported.names;
        let fault = |(number, loss)| LinkFaultSpec {
            link: LinkName::Number(number),
            loss,
            duplicate: 0.0,
            reorder: 0.0,
            delay_us: 0.0,
        };
        self.faults.links.extend(imported.losses.into_iter().map(fault));
        Ok(self.with_tables(|transport, _| (transport, imported.spec)))
    }
}

impl<T, N> Plan<T, N> {
    /// Returns the plan with other `transport` and `topology` tables.
    fn with_tables<U, M>(self, tables: impl FnOnce(T, N) -> (U, M)) -> Plan<U, M> {
        let Self {
            seed,
            topology,
            names,
            transport,
            fabric,
            workload,
            run,
            measure,
            clocks,
            faults,
            deadlines,
            load,
            sweep,
        } = self;
        let (transport, topology) = tables(transport, topology);
        Plan {
            transport,
            seed,
            topology,
            names,
            fabric,
            workload,
            run,
            measure,
            clocks,
            faults,
            deadlines,
            load,
            sweep,
        }
    }
}
