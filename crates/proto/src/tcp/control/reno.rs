//! NewReno (RFC 5681, RFC 6582; with selective acknowledgements RFC 6675).

use rampmeter_types::Time;

use super::algorithm::{AckEffect, CongestionControl, ControlParams, Reno};

/// NewReno.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewReno(Reno);

impl NewReno {
    /// Slow start from the initial window.
    pub fn new(start: &ControlParams) -> Self {
        Self(Reno::new(start))
    }
}

impl CongestionControl for NewReno {
    fn cwnd(&self) -> u64 {
        self.0.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        // An echo makes no window grow (RFC 3168 §6.1.2).
        if acked.in_recovery || acked.is_marked || !acked.is_limited {
            return;
        }
        let Self(reno) = self;
        if reno.is_slow_start() {
            reno.grow_fast(acked.bytes);
        } else {
            reno.grow_slowly(acked.bytes);
        }
    }

    fn on_loss(&mut self, _now: Time, in_flight: u64) {
        self.0.cut(in_flight / 2);
    }

    fn on_echo(&mut self, now: Time, in_flight: u64) {
        self.on_loss(now, in_flight);
    }

    fn on_timeout(&mut self, _now: Time, in_flight: u64, is_first: bool) {
        self.0.collapse(in_flight / 2, is_first);
    }

    fn on_idle(&mut self, initial: u64) {
        self.0.restart(initial);
    }
}
