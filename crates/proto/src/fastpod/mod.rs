//! Fastpod (Wang, Liang, Liu, Jiang, Cui: *Towards "Zero-buffer" Datacenter Networks*, 2021).
//!
//! A pod has switches without memory. An arbiter has a link to every rack. It decides in which slot
//! each host sends to which host, and by which aggregation switch, so that no cells meet. Requests
//! and schedules pass in gaps between cells whose places follow from the slot alone. Before a
//! message is scheduled its cells may be sent without a schedule; switches drop them for any other
//! packet.
//!
//! * [`pod`]: one pod, its hosts and arbiter (§3.1 to §3.3). Begin here.
//! * `fat_tree`: several pods and the core switches between them (§3.4)
//! * `repair`: detection of failures, and paths around them (§4)
//! * `packing`: an option by which packets share a cell (§3.2)
//! * [`topology`]: recognition of pods in the wiring of a network (§3.1, §3.4)
//! * [`config`]: parameters, the `paper` preset, derived values
//! * [`slots`], [`timing`], `slot_grant`: places of packets in a slot, their instants, grants
//! * `routes`, `core_routes`: source routes in a pod, and between pods
//! * [`wire`]: the packets
//!
//! The parts import one another in one direction: `repair` is used by `pod`, and `pod` by
//! `fat_tree`. The other files are below all three.
//!
//! `docs/protocols/fastpod.md` lists the packets and the deviations from the paper.

pub mod config;
pub mod pod;
pub mod slots;
pub mod timing;
pub mod topology;
pub mod wire;

mod core_routes;
mod fat_tree;
mod packing;
mod repair;
mod routes;
mod slot_grant;

#[cfg(test)]
mod tests;

pub use config::{Fastpod, FastpodConfig, MessageOrder};
pub use fat_tree::core_switch::FastpodProgram;
pub use pod::arbiter::FastpodArbiter;
pub use pod::host::FastpodHost;
pub use pod::stats::FastpodStats;
pub use topology::Pods;

use std::sync::Arc;

use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{
    ArbiterNeed, ArbiterPlace, ArbiterRate, Buffer, FabricNeeds, Forwarding, Need,
};
use rampmeter_types::{Bytes, FabricFacts, Stage, SwitchFacts, Transport, Wiring};

use crate::keys::BadKey;
use crate::registered::{
    Assumptions, Deployment, DerivedValue, RegisteredTransport, Site, TransportRules,
};
use crate::toolkit::Segmentation;

/// Full cells in a port with memory above which it drops unscheduled cells, as many as Homa Aeolus
/// has: cells of several slots meet there.
const DROP_ABOVE_CELLS: u64 = 4;

/// The Fastpod transport.
#[derive(Clone, Copy, Debug)]
pub struct FastpodTransport;

impl Transport for FastpodTransport {
    const NAME: &'static str = "fastpod";
    const HAS_ARBITERS: bool = true;
    type Config = Fastpod;
    type Header = wire::FastpodHeader;
    type Host = FastpodHost;
    type Arbiter = FastpodArbiter;
    type SwitchProgram = FastpodProgram;

    fn switch_program(config: &Arc<Self::Config>, switch: SwitchFacts) -> FastpodProgram {
        FastpodProgram::new(config, &switch)
    }
}

impl RegisteredTransport for FastpodTransport {
    type Keys = FastpodConfig;
    const TITLE: &'static str = "Fastpod";
    const SUMMARY: &'static str =
        "An arbiter that grants slots of a pod whose switches have no memory (Fastpod).";
    const WIRE: TransportId = TransportId(11);
    const STAGES: &'static [&'static Stage] = pod::host::STAGES;
    const RULES: TransportRules = TransportRules {
        decided_by: "an arbiter, for each slot",
        host_state: "messages, requests by destination, 64 slots of reports",
        switch_functions: "follow source routes; without memory in pods",
        after_loss: "the whole message is retransmitted",
    };

    fn segmentation(keys: &FastpodConfig) -> Segmentation {
        keys.segmentation()
    }

    fn reply_bytes(_keys: &FastpodConfig) -> Bytes {
        Bytes::ZERO
    }

    /// Outside pods nothing keeps packets apart, so ports have memory there. They drop unscheduled
    /// cells if some are queued, as switches without memory drop them for any other packet (§3.3).
    /// The arbiter's link takes as many RTSs and SCHDs in a slot as there are hosts.
    fn needs(keys: &FastpodConfig, facts: &FabricFacts) -> FabricNeeds {
        let slot = keys.slots(facts.access_rate, config::HOSTS_DEFAULT).length();
        let bits = u128::from(keys.control.get()) * 8 * u128::from(facts.n_hosts);
        let bps = (bits * 1_000_000_000_000).div_ceil(slot.as_ps().max(1).into());
        let rate = ArbiterRate::AtLeast(u64::try_from(bps * 10 / 9).unwrap_or(u64::MAX));
        let cell = keys.packet.wire();
        FabricNeeds {
            drop_unscheduled: Need::Prefer(Some(cell * DROP_ABOVE_CELLS)),
            arbiters: arbiters(keys, rate, ArbiterPlace::FirstRack),
            control_class: true,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    /// In pods, switches cut through and have no memory. Arbiters are at every rack (§3.1, §3.2),
    /// those of several pods at aggregation switches too (§3.4).
    fn network_needs(keys: &FastpodConfig, facts: &FabricFacts, wiring: &Wiring) -> FabricNeeds {
        let places = topology::arbiter_places(wiring);
        if places.is_empty() {
            return Self::needs(keys, facts);
        }
        let of_pod = |place| arbiters(keys, ArbiterRate::Slowest, place);
        FabricNeeds {
            buffer: Need::Require(Buffer::PerPort(Bytes::ZERO)),
            switching: Need::Require(Forwarding::CutThrough),
            arbiters: places.into_iter().flat_map(of_pod).collect(),
            control_class: true,
            priorities: 2,
            ..FabricNeeds::default()
        }
    }

    /// Between real hosts, and in networks that are no pods, there are slots but no source routes.
    /// Arbiters grant the time of hosts' links there, so that links between switches must not be
    /// slower.
    fn configure(keys: FastpodConfig, site: &Site) -> Result<Fastpod, BadKey> {
        let packet = site.packet(keys.packet);
        let mut pods = None;
        if let Deployment::Network(network) = &site.deployment {
            let recognise = |header| Pods::from_wiring(&network.wiring, header);
            pods = network.cut_through.and_then(recognise);
            if let (None, Some(slower)) = (&pods, &network.slow_link) {
                return Err(slower.refusal(Self::NAME));
            }
        }
        FastpodConfig { packet, ..keys }.derive(&site.slot_facts(), pods)
    }

    /// Only pods work without memory: elsewhere cells of several senders meet at a receiver.
    fn buffer_min(config: &Fastpod) -> Bytes {
        let cell = config.config.packet.wire();
        if config.is_exact() { Bytes::ZERO } else { cell * 16 }
    }

    fn assumptions(config: &Self::Config, _site: &Site) -> Assumptions {
        Assumptions {
            full_bisection: true,
            one_rate: true,
            one_round_trip: true,
            chooses_paths: config.is_exact(),
            drift_ppb: config.is_exact().then_some(config.config.clock_ppb),
            ..Assumptions::default()
        }
    }

    fn describe(config: &Fastpod) -> Vec<DerivedValue> {
        let mut all = vec![
            DerivedValue::count("pod-without-memory", config.is_exact().into()),
            DerivedValue::time("slot", config.slot),
            DerivedValue::count("cells-of-a-slot", config.slots.cells().into()),
            DerivedValue::time("clock-error", config.slots.error),
            DerivedValue::count("planned-ahead-slots", config.lead_slots),
            DerivedValue::time("answer", config.answer_time),
            DerivedValue::time("timeout", config.rto),
            DerivedValue::time("retry", config.retry),
            DerivedValue::time("unresponsive-after", config.unresponsive_after),
            DerivedValue::count("watchdog-slots", config.watchdog_slots),
            DerivedValue::time("patience", config.listen_time),
            DerivedValue::time("forget", config.forget_timeout),
        ];
        if config.n_cores() > 0 {
            all.push(DerivedValue::count("core-cells-max", config.core_cells_max()));
        }
        all
    }
}

/// Returns the needs of the arbiters of one pod.
fn arbiters(keys: &FastpodConfig, rate: ArbiterRate, place: ArbiterPlace) -> Vec<ArbiterNeed> {
    vec![ArbiterNeed { rate, place }; keys.arbiters as usize]
}
