//! Node: one endpoint, its peers, its applications and its datapath.
//!
//! The problem: packets, timers and submissions are due at any time. One thread must serve all of
//! them, on a real or a simulated clock.
//!
//! The simple way handles each event as it arrives. It costs a system call and a wake-up for each
//! packet, and its order of events is not reproducible.
//!
//! The present way: [`Node::poll`] runs one iteration at an instant. It receives a batch of
//! packets, reads submissions, fires timers and sends, in this order. It then returns the time of
//! the next call. Each step has a file (`receive`, `verify`, `submit`, `events`, `transmit`). All
//! of them work on [`NodeState`], which excludes the datapath, so that the datapath can lend its
//! buffers. The node never reads a clock, so tests run it on simulated time, and a seed replays a
//! run.
//!
//! Hazards:
//!
//! * A late iteration must not delay paced packets, so it starts from the deadline of the overdue
//!   timer, at most one burst ago ([`NodeState::as_of`]; `dcpim_loses_no_rate_to_late_timers`). The
//!   endpoint's time must never decrease.
//! * Packets are received and sent in batches, so that neither direction starves the other. If a
//!   batch is full, [`Node::poll`] returns `now`.
//! * Notes of the node are sent before packets of the protocol, as a peer must receive this node's
//!   incarnation first.
//! * Under load control packets are batched for `coalescing` (`bundles`). Timers that this delays
//!   are handled at their deadlines.
//! * Floods of unknown packets must not keep the node awake, so only submissions and packets of
//!   known incarnations count as activity.

mod arrivals;
mod bundles;
mod config;
mod events;
mod local;
mod mismatch;
mod receive;
mod state;
mod submit;
mod transmit;
mod verify;

use std::io;
use std::sync::Arc;

use rampmeter_types::envelope::LINK_OVERHEAD;
use rampmeter_types::{ClockOrigin, Endpoint, Span, Time};

use self::arrivals::Arrivals;
pub use self::config::NodeConfig;
use crate::app::{Applications, Failure, Outcome, Submission};
use crate::datapath::Datapath;
use crate::liveness::RailView;
use crate::peer::PeerView;
use crate::stats::{MessageCounts, NodeStats};
use state::{BATCH, NodeState};

/// One host's transport.
pub struct Node<E: Endpoint, D, A: Applications> {
    datapath: D,
    state: NodeState<E, A>,
    arrivals: Arrivals,
    /// True if the latest iteration has not done all work that can be done now.
    has_more: bool,
}

impl<E: Endpoint, D: Datapath, A: Applications> Node<E, D, A> {
    /// Creates a node that starts now.
    pub fn new(
        config: NodeConfig,
        protocol: Arc<E::Config>,
        datapath: D,
        apps: A,
        now: Time,
    ) -> Self {
        let state = NodeState::new(
            config,
            protocol,
            apps,
            datapath.datagram_max(),
            datapath.n_rails(),
            now,
        );
        Self { datapath, state, arrivals: Arrivals::default(), has_more: false }
    }

    /// Sets the origin of the node's clock. Called before the first iteration.
    pub fn set_clock_origin(&mut self, now: Time, origin: ClockOrigin) {
        self.state.endpoint.set_clock_origin(now, origin);
    }

    /// Runs one iteration: does all work that is due, and returns the time of the next call. It
    /// must be called earlier if one of [`Datapath::wakers`] and [`Applications::wakers`] becomes
    /// readable.
    ///
    /// # Errors
    /// Errors of the datapath that no retry can fix.
    pub fn poll(&mut self, now: Time) -> io::Result<Time> {
        let Self { datapath, state, arrivals, has_more } = self;
        state.iteration_at = now;
        let at = state.as_of(now);
        let n = datapath.receive(now, |arrived| state.on_datagram(at, arrived))?;
        arrivals.count(now, n);
        while let Some((peer, report)) = datapath.poll_report() {
            state.on_report(now, peer, report);
        }
        if state.take_submissions(at) {
            state.active_at = now;
        }
        let is_copying = state.copy_local();
        state.fire(at, now);
        state.end_overdue(now);
        state.submit_queued(now);
        state.call_peers(now);
        state.end_mismatched(now);
        if state.peers.take_limits_changed() {
            for (peer, limit) in state.peers.limits() {
                datapath.set_limit(peer, limit)?;
            }
        }
        if state.peers.take_rails_changed() {
            for (peer, up) in state.peers.rails() {
                datapath.set_rails(peer, up);
            }
            state.pace(datapath.n_rails());
        }
        let room_at = state.release_held(now);
        let is_full = state.transmit(now, arrivals.are_many(), datapath)?;
        *has_more = n >= BATCH || is_full || is_copying;
        if *has_more {
            return Ok(now);
        }
        Ok(state.next_turn(now).min(room_at).min(datapath.next_arrival()))
    }

    /// Returns true if packets wait only for the pacer, so that polling until then pays off.
    pub fn has_due_packets(&self) -> bool {
        self.state.endpoint.wants_transmit()
    }

    /// Returns the time for which the next iteration should wait for more packets, even if some
    /// have arrived and timers are due. It is zero unless packets arrive at a high rate. Timers
    /// that are delayed by this are handled at their deadlines.
    pub fn coalescing(&self) -> Span {
        let is_worth_it = self.arrivals.are_taken() && !self.has_more;
        if is_worth_it { self.state.config.coalescing } else { Span::ZERO }
    }

    /// Returns the time of the latest submission, or packet of a peer's known incarnation.
    pub fn active_at(&self) -> Time {
        self.state.active_at
    }

    /// Returns the maximum duration of polling after that.
    pub fn busy_poll(&self) -> Span {
        self.state.config.busy_poll
    }

    /// Returns the node's counters.
    pub fn stats(&self) -> NodeStats {
        let (stats, counts) = (self.state.stats, self.datapath.counts());
        NodeStats {
            malformed_packets: stats.malformed_packets + counts.malformed_packets,
            oversized_packets: counts.oversized_packets,
            message_limit_packets: self.state.endpoint.arriving_excess(),
            datapath_dropped_packets: counts.drops,
            too_long_packets: counts.too_long_packets,
            checksum_error_packets: counts.checksum_error_packets,
            unauthenticated_packets: counts.unauthenticated_packets,
            unknown_session_packets: counts.unknown_session_packets,
            replayed_packets: counts.replayed_packets,
            handshakes: counts.handshakes,
            outdated_initiations: counts.outdated_initiations,
            wrong_transport_packets: stats.wrong_transport_packets + counts.wrong_transport_packets,
            ..stats
        }
    }

    /// Returns the numbers of messages by their state.
    pub fn messages(&self) -> MessageCounts {
        let state = &self.state;
        MessageCounts {
            sending: state.outbox.len() + state.local.len(),
            queued: state.peers.n_waiting(),
            receiving: state.inbox.len(),
        }
    }

    /// Returns the number of its peers that have responded.
    pub fn n_responsive_peers(&self) -> usize {
        self.state.peers.n_responsive()
    }

    /// Returns the views of its peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerView> {
        let NodeState { peers, outbox, config, .. } = &self.state;
        let headers = self.datapath.overhead().saturating_sub(LINK_OVERHEAD);
        peers.views(config.node, headers, |peer| outbox.count_to(peer))
    }

    /// Returns the views of its networks to each of its peers; none if there is only one.
    pub fn rails(&self) -> impl Iterator<Item = RailView> {
        self.state.peers.rail_views(self.state.config.node).map(|view| {
            let (packets_sent, sent_bytes) = self.datapath.sent_over(view.peer, view.rail);
            RailView { packets_sent, sent_bytes, ..view }
        })
    }

    /// Sends hellos to all peers, to measure their round trips and compare settings. Unresponsive
    /// peers are skipped increasingly often.
    pub fn send_hellos(&mut self, now: Time) {
        let NodeState { peers, config, .. } = &mut self.state;
        peers.send_hellos(now, config.node);
    }

    /// Changes the peers, the rate and the waiting times to those of `config`. The node, its
    /// transport, its incarnation and the maximum message length do not change. Messages for
    /// removed nodes fail.
    pub fn set_config(&mut self, now: Time, config: NodeConfig) {
        let state = &mut self.state;
        let NodeConfig { rate, burst, connect_timeout, coalescing, busy_poll, agreement, .. } =
            config;
        state.pacer.set(rate, burst);
        state.send_queues.set_rate(rate);
        state.config = NodeConfig {
            rate,
            burst,
            connect_timeout,
            coalescing,
            busy_poll,
            agreement,
            ..state.config.clone()
        };
        let (gone, waited) = state.peers.set(now, &config.peers);
        state.config.peers = config.peers;
        for peer in gone {
            state.deferred.forget_peer(peer);
            state.refusals.forget_peer(peer);
            let queued = state.send_queues.forget_peer(peer);
            state.endpoint.forget_peer(now, peer);
            state.on_events(Failure::UnknownPeer);
            for msg in queued {
                state.end_submission(msg, Outcome::Failed(Failure::UnknownPeer));
            }
        }
        for Submission { app, ticket, .. } in waited {
            state.finish(app, ticket, Outcome::Failed(Failure::UnknownPeer));
        }
        state.peers.call_all(now, state.config.node);
    }

    /// Changes the parameters of the protocol, if the endpoint can.
    pub fn reconfigure(&mut self, now: Time, protocol: Arc<E::Config>) -> bool {
        self.state.endpoint.reconfigure(now, protocol)
    }

    /// Returns the protocol's endpoint.
    pub fn endpoint(&self) -> &E {
        &self.state.endpoint
    }

    /// Returns the node's applications.
    pub fn apps(&self) -> &A {
        &self.state.apps
    }

    /// Returns the node's applications, mutable.
    pub fn apps_mut(&mut self) -> &mut A {
        &mut self.state.apps
    }

    /// Returns the endpoint and the applications, for owners that pass data between them. The node
    /// must run an iteration afterwards.
    pub fn parts_mut(&mut self) -> (&mut E, &mut A) {
        (&mut self.state.endpoint, &mut self.state.apps)
    }

    /// Returns the node's datapath.
    pub fn datapath(&self) -> &D {
        &self.datapath
    }

    /// Returns the node's datapath, for owners that change its settings.
    pub fn datapath_mut(&mut self) -> &mut D {
        &mut self.datapath
    }

    /// Makes messages that are submitted from now on fail at once; those in flight continue.
    pub fn reject_submissions(&mut self) {
        self.state.is_stopping = true;
    }

    /// Returns true if this node has no messages in flight.
    pub fn is_drained(&self) -> bool {
        let NodeState { outbox, peers, local, .. } = &self.state;
        outbox.len() + peers.n_waiting() + local.len() == 0
    }

    /// Reports all messages in flight as failed.
    pub fn fail_all(&mut self) {
        self.state.fail_all();
    }
}
