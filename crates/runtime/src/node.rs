//! The node: one endpoint, its peers, its applications and its datapath.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rampmeter_core::packet::Marks;
use rampmeter_core::{Bytes, Endpoint, NodeId, Priority, Purpose, Rate, Rng, Span, Time};

use crate::app::{Applications, Failure, Outcome, Submission};
use crate::datapath::{Datapath, Route};
use crate::inbox::{Absences, Held, Inbox};
use crate::outbox::Outbox;
use crate::pacer::Pacer;
use crate::peer::Peers;
use crate::state::{Note, State};
use crate::stats::NodeStats;
use crate::wire::{Incarnation, TransportId};

/// What a node must be told.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which node this is.
    pub node: NodeId,
    /// The protocol's number on the wire.
    pub transport: TransportId,
    /// This life of the node: a number that no earlier life had.
    pub incarnation: Incarnation,
    /// Rate at which it sends at most.
    pub rate: Rate,
    /// Bytes that may leave together when the node was late.
    pub burst: Bytes,
    /// Bytes of the longest message that it sends or takes: at most 1 GiB.
    pub message_max: u32,
    /// How long a message waits for a receiver that has not been heard yet.
    pub patience: Span,
    /// By node number: the address that its packets must come from, if that is to be checked, and
    /// `None` where there is no such node.
    pub peers: Vec<Option<Option<IpAddr>>>,
    /// Seed of the endpoint's random choices.
    pub seed: u64,
}

impl NodeConfig {
    /// The longest message that any node can take.
    pub const MESSAGE_MAX: u32 = 1 << 30;
    /// Messages that a peer may have under way to a node: more than any peer with programs of the
    /// usual depths has, and a few megabytes of memory.
    pub const ARRIVING_MAX: u32 = 1 << 16;
}

/// Packets that are sent or received before the other direction has its turn.
pub(crate) const BATCH: usize = 64;

/// One host's transport at work.
pub struct Node<E: Endpoint, D, A: Applications> {
    datapath: D,
    state: State<E, A>,
}

impl<E: Endpoint, D: Datapath, A: Applications> Node<E, D, A> {
    /// A node that starts now.
    pub fn new(
        config: NodeConfig,
        protocol: Arc<E::Config>,
        datapath: D,
        apps: A,
        now: Time,
    ) -> Self {
        let life = u64::from(config.incarnation.get()) << 32 | u64::from(config.node.get());
        let rng = |purpose| Rng::new(config.seed, life, purpose);
        let mut endpoint = E::new(protocol, config.node, rng(Purpose::Endpoint), now);
        endpoint.limit_arriving(NodeConfig::ARRIVING_MAX);
        let state = State {
            endpoint,
            apps,
            peers: Peers::new(&config.peers, rng(Purpose::Hello)),
            outbox: Outbox::new(),
            inbox: Inbox::new(),
            absences: Absences::default(),
            held: Held::default(),
            pacer: Pacer::new(config.rate, config.burst),
            rng: rng(Purpose::Spray),
            notes: VecDeque::new(),
            told: now,
            is_stopping: false,
            stats: NodeStats::default(),
            config,
        };
        Self { datapath, state }
    }

    /// Does all that is due, and says when it wants to be called again; not later than what becomes
    /// readable among [`Datapath::wakers`] and [`Applications::wakers`].
    ///
    /// # Errors
    /// Those of the datapath that no later attempt would mend.
    pub fn turn(&mut self, now: Time) -> io::Result<Time> {
        let state = &mut self.state;
        let at = state.as_of(now);
        let n = self.datapath.receive(now, |arrived| state.on_datagram(at, arrived))?;
        state.take_submissions(at);
        state.fire(at, now);
        state.call_peers(now);
        let room_at = state.release_held(now);
        let is_full = self.transmit(now)?;
        if n >= BATCH || is_full {
            return Ok(now);
        }
        let state = &self.state;
        let mut next = state.endpoint.poll_timeout().min(state.peers.deadline()).min(room_at);
        if state.endpoint.wants_transmit() {
            next = next.min(state.pacer.free_at().max(now));
        }
        next = next.min(state.apps.next_submission());
        Ok(next.min(self.datapath.next_arrival()))
    }

    /// Sends what may be sent now. True if there is more.
    fn transmit(&mut self, now: Time) -> io::Result<bool> {
        let state = &mut self.state;
        while let Some(Note { dst, life, kind }) = state.notes.pop_front() {
            let envelope = state.envelope(dst, life, kind);
            let path = state.rng.bits() as u16;
            let route = Route { dst, class: Priority::HIGHEST, path, marks: Marks::NONE };
            let mut sent = 0;
            self.datapath.send(route, |out| {
                sent = envelope.encode(out).unwrap_or(0);
                sent
            })?;
            state.pacer.charge(now, sent + self.datapath.overhead());
            state.on_sent(sent);
        }
        let mut left = BATCH;
        while left > 0 && state.pacer.is_free(now) && state.endpoint.wants_transmit() {
            let Some(packet) = state.endpoint.poll_transmit(now) else { break };
            left -= 1;
            state.send(now, &packet, &mut self.datapath)?;
        }
        // Answers that sending has brought about, such as hellos, go out with the next batch.
        self.datapath.flush()?;
        Ok(left == 0 || !self.state.notes.is_empty())
    }

    /// Whether packets wait for the pace alone, so that it is worth being awake when it lets them
    /// go.
    pub fn has_due_packets(&self) -> bool {
        self.state.endpoint.wants_transmit()
    }

    /// What the node has counted.
    pub fn stats(&self) -> NodeStats {
        let (stats, datapath) = (self.state.stats, &self.datapath);
        let malformed = stats.malformed + datapath.malformed();
        let arriving_excess = self.state.endpoint.arriving_excess();
        NodeStats { malformed, arriving_excess, datapath_drops: datapath.drops(), ..stats }
    }

    /// Messages being sent, waiting for their receivers, and arriving.
    pub fn messages(&self) -> (usize, usize, usize) {
        let state = &self.state;
        (state.outbox.len(), state.peers.n_waiting(), state.inbox.len())
    }

    /// How many of its peers it has heard.
    pub fn n_peers_known(&self) -> usize {
        self.state.peers.n_known()
    }

    /// The protocol's endpoint.
    pub fn endpoint(&self) -> &E {
        &self.state.endpoint
    }

    /// The node's applications.
    pub fn apps(&self) -> &A {
        &self.state.apps
    }

    /// The node's applications.
    pub fn apps_mut(&mut self) -> &mut A {
        &mut self.state.apps
    }

    /// The node's datapath.
    pub fn datapath(&self) -> &D {
        &self.datapath
    }

    /// From now on messages that are submitted fail at once; those under way are finished.
    pub fn stop_taking(&mut self) {
        self.state.is_stopping = true;
    }

    /// Whether nothing is under way that this node sends.
    pub fn is_drained(&self) -> bool {
        self.state.outbox.len() == 0 && self.state.peers.n_waiting() == 0
    }

    /// Reports everything that is still under way as failed.
    pub fn fail_all(&mut self) {
        let state = &mut self.state;
        for Submission { app, ticket, .. } in state.peers.take_all_waiting() {
            state.finish(app, ticket, Outcome::Failed(Failure::Stopping));
        }
        for message in state.outbox.take_all() {
            state.finish(message.app, message.ticket, Outcome::Failed(Failure::Stopping));
        }
    }
}
