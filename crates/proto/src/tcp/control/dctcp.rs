//! DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): the window is cut in proportion to the share of
//! bytes that were marked.
//!
//! The problem: switches mark packets as soon as a queue is longer than a small threshold. Senders
//! should keep queues near this threshold, and links busy.
//!
//! The simple way halves the window at a mark, as after a loss (RFC 3168). A few flows with half
//! their windows then leave the link idle, unless its queue holds a bandwidth-delay product.
//!
//! The present way: the sender measures the share of acknowledged bytes that were marked, once for
//! each window of data. A moving average of these shares is alpha. The first mark in a window of
//! data cuts the window by half of alpha. So light congestion has a small effect, and a window in
//! which all bytes are marked again and again is halved. Otherwise the window grows as NewReno's.
//!
//! Hazards: the receiver must echo the mark of each segment
//! (`dctcp_echoes_each_segments_mark`, `dctcp_reports_a_changed_mark_at_once`), or the share is
//! wrong. After a cut the window must not grow or be cut until the data in flight at the cut is
//! acknowledged (`dctcp_cuts_by_half_of_alpha_once_a_window`). Alpha follows the share with a delay
//! of some round trips (`dctcp_forgets_marks_slowly`). Its first value therefore matters for short
//! flows. A cut leaves at least two segments, so a large incast fills the queue anyway.
//! Acknowledgements during recovery count for alpha but do not cut the window again.

use rampmeter_types::Time;

use super::algorithm::{AckEffect, CongestionControl, ControlParams, Reno};

/// DCTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dctcp {
    reno: Reno,
    gain: f64,
    /// The estimated share of marked bytes.
    alpha: f64,
    /// Bytes acknowledged in this observation window, and those of them that were marked.
    acked: u64,
    marked: u64,
    /// The observation window ends when this byte is acknowledged.
    window_end: u64,
    /// Byte up to which acknowledgements cause no second cut of the window.
    cut_end: u64,
}

impl Dctcp {
    /// Slow start from the initial window.
    pub fn new(start: &ControlParams) -> Self {
        let &ControlParams { gain, alpha, .. } = start;
        let reno = Reno::new(start);
        Self { reno, gain, alpha, acked: 0, marked: 0, window_end: 0, cut_end: 0 }
    }

    /// Returns the estimated share of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Estimates once a window of data (RFC 8257 §3.3, steps 3 to 8).
    fn observe(&mut self, acked: &AckEffect) {
        self.acked += acked.bytes;
        if acked.is_marked {
            self.marked += acked.bytes;
        }
        if acked.una <= self.window_end {
            return;
        }
        if self.acked > 0 {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha = (1.0 - self.gain) * self.alpha + self.gain * share;
        }
        (self.acked, self.marked, self.window_end) = (0, 0, acked.next);
    }

    /// Cuts the window once a window of data (RFC 8257 §3.3, step 9).
    fn react(&mut self, acked: &AckEffect) {
        if acked.una <= self.cut_end && self.cut_end > 0 {
            return;
        }
        let left = self.reno.cwnd as f64 * (1.0 - self.alpha / 2.0);
        self.reno.cut(left as u64);
        self.cut_end = acked.next;
    }
}

impl CongestionControl for Dctcp {
    fn cwnd(&self) -> u64 {
        self.reno.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.reno.ssthresh
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        self.observe(acked);
        if acked.in_recovery {
            return;
        }
        if acked.is_marked {
            self.react(acked);
        }
        if acked.una <= self.cut_end || !acked.is_limited {
            return;
        }
        if self.reno.is_slow_start() {
            self.reno.grow_fast(acked.bytes);
        } else {
            self.reno.grow_slowly(acked.bytes);
        }
    }

    /// A loss halves the window, as without DCTCP (RFC 8257 §3.5).
    fn on_loss(&mut self, _now: Time, in_flight: u64) {
        self.reno.cut(in_flight / 2);
    }

    /// Every acknowledgement carries the echo of a mark or none: see [`CongestionControl::on_ack`].
    fn on_echo(&mut self, _now: Time, _in_flight: u64) {}

    fn on_timeout(&mut self, _now: Time, in_flight: u64, is_first: bool) {
        self.reno.collapse(in_flight / 2, is_first);
    }

    fn on_idle(&mut self, initial: u64) {
        self.reno.restart(initial);
    }
}
