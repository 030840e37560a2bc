//! Checks the values of a file, and derives a [`Setup`] from them.

mod programs;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use nix::ifaddrs::getifaddrs;
use rampmeter_proto::Catalogue;
use rampmeter_proto::keys::PacketSizes;
use rampmeter_ring::{AcceptorConfig, Access};
use rampmeter_runtime::datapath::RAILS_MAX;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::{ClockSource, NodeConfig, PublicKey, WaitMode};
use rampmeter_types::envelope::{HostPacket, IPV4_UDP, IPV6_UDP, Protection};
use rampmeter_types::{Bytes, FabricFacts, NodeId, Rate, Span};

use super::place::bad;
use super::setup::Keys;
use super::setup::RailAddresses;
use super::setup::Setup;
use super::tables::{
    Addresses, ClockKey, Config, DatapathKey, NetworkTable, NodeTable, PeerTable, SecurityKey,
    WaitKey,
};
use crate::error::InputError;
use crate::host::HostTransport;

/// Maximum of round trips: far above those of any path of the internet.
const RTT_MAX_US: f64 = 1e6;

/// Minimum of `unreachable-after-ms`, in round trips of a full packet.
const ROUND_TRIPS_MIN: u64 = 4;

/// Maximum of `coalesce-us`.
const COALESCE_MAX_US: f64 = 10_000.0;

/// Maximum `mtu` whose packets fit a frame of AF_XDP memory.
const XDP_MTU_MAX: usize = 3_826;

/// Maximum length of a Unix socket's path on Linux (unix(7): 108 bytes with the zero at its end).
const SOCKET_PATH_MAX: usize = 107;

pub(super) struct Check<'a> {
    pub(super) file: &'a Path,
}

impl Check<'_> {
    fn bad(&self, key: &str, expected: &str, got: impl ToString) -> Box<InputError> {
        bad(self.file, key, expected, got)
    }

    fn range(&self, key: &str, value: f64, least: f64, most: f64) -> Result<f64, Box<InputError>> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.bad(key, &format!("a number from {least} to {most}"), value))
    }

    fn micros(&self, key: &str, us: f64, least: f64) -> Result<Span, Box<InputError>> {
        let us = self.range(key, us, least, 1e11)?;
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }

    pub(super) fn setup<C: Catalogue>(&self, config: Config) -> Result<Setup, Box<InputError>> {
        let Config { node, network, transport, peer, programs, service } = config;
        let mut rails = self.peers(&peer)?.into_iter();
        let peers = rails.next().unwrap_or_default();
        let me = peer.iter().find(|p| p.id == node.id);
        let me = me.ok_or_else(|| self.bad("node.id", "the id of one of the peers", node.id))?;
        let Addresses(locals) = &me.address;
        let local = locals[0];
        self.loopback(locals, &peer)?;
        let more_rails = locals[1..].iter().zip(rails);
        let more_rails =
            more_rails.map(|(&local, peers)| RailAddresses { local, peers }).collect::<Vec<_>>();
        let ip_udp = if local.is_ipv4() { IPV4_UDP } else { IPV6_UDP };
        let (mtu, spray) = (network.mtu, network.spray_ports);
        self.range("network.mtu", mtu as f64, 576.0, 9_000.0)?;
        self.range("network.spray-ports", spray as f64, 1.0, 256.0)?;
        let segment_offload = self.segment_offload(&node, &network)?;
        let keys = self.keys(&node, network.security, &peer)?;
        let protection = if keys.is_some() { Protection::Sealed } else { Protection::Checksum };
        let HostPacket { payload, header } = HostPacket::new(mtu, ip_udp, protection);
        let packet = PacketSizes::new(payload as u64, header as u64);
        let n_hosts = peer.iter().filter(|p| !p.arbiter).count() as u32;
        let facts = self.facts(&network, n_hosts, packet.wire())?;
        let transport = HostTransport::read::<C>(&transport, &facts, packet)
            .map_err(|bad| Box::<InputError>::from(bad).in_file(self.file))?;
        self.arbiters(transport.arbiters, peer.len() as u32 - n_hosts)?;
        let wait = self.wait(&node, facts.access_rate.tx_time(packet.wire()))?;
        let interface = self.interface(&node, locals, mtu)?;
        let message_max = self.message_max(&node)?;
        let drain_us = node.drain_timeout_ms * 1e3;
        let drain_timeout = self.micros("node.drain-timeout-ms", drain_us, 0.0)?;
        let connect_us = node.connect_timeout_ms * 1e3;
        let connect_timeout = self.micros("node.connect-timeout-ms", connect_us, 1.0)?;
        let (limits, services) = (self.limits(&programs)?, self.services(&service)?);
        self.socket_path(&node)?;
        // An arbiter does not use `socket`, and may share a file with a host of its machine.
        let socket = node.socket.as_ref().filter(|_| !me.arbiter);
        let status = self.status(&node, socket)?;
        self.without_socket(node.socket.is_some() && !me.arbiter, &programs, &service)?;
        let acceptor = node.socket.map(|path| AcceptorConfig { path, limits, services });
        Ok(Setup {
            id: NodeId::new(node.id),
            is_arbiter: me.arbiter,
            facts,
            transport,
            udp: UdpConfig { mtu, spray, segment_offload, ..UdpConfig::new(local, peers) },
            more_rails,
            interface,
            clock: clock_source(node.clock),
            wait,
            spin_us: node.pacing_spin_us,
            coalescing: self.coalescing(node.coalesce_us)?,
            busy_poll: self.micros("node.busy-poll-us", node.busy_poll_us, 0.0)?,
            acceptor,
            access: Access::default(),
            metrics: node.metrics_address,
            status,
            drain_timeout,
            connect_timeout,
            message_max,
            payload: packet.payload,
            keys,
            file: self.file.to_owned(),
            reread: Setup::load::<C>,
        })
    }

    /// Derives the facts of the network, which has `n_hosts` hosts.
    fn facts(
        &self,
        network: &NetworkTable,
        n_hosts: u32,
        full_packet: Bytes,
    ) -> Result<FabricFacts, Box<InputError>> {
        let rate = self.range("network.rate-mbps", network.rate_mbps, 0.1, 1e6)? * 1e6;
        let access_rate = Rate::from_bps(rate as u64)
            .ok_or_else(|| self.bad("network.rate-mbps", "more than 0", network.rate_mbps))?;
        let packet = access_rate.tx_time(full_packet);
        let rtt_us = network.control_rtt_us;
        let control_rtt = self.range("network.control-rtt-us", rtt_us, 0.1, RTT_MAX_US)?;
        let control_rtt = self.micros("network.control-rtt-us", control_rtt, 0.1)?;
        let usual = control_rtt + packet * 4;
        let data_rtt = match network.data_rtt_us {
            None => usual,
            Some(us) => {
                let most = RTT_MAX_US.max(usual.as_us_f64());
                let us = self.range("network.data-rtt-us", us, rtt_us, most)?;
                self.micros("network.data-rtt-us", us, rtt_us)?
            }
        };
        let abort_timeout_min = self.unreachable_after(network.unreachable_after_ms, data_rtt)?;
        Ok(FabricFacts {
            n_hosts,
            access_rate,
            core_rate: None,
            data_rtt,
            control_rtt,
            abort_timeout_min,
        })
    }

    /// Derives the mode of waiting, for a node that sends a full packet in `packet`.
    fn wait(&self, node: &NodeTable, packet: Span) -> Result<WaitMode, Box<InputError>> {
        Ok(match (node.wait_mode, node.pacing_spin_us) {
            (WaitKey::Poll, _) => WaitMode::Poll,
            (WaitKey::Block, Some(us)) => {
                WaitMode::Block { spin: self.micros("node.pacing-spin-us", us, 0.0)? }
            }
            (WaitKey::Block, None) => {
                let late = Span::from_us(60);
                WaitMode::Block { spin: if packet < late { late } else { Span::ZERO } }
            }
        })
    }

    /// Checks `message-max-bytes`, in bytes.
    fn message_max(&self, node: &NodeTable) -> Result<u32, Box<InputError>> {
        let (bytes, most) = (node.message_max_bytes as f64, NodeConfig::MESSAGE_MAX.into());
        Ok(self.range("node.message-max-bytes", bytes, 1.0, most)? as u32)
    }

    /// Checks the length of the socket's path.
    fn socket_path(&self, node: &NodeTable) -> Result<(), Box<InputError>> {
        if let Some(path) = node.socket.as_ref().filter(|p| p.as_os_str().len() > SOCKET_PATH_MAX) {
            let expected = format!("a path of at most {SOCKET_PATH_MAX} bytes");
            return Err(self.bad("node.socket", &expected, path.display()));
        }
        Ok(())
    }

    /// Checks `unreachable-after-ms`. Below a few round trips, messages fail before an answer can
    /// come.
    fn unreachable_after(&self, ms: f64, data_rtt: Span) -> Result<Span, Box<InputError>> {
        let least = (data_rtt * ROUND_TRIPS_MIN).as_us_f64() / 1e3;
        let ms = self.range("network.unreachable-after-ms", ms, least, 1e8)?;
        self.micros("network.unreachable-after-ms", ms * 1e3, 0.0)
    }

    /// Checks `coalesce-us`. Beyond a few round trips, transports would retransmit packets that
    /// have arrived.
    fn coalescing(&self, us: f64) -> Result<Span, Box<InputError>> {
        let us = self.range("node.coalesce-us", us, 0.0, COALESCE_MAX_US)?;
        self.micros("node.coalesce-us", us, 0.0)
    }

    /// Returns the path of the status socket, if there is one; default: next to `socket`.
    fn status(
        &self,
        node: &NodeTable,
        socket: Option<&PathBuf>,
    ) -> Result<Option<PathBuf>, Box<InputError>> {
        let status_default = || socket.map(|path| path.with_extension("status"));
        match node.status_socket.clone().or_else(status_default) {
            Some(path) if Some(&path) == socket => {
                Err(self.bad("node.status-socket", "a path other than node.socket", path.display()))
            }
            status => Ok(status),
        }
    }

    /// Checks the keys, if the network has any.
    fn keys(
        &self,
        node: &NodeTable,
        security: SecurityKey,
        peers: &[PeerTable],
    ) -> Result<Option<Keys>, Box<InputError>> {
        let public_key = |idx: usize| format!("peer[{idx}].public-key");
        if security == SecurityKey::None {
            let unused = "network.security = \"encrypted\" in the file";
            if let Some(file) = &node.private_key {
                return Err(self.bad("node.private-key", unused, file.display()));
            }
            if let Some(file) = &node.key_log {
                return Err(self.bad("node.key-log", unused, file.display()));
            }
            return match peers.iter().position(|peer| !peer.public_key.texts().is_empty()) {
                Some(idx) => {
                    Err(self.bad(&public_key(idx), unused, &peers[idx].public_key.texts()[0]))
                }
                None => Ok(None),
            };
        }
        let Some(file) = &node.private_key else {
            let expected =
                "the file that `rampd keygen` has written, or network.security = \"none\"";
            return Err(self.bad("node.private-key", expected, "none"));
        };
        // Relative paths start at the folder of the configuration.
        let folder = self.file.parent().unwrap_or(Path::new(""));
        let mut public = vec![Vec::new(); peers.len()];
        for (idx, peer) in peers.iter().enumerate() {
            let texts = peer.public_key.texts();
            if texts.is_empty() {
                let expected = "the key that `rampd keygen` has printed for it";
                return Err(self.bad(&public_key(idx), expected, "none"));
            }
            for text in texts {
                let key: PublicKey = text
                    .parse()
                    .map_err(|_| self.bad(&public_key(idx), "32 bytes in base64", text))?;
                if key.is_low_order() {
                    let expected = "a key that `rampd keygen` has printed";
                    let got = format!("{text}, with which anybody passes for the peer");
                    return Err(self.bad(&public_key(idx), expected, got));
                }
                if public.iter().flatten().any(|other| *other == key) {
                    return Err(self.bad(&public_key(idx), "a key that no other peer has", text));
                }
                public[peer.id as usize].push(key);
            }
        }
        if let Some(log) = node.key_log.as_ref().filter(|log| *log == file) {
            let expected = "a file other than node.private-key";
            return Err(self.bad("node.key-log", expected, log.display()));
        }
        let log = node.key_log.as_ref().map(|file| folder.join(file));
        Ok(Some(Keys { private_file: folder.join(file), public, log }))
    }

    /// Checks segment offload, which only the kernel's UDP supports.
    fn segment_offload(
        &self,
        node: &NodeTable,
        network: &NetworkTable,
    ) -> Result<bool, Box<InputError>> {
        match (network.segmentation_offload, node.datapath) {
            (Some(true), DatapathKey::Xdp) => {
                Err(self.bad("node.datapath", "udp, if segmentation-offload = true", "xdp"))
            }
            (is_written, datapath) => Ok(is_written.unwrap_or(datapath == DatapathKey::Udp)),
        }
    }

    /// Checks the interface of the AF_XDP socket, if there is one.
    fn interface(
        &self,
        node: &NodeTable,
        addresses: &[SocketAddr],
        mtu: usize,
    ) -> Result<Option<String>, Box<InputError>> {
        match (node.datapath, &node.interface) {
            (DatapathKey::Udp, None) => Ok(None),
            (DatapathKey::Udp, Some(name)) => {
                Err(self.bad("node.interface", "node.datapath = \"xdp\" in the file", name))
            }
            (DatapathKey::Xdp, None) => {
                Err(self.bad("node.interface", "the interface that leads to all peers", "none"))
            }
            (DatapathKey::Xdp, Some(_)) if addresses.len() > 1 => {
                Err(self.bad("node.datapath", "udp, if peers have several addresses", "xdp"))
            }
            (DatapathKey::Xdp, Some(_)) if !addresses[0].is_ipv4() => {
                Err(self.bad("node.datapath", "udp, if addresses are IPv6", "xdp"))
            }
            (DatapathKey::Xdp, Some(_)) if mtu > XDP_MTU_MAX => {
                let expected = format!("at most {XDP_MTU_MAX}, if the datapath is xdp");
                Err(self.bad("network.mtu", &expected, mtu))
            }
            (DatapathKey::Xdp, Some(name)) => Ok(Some(name.clone())),
        }
    }

    /// Checks the addresses by network and number. Ids have no gaps or duplicates, and hosts are
    /// first. All peers have the same number of addresses, of one family. No other peer uses the
    /// port after each.
    fn peers(&self, peers: &[PeerTable]) -> Result<Vec<Vec<Option<SocketAddr>>>, Box<InputError>> {
        let n = peers.len();
        let n_rails = peers.first().map_or(1, |peer| peer.address.0.len());
        let mut rails = vec![vec![None; n]; n_rails];
        for (idx, peer) in peers.iter().enumerate() {
            let key = |name: &str| format!("peer[{idx}].{name}");
            let Addresses(addresses) = &peer.address;
            if addresses.len() != n_rails {
                let expected = format!("{n_rails}, as many as peer {} has", peers[0].id);
                let got = format!("{} in the list", addresses.len());
                return Err(self.bad(&key("address"), &expected, got));
            }
            if n_rails > RAILS_MAX {
                let expected = format!("at most {RAILS_MAX} addresses");
                return Err(self.bad(&key("address"), &expected, n_rails));
            }
            for (rail, address) in rails.iter_mut().zip(addresses) {
                let Some(slot) = rail.get_mut(peer.id as usize) else {
                    let expected = format!("ids from 0 to {}, without gaps", n - 1);
                    return Err(self.bad(&key("id"), &expected, peer.id));
                };
                if slot.replace(*address).is_some() {
                    return Err(self.bad(&key("id"), "a unique id", peer.id));
                }
            }
            for (rail, address) in addresses.iter().enumerate() {
                let others = peers[..idx]
                    .iter()
                    .flat_map(|other| other.address.0.iter().map(|address| (other.id, *address)));
                let own = addresses[..rail].iter().map(|address| (peer.id, *address));
                let first = peers[0].address.0[0];
                self.address(&key("address"), *address, first, others.chain(own))?;
            }
        }
        let n_hosts = peers.iter().filter(|p| !p.arbiter).count();
        if n_hosts < 2 {
            return Err(self.bad("peer", "at least 2 hosts", n_hosts));
        }
        if let Some(idx) = peers.iter().position(|p| p.arbiter != (p.id as usize >= n_hosts)) {
            let expected = "arbiters numbered after all hosts";
            return Err(self.bad(&format!("peer[{idx}].id"), expected, peers[idx].id));
        }
        Ok(rails)
    }

    /// Refuses loopback addresses of this node if peers are on other hosts: the system sends no
    /// packets from them to other hosts.
    fn loopback(&self, locals: &[SocketAddr], peers: &[PeerTable]) -> Result<(), Box<InputError>> {
        for (rail, local) in locals.iter().enumerate().filter(|(_, local)| local.ip().is_loopback())
        {
            let outside = peers.iter().enumerate().find_map(|(idx, peer)| {
                let address = peer.address.0.get(rail)?;
                (!address.ip().is_loopback()).then_some((idx, address))
            });
            if let Some((idx, address)) = outside {
                let expected = format!("a loopback address, as this node's own is {local}");
                return Err(self.bad(&format!("peer[{idx}].address"), &expected, address));
            }
        }
        Ok(())
    }

    /// Checks an address: it must have the family of `first`, belong to one host, and have two
    /// ports that none of `others` uses.
    fn address(
        &self,
        key: &str,
        address: SocketAddr,
        first: SocketAddr,
        mut others: impl Iterator<Item = (u32, SocketAddr)>,
    ) -> Result<(), Box<InputError>> {
        if address.is_ipv4() != first.is_ipv4() {
            return Err(self.bad(key, "all IPv4 or all IPv6", address));
        }
        if address.port() == u16::MAX || address.port() == 0 {
            return Err(self.bad(key, "a port from 1 to 65534", address));
        }
        let is_of_many = match address.ip() {
            IpAddr::V4(ip) => {
                let is_broadcast = ip.is_broadcast() || broadcast_addresses().any(|it| it == ip);
                ip.is_unspecified() || ip.is_multicast() || is_broadcast
            }
            IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast(),
        };
        if is_of_many {
            return Err(self.bad(key, "the address of one host", address));
        }
        if matches!(address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()) {
            let expected = "an address that is valid on all hosts, not one of a link (fe80::)";
            return Err(self.bad(key, expected, address));
        }
        let is_near = |(_, other): &(u32, SocketAddr)| {
            other.ip() == address.ip() && other.port().abs_diff(address.port()) < 2
        };
        match others.find(is_near) {
            Some((other, _)) => {
                let expected = format!("two ports that peer {other} does not use");
                Err(self.bad(key, &expected, address))
            }
            None => Ok(()),
        }
    }

    fn arbiters(&self, required: u32, n: u32) -> Result<(), Box<InputError>> {
        if n == required {
            return Ok(());
        }
        let expected = format!(
            "{required} with arbiter = true, as the transport has (`rampd init --arbiters`)"
        );
        Err(self.bad("peer", &expected, n))
    }
}

/// Returns the clock that a key names.
fn clock_source(key: ClockKey) -> ClockSource {
    match key {
        ClockKey::TimeOfDay => ClockSource::TimeOfDay,
        ClockKey::Monotonic => ClockSource::Monotonic,
    }
}

/// Returns the broadcast addresses of the networks of this machine. A peer that has one of them
/// would be all hosts of its network.
fn broadcast_addresses() -> impl Iterator<Item = Ipv4Addr> {
    let interfaces = getifaddrs().into_iter().flatten();
    interfaces.filter_map(|interface| {
        let v4 = |address: nix::sys::socket::SockaddrStorage| Some(address.as_sockaddr_in()?.ip());
        let (address, mask) = (v4(interface.address?)?, v4(interface.netmask?)?);
        // Networks of two or fewer addresses have none (RFC 3021).
        let has_one = mask.to_bits().count_ones() < 31;
        has_one.then(|| Ipv4Addr::from_bits(address.to_bits() | !mask.to_bits()))
    })
}
