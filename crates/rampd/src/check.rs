//! `rampd check`: faults of configurations, and derived parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rampmeter_proto::Catalogue;
use rampmeter_proto::registered::DerivedValue;
use rampmeter_ring::AllowedUsers;
use rampmeter_runtime::PublicKey;
use rampmeter_types::{Bytes, Span};
use serde_json::{Value, json};

use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::json::Form;

/// Runs `rampd check`: checks each file by itself, and all against the first.
pub(crate) fn check<C: Catalogue>(configs: &[PathBuf], form: Form) -> Result<(), Error> {
    let mut text = String::new();
    let mut objects = Vec::new();
    let mut first: Option<(&PathBuf, Setup)> = None;
    for file in configs {
        let setup = Setup::load::<C>(file)?;
        // Configurations may be checked on machines without the private keys.
        if let Some(keys) = setup.keys.as_ref().filter(|keys| keys.private_file.exists()) {
            keys.private(setup.id)?;
        }
        let _ = writeln!(text, "{}: good", file.display());
        describe(&setup, &mut text);
        objects.push(object(file, &setup));
        match &first {
            None => first = Some((file, setup)),
            Some((other, before)) => {
                if let Some(key) = difference(before, &setup) {
                    let expected = format!("that of {}", other.display());
                    let error = InputError::unexpected(expected, "another").at(key);
                    return Err(error.in_file(file).into());
                }
            }
        }
    }
    form.print(&text, || json!({"schema": "rampd.check/1", "configurations": objects}))?;
    Ok(())
}

/// Returns the key that differs although it must be equal at all nodes.
fn difference(a: &Setup, b: &Setup) -> Option<&'static str> {
    if a.more_rails.len() != b.more_rails.len() {
        Some("the number of addresses in peer.address")
    } else if peers(a) != peers(b) {
        Some("[[peer]]")
    } else if a.keys.is_some() != b.keys.is_some() {
        Some("network.security")
    } else if public(a) != public(b) {
        Some("peer.public-key")
    } else if a.facts != b.facts || a.udp.mtu != b.udp.mtu {
        Some("[network]")
    } else if a.transport != b.transport {
        Some("[transport]")
    } else if a.clock != b.clock {
        Some("node.clock")
    } else {
        None
    }
}

/// Returns the addresses of all nodes, by network.
fn peers(setup: &Setup) -> Vec<&Vec<Option<SocketAddr>>> {
    let more = setup.more_rails.iter().map(|rail| &rail.peers);
    std::iter::once(&setup.udp.peers).chain(more).collect()
}

fn public(setup: &Setup) -> Option<&Vec<Vec<PublicKey>>> {
    setup.keys.as_ref().map(|keys| &keys.public)
}

/// Returns what follows from a configuration.
fn object(file: &Path, setup: &Setup) -> Value {
    let programs = setup.acceptor.as_ref().map(|acceptor| {
        let (limits, services) = (&acceptor.limits, &acceptor.services.0);
        let services: Vec<Value> = services
            .iter()
            .map(|(service, AllowedUsers { users, groups })| {
                json!({"service": service, "users": users, "groups": groups})
            })
            .collect();
        json!({
            "programs": limits.clients_max,
            "programs_per_user": limits.clients_per_user,
            "memory_bytes": limits.memory_max,
            "memory_per_user_bytes": limits.memory_per_user,
            "services": services,
        })
    });
    let derived = setup.transport.derived.iter().map(DerivedValue::entry);
    json!({
        "file": file,
        "node": setup.id.get(),
        "role": if setup.is_arbiter { "arbiter" } else { "host" },
        "addresses": setup.addresses(setup.id),
        "transport": setup.transport.table.name,
        "security": if setup.keys.is_some() { "encrypted" } else { "checksum" },
        "has_private_key": setup.keys.as_ref().map(|keys| keys.private_file.exists()),
        "metrics": setup.metrics,
        "hosts": setup.facts.n_hosts,
        "payload_bytes": setup.payload.get(),
        "packet_us": packet_time(setup).as_us_f64(),
        "programs": programs,
        "derived": derived.collect::<BTreeMap<String, f64>>(),
    })
}

/// Returns the time of a full packet on the link, with all headers.
fn packet_time(setup: &Setup) -> Span {
    setup.facts.access_rate.tx_time(Bytes::new(setup.udp.mtu as u64 + 38))
}

fn describe(setup: &Setup, text: &mut String) {
    let facts = &setup.facts;
    let role = if setup.is_arbiter { "arbiter" } else { "host" };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22}{value}");
    };
    line("node", format!("{} ({role}) at {}", setup.id.get(), setup.own_addresses()));
    if !setup.more_rails.is_empty() {
        line(
            "networks",
            format!("{}, of which each has a share of rate-mbps", setup.rails().count()),
        );
    }
    if let Some(acceptor) = &setup.acceptor {
        let limits = &acceptor.limits;
        let (all, each) = (limits.clients_max, limits.clients_per_user);
        let [all_gb, each_gb] =
            [limits.memory_max, limits.memory_per_user].map(|bytes| bytes as f64 / 1e9);
        line("programs", format!("{all}, {each} of each user"));
        line("their memory", format!("{all_gb:.1} GB, {each_gb:.1} GB of each user"));
        for (service, AllowedUsers { users, groups }) in &acceptor.services.0 {
            let numbers = |nodes: &BTreeSet<u32>| {
                let nodes: Vec<_> = nodes.iter().map(u32::to_string).collect();
                if nodes.is_empty() { "none".to_owned() } else { nodes.join(", ") }
            };
            let (users, groups) = (numbers(users), numbers(groups));
            line(&format!("service {service}"), format!("users {users}; groups {groups}"));
        }
    }
    line(
        "packets",
        match &setup.keys {
            None => "with a checksum: anybody on the network can forge them".to_owned(),
            Some(keys) if keys.private_file.exists() => "encrypted".to_owned(),
            Some(keys) => format!("encrypted; no {} here", keys.private_file.display()),
        },
    );
    if let Some(address) = setup.metrics {
        let readers =
            setup.open_metrics().map_or("this host alone", |_| "any host that can reach it");
        line("metrics", format!("at {address}, for {readers}"));
    }
    line("hosts", facts.n_hosts.to_string());
    line("payload of a packet", format!("{} bytes", setup.payload.get()));
    line("time of a packet", format!("{:.1} us", packet_time(setup).as_us_f64()));
    for derived in &setup.transport.derived {
        line(&derived.name.replace('-', " "), derived.quantity.to_string());
    }
}
