//! A flow at its receiver: which packets are here, which have had tokens.

use rampmeter_core::collections::SeqSet;
use rampmeter_core::{MsgId, NodeId, Time};

use super::config::{Dcpim, TokenWindow};

/// A flow that has been announced and is not complete.
#[derive(Clone, Debug)]
pub(super) struct RxFlow {
    pub(super) src: NodeId,
    pub(super) msg: MsgId,
    /// Its number among the flows of its pair.
    pub(super) flow: u32,
    pub(super) tx_slot: u32,
    /// The slot of the source's next flow in the receiver's list.
    pub(super) next: u32,
    pub(super) packets: u32,
    pub(super) announced: Time,
    pub(super) heard: Time,
    /// Until when it takes no part in matching and gets no tokens.
    pub(super) silent_until: Time,
    pub(super) got: SeqSet,
    /// The sequence number at which the search for the next packet to token begins.
    cursor: u32,
    /// Tokens sent.
    tokens: u32,
    /// One more than the number of the latest token whose data has come.
    seen: u32,
    last_token: Time,
    /// Tokens of this phase and of earlier ones for which no data has come.
    open: u32,
    open_before: u32,
    /// The first token and the first sequence number of this phase.
    phase_token: u32,
    phase_seq: u32,
    /// When the data of earlier tokens must be here, and which packet before `phase_seq` is then
    /// the next to be looked at.
    void_at: Time,
    revisit: u32,
    /// Whether the sender has asked if the flow is complete.
    pub(super) asked: bool,
}

/// Whether a flow may have another token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Open,
    /// Not before this instant, unless data comes.
    FullUntil(Time),
}

impl RxFlow {
    pub(super) fn new(
        src: NodeId,
        msg: MsgId,
        flow: u32,
        tx_slot: u32,
        packets: u32,
        now: Time,
    ) -> Self {
        Self {
            src,
            msg,
            flow,
            tx_slot,
            next: u32::MAX,
            packets,
            announced: now,
            heard: now,
            silent_until: Time::ZERO,
            got: SeqSet::default(),
            cursor: 0,
            tokens: 0,
            seen: 0,
            last_token: now,
            open: 0,
            open_before: 0,
            phase_token: 0,
            phase_seq: 0,
            void_at: Time::NEVER,
            revisit: 0,
            asked: false,
        }
    }

    /// The flow is short: all its packets are on their way (§3.2), so for as long as they need it
    /// stands as if each had had a token.
    pub(super) fn expect_all(&mut self, now: Time, dcpim: &Dcpim) {
        self.tokens = self.packets;
        self.cursor = self.packets;
        self.silent_until = now + dcpim.mtu_time * u64::from(self.packets) + dcpim.silence;
    }

    /// Packets that are missing.
    pub(super) fn remaining(&self) -> u32 {
        self.packets - self.got.len()
    }

    /// By what the matching prefers flows.
    pub(super) fn key(&self) -> (u32, u64) {
        (self.remaining(), self.announced.as_ps())
    }

    /// Notes the number of the token whose data has come.
    pub(super) fn see(&mut self, number: u32) {
        let open = if number < self.phase_token { &mut self.open_before } else { &mut self.open };
        *open = open.saturating_sub(1);
        self.seen = self.seen.max(number.saturating_add(1).min(self.tokens));
    }

    /// A phase begins: tokens sent so far expire soon.
    pub(super) fn on_phase(&mut self, now: Time, dcpim: &Dcpim) {
        self.open_before += std::mem::take(&mut self.open);
        self.phase_token = self.tokens;
        self.phase_seq = self.cursor;
        self.revisit = self.got.first_missing();
        self.void_at = now + dcpim.stragglers;
    }

    /// Tokens that count as in flight.
    fn in_flight(&self, dcpim: &Dcpim) -> u32 {
        match dcpim.config.token_window {
            TokenWindow::Number => self.tokens - self.seen,
            TokenWindow::Outstanding => self.open + self.open_before,
        }
    }

    /// Whether data that has come leaves room for tokens whatever the channels.
    pub(super) fn is_clocked(&self, dcpim: &Dcpim) -> bool {
        self.in_flight(dcpim) <= dcpim.bdp
    }

    /// Whether a link with `active` of the host's channels may send a token for it (§3.2, §3.4:
    /// each channel has 1/k of a window of one BDP). A window that has been full for long is
    /// opened: the tokens or the data are lost.
    pub(super) fn window(&mut self, now: Time, active: u8, dcpim: &Dcpim) -> Window {
        let (bdp, k) = (dcpim.bdp, u32::from(dcpim.config.channels));
        let active = u32::from(active);
        let reopens = self.last_token + dcpim.window_timeout;
        let is_open = match dcpim.config.token_window {
            TokenWindow::Number => {
                let low = bdp / k * active;
                if self.in_flight(dcpim) > low && now >= reopens {
                    self.seen = (self.tokens + 1 - low).min(self.tokens);
                }
                // The limit is bdp active / k without rounding.
                self.in_flight(dcpim) * k <= bdp * active
            }
            TokenWindow::Outstanding => {
                if now >= self.void_at {
                    self.open_before = 0;
                }
                let limit = (bdp * active).div_ceil(k).max(1);
                if self.in_flight(dcpim) >= limit && now >= reopens {
                    self.rewind();
                }
                self.in_flight(dcpim) < limit
            }
        };
        if is_open {
            Window::Open
        } else {
            Window::FullUntil(reopens.max(now + super::link::AFTER))
        }
    }

    /// Nothing is in flight any more: tokens start again at the first missing packet.
    fn rewind(&mut self) {
        (self.open, self.open_before) = (0, 0);
        self.cursor = self.got.first_missing();
        self.void_at = Time::NEVER;
    }

    /// Takes the next packet to token, and the token's number. Packets that are missing come in
    /// cyclic order, those whose tokens have expired first; after the last of them the flow is
    /// silent while those in flight arrive.
    pub(super) fn take_token(&mut self, now: Time, dcpim: &Dcpim) -> (u32, u32) {
        let number = self.tokens;
        self.tokens += 1;
        self.last_token = now;
        self.open += 1;
        if let Some(seq) = self.take_expired(now, dcpim) {
            return (seq, number);
        }
        let seq = self.next_missing(self.cursor);
        self.cursor = seq + 1;
        if self.next_missing(self.cursor) <= seq {
            self.silent_until = now + dcpim.silence;
            // What is still missing after the silence was lost.
            self.void_at = Time::NEVER;
            (self.open, self.open_before) = (0, 0);
        }
        (seq, number)
    }

    /// The next packet whose token was sent in an earlier phase and has expired.
    fn take_expired(&mut self, now: Time, dcpim: &Dcpim) -> Option<u32> {
        if dcpim.config.token_window == TokenWindow::Number || now < self.void_at {
            return None;
        }
        let seq = self.got.next_missing(self.revisit);
        if seq >= self.phase_seq {
            self.void_at = Time::NEVER;
            return None;
        }
        self.revisit = seq + 1;
        Some(seq)
    }

    /// The first missing packet from `from` on, or else from the start.
    fn next_missing(&self, from: u32) -> u32 {
        let next = self.got.next_missing(from);
        if next < self.packets { next } else { self.got.first_missing() }
    }
}
