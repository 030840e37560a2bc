//! Pending flows of a destination, when they are ready for a token, and their downgrading.
//!
//! The problem: a destination does not know whether a source can use its tokens. The source may
//! prefer flows to other destinations, or have failed. Each token that it does not use is a packet
//! time in which the destination receives nothing.
//!
//! The simple way waits for the answer to each token, which costs a round trip a packet. Without a
//! limit, one busy source of a preferred flow takes all tokens.
//!
//! The present way: a token expires at its source after 1.5 packet times, so that late tokens do
//! not collide with newer ones. The destination infers expiry a round trip later (`expiry`). More
//! expired tokens than the threshold downgrade the flow ([`Downgrading::Expired`], algorithm 2). A
//! downgraded flow gets no token until the timeout ends or data arrives. After the timeout it gets
//! one token, and the timeout restarts. Data for a later token ends the downgrading. The
//! authors' simulator counts unanswered tokens instead ([`Downgrading::Unanswered`]), also those
//! whose data is in flight.
//!
//! Hazards: tokens whose data is only late must not count forever. After a late answer the flow
//! has the threshold's number of expired tokens, so the next one that expires downgrades it again.
//! Tests: `a_flow_is_downgraded_when_more_tokens_than_the_threshold_have_expired` and
//! `an_unresponsive_source_gets_one_token_per_timeout`. Waits end early only
//! if nothing is in flight
//! (`a_wait_for_missing_packets_ends_soon_after_the_last_packet_in_flight`).

use rampmeter_types::{Span, TenantId, Time};

use super::config::{Downgrading, FreeTokenRepair, Pair, Phost};
use super::expiry::Expiry;
use super::stats::PhostStats;
use crate::toolkit::{ArrivingFlow, IssuedToken, TokenCursor, UnscheduledTime};

/// A flow's own part.
#[derive(Debug)]
pub(super) struct PendingFlow {
    pub(super) deadline: Time,
    pub(super) tenant: TenantId,
    pub(super) announced: Time,
    pub(super) tokens: TokenCursor,
    /// Empty if expired tokens do not count.
    pub(super) expiry: Expiry,
    /// State of its downgrading, if expired tokens count.
    pub(super) downgraded: Option<Downgrade>,
    /// Number of tokens before the next count of missing packets.
    pub(super) goal: u32,
    /// Last free packet.
    pub(super) free: Option<u32>,
    /// No tokens before this instant unless data arrives.
    pub(super) tokens_from: Option<Time>,
    /// Every packet has had a token: the wait for those in flight.
    pub(super) repair_wait: Option<Wait>,
    /// The parameters of the two ends.
    pub(super) pair: Pair,
    /// True if its source is slower than this host.
    pub(super) is_paced: bool,
}

pub(super) type RxFlow = ArrivingFlow<PendingFlow>;

/// A downgrading of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Downgrade {
    pub(super) until: Time,
    /// Answered tokens at its start.
    pub(super) answered_end: u32,
}

/// Packets that arrive at a destination.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Packets of announced free tokens.
    pub(super) free: UnscheduledTime,
    /// Arrival of the latest packet or announcement.
    pub(super) latest: Time,
}

/// Wait for missing packets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    Until(Time),
    /// Lasts until the first instant. Then lasts while packets arrive, until the second and until
    /// the link has carried the free packets announced by then.
    AtLeast(Time, Time),
    /// Lasts until an instant, or until packets cease to arrive.
    WhileArriving(Time),
}

/// Readiness of a flow for a token.
pub(super) enum Readiness {
    Ready,
    /// The flow needs no token before this instant.
    NotBefore(Time),
    /// The flow needs no token before this instant unless no packet arrives for this time.
    WhileArriving(Time, Span),
}

impl PendingFlow {
    /// Downgrades a flow when more tokens than the threshold have expired (algorithm 2).
    pub(super) fn check_expired(&mut self, now: Time) -> Readiness {
        let expired = self.expiry.expired(now, self.tokens.seen());
        if expired <= self.pair.threshold {
            self.downgraded = None;
            return Readiness::Ready;
        }
        let (until, answered_end) = (now + self.pair.downgrade_time, self.tokens.seen());
        let of = *self.downgraded.get_or_insert(Downgrade { until, answered_end });
        if of.answered_end < answered_end {
            // Its source answers, late.
            self.downgraded = None;
            self.tokens.answer_below(self.expiry.expired_end - self.pair.threshold);
        } else if of.until > now {
            return Readiness::NotBefore(of.until);
        }
        Readiness::Ready
    }

    /// Downgrades a flow of an unresponsive source again after one token.
    pub(super) fn on_token(&mut self, now: Time) {
        if let Some(Downgrade { until, .. }) = &mut self.downgraded {
            *until = now + self.pair.downgrade_time;
        }
    }

    /// Downgrades a flow when as many tokens as the threshold are unanswered.
    pub(super) fn check_unanswered(&mut self, now: Time) -> Readiness {
        if self.tokens.open() < self.pair.threshold {
            return Readiness::Ready;
        }
        let until = self.tokens.last() + self.pair.downgrade_time;
        if until > now {
            return Readiness::NotBefore(until);
        }
        self.tokens.reopen(self.pair.threshold);
        Readiness::Ready
    }
}

impl RxFlow {
    /// Returns the readiness of the flow for a token (§3.2). A downgraded flow gets no other until
    /// data arrives or a timeout expires. If its source does not answer then either, one more token
    /// downgrades it once more.
    pub(super) fn readiness(&mut self, now: Time, arrivals: Arrivals, phost: &Phost) -> Readiness {
        let state = &mut self.state;
        if let Some(at) = state.tokens_from.filter(|&at| at > now) {
            return Readiness::NotBefore(at);
        }
        match state.repair_wait {
            None => {}
            Some(Wait::Until(at) | Wait::AtLeast(at, _)) if at > now => {
                return Readiness::NotBefore(at);
            }
            Some(Wait::Until(_)) => self.end_wait(),
            Some(Wait::AtLeast(_, until)) => {
                let until = until.max(arrivals.free.until());
                state.repair_wait = Some(Wait::WhileArriving(until));
                return self.readiness(now, arrivals, phost);
            }
            Some(Wait::WhileArriving(until)) => {
                let idle = state.pair.resend_wait;
                if until.min(arrivals.latest + idle) > now {
                    return Readiness::WhileArriving(until, idle);
                }
                self.end_wait();
            }
        }
        let state = &mut self.state;
        match phost.config.downgrade_on {
            Downgrading::Expired => state.check_expired(now),
            Downgrading::Unanswered => state.check_unanswered(now),
        }
    }

    /// Ends the wait for missing packets, which need tokens.
    pub(super) fn end_wait(&mut self) {
        let remaining = self.remaining();
        self.state.repair_wait = None;
        self.state.goal = self.state.tokens.issued() + remaining;
    }

    /// Shortens the wait for missing packets when no more are in flight: the last free packet and
    /// data for the last token have arrived. Packets that took other paths have a quarter of a
    /// round trip. Returns its new end.
    pub(super) fn shorten_wait(&mut self, now: Time) -> Option<Time> {
        let PendingFlow { repair_wait, tokens, free, pair, .. } = &mut self.state;
        if let Some(wait @ (Wait::AtLeast(..) | Wait::WhileArriving(_))) = repair_wait
            && tokens.open() == 0
            && free.is_none_or(|last| self.received.contains(last))
        {
            let end = now + pair.rtt / 4;
            *wait = Wait::Until(end);
            return Some(end);
        }
        None
    }

    /// Returns true if data that arrives may end its wait.
    #[inline]
    pub(super) fn waits_for_data(&self) -> bool {
        self.state.repair_wait.is_none() && !self.is_paused
    }

    /// Takes the next packet to token, missing ones in cyclic order, and the token's number. After
    /// the last packet the flow waits for `resend`.
    pub(super) fn take_token(
        &mut self,
        now: Time,
        resend: Span,
        phost: &Phost,
        stats: &mut PhostStats,
    ) -> IssuedToken {
        let state = &mut self.state;
        let (seq, is_again) = state.tokens.advance(&self.received, self.announcement.packets);
        stats.tokens_sent += 1;
        stats.tokens_reissued += u64::from(is_again);
        let number = state.tokens.issue(now);
        state.on_token(now);
        if phost.config.downgrade_on == Downgrading::Expired {
            state.expiry.push(now + state.pair.token_expiry(), number + 1);
        }
        if state.tokens.issued() >= state.goal {
            state.repair_wait = Some(match phost.config.free_token_repair {
                FreeTokenRepair::Measured => {
                    Wait::AtLeast(now + state.pair.resend_wait, now + resend)
                }
                FreeTokenRepair::RoundTrip | FreeTokenRepair::TwicePace => {
                    Wait::Until(now + resend)
                }
            });
        }
        IssuedToken { seq, number }
    }
}
