//! Bytes that differ between ports: `fabric.buffer-bytes`, `fabric.ecn-bytes`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rampmeter_core::{Bytes, Rate};
use rampmeter_sim::{FabricConfig, PortBytes, PortGroup, Topology, port_groups};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::context::Context;
use crate::plan::PlanError;

/// Bytes of ports: a number for all, or a table by their rate in Gbit/s (`"25"`) or the name of their
/// tier (`"tor-down"`), which takes precedence.
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

/// Maximum of entries of a table. With two tables of thresholds ports have at most 256 pairs.
const GROUPS_MAX: usize = 15;

/// Returns the bytes of all ports, or those of groups of ports.
///
/// # Errors
/// Bytes or a rate out of range.
pub(crate) fn by_port(
    key: &str,
    spec: Option<&PortBytesSpec>,
    cx: &Context<'_>,
) -> Result<(Option<Bytes>, PortBytes), PlanError> {
    let key = format!("fabric.{key}");
    let bytes =
        |key: &str, bytes: u64| cx.range(key, bytes as f64, 0.0, 4e9).map(|_| Bytes::new(bytes));
    match spec {
        None => Ok((None, PortBytes::default())),
        Some(&PortBytesSpec::All(all)) => Ok((Some(bytes(&key, all)?), PortBytes::default())),
        Some(PortBytesSpec::By(table)) if table.is_empty() => {
            Err(cx.bad(&key, "expected the bytes of ports by rate or tier, got an empty table"))
        }
        Some(PortBytesSpec::By(table)) => {
            let entry = |(group, &of): (&String, &u64)| {
                let group_key = format!("{key}.{group}");
                Ok((group_of(group, &group_key, cx)?, bytes(&group_key, of)?))
            };
            let entries = table.iter().map(entry).collect::<Result<Vec<_>, PlanError>>()?;
            let n_groups = entries.iter().map(|(group, _)| group).collect::<BTreeSet<_>>().len();
            if n_groups < entries.len() {
                return Err(cx.bad(&key, "expected each rate once, got one in two spellings"));
            }
            if n_groups > GROUPS_MAX {
                let message = format!("expected at most {GROUPS_MAX} entries, got {n_groups}");
                return Err(cx.bad(&key, message));
            }
            Ok((None, entries.into_iter().collect()))
        }
    }
}

/// Returns the ports that a key of a table stands for.
fn group_of(group: &str, key: &str, cx: &Context<'_>) -> Result<PortGroup, PlanError> {
    if !group.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Ok(PortGroup::Tier(group.to_owned()));
    }
    let number = ["Gbps", "Gbit/s", "Gb/s", "G"].iter().find_map(|unit| group.strip_suffix(unit));
    let gbps = number.unwrap_or(group).trim().parse::<f64>().ok();
    let bps = gbps.map(|gbps| (gbps * 1e9).round()).filter(|bps| (1e3..=1e14).contains(bps));
    let rate = bps.and_then(|bps| Rate::from_bps(bps as u64));
    let expected = "expected a rate in Gbit/s such as \"25\", or a tier such as \"tor-down\"";
    rate.map(PortGroup::Rate).ok_or_else(|| cx.bad(key, format!("{expected}, got {group:?}")))
}

/// Checks that the tables of a fabric have an entry for each port of a switch, and no other entries,
/// and that no upper threshold of marks is below the lower one.
///
/// # Errors
/// The first port that a table lacks; thresholds in the wrong order.
pub(crate) fn check(
    fabric: &FabricConfig,
    topology: &Topology,
    cx: &Context<'_>,
) -> Result<(), PlanError> {
    let tables = [
        ("fabric.buffer-bytes", &fabric.buffers),
        ("fabric.ecn-bytes", &fabric.marks_above),
        ("fabric.ecn-max-bytes", &fabric.marks_all_above),
    ];
    let has_marks = fabric.mark_all_above.is_some() || !fabric.marks_all_above.is_empty();
    if !has_marks && tables.iter().all(|(_, table)| table.is_empty()) {
        return Ok(());
    }
    let groups = port_groups(topology);
    for (key, table) in tables.into_iter().filter(|(_, table)| !table.is_empty()) {
        let lacks = |(tier, rate): &&(String, Rate)| table.of(tier, *rate).is_none();
        if let Some((tier, rate)) = groups.iter().find(lacks) {
            let gbps = rate.as_bps() as f64 / 1e9;
            let expected = format!("expected an entry for ports {tier} of {gbps} Gbit/s");
            return Err(cx.bad(key, format!("{expected}, got none")));
        }
        if let Some(group) = table.groups().find(|group| !is_of(group, &groups)) {
            let known: BTreeSet<&str> = groups.iter().map(|(tier, _)| tier.as_str()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!("expected the rate or the tier ({known}) of ports, got {group}");
            return Err(cx.bad(key, message));
        }
    }
    for (tier, rate) in groups.iter().filter(|_| has_marks) {
        let above = fabric.marks_above.of(tier, *rate).or(fabric.mark_above);
        let all = fabric.marks_all_above.of(tier, *rate).or(fabric.mark_all_above);
        let expected = match (above, all) {
            (None, Some(_)) => "expected fabric.ecn-bytes with it, got this alone".to_owned(),
            (Some(above), Some(all)) if all < above => {
                format!("expected at least ecn-bytes ({}), got {}", above.get(), all.get())
            }
            _ => continue,
        };
        return Err(cx.bad("fabric.ecn-max-bytes", expected));
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
