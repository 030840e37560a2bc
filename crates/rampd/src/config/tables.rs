//! Tables of the file, as written, with their defaults.

use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use rampmeter_runtime::{BusyPoll, NodeConfig};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::place::{bad, syntax_error, unreadable};
use crate::error::InputError;

/// Maximum size of a file. That of 65 536 peers is an eighth of it.
const BYTES_MAX: u64 = 64 << 20;

/// The file, as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Config {
    /// Configuration of this node.
    pub(crate) node: NodeTable,
    /// Configuration of the network.
    pub(crate) network: NetworkTable,
    /// Protocol, with the keys of plans.
    pub(crate) transport: toml::Table,
    /// All nodes, including this one.
    pub(crate) peer: Vec<PeerTable>,
    /// Limits of programs.
    #[serde(default)]
    pub(crate) programs: ProgramsTable,
    /// Services with restricted access.
    #[serde(default)]
    pub(crate) service: Vec<ServiceTable>,
}

/// The `node` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NodeTable {
    /// Number of this node among the peers.
    pub(crate) id: u32,
    /// Clock. `"time-of-day"`: hosts are synchronised by NTP or PTP. `"monotonic"`: all nodes are
    /// on this machine.
    #[serde(default)]
    pub(crate) clock: ClockKey,
    /// Idle mode. `"block"`: the node sleeps. `"poll"`: it never sleeps, and uses a dedicated core.
    #[serde(default)]
    pub(crate) wait_mode: WaitKey,
    /// Time in us before a paced packet from which a blocking node polls and does not sleep. By
    /// default 60 us if full packets follow faster, and otherwise 0.
    pub(crate) pacing_spin_us: Option<f64>,
    /// Interval in us between polls under load, in which packets are batched; at most 10000, and 0
    /// for none.
    #[serde(default = "default_coalesce")]
    pub(crate) coalesce_us: f64,
    /// Maximum time in us for which a blocking node polls after a packet or a submission; 0 for
    /// none.
    #[serde(default = "default_busy_poll")]
    pub(crate) busy_poll_us: f64,
    /// Datapath: `"udp"` for kernel sockets, `"xdp"` for AF_XDP.
    #[serde(default)]
    pub(crate) datapath: DatapathKey,
    /// Interface through which all peers are reached; required for `"xdp"`, and an error for
    /// `"udp"`.
    pub(crate) interface: Option<String>,
    /// Path of the socket at which programs attach, at most 107 bytes; without it the node has no
    /// programs.
    pub(crate) socket: Option<PathBuf>,
    /// File with the private key, which `rampd keygen` writes; required if packets are encrypted.
    pub(crate) private_key: Option<PathBuf>,
    /// File to which session keys are appended, to decrypt captures.
    pub(crate) key_log: Option<PathBuf>,
    /// Address at which counters are served to Prometheus, such as `"127.0.0.1:9464"`.
    #[serde(default, deserialize_with = "socket_address")]
    pub(crate) metrics_address: Option<SocketAddr>,
    /// Path of the socket for `rampd status`; by default next to `socket` (`0.status` next to
    /// `0.sock`), at an arbiter none.
    pub(crate) status_socket: Option<PathBuf>,
    /// Maximum time in ms for which a stopping node completes messages in flight.
    #[serde(default = "default_drain_timeout")]
    pub(crate) drain_timeout_ms: f64,
    /// Maximum time in ms for which messages are queued for a receiver that has not responded yet;
    /// at least 0.001.
    #[serde(default = "default_connect_timeout")]
    pub(crate) connect_timeout_ms: f64,
    /// Maximum length in bytes of a sent or received message, at most 1 GiB.
    #[serde(default = "default_message_max_bytes")]
    pub(crate) message_max_bytes: u64,
}

/// The `network` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NetworkTable {
    /// Rate of the slowest host's link in Mbit/s, 0.1 to 1000000; of several networks the sum.
    pub(crate) rate_mbps: f64,
    /// Maximum size in bytes of an IP packet on all links, 576 to 9000.
    #[serde(default = "default_mtu")]
    pub(crate) mtu: usize,
    /// Unloaded round trip in us of a small packet between the hosts farthest apart, hosts
    /// included; 0.1 to 1000000.
    pub(crate) control_rtt_us: f64,
    /// Unloaded round trip in us of a full packet; by default four packet times longer.
    pub(crate) data_rtt_us: Option<f64>,
    /// Time in ms without an answer of its receiver after which a message fails as unreachable; at
    /// least four round trips of a full packet.
    #[serde(default = "default_unreachable_after")]
    pub(crate) unreachable_after_ms: f64,
    /// Protection of datagrams: `"encrypted"`, or `"none"` for checksums only.
    #[serde(default)]
    pub(crate) security: SecurityKey,
    /// Number of source ports over which packets are spread, 1 to 256.
    #[serde(default = "default_spray_ports")]
    pub(crate) spray_ports: usize,
    /// True if packets to one node are passed to the kernel coalesced (GSO); by default with the
    /// datapath udp.
    pub(crate) segmentation_offload: Option<bool>,
}

/// A node, in the list of `peer` tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PeerTable {
    /// Number of the node. At least two hosts are numbered from 0 without gaps, arbiters after
    /// them.
    pub(crate) id: u32,
    /// Address or host name, and port, such as `"10.0.0.1:7321"`, `"[fd00::1]:7321"` or
    /// `"host-b:7321"`. The next port is used too. A list for several networks.
    pub(crate) address: Addresses,
    /// True for an arbiter, its standby or a controller.
    #[serde(default)]
    pub(crate) arbiter: bool,
    /// Public key that `rampd keygen` has printed; required if packets are encrypted. A list while
    /// the node changes its key.
    #[serde(default)]
    pub(crate) public_key: OneOrMore,
}

/// Addresses of a node, one for each network: `10.0.0.1:7321`, `[fd00::1]:7321` or `host-b:7321`.
/// Host names are resolved when the configuration is read. The first IPv4 address is used, or else
/// the first address.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "OneOrMore")]
pub(crate) struct Addresses(pub(crate) Vec<SocketAddr>);

impl TryFrom<OneOrMore> for Addresses {
    type Error = String;

    fn try_from(texts: OneOrMore) -> Result<Self, String> {
        if texts.texts().is_empty() {
            return Err("expected an address or more, got an empty list".to_owned());
        }
        texts.texts().iter().map(|text| look_up(text)).collect::<Result<_, _>>().map(Self)
    }
}

/// Returns the address that a text names.
fn look_up(text: &str) -> Result<SocketAddr, String> {
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        return Err(format!("expected an address or a host name, and a port, got {text:?}"));
    }
    let unknown = |reason: &str| {
        format!("expected an address or a host name that has one, got {text:?}{reason}")
    };
    let found = text.to_socket_addrs().map_err(|error| {
        let error = error.to_string();
        let reason = error.strip_prefix("failed to lookup address information: ");
        unknown(&reason.map_or(String::new(), |reason| format!(" ({reason})")))
    })?;
    let found: Vec<_> = found.collect();
    let first = found.iter().find(|addr| addr.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| unknown(""))
}

/// Reads an address with a port.
fn socket_address<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(value)?;
    text.parse()
        .map(Some)
        .map_err(|_| D::Error::custom(format!("expected an IP address and a port, got {text:?}")))
}

/// A text, or a list of texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(crate) enum OneOrMore {
    /// A single text.
    One(String),
    /// List of texts.
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

impl OneOrMore {
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

/// Protection of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecurityKey {
    /// Encryption with the keys of nodes.
    #[default]
    Encrypted,
    /// Checksums without encryption.
    None,
}

/// The `programs` table: limits of programs at the node's socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ProgramsTable {
    /// Maximum number of attached programs; by default 256.
    pub(crate) attached_max: Option<usize>,
    /// Maximum number of attached programs of one user; by default 64.
    pub(crate) attached_max_per_user: Option<usize>,
    /// Maximum megabytes that all programs share with the node; by default half of the machine's
    /// memory.
    pub(crate) memory_max_mb: Option<u64>,
    /// Maximum megabytes that the programs of one user share with the node; by default a quarter of
    /// the machine's memory.
    pub(crate) memory_max_per_user_mb: Option<u64>,
}

/// A service with restricted access, in the list of `service` tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ServiceTable {
    /// Number of the service.
    pub(crate) id: u16,
    /// Users whose programs may attach to it, by name or number.
    #[serde(default)]
    pub(crate) users: Vec<AccountName>,
    /// Groups whose members and programs may attach to it, by name or number.
    #[serde(default)]
    pub(crate) groups: Vec<AccountName>,
}

/// A user or a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a name, or a number from 0 to 4294967295")]
pub(crate) enum AccountName {
    /// Number of the user or group.
    Number(u32),
    /// Name of the user or group.
    Text(String),
}

/// Source of a node's time.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClockKey {
    /// Time of day: for hosts whose clocks NTP or PTP synchronises.
    #[default]
    TimeOfDay,
    /// Time since the machine started: for nodes on one machine.
    Monotonic,
}

/// Mode in which a node waits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WaitKey {
    /// The node sleeps.
    #[default]
    Block,
    /// The node uses a dedicated core.
    Poll,
}

/// Datapath for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DatapathKey {
    /// The kernel's UDP sockets.
    #[default]
    Udp,
    /// An AF_XDP socket.
    Xdp,
}

fn default_drain_timeout() -> f64 {
    1_000.0
}

fn default_connect_timeout() -> f64 {
    30_000.0
}

fn default_message_max_bytes() -> u64 {
    1_073_741_824
}

fn default_coalesce() -> f64 {
    60.0
}

fn default_busy_poll() -> f64 {
    100.0
}

const _: () = assert!(
    NodeConfig::COALESCING.as_ps() == 60_000_000
        && BusyPoll::BUDGET_MAX.as_ps() == 100_000_000
        && NodeConfig::MESSAGE_MAX == 1_073_741_824,
    "defaults of the file are those of the runtime"
);

/// Ten seconds: far above the pauses of virtual machines and overloaded processors.
fn default_unreachable_after() -> f64 {
    10_000.0
}

fn default_mtu() -> usize {
    1_500
}

fn default_spray_ports() -> usize {
    16
}

impl Config {
    /// Reads a file, without a check of its values; returns its text, too.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML with these keys.
    pub(super) fn read(file: &Path) -> Result<(Self, String), Box<InputError>> {
        let unreadable = |error| unreadable(file, &error);
        let opened = File::open(file).map_err(unreadable)?;
        let mut text = String::new();
        opened.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(bad(file, "size", format!("at most {} MiB", BYTES_MAX >> 20), "more"));
        }
        let config = toml::from_str(&text).map_err(|e| syntax_error(&text, &e).in_file(file))?;
        Ok((config, text))
    }
}
