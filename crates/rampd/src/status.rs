//! Status of a running node: `rampd status`, and `/status` next to the counters.
//!
//! A thread sends the status, as JSON, to each program that connects to the node's status socket.
//! The node's own thread renews it every second.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rampmeter_proto::Catalogue;
use rampmeter_ring::Listener;
use rampmeter_runtime::{MessageCounts, PeerView, RailState, RailView};
use rampmeter_types::Time;
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::config::Setup;
use crate::differences;
use crate::error::{Error, InputError};
use crate::json::Form;
use crate::serve::{self, Reply};
use crate::view::NodeView;

/// Maximum number of connections that are not answered yet.
const BACKLOG: i32 = 16;

/// Status of a node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Status {
    /// `rampd.status/1`.
    schema: String,
    node: u32,
    /// `host` or `arbiter`.
    role: String,
    version: String,
    address: String,
    transport: String,
    /// `encrypted` or `checksum`.
    security: String,
    rate_mbps: f64,
    /// Seconds since the node started.
    uptime_s: f64,
    /// Rate over the last second.
    sent_mbps: f64,
    received_mbps: f64,
    /// Messages that are being sent, that are queued for receivers, and that arrive.
    sending: usize,
    queued: usize,
    receiving: usize,
    services: Vec<Service>,
    peers: Vec<Peer>,
    /// Counters since the start, as in Prometheus; without zeros.
    counters: BTreeMap<String, u64>,
}

/// An attached program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Service {
    service: u16,
    /// Messages that it sends.
    sending: u32,
    /// Messages for it that arrive, or that it has not read yet.
    receiving: u32,
}

/// A peer of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Peer {
    node: u32,
    address: String,
    /// Seconds since its latest packet; none if it has never responded.
    last_received_s_ago: Option<f64>,
    /// Round trip of a hello, hosts included.
    rtt_us: Option<f64>,
    /// Rate over the last second.
    sent_mbps: f64,
    received_mbps: f64,
    /// Messages that are being sent to it, and those that are queued until it responds.
    sending: usize,
    queued: usize,
    /// Maximum bytes of an IP packet on the path without fragmentation, if less than `network.mtu`.
    path_mtu: Option<usize>,
    /// Keys of the configuration that differ there.
    differing_keys: Vec<String>,
    /// Networks of the peer, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rails: Vec<Rail>,
}

/// A network to a peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Rail {
    address: String,
    /// `up`, `down`, or `unknown` before it has answered.
    state: String,
    /// Number of transitions to `down`.
    failures: u64,
    packets_sent: u64,
    bytes_sent: u64,
    packets_received: u64,
    bytes_received: u64,
    /// Rate over the last second.
    sent_mbps: f64,
    received_mbps: f64,
}

/// Returns a state in one word.
pub(crate) fn state_name(state: RailState) -> &'static str {
    match state {
        RailState::Unknown => "unknown",
        RailState::Up => "up",
        RailState::Down => "down",
    }
}

/// Latest status, as JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatestStatus(Arc<Mutex<String>>);

impl LatestStatus {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Server of the status.
#[derive(Debug)]
pub(crate) struct StatusServer {
    latest: LatestStatus,
    started: Option<Time>,
    previous_at: Time,
    /// Socket, which is closed with the node.
    _listener: Option<Listener>,
}

impl StatusServer {
    /// Opens the status socket, if there is one.
    ///
    /// # Errors
    /// The socket cannot be opened, or another node owns it.
    pub(crate) fn start(setup: &Setup) -> io::Result<Self> {
        let (latest, mut held) = (LatestStatus::default(), None);
        if let Some(path) = &setup.status {
            let listener = Listener::open(path, SocketType::STREAM, BACKLOG)
                .map_err(|error| io::Error::other(error.to_string()))?;
            let socket = listener.as_fd().try_clone_to_owned()?;
            held = Some(listener);
            let shown = latest.clone();
            // Each connection gets the status for any request.
            let answer = move |_: &[u8]| Reply::Bytes(shown.text().into_bytes());
            serve::start("status", socket, answer)?;
            info!(socket = %path.display(), "serving status");
        }
        Ok(Self { latest, started: None, previous_at: Time::ZERO, _listener: held })
    }

    /// Returns the shared status.
    pub(crate) fn latest(&self) -> LatestStatus {
        self.latest.clone()
    }

    /// Renews the status.
    pub(crate) fn show(&mut self, setup: &Setup, view: &NodeView, before: &NodeView, now: Time) {
        let started = *self.started.get_or_insert(now);
        let span =
            now.saturating_since(std::mem::replace(&mut self.previous_at, now)).as_secs_f64();
        let uptime_s = now.saturating_since(started).as_secs_f64();
        let status = status(setup, view, before, now, span);
        let status = Status { uptime_s, ..status };
        let text = serde_json::to_string(&status).expect("a status has no keys but texts");
        *self.latest.0.lock().unwrap_or_else(PoisonError::into_inner) = text + "\n";
    }
}

fn status(setup: &Setup, view: &NodeView, before: &NodeView, now: Time, span: f64) -> Status {
    let mbps = |now: u64, then: u64| {
        let bytes = now.saturating_sub(then) as f64;
        if span > 0.0 { bytes * 8e-6 / span } else { 0.0 }
    };
    let (stats, old) = (&view.stats, &before.stats);
    let rail = |view_of: &RailView| {
        let then = before.rail(view_of.peer, view_of.rail);
        let (sent, received) = then.map_or((0, 0), |old| (old.sent_bytes, old.received_bytes));
        let address = setup.addresses(view_of.peer).get(usize::from(view_of.rail)).copied();
        Rail {
            address: address.map(|address| address.to_string()).unwrap_or_default(),
            state: state_name(view_of.state).to_owned(),
            failures: view_of.falls,
            packets_sent: view_of.packets_sent,
            bytes_sent: view_of.sent_bytes,
            packets_received: view_of.packets_received,
            bytes_received: view_of.received_bytes,
            sent_mbps: mbps(view_of.sent_bytes, sent),
            received_mbps: mbps(view_of.received_bytes, received),
        }
    };
    let peer = |peer: &PeerView| {
        let then = before.peer(peer.node).map(|old| old.traffic);
        let (traffic, then) = (peer.traffic, then.unwrap_or_default());
        let address = setup.udp.peers.get(peer.node.idx()).copied().flatten();
        Peer {
            node: peer.node.get(),
            address: address.map(|address| address.to_string()).unwrap_or_default(),
            last_received_s_ago: peer
                .last_received_at
                .map(|at| now.saturating_since(at).as_secs_f64()),
            rtt_us: peer.rtt.map(|rtt| rtt.as_us_f64()),
            sent_mbps: mbps(traffic.sent_bytes, then.sent_bytes),
            received_mbps: mbps(traffic.received_bytes, then.received_bytes),
            sending: peer.sending,
            queued: peer.queued,
            path_mtu: peer.path_mtu,
            differing_keys: differences::keys(peer),
            rails: view.rails_of(peer.node).iter().map(rail).collect(),
        }
    };
    let service =
        |&(service, sending, receiving): &(u16, u32, u32)| Service { service, sending, receiving };
    let counters = stats.entries().map(|(name, _, value)| (name.to_owned(), value));
    let of_transport = view.transport.iter().map(|(name, n)| (format!("transport_{name}"), *n));
    let MessageCounts { sending, queued, receiving } = view.messages;
    Status {
        schema: "rampd.status/1".to_owned(),
        node: setup.id.get(),
        role: if setup.is_arbiter { "arbiter" } else { "host" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: setup.own_addresses(),
        transport: setup.transport.table.name.clone(),
        security: if setup.keys.is_some() { "encrypted" } else { "checksum" }.to_owned(),
        rate_mbps: setup.facts.access_rate.as_bps() as f64 * 1e-6,
        uptime_s: 0.0,
        sent_mbps: mbps(stats.sent_bytes, old.sent_bytes),
        received_mbps: mbps(stats.received_bytes, old.received_bytes),
        sending,
        queued,
        receiving,
        services: view.services.iter().map(service).collect(),
        peers: view.peers.iter().map(peer).collect(),
        counters: counters.chain(of_transport).filter(|(_, value)| *value > 0).collect(),
    }
}

/// Runs `rampd status`: reads the status of the node of a configuration.
pub(crate) fn print_status<C: Catalogue>(node: &Path, form: Form) -> Result<(), Error> {
    let path = status_socket::<C>(node)?;
    let mut text = String::new();
    let answer = UnixStream::connect(&path).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.read_to_string(&mut text)
    });
    answer.map_err(|error| {
        let message = format!("{}: the node does not answer: {error}", path.display());
        io::Error::new(error.kind(), message)
    })?;
    if form == Form::Text {
        let status: Status = serde_json::from_str(&text).map_err(|_| {
            InputError::unexpected("the status of a node", "another answer").in_file(&path)
        })?;
        text = described(&status);
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the status socket of a node: that of its configuration, or a socket itself. The socket
/// of programs has the other next to it.
fn status_socket<C: Catalogue>(node: &Path) -> Result<PathBuf, Error> {
    if fs::metadata(node).is_ok_and(|about| about.file_type().is_socket()) {
        let beside = node.with_extension("status");
        return Ok(if beside.exists() { beside } else { node.to_owned() });
    }
    Setup::load::<C>(node)?.status.ok_or_else(|| {
        let error = InputError::unexpected("a path, or node.socket next to it", "neither");
        error.at("node.status-socket").in_file(node).into()
    })
}

/// Returns the status as text for people.
fn described(status: &Status) -> String {
    let mut text = String::new();
    let Status { node, role, transport, address, security, rate_mbps, uptime_s, .. } = status;
    let _ = writeln!(
        text,
        "node {node} ({role}, {transport}) at {address}, {security}, {rate_mbps} Mbit/s, up {}",
        duration(*uptime_s)
    );
    let _ = writeln!(
        text,
        "now       {:.1} Mbit/s out, {:.1} Mbit/s in",
        status.sent_mbps, status.received_mbps
    );
    let _ = writeln!(
        text,
        "messages  {} being sent, {} queued for receivers, {} receiving",
        status.sending, status.queued, status.receiving
    );
    if !status.services.is_empty() {
        let _ = writeln!(text, "\n{:>7} {:>9} {:>9}", "service", "sending", "receiving");
        for Service { service, sending, receiving } in &status.services {
            let _ = writeln!(text, "{service:>7} {sending:>9} {receiving:>9}");
        }
    }
    let _ = writeln!(
        text,
        "\n{:>5} {:<22} {:>8} {:>10} {:>8} {:>8} {:>7} {:>7}  differs in, remarks",
        "peer", "address", "received", "round trip", "out Mb/s", "in Mb/s", "sending", "queued"
    );
    for peer in &status.peers {
        let received =
            peer.last_received_s_ago.map_or("never".to_owned(), |s| format!("{s:.0} s ago"));
        let rtt = peer.rtt_us.map_or("-".to_owned(), |us| format!("{us:.0} us"));
        let mut remarks = peer.differing_keys.clone();
        remarks.extend(peer.path_mtu.map(|bytes| format!("path carries {bytes} bytes")));
        let line = format!(
            "{:>5} {:<22} {received:>8} {rtt:>10} {:>8.1} {:>8.1} {:>7} {:>7}  {}",
            peer.node,
            peer.address,
            peer.sent_mbps,
            peer.received_mbps,
            peer.sending,
            peer.queued,
            remarks.join(", ")
        );
        let _ = writeln!(text, "{}", line.trim_end());
        for rail in peer.rails.iter().filter(|_| peer.rails.len() > 1) {
            let _ = writeln!(
                text,
                "      {:<22} {:>8} {:>10} {:>8.1} {:>8.1}  {} packets out, {} in",
                rail.address,
                rail.state,
                "",
                rail.sent_mbps,
                rail.received_mbps,
                rail.packets_sent,
                rail.packets_received
            );
        }
    }
    let _ = writeln!(text, "\ncounted since the start");
    for (name, value) in &status.counters {
        let _ = writeln!(text, "  {:<28}{value:>14}", name.replace('_', " "));
    }
    text
}

/// Returns a time in its largest two units.
fn duration(seconds: f64) -> String {
    let s = seconds as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_contain_the_same_status() {
        let rail = |state: &str| Rail {
            address: "10.1.0.2:7321".to_owned(),
            state: state.to_owned(),
            failures: 1,
            packets_sent: 54_321,
            bytes_sent: 9,
            packets_received: 12_345,
            bytes_received: 8,
            sent_mbps: 406.1,
            received_mbps: 0.0,
        };
        let peer = Peer {
            node: 1,
            address: "10.0.0.2:7321".to_owned(),
            last_received_s_ago: Some(2.4),
            rtt_us: Some(85.2),
            sent_mbps: 812.34,
            received_mbps: 0.0,
            sending: 12,
            queued: 0,
            path_mtu: Some(1_000),
            differing_keys: vec!["network.mtu".to_owned()],
            rails: ["up", "down"].map(rail).into(),
        };
        let status = Status {
            node: 3,
            role: "host".to_owned(),
            transport: "dcpim".to_owned(),
            uptime_s: 3_725.0,
            services: vec![Service { service: 7, sending: 12, receiving: 3 }],
            peers: vec![peer],
            counters: BTreeMap::from([("packets_sent".to_owned(), 5)]),
            ..Status::default()
        };
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        let text = described(&status);
        for part in ["node 3 (host, dcpim)", "up 1 h 2 min", "packets sent", "2 s ago", "85 us"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(
            text.contains("      12       0  network.mtu, path carries 1000 bytes\n"),
            "{text}"
        );
        let down =
            "10.1.0.2:7321              down               406.1      0.0  54321 packets out";
        assert!(text.contains(down), "{text}");
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }

    #[test]
    fn durations_have_two_units() {
        let durations = [59.9, 61.0, 3_725.0, 90_000.0].map(duration);
        assert_eq!(durations, ["59 s", "1 min 1 s", "1 h 2 min", "1 d 1 h"]);
    }
}
