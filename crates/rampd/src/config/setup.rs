//! A checked configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rampmeter_ring::{AcceptorConfig, Access};
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::{ClockSource, PublicKey, WaitMode};
use rampmeter_types::{Bytes, FabricFacts, NodeId, Span};

use crate::error::InputError;
use crate::host::HostTransport;

/// A checked configuration, with derived values.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The node, without its incarnation.
    pub(crate) id: NodeId,
    /// True if the node is an arbiter.
    pub(crate) is_arbiter: bool,
    /// Facts about the network.
    pub(crate) facts: FabricFacts,
    /// The transport and its parameters.
    pub(crate) transport: HostTransport,
    /// Sockets and addresses on the first network.
    pub(crate) udp: UdpConfig,
    /// Addresses on each further network.
    pub(crate) more_rails: Vec<RailAddresses>,
    /// The interface of an AF_XDP socket; `None` for the kernel's UDP.
    pub(crate) interface: Option<String>,
    /// Clock of the node.
    pub(crate) clock: ClockSource,
    /// Mode in which it waits.
    pub(crate) wait: WaitMode,
    /// `node.pacing-spin-us` as written; without it the value follows from the rate.
    pub(crate) spin_us: Option<f64>,
    /// Time for which it waits for more packets under load.
    pub(crate) coalescing: Span,
    /// Time for which it polls after a packet or a submission.
    pub(crate) busy_poll: Span,
    /// Configuration of the acceptor for applications; `None` if there is none.
    pub(crate) acceptor: Option<AcceptorConfig>,
    /// Rights of users, which change while the node runs.
    pub(crate) access: Access,
    /// Address at which counters are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// Path of the status socket.
    pub(crate) status: Option<PathBuf>,
    /// Time for which it continues after a request to stop.
    pub(crate) drain_timeout: Span,
    /// Time for which messages wait for unresponsive receivers.
    pub(crate) connect_timeout: Span,
    /// Maximum length of a message in bytes.
    pub(crate) message_max: u32,
    /// Payload of a full packet.
    pub(crate) payload: Bytes,
    /// Keys; `None` if datagrams have only a checksum.
    pub(crate) keys: Option<Keys>,
    /// File that it was read from.
    pub(crate) file: PathBuf,
    /// Function that reads it again.
    pub(crate) reread: fn(&Path) -> Result<Setup, Box<InputError>>,
}

/// Addresses on a further network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RailAddresses {
    /// Address of this node.
    pub(crate) local: SocketAddr,
    /// Addresses of all nodes, by number.
    pub(crate) peers: Vec<Option<SocketAddr>>,
}

/// Keys of a network, from one node's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    /// File with the node's private key.
    pub(crate) private_file: PathBuf,
    /// Public keys by node.
    pub(crate) public: Vec<Vec<PublicKey>>,
    /// File to which session keys are written.
    pub(crate) log: Option<PathBuf>,
}
