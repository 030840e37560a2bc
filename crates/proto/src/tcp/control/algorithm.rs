//! Interface of congestion control, and the window that all algorithms have in common.

use rampmeter_types::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Event that ends slow start before the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// Never.
    Never,
    /// A rise of round trips by 12.5 %. The window then grows at 25 % of the rate for five round
    /// trips, and slow start ends if they stay long (RFC 9406).
    HystartPp,
    /// Acknowledgements of one round trip, with the first of the next, that take longer than the
    /// shortest round trip: the path is full. These are Ha and Rhee's acknowledgement trains, as in
    /// ns-3 and Linux before 5.6.
    AckTrain,
}

/// Numbers that congestion control starts with, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlParams {
    /// The sender's largest segment.
    pub mss: u64,
    /// The initial window.
    pub initial: u64,
    /// The largest window.
    pub max: u64,
    /// Bytes that may be in flight while a controller sets the rate.
    pub granted: u64,
    /// Event that ends slow start before the first loss.
    pub slow_start_exit: SlowStartExit,
    /// True if Cubic's window grows by at least 5 % a round trip before the first loss.
    pub fast_initial_growth: bool,
    /// True if Cubic's window is at least that of NewReno.
    pub reno_friendly: bool,
    /// True if the NewReno estimate grows by a segment a round trip above the window before the
    /// loss.
    pub reno_catch_up: bool,
    /// DCTCP's weight of a new measurement (RFC 8257 §4.2, g).
    pub gain: f64,
    /// DCTCP's first estimate of the share of marked bytes (RFC 8257 §3.3, alpha).
    pub alpha: f64,
}

/// Effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckEffect {
    /// The time.
    pub now: Time,
    /// Bytes by which the cumulative acknowledgement rose.
    pub bytes: u64,
    /// The first byte that is not acknowledged.
    pub una: u64,
    /// The first byte that was not sent.
    pub next: u64,
    /// A round-trip time, if there is a sample.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time, if there was a sample.
    pub smoothed: Option<Span>,
    /// True if it echoes a congestion mark.
    pub is_marked: bool,
    /// True if the window kept the sender from sending more.
    pub is_limited: bool,
    /// True if losses are being repaired: the window does not grow then (RFC 6675 §5).
    pub in_recovery: bool,
}

/// The congestion control of one connection. Windows are in bytes.
pub trait CongestionControl {
    /// Returns the congestion window.
    fn cwnd(&self) -> u64;

    /// Returns the window from which on it grows slowly.
    fn ssthresh(&self) -> u64;

    /// Handles an acknowledgement.
    fn on_ack(&mut self, acked: &AckEffect);

    /// Handles losses of segments: called once for all that were in flight.
    fn on_loss(&mut self, now: Time, in_flight: u64);

    /// Handles echoed marks: called once a round trip (RFC 3168 §6.1.2). Those that react to every
    /// mark do so in [`CongestionControl::on_ack`].
    fn on_echo(&mut self, now: Time, in_flight: u64);

    /// Handles the expiry of the retransmission timer; `is_first` unless it had expired before
    /// without an acknowledgement since.
    fn on_timeout(&mut self, now: Time, in_flight: u64, is_first: bool);

    /// Handles an idle time of more than the retransmission timeout (RFC 5681 §4.1).
    fn on_idle(&mut self, initial: u64);
}

/// A window that grows by acknowledged bytes and is cut: the common part of all algorithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reno {
    pub(crate) mss: u64,
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) max: u64,
    /// Bytes acknowledged that have not made the window grow yet (RFC 3465 §2.1).
    acked: u64,
}

impl Reno {
    pub(crate) fn new(start: &ControlParams) -> Self {
        let &ControlParams { mss, initial, max, .. } = start;
        Self { mss, cwnd: initial.min(max), ssthresh: u64::MAX, max, acked: 0 }
    }

    pub(crate) fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window in slow start: by the acknowledged bytes, two segments at most (RFC 3465
    /// §2.2). Returns the bytes that remain when slow start ends.
    pub(crate) fn grow_fast(&mut self, bytes: u64) -> u64 {
        let grown = bytes.min(2 * self.mss).min(self.ssthresh - self.cwnd);
        self.cwnd = (self.cwnd + grown).min(self.max);
        bytes - grown
    }

    /// Congestion avoidance: a segment for each window that was acknowledged (RFC 3465 §2.1).
    pub(crate) fn grow_slowly(&mut self, bytes: u64) {
        self.acked += bytes;
        if self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd = (self.cwnd + self.mss).min(self.max);
        }
    }

    /// Cuts the window to `bytes`, two segments at least (RFC 5681 §3.1).
    pub(crate) fn cut(&mut self, bytes: u64) {
        self.ssthresh = bytes.max(2 * self.mss);
        self.cwnd = self.ssthresh.min(self.max);
        self.acked = 0;
    }

    /// A timeout: one segment (RFC 5681 §3.1).
    pub(crate) fn collapse(&mut self, ssthresh: u64, is_first: bool) {
        if is_first {
            self.ssthresh = ssthresh.max(2 * self.mss);
        }
        self.cwnd = self.mss;
        self.acked = 0;
    }

    pub(crate) fn restart(&mut self, initial: u64) {
        self.cwnd = self.cwnd.min(initial);
        self.acked = 0;
    }
}
