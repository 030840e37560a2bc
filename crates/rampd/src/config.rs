//! The configuration file of a node: TOML, with defaults; unknown keys are refused.

use std::fs::{self, File, OpenOptions};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, User};
use rampmeter_core::envelope::{HostPacket, IPV4_UDP, IPV6_UDP, Protection};
use rampmeter_core::{Bytes, FabricFacts, NodeId, Rate, Span};
use rampmeter_proto::Catalogue;
use rampmeter_ring::{Allowed, DoorConfig, Limits, Services};
use rampmeter_runtime::datapath::RAILS_MAX;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::{
    Agreement, BusyPoll, ClockSource, NodeConfig, PrivateKey, PublicKey, Setting, Wait,
};
use serde::Deserialize;
use thiserror::Error;

use crate::host::HostTransport;

/// Why a configuration is no use: where, what was expected, what came.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of the wrong type.
    #[error("{}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line, column and what is wrong there.
        message: String,
    },
    /// A value is impossible.
    #[error("{}: {key}: expected {expected}, got {got}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The path to the key.
        key: String,
        /// What was expected.
        expected: String,
        /// What came.
        got: String,
    },
}

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
    fn texts(&self) -> &[String] {
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

fn default_mtu() -> usize {
    1_500
}

fn default_spray() -> usize {
    16
}

/// A configuration that has been checked, and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The node, without its incarnation.
    pub(crate) id: NodeId,
    /// Whether it is an arbiter.
    pub(crate) is_arbiter: bool,
    /// How many hosts there are.
    pub(crate) facts: FabricFacts,
    /// The transport and its parameters.
    pub(crate) transport: HostTransport,
    /// Sockets and addresses on the first network.
    pub(crate) udp: UdpConfig,
    /// Addresses on each further network.
    pub(crate) more_rails: Vec<RailAddresses>,
    /// The interface of an AF_XDP socket; `None` for the kernel's UDP.
    pub(crate) interface: Option<String>,
    /// Its clock.
    pub(crate) clock: ClockSource,
    /// How it waits.
    pub(crate) wait: Wait,
    /// How long it waits for more packets where many arrive.
    pub(crate) gather: Span,
    /// How long it stays awake after a packet or a submission.
    pub(crate) busy_poll: Span,
    /// Where applications attach, and who may.
    pub(crate) door: Option<DoorConfig>,
    /// Where counters are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// Where `rampd status` asks.
    pub(crate) status: Option<PathBuf>,
    /// How long it goes on when told to stop.
    pub(crate) grace: Span,
    /// How long messages wait for silent receivers.
    pub(crate) patience: Span,
    /// The longest message.
    pub(crate) message_max: u32,
    /// Payload of a full packet.
    pub(crate) payload: Bytes,
    /// The keys; `None` where datagrams have a checksum only.
    pub(crate) keys: Option<Keys>,
    /// The file that it was read from.
    pub(crate) file: PathBuf,
    /// Reads it again.
    pub(crate) reread: fn(&Path) -> Result<Setup, ConfigError>,
}

/// Addresses on a further network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RailAddresses {
    /// The node's own.
    pub(crate) local: SocketAddr,
    /// Those of all nodes, by number.
    pub(crate) peers: Vec<Option<SocketAddr>>,
}

/// The keys of a network, as a node knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// The file with the node's private key.
    pub(crate) private_file: PathBuf,
    /// Public keys by node.
    pub(crate) public: Vec<Vec<PublicKey>>,
    /// The file that the keys of sessions are written to.
    pub(crate) log: Option<PathBuf>,
}

impl Keys {
    /// The node's private key.
    ///
    /// # Errors
    /// The file cannot be read, others can read it too, it holds no key, or one that is not of this
    /// node.
    pub(crate) fn private(&self, node: NodeId) -> Result<PrivateKey, ConfigError> {
        let file = &self.private_file;
        let unreadable = |source| ConfigError::Read { file: file.clone(), source };
        let bad = |key: &str, expected: &str, got: String| ConfigError::Value {
            file: file.clone(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            got,
        };
        let about = fs::metadata(file).map_err(unreadable)?;
        let mode = about.mode() & 0o777;
        // A service manager hands keys over in files of the group root.
        let of_others = if about.gid() == 0 { 0o027 } else { 0o077 };
        if mode & of_others != 0 {
            let expected = "a private key that its owner alone can read (0600)";
            return Err(bad("mode", expected, format!("{mode:04o}")));
        }
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let key: PrivateKey = text.parse().map_err(|_| {
            let got = format!("{} characters", text.trim().len());
            bad("private key", "32 bytes in base64 (44 characters)", got)
        })?;
        let own = &self.public[node.idx()];
        if !own.contains(&key.public()) {
            let expected = format!("that of the public-key of peer {}, {}", node.get(), own[0]);
            let got = format!("that of {}", key.public());
            return Err(bad("private key", &expected, got));
        }
        Ok(key)
    }

    /// Opens the file that the keys of sessions are written to, if there is to be one: after what it has,
    /// readable for its owner alone.
    ///
    /// # Errors
    /// It cannot be written, or others can read it.
    pub(crate) fn open_log(&self) -> Result<Option<File>, ConfigError> {
        let Some(path) = &self.log else { return Ok(None) };
        let unreadable = |source| ConfigError::Read { file: path.clone(), source };
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(0o600).open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(ConfigError::Value {
                file: path.clone(),
                key: "mode".to_owned(),
                expected: "a log of keys that its owner alone can read (0600)".to_owned(),
                got: format!("{mode:04o}"),
            });
        }
        Ok(Some(file))
    }
}

impl Setup {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn load<C: Catalogue>(file: &Path) -> Result<Self, ConfigError> {
        Check { file }.setup::<C>(Config::read(file)?)
    }

    /// Sockets and addresses on each network.
    pub(crate) fn rails(&self) -> impl Iterator<Item = UdpConfig> {
        let more = self.more_rails.iter().map(|RailAddresses { local, peers }| UdpConfig {
            local: *local,
            peers: peers.clone(),
            ..self.udp.clone()
        });
        std::iter::once(self.udp.clone()).chain(more)
    }

    /// The addresses of a node on all networks, as the configuration lists them.
    pub(crate) fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        let peers = std::iter::once(&self.udp.peers);
        let peers = peers.chain(self.more_rails.iter().map(|rail| &rail.peers));
        peers.filter_map(|peers| peers.get(node.idx()).copied().flatten()).collect()
    }

    /// The keys in which a running node with this configuration cannot take another without a restart.
    pub(crate) fn fixed(&self, other: &Self) -> Vec<&'static str> {
        let n_arbiters = |setup: &Self| setup.transport.arbiters;
        let name = |setup: &Self| setup.transport.written.name.clone();
        let udp = |setup: &Self| {
            let UdpConfig { mtu, spray, segment_offload, .. } = setup.udp;
            (mtu, spray, segment_offload)
        };
        // Arbiters have the numbers after those of hosts.
        let hosts_change = self.facts.n_hosts != other.facts.n_hosts && n_arbiters(self) > 0;
        let key_log = |setup: &Self| setup.keys.as_ref().and_then(|keys| keys.log.clone());
        let path = |setup: &Self| setup.door.as_ref().map(|door| door.path.clone());
        [
            ("node.id", self.id != other.id || self.is_arbiter != other.is_arbiter),
            ("node.socket", path(self) != path(other)),
            ("node.status", self.status != other.status),
            ("node.metrics", self.metrics != other.metrics),
            ("node.clock", self.clock != other.clock),
            // How long a node spins follows from the rate.
            ("node.wait", (self.wait == Wait::Poll) != (other.wait == Wait::Poll)),
            ("node.datapath", self.interface != other.interface),
            ("node.message-max", self.message_max != other.message_max),
            ("network.mtu, spray or segment-offload", udp(self) != udp(other)),
            ("network.security", self.keys.is_some() != other.keys.is_some()),
            ("node.key-log", key_log(self) != key_log(other)),
            ("transport.name", name(self) != name(other)),
            ("the number of addresses of a peer", self.more_rails.len() != other.more_rails.len()),
            ("peer.address of this node", self.addresses(self.id) != other.addresses(self.id)),
            ("the number of hosts of a transport with arbiters", hosts_change),
        ]
        .into_iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
        .collect()
    }

    /// A text for each setting that all nodes must have alike.
    pub(crate) fn agreement(&self) -> Agreement {
        let facts = &self.facts;
        Agreement::new(|setting| match setting {
            Setting::Mtu => self.udp.mtu.to_string(),
            Setting::Rate => facts.access_rate.as_bps().to_string(),
            Setting::ControlRtt => facts.control_rtt.as_ps().to_string(),
            Setting::DataRtt => facts.data_rtt.as_ps().to_string(),
            Setting::Transport => format!("{:?}", self.transport.derived),
            Setting::Clock => format!("{:?}", self.clock),
            // Nodes with one network tell what they always told.
            Setting::Peers if self.more_rails.is_empty() => format!("{:?}", self.udp.peers),
            Setting::Peers => {
                let more: Vec<_> = self.more_rails.iter().map(|rail| &rail.peers).collect();
                format!("{:?} {more:?}", self.udp.peers)
            }
        })
    }

    /// The AF_XDP socket on an interface.
    #[cfg(feature = "xdp")]
    pub(crate) fn xdp(&self, interface: &str) -> rampmeter_runtime::datapath::xdp::XdpConfig {
        let v4 = |address: SocketAddr| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        };
        let local = v4(self.udp.local).expect("addresses have been checked to be IPv4");
        let peers = self.udp.peers.iter().map(|peer| peer.and_then(v4)).collect();
        rampmeter_runtime::datapath::xdp::XdpConfig {
            mtu: self.udp.mtu,
            spray: self.udp.spray as u16,
            ..rampmeter_runtime::datapath::xdp::XdpConfig::new(interface, local, peers)
        }
    }
}

impl Config {
    /// Reads a file, without a check of its values.
    ///
    /// # Errors
    /// It cannot be read, or is not TOML with these keys.
    fn read(file: &Path) -> Result<Self, ConfigError> {
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

/// The largest packet that a frame of AF_XDP memory holds.
const XDP_MTU_MAX: usize = 3_826;

/// The longest path of a Unix socket on Linux (unix(7): 108 bytes with the zero at its end).
const SOCKET_PATH_MAX: usize = 107;

struct Check<'a> {
    file: &'a Path,
}

impl Check<'_> {
    fn bad(&self, key: &str, expected: &str, got: impl ToString) -> ConfigError {
        ConfigError::Value {
            file: self.file.to_owned(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            got: got.to_string(),
        }
    }

    fn range(&self, key: &str, value: f64, least: f64, most: f64) -> Result<f64, ConfigError> {
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.bad(key, &format!("a number from {least} to {most}"), value))
    }

    fn micros(&self, key: &str, us: f64, least: f64) -> Result<Span, ConfigError> {
        let us = self.range(key, us, least, 1e11)?;
        Ok(Span::from_ps((us * 1e6).round() as u64))
    }

    fn setup<C: Catalogue>(&self, config: Config) -> Result<Setup, ConfigError> {
        let Config { node, network, transport, peer, programs, service } = config;
        let mut rails = self.peers(&peer)?.into_iter();
        let peers = rails.next().unwrap_or_default();
        let me = peer.iter().find(|p| p.id == node.id);
        let me = me.ok_or_else(|| self.bad("node.id", "the id of one of the peers", node.id))?;
        let Addresses(locals) = &me.address;
        let local = locals[0];
        let more_rails = locals[1..].iter().zip(rails);
        let more_rails =
            more_rails.map(|(&local, peers)| RailAddresses { local, peers }).collect::<Vec<_>>();
        let ip_udp = if local.is_ipv4() { IPV4_UDP } else { IPV6_UDP };
        let mtu = network.mtu;
        self.range("network.mtu", mtu as f64, 576.0, 9_000.0)?;
        self.range("network.spray", network.spray as f64, 1.0, 256.0)?;
        let segment_offload = self.segment_offload(&node, &network)?;
        let keys = self.keys(&node, network.security, &peer)?;
        let protection = if keys.is_some() { Protection::Sealed } else { Protection::Checksum };
        let HostPacket { payload, header } = HostPacket::new(mtu, ip_udp, protection);
        let (payload, header) = (Bytes::new(payload as u64), Bytes::new(header as u64));
        let rate = self.range("network.rate-mbps", network.rate_mbps, 0.1, 1e6)? * 1e6;
        let access_rate = Rate::from_bps(rate as u64)
            .ok_or_else(|| self.bad("network.rate-mbps", "more than 0", network.rate_mbps))?;
        let packet = access_rate.tx_time(payload + header);
        let control_rtt = self.micros("network.control-rtt-us", network.control_rtt_us, 0.1)?;
        let data_rtt = match network.data_rtt_us {
            None => control_rtt + packet * 4,
            Some(us) => self.micros("network.data-rtt-us", us, network.control_rtt_us)?,
        };
        let n_hosts = peer.iter().filter(|p| !p.arbiter).count() as u32;
        let facts = FabricFacts { n_hosts, access_rate, data_rtt, control_rtt, n_pods: 0 };
        let transport = HostTransport::read::<C>(&transport, &facts, payload, header)
            .map_err(|e| self.bad(&format!("transport.{}", e.key), &e.expected, e.got))?;
        self.arbiters(transport.arbiters, peer.len() as u32 - n_hosts)?;
        let wait = match (node.wait, node.spin_us) {
            (WaitKey::Poll, _) => Wait::Poll,
            (WaitKey::Block, Some(us)) => {
                Wait::Block { spin: self.micros("node.spin-us", us, 0.0)? }
            }
            (WaitKey::Block, None) => {
                let late = Span::from_us(60);
                Wait::Block { spin: if packet < late { late } else { Span::ZERO } }
            }
        };
        let interface = self.interface(&node, locals, mtu)?;
        let message_max = self.range(
            "node.message-max",
            node.message_max as f64,
            1.0,
            NodeConfig::MESSAGE_MAX.into(),
        )? as u32;
        let (limits, services) = (self.limits(&programs)?, self.services(&service)?);
        if let Some(path) = node.socket.as_ref().filter(|p| p.as_os_str().len() > SOCKET_PATH_MAX) {
            let expected = format!("a path of at most {SOCKET_PATH_MAX} bytes");
            return Err(self.bad("node.socket", &expected, path.display()));
        }
        // An arbiter has no use for `socket`, and may share a file with a host of its machine.
        let socket = node.socket.as_ref().filter(|_| !me.arbiter);
        let beside = || socket.map(|path| path.with_extension("status"));
        let status = node.status.clone().or_else(beside);
        self.without_socket(node.socket.is_some() && !me.arbiter, &programs, &service)?;
        let door = node.socket.map(|path| DoorConfig { path, limits, services });
        Ok(Setup {
            id: NodeId::new(node.id),
            is_arbiter: me.arbiter,
            facts,
            transport,
            udp: UdpConfig {
                mtu,
                spray: network.spray,
                segment_offload,
                ..UdpConfig::new(local, peers)
            },
            more_rails,
            interface,
            clock: match node.clock {
                ClockKey::TimeOfDay => ClockSource::TimeOfDay,
                ClockKey::Monotonic => ClockSource::Monotonic,
            },
            wait,
            gather: self.micros("node.gather-us", node.gather_us, 0.0)?,
            busy_poll: self.micros("node.busy-poll-us", node.busy_poll_us, 0.0)?,
            door,
            metrics: node.metrics,
            status,
            grace: self.micros("node.grace-ms", node.grace_ms * 1e3, 0.0)?,
            patience: self.micros("node.patience-ms", node.patience_ms * 1e3, 1.0)?,
            message_max,
            payload,
            keys,
            file: self.file.to_owned(),
            reread: Setup::load::<C>,
        })
    }

    /// Tables about programs are for nodes that have some.
    fn without_socket(
        &self,
        has_programs: bool,
        programs: &ProgramsTable,
        services: &[ServiceTable],
    ) -> Result<(), ConfigError> {
        let key = match (programs == &ProgramsTable::default(), services) {
            _ if has_programs => return Ok(()),
            (true, []) => return Ok(()),
            (false, _) => "programs",
            (true, _) => "service",
        };
        Err(self.bad(key, "none at an arbiter, or without node.socket", "one"))
    }

    /// The keys, if there are to be any.
    fn keys(
        &self,
        node: &NodeTable,
        security: SecurityKey,
        peers: &[PeerTable],
    ) -> Result<Option<Keys>, ConfigError> {
        let public_key = |idx: usize| format!("peer[{idx}].public-key");
        if security == SecurityKey::None {
            let unused = "network.security = \"encrypted\" beside it";
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
        // Beside the configuration, where the path is not a whole one.
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
                if public.iter().flatten().any(|other| *other == key) {
                    return Err(self.bad(&public_key(idx), "a key that no other peer has", text));
                }
                public[peer.id as usize].push(key);
            }
        }
        let log = node.key_log.as_ref().map(|file| folder.join(file));
        Ok(Some(Keys { private_file: folder.join(file), public, log }))
    }

    /// What programs may take.
    fn limits(&self, programs: &ProgramsTable) -> Result<Limits, ConfigError> {
        let usual = Limits::default();
        let count = |key: &str, value: Option<usize>, usual| match value {
            Some(0) => Err(self.bad(&format!("programs.{key}"), "1 or more", 0)),
            value => Ok(value.unwrap_or(usual)),
        };
        let bytes = |key: &str, value: Option<u64>, usual: u64| match value {
            Some(0) => Err(self.bad(&format!("programs.{key}"), "1 or more", 0)),
            value => Ok(value.map_or(usual, |mb| mb.saturating_mul(1_000_000))),
        };
        Ok(Limits {
            clients_max: count("attached-max", programs.attached_max, usual.clients_max)?,
            clients_per_user: count(
                "attached-per-user",
                programs.attached_per_user,
                usual.clients_per_user,
            )?,
            memory_max: bytes("memory-max-mb", programs.memory_max_mb, usual.memory_max)?,
            memory_per_user: bytes(
                "memory-per-user-mb",
                programs.memory_per_user_mb,
                usual.memory_per_user,
            )?,
            ..usual
        })
    }

    /// Who may attach as which service.
    fn services(&self, tables: &[ServiceTable]) -> Result<Services, ConfigError> {
        let mut services = Services::default();
        for (idx, table) in tables.iter().enumerate() {
            let key = |name: &str| format!("service[{idx}].{name}");
            let mut allowed = Allowed::default();
            for user in &table.users {
                let uid = match user {
                    Name::Number(uid) => *uid,
                    Name::Text(name) => match User::from_name(name) {
                        Ok(Some(user)) => user.uid.as_raw(),
                        _ => return Err(self.bad(&key("users"), "users of this machine", name)),
                    },
                };
                allowed.users.insert(uid);
            }
            for group in &table.groups {
                let found = match group {
                    Name::Number(gid) => Group::from_gid(Gid::from_raw(*gid)),
                    Name::Text(name) => Group::from_name(name),
                };
                match (found, group) {
                    (Ok(Some(group)), _) => {
                        allowed.groups.insert(group.gid.as_raw());
                        // Programs connect with their first group; members may have this as another.
                        let members = group.mem.iter().filter_map(|m| User::from_name(m).ok()?);
                        allowed.users.extend(members.map(|user| user.uid.as_raw()));
                    }
                    (_, Name::Number(gid)) => drop(allowed.groups.insert(*gid)),
                    (_, Name::Text(name)) => {
                        return Err(self.bad(&key("groups"), "groups of this machine", name));
                    }
                }
            }
            if services.0.insert(table.id, allowed).is_some() {
                return Err(self.bad(&key("id"), "a service that no other table has", table.id));
            }
        }
        Ok(services)
    }

    /// Only the kernel takes joined packets.
    fn segment_offload(
        &self,
        node: &NodeTable,
        network: &NetworkTable,
    ) -> Result<bool, ConfigError> {
        match (network.segment_offload, node.datapath) {
            (Some(true), DatapathKey::Xdp) => {
                Err(self.bad("node.datapath", "udp, where segment-offload = true", "xdp"))
            }
            (is_written, datapath) => Ok(is_written.unwrap_or(datapath == DatapathKey::Udp)),
        }
    }

    /// The interface of the AF_XDP socket, if there is to be one.
    fn interface(
        &self,
        node: &NodeTable,
        addresses: &[SocketAddr],
        mtu: usize,
    ) -> Result<Option<String>, ConfigError> {
        match (node.datapath, &node.interface) {
            (DatapathKey::Udp, None) => Ok(None),
            (DatapathKey::Udp, Some(name)) => {
                Err(self.bad("node.interface", "datapath = \"xdp\" beside it", name))
            }
            (DatapathKey::Xdp, None) => {
                Err(self.bad("node.interface", "the interface that leads to all peers", "none"))
            }
            (DatapathKey::Xdp, Some(_)) if addresses.len() > 1 => {
                Err(self.bad("node.datapath", "udp, where peers have several addresses", "xdp"))
            }
            (DatapathKey::Xdp, Some(_)) if !addresses[0].is_ipv4() => {
                Err(self.bad("node.datapath", "udp, where addresses are IPv6", "xdp"))
            }
            (DatapathKey::Xdp, Some(_)) if mtu > XDP_MTU_MAX => {
                let expected = format!("at most {XDP_MTU_MAX}, where the datapath is xdp");
                Err(self.bad("network.mtu", &expected, mtu))
            }
            (DatapathKey::Xdp, Some(name)) => Ok(Some(name.clone())),
        }
    }

    /// Addresses by network and number: ids without gaps or repetitions, hosts first, as many addresses
    /// of each peer, one family, ports to spare.
    fn peers(&self, peers: &[PeerTable]) -> Result<Vec<Vec<Option<SocketAddr>>>, ConfigError> {
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
                    return Err(self.bad(&key("id"), "an id of its own", peer.id));
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

    /// An address must be of the family of the `first`, of one host, and have two ports that none of
    /// `others` has.
    fn address(
        &self,
        key: &str,
        address: SocketAddr,
        first: SocketAddr,
        mut others: impl Iterator<Item = (u32, SocketAddr)>,
    ) -> Result<(), ConfigError> {
        if address.is_ipv4() != first.is_ipv4() {
            return Err(self.bad(key, "all IPv4 or all IPv6", address));
        }
        if address.port() == u16::MAX || address.port() == 0 {
            return Err(self.bad(key, "a port from 1 to 65534", address));
        }
        if address.ip().is_unspecified() {
            return Err(self.bad(key, "the address of one host", address));
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

    fn arbiters(&self, wanted: u32, n: u32) -> Result<(), ConfigError> {
        if n == wanted {
            return Ok(());
        }
        let expected = format!("{wanted} with arbiter = true, as the transport has");
        Err(self.bad("peer", &expected, n))
    }
}
