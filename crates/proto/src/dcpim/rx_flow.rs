//! A flow at its receiver: which packets are here, which have had tokens.

use rampmeter_core::{Span, Time};

use super::config::{Dcpim, Pair, TokenWindow};
use crate::parts::{ArrivingFlow, TokenCursor};

/// A flow's own part.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub(super) announced: Time,
    /// The parameters of the two ends.
    pub(super) pair: Pair,
    /// When the data of all tokens should be here; nothing is asked for before.
    pub(super) silent_until: Time,
    /// After how many others it was entered.
    pub(super) order: u64,
    tokens: TokenCursor,
    /// Tokens of this phase and of earlier ones for which no data has come.
    open: u32,
    open_before: u32,
    /// The latest phase that the flow knows of.
    phase: Phase,
    /// The first token and the first sequence number of this phase.
    phase_token: u32,
    phase_seq: u32,
    /// Data for a token of this phase has arrived.
    is_phase_answered: bool,
    /// Time at which the data of earlier tokens has arrived in an idle network, and which packet
    /// before `phase_seq` is then the next to be looked at.
    void_at: Time,
    revisit: u32,
    /// How often the wait of a full window has been doubled, because what was asked for anew came
    /// twice.
    patience: u32,
    /// Whether the sender has asked if the flow is complete.
    pub(super) asked: bool,
}

/// A phase of a receiver: its number since the start, and when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) number: u64,
    pub(super) began: Time,
}

/// How often the wait of a full window is doubled at most.
const PATIENCE_MAX: u32 = 6;

/// A flow that has been announced and is not complete.
pub(super) type RxFlow = ArrivingFlow<Progress>;

/// Whether a flow may have another token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Open,
    /// Not before this instant, unless data comes.
    FullUntil(Time),
}

impl Progress {
    /// A flow that is announced in `phase`.
    pub(super) fn new(now: Time, phase: Phase, pair: Pair) -> Self {
        Self {
            announced: now,
            pair,
            silent_until: Time::ZERO,
            order: 0,
            tokens: TokenCursor::new(now, 0),
            open: 0,
            open_before: 0,
            phase,
            phase_token: 0,
            phase_seq: 0,
            is_phase_answered: false,
            void_at: Time::NEVER,
            revisit: 0,
            patience: 0,
            asked: false,
        }
    }

    /// A short flow of `packets`: all are on their way (§3.2), so for as long as they need it
    /// stands as if each had had a token.
    pub(super) fn expecting(
        packets: u32,
        now: Time,
        phase: Phase,
        pair: Pair,
        silence: Span,
    ) -> Self {
        Self {
            tokens: TokenCursor::new(now, packets),
            silent_until: now + pair.mtu_time * u64::from(packets) + silence,
            // What comes unasked is not of a phase.
            phase_token: packets,
            ..Self::new(now, phase, pair)
        }
    }

    /// Returns true if tokens of earlier phases without data have expired at the sender. A
    /// congested core may hold their data for longer than a phase. So data of this phase must have
    /// arrived too, which left the sender after theirs.
    fn are_earlier_void(&self, now: Time) -> bool {
        self.is_phase_answered && now >= self.void_at
    }

    /// Tokens that count as in flight.
    fn in_flight(&self, dcpim: &Dcpim) -> u32 {
        match dcpim.config.token_window {
            TokenWindow::Number => self.tokens.open(),
            TokenWindow::Outstanding => self.open + self.open_before,
        }
    }
}

impl RxFlow {
    /// By what the matching prefers flows.
    pub(super) fn key(&self) -> (u32, u64) {
        (self.remaining(), self.state.announced.as_ps())
    }

    /// Until when it takes no part in matching and gets no tokens.
    #[inline]
    pub(super) fn silent_until(&self) -> Time {
        if self.is_held { Time::NEVER } else { self.state.silent_until }
    }

    /// Notes the number of the token whose data has come. Returns whether the token is of this
    /// phase.
    pub(super) fn see(&mut self, number: u32) -> bool {
        let state = &mut self.state;
        let is_of_phase = number >= state.phase_token;
        let open = if is_of_phase { &mut state.open } else { &mut state.open_before };
        *open = open.saturating_sub(1);
        state.is_phase_answered |= is_of_phase;
        state.tokens.see(number);
        is_of_phase
    }

    /// Takes note of the receiver's phase, before its tokens or packets change: tokens sent before
    /// it began expire soon. Flows without either take no part in the start of a phase.
    #[inline]
    pub(super) fn enter_phase(&mut self, phase: Phase, dcpim: &Dcpim) {
        let state = &mut self.state;
        if state.phase == phase {
            return;
        }
        state.phase = phase;
        state.open_before += std::mem::take(&mut state.open);
        state.phase_token = state.tokens.issued();
        state.phase_seq = state.tokens.next();
        state.is_phase_answered = false;
        state.revisit = self.got.first_missing();
        state.void_at = phase.began + dcpim.stragglers;
    }

    /// A packet has come twice. It was asked for anew while its data was held up, as in an
    /// over-subscribed core, so a full window waits longer from now on.
    pub(super) fn note_duplicate(&mut self, dcpim: &Dcpim) {
        if dcpim.config.token_window == TokenWindow::Outstanding {
            self.state.patience = (self.state.patience + 1).min(PATIENCE_MAX);
        }
    }

    /// Whether data that has come leaves room for tokens whatever the channels.
    pub(super) fn is_clocked(&self, dcpim: &Dcpim) -> bool {
        self.state.in_flight(dcpim) <= self.state.pair.bdp
    }

    /// Whether a link with `active` of the host's channels may send a token for it (§3.2, §3.4:
    /// each channel has 1/k of a window of one BDP). A window that has been full for long is
    /// opened: the tokens or the data are lost.
    pub(super) fn window(&mut self, now: Time, active: u8, dcpim: &Dcpim) -> Window {
        let Pair { bdp, channels, .. } = self.state.pair;
        let k = u32::from(channels);
        let active = u32::from(active);
        let state = &mut self.state;
        let reopens = state.tokens.last() + dcpim.window_timeout * (1 << state.patience);
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
                if state.are_earlier_void(now) {
                    state.open_before = 0;
                }
                let limit = (bdp * active).div_ceil(k).max(1);
                if state.in_flight(dcpim) >= limit && now >= reopens {
                    // Nothing is in flight any more: tokens start again at the first missing
                    // packet.
                    (state.open, state.open_before) = (0, 0);
                    state.tokens.rewind(&self.got);
                    state.void_at = Time::NEVER;
                }
                state.in_flight(dcpim) < limit
            }
        };
        if is_open {
            Window::Open
        } else {
            Window::FullUntil(reopens.max(now + super::link::AFTER))
        }
    }

    /// Takes the next packet to token, and the token's number. Packets that are missing come in
    /// cyclic order, those whose tokens have expired first; after the last of them the flow is
    /// silent while those in flight arrive.
    pub(super) fn take_token(&mut self, now: Time, dcpim: &Dcpim) -> (u32, u32) {
        let number = self.state.tokens.issue(now);
        self.state.open += 1;
        if let Some(seq) = self.take_expired(now, dcpim) {
            return (seq, number);
        }
        let (state, packets) = (&mut self.state, self.of.packets);
        let seq = state.tokens.advance(&self.got, packets);
        if TokenCursor::missing(&self.got, packets, state.tokens.next()) <= seq {
            state.silent_until = now + dcpim.silence;
            // What is still missing after the silence was lost.
            state.void_at = Time::NEVER;
            (state.open, state.open_before) = (0, 0);
        }
        (seq, number)
    }

    /// The next packet whose token was sent in an earlier phase and has expired.
    fn take_expired(&mut self, now: Time, dcpim: &Dcpim) -> Option<u32> {
        let state = &mut self.state;
        if dcpim.config.token_window == TokenWindow::Number || !state.are_earlier_void(now) {
            return None;
        }
        let seq = self.got.next_missing(state.revisit);
        if seq >= state.phase_seq {
            state.void_at = Time::NEVER;
            return None;
        }
        state.revisit = seq + 1;
        Some(seq)
    }
}
