//! Two nodes on loopback addresses, with encrypted packets.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rampmeter_ring::{Completion, Outcome, Port, PortConfig};
use rampmeter_types::NodeId;

pub(crate) const SERVICE: u16 = 7;
const TIMEOUT: Duration = Duration::from_secs(20);
/// Ports outside the range from which the system assigns them.
static PORT: AtomicU16 = AtomicU16::new(0);

pub(crate) fn node(n: u32) -> NodeId {
    NodeId::new(n)
}

/// Returns an unused port whose successor is unused too.
pub(crate) fn free_port() -> u16 {
    let first = 12_000 + (std::process::id() * 97 % 9_000) as u16 * 2;
    loop {
        let port = first + PORT.fetch_add(2, Ordering::Relaxed);
        let is_free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 1) {
            return port;
        }
    }
}

pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let ends = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < ends, "it has not come to pass in {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a message to node 1; returns its outcome.
pub(crate) fn send(from: &Port, bytes: &[u8]) -> Outcome {
    let sent = from.submit(node(1), SERVICE, bytes).unwrap().ticket;
    loop {
        match from.wait(Some(TIMEOUT)).unwrap() {
            Some(Completion::Finished { ticket, outcome }) if ticket == sent => return outcome,
            Some(_) => {}
            None => panic!("no outcome in {TIMEOUT:?}"),
        }
    }
}

/// Sends a message to node 1, and receives it there.
pub(crate) fn message(from: &Port, to: &Port, bytes: &[u8]) {
    let sent = from.submit(node(1), SERVICE, bytes).unwrap().ticket;
    match to.wait(Some(TIMEOUT)).unwrap() {
        Some(Completion::Received(message)) => assert_eq!(message.bytes(), bytes),
        other => panic!("{other:?}"),
    }
    match from.wait(Some(TIMEOUT)).unwrap() {
        Some(Completion::Finished { ticket, outcome }) => {
            assert_eq!((ticket, outcome), (sent, Outcome::Completed));
        }
        other => panic!("{other:?}"),
    }
}

/// Nodes, which end when it is dropped.
pub(crate) struct Testbed {
    folder: tempfile::TempDir,
    addresses: Vec<SocketAddr>,
    nodes: BTreeMap<usize, Child>,
    environment: Vec<(String, String)>,
    namespace: Option<String>,
}

impl Testbed {
    /// Writes the configurations of two nodes; `more` is a part of both.
    pub(crate) fn new(more: &str) -> Self {
        Self::with(more, None)
    }

    /// Creates nodes in a separate network namespace, with a longer MTU; `None` without the
    /// privilege to make one.
    pub(crate) fn in_namespace(mtu: &str) -> Option<Self> {
        let name = format!("rampd-{}-{}", std::process::id(), free_port());
        let ip = |words: &str| {
            let mut command = Command::new("ip");
            let done = command.args(words.split(' ')).stderr(Stdio::null()).status();
            done.is_ok_and(|status| status.success())
        };
        if !ip(&format!("netns add {name}")) {
            assert!(std::env::var_os("RAMPMETER_CI").is_none(), "no network namespace");
            println!("skipped: network namespaces need root and iproute2");
            return None;
        }
        let mut bed = Self::with("", Some(name));
        bed.ip("link set lo up mtu 9000");
        for node in 0..2 {
            bed.replace(node, "mtu = 1500", mtu);
        }
        Some(bed)
    }

    fn with(more: &str, namespace: Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = |_| SocketAddr::from(([127, 0, 0, 1], free_port()));
        let addresses = (0..2).map(address).collect();
        let (nodes, environment) = (BTreeMap::new(), Vec::new());
        let bed = Self { folder, addresses, nodes, environment, namespace };
        (0..2).for_each(|node| bed.configure(node, more));
        bed
    }

    /// Writes the configuration of a node, with `more` in it.
    pub(crate) fn configure(&self, node: usize, more: &str) {
        let key = |node: usize| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rampd"));
            let file = self.folder.path().join(format!("{node}.key"));
            let output = command.arg("keygen").arg(file).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let peer = |(n, address): (usize, &SocketAddr)| {
            let key = key(n);
            format!("[[peer]]\nid = {n}\naddress = \"{address}\"\npublic-key = \"{key}\"\n")
        };
        let peers: String = self.addresses.iter().enumerate().map(peer).collect();
        let socket = self.socket(node);
        let text = format!(
            "[node]\nid = {node}\nclock = \"monotonic\"\nsocket = \"{}\"\n\
             private-key = \"{node}.key\"\ndrain-timeout-ms = 200\n\
             [network]\nrate-mbps = 1000\ncontrol-rtt-us = 2000\nmtu = 1500\n\
             [transport]\nname = \"dcpim\"\n{more}{peers}",
            socket.display()
        );
        fs::write(self.file(node), text).unwrap();
    }

    /// Changes a part of the configuration of a node.
    pub(crate) fn replace(&mut self, node: usize, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(node)).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(self.file(node), text.replace(from, to)).unwrap();
    }

    /// Adds a line to the table of a node.
    pub(crate) fn add_to_node(&mut self, node: usize, line: &str) {
        self.replace(node, "[network]", &format!("{line}\n[network]"));
    }

    /// Sets a variable of the environment of all nodes that start from now on.
    pub(crate) fn environment(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn start(&mut self, node: usize) {
        let log = File::create(self.log_file(node)).unwrap();
        self.start_with(node, log.into());
    }

    /// Starts a node whose standard error is `log`.
    pub(crate) fn start_with(&mut self, node: usize, log: Stdio) {
        let mut command = match &self.namespace {
            None => Command::new(env!("CARGO_BIN_EXE_rampd")),
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, env!("CARGO_BIN_EXE_rampd")]);
                command
            }
        };
        command.envs(self.environment.iter().cloned()).stderr(log);
        let child = command.arg("node").arg(self.file(node)).spawn().unwrap();
        self.nodes.insert(node, child);
    }

    /// Ends a node by SIGTERM; returns its exit code.
    pub(crate) fn stop(&mut self, node: usize) -> Option<i32> {
        self.signal(node, "TERM");
        let mut child = self.nodes.remove(&node).unwrap();
        let ends = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if Instant::now() > ends {
                let _ = child.kill();
                panic!("node {node} does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, node: usize, name: &str) {
        let (option, id) = (format!("-{name}"), self.id(node).to_string());
        assert!(Command::new("kill").args([option, id]).status().unwrap().success());
    }

    /// Attaches a program to a node that may still be starting.
    pub(crate) fn port(&self, node: usize) -> Port {
        let ends = Instant::now() + TIMEOUT;
        loop {
            match Port::attach(self.socket(node), SERVICE, PortConfig::default()) {
                Ok(port) => return port,
                Err(error) => assert!(Instant::now() < ends, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the output of `rampd status --json`.
    pub(crate) fn status(&self, node: usize) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rampd"));
        let output = command.args(["status", "--json"]).arg(self.file(node)).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, words: &str) {
        let name = self.namespace.as_deref().unwrap();
        let mut command = Command::new("ip");
        let status = command.args(["-n", name]).args(words.split(' ')).status().unwrap();
        assert!(status.success(), "ip {words}");
    }

    pub(crate) fn id(&self, node: usize) -> u32 {
        self.nodes[&node].id()
    }

    pub(crate) fn address(&self, node: usize) -> SocketAddr {
        self.addresses[node]
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{node}.toml"))
    }

    pub(crate) fn socket(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{node}.sock"))
    }

    fn log_file(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("{node}.log"))
    }

    /// Waits until a node has logged a line with `part` in it.
    pub(crate) fn wait_for_line(&self, node: usize, part: &str) {
        let ends = Instant::now() + TIMEOUT;
        while !self.log(node).contains(part) {
            assert!(Instant::now() < ends, "expected {part:?}, got {}", self.log(node));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self, node: usize) -> String {
        fs::read_to_string(self.log_file(node)).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for child in self.nodes.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(name) = &self.namespace {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}
