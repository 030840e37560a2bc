//! The network of a plan: its topology with arbiters, and the needs of its transport.

use std::sync::Arc;

use rampmeter_proto::keys::BadKey;
use rampmeter_proto::registered::{Deployment, Network, Site, SlowerLink};
use rampmeter_sim::{
    Delays, FabricConfig, NetworkShape, Switching, Target, Topology, TopologySpec, topologies,
};
use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, FabricNeeds, Spray};
use rampmeter_types::{Bytes, FabricFacts, RateRange, Segmentation};

use super::Plan;
use super::by_port::NeedsByRate;
use super::context::PlanOrigin;
use super::faults::faults;
use crate::error::{PlanError, Problem, unreadable};
use crate::topology::names::NamesSpec;
use crate::topology::{self, ImportedTopology};
use crate::transport::{TransportSpec, ValidTransport};

/// The network of a plan, before the settings of its ports are known.
pub(super) struct PlanNetwork {
    /// Hosts, switches, and the arbiters that the transport needs.
    pub(super) topology: Topology,
    /// The topology as read, with the names of its nodes.
    pub(super) imported: ImportedTopology,
    pub(super) delays: Delays,
    /// Needs of the transport in this network.
    pub(super) needs: FabricNeeds,
}

impl PlanNetwork {
    /// Builds the network of `plan`, in which full packets and control packets have the lengths of
    /// `packet`.
    ///
    /// # Errors
    /// A topology or a change of a link that is impossible, or a transport that does not work here.
    pub(super) fn build(
        plan: &Plan,
        segmentation: Segmentation,
        cx: &PlanOrigin<'_>,
    ) -> Result<Self, PlanError> {
        let (topology, imported) = topology(&plan.topology, &plan.names, cx)?;
        let bad_key = |bad: BadKey| cx.bad_transport(bad);
        let (data, control) = (segmentation.full_wire_bytes(), segmentation.header);
        let arbiters = |delays: &Delays| Ok(needs_of(&plan.transport, delays)?.arbiters);
        let delays = match plan.faults.changes.is_empty() {
            true => delays(&topology, data, control, arbiters).map_err(bad_key)?,
            false => {
                // Arbiters have links, too.
                let needs = arbiters(&topology.delays(data, control)).map_err(bad_key)?;
                let all = topology.clone().with_arbiters(&needs);
                let changes = faults(&plan.faults, &all, &imported.names, cx)?.changes;
                delays(&topology.clone().with_longest_links(&changes), data, control, arbiters)
                    .map_err(bad_key)?
            }
        };
        let needs = needs_of(&plan.transport, &delays).map_err(bad_key)?;
        let is_central = |need: &ArbiterNeed| need.place == ArbiterPlace::FirstRack;
        if needs.arbiters.iter().any(is_central) && !topology.common_rack().1 {
            let expected = "a transport without an arbiter, as no switch is reached by all hosts";
            return Err(cx.unexpected("transport.name", expected, plan.transport.name()));
        }
        Ok(Self { topology: topology.with_arbiters(&needs.arbiters), imported, delays, needs })
    }

    /// Returns the needs of `transport` by the rate of ports.
    pub(super) fn needs_by_rate(&self, transport: &TransportSpec) -> NeedsByRate {
        let facts = self.delays.facts();
        NeedsByRate::new(&self.topology, |rate| {
            let facts = FabricFacts { access_rate: rate, ..facts };
            let at_rate = transport.needs(&facts, self.delays.wiring());
            // Differences between the needs of transports do not depend on rates.
            at_rate.unwrap_or_else(|_| self.needs.clone())
        })
    }

    /// Configures `spec` for this network. `spray` is the path choice that the plan names.
    pub(super) fn configure(
        &self,
        spec: &TransportSpec,
        fabric: &FabricConfig,
        spray: Option<Spray>,
    ) -> Result<ValidTransport, BadKey> {
        let Self { topology, imported, delays, .. } = self;
        let NetworkShape { switches, ratio: rate_ratio, ports, slower, rails } =
            topology.shape(delays);
        let slow_link = slower.map(|number| SlowerLink {
            name: imported.names.target(topology, Target::Link(number)),
            rate: topology.links()[number as usize].rates().slowest,
        });
        let RateRange { slowest, fastest } = topology.arbiter_rates();
        // Paths are alike if links between switches have one rate.
        let paths = topology.regular_paths().filter(|_| topology.has_one_core_rate());
        let racks = topology.rack_uplinks();
        let cut_through = match fabric.switching {
            Switching::CutThrough { header } => Some(header),
            Switching::StoreAndForward | Switching::Shaped { .. } => None,
        };
        let network = Network {
            switches,
            rate_ratio,
            ports,
            slow_link,
            is_narrow: topology.bisection_share() < 1.0,
            rails,
            slowest,
            fastest,
            slot_rate: topology.slot_rate(),
            core: topology.core_rate(),
            pairs: Arc::new(topology.pairs().with_round_trips(delays.round_trips().cloned())),
            racks,
            paths,
            wiring: Arc::clone(topology.wiring()),
            cut_through,
        };
        let deployment = Deployment::Network(network);
        let site = Site { facts: delays.facts(), deployment, lower: None };
        spec.configure(&site, spray, self.needs.clone())
    }

    pub(super) fn hosts_per_rack(&self) -> Option<u32> {
        self.imported.spec.hosts_per_rack()
    }

    pub(super) fn hosts_per_pod(&self) -> Option<u32> {
        self.imported.spec.hosts_per_pod()
    }
}

fn needs_of(transport: &TransportSpec, delays: &Delays) -> Result<FabricNeeds, BadKey> {
    transport.needs(&delays.facts(), delays.wiring())
}

/// Returns the delays between hosts, and between these and the `arbiters` that follow from them, of
/// full packets and of control packets.
fn delays(
    topology: &Topology,
    data: Bytes,
    control: Bytes,
    arbiters: impl Fn(&Delays) -> Result<Vec<ArbiterNeed>, BadKey>,
) -> Result<Delays, BadKey> {
    let delays = topology.delays(data, control);
    let arbiters = arbiters(&delays)?;
    let rtt = topology.clone().with_arbiters(&arbiters).arbiter_rtt(control);
    Ok(delays.with_control_rtt(rtt))
}

/// Reads the topology's file, if it has one, and builds the topology.
fn topology(
    spec: &TopologySpec,
    names: &NamesSpec,
    cx: &PlanOrigin<'_>,
) -> Result<(Topology, ImportedTopology), PlanError> {
    let (mut imported, key) = match spec {
        TopologySpec::File(topologies::File { file, hosts_forward }) => {
            let (key, path) = ("topology.file", cx.path(file));
            std::fs::File::open(&path)
                .map_err(|error| cx.problem(key, unreadable(path.display().to_string(), &error)))?;
            let imported = topology::read(&path, *hosts_forward)
                .map_err(|problem| cx.problem(key, problem))?;
            (imported, key)
        }
        spec => (ImportedTopology::without_names(spec.clone()), "topology"),
    };
    imported.rename(names);
    if let TopologySpec::Links(_) = spec {
        imported.note_both_directions();
        imported.notes.iter_mut().for_each(|note| *note = format!("topology: {note}"));
    }
    let built = imported.spec.build().map_err(|error| {
        let problem = imported.problem(&error);
        match (spec, error.link(), error.number()) {
            (TopologySpec::File(topologies::File { file, .. }), _, _) => {
                cx.problem(key, problem.in_other(&cx.path(file)))
            }
            (TopologySpec::Links(_), Some(link), _) => {
                cx.problem(&format!("topology.links[{link}]"), problem)
            }
            (_, _, Some(name)) if !name.contains(' ') => {
                let (expected, got) = error.expected_and_got(|node| node.to_string());
                cx.unexpected(&format!("topology.{name}"), expected, got)
            }
            (_, _, _) => cx.problem(key, problem),
        }
    })?;
    imported.names.add_forwarding(&imported.spec, &built);
    let bad = |(key, problem): (&str, Problem)| cx.problem(&format!("names.{key}"), problem);
    imported.names.check(&built).map_err(bad)?;
    Ok((built, imported))
}
