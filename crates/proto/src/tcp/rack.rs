//! RACK-TLP: losses are detected by time, and the end of a flight is probed (RFC 8985).
//!
//! The problem: a lost segment should be found within a round trip. Retransmission timeouts are
//! long compared with that.
//!
//! The simple way counts segments that arrived above a hole (`DupAck`). It does not find a lost
//! retransmission, nor a loss among the last segments of a flight, as too few follow them.
//! Reordering by more than the count looks like a loss.
//!
//! The present way compares times. Of the segments that have arrived, `latest` is the one sent
//! last. A segment sent before it is lost when a round trip and the reordering window have passed
//! since it was sent. Retransmissions have a time too, so they are judged in the same way. If the
//! window has not passed, `due` has the time at which the next segment counts as lost. The
//! reordering window is:
//!
//! * zero, if nothing was reordered so far and losses are repaired or enough segments have
//!   overtaken a hole;
//! * else a quarter of the shortest round trip. It grows by a quarter with each round trip in which
//!   a duplicate arrives, and at most to the smoothed round trip. After 16 recoveries it is as at
//!   first.
//!
//! If all segments of a flight's end are lost, no acknowledgement arrives. So a probe is sent two
//! round trips after the last segment: new data, or the last segment again. Its acknowledgement
//! reveals the losses before it.
//!
//! Hazards: an acknowledgement of a retransmission within less than the shortest round trip is for
//! the original, and must not move `latest`. Segments that were sent once are in the order of time.
//! So the search may stop at the first that is later than `latest`, but not at a retransmission. A
//! probe that repaired the only loss must reduce the window, as nothing else shows the loss
//! (`a_lost_tail_is_repaired_by_the_probe`). There is one probe a flight
//! (`a_flight_is_probed_once`). Others: `a_lost_retransmission_is_found_without_a_timeout`,
//! `reordering_lengthens_the_reordering_window`.

use rampmeter_types::{Span, Time};

use super::scoreboard::{AckReport, Scoreboard};

/// Recoveries after which a wider window for reordering ends (RFC 8985 §6.2.4).
const REO_WND_PERSIST: u8 = 16;

/// RACK state of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rack {
    /// Segment sent last of those that have arrived: the time of its transmission, and its end
    /// (`RACK.xmit_ts`, `RACK.end_seq`).
    latest: (Time, u64),
    /// Round trip of this segment.
    rtt: Span,
    rtt_min: Option<Span>,
    has_reordered: bool,
    /// Reordering window in quarters of the shortest round trip, now and initially.
    reo_wnd_quarters: u8,
    reo_wnd_initial: u8,
    /// True if a plan gives the reordering window.
    is_configured: bool,
    /// Recoveries for which more than one quarter stays.
    reo_wnd_persist: u8,
    /// The window for reordering has grown in the round trip that ends here (`RACK.dsack_round`).
    widened_until: u64,
    /// Time at which the next segment counts as lost.
    pub(super) due: Time,
    /// The probe of the end of the flight, if one is in flight. It has the end of the stream when
    /// it was sent (`TLP.end_seq`), and true if it was a retransmission (`TLP.is_retrans`).
    pub(super) probe: Option<(u64, bool)>,
}

impl Rack {
    /// Returns the state of a connection. `quarters` is the initial reordering window, if not that
    /// of RFC 8985.
    pub(super) fn new(quarters: Option<u8>) -> Self {
        let first = quarters.unwrap_or(1);
        Self {
            latest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            rtt_min: None,
            has_reordered: quarters.is_some(),
            reo_wnd_quarters: first,
            reo_wnd_initial: first,
            is_configured: quarters.is_some(),
            reo_wnd_persist: 0,
            widened_until: 0,
            due: Time::NEVER,
            probe: None,
        }
    }

    /// Handles an acknowledgement (RFC 8985 §6.2, steps 1 to 4).
    pub(super) fn on_ack(&mut self, now: Time, report: &AckReport, board: &Scoreboard) {
        if let Some(rtt) = report.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if let Some(latest) = report.latest {
            let rtt = now.saturating_since(latest.sent_at);
            // A segment that was retransmitted and is acknowledged at once was not lost.
            let is_early = latest.sends > 1 && self.rtt_min.is_some_and(|min| rtt < min);
            if !is_early && latest.sent_key() > self.latest {
                (self.latest, self.rtt) = (latest.sent_key(), rtt);
            }
        }
        self.has_reordered |= report.is_reordered;
        if report.has_duplicate && board.una() > self.widened_until {
            (self.reo_wnd_quarters, self.reo_wnd_persist) =
                (self.reo_wnd_quarters.saturating_add(1), REO_WND_PERSIST);
            self.widened_until = board.next();
        }
    }

    /// Ends a recovery.
    pub(super) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_quarters = self.reo_wnd_initial;
        }
    }

    /// Returns the maximum lateness of a segment before it counts as lost (RFC 8985 §6.2, step 4).
    fn window(&self, is_urgent: bool, smoothed: Option<Span>) -> Span {
        if !self.has_reordered && is_urgent {
            return Span::ZERO;
        }
        let window = self.rtt_min.unwrap_or(Span::ZERO) * u64::from(self.reo_wnd_quarters) / 4;
        // A requested window is not limited.
        let limit = smoothed.filter(|_| !self.is_configured);
        limit.map_or(window, |smoothed| window.min(smoothed))
    }

    /// Finds the segments that are lost by now (RFC 8985 §6.2, step 5). `is_urgent`: losses are
    /// being repaired, or as many segments as duplicate acknowledgements need have arrived above a
    /// hole.
    pub(super) fn find_lost(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        is_urgent: bool,
        smoothed: Option<Span>,
    ) -> bool {
        let time_to_loss = self.rtt + self.window(is_urgent, smoothed);
        let latest = self.latest;
        let mut due = Time::NEVER;
        let has_lost = board.mark_lost_if(|segment| {
            if segment.sent_key() >= latest {
                // Segments that were sent once are in the order of time.
                return if segment.sends == 1 { None } else { Some(false) };
            }
            let lost_at = segment.sent_at.saturating_add(time_to_loss);
            if lost_at > now {
                due = due.min(lost_at);
            }
            Some(lost_at <= now)
        });
        self.due = due;
        has_lost
    }

    /// Returns the time from the last segment to the probe of the end of the flight (RFC 8985
    /// §7.2).
    pub(super) fn probe_after(smoothed: Option<Span>, is_single: bool, ack_delay: Span) -> Span {
        let Some(smoothed) = smoothed else { return Span::from_us(1_000_000) };
        let wait = if is_single { ack_delay } else { Span::ZERO };
        smoothed * 2 + wait
    }

    /// Returns true if an acknowledgement shows that the probe has repaired a loss (RFC 8985
    /// §7.4.2): then the window must be reduced.
    pub(super) fn has_repaired(&mut self, report: &AckReport, board: &Scoreboard) -> bool {
        let Some((end, is_sent_before)) = self.probe else { return false };
        if board.una() < end {
            return false;
        }
        self.probe = None;
        is_sent_before && !report.has_duplicate && report.cumulative > 0
    }
}
