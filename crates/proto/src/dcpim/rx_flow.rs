//! A flow at its receiver: packets that have arrived, and packets that have had tokens.
//!
//! The problem: a matched source should send at the rate of its channels, but must not fill queues.
//! Other traffic, such as short flows, uses the same links without a match.
//!
//! The simple way sends all tokens of a data phase at once, or paces them by time alone. Data that
//! a queue delays then does not slow the tokens, so queues grow for the whole phase. If tokens are
//! replaced only when their data arrives, each lost packet reduces the window forever.
//!
//! The present way is token clocking (§3.2). Each link (`link`) paces tokens at its channels' share
//! of the line rate. A flow has at most that share of one BDP in flight. A full window stalls the
//! link until data arrives. The window reopens if no token was sent for a timeout; its packets or
//! tokens count as lost. Which tokens are in flight depends on [`TokenWindow`]:
//!
//! * `Outstanding` (the paper): tokens without data. Those of earlier phases are void when data of
//!   this phase has arrived and their time has passed. Their packets get the first new tokens.
//! * `Number` (the authors' simulator): the distance from the latest token with data to the last
//!   one. Any data closes earlier gaps.
//!
//! After every missing packet has had a token, the flow waits while those in flight arrive.
//! Then tokens restart at the missing packets. A short flow starts in this state, since all of its
//! packets were sent at once. Behind a narrow core missing packets may be queued and not lost.
//! There the flow requests one packet alone, the probe. Its data shows that the others were lost,
//! since they were requested earlier.
//!
//! Hazards: a repair that is too early sends packets twice and lengthens the queue that caused it.
//! So duplicates double the wait of a full window, and waits are as long as data has lately taken
//! (`backlog`). A sender drops a token when its time has passed
//! (`tokens_expire_a_grace_period_after_their_phase`), which this side only infers. At most a
//! window is requested and missing (`a_matched_source_gets_a_token_a_packet_time_up_to_a_window`).

use rampmeter_types::{Span, Time};

use super::config::{Dcpim, Pair, TokenWindow};
use super::stats::DcpimStats;
use crate::toolkit::{ArrivingFlow, IssuedToken, TokenCursor};

/// The flow state of dcPIM.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) announced: Time,
    /// The parameters of the pair of hosts.
    pub(super) pair: Pair,
    /// Time at which the data of all tokens should have arrived. The flow gets no tokens before.
    pub(super) idle_until: Time,
    /// Number of flows that were entered before it.
    pub(super) order: u64,
    tokens: TokenCursor,
    /// Tokens of this phase and of earlier ones for which no data has arrived.
    n_open_tokens: u32,
    n_open_earlier: u32,
    /// The latest phase that the flow has entered.
    phase: Phase,
    /// The first token and the first sequence number of this phase.
    phase_token: u32,
    phase_seq: u32,
    /// Data for a token of this phase has arrived.
    is_phase_answered: bool,
    /// Time at which the data of earlier tokens has arrived in an idle network, and the packet
    /// before `phase_seq` that is then examined next.
    earlier_expire_at: Time,
    revisit: u32,
    /// Number of times that the wait of a full window has been doubled, because requested packets
    /// arrived twice.
    n_doublings: u32,
    /// True if every missing packet has had a token or was sent without. After their time has
    /// passed, they were lost or a congested core holds them up.
    is_tail: bool,
    /// The token that shows which of the two is the case, and the number of such tokens since data
    /// has arrived for one.
    probe: Option<u32>,
    probes: u32,
    /// True if the sender has sent a finish.
    pub(super) has_finish_request: bool,
}

/// A phase of a receiver: its number since the start, and the time at which it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) number: u64,
    pub(super) began_at: Time,
}

/// Maximum number of times that the wait of a full window is doubled.
const DOUBLINGS_MAX: u32 = 6;

/// A flow that has been announced and is not complete.
pub(super) type RxFlow = ArrivingFlow<Progress>;

/// Permission of a flow to have another token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Open,
    /// No token before this instant, unless data arrives.
    FullUntil(Time),
}

impl Progress {
    /// Creates the state of a flow that is announced in `phase`.
    pub(super) fn new(now: Time, phase: Phase, pair: Pair) -> Self {
        Self {
            announced: now,
            pair,
            idle_until: Time::ZERO,
            order: 0,
            tokens: TokenCursor::new(now, 0),
            n_open_tokens: 0,
            n_open_earlier: 0,
            phase,
            phase_token: 0,
            phase_seq: 0,
            is_phase_answered: false,
            earlier_expire_at: Time::NEVER,
            revisit: 0,
            n_doublings: 0,
            is_tail: false,
            probe: None,
            probes: 0,
            has_finish_request: false,
        }
    }

    /// Creates the state of a short flow of `packets`, which are all in flight (§3.2). For the time
    /// that they need, it is as if each had had a token.
    pub(super) fn with_unscheduled(
        packets: u32,
        now: Time,
        phase: Phase,
        pair: Pair,
        timeout: Span,
    ) -> Self {
        Self {
            tokens: TokenCursor::new(now, packets),
            idle_until: now + pair.mtu_time * u64::from(packets) + timeout,
            // Packets without tokens belong to no phase.
            phase_token: packets,
            is_tail: true,
            ..Self::new(now, phase, pair)
        }
    }

    /// Returns true if tokens of earlier phases without data have expired at the sender. A
    /// congested core may hold their data for longer than a phase. So data of this phase, which the
    /// sender sent after theirs, must have arrived too.
    fn are_earlier_expired(&self, now: Time) -> bool {
        self.is_phase_answered && now >= self.earlier_expire_at
    }

    /// Returns the number of tokens that count as in flight.
    fn in_flight(&self, dcpim: &Dcpim) -> u32 {
        match dcpim.config.token_window {
            TokenWindow::Number => self.tokens.open(),
            TokenWindow::Outstanding => self.n_open_tokens + self.n_open_earlier,
        }
    }
}

impl RxFlow {
    /// Returns the key by which the matching prefers flows.
    pub(super) fn key(&self) -> (u32, u64) {
        (self.remaining(), self.state.announced.as_ps())
    }

    /// Returns the time until which it takes no part in matching and gets no tokens.
    #[inline]
    pub(super) fn idle_until(&self) -> Time {
        if self.is_paused { Time::NEVER } else { self.state.idle_until }
    }

    /// Records the number of the token whose data has arrived. Returns true if the token is of this
    /// phase.
    pub(super) fn on_token_data(&mut self, number: u32) -> bool {
        let state = &mut self.state;
        let is_of_phase = number >= state.phase_token;
        let open = if is_of_phase { &mut state.n_open_tokens } else { &mut state.n_open_earlier };
        *open = open.saturating_sub(1);
        state.is_phase_answered |= is_of_phase;
        state.tokens.on_data(number);
        if state.probe.is_some_and(|probe| number >= probe) {
            self.end_probe();
        }
        is_of_phase
    }

    /// Data has arrived that was requested later than all missing packets, so these were lost.
    fn end_probe(&mut self) {
        let state = &mut self.state;
        (state.probe, state.probes, state.is_tail) = (None, 0, false);
        (state.n_open_tokens, state.n_open_earlier) = (0, 0);
        state.tokens.rewind(&self.received);
        (state.idle_until, state.earlier_expire_at) = (Time::ZERO, Time::NEVER);
    }

    /// Records the receiver's phase, before the flow's tokens or packets change. Tokens sent before
    /// it began expire soon. A flow without either has no work at the start of a phase. Data takes
    /// `held_up` if the core is congested.
    #[inline]
    pub(super) fn enter_phase(&mut self, phase: Phase, held_up: Span) {
        let state = &mut self.state;
        if state.phase == phase {
            return;
        }
        state.phase = phase;
        state.n_open_earlier += std::mem::take(&mut state.n_open_tokens);
        state.phase_token = state.tokens.issued();
        state.phase_seq = state.tokens.next();
        state.is_phase_answered = false;
        state.revisit = self.received.first_missing();
        state.earlier_expire_at = match state.n_open_earlier {
            // The next tokens are for packets that have none, or whose earlier ones are void.
            0 => Time::NEVER,
            _ => phase.began_at + state.pair.late_data_time.max(held_up),
        };
    }

    /// Records a duplicate packet. It was requested twice because its data was held up, as in an
    /// over-subscribed core. So a full window waits longer from now on.
    pub(super) fn on_duplicate(&mut self, dcpim: &Dcpim) {
        if dcpim.config.token_window == TokenWindow::Outstanding {
            self.state.n_doublings = (self.state.n_doublings + 1).min(DOUBLINGS_MAX);
        }
    }

    /// Returns true if the window is open after arrived data, for any number of channels.
    pub(super) fn is_clocked(&self, dcpim: &Dcpim) -> bool {
        self.state.in_flight(dcpim) <= self.state.pair.bdp
    }

    /// Returns the permission of a link with `active` of the host's channels to send a token for
    /// the flow. Each channel has 1/k of a window of one BDP (§3.2, §3.4). A window that stays full
    /// for too long is reopened. Its tokens or data are assumed lost, unless recent data took
    /// `held_up`.
    pub(super) fn window(&mut self, now: Time, active: u8, held_up: Span, dcpim: &Dcpim) -> Window {
        let Pair { bdp, channels, window_timeout, .. } = self.state.pair;
        let k = u32::from(channels);
        let active = u32::from(active);
        let state = &mut self.state;
        let wait = window_timeout * (1 << state.n_doublings);
        let reopens = state.tokens.last() + wait.max(held_up);
        let is_open = match dcpim.config.token_window {
            TokenWindow::Number => {
                let low = bdp / k * active;
                if state.in_flight(dcpim) > low && now >= reopens {
                    state.tokens.reopen(low);
                }
                // The limit is bdp active / k without rounding.
                state.in_flight(dcpim) * k <= bdp * active
            }
            TokenWindow::Outstanding => {
                if state.are_earlier_expired(now) {
                    state.n_open_earlier = 0;
                }
                let limit = (bdp * active).div_ceil(k).max(1);
                if state.in_flight(dcpim) >= limit && now >= reopens {
                    // Nothing is in flight any more: tokens restart at the first missing packet.
                    (state.n_open_tokens, state.n_open_earlier) = (0, 0);
                    state.tokens.rewind(&self.received);
                    state.earlier_expire_at = Time::NEVER;
                    state.is_tail = true;
                }
                state.in_flight(dcpim) < limit
            }
        };
        if is_open {
            Window::Open
        } else {
            Window::FullUntil(reopens.max(now + super::link::TIMER_DELAY))
        }
    }

    /// Takes the next packet to token, and the token's number. Missing packets are taken in cyclic
    /// order, those whose tokens have expired first. After the last of them the flow pauses while
    /// those in flight arrive, for `held_up` or longer.
    pub(super) fn take_token(
        &mut self,
        now: Time,
        held_up: Span,
        dcpim: &Dcpim,
        stats: &mut DcpimStats,
    ) -> IssuedToken {
        stats.tokens_sent += 1;
        let number = self.state.tokens.issue(now);
        self.state.n_open_tokens += 1;
        if self.state.is_tail && dcpim.may_hold_up() {
            stats.tokens_reissued += 1;
            return IssuedToken { seq: self.take_probe(now, number, held_up), number };
        }
        if let Some(seq) = self.take_expired(now, dcpim) {
            stats.tokens_reissued += 1;
            return IssuedToken { seq, number };
        }
        let (state, packets) = (&mut self.state, self.announcement.packets);
        let (seq, is_again) = state.tokens.advance(&self.received, packets);
        stats.tokens_reissued += u64::from(is_again);
        if TokenCursor::missing(&self.received, packets, state.tokens.next()) <= seq {
            state.idle_until = now + state.pair.data_timeout.max(held_up);
            state.is_tail = true;
            // Packets that are still missing after that pause were lost.
            state.earlier_expire_at = Time::NEVER;
            (state.n_open_tokens, state.n_open_earlier) = (0, 0);
        }
        IssuedToken { seq, number }
    }

    /// Requests the first missing packet alone. The core may hold up all of them, and requests for
    /// packets that wait there would lengthen its queues. Each further one waits twice as long, up
    /// to 64 times.
    fn take_probe(&mut self, now: Time, number: u32, held_up: Span) -> u32 {
        let state = &mut self.state;
        let wait = state.pair.data_timeout * (1 << state.probes.min(DOUBLINGS_MAX));
        state.idle_until = now + wait.max(held_up);
        state.probes += 1;
        state.probe = state.probe.or(Some(number));
        self.received.first_missing()
    }

    /// Takes the next packet whose token was sent in an earlier phase and has expired.
    fn take_expired(&mut self, now: Time, dcpim: &Dcpim) -> Option<u32> {
        let state = &mut self.state;
        if dcpim.config.token_window == TokenWindow::Number || !state.are_earlier_expired(now) {
            return None;
        }
        let seq = self.received.next_missing(state.revisit);
        if seq >= state.phase_seq {
            state.earlier_expire_at = Time::NEVER;
            return None;
        }
        state.revisit = seq + 1;
        Some(seq)
    }
}
