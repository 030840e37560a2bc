//! Time for which a congested core, or the last port, holds up the data of a receiver.

use rampmeter_types::{Receipt, Span, Time};

use super::config::{Dcpim, TokenWindow};
use crate::toolkit::{TokenDelay, TokenId, UnscheduledTime};

/// Fresh packets that make up for one duplicate.
const PER_DUPLICATE: u32 = 16;

/// Score at which data counts as held up: 128 duplicates beyond one packet in 17.
const DELAYED_SCORE: u32 = 128 * PER_DUPLICATE;

/// Largest score, which 8192 fresh packets reduce to none.
const SCORE_MAX: u32 = 4 * DELAYED_SCORE;

/// Longest timeout, in keep-alive intervals of a sender.
const KEEPALIVES: u64 = 16;

/// Delay of data in a congested core. Data counts as held up if many packets are duplicates, or if
/// it takes longer than a token is valid. Then missing packets are queued in the core and not lost.
/// A receiver waits for them as long as recent data has taken (RFC 6298).
#[derive(Debug)]
pub(super) struct Backlog {
    delay: TokenDelay,
    /// Rises with each duplicate, and falls with each other packet.
    score: u32,
    is_repeated: bool,
    /// True if data takes longer than a phase and a round trip.
    is_slow: bool,
    slow: Span,
    /// False in a network of full bisection bandwidth, or if any data closes earlier gaps, so that
    /// duplicates are rare.
    is_watched: bool,
    rtt: Span,
    /// Packets of announced short flows; left out if any data closes earlier gaps.
    unscheduled: Option<UnscheduledTime>,
}

impl Backlog {
    pub(super) fn new(dcpim: &Dcpim) -> Self {
        Self {
            delay: TokenDelay::new(dcpim.data_rtt, dcpim.keepalive * KEEPALIVES),
            score: 0,
            is_repeated: false,
            is_slow: false,
            slow: dcpim.phase() + dcpim.data_rtt,
            is_watched: dcpim.may_hold_up(),
            rtt: dcpim.data_rtt,
            unscheduled: (dcpim.config.token_window == TokenWindow::Outstanding)
                .then(UnscheduledTime::default),
        }
    }

    /// Records that a short flow is announced, whose packets the host's link carries in `time`.
    pub(super) fn announce(&mut self, now: Time, time: Span) {
        if let Some(unscheduled) = &mut self.unscheduled {
            unscheduled.announce(now, time);
        }
    }

    /// Returns the time in which the packets of a new short flow arrive, after all that are
    /// announced; the link carries them in `time`.
    pub(super) fn drain_time_with(&self, now: Time, time: Span) -> Span {
        self.unscheduled.map_or(Span::ZERO, |unscheduled| unscheduled.drain_time_with(now, time))
    }

    /// Returns the minimum time that a receiver waits for data: zero if neither the core nor the
    /// last port is congested. Short flows, and others behind them, wait at the last port.
    #[inline]
    pub(super) fn core_delay(&self, now: Time) -> Span {
        let is_congested = self.is_repeated || self.is_slow;
        let in_core = if is_congested { self.delay.wait(self.rtt) } else { Span::ZERO };
        in_core.max(self.drain_time_with(now, Span::ZERO))
    }

    /// Counts a received packet.
    #[inline]
    pub(super) fn count(&mut self, receipt: Receipt) {
        if !self.is_watched {
            return;
        }
        match receipt {
            Receipt::Duplicate => self.score = (self.score + PER_DUPLICATE).min(SCORE_MAX),
            _ => self.score = self.score.saturating_sub(1),
        }
        self.is_repeated = self.score >= DELAYED_SCORE || (self.is_repeated && self.score > 0);
    }

    /// Records that a token is sent: source, flow and number.
    pub(super) fn on_token(&mut self, now: Time, token: TokenId) {
        self.delay.on_token(now, token);
    }

    /// Records that data for a token has arrived.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, token: TokenId) {
        self.delay.on_data(now, token, self.rtt);
        let least = if self.is_slow { self.slow / 2 } else { self.slow };
        self.is_slow = self.is_watched && self.delay.smoothed_delay() >= least;
    }
}
