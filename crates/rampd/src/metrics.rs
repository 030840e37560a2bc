//! Observation of a running node: log lines about unusual events, and counters for Prometheus.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use rampmeter_runtime::{
    Applications, Datapath, MessageCounts, Node, PeerView, RailState, RailView, Setting,
};
use rampmeter_types::{Endpoint, Span, Time};
use tracing::{info, warn};

use crate::config::Setup;
use crate::status::StatusServer;
use crate::view::NodeView;
use crate::watchdog::Heartbeat;
use crate::{differences, log, serve};

/// Interval of observations.
const INTERVAL: Span = Span::from_us(1_000_000);

/// Interval of hellos to peers, for round trips and configured settings.
const HELLO_INTERVAL: Span = Span::from_us(10_000_000);

/// Observer of a node.
#[derive(Debug)]
pub(crate) struct NodeObserver {
    next: Time,
    /// Time of the next hellos.
    hellos_at: Time,
    previous: NodeView,
    published: Arc<Mutex<NodeView>>,
    status: StatusServer,
    heartbeat: Heartbeat,
}

impl NodeObserver {
    /// Begins to observe; serves counters if the configuration has an address.
    ///
    /// # Errors
    /// The address is in use.
    pub(crate) fn start(setup: &Setup) -> io::Result<Self> {
        let status = StatusServer::start(setup)?;
        let published = Arc::new(Mutex::new(NodeView::default()));
        if let Some(address) = setup.metrics {
            let listener = TcpListener::bind(address).map_err(|error| {
                io::Error::other(format!(
                    "node.metrics-address: cannot listen at {address}: {error}"
                ))
            })?;
            let (shown, node) = (Arc::clone(&published), setup.id.get().to_string());
            let status = status.latest();
            let page = move |path: &str| match path {
                "/status" => Some(status.text()),
                _ => {
                    let view = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    Some(text(&view, &node))
                }
            };
            serve::start("metrics", listener.into(), move |request| serve::http(request, &page))?;
            info!(%address, "serving metrics");
            if setup.open_metrics().is_some() {
                warn!(
                    code = "metrics-open",
                    %address,
                    "node.metrics-address: other hosts can read counters and the status"
                );
            }
        }
        let (next, hellos_at, heartbeat) = (Time::ZERO, Time::ZERO, Heartbeat::start()?);
        Ok(Self { next, hellos_at, previous: NodeView::default(), published, status, heartbeat })
    }

    /// Observes the node, once per interval.
    pub(crate) fn observe<E: Endpoint, D: Datapath, A: Applications>(
        &mut self,
        setup: &Setup,
        node: &mut Node<E, D, A>,
        now: Time,
    ) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        self.heartbeat.beat();
        log::report();
        if now >= self.hellos_at {
            self.hellos_at = now + HELLO_INTERVAL;
            node.send_hellos(now);
        }
        let view = view(node);
        if view.peers_known > self.previous.peers_known {
            // Hellos at the start are often retransmitted, and then do not measure a round trip.
            self.hellos_at = now;
        }
        self.warn(setup, &view);
        self.warn_of_rails(setup, &view);
        self.show(setup, view, Some(now));
    }

    /// Logs unusual events.
    fn warn(&self, setup: &Setup, view: &NodeView) {
        let (old, new) = (&self.previous.stats, &view.stats);
        if new.peer_restarts > old.peer_restarts {
            info!(restarts = new.peer_restarts - old.peer_restarts, "peers restarted");
        }
        if view.peers_known > self.previous.peers_known {
            info!(peers = view.peers_known, "peers respond");
        }
        if new.malformed_packets + new.unknown_sender_packets
            > old.malformed_packets + old.unknown_sender_packets
        {
            let (malformed, unknown) = (new.malformed_packets, new.unknown_sender_packets);
            warn!(
                code = "foreign-packets",
                malformed, unknown, "dropped malformed packets, and packets from unknown senders"
            );
        }
        if new.too_long_packets > old.too_long_packets {
            let packets = new.too_long_packets;
            warn!(
                code = "mtu-too-large",
                packets, "network.mtu: dropped packets that are longer than the network carries"
            );
        }
        if new.checksum_error_packets > old.checksum_error_packets {
            warn!(
                code = "checksum-error-packets",
                packets = new.checksum_error_packets,
                "dropped packets with a wrong checksum, or of nodes that encrypt"
            );
        }
        if new.corrupt_messages > old.corrupt_messages {
            let messages = new.corrupt_messages - old.corrupt_messages;
            warn!(
                code = "corrupt-messages",
                messages,
                "dropped messages whose bytes have changed: a memory or a network card is faulty, \
                 or a program changed them before their completion"
            );
        }
        if new.unauthenticated_packets > old.unauthenticated_packets {
            warn!(
                code = "unauthenticated-packets",
                packets = new.unauthenticated_packets,
                "dropped packets that failed authentication"
            );
        }
        if new.inconsistent_messages > old.inconsistent_messages {
            let messages = new.inconsistent_messages - old.inconsistent_messages;
            warn!(
                code = "inconsistent-messages",
                messages, "messages lack bytes that the transport has acknowledged"
            );
        }
        if new.mismatched_messages > old.mismatched_messages {
            warn!(
                code = "mismatched-messages",
                messages = new.mismatched_messages - old.mismatched_messages,
                "cannot reassemble messages of peers with another network.mtu or transport"
            );
        }
        self.warn_of_settings(setup, view);
        self.warn_of_paths(view);
    }

    /// Logs the paths whose MTU has changed.
    fn warn_of_paths(&self, view: &NodeView) {
        for peer in &view.peers {
            let before = self.previous.peer(peer.node);
            if before.and_then(|old| old.path_mtu) == peer.path_mtu {
                continue;
            }
            let node = peer.node.get();
            match peer.path_mtu {
                Some(bytes) => warn!(
                    code = "path-mtu",
                    peer = node,
                    bytes,
                    "path to peer carries shorter packets than network.mtu: longer ones are \
                     fragmented"
                ),
                None => info!(peer = node, "path to peer carries packets of network.mtu"),
            }
        }
    }

    /// Logs the settings in which peers differ.
    fn warn_of_settings(&self, setup: &Setup, view: &NodeView) {
        let differs = |peer: &&PeerView| !peer.differences.is_empty() || peer.has_other_key;
        for peer in view.peers.iter().filter(differs) {
            let what = |peer: &PeerView| {
                (peer.differences, peer.settings, peer.other_transport, peer.has_other_key)
            };
            if self.previous.peer(peer.node).map(what) != Some(what(peer)) {
                let keys = differences::describe(setup, peer);
                warn!(
                    code = "peer-settings",
                    peer = peer.node.get(),
                    %keys,
                    "peer has other settings"
                );
            }
        }
        let is_known = view.peers.iter().any(|peer| peer.differences.contains(Setting::Mtu));
        if view.stats.oversized_packets > self.previous.stats.oversized_packets && !is_known {
            warn!(
                code = "oversized-packets",
                packets = view.stats.oversized_packets,
                "dropped packets longer than network.mtu"
            );
        }
    }

    /// Logs the networks that are down, and those that are up again.
    fn warn_of_rails(&self, setup: &Setup, view: &NodeView) {
        for rail in &view.rails {
            let old = self.previous.rail(rail.peer, rail.rail);
            let (falls, was) = old.map_or((0, RailState::Unknown), |old| (old.falls, old.state));
            let peer = rail.peer.get();
            let address = setup.addresses(rail.peer).get(usize::from(rail.rail)).copied();
            let address = address.map(|address| address.to_string()).unwrap_or_default();
            if rail.falls > falls {
                warn!(
                    code = "rail-down",
                    peer,
                    rail = rail.rail,
                    %address,
                    "network to peer is down: packets are sent over other networks"
                );
            }
            if rail.state == RailState::Up && (was == RailState::Down || rail.falls > falls) {
                info!(peer, rail = rail.rail, %address, "network to peer is up again");
            }
        }
    }

    /// Logs the node's counters at the end.
    pub(crate) fn report<E: Endpoint, D: Datapath, A: Applications>(
        &mut self,
        setup: &Setup,
        node: &Node<E, D, A>,
    ) {
        let view = view(node);
        for (name, _, value) in view.stats.entries().filter(|(.., value)| *value > 0) {
            info!(value, "{name}");
        }
        for &(name, value) in view.transport.iter().filter(|(_, value)| *value > 0) {
            info!(value, "transport {name}");
        }
        self.show(setup, view, None);
    }

    fn show(&mut self, setup: &Setup, view: NodeView, now: Option<Time>) {
        if let Some(now) = now {
            self.status.show(setup, &view, &self.previous, now);
        }
        self.previous = view.clone();
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

fn view<E: Endpoint, D: Datapath, A: Applications>(node: &Node<E, D, A>) -> NodeView {
    let mut transport = Vec::new();
    node.endpoint().counters(&mut |name, value| transport.push((name, value)));
    let mut services = Vec::new();
    node.apps().services(&mut |service, out, into| services.push((service, out, into)));
    services.sort_unstable();
    let (stats, messages, peers_known) = (node.stats(), node.messages(), node.n_responsive_peers());
    let (peers, rails) = (node.peers().collect(), node.rails().collect());
    NodeView { stats, messages, peers_known, transport, peers, rails, services }
}

/// Returns the counters in Prometheus's text format.
fn text(view: &NodeView, node: &str) -> String {
    let label = [("node".into(), node.to_owned().into())];
    let mut registry = Registry::with_prefix_and_labels("rampd", label.into_iter());
    for (name, help, value) in view.stats.entries() {
        match name.strip_suffix("_bytes") {
            Some(name) => {
                registry.register_with_unit(name, help, Unit::Bytes, ConstCounter::new(value));
            }
            None => registry.register(name, help, ConstCounter::new(value)),
        }
    }
    for &(name, value) in &view.transport {
        let help = format!("Counted by the transport: {}", name.replace('_', " "));
        registry.register(format!("transport_{name}"), help, ConstCounter::new(value));
    }
    let MessageCounts { sending, queued, receiving } = view.messages;
    let gauges = [
        ("messages_sending", "Messages being sent", sending),
        ("messages_queued", "Messages queued for receivers that have not responded", queued),
        ("messages_receiving", "Messages being received", receiving),
        ("peers_responsive", "Peers that have responded", view.peers_known),
    ];
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(value as i64));
    }
    let log::OmittedLines { dropped, limited } = log::omitted_lines();
    let of_log = [
        ("log_lines_dropped", "Log lines dropped because standard error blocked", dropped),
        ("log_lines_suppressed", "Log lines suppressed by the rate limit of their cause", limited),
    ];
    for (name, help, value) in of_log {
        registry.register(name, help, ConstCounter::new(value));
    }
    register_rails(&mut registry, &view.rails);
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

/// Registers the counters of networks: sums over peers, so that there are at most as many labels as
/// a node has networks.
fn register_rails(registry: &mut Registry, rails: &[RailView]) {
    if rails.is_empty() {
        return;
    }
    type Labels = [(&'static str, String); 1];
    type Count = fn(&RailView) -> u64;
    let label = |rail: &RailView| [("rail", rail.rail.to_string())];
    let gauges: [(&str, &str, Count); 2] = [
        ("rail_peers_up", "Peers to which a network is up", |r| (r.state == RailState::Up).into()),
        ("rail_peers_down", "Peers to which a network is down", |r| {
            (r.state == RailState::Down).into()
        }),
    ];
    for (name, help, value) in gauges {
        let family = Family::<Labels, Gauge>::default();
        for rail in rails {
            family.get_or_create(&label(rail)).inc_by(value(rail) as i64);
        }
        registry.register(name, help, family);
    }
    let counters: [(&str, &str, Count); 5] = [
        ("rail_failures", "Failures of a network to a peer", |r| r.falls),
        ("rail_packets_sent", "Datagrams sent over a network", |r| r.packets_sent),
        ("rail_sent_bytes", "Bytes of datagrams sent over a network", |r| r.sent_bytes),
        ("rail_packets_received", "Datagrams received over a network", |r| r.packets_received),
        ("rail_received_bytes", "Bytes of datagrams received over a network", |r| r.received_bytes),
    ];
    for (name, help, value) in counters {
        let family = Family::<Labels, Counter>::default();
        for rail in rails {
            family.get_or_create(&label(rail)).inc_by(value(rail));
        }
        match name.strip_suffix("_bytes") {
            Some(name) => registry.register_with_unit(name, help, Unit::Bytes, family),
            None => registry.register(name, help, family),
        }
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_runtime::NodeStats;
    use rampmeter_types::NodeId;

    use super::*;

    /// The dashboard for Grafana shows only existing counters.
    #[test]
    fn dashboards_use_only_exported_metrics() {
        let shown: serde_json::Value =
            serde_json::from_str(include_str!("../etc/grafana.json")).unwrap();
        let exported = text(&NodeView::default(), "0");
        let mut n = 0;
        for panel in shown["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let expression = target["expr"].as_str().unwrap();
                for name in expression.split(|c: char| c != '_' && !c.is_alphanumeric()) {
                    if name.starts_with("rampd_") {
                        assert!(exported.contains(&format!("\n{name}{{")), "{name} in {exported}");
                        n += 1;
                    }
                }
            }
        }
        assert!(n >= 20, "{n} names");
    }

    #[test]
    fn counters_are_exported_with_type_unit_and_label() {
        let stats =
            NodeStats { packets_sent: 12, payload_received_bytes: 34, ..NodeStats::default() };
        let transport = vec![("tokens_sent", 56)];
        let text = text(&NodeView { stats, transport, ..NodeView::default() }, "3");
        assert!(text.contains("rampd_transport_tokens_sent_total{node=\"3\"} 56"), "{text}");
        assert!(text.contains("# TYPE rampd_packets_sent counter"), "{text}");
        assert!(text.contains("rampd_packets_sent_total{node=\"3\"} 12"), "{text}");
        assert!(text.contains("rampd_payload_received_bytes_total{node=\"3\"} 34"), "{text}");
        assert!(text.contains("rampd_peers_responsive{node=\"3\"} 0"), "{text}");
    }

    #[test]
    fn metrics_of_networks_are_sums_over_peers() {
        let rail = |peer, rail, state| RailView {
            peer: NodeId::new(peer),
            rail,
            state,
            falls: 1,
            packets_sent: 10,
            sent_bytes: 1_000,
            packets_received: 20,
            received_bytes: 2_000,
        };
        let rails = vec![
            rail(1, 0, RailState::Up),
            rail(1, 1, RailState::Down),
            rail(2, 0, RailState::Up),
            rail(2, 1, RailState::Up),
        ];
        let text = text(&NodeView { rails, ..NodeView::default() }, "3");
        for line in [
            "rampd_rail_peers_up{node=\"3\",rail=\"0\"} 2",
            "rampd_rail_peers_up{node=\"3\",rail=\"1\"} 1",
            "rampd_rail_peers_down{node=\"3\",rail=\"1\"} 1",
            "rampd_rail_failures_total{node=\"3\",rail=\"0\"} 2",
            "rampd_rail_sent_bytes_total{node=\"3\",rail=\"1\"} 2000",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert_eq!(text.matches("# TYPE rampd_rail_failures ").count(), 1, "{text}");
    }
}
