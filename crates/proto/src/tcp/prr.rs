//! Proportional rate reduction (RFC 6937): during recovery as much is sent as arrives, in the
//! proportion of the new window to the old one.
//!
//! Without it a sender that detects many losses at once retransmits as many segments at once. Most
//! of these are lost too.

/// The window during one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Prr {
    /// Bytes that were not acknowledged when the recovery began (RecoverFS).
    recover_fs: u64,
    /// Bytes that have arrived since (prr_delivered).
    prr_delivered: u64,
    /// Bytes sent since (prr_out).
    prr_out: u64,
    window: u64,
}

impl Prr {
    /// Begins a recovery with this many bytes unacknowledged.
    pub(super) fn new(recover_fs: u64) -> Self {
        Self { recover_fs, ..Self::default() }
    }

    pub(super) fn on_send(&mut self, bytes: u64) {
        self.prr_out += bytes;
    }

    /// Handles an acknowledgement that reports `delivered` bytes (RFC 6937 §3, with the slow start
    /// of PRR-SSRB).
    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, mss: u64) {
        self.prr_delivered += delivered;
        let more = if in_flight > ssthresh {
            let share = u128::from(self.prr_delivered) * u128::from(ssthresh);
            let due = share.div_ceil(u128::from(self.recover_fs.max(1))) as u64;
            due.saturating_sub(self.prr_out)
        } else {
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + mss;
            limit.min(ssthresh - in_flight)
        };
        self.window = in_flight + more;
    }

    /// Returns the congestion window.
    pub(super) fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4, the first example: 20 segments, one of them lost, half the window with NewReno.
    #[test]
    fn one_segment_is_sent_for_two_that_arrive() {
        let (mut prr, mut in_flight, mut sent) = (Prr::new(20), 19, 0);
        prr.on_send(1);
        for arrived in 1..=18 {
            in_flight -= 1;
            prr.on_ack(1, in_flight, 10, 1);
            while in_flight < prr.window() {
                (in_flight, sent) = (in_flight + 1, sent + 1);
                prr.on_send(1);
            }
            assert!(sent <= arrived / 2, "{sent} after {arrived}");
        }
        assert_eq!((in_flight, sent), (10, 9));
    }

    /// The second example: 15 of 20 are lost. As much is sent as arrives, and one segment more.
    #[test]
    fn after_a_burst_of_losses_the_window_grows_as_in_slow_start() {
        let mut prr = Prr::new(20);
        prr.on_send(1);
        let mut in_flight = 3;
        for expected in [4, 5, 6] {
            prr.on_ack(1, in_flight - 1, 10, 1);
            in_flight = prr.window();
            prr.on_send(2);
            assert_eq!(in_flight, expected);
        }
    }
}
