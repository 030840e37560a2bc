//! The repair of losses (RFC 6675 §5, RFC 8985), and the reaction to congestion marks (RFC 3168).

use super::super::config::{LossDetection, Tcp};
use super::super::prr::Prr;
use super::super::scoreboard::SegmentState;
use super::super::stats::TcpStats;
use super::*;

impl Connection {
    pub(super) fn find_losses(&mut self, now: Time, flight: u64, tcp: &Tcp, stats: &mut TcpStats) {
        let is_recovering = self.recovery != Recovery::None;
        let reordering = tcp.config.duplicate_acks;
        let has_lost = match tcp.config.loss_detection {
            LossDetection::RackTlp => {
                let is_urgent = is_recovering || self.board.n_sacked() >= reordering;
                self.rack.find_lost(now, &mut self.board, is_urgent, self.rtt.smoothed_rtt())
            }
            LossDetection::DupAck => self.board.mark_overtaken_lost(reordering),
        };
        if has_lost && !is_recovering {
            stats.recoveries += 1;
            self.recovery = Recovery::Fast(self.board.next());
            (self.is_urgent, self.rack.probe) = (true, None);
            self.control.on_loss(now, flight);
            self.prr = Prr::new(flight);
        }
    }

    pub(super) fn end_recovery(&mut self) {
        let (Recovery::Fast(end) | Recovery::Timeout(end)) = self.recovery else { return };
        if self.board.una() >= end {
            self.recovery = Recovery::None;
            self.is_urgent = false;
            self.rack.on_recovered();
        }
    }

    /// Handles the echo of a congestion mark: once for all bytes in flight (RFC 3168 §6.1.2).
    pub(super) fn on_echo(&mut self, now: Time, flight: u64, stats: &mut TcpStats) {
        if self.board.una() <= self.echo_end || self.recovery != Recovery::None {
            return;
        }
        stats.echoes += 1;
        self.echo_end = self.board.next();
        self.needs_cwr = true;
        self.control.on_echo(now, flight);
    }

    /// Returns the segment that a recovery retransmits if there is nothing else to send. These are
    /// segments that may be lost, and once the end of the flight (RFC 6675 §4, NextSeg's rules 3
    /// and 4). RACK has a timer and a probe for these.
    pub(super) fn rescue_segment(&mut self, tcp: &Tcp) -> Option<NextSegment> {
        if tcp.config.loss_detection != LossDetection::DupAck
            || !matches!(self.recovery, Recovery::Fast(_))
        {
            return None;
        }
        let may_rescue = self.board.una() > self.rescue_end;
        let hole = self.board.first_hole();
        let end =
            || self.board.last().filter(|last| may_rescue && last.state == SegmentState::InFlight);
        let segment = hole.or_else(|| end().copied())?;
        let len = if segment.start == self.end { 0 } else { segment.len };
        Some(NextSegment { start: segment.start, len, is_new: false })
    }
}
