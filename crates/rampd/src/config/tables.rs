//! The tables of the file, as they are written, with their defaults.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use rampmeter_runtime::{BusyPoll, NodeConfig};
use serde::Deserialize;

use super::ConfigError;

/// The file as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Config {
    /// This node.
    pub(crate) node: NodeTable,
    /// The network.
    pub(crate) network: NetworkTable,
    /// The protocol, with the keys of plans.
    pub(crate) transport: toml::Table,
    /// All nodes, this one included.
    pub(crate) peer: Vec<PeerTable>,
    /// What programs may take.
    #[serde(default)]
    pub(crate) programs: ProgramsTable,
    /// Services that are not for everybody.
    #[serde(default)]
    pub(crate) service: Vec<ServiceTable>,
}

/// The `node` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NodeTable {
    /// Which of the peers this node is.
    pub(crate) id: u32,
    /// Its clock.
    #[serde(default)]
    pub(crate) clock: ClockKey,
    /// How it waits.
    #[serde(default)]
    pub(crate) wait: WaitKey,
    /// How long it stays awake for a packet that is due, where it blocks. By default 60 us where
    /// full packets follow one another faster than that, and not at all elsewhere.
    pub(crate) spin_us: Option<f64>,
    /// While packets arrive in quick succession: how long it waits for more, and answers for others.
    #[serde(default = "default_gather")]
    pub(crate) gather_us: f64,
    /// How long it stays awake after a packet or a submission, where it blocks.
    #[serde(default = "default_busy_poll")]
    pub(crate) busy_poll_us: f64,
    /// What carries packets.
    #[serde(default)]
    pub(crate) datapath: DatapathKey,
    /// The interface that leads to all peers, where the datapath is xdp.
    pub(crate) interface: Option<String>,
    /// The socket at which applications attach.
    pub(crate) socket: Option<PathBuf>,
    /// The file with its private key, which `rampd keygen` writes.
    pub(crate) private_key: Option<PathBuf>,
    /// The file that the keys of its sessions are written to, for those who look at captures.
    pub(crate) key_log: Option<PathBuf>,
    /// The address at which its counters are served to Prometheus.
    pub(crate) metrics: Option<SocketAddr>,
    /// The socket at which `rampd status` asks; by default beside `socket`, at an arbiter nowhere.
    pub(crate) status: Option<PathBuf>,
    /// How long a node that is told to stop goes on with what is under way.
    #[serde(default = "default_grace_ms")]
    pub(crate) grace_ms: f64,
    /// How long messages wait for a receiver that has not been heard yet.
    #[serde(default = "default_patience_ms")]
    pub(crate) patience_ms: f64,
    /// The longest message that it sends or takes.
    #[serde(default = "default_message_max")]
    pub(crate) message_max: u64,
}

/// The `network` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NetworkTable {
    /// Rate of the slowest host's link.
    pub(crate) rate_mbps: f64,
    /// Largest IP packet that all links carry.
    #[serde(default = "default_mtu")]
    pub(crate) mtu: usize,
    /// Unloaded round trip of a small packet between the hosts farthest apart, hosts included.
    pub(crate) control_rtt_us: f64,
    /// The same of a full packet; by default it takes four packet times more.
    pub(crate) data_rtt_us: Option<f64>,
    /// Time without an answer of its receiver after which a message fails as unreachable, at least.
    #[serde(default = "default_unreachable_after")]
    pub(crate) unreachable_after_ms: f64,
    /// How datagrams are protected.
    #[serde(default)]
    pub(crate) security: SecurityKey,
    /// Source ports that packets are spread over.
    #[serde(default = "default_spray")]
    pub(crate) spray: usize,
    /// Whether packets to one node are handed to the kernel joined; by default where it can.
    pub(crate) segment_offload: Option<bool>,
}

/// A node, in the list of `peer` tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PeerTable {
    /// Its number. Hosts are numbered from 0 without gaps, arbiters after them.
    pub(crate) id: u32,
    /// Its address or host name, and port; the next port is used too. Several where it is on several
    /// networks: the first of all peers are on one network, the second on another, and so on.
    pub(crate) address: Addresses,
    /// Whether it is an arbiter.
    #[serde(default)]
    pub(crate) arbiter: bool,
    /// Its public key; several while it changes its key.
    #[serde(default)]
    pub(crate) public_key: OneOrMore,
}

/// Where a node is: `10.0.0.1:7321`, `[fd00::1]:7321` or `host-b:7321`, one for each network. Host names
/// are looked up when the configuration is read; the first IPv4 address is taken, or else the first.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "OneOrMore")]
pub(crate) struct Addresses(pub(crate) Vec<SocketAddr>);

impl TryFrom<OneOrMore> for Addresses {
    type Error = String;

    fn try_from(texts: OneOrMore) -> Result<Self, String> {
        if texts.texts().is_empty() {
            return Err("expected an address or more, got an empty list".to_owned());
        }
        texts.texts().iter().map(|text| looked_up(text)).collect::<Result<_, _>>().map(Self)
    }
}

fn looked_up(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address or a host name, and a port";
    let found =
        text.to_socket_addrs().map_err(|error| format!("{expected}, got {text:?}: {error}"))?;
    let found: Vec<_> = found.collect();
    let first = found.iter().find(|addr| addr.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| format!("{expected}, got {text:?}"))
}

/// A text, or a list of texts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(crate) enum OneOrMore {
    /// One.
    One(String),
    /// A list.
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

/// How datagrams are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecurityKey {
    /// With the keys of nodes.
    #[default]
    Encrypted,
    /// With a checksum.
    None,
}

/// The `programs` table: limits of what attaches to the node's socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ProgramsTable {
    /// Programs that may be attached at the same time.
    pub(crate) attached_max: Option<usize>,
    /// Programs of one user that may be attached at the same time.
    pub(crate) attached_per_user: Option<usize>,
    /// Megabytes that all programs may share with the node; by default half of the machine's memory.
    pub(crate) memory_max_mb: Option<u64>,
    /// Megabytes that the programs of one user may share with the node; by default a quarter of it.
    pub(crate) memory_per_user_mb: Option<u64>,
}

/// A service that is not for everybody, in the list of `service` tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ServiceTable {
    /// Its number.
    pub(crate) id: u16,
    /// Users whose programs may attach as it, by name or number.
    #[serde(default)]
    pub(crate) users: Vec<Name>,
    /// Groups whose programs may attach as it, by name or number.
    #[serde(default)]
    pub(crate) groups: Vec<Name>,
}

/// A user or a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Name {
    /// Its number.
    Number(u32),
    /// Its name.
    Text(String),
}

/// Where a node's time comes from.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClockKey {
    /// The time of day: for hosts with clocks that NTP or PTP keeps together.
    #[default]
    TimeOfDay,
    /// Since the machine started: for nodes on one machine.
    Monotonic,
}

/// How a node waits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WaitKey {
    /// It sleeps.
    #[default]
    Block,
    /// It uses a core of its own.
    Poll,
}

/// What carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DatapathKey {
    /// The kernel's UDP sockets.
    #[default]
    Udp,
    /// An AF_XDP socket.
    Xdp,
}

fn default_grace_ms() -> f64 {
    1_000.0
}

fn default_patience_ms() -> f64 {
    30_000.0
}

fn default_message_max() -> u64 {
    NodeConfig::MESSAGE_MAX.into()
}

fn default_gather() -> f64 {
    NodeConfig::GATHER.as_ps() as f64 * 1e-6
}

fn default_busy_poll() -> f64 {
    BusyPoll::MOST.as_ps() as f64 * 1e-6
}

/// Ten seconds: far above what virtual machines and starved processors pause.
fn default_unreachable_after() -> f64 {
    10_000.0
}

fn default_mtu() -> usize {
    1_500
}

fn default_spray() -> usize {
    16
}

impl Config {
    /// Reads a file, without a check of its values.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML with these keys.
    pub(super) fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(file)
            .map_err(|source| ConfigError::Read { file: file.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| ConfigError::Syntax {
            file: file.to_owned(),
            message: syntax_message(&text, &error),
        })
    }
}

/// One line: where, and what is wrong there.
fn syntax_message(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    match error.span() {
        None => message,
        Some(span) => {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
            format!("line {line}, column {column}: {message}")
        }
    }
}
