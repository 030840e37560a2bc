//! Several transports in one network.

use std::sync::Arc;

use rampmeter_proto::keys::BadKey;
use rampmeter_proto::mixed::{MixedConfig, MixedTransports};
use rampmeter_proto::registered::{Assumptions, DerivedValue, SharedTime, Site};
use rampmeter_types::Bytes;
use rampmeter_types::envelope::TransportId;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need, Spray};

use super::erased::{MixedPart, RunnableTransport};
use super::table::ReadTable;
use crate::simulation::status::CompletedRun;
use crate::simulation::{Configs, SimulationTask, simulate_transport};
use crate::text::words::PlanSpelling;

/// Configures all transports of `tables`. `spray` is the path choice that the plan names.
pub(super) fn configure(
    tables: &[ReadTable],
    site: &Site,
    spray: Option<Spray>,
) -> Result<Arc<dyn RunnableTransport>, BadKey> {
    let mut parts = Vec::new();
    for (number, table) in (0..).zip(tables) {
        let site = table.site(site);
        let needed = match table.keys.needs(&site.facts, site.wiring()).spray {
            Need::Any => None,
            Need::Prefer(needed) => Some(spray.unwrap_or(needed)),
            Need::Require(needed) => Some(needed),
        };
        let class = table.table.class.unwrap_or(0);
        let part = table.keys.member(number, &site, needed, class);
        parts.push(part.map_err(|bad| of_table(number, bad))?);
    }
    let n_hosts = parts.iter().map(|part| part.by_host.len()).max().unwrap_or(0);
    let own = |part: &MixedPart, host: usize| part.by_host.get(host).cloned().flatten();
    let at = |host: usize| {
        let has_own = parts.iter().any(|part| own(part, host).is_some());
        let member = |part: &MixedPart| own(part, host).unwrap_or_else(|| part.network.clone());
        let config = || MixedConfig { members: parts.iter().map(member).collect() };
        has_own.then(|| Arc::new(config()))
    };
    let by_host = (0..n_hosts).map(at).collect();
    let members = parts.iter().map(|part| part.network.clone()).collect();
    let configs = Configs { network: Arc::new(MixedConfig { members }), by_host };
    let standalone = parts.into_iter().map(|part| part.standalone).collect();
    Ok(Arc::new(RunnableMix { configs, standalone }))
}

/// Returns an error of one of several tables.
pub(super) fn of_table(number: u8, bad: BadKey) -> BadKey {
    BadKey { key: format!("[{number}].{}", bad.key), ..bad }
}

/// Transports that share the network, ready to run.
struct RunnableMix {
    configs: Configs<MixedConfig>,
    standalone: Vec<Arc<dyn RunnableTransport>>,
}

impl RunnableTransport for RunnableMix {
    fn wire(&self) -> Option<TransportId> {
        None
    }

    fn buffer_min(&self) -> Bytes {
        self.standalone.iter().map(|ready| ready.buffer_min()).max().unwrap_or(Bytes::ZERO)
    }

    fn assumptions(&self) -> Assumptions {
        let all = self.standalone.iter().map(|ready| ready.assumptions());
        all.fold(Assumptions::default(), Assumptions::union)
    }

    fn each_assumptions(&self) -> Vec<Assumptions> {
        self.standalone.iter().map(|ready| ready.assumptions()).collect()
    }

    fn slowed(&self) -> Option<SharedTime> {
        self.standalone.iter().find_map(|ready| ready.slowed())
    }

    /// Parameters of several transports have no unique names.
    fn describe(&self) -> Vec<DerivedValue> {
        Vec::new()
    }

    fn simulate(&self, task: SimulationTask<'_>) -> CompletedRun {
        simulate_transport::<MixedTransports>(task, &self.configs)
    }
}

/// Returns the needs of all transports together. Of preferences the first transport's holds, but
/// ports have the largest memory that any prefers, and mark if any understands marks.
pub(super) fn merge<'a>(
    all: impl Iterator<Item = (&'a str, FabricNeeds)>,
) -> Result<FabricNeeds, BadKey> {
    let all: Vec<(&str, FabricNeeds)> = all.collect();
    macro_rules! one {
        ($setting:ident, $key:literal) => {
            agree($key, all.iter().map(|(name, needs)| (*name, needs.$setting)))?
        };
    }
    // A transport without marks works with those of others. Ports mark by the needs of the first
    // transport with marks.
    let marked = |(_, needs): &&(&str, FabricNeeds)| {
        matches!(needs.ecn, Need::Prefer(Some(_)) | Need::Require(Some(_)))
    };
    let (ecn, ecn_ports) = match all.iter().find(marked) {
        Some((_, needs)) => (needs.ecn, needs.ecn_ports),
        None => (one!(ecn, "ecn-bytes"), one!(ecn_ports, "ecn-ports")),
    };
    Ok(FabricNeeds {
        buffer: largest(&all, one!(buffer, "buffer-bytes")),
        overflow: one!(overflow, "overflow"),
        // Each packet has the path choice of its transport.
        spray: Need::Any,
        interface: one!(interface, "interface"),
        ecn,
        ecn_ports,
        drop_unscheduled: one!(drop_unscheduled, "drop-unscheduled-above-bytes"),
        switching: one!(switching, "switching"),
        buffer_cell: one!(buffer_cell, "buffer-cell-bytes"),
        express_max: one!(express_max, "express-bytes"),
        trim: None,
        pfc: one!(pfc, "pfc"),
        control_class: all.iter().all(|(_, needs)| needs.control_class),
        priorities: all.iter().map(|(_, needs)| needs.priorities).max().unwrap_or(0),
        clock_skew_max: all.iter().filter_map(|(_, needs)| needs.clock_skew_max).min(),
        arbiters: Vec::new(),
    })
}

/// Returns the memory of ports: the maximum that any transport prefers, if ports have memories of
/// their own.
fn largest(all: &[(&str, FabricNeeds)], agreed: Need<Buffer>) -> Need<Buffer> {
    let own = |(_, needs): &(&str, FabricNeeds)| match needs.buffer {
        Need::Prefer(Buffer::PerPort(own)) => Some(own),
        _ => None,
    };
    match (agreed, all.iter().filter_map(own).max()) {
        (Need::Prefer(Buffer::PerPort(_)), Some(most)) => Need::Prefer(Buffer::PerPort(most)),
        _ => agreed,
    }
}

/// Returns the only value that any transport works with, else the one that the first of them
/// prefers.
fn agree<'a, T: PlanSpelling + PartialEq>(
    key: &str,
    all: impl Iterator<Item = (&'a str, Need<T>)>,
) -> Result<Need<T>, BadKey> {
    let mut agreed: Option<(&str, Need<T>)> = None;
    for (name, need) in all {
        agreed = match (agreed, need) {
            (_, Need::Any) => agreed,
            (Some((first, Need::Require(a))), Need::Require(b)) if a != b => {
                let expected = format!("transports that work with one value of fabric.{key}");
                let (a, b) = (a.words(), b.words());
                let got = format!("{first}, which needs {a}, and {name}, which needs {b}");
                return Err(BadKey::new("name", expected, got));
            }
            (None | Some((_, Need::Prefer(_))), Need::Require(_)) | (None, _) => Some((name, need)),
            (Some(_), _) => agreed,
        };
    }
    Ok(agreed.map_or(Need::Any, |(_, need)| need))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_that_need_different_fabrics_name_the_key_and_the_values() {
        let none = FabricNeeds {
            buffer: Need::Require(Buffer::PerPort(Bytes::ZERO)),
            ..FabricNeeds::default()
        };
        let some = FabricNeeds {
            buffer: Need::Require(Buffer::PerPort(Bytes::new(9000))),
            ..FabricNeeds::default()
        };
        let BadKey { key, expected, got, .. } =
            merge([("first", none), ("second", some)].into_iter()).unwrap_err();
        assert_eq!(key, "name");
        assert_eq!(expected, "transports that work with one value of fabric.buffer-bytes");
        assert_eq!(
            got,
            "first, which needs 0 bytes a port, and second, which needs 9000 bytes a port"
        );
    }
}
