//! State of a node between its packets.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rampmeter_types::{Endpoint, MsgId, NodeId, Purpose, Rate, Rng, Time};

use super::bundles::Bundles;
use super::config::NodeConfig;
use super::local::LocalCopies;
use super::transmit::{ControlNote, Paths};
use crate::app::{Applications, Failure};
use crate::datapath::Report;
use crate::inbox::{AbsentServices, DeferredMessages, Inbox, Refusals};
use crate::outbox::Outbox;
use crate::pacer::Pacer;
use crate::peer::Peers;
use crate::send_queues::SendQueues;
use crate::stats::NodeStats;

/// Maximum number of packets that are sent, or received, before the other direction.
pub(super) const BATCH: usize = 64;

/// State of a node without its datapath.
pub(super) struct NodeState<E: Endpoint, A: Applications> {
    pub(super) config: NodeConfig,
    pub(super) endpoint: E,
    pub(super) apps: A,
    pub(super) peers: Peers<A::Payload>,
    /// Messages with a bound that were queued for their receiver, by the end of the bound. The
    /// endpoint counts the bound from when it received them.
    pub(super) overdue: BTreeSet<(Time, MsgId)>,
    pub(super) outbox: Outbox<A::Payload>,
    /// Messages of the outbox that the endpoint has not received yet.
    pub(super) send_queues: SendQueues,
    pub(super) inbox: Inbox<A::Assembly>,
    pub(super) absences: AbsentServices,
    pub(super) deferred: DeferredMessages,
    pub(super) refusals: Refusals,
    pub(super) local: LocalCopies<A::Payload, A::Assembly>,
    pub(super) pacer: Pacer,
    pub(super) rng: Rng,
    /// The node's own packets to send, the oldest first.
    pub(super) notes: VecDeque<ControlNote>,
    /// Control packets to send at the end of the iteration.
    pub(super) bundles: Bundles,
    pub(super) paths: Paths,
    /// Latest time passed to the endpoint, which must never decrease.
    pub(super) endpoint_time: Time,
    /// Time of the present iteration.
    pub(super) iteration_at: Time,
    /// Time of the latest iteration with a submission, or a packet of a peer's known incarnation.
    /// Floods of other packets do not keep the node awake.
    pub(super) active_at: Time,
    pub(super) is_stopping: bool,
    /// Time of the next check of messages to peers with other settings.
    pub(super) mismatch_at: Time,
    pub(super) stats: NodeStats,
}

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    pub(super) fn new(
        config: NodeConfig,
        protocol: Arc<E::Config>,
        mut apps: A,
        datagram_max: usize,
        n_rails: u8,
        now: Time,
    ) -> Self {
        let identity = u64::from(config.incarnation.get()) << 32 | u64::from(config.node.get());
        let rng = |purpose| Rng::new(config.seed, identity, purpose);
        let mut endpoint = E::new(protocol, config.node, rng(Purpose::Endpoint), now);
        endpoint.limit_arriving(NodeConfig::ARRIVING_MAX);
        if let Some(promise) = endpoint.latency_bound() {
            apps.on_promise(promise);
        }
        let mut peers = Peers::new(&config.peers, datagram_max, n_rails, rng(Purpose::Hello));
        peers.call_all(now, config.node);
        Self {
            endpoint,
            apps,
            peers,
            overdue: BTreeSet::new(),
            outbox: Outbox::new(),
            send_queues: SendQueues::new(config.rate),
            inbox: Inbox::new(),
            absences: AbsentServices::default(),
            deferred: DeferredMessages::default(),
            refusals: Refusals::default(),
            local: LocalCopies::default(),
            pacer: Pacer::new(config.rate, config.burst),
            rng: rng(Purpose::Spray),
            notes: VecDeque::new(),
            bundles: Bundles::default(),
            paths: Paths::new(config.run),
            endpoint_time: now,
            iteration_at: now,
            active_at: Time::ZERO,
            is_stopping: false,
            mismatch_at: Time::NEVER,
            stats: NodeStats::default(),
            config,
        }
    }

    /// Returns the time from which this iteration starts: an overdue timer's deadline, at most one
    /// burst ago. Arrivals are handled first, then timers at their scheduled times, so that a
    /// protocol that paces by timers catches up as the pacer does.
    pub(super) fn as_of(&self, now: Time) -> Time {
        let earliest = self.pacer.earliest(now).max(self.endpoint_time);
        self.endpoint.poll_timeout().max(earliest).min(now)
    }

    /// Handles a report of the datapath about a peer.
    pub(super) fn on_report(&mut self, now: Time, peer: NodeId, report: Report) {
        match report {
            Report::TooLong(len) => self.peers.on_refused(now, peer, len),
            Report::OtherTransport(theirs) => self.on_other_transport(now, peer, theirs),
            Report::OtherKey => self.peers.on_other_key(peer),
        }
    }

    /// Sets the rate to that of the networks in use: the maximum number to any one peer, of
    /// `n_rails`.
    pub(super) fn pace(&mut self, n_rails: u8) {
        let used = self.peers.rails().map(|(_, up)| up.len()).max().unwrap_or(n_rails);
        let NodeConfig { rate, burst, .. } = self.config;
        let share = rate.as_bps() / u64::from(n_rails) * u64::from(used);
        let share = if used == n_rails { None } else { Rate::from_bps(share) };
        self.pacer.set(share.unwrap_or(rate), burst);
    }

    /// Fires the timers that are due, at most a batch, from the time `at` on.
    pub(super) fn fire(&mut self, mut at: Time, now: Time) {
        for _ in 0..BATCH {
            let due = self.endpoint.poll_timeout();
            if due > now {
                break;
            }
            at = at.max(due);
            self.endpoint.handle_timeout(at);
            self.on_events(Failure::Unreachable);
        }
        self.endpoint_time = now;
    }

    /// Returns the time of the next timer, hello, packet or submission.
    pub(super) fn next_turn(&self, now: Time) -> Time {
        let overdue = self.overdue.first().map_or(Time::NEVER, |(ends, _)| *ends);
        let mut next = self.endpoint.poll_timeout().min(self.peers.deadline()).min(overdue);
        next = next.min(self.mismatch_at);
        if self.endpoint.wants_transmit() {
            next = next.min(self.pacer.free_at().max(now));
        }
        if !self.bundles.is_empty() {
            next = next.min(self.bundles.opened_at() + self.config.coalescing);
        }
        next.min(self.apps.next_submission())
    }
}
