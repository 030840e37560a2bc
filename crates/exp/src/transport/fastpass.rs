//! The keys of Fastpass, and its arbiters' place in the network.

use rampmeter_core::{FabricFacts, Rate};
use rampmeter_proto::fastpass::config::Model;
use rampmeter_proto::fastpass::{Fastpass, FastpassConfig, PathPlan, allocations_time};
use rampmeter_proto::{ConfigError, Padding};
use rampmeter_sim::{ArbiterLink, RegularPaths, Topology};
use serde::{Deserialize, Serialize};

use super::{Preset, transport_spec};

transport_spec! {
    /// Keys of the Fastpass transport. Each one that is left out has the preset's value.
    FastpassSpec of FastpassConfig {
        /// Slots or epochs.
        model: Model,
        /// Arbiters: one, or one and its standby.
        arbiters: u32,
        /// Slots that are allocated together.
        batch: u32,
        /// Length of a slot, in thousandths of a full packet's time.
        slot_milli: u32,
        /// Packets that a host may send in an epoch.
        epoch_packets: u32,
        /// Length of an epoch, in thousandths of a full packet's time.
        epoch_milli: u32,
        /// Charged length of last packets.
        padding: Padding,
        /// Unanswered repetitions after which a flow fails.
        attempts_max: u32,
    } or derived {}
}

impl FastpassSpec {
    /// The network with the arbiters, all at the first rack. Theirs are links as fast as the
    /// fastest for the paper's arbiter, which must reach every host in every batch, and as fast as
    /// a host's for that of the epoch model.
    pub(crate) fn with_arbiters(&self, mut topology: Topology) -> Topology {
        let config = self.config();
        let rate = arbiter_rate(&config, &topology);
        let propagation = topology.links()[0].propagation;
        for _ in 0..config.arbiters.clamp(1, 2) {
            let switch = topology.rack(0);
            topology = topology.with_arbiter(ArbiterLink { switch, rate, propagation });
        }
        topology
    }

    pub(crate) fn on(
        &self,
        facts: &FabricFacts,
        topology: &Topology,
    ) -> Result<Fastpass, ConfigError> {
        let config = self.config();
        let paths = topology.regular_paths().map(|paths| {
            let RegularPaths { rack_of, pod_of, tor_up, agg_up } = paths;
            PathPlan { rack_of, pod_of, tor_up, agg_up }
        });
        let rate = arbiter_rate(&config, topology);
        let time = allocations_time(facts.n_hosts, config.header.get(), rate);
        config.on(facts, paths, time)
    }
}

fn arbiter_rate(config: &FastpassConfig, topology: &Topology) -> Rate {
    let rates = topology.links().iter().map(|link| link.rate);
    let rate = match config.model {
        Model::Slots => rates.max(),
        Model::Epochs => rates.min(),
    };
    rate.expect("a topology has links")
}
