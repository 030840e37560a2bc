//! `rampd init`: configurations and keys of nodes that send to each other.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rampmeter_proto::Catalogue;
use rampmeter_runtime::PrivateKey;
use serde_json::{Value, json};

use crate::args::parser;
use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::json::Form;
use crate::keygen::{create, fill};

/// Distance of the ports of nodes with the same address.
const PORT_STEP: u16 = 10;

#[derive(Debug, Args)]
#[command(after_help = "Examples: two nodes of this machine; three hosts; arbiters\n  \
    rampd init nodes\n  \
    rampd init nodes --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --rate-mbps 10000\n  \
    rampd init nodes --transport fastpass --arbiters 127.0.0.1,127.0.0.1")]
pub(crate) struct InitArgs {
    /// Folder of the files, which is made if there is none; existing files are not replaced.
    folder: PathBuf,
    /// Addresses or names of the nodes' hosts, in the order of their numbers.
    #[arg(long, value_delimiter = ',', default_value = "127.0.0.1,127.0.0.1")]
    hosts: Vec<String>,
    /// Addresses or names of the machines of the transport's arbiters, if it has some: Fastpass's
    /// arbiter and its standby, or the controller of CAPTON. They are numbered after the hosts.
    #[arg(long, value_delimiter = ',')]
    arbiters: Vec<String>,
    /// UDP port of a host's first node, which also uses the next port.
    #[arg(long, default_value_t = 7321, value_parser = parser::<u16>("a port from 0 to 65535"))]
    port: u16,
    /// Rate of the slowest host's link in Mbit/s.
    #[arg(long, default_value_t = 1000.0, value_parser = parser::<f64>("a number"))]
    rate_mbps: f64,
    /// Unloaded round trip of a small packet in us, hosts included.
    #[arg(long, default_value_t = 300.0, value_parser = parser::<f64>("a number"))]
    control_rtt_us: f64,
    /// Transport of all nodes.
    #[arg(long, default_value = "dcpim")]
    transport: String,
}

impl InitArgs {
    /// Returns true if all nodes are on this machine.
    fn is_local(&self) -> bool {
        self.machines().all(|host| host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()))
    }

    /// Returns the machines of the nodes, in the order of their numbers.
    fn machines(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().chain(&self.arbiters)
    }

    fn is_arbiter(&self, id: usize) -> bool {
        id >= self.hosts.len()
    }

    /// Returns the address of a node: a further node of a machine has a later port.
    fn address(&self, id: usize, host: &String) -> Result<String, Error> {
        let earlier = self.machines().take(id).filter(|other| *other == host).count();
        let offset = u16::try_from(earlier).ok().and_then(|n| n.checked_mul(PORT_STEP));
        // The next port is used too.
        let port = offset.and_then(|offset| self.port.checked_add(offset)).filter(|p| *p < 65_535);
        let port = port.ok_or_else(|| {
            let got = format!("{} and {} nodes of {host}", self.port, earlier + 1);
            InputError::unexpected("ports below 65535", got).at("--port")
        })?;
        Ok(match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, port).to_string(),
            Err(_) => format!("{host}:{port}"),
        })
    }

    fn config(&self, id: usize) -> PathBuf {
        self.folder.join(format!("node{id}.toml"))
    }

    fn key(&self, id: usize) -> PathBuf {
        self.folder.join(format!("{id}.key"))
    }

    /// Returns the configuration of a node, of which `peers` are the last tables.
    fn text(&self, id: usize, peers: &str) -> Result<String, Error> {
        let Self { folder, rate_mbps, control_rtt_us, transport, .. } = self;
        let is_local = self.is_local();
        // The service makes /run/rampd; on one machine the folder needs no further rights.
        let sockets = if is_local { std::path::absolute(folder)? } else { "/run/rampd".into() };
        let socket = sockets.join(format!("{id}.sock"));
        let socket = socket
            .to_str()
            .ok_or_else(|| InputError::unexpected("a path in UTF-8", "another").in_file(folder))?;
        let clock =
            if is_local { "clock = \"monotonic\"  # all nodes are on this machine\n" } else { "" };
        let (socket, transport) = (toml::Value::from(socket), toml::Value::from(&**transport));
        Ok(format!(
            "# Node {id}. The other nodes differ in id, socket and private-key.\n\n[node]\nid = \
             {id}\nsocket = {socket}\nprivate-key = \"{id}.key\"\n{clock}\n[network]\nrate-mbps = \
             {rate_mbps}\ncontrol-rtt-us = {control_rtt_us}\n\n[transport]\nname = \
             {transport}\n{peers}"
        ))
    }
}

/// Checks that a machine has an address.
fn check_host(host: &str, args: &InitArgs) -> Result<(), Error> {
    let is_host = host.parse::<IpAddr>().is_ok()
        || (host, args.port).to_socket_addrs().is_ok_and(|mut found| found.next().is_some());
    let option = if args.hosts.iter().any(|of| of == host) { "--hosts" } else { "--arbiters" };
    is_host.then_some(()).ok_or_else(|| {
        let expected = "addresses, or names that have one";
        InputError::unexpected(expected, format!("{host:?}")).at(option).into()
    })
}

/// Runs `rampd init`: writes `0.key`, `node0.toml`, `1.key`, ... and prints the next commands.
/// After an error it leaves nothing that it has written.
pub(crate) fn init<C: Catalogue>(args: &InitArgs, form: Form) -> Result<(), Error> {
    if args.hosts.len() < 2 {
        let got = args.hosts.join(",");
        return Err(InputError::unexpected("two hosts or more", got).at("--hosts").into());
    }
    for host in args.machines() {
        check_host(host, args)?;
    }
    let addresses = args.machines().enumerate().map(|(id, host)| args.address(id, host));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let folder = &args.folder;
    let is_new = !folder.exists();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            InputError::unexpected("a folder", "another file").in_file(folder)
        }
        _ => InputError::unwritable(&error).in_file(folder),
    })?;
    let mut written = Vec::new();
    if let Err(error) = write_files::<C>(args, &addresses, &mut written) {
        for file in written {
            let _ = fs::remove_file(file);
        }
        if is_new {
            let _ = fs::remove_dir(folder);
        }
        return Err(error);
    }
    let mut text = String::new();
    for (id, address) in addresses.iter().enumerate() {
        let (config, key) = (args.config(id), args.key(id));
        let (config, key) = (config.display(), key.display());
        let (role, command) = match args.is_arbiter(id) {
            true => ("Arbiter", "arbiter"),
            false => ("Node", "node"),
        };
        let _ = writeln!(
            text,
            "{role} {id}, {address}: {config} and {key}\n  rampd {command} {config}"
        );
    }
    if !args.is_local() {
        text += "Copy to each machine the two files of its node, and no other key.\n";
    }
    form.print(&text, || {
        let node = |(id, address): (usize, &String)| {
            let role = if args.is_arbiter(id) { "arbiter" } else { "host" };
            let (config, key) = (args.config(id), args.key(id));
            json!({"node": id, "role": role, "address": address, "config": config, "key": key})
        };
        let nodes: Vec<Value> = addresses.iter().enumerate().map(node).collect();
        json!({"schema": "rampd.init/1", "folder": folder, "nodes": nodes})
    })?;
    Ok(())
}

/// Writes keys and configurations, adds their paths to `written`, and checks them as the node does.
fn write_files<C: Catalogue>(
    args: &InitArgs,
    addresses: &[String],
    written: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let mut peers = String::new();
    for (id, address) in addresses.iter().enumerate() {
        let key = PrivateKey::generate()?;
        write_new(&args.key(id), &format!("{}\n", key.to_base64()), 0o600, written)?;
        let (address, public) = (toml::Value::from(&**address), key.public());
        let _ = write!(
            peers,
            "\n[[peer]]\nid = {id}\naddress = {address}\npublic-key = \"{public}\"\n"
        );
        if args.is_arbiter(id) {
            peers += "arbiter = true\n";
        }
    }
    for id in 0..addresses.len() {
        write_new(&args.config(id), &args.text(id, &peers)?, 0o644, written)?;
        Setup::load::<C>(&args.config(id)).map_err(|e| of_option(args, e))?;
    }
    Ok(())
}

/// Returns the error of a key of a written configuration as that of the option that set it. The
/// configuration is removed after the error.
fn of_option(args: &InitArgs, error: Box<InputError>) -> Box<InputError> {
    let peer = error.key.strip_prefix("peer[").and_then(|rest| rest.split_once(']'));
    let peer = peer.and_then(|(idx, _)| idx.parse().ok());
    let option = match &*error.key {
        "network.rate-mbps" => "--rate-mbps",
        "network.control-rtt-us" => "--control-rtt-us",
        "transport.name" => "--transport",
        "peer" => "--arbiters",
        _ => match peer {
            Some(id) if args.is_arbiter(id) => "--arbiters",
            Some(_) => "--hosts",
            None => return error,
        },
    };
    InputError::new(error.fault).at(option)
}

/// Writes a file that must not exist, and adds it to `written`.
fn write_new(file: &Path, text: &str, mode: u32, written: &mut Vec<PathBuf>) -> Result<(), Error> {
    let out = create(file, mode).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            InputError::unexpected("no such file", "one, which stays as it is").in_file(file)
        }
        _ => InputError::unwritable(&error).in_file(file),
    })?;
    written.push(file.to_owned());
    fill(out, file, text)
}
