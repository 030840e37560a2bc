//! Detection of the networks (rails) that carry packets to a peer and back.
//!
//! A node with several networks sends hellos over each of them, and the peer answers each on the
//! network on which it arrived. A network is up while its hellos are answered. Only an answer with
//! the hello's random number counts: missing packets, or packets that any host can forge, change no
//! state by themselves.
//!
//! * A network is down if [`FALL_HELLOS`] hellos in a row have had no answer, while another network
//!   answers. If no network answers, the peer is down or late, and the state of its networks is
//!   unknown.
//! * A network that is down is up again after [`RISE_HELLOS`] answers in a row, or after one if no
//!   other network answers.
//! * A network that has never answered is not used while another one has answered.
//!
//! Hellos are sent every [`EVERY`] while packets are exchanged with the peer, and
//! [`IDLE_INTERVALS`] times less often otherwise. With many peers the interval is longer, so that a
//! node sends at most one each [`PROBE_SPACING`] on average. Both directions of a network are
//! judged as one: if only one is broken, both ends avoid it.

use rampmeter_types::{NodeId, Span, Time};

use crate::datapath::RailSet;

/// Interval of hellos while packets are exchanged: several round trips of busy hosts.
const HELLO_INTERVAL: Span = Span::from_us(100_000);
/// Number of intervals between hellos if no packets are exchanged.
const IDLE_INTERVALS: u32 = 10;
/// Number of hellos in a row without an answer after which a network is down.
const FALL_HELLOS: usize = 3;
/// Number of answers in a row after which it is up again.
const RISE_HELLOS: u32 = 3;
/// Average interval of all hellos of a node over its networks.
const PROBE_SPACING: Span = Span::from_us(1_000);

/// State of a network to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RailState {
    /// No answer has arrived, and none is missing.
    #[default]
    Unknown,
    /// Hellos are answered.
    Up,
    /// Hellos are not answered, though another network answers.
    Down,
}

/// View of a network to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailView {
    /// Number of the peer.
    pub peer: NodeId,
    /// Number of the network: the index of its address in the peer's list.
    pub rail: u8,
    /// State of the network.
    pub state: RailState,
    /// Number of transitions to [`RailState::Down`].
    pub falls: u64,
    /// Datagrams sent over it, hellos included.
    pub packets_sent: u64,
    /// Bytes of these datagrams.
    pub sent_bytes: u64,
    /// Datagrams that arrived on it and passed all checks, without hellos.
    pub packets_received: u64,
    /// Bytes of these datagrams.
    pub received_bytes: u64,
}

/// Networks to one peer.
#[derive(Debug)]
pub(crate) struct Liveness {
    rails: Vec<RailHistory>,
    interval: Span,
    next_at: Time,
    /// Intervals since the latest hellos.
    n_unresponsive: u32,
    /// Number of packets exchanged up to the latest interval.
    exchanged: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RailHistory {
    state: RailState,
    /// Numbers of the latest hellos without an answer, the newest first.
    hellos: [Option<u32>; FALL_HELLOS],
    n_lost: usize,
    n_answered: u32,
    falls: u64,
    received: (u64, u64),
}

impl Liveness {
    /// Creates `n` networks in an unknown state; `n_peers` peers have as many.
    pub(crate) fn new(n: u8, n_peers: usize) -> Self {
        let interval = HELLO_INTERVAL.max(PROBE_SPACING * (u64::from(n) * n_peers as u64));
        let rails = vec![RailHistory::default(); n.into()];
        Self { rails, interval, next_at: Time::NEVER, n_unresponsive: 0, exchanged: 0 }
    }

    /// Returns the networks to send over; all if none has answered.
    pub(crate) fn up(&self) -> RailSet {
        let all = RailSet::first(self.rails.len() as u8);
        let is_up = |rail: &u8| self.rails[usize::from(*rail)].state == RailState::Up;
        let up = all.iter().filter(is_up).fold(RailSet::EMPTY, RailSet::with);
        if up.is_empty() { all } else { up }
    }

    /// Returns all networks.
    pub(crate) fn all(&self) -> RailSet {
        RailSet::first(self.rails.len() as u8)
    }

    /// Returns the time of the next [`Liveness::poll`].
    pub(crate) fn deadline(&self) -> Time {
        self.next_at
    }

    /// Probes all networks of a peer at once. This node has received the peer's first packet, or
    /// the first after a restart or an address change. It arrived on the network `rail`, if there
    /// is one.
    pub(crate) fn restart(&mut self, now: Time, rail: Option<u8>) {
        for watched in &mut self.rails {
            (watched.hellos, watched.n_lost) = ([None; FALL_HELLOS], 0);
        }
        if let Some(watched) = rail.and_then(|rail| self.rails.get_mut(usize::from(rail)))
            && watched.state == RailState::Unknown
        {
            watched.state = RailState::Up;
        }
        (self.next_at, self.n_unresponsive) = (now, IDLE_INTERVALS);
    }

    /// Counts a packet of the peer that arrived on `rail` and passed all checks.
    pub(crate) fn on_received(&mut self, rail: u8, bytes: usize) {
        if let Some(RailHistory { received, .. }) = self.rails.get_mut(usize::from(rail)) {
            *received = (received.0 + 1, received.1 + bytes as u64);
        }
    }

    /// Handles the answer to the hello with this number; returns false if there is no such hello.
    pub(crate) fn on_answer(&mut self, nonce: u32) -> bool {
        let is_it = |hello: &Option<u32>| *hello == Some(nonce);
        let Some(idx) = self.rails.iter().position(|w| w.hellos.iter().any(is_it)) else {
            return false;
        };
        let others_answer = self.is_another_answering(idx);
        let watched = &mut self.rails[idx];
        if let Some(hello) = watched.hellos.iter_mut().find(|hello| is_it(hello)) {
            *hello = None;
        }
        watched.n_lost = 0;
        watched.n_answered = watched.n_answered.saturating_add(1);
        let is_enough = match watched.state {
            RailState::Up => false,
            RailState::Unknown => true,
            RailState::Down => watched.n_answered >= RISE_HELLOS || !others_answer,
        };
        if is_enough {
            watched.state = RailState::Up;
        }
        true
    }

    /// Returns true if a network in use, apart from the `idx`-th, has answered lately.
    fn is_another_answering(&self, idx: usize) -> bool {
        let others = self.rails.iter().enumerate().filter(|(other, _)| *other != idx);
        others.map(|(_, w)| w).any(|w| w.state == RailState::Up && w.n_lost + 1 < FALL_HELLOS)
    }

    /// Judges the networks, and calls `hello` for the hellos that are due. `exchanged` counts
    /// packets to and from the peer, without hellos.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        exchanged: u64,
        mut nonce: impl FnMut() -> u32,
        mut hello: impl FnMut(u8, u32),
    ) {
        if now < self.next_at {
            return;
        }
        self.next_at = now + self.interval;
        if self.n_unresponsive == 0 {
            for watched in self.rails.iter_mut().filter(|watched| watched.hellos[0].is_some()) {
                watched.n_lost += 1;
                if watched.n_lost > 1 {
                    watched.n_answered = 0;
                }
            }
        }
        for idx in 0..self.rails.len() {
            let is_lost = self.rails[idx].n_lost >= FALL_HELLOS;
            if is_lost && self.is_another_answering(idx) {
                let watched = &mut self.rails[idx];
                watched.falls += u64::from(watched.state != RailState::Down);
                (watched.state, watched.n_answered) = (RailState::Down, 0);
            }
        }
        self.n_unresponsive += 1;
        let is_busy = std::mem::replace(&mut self.exchanged, exchanged) != exchanged;
        if !is_busy && !self.is_in_doubt() && self.n_unresponsive < IDLE_INTERVALS {
            return;
        }
        self.n_unresponsive = 0;
        for (rail, watched) in self.rails.iter_mut().enumerate() {
            watched.hellos.rotate_right(1);
            let nonce = nonce();
            watched.hellos[0] = Some(nonce);
            hello(rail as u8, nonce);
        }
    }

    /// Returns true if the next hellos are likely to change a state.
    fn is_in_doubt(&self) -> bool {
        self.rails.iter().any(|watched| match watched.state {
            RailState::Down => watched.n_answered > 0,
            RailState::Unknown | RailState::Up => (1..FALL_HELLOS).contains(&watched.n_lost),
        })
    }

    /// Returns the views of all networks.
    pub(crate) fn views(&self, peer: NodeId) -> impl Iterator<Item = RailView> {
        self.rails.iter().enumerate().map(move |(rail, watched)| RailView {
            peer,
            rail: rail as u8,
            state: watched.state,
            falls: watched.falls,
            packets_sent: 0,
            sent_bytes: 0,
            packets_received: watched.received.0,
            received_bytes: watched.received.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Span = Span::from_us(1_000);

    /// Networks to a peer whose answers take `rtt`, on simulated time.
    struct Net {
        liveness: Liveness,
        now: Time,
        rtt: Span,
        answers: Vec<(Time, u32)>,
        nonce: u32,
        n_hellos: usize,
        exchanged: u64,
    }

    impl Net {
        /// Creates a pair of nodes with all networks up.
        fn new(n: u8, rtt: Span) -> Self {
            let now = Time::ZERO + MS;
            let liveness = Liveness::new(n, 2);
            let (answers, nonce, n_hellos, exchanged) = (Vec::new(), 0, 0, 0);
            let mut net = Self { liveness, now, rtt, answers, nonce, n_hellos, exchanged };
            net.liveness.restart(now, None);
            net.run(MS * 1_000, RailSet::first(n), true);
            assert_eq!(net.liveness.up(), RailSet::first(n));
            net
        }

        /// Runs for `span`, in which `alive` carry packets. Returns the times at which the networks
        /// in use changed.
        fn run(&mut self, span: Span, alive: RailSet, is_busy: bool) -> Vec<(Span, RailSet)> {
            let (begins, mut changes) = (self.now, Vec::new());
            let mut before = self.liveness.up();
            while self.now < begins + span {
                self.now += MS;
                self.exchanged += u64::from(is_busy);
                let now = self.now;
                let liveness = &mut self.liveness;
                self.answers.retain(|&(at, nonce)| {
                    if at <= now {
                        liveness.on_answer(nonce);
                    }
                    at > now
                });
                let (answers, nonce, n_hellos) =
                    (&mut self.answers, &mut self.nonce, &mut self.n_hellos);
                let next = || {
                    *nonce += 1;
                    *nonce
                };
                let rtt = self.rtt;
                liveness.poll(now, self.exchanged, next, |rail, nonce| {
                    *n_hellos += 1;
                    if alive.contains(rail) {
                        answers.push((now + rtt, nonce));
                    }
                });
                if liveness.up() != before {
                    before = liveness.up();
                    changes.push((now.saturating_since(begins), before));
                }
            }
            changes
        }
    }

    fn both() -> RailSet {
        RailSet::first(2)
    }

    #[test]
    fn failed_networks_are_unused_after_four_intervals_until_three_answers() {
        let mut net = Net::new(2, MS);
        let one = RailSet::EMPTY.with(1);
        let changes = net.run(MS * 5_000, one, true);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(changes[0].0 <= HELLO_INTERVAL * 4 && changes[0].1 == one, "{changes:?}");
        let changes = net.run(MS * 5_000, both(), true);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(changes[0].0 <= HELLO_INTERVAL * 4 && changes[0].1 == both(), "{changes:?}");
        assert_eq!(net.liveness.views(NodeId::new(1)).map(|v| v.falls).sum::<u64>(), 1);
    }

    #[test]
    fn a_failed_idle_network_is_unused_after_1_5_seconds() {
        let mut net = Net::new(2, MS);
        net.run(MS * 1_000, both(), false);
        let changes = net.run(MS * 5_000, RailSet::EMPTY.with(0), false);
        assert!(changes.len() == 1 && changes[0].0 <= MS * 1_500, "{changes:?}");
    }

    #[test]
    fn an_outage_of_all_networks_excludes_none() {
        let mut net = Net::new(3, MS);
        assert_eq!(net.run(MS * 20_000, RailSet::EMPTY, true), []);
        assert_eq!(net.run(MS * 20_000, RailSet::first(3), true), []);
    }

    #[test]
    fn a_network_that_is_dead_from_the_start_is_never_used() {
        let mut liveness = Liveness::new(2, 2);
        liveness.restart(Time::ZERO, Some(1));
        assert_eq!(liveness.up(), RailSet::EMPTY.with(1));
    }

    #[test]
    fn the_last_network_is_replaced_by_the_first_that_answers() {
        let mut net = Net::new(2, MS);
        net.run(MS * 2_000, RailSet::EMPTY.with(1), true);
        net.run(MS * 2_000, RailSet::EMPTY, true);
        assert_eq!(net.liveness.up(), RailSet::EMPTY.with(1));
        let changes = net.run(MS * 2_000, RailSet::EMPTY.with(0), true);
        assert_eq!(changes.last().map(|(_, up)| *up), Some(RailSet::EMPTY.with(0)), "{changes:?}");
        assert!(changes.last().unwrap().0 <= HELLO_INTERVAL * 8, "{changes:?}");
    }

    #[test]
    fn answers_to_no_hello_change_nothing() {
        let mut net = Net::new(2, MS);
        net.run(MS * 2_000, RailSet::EMPTY.with(1), true);
        for nonce in 1_000_000..1_100_000 {
            assert!(!net.liveness.on_answer(nonce));
        }
        assert_eq!(net.liveness.up(), RailSet::EMPTY.with(1));
    }

    #[test]
    fn many_peers_are_probed_less_often() {
        let n_hellos = |n_peers| {
            let mut net = Net::new(2, MS);
            net.liveness.interval = Liveness::new(2, n_peers).interval;
            net.n_hellos = 0;
            net.run(MS * 10_000, both(), true);
            net.n_hellos
        };
        assert!((198..=202).contains(&n_hellos(2)));
        assert!((18..=22).contains(&n_hellos(500)), "{}", n_hellos(500));
    }

    proptest! {
        /// A network is always in use. If networks carry packets for a while, exactly those are in
        /// use.
        #[test]
        fn networks_that_carry_no_packets_are_eventually_unused(
            n in 2..=4u8,
            rtt_ms in 1..250u64,
            spans in prop::collection::vec((0..3_000u64, any::<u8>(), any::<bool>()), 1..8),
        ) {
            let mut net = Net::new(n, MS * rtt_ms);
            for (ms, bits, is_busy) in spans {
                let alive =
                    (0..n).filter(|r| bits >> r & 1 == 1).fold(RailSet::EMPTY, RailSet::with);
                net.run(MS * ms, alive, is_busy);
                prop_assert!(!net.liveness.up().is_empty());
                net.run(MS * 5_000, alive, true);
                if !alive.is_empty() {
                    prop_assert_eq!(net.liveness.up(), alive);
                }
            }
        }
    }
}
