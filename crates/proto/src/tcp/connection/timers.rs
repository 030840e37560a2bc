//! The timers of a connection.
//!
//! They are the retransmission timeout (RFC 6298), and the probe of a flight's end (RFC 8985 §7). A
//! third probes a closed window (RFC 9293 §3.8.6.1).

use super::super::config::{LossDetection, Timeout};
use super::*;

impl Connection {
    /// Returns the retransmission timeout (RFC 6298).
    pub(super) fn timeout(&self, tcp: &Tcp) -> Span {
        let config = &tcp.config;
        match (config.rto_mode, self.rtt.smoothed_rtt()) {
            (Timeout::Fixed, _) => tcp.rto_min,
            (Timeout::Estimated, Some(_)) => self.rtt.timeout(self.timeouts),
            (Timeout::Estimated, None) => {
                (tcp.rto_initial * (1 << self.timeouts.min(16))).min(tcp.rto_max)
            }
        }
    }

    /// The end of the flight is probed unless losses are being repaired (RFC 8985 §7.2).
    pub(super) fn schedule_probe(&mut self, now: Time, tcp: &Tcp) {
        let is_wanted = tcp.config.loss_detection == LossDetection::RackTlp
            && self.recovery == Recovery::None
            && self.board.n_sacked() == 0
            && !self.board.is_empty()
            && self.rack.probe.is_none();
        self.probe_at = Time::NEVER;
        if is_wanted {
            let delay = Span::from_us(tcp.config.ack_delay_us);
            let delay = if tcp.config.segments_per_ack > 1 { delay } else { Span::ZERO };
            let after = Rack::probe_after(self.rtt.smoothed_rtt(), self.board.len() == 1, delay)
                + Span::from_us(tcp.config.probe_slack_us);
            let at = now.saturating_add(after);
            if at < self.rto_at {
                self.probe_at = at;
            }
        }
    }

    pub(super) fn set_timers(&mut self, now: Time, has_advanced: bool, tcp: &Tcp) {
        if self.board.is_empty() {
            self.rto_at = Time::NEVER;
            if self.is_window_closed() {
                self.rto_at = now.saturating_add(self.timeout(tcp));
            }
        } else if has_advanced {
            self.rto_at = now.saturating_add(self.timeout(tcp));
        }
        self.schedule_probe(now, tcp);
    }

    /// Returns the time at which [`Self::on_timer`] must be called.
    pub(in crate::tcp) fn deadline(&self) -> Time {
        self.rto_at.min(self.probe_at).min(self.rack.due)
    }

    /// Handles a deadline that has passed.
    pub(in crate::tcp) fn on_timer(
        &mut self,
        now: Time,
        tcp: &Tcp,
        stats: &mut TcpStats,
    ) -> TimerAction {
        if self.rack.due <= now {
            self.find_losses(now, self.flight(), tcp, stats);
        }
        if self.probe_at <= now {
            self.probe_at = Time::NEVER;
            self.probe(stats);
        }
        if self.rto_at > now {
            return TimerAction::None;
        }
        if self.n_unanswered == 0 {
            self.unanswered_since = now;
        }
        (self.timeouts, self.n_unanswered) = (self.timeouts + 1, self.n_unanswered + 1);
        let silence = now.saturating_since(self.unanswered_since);
        let is_over = tcp.attempt_limit.is_exceeded(self.n_unanswered, silence);
        if !self.is_open {
            self.rto_at = now.saturating_add(self.timeout(tcp));
            return if is_over { TimerAction::Abort } else { TimerAction::Syn };
        }
        if self.board.is_empty() {
            // A receiver with a closed window is probed as long as it answers (RFC 9293 §3.8.6.1).
            (self.is_probing, self.rto_at) = (self.is_window_closed(), Time::NEVER);
            return TimerAction::None;
        }
        stats.timeouts += 1;
        if is_over {
            return TimerAction::Abort;
        }
        if self.grant == Grant::Stopped {
            // Missing segments are retransmitted once the connection may send.
            self.board.mark_lost_if(|_| Some(true));
            (self.rto_at, self.is_urgent) = (Time::NEVER, true);
            return TimerAction::None;
        }
        // The byte that probes a closed window is no evidence of congestion.
        if !self.is_window_closed() {
            self.control.on_timeout(now, self.flight(), self.timeouts == 1);
        }
        self.board.mark_lost_if(|_| Some(true));
        self.recovery = Recovery::Timeout(self.board.next());
        (self.is_urgent, self.rack.probe, self.rack.due) = (true, None, Time::NEVER);
        self.rto_at = now.saturating_add(self.timeout(tcp));
        self.probe_at = Time::NEVER;
        TimerAction::None
    }

    /// Probes the end of the flight with a new segment, or else with the last one (RFC 8985 §7.3).
    fn probe(&mut self, stats: &mut TcpStats) {
        let Some(last) = self.board.last().copied() else { return };
        stats.probes += 1;
        let has_more = self.board.next() < self.end;
        self.is_probing = has_more && self.board.next() < self.window_end;
        if !self.is_probing {
            let is_last = |start: u64| start == last.start;
            self.board.mark_lost_if(|segment| Some(is_last(segment.start)));
            self.is_urgent = true;
        }
        self.rack.probe = Some((self.board.next(), !self.is_probing));
    }
}
