//! Several transports in one network.

use std::sync::Arc;

use rampmeter_core::Bytes;
use rampmeter_core::envelope::TransportId;
use rampmeter_core::fabric::{Buffer, FabricNeeds, Need, Spray};
use rampmeter_proto::keys::BadKey;
use rampmeter_proto::mixed::{Member, Mixed, MixedConfig};
use rampmeter_proto::transport::{Assumptions, Derived, Site, Slowed};

use super::ReadTable;
use super::registry::Ready;
use crate::ran::Ran;
use crate::simulate::{Configs, Task, simulate_family};

/// A transport that shares the network with others.
pub(crate) struct MixedPart {
    /// The transport with the parameters of the slowest hosts.
    pub(crate) network: Member,
    /// The transport with the parameters of single hosts, by number.
    pub(crate) by_host: Vec<Option<Member>>,
    /// The transport as if it were alone.
    pub(crate) alone: Arc<dyn Ready>,
}

/// Configures all transports of `tables`. `spray` is the path choice that the plan names.
pub(super) fn configure(
    tables: &[ReadTable],
    site: &Site,
    spray: Option<Spray>,
) -> Result<Arc<dyn Ready>, BadKey> {
    let mut parts = Vec::new();
    for (number, table) in (0..).zip(tables) {
        let site = table.site(site);
        let needed = match table.keys.needs(&site.facts).spray {
            Need::Any => None,
            Need::Prefer(needed) => Some(spray.unwrap_or(needed)),
            Need::Only(needed) => Some(needed),
        };
        let class = table.table.class.unwrap_or(0);
        let part = table.keys.member(number, &site, (needed, class));
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
    let alone = parts.into_iter().map(|part| part.alone).collect();
    Ok(Arc::new(Together { configs, alone }))
}

/// An error of one of several tables.
pub(super) fn of_table(number: u8, bad: BadKey) -> BadKey {
    BadKey { key: format!("[{number}].{}", bad.key), ..bad }
}

/// Transports that share the network, ready to run.
struct Together {
    configs: Configs<MixedConfig>,
    alone: Vec<Arc<dyn Ready>>,
}

impl Ready for Together {
    fn wire(&self) -> Option<TransportId> {
        None
    }

    fn buffer_min(&self) -> Bytes {
        self.alone.iter().map(|ready| ready.buffer_min()).max().unwrap_or(Bytes::ZERO)
    }

    fn assumptions(&self) -> Assumptions {
        let all = self.alone.iter().map(|ready| ready.assumptions());
        all.fold(Assumptions::default(), Assumptions::and)
    }

    fn slowed(&self) -> Option<Slowed> {
        self.alone.iter().find_map(|ready| ready.slowed())
    }

    /// Parameters of several transports have no unique names.
    fn describe(&self) -> Vec<Derived> {
        Vec::new()
    }

    fn simulate(&self, task: Task<'_>) -> Ran {
        simulate_family::<Mixed>(task, &self.configs)
    }
}

/// Returns the needs of all transports together. Of preferences the first transport's holds, but
/// ports have the largest memory that any prefers, and mark if any understands marks.
pub(super) fn merge<'a>(
    all: impl Iterator<Item = (&'a str, FabricNeeds)>,
) -> Result<FabricNeeds, BadKey> {
    let all: Vec<(&str, FabricNeeds)> = all.collect();
    macro_rules! one {
        ($setting:ident) => {
            agree(stringify!($setting), all.iter().map(|(name, needs)| (*name, needs.$setting)))?
        };
    }
    // A transport without marks works with those of others. Ports mark by the needs of the first
    // transport with marks.
    let marked = |(_, needs): &&(&str, FabricNeeds)| {
        matches!(needs.ecn, Need::Prefer(Some(_)) | Need::Only(Some(_)))
    };
    let (ecn, ecn_ports) = match all.iter().find(marked) {
        Some((_, needs)) => (needs.ecn, needs.ecn_ports),
        None => (one!(ecn), one!(ecn_ports)),
    };
    Ok(FabricNeeds {
        buffer: largest(&all, one!(buffer)),
        overflow: one!(overflow),
        // Each packet has the path choice of its transport.
        spray: Need::Any,
        interface: one!(interface),
        ecn,
        ecn_ports,
        drop_unscheduled: one!(drop_unscheduled),
        switching: one!(switching),
        slot: one!(slot),
        express: one!(express),
        trim: None,
        pfc: one!(pfc),
        control_class: all.iter().all(|(_, needs)| needs.control_class),
        priorities: all.iter().map(|(_, needs)| needs.priorities).max().unwrap_or(0),
        clocks_within: all.iter().filter_map(|(_, needs)| needs.clocks_within).min(),
        arbiters: Vec::new(),
    })
}

/// The memory of ports: the most that any transport prefers, where ports have memories of their
/// own.
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

/// The only value that any transport works with, else the one that the first of them prefers.
fn agree<'a, T: Copy + PartialEq + std::fmt::Debug>(
    setting: &str,
    all: impl Iterator<Item = (&'a str, Need<T>)>,
) -> Result<Need<T>, BadKey> {
    let mut agreed: Option<(&str, Need<T>)> = None;
    for (name, need) in all {
        agreed = match (agreed, need) {
            (_, Need::Any) => agreed,
            (Some((first, Need::Only(a))), Need::Only(b)) if a != b => {
                let setting = setting.replace('_', "-");
                let expected = format!("transports that work with one value of fabric.{setting}");
                let got = format!("{first}, which needs {a:?}, and {name}, which needs {b:?}");
                return Err(BadKey::new("name", expected, got));
            }
            (None | Some((_, Need::Prefer(_))), Need::Only(_)) | (None, _) => Some((name, need)),
            (Some(_), _) => agreed,
        };
    }
    Ok(agreed.map_or(Need::Any, |(_, need)| need))
}
