//! Configuration file of a node: TOML, with defaults; unknown keys are refused.

mod check;
mod place;
mod setup;
mod tables;

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rampmeter_proto::Catalogue;
use rampmeter_runtime::datapath::udp::UdpConfig;
use rampmeter_runtime::{PrivateKey, Setting, SettingDigests, WaitMode};
use rampmeter_types::NodeId;
use rustix::fs::OFlags;

use self::check::Check;
use self::place::{bad, line_of, unreadable};
pub(crate) use self::setup::{Keys, RailAddresses, Setup};
use self::tables::Config;
use crate::error::{InputError, InputErrorCode};

impl Keys {
    /// Reads the node's private key.
    ///
    /// # Errors
    /// The file cannot be read, other users can read it, or it contains no key or that of another
    /// node.
    pub(crate) fn private(&self, node: NodeId) -> Result<PrivateKey, Box<InputError>> {
        let file = &self.private_file;
        let unreadable = |error| unreadable(file, &error);
        let bad = |key: &str, expected: &str, got: String| bad(file, key, expected, got);
        // Checked after it is open, so that it cannot be exchanged meanwhile. Does not block on a
        // pipe.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
        let mut opened = opened.map_err(unreadable)?;
        let about = opened.metadata().map_err(unreadable)?;
        if let Some((key, expected, got)) = unsafe_file(&about, "a private key") {
            return Err(bad(key, &expected, got));
        }
        let mut text = String::new();
        opened.read_to_string(&mut text).map_err(unreadable)?;
        let key = parse_private_key(&text)
            .map_err(|error| error.in_file(file).with_code(InputErrorCode::Value))?;
        let own = &self.public[node.idx()];
        if !own.contains(&key.public()) {
            let expected = format!("that of the public-key of peer {}, {}", node.get(), own[0]);
            let got = format!("that of {}", key.public());
            return Err(bad("private key", &expected, got));
        }
        Ok(key)
    }

    /// Opens the file to which session keys are appended, if there is one. Only its owner may read
    /// it.
    ///
    /// # Errors
    /// It cannot be written, or other users can read it.
    pub(crate) fn open_log(&self) -> Result<Option<File>, Box<InputError>> {
        let Some(path) = &self.log else { return Ok(None) };
        let unreadable = |error| unreadable(path, &error);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = OpenOptions::new();
        options.append(true).read(true).create(true).mode(0o600).custom_flags(flags);
        let bad = |key: &str, expected: &str, got: String| bad(path, key, expected, got);
        let mut file = options.open(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => bad("type", "a key log that is a file", "a link".to_owned()),
            _ => InputError::unwritable(&error).in_file(path).with_code(InputErrorCode::File),
        })?;
        let about = file.metadata().map_err(unreadable)?;
        if let Some((key, expected, got)) = unsafe_file(&about, "a key log") {
            return Err(bad(key, &expected, got));
        }
        if about.nlink() != 1 {
            let got = format!("{} links", about.nlink());
            return Err(bad("links", "a key log with one link", got));
        }
        // Other files, such as private keys, are rejected.
        let mut start = Vec::new();
        file.by_ref().take(KEY_LINE.len() as u64).read_to_end(&mut start).map_err(unreadable)?;
        if !start.is_empty() && start != KEY_LINE {
            let expected = "an empty file, or a key log";
            return Err(bad("contents", expected, "another file".to_owned()));
        }
        Ok(Some(file))
    }
}

impl Setup {
    /// Returns the node's own addresses as text.
    pub(crate) fn own_addresses(&self) -> String {
        let own = self.addresses(self.id);
        own.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// The fault and its place.
    pub(crate) fn load<C: Catalogue>(file: &Path) -> Result<Self, Box<InputError>> {
        let (config, text) = Config::read(file)?;
        Check { file }.setup::<C>(config).map_err(|mut error| {
            error.line = line_of(&text, &error.key);
            error
        })
    }

    /// Iterates over sockets and addresses on each network.
    pub(crate) fn rails(&self) -> impl Iterator<Item = UdpConfig> {
        let more = self.more_rails.iter().map(|RailAddresses { local, peers }| UdpConfig {
            local: *local,
            peers: peers.clone(),
            ..self.udp.clone()
        });
        std::iter::once(self.udp.clone()).chain(more)
    }

    /// Returns the addresses of a node on all networks, as the configuration lists them.
    pub(crate) fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        let peers = std::iter::once(&self.udp.peers);
        let peers = peers.chain(self.more_rails.iter().map(|rail| &rail.peers));
        peers.filter_map(|peers| peers.get(node.idx()).copied().flatten()).collect()
    }

    /// Returns the address of counters and status if other hosts can reach it.
    pub(crate) fn open_metrics(&self) -> Option<SocketAddr> {
        self.metrics.filter(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Returns the keys of `other` that a running node with this configuration cannot change
    /// without a restart.
    pub(crate) fn keys_for_restart(&self, other: &Self) -> Vec<&'static str> {
        let n_arbiters = |setup: &Self| setup.transport.arbiters;
        let name = |setup: &Self| setup.transport.table.name.clone();
        let udp = |setup: &Self| {
            let UdpConfig { mtu, spray, segment_offload, .. } = setup.udp;
            (mtu, spray, segment_offload)
        };
        // Arbiters have the numbers after those of hosts.
        let hosts_change = self.facts.n_hosts != other.facts.n_hosts && n_arbiters(self) > 0;
        let key_log = |setup: &Self| setup.keys.as_ref().and_then(|keys| keys.log.clone());
        let path = |setup: &Self| setup.acceptor.as_ref().map(|acceptor| acceptor.path.clone());
        [
            ("node.id", self.id != other.id || self.is_arbiter != other.is_arbiter),
            ("node.socket", path(self) != path(other)),
            ("node.status-socket", self.status != other.status),
            ("node.metrics-address", self.metrics != other.metrics),
            ("node.clock", self.clock != other.clock),
            ("node.wait-mode", (self.wait == WaitMode::Poll) != (other.wait == WaitMode::Poll)),
            ("node.pacing-spin-us", self.spin_us != other.spin_us),
            ("node.drain-timeout-ms", self.drain_timeout != other.drain_timeout),
            ("node.datapath", self.interface != other.interface),
            ("node.message-max-bytes", self.message_max != other.message_max),
            ("network.mtu, spray-ports or segmentation-offload", udp(self) != udp(other)),
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

    /// Returns digests of the settings that must be equal at all nodes.
    pub(crate) fn agreement(&self) -> SettingDigests {
        let facts = &self.facts;
        SettingDigests::new(|setting| match setting {
            Setting::Mtu => self.udp.mtu.to_string(),
            Setting::Rate => facts.access_rate.as_bps().to_string(),
            Setting::ControlRtt => facts.control_rtt.as_ps().to_string(),
            Setting::DataRtt => facts.data_rtt.as_ps().to_string(),
            Setting::Transport => format!("{:?}", self.transport.derived),
            Setting::Clock => format!("{:?}", self.clock),
            // Nodes with one network report the same text as earlier versions.
            Setting::Peers if self.more_rails.is_empty() => format!("{:?}", self.udp.peers),
            Setting::Peers => {
                let more: Vec<_> = self.more_rails.iter().map(|rail| &rail.peers).collect();
                format!("{:?} {more:?}", self.udp.peers)
            }
        })
    }

    /// Returns the configuration of the AF_XDP socket on an interface.
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

/// Parses the text of a file with a private key.
///
/// # Errors
/// The text is no key; it is not in the error.
pub(crate) fn parse_private_key(text: &str) -> Result<PrivateKey, Box<InputError>> {
    text.parse().map_err(|_| {
        let got = format!("{} characters", text.trim().chars().count());
        InputError::unexpected("32 bytes in base64 (44 characters)", got).at("private key")
    })
}

/// Beginning of each line of a key log.
const KEY_LINE: &[u8] = b"RAMPMETER_KEY ";

/// Returns the expected and the actual value of a property that makes an open file unsafe for
/// secrets. Another user can then read or change the file; root and the node's own user may.
fn unsafe_file(about: &Metadata, expected_kind: &str) -> Option<(&'static str, String, String)> {
    if !about.is_file() {
        let got = kind_of(about.file_type()).to_owned();
        return Some(("type", format!("{expected_kind} in an ordinary file"), got));
    }
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != 0 && about.uid() != own {
        let expected = format!("{expected_kind} that user {own} or root owns");
        return Some(("owner", expected, format!("user {}", about.uid())));
    }
    let mode = about.mode() & 0o777;
    // A service manager passes keys in files of the group root.
    let of_others = if about.gid() == 0 { 0o027 } else { 0o077 };
    let expected = format!("{expected_kind} that its owner alone can read (0600)");
    (mode & of_others != 0).then(|| ("mode", expected, format!("{mode:04o}")))
}

/// Returns the type of a file that is not an ordinary one, in words.
fn kind_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a special file"
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rampmeter_proto::Builtin;

    use super::*;

    #[test]
    fn a_key_that_is_no_ordinary_file_is_named_in_words() {
        for (path, kind) in [("/", "a directory"), ("/dev/null", "a device")] {
            let about = fs::metadata(path).unwrap();
            let (key, expected, got) = unsafe_file(&about, "a private key").unwrap();
            assert_eq!((key, got.as_str()), ("type", kind));
            assert_eq!(expected, "a private key in an ordinary file");
        }
    }

    #[test]
    fn a_configuration_file_beyond_64_mib_is_an_error() {
        let error = Setup::load::<Builtin>(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: size: expected at most 64 MiB, got more");
    }

    /// Effect of a change at a reload.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum ReloadEffect {
        Applied,
        Restart,
    }
    use ReloadEffect::{Applied, Restart};

    /// Each key of a table, a change of it, and the effect at a reload.
    type Keys = &'static [(&'static str, &'static str, &'static str, ReloadEffect)];

    const NODE: Keys = &[
        ("id", "id = 0", "id = 1", Restart),
        ("clock", "clock = \"monotonic\"", "clock = \"time-of-day\"", Restart),
        ("wait-mode", "wait-mode = \"block\"", "wait-mode = \"poll\"", Restart),
        ("pacing-spin-us", "pacing-spin-us = 5", "pacing-spin-us = 6", Restart),
        ("coalesce-us", "coalesce-us = 60", "coalesce-us = 50", Applied),
        ("busy-poll-us", "busy-poll-us = 100", "busy-poll-us = 90", Applied),
        ("datapath", "datapath = \"udp\"", "datapath = \"xdp\"\ninterface = \"eth0\"", Restart),
        // Without effect unless datapath = "xdp", with which it is changed above.
        ("interface", "", "", Applied),
        ("socket", "socket = \"/a\"", "socket = \"/b\"", Restart),
        ("private-key", "private-key = \"/a.key\"", "private-key = \"/b.key\"", Applied),
        ("key-log", "key-log = \"/a.log\"", "key-log = \"/b.log\"", Restart),
        (
            "metrics-address",
            "metrics-address = \"127.0.0.1:1\"",
            "metrics-address = \"127.0.0.1:2\"",
            Restart,
        ),
        ("status-socket", "status-socket = \"/s\"", "status-socket = \"/t\"", Restart),
        ("drain-timeout-ms", "drain-timeout-ms = 5", "drain-timeout-ms = 6", Restart),
        ("connect-timeout-ms", "connect-timeout-ms = 5", "connect-timeout-ms = 6", Applied),
        ("message-max-bytes", "message-max-bytes = 5000", "message-max-bytes = 6000", Restart),
    ];
    const NETWORK: Keys = &[
        ("rate-mbps", "rate-mbps = 100", "rate-mbps = 200", Applied),
        ("mtu", "mtu = 1500", "mtu = 1400", Restart),
        ("control-rtt-us", "control-rtt-us = 300", "control-rtt-us = 400", Applied),
        ("data-rtt-us", "data-rtt-us = 900", "data-rtt-us = 1000", Applied),
        ("unreachable-after-ms", "unreachable-after-ms = 9", "unreachable-after-ms = 8", Applied),
        ("spray-ports", "spray-ports = 16", "spray-ports = 8", Restart),
        (
            "segmentation-offload",
            "segmentation-offload = false",
            "segmentation-offload = true",
            Restart,
        ),
        ("security", "security = \"encrypted\"", "security = \"none\"", Restart),
    ];
    const PROGRAMS: Keys = &[
        ("attached-max", "attached-max = 5", "attached-max = 6", Applied),
        (
            "attached-max-per-user",
            "attached-max-per-user = 5",
            "attached-max-per-user = 6",
            Applied,
        ),
        ("memory-max-mb", "memory-max-mb = 5", "memory-max-mb = 6", Applied),
        (
            "memory-max-per-user-mb",
            "memory-max-per-user-mb = 5",
            "memory-max-per-user-mb = 6",
            Applied,
        ),
    ];

    fn lines(keys: Keys) -> String {
        keys.iter().map(|(_, line, ..)| format!("{line}\n")).collect()
    }

    fn text() -> String {
        let key = || PrivateKey::generate().unwrap().public();
        let peer = |n: u16| {
            let (port, key) = (7_400 + 10 * n, key());
            format!("[[peer]]\nid = {n}\naddress = \"127.0.0.1:{port}\"\npublic-key = \"{key}\"\n")
        };
        let (node, network, programs) = (lines(NODE), lines(NETWORK), lines(PROGRAMS));
        format!(
            "[node]\n{node}[network]\n{network}[programs]\n{programs}\
             [transport]\nname = \"dcpim\"\n[[service]]\nid = 7\nusers = [1]\n{}{}",
            peer(0),
            peer(1)
        )
    }

    /// The configuration of nodes without encryption.
    fn without_keys(text: &str) -> String {
        let has_key = |line: &&str| line.contains("-key = ") || line.starts_with("key-log");
        let lines: Vec<_> = text.lines().filter(|line| !has_key(line)).collect();
        lines.join("\n")
    }

    fn load(text: &str) -> Result<Setup, Box<InputError>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("n.toml");
        fs::write(&file, text).unwrap();
        Setup::load::<Builtin>(&file)
    }

    /// Returns the keys that a table may have, as the error of an unknown one lists them.
    fn keys_of(text: &str, table: &str) -> Vec<String> {
        let head = format!("[{table}]\n");
        let error = load(&text.replace(&head, &format!("{head}unknown = 1\n"))).unwrap_err();
        let error = error.to_string();
        let names = error.split_once("expected one of ").unwrap().1;
        let names = names.split_once(", got unknown").unwrap().0;
        names.split(", ").map(str::to_owned).collect()
    }

    /// Every key is either applied by a reload, or named in its refusal.
    #[test]
    fn reloads_apply_or_refuse_a_change_of_each_key() {
        let text = text();
        let old = load(&text).unwrap();
        assert!(old.keys_for_restart(&load(&text).unwrap()).is_empty());
        for (table, keys) in [("node", NODE), ("network", NETWORK), ("programs", PROGRAMS)] {
            let mut known: Vec<_> = keys.iter().map(|(key, ..)| (*key).to_owned()).collect();
            let mut all = keys_of(&text, table);
            known.sort_unstable();
            all.sort_unstable();
            assert_eq!(all, known, "the table {table} has keys that this test does not know");
            for (key, from, to, change) in keys {
                let changed = text.replacen(&format!("{from}\n"), &format!("{to}\n"), 1);
                let changed = if *key == "security" { without_keys(&changed) } else { changed };
                let fixed = old.keys_for_restart(&load(&changed).unwrap());
                assert_eq!(fixed.is_empty(), *change == Applied, "{table}.{key}: {fixed:?}");
            }
        }
    }
}
