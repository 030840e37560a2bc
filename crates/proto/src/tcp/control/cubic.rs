//! Cubic (RFC 9438): after a loss the window is a cubic function of time with a plateau at the
//! window of the loss.
//!
//! The problem: paths with many packets in flight need a large window soon after a loss.
//!
//! The simple way adds a segment each round trip, as NewReno does. After a loss a window of W
//! segments then needs W/2 round trips to recover. Flows with long round trips also get less of a
//! link than those with short ones.
//!
//! The present way: the window follows `C (t - K)³ + origin`, where t is the time since the start
//! of congestion avoidance. It grows fast after a loss, slowly near the window of the last loss,
//! and fast again beyond it. Time replaces round trips, so that the function is the same for flows
//! with different round trips (`cubic_grows_by_its_function`). A flow that has a smaller window
//! than at the loss before assumes a new competitor. It takes a lower `w_max`, and leaves capacity
//! to that one (`cubic_converges_fast`).
//!
//! Hazards: at round trips of microseconds, as in datacenters, the function takes seconds to grow.
//! The estimate of NewReno's window (`w_est`) is then the larger one and applies
//! (`cubic_is_no_slower_than_reno`). Time also passes while nothing is sent. So an idle period and
//! a timeout end the epoch; otherwise the window would jump. The window is a number of segments
//! here and of whole bytes in `reno`. Each change of one must be copied to the other
//! (`store_window`, `sync_from_reno`).

use rampmeter_types::{Span, Time};

use super::algorithm::{AckEffect, CongestionControl, ControlParams, Reno};
use super::hystart::{Growth, HyStart};

/// Growth of the function, in segments per cubic second (RFC 9438 §4.1, C).
const C_CUBIC: f64 = 0.4;
/// Share of the window that remains after a loss (RFC 9438 §4.6, beta).
const BETA_CUBIC: f64 = 0.7;

/// Minimum growth of the window in a round trip before the first loss, as a share. Without it the
/// function would start too slowly (Linux and ns-3; not in the RFC).
const EARLY_GROWTH: f64 = 0.05;

/// Cubic. Windows are in segments inside, as in the RFC.
#[derive(Clone, Debug, PartialEq)]
pub struct Cubic {
    reno: Reno,
    hystart: HyStart,
    /// The window, of which `reno` has whole bytes.
    cwnd: f64,
    /// The window at the last loss, or less (W_max).
    w_max: f64,
    /// The window before the last loss (cwnd_prior).
    cwnd_prior: f64,
    /// True if the window grows by at least 5 % a round trip before the first loss.
    fast_initial_growth: bool,
    /// True if the window is at least that of NewReno.
    reno_friendly: bool,
    /// True if that grows by a whole segment a round trip beyond the window before the loss.
    reno_catch_up: bool,
    /// Start of congestion avoidance, and the values derived from it.
    epoch: Option<Epoch>,
}

/// A stretch of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    start: Time,
    /// Seconds until the function reaches `origin` (K).
    k: f64,
    /// The window at which it is flat.
    origin: f64,
    /// Estimate of NewReno's window (W_est).
    w_est: f64,
}

impl Cubic {
    /// Slow start from the initial window.
    pub fn new(start: &ControlParams) -> Self {
        let reno = Reno::new(start);
        let cwnd = reno.cwnd as f64 / reno.mss as f64;
        let hystart = HyStart::new(start.slow_start_exit);
        let &ControlParams { fast_initial_growth, reno_friendly, reno_catch_up, .. } = start;
        let (w_max, cwnd_prior, epoch) = (0.0, 0.0, None);
        Self {
            reno,
            hystart,
            cwnd,
            w_max,
            cwnd_prior,
            fast_initial_growth,
            reno_friendly,
            reno_catch_up,
            epoch,
        }
    }

    /// Returns the cubic function at this time after the start of an epoch (RFC 9438 §4.2,
    /// W_cubic), in segments.
    fn target(epoch: &Epoch, since: Span) -> f64 {
        let t = since.as_secs_f64() - epoch.k;
        C_CUBIC * t * t * t + epoch.origin
    }

    fn begin(&self, now: Time) -> Epoch {
        let origin = self.w_max.max(self.cwnd);
        let k = libm::cbrt((origin - self.cwnd) / C_CUBIC);
        Epoch { start: now, k, origin, w_est: self.cwnd }
    }

    /// Congestion avoidance (RFC 9438 §4.2 to §4.5): `segments` were acknowledged.
    fn grow_in_avoidance(&mut self, now: Time, rtt: Span, segments: f64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(now));
        let (since, before) = (now.saturating_since(epoch.start), self.cwnd);
        // As fast as NewReno with the same average window (RFC 9438 §4.3).
        let has_caught_up = self.reno_catch_up && epoch.w_est >= self.cwnd_prior;
        let slope = if has_caught_up { 1.0 } else { 3.0 * (1.0 - BETA_CUBIC) / (1.0 + BETA_CUBIC) };
        epoch.w_est += slope * segments / self.cwnd;
        if self.reno_friendly && Self::target(&epoch, since) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est);
        } else {
            let ahead = Self::target(&epoch, since + rtt).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (ahead - self.cwnd) / self.cwnd * segments;
        }
        if self.fast_initial_growth && self.w_max == 0.0 {
            self.cwnd = self.cwnd.max(before + segments * EARLY_GROWTH);
        }
        self.epoch = Some(epoch);
        self.store_window();
    }

    /// Puts the window into bytes.
    fn store_window(&mut self) {
        let mss = self.reno.mss as f64;
        self.cwnd = self.cwnd.min(self.reno.max as f64 / mss);
        self.reno.cwnd = (self.cwnd * mss) as u64;
    }

    /// Reduces the window after a loss and stores its earlier value (RFC 9438 §4.6, §4.7).
    fn on_reduction(&mut self) {
        self.cwnd_prior = self.cwnd;
        let has_less = self.cwnd < self.w_max;
        self.w_max = if has_less { self.cwnd * (1.0 + BETA_CUBIC) / 2.0 } else { self.cwnd };
        self.epoch = None;
    }

    /// Ends slow start at the present window.
    pub(crate) fn end_slow_start(&mut self) {
        self.reno.ssthresh = self.reno.cwnd;
    }

    fn reduced_window(in_flight: u64) -> u64 {
        (in_flight as f64 * BETA_CUBIC) as u64
    }

    fn sync_from_reno(&mut self) {
        self.cwnd = self.reno.cwnd as f64 / self.reno.mss as f64;
    }
}

impl CongestionControl for Cubic {
    fn cwnd(&self) -> u64 {
        self.reno.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.reno.ssthresh
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        // An echo makes no window grow (RFC 3168 §6.1.2).
        if acked.in_recovery || acked.is_marked || !acked.is_limited {
            return;
        }
        let mut bytes = acked.bytes;
        if self.reno.is_slow_start() {
            match self.hystart.on_ack(acked, self.reno.cwnd, self.reno.mss) {
                Growth::Bytes(grown) => bytes = self.reno.grow_fast(grown),
                Growth::End => self.end_slow_start(),
            }
            self.sync_from_reno();
        }
        if !self.reno.is_slow_start() && bytes > 0 {
            let rtt = acked.smoothed.unwrap_or(Span::ZERO);
            self.grow_in_avoidance(acked.now, rtt, bytes as f64 / self.reno.mss as f64);
        }
    }

    fn on_loss(&mut self, _now: Time, in_flight: u64) {
        self.on_reduction();
        self.reno.cut(Self::reduced_window(in_flight));
        self.sync_from_reno();
    }

    fn on_echo(&mut self, now: Time, in_flight: u64) {
        self.on_loss(now, in_flight);
    }

    /// The next congestion avoidance begins as if there had been no loss (RFC 9438 §4.8).
    fn on_timeout(&mut self, _now: Time, in_flight: u64, is_first: bool) {
        (self.w_max, self.epoch) = (0.0, None);
        self.hystart.restart();
        self.reno.collapse(Self::reduced_window(in_flight), is_first);
        self.sync_from_reno();
    }

    fn on_idle(&mut self, initial: u64) {
        self.reno.restart(initial);
        self.epoch = None;
        self.sync_from_reno();
    }
}
