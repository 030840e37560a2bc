//! Warnings of assumptions of a transport that the network does not meet.

use std::collections::BTreeSet;

use rampmeter_proto::registered::{DerivedValue, Quantity, SharedTime};
use rampmeter_sim::topo::Link;
use rampmeter_sim::{ClockSpec, LinkChange, Node, SimSpec, Target, Topology};
use rampmeter_types::{Rate, Span};

use super::link_states::NetworkState;
use crate::plan::tables::FaultsSpec;
use crate::topology::names::NamesSpec;
use crate::warning::{Warning, warning};

/// The core of a network when it is narrowest.
pub(crate) struct NarrowestCore {
    /// Capacity of links between switches as a share of the hosts' sending capacity.
    share: f64,
    /// The words that name the state of the network, after a space; empty if it has no faults then.
    state: String,
}

impl NarrowestCore {
    /// Returns the core of `topology`, or of one of its `states` in which it carries less. Hosts
    /// that are cut off have a warning of their own.
    pub(crate) fn narrowest(
        topology: &Topology,
        states: &[NetworkState],
        names: &NamesSpec,
    ) -> Self {
        let whole = Self { share: topology.bisection_share(), state: String::new() };
        states.iter().fold(whole, |least, state| match state.bisection_share() {
            share if share > 0.0 && share < least.share => {
                Self { share, state: format!(" {}", state.name(names)) }
            }
            _ => least,
        })
    }
}

/// Returns a warning if links between switches carry less than hosts can send, for a transport that
/// schedules hosts' links alone.
pub(crate) fn narrow_core(core: &NarrowestCore, transport: &str) -> Option<Warning> {
    let NarrowestCore { share, state } = core;
    (*share < 1.0).then(|| {
        warning!(
            "narrow-core",
            "transport.name: {transport} schedules the links of hosts alone, and the links between \
             switches carry {core_percent:.1} % of what these can send{state}: expect losses there",
            transport = transport,
            core_percent = 100.0 * share;
            state = state,
        )
    })
}

/// Returns a warning if links between switches carry less than hosts can receive. Applies to
/// transports whose receivers request packets at the rate of their links.
pub(crate) fn narrow_core_of_receivers(core: &NarrowestCore, transport: &str) -> Option<Warning> {
    let NarrowestCore { share, state } = core;
    (*share < 1.0).then(|| {
        warning!(
            "narrow-core",
            "transport.name: receivers of {transport} request packets at the rate of their links, \
             and the links between switches carry {core_percent:.1} % of it{state}: under load \
             most packets may be trimmed or dropped there, and what long messages send may be up \
             to {sent_factor:.1} times their bytes",
            transport = transport,
            core_percent = 100.0 * share,
            sent_factor = 1.0 / share;
            state = state,
        )
    })
}

/// Share of the hosts' sending capacity below which many windows of a BDP fill the ports of a core.
const NARROW: f64 = 0.2;

/// Returns a warning if links between switches carry much less than hosts can send, for a transport
/// whose messages have a window each.
pub(crate) fn narrow_core_of_windows(core: &NarrowestCore, transport: &str) -> Option<Warning> {
    let NarrowestCore { share, state } = core;
    (*share < NARROW).then(|| {
        warning!(
            "narrow-core",
            "transport.name: each message of {transport} has a window of a bandwidth-delay \
             product, and the links between switches carry {core_percent:.1} % of what hosts can \
             send{state}: messages of all hosts at once fill the ports there, which drop packets. \
             Of 64 messages of 50 to 625 KB through a link of 3 %, dcpim retransmitted 23 to 104 % \
             of the bytes, its preset reference 304 to 549 %, and homa up to 88 %",
            transport = transport,
            core_percent = 100.0 * share;
            state = state,
        )
    })
}

/// Returns a warning if a link between inner switches is slower than one of a rack's switch. The
/// transport assumes that links between inner switches are unlimited.
pub(crate) fn inner_links(
    topology: &Topology,
    names: &NamesSpec,
    transport: &str,
) -> Option<Warning> {
    let racks: BTreeSet<u32> = (0..topology.n_hosts()).map(|host| topology.rack(host)).collect();
    let is_rack = |node| matches!(node, Node::Switch(switch) if racks.contains(&switch));
    let is_core = |link: &&Link| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_)));
    let core = topology.links().iter().filter(is_core);
    let (inner, outer): (Vec<&Link>, Vec<&Link>) =
        core.partition(|link| !is_rack(link.a) && !is_rack(link.b));
    let slowest = inner.into_iter().min_by_key(|link| link.rates().slowest)?;
    let least = outer.iter().map(|link| link.rates().slowest).max()?;
    (slowest.rates().slowest < least).then(|| {
        warning!(
            "narrow-inner-links",
            "transport.name: the controller of {transport} assumes unlimited links between inner \
             switches, but {from}-{to} carries {gbps} Gbit/s: expect losses there",
            transport = transport,
            from = names.node(slowest.a),
            to = names.node(slowest.b),
            gbps = slowest.rates().slowest.as_bps() as f64 / 1e9,
        )
    })
}

/// Returns a warning if hosts have several rates. The transport assumes that all are as fast as the
/// slowest: its slots have the rate `slots`.
pub(crate) fn unequal_rates(topology: &Topology, slots: Rate, transport: &str) -> Option<Warning> {
    let most = topology.fastest_host();
    (slots < most).then(|| {
        warning!(
            "one-slot-rate",
            "transport.name: {transport} assumes that all hosts are as fast as the slowest: \
             hosts of up to {fastest_gbps} Gbit/s send at {slot_gbps}",
            transport = transport,
            fastest_gbps = most.as_bps() as f64 / 1e9,
            slot_gbps = slots.as_bps() as f64 / 1e9,
        )
    })
}

/// Returns the warning of a transport with slots if links of a host have several rates.
pub(crate) fn unequal_slots(transport: &str) -> Warning {
    warning!(
        "unequal-links",
        "transport.name: {transport} has slots of the whole rate of a host, and their packets meet \
         at the slower link of a host with several: expect losses, and long messages that fail",
        transport = transport,
    )
}

/// Returns a warning if a link becomes slower during the run than the slots of a transport, which
/// are of the rate `slots`.
pub(crate) fn slowed_links(
    sim: &SimSpec,
    names: &NamesSpec,
    slots: Rate,
    transport: &str,
) -> Option<Warning> {
    let rate = |change: &LinkChange| change.rates.map(|[there, back]| there.min(back));
    let changes = sim.faults.changes.iter();
    let slowest = changes.filter(|change| rate(change).is_some_and(|rate| rate < slots));
    let slowest = slowest.min_by_key(|change| rate(change))?;
    Some(warning!(
        "slower-than-slots",
        "transport.name: {transport} has slots for {slot_gbps} Gbit/s, and faults.changes makes \
         link {link} one of {gbps}: expect losses, and messages that fail",
        transport = transport,
        slot_gbps = slots.as_bps() as f64 / 1e9,
        link = names.target(&sim.topology, Target::Link(slowest.link)),
        gbps = rate(slowest)?.as_bps() as f64 / 1e9,
    ))
}

/// Names of derived times after which a transport retransmits lost packets.
const TIMEOUTS: [&str; 2] = ["timeout", "rto-min"];

/// Round trips for which a message may wait for a lost packet without a warning.
const TIMEOUT_RTTS_MAX: u64 = 1_024;

/// Returns a warning if faults lose packets, and a transport retransmits them after more than
/// `TIMEOUT_RTTS_MAX` round trips. Losses then decide its results. Recorded presets have such
/// timeouts.
pub(crate) fn slow_recovery(
    faults: &FaultsSpec,
    derived: &[DerivedValue],
    preset: &str,
    transport: &str,
    rtt: Span,
) -> Option<Warning> {
    let has_losses = faults.loss > 0.0
        || !faults.outages.is_empty()
        || faults.links.iter().any(|link| link.loss > 0.0);
    let times = derived.iter().filter(|value| TIMEOUTS.contains(&value.name));
    let times = times.filter_map(|value| match value.quantity {
        Quantity::Time(time) => Some(time),
        _ => None,
    });
    let timeout = times.max().filter(|&timeout| has_losses && timeout > rtt * TIMEOUT_RTTS_MAX)?;
    Some(warning!(
        "slow-recovery",
        "transport.preset: {preset} of {transport} retransmits lost packets after {timeout_us:.0} \
         us, {round_trips} round trips of this network: with the losses of `faults` this timeout \
         decides its results",
        preset = preset,
        transport = transport,
        timeout_us = timeout.as_us_f64(),
        round_trips = timeout.as_ps() / rtt.as_ps(),
    ))
}

/// Returns a warning of a transport that serves one flow at a time.
pub(crate) fn one_flow(topology: &Topology, transport: &str) -> Option<Warning> {
    let (least, most) = (topology.slowest_host(), topology.fastest_host());
    (least < most).then(|| {
        warning!(
            "one-endpoint",
            "transport.name: {transport} serves one outgoing and one incoming flow per host: a \
             host of {fastest_gbps} Gbit/s waits for peers of {slowest_gbps}",
            transport = transport,
            fastest_gbps = most.as_bps() as f64 / 1e9,
            slowest_gbps = least.as_bps() as f64 / 1e9,
        )
    })
}

/// Returns a warning of a transport in which fast hosts share a time with slow ones.
pub(crate) fn slowed_hosts(slowed: &SharedTime, transport: &str) -> Warning {
    let SharedTime { name, shared, fastest } = *slowed;
    warning!(
        "common-time",
        "transport.name: {transport} has one {name} for all hosts, {shared_us:.1} us for the \
         slowest host: between the fastest hosts alone it would be {fastest_us:.1} us, and \
         messages wait for the next one",
        transport = transport,
        name = name,
        shared_us = shared.as_us_f64(),
        fastest_us = fastest.as_us_f64(),
    )
}

/// Returns a warning if clocks start farther apart than a round trip, for a transport whose hosts
/// send in slots by their own.
pub(crate) fn clock_offset(clocks: &ClockSpec, rtt: Span, transport: &str) -> Option<Warning> {
    let offset = clocks.offset_max;
    (offset > rtt).then(|| {
        warning!(
            "clock-offset",
            "clocks.offset-us: {offset_us} is more than a round trip ({rtt_us:.1} us), and hosts \
             send in slots of {transport} by their own clocks, so that messages wait for as long",
            offset_us = offset.as_us_f64(),
            rtt_us = rtt.as_us_f64(),
            transport = transport,
        )
    })
}

/// Returns a warning if clocks drift more than guard bands of a transport allow for.
pub(crate) fn clock_drift(clocks: &ClockSpec, allowed: u32, transport: &str) -> Option<Warning> {
    let (drift, allowed) = (clocks.drift_ppm_max, f64::from(allowed) / 1e3);
    (drift > allowed).then(|| {
        warning!(
            "clock-drift",
            "clocks.drift-ppm: {drift_ppm} is more than transport.clock-drift-ppm ({allowed_ppm}), \
             which the guard bands of {transport} allow for, so that packets collide and are lost",
            drift_ppm = drift,
            allowed_ppm = allowed,
            transport = transport,
        )
    })
}
