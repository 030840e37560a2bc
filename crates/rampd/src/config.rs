//! The configuration file of a node: TOML, with defaults; unknown keys are refused.

mod check;
mod tables;

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rampmeter_core::{Bytes, FabricFacts, NodeId, Span};
use rampmeter_proto::Catalogue;
use rampmeter_ring::DoorConfig;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::{Agreement, ClockSource, PrivateKey, PublicKey, Setting, Wait};
use thiserror::Error;

use self::check::Check;
use self::tables::Config;
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
