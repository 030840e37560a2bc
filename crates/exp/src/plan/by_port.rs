//! Bytes that differ between ports: `fabric.buffer-bytes`, `fabric.ecn-bytes`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rampmeter_sim::{FabricConfig, Node, PortBytes, PortGroup, Topology, link_tiers, port_groups};
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need};
use rampmeter_types::{Bytes, Rate};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::context::PlanOrigin;
use crate::error::PlanError;
use crate::warning::{Warning, warning};

/// Bytes of ports: a number for all, or a table by their rate in Gbit/s (`"25"`) or the name of
/// their tier (`"tor-down"`). A tier takes precedence.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum PortBytesSpec {
    /// Bytes of every port.
    All(u64),
    /// Bytes by rate or tier.
    By(BTreeMap<String, u64>),
}

impl<'de> Deserialize<'de> for PortBytesSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PortBytesVisitor)
    }
}

/// Written out, because an untagged enum would answer every mistake with "did not match".
struct PortBytesVisitor;

impl<'de> Visitor<'de> for PortBytesVisitor {
    type Value = PortBytesSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, or a table of them such as { \"25\" = 100000 }")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<PortBytesSpec, E> {
        Ok(PortBytesSpec::All(bytes))
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<PortBytesSpec, E> {
        let wrong = |_| E::invalid_value(Unexpected::Signed(bytes), &self);
        u64::try_from(bytes).map(PortBytesSpec::All).map_err(wrong)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PortBytesSpec, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(PortBytesSpec::By)
    }
}

/// Maximum number of entries of a table. With two tables of thresholds ports have at most 256
/// pairs.
const GROUPS_MAX: usize = 15;

/// Packet memory and thresholds of marks that a transport prefers, by the rate of a port. Both
/// follow from a bandwidth-delay product: that of a port is the product of the hosts that fill it.
/// The tables are empty if all ports have the same.
#[derive(Debug, Default)]
pub(crate) struct NeedsByRate {
    pub(crate) buffers: PortBytes,
    pub(crate) marks_above: PortBytes,
    /// A warning if ports have more rates than a table has entries.
    pub(crate) warning: Option<Warning>,
}

impl NeedsByRate {
    /// Returns the preferences of a transport whose needs are `needs_at` the rate of hosts. Ports
    /// slower than all hosts have those of the slowest host, ports faster than all hosts those of
    /// the fastest. Ports between switches that are slower than the fastest host have its memory,
    /// as its windows fill them. If ports have more rates than a table has entries, all have the
    /// values of the slowest host.
    pub(crate) fn new(topology: &Topology, needs_at: impl Fn(Rate) -> FabricNeeds) -> Self {
        let (slowest, fastest) = (topology.slowest_host(), topology.fastest_host());
        let ports: BTreeSet<Rate> =
            port_groups(topology).into_iter().map(|(_, rate)| rate).collect();
        if slowest == fastest {
            return Self::default();
        }
        let filled = slow_core_tiers(topology, fastest);
        if ports.len() + filled.len() > GROUPS_MAX {
            let warning = warning!(
                "many-port-rates",
                "fabric: ports have {rates} rates, and tables of packet memory and marks \
                 {rates_max} entries: all ports have what follows from the slowest host",
                rates = ports.len(),
                rates_max = GROUPS_MAX,
            );
            return Self { warning: Some(warning), ..Self::default() };
        }
        let needs: Vec<(Rate, FabricNeeds)> =
            ports.into_iter().map(|rate| (rate, needs_at(rate.clamp(slowest, fastest)))).collect();
        let table = |bytes: fn(&FabricNeeds) -> Option<Bytes>| {
            let all: Option<Vec<(Rate, Bytes)>> =
                needs.iter().map(|(rate, needs)| Some((*rate, bytes(needs)?))).collect();
            let all = all.unwrap_or_default();
            let is_same = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
            let entries = all.into_iter().filter(|_| !is_same);
            entries.map(|(rate, bytes)| (PortGroup::Rate(rate), bytes)).collect()
        };
        let memory = |needs: &FabricNeeds| match needs.buffer {
            Need::Prefer(Buffer::PerPort(bytes)) => Some(bytes),
            _ => None,
        };
        let mut buffers: PortBytes = table(memory);
        if !buffers.is_empty() {
            let most = memory(&needs_at(fastest)).into_iter();
            let of_tiers = most.flat_map(|most| filled.iter().map(move |tier| (tier, most)));
            let of_tiers = of_tiers.map(|(tier, most)| (PortGroup::Tier(tier.clone()), most));
            buffers = buffers
                .entries()
                .map(|(group, bytes)| (group.clone(), bytes))
                .chain(of_tiers)
                .collect();
        }
        Self {
            warning: None,
            buffers,
            marks_above: table(|needs| match needs.ecn {
                Need::Prefer(above) => above,
                _ => None,
            }),
        }
    }
}

/// Returns the tiers with ports between switches that are slower than `fastest`.
fn slow_core_tiers(topology: &Topology, fastest: Rate) -> BTreeSet<String> {
    let links = topology.links().iter().zip(link_tiers(topology));
    let between =
        links.filter(|(link, _)| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_))));
    let ports =
        between.flat_map(|(link, tiers)| [link.rate, link.rate_back].into_iter().zip(tiers));
    ports.filter(|(rate, _)| *rate < fastest).map(|(_, tier)| tier).collect()
}

/// Returns a table of bytes by rate as plans have it; `None` if it is empty.
pub(crate) fn spec_of(bytes: &PortBytes) -> Option<PortBytesSpec> {
    let key = |group: &PortGroup| match group {
        PortGroup::Tier(name) => name.clone(),
        PortGroup::Rate(rate) => (rate.as_bps() as f64 / 1e9).to_string(),
    };
    let table: BTreeMap<String, u64> =
        bytes.entries().map(|(group, bytes)| (key(group), bytes.get())).collect();
    (!table.is_empty()).then_some(PortBytesSpec::By(table))
}

/// Returns the bytes of all ports, or those of groups of ports.
///
/// # Errors
/// Bytes or a rate out of range.
pub(crate) fn port_bytes(
    key: &str,
    spec: Option<&PortBytesSpec>,
    cx: &PlanOrigin<'_>,
) -> Result<(Option<Bytes>, PortBytes), PlanError> {
    let key = format!("fabric.{key}");
    let bytes =
        |key: &str, bytes: u64| cx.range(key, bytes as f64, 0.0, 4e9).map(|_| Bytes::new(bytes));
    match spec {
        None => Ok((None, PortBytes::default())),
        Some(&PortBytesSpec::All(all)) => Ok((Some(bytes(&key, all)?), PortBytes::default())),
        Some(PortBytesSpec::By(table)) if table.is_empty() => {
            Err(cx.unexpected(&key, "the bytes of ports by rate or tier", "an empty table"))
        }
        Some(PortBytesSpec::By(table)) => {
            let entry = |(group, &of): (&String, &u64)| {
                let group_key = format!("{key}.{group}");
                Ok((group_of(group, &group_key, cx)?, bytes(&group_key, of)?))
            };
            let entries = table.iter().map(entry).collect::<Result<Vec<_>, PlanError>>()?;
            let n_groups = entries.iter().map(|(group, _)| group).collect::<BTreeSet<_>>().len();
            if n_groups < entries.len() {
                return Err(cx.unexpected(
                    &key,
                    "each rate once",
                    "a rate in two spellings, such as 25 and 25.0",
                ));
            }
            if n_groups > GROUPS_MAX {
                let expected = format!("at most {GROUPS_MAX} entries");
                return Err(cx.unexpected(&key, expected, n_groups));
            }
            Ok((None, entries.into_iter().collect()))
        }
    }
}

/// Returns a warning if a port never marks, because its memory is full before its threshold is
/// reached.
pub(crate) fn never_marks_warning(fabric: &FabricConfig, topology: &Topology) -> Option<Warning> {
    let memory = |tier: &str, rate| match fabric.buffer {
        Buffer::PerPort(bytes) => fabric.buffer_by_port.get(tier, rate).unwrap_or(bytes),
        Buffer::Shared { per_switch, .. } => per_switch,
    };
    port_groups(topology).into_iter().find_map(|(tier, rate)| {
        let above = fabric.mark_above_by_port.get(&tier, rate).or(fabric.mark_above)?;
        let memory = memory(&tier, rate);
        let gbps = rate.as_bps() as f64 / 1e9;
        (above >= memory).then(|| {
            warning!(
                "never-marks",
                "fabric.ecn-bytes: ports {tier} of {gbps} Gbit/s never mark, as their memory of \
                 {memory_bytes} bytes is full before {threshold_bytes} wait",
                tier = tier,
                gbps = gbps,
                memory_bytes = memory.get(),
                threshold_bytes = above.get(),
            )
        })
    })
}

/// Returns the ports that a key of a table selects.
fn group_of(group: &str, key: &str, cx: &PlanOrigin<'_>) -> Result<PortGroup, PlanError> {
    if !group.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Ok(PortGroup::Tier(group.to_owned()));
    }
    let number = ["Gbps", "Gbit/s", "Gb/s", "G"].iter().find_map(|unit| group.strip_suffix(unit));
    let gbps = number.unwrap_or(group).trim().parse::<f64>().ok();
    let bps = gbps.map(|gbps| (gbps * 1e9).round()).filter(|bps| (1e3..=1e14).contains(bps));
    let rate = bps.and_then(|bps| Rate::from_bps(bps as u64));
    let expected = "a rate in Gbit/s such as \"25\", or a tier such as \"tor-down\"";
    rate.map(PortGroup::Rate).ok_or_else(|| cx.unexpected(key, expected, format!("{group:?}")))
}

/// Checks that the tables of a fabric have an entry for each port of a switch, and no other
/// entries. Checks that no upper threshold of marks is below the lower one.
///
/// # Errors
/// The first port that a table lacks; thresholds in the wrong order.
pub(crate) fn check(
    fabric: &FabricConfig,
    topology: &Topology,
    cx: &PlanOrigin<'_>,
) -> Result<(), PlanError> {
    let tables = [
        ("fabric.buffer-bytes", &fabric.buffer_by_port),
        ("fabric.ecn-bytes", &fabric.mark_above_by_port),
        ("fabric.ecn-max-bytes", &fabric.mark_all_above_by_port),
    ];
    let has_marks = fabric.mark_all_above.is_some() || !fabric.mark_all_above_by_port.is_empty();
    if !has_marks && tables.iter().all(|(_, table)| table.is_empty()) {
        return Ok(());
    }
    let groups = port_groups(topology);
    for (key, table) in tables.into_iter().filter(|(_, table)| !table.is_empty()) {
        let lacks = |(tier, rate): &&(String, Rate)| table.get(tier, *rate).is_none();
        if let Some((tier, rate)) = groups.iter().find(lacks) {
            let gbps = rate.as_bps() as f64 / 1e9;
            let expected = format!("an entry for ports {tier} of {gbps} Gbit/s");
            return Err(cx.unexpected(key, expected, "none"));
        }
        if let Some(group) = table.groups().find(|group| !is_of(group, &groups)) {
            let known: BTreeSet<&str> = groups.iter().map(|(tier, _)| tier.as_str()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            let expected = format!("the rate or the tier ({known}) of ports");
            return Err(cx.unexpected(key, expected, group));
        }
    }
    for (tier, rate) in groups.iter().filter(|_| has_marks) {
        let above = fabric.mark_above_by_port.get(tier, *rate).or(fabric.mark_above);
        let all = fabric.mark_all_above_by_port.get(tier, *rate).or(fabric.mark_all_above);
        let (expected, got) = match (above, all) {
            (None, Some(_)) => ("fabric.ecn-bytes in the plan".to_owned(), "none".to_owned()),
            (Some(above), Some(all)) if all < above => {
                (format!("at least ecn-bytes ({})", above.get()), all.get().to_string())
            }
            _ => continue,
        };
        return Err(cx.unexpected("fabric.ecn-max-bytes", expected, got));
    }
    Ok(())
}

/// Returns true if a group has a port.
fn is_of(group: &PortGroup, groups: &BTreeSet<(String, Rate)>) -> bool {
    groups.iter().any(|(tier, rate)| match group {
        PortGroup::Tier(name) => name == tier,
        PortGroup::Rate(own) => own == rate,
    })
}

#[cfg(test)]
mod tests {
    use rampmeter_sim::TopologySpec;

    use super::*;

    /// Returns a switch with hosts of these rates, in Gbit/s.
    fn star(gbps: &[u64]) -> Topology {
        let link = |(host, gbps)| format!("{{ between = ['h{host}', 's0'], gbps = {gbps} }}");
        let links: Vec<String> = gbps.iter().enumerate().map(link).collect();
        let (hosts, links) = (gbps.len(), links.join(","));
        let text = format!("kind = 'links'\nhosts = {hosts}\nswitches = 1\nlinks = [{links}]");
        toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap()
    }

    /// Returns a byte for each kbit/s.
    fn needs(rate: Rate) -> FabricNeeds {
        let bytes = Bytes::new(rate.as_bps() / 1_000);
        let buffer = Need::Prefer(Buffer::PerPort(bytes));
        FabricNeeds { buffer, ecn: Need::Prefer(Some(bytes)), ..FabricNeeds::default() }
    }

    #[test]
    fn preferences_of_ports_follow_from_their_rates() {
        let by_rate = NeedsByRate::new(&star(&[10, 100, 10]), needs);
        for table in [&by_rate.buffers, &by_rate.marks_above] {
            assert_eq!(table.get("tor-down", Rate::from_gbps(10)), Some(Bytes::new(10_000_000)));
            assert_eq!(table.get("tor-down", Rate::from_gbps(100)), Some(Bytes::new(100_000_000)));
        }
        let spec = spec_of(&by_rate.buffers).unwrap();
        let entries = [("10", 10_000_000), ("100", 100_000_000)];
        let entries = entries.map(|(rate, bytes)| (rate.to_owned(), bytes));
        assert_eq!(spec, PortBytesSpec::By(entries.into_iter().collect()));
    }

    #[test]
    fn ports_of_the_slower_direction_have_the_preference_of_its_rate() {
        let links = "{ between = ['h0', 's0'], gbps = 100.0, gbps-back = 10.0 }, \
                     { between = ['h1', 's0'], gbps = 100.0 }";
        let text = format!("kind = 'links'\nhosts = 2\nswitches = 1\nlinks = [{links}]");
        let topology = toml::from_str::<TopologySpec>(&text).unwrap().build().unwrap();
        let buffers = NeedsByRate::new(&topology, needs).buffers;
        assert_eq!(buffers.get("tor-down", Rate::from_gbps(10)), Some(Bytes::new(10_000_000)));
    }

    #[test]
    fn ports_have_one_preference_if_hosts_have_one_rate() {
        let by_rate = NeedsByRate::new(&star(&[10, 10]), needs);
        assert!(by_rate.buffers.is_empty() && by_rate.marks_above.is_empty());
        let same = |_| needs(Rate::from_gbps(1));
        assert!(NeedsByRate::new(&star(&[10, 100]), same).buffers.is_empty());
    }

    #[test]
    fn more_rates_than_entries_have_the_preference_of_the_slowest_host() {
        let rates: Vec<u64> = (1..=GROUPS_MAX as u64 + 1).collect();
        let by_rate = NeedsByRate::new(&star(&rates), needs);
        assert!(by_rate.buffers.is_empty());
        assert!(by_rate.warning.unwrap().text.starts_with("fabric: ports have 16 rates"));
    }
}
