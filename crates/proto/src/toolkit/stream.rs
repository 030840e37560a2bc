//! Flow that is sent by windows: acknowledged packets, lost packets, and the next packet.
//!
//! A [`Stream`] keeps the scoreboard of one flow. Its [`Window`] is the congestion control: it is
//! notified of acknowledgements, losses and timeouts, and returns the limit of packets in flight.
//! The protocol keeps the timer (a [`RetryTimer`](super::RetryTimer)), gets the next packet from
//! [`Stream::sendable`], and calls [`Stream::send`] when it is sent. The other end is an
//! [`AckReceiver`](super::AckReceiver).
//!
//! A timeout returns to the first packet that is missing and skips those acknowledged. Windows with
//! a [`Window::reorder_max`] also count a packet as lost when packets that far behind it have
//! arrived. It is retransmitted once, before anything new. A second loss of it is found by a
//! timeout.

use std::collections::VecDeque;

use rampmeter_types::collections::SeqSet;
use rampmeter_types::{Rate, Span, Time};

/// Quantity that a window limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendLimit {
    /// Packets from the first that has not been acknowledged on.
    Window,
    /// Packets in flight: sent, and neither acknowledged nor lost.
    InFlight,
}

/// Effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckEffect {
    /// The time.
    pub now: Time,
    /// Packets by which the cumulative acknowledgement rose.
    pub cumulative: u32,
    /// Packets that it acknowledged for the first time, selectively or not.
    pub fresh: u32,
    /// Packets in flight afterwards.
    pub in_flight: u32,
    /// A round-trip time, if the packet that was timed is acknowledged.
    pub rtt: Option<Span>,
    /// True if it echoes a congestion mark.
    pub is_marked: bool,
    /// True if it ends a recovery: all packets sent before a loss was found have arrived.
    pub ends_recovery: bool,
}

/// The congestion control of one flow. Windows are in packets.
pub trait Window {
    /// Quantity that the window limits.
    const LIMIT: SendLimit = SendLimit::InFlight;

    /// Returns the packets that the window allows in flight.
    fn cwnd(&self) -> u32;

    /// Returns the number of later packets that must arrive before a missing one counts as lost
    /// (TCP: 3). Returns `None` if only timeouts find losses.
    fn reorder_max(&self) -> Option<u32> {
        None
    }

    /// Handles an acknowledgement.
    fn on_ack(&mut self, acked: &AckEffect);

    /// Handles a loss that later packets revealed: once for all losses of a window.
    fn on_loss(&mut self, _now: Time, _in_flight: u32) {}

    /// Handles a timeout of the flow.
    fn on_timeout(&mut self, now: Time);

    /// Returns the rate at which packets may be sent, if it is limited.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}

/// An acknowledgement as it arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Every packet below has arrived.
    pub cumulative: u32,
    /// Bit i is set if packet `cumulative + i` has arrived.
    pub sack: u64,
    /// True if it echoes a congestion mark.
    pub is_marked: bool,
}

/// The scoreboard of one flow.
#[derive(Clone, Debug)]
pub struct Stream<W> {
    /// The congestion control.
    pub window: W,
    packets: u32,
    acked: SeqSet,
    /// The next packet to look at.
    next: u32,
    /// Packets below have been sent.
    sent: u32,
    /// One more than the highest packet acknowledged.
    acked_end: u32,
    /// Packets below have been judged lost or not.
    loss_checked_end: u32,
    /// Packets found lost and not retransmitted, lowest first.
    lost: VecDeque<u32>,
    /// Losses below are of a window that has been cut.
    recovery_end: u32,
    /// The packet that is timed, and the time at which it was sent.
    timed: Option<(u32, Time)>,
    /// Time at which pacing allows the next packet.
    paced_until: Time,
}

impl<W: Window> Stream<W> {
    /// Returns a flow of `packets`.
    pub fn new(packets: u32, window: W) -> Self {
        Self {
            window,
            packets,
            acked: SeqSet::default(),
            next: 0,
            sent: 0,
            acked_end: 0,
            loss_checked_end: 0,
            lost: VecDeque::new(),
            recovery_end: 0,
            timed: None,
            paced_until: Time::ZERO,
        }
    }

    /// Every packet below has been acknowledged.
    pub fn cumulative(&self) -> u32 {
        self.acked.first_missing()
    }

    /// Returns the packets from the first that has not been acknowledged on.
    pub fn remaining(&self) -> u32 {
        self.packets - self.cumulative()
    }

    /// Returns true if everything has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.remaining() == 0
    }

    /// Returns the packets sent that are neither acknowledged nor lost. After a timeout all that
    /// were sent count as lost until they are retransmitted.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        let known = self.acked.len() - self.acked_from(self.next);
        (self.next.max(self.cumulative()) - known).saturating_sub(self.lost.len() as u32)
    }

    /// Returns the packets acknowledged from `from` on.
    #[inline]
    fn acked_from(&self, from: u32) -> u32 {
        if from >= self.acked_end {
            return 0;
        }
        (from..self.acked_end).map(|seq| u32::from(self.acked.contains(seq))).sum()
    }

    /// Returns the next packet that the window allows: one that was lost, or else the next in
    /// order.
    #[inline]
    pub fn sendable(&self) -> Option<u32> {
        if let Some(&seq) = self.lost.front() {
            return Some(seq);
        }
        let seq = self.acked.next_missing(self.next);
        let has_room = match W::LIMIT {
            SendLimit::Window => seq - self.cumulative() < self.window.cwnd(),
            SendLimit::InFlight => self.in_flight() < self.window.cwnd(),
        };
        (seq < self.packets && has_room).then_some(seq)
    }

    /// Returns the first packet that has never been sent.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Returns the time at which pacing allows the next packet.
    pub fn paced_until(&self) -> Time {
        self.paced_until
    }

    /// Sends packet `seq`, which was sendable, with this many bytes on the wire.
    pub fn send(&mut self, now: Time, seq: u32, wire_bytes: u16) {
        if self.lost.front() == Some(&seq) {
            self.lost.pop_front();
        } else {
            self.next = seq + 1;
        }
        if seq >= self.sent {
            self.sent = seq + 1;
            // A packet that is sent twice is no sample of the round trip.
            self.timed.get_or_insert((seq, now));
        }
        if let Some(rate) = self.window.pacing() {
            let time = rate.tx_time(rampmeter_types::Bytes::new(wire_bytes.into()));
            self.paced_until = self.paced_until.max(now) + time;
        }
    }

    /// Handles an acknowledgement. Returns its effects; `None` if it is older than another that has
    /// arrived, or acknowledges packets that do not exist.
    pub fn on_ack(&mut self, now: Time, ack: &Ack) -> Option<AckEffect> {
        let before = (self.cumulative(), self.acked.len());
        if ack.cumulative < before.0 || ack.cumulative > self.packets {
            return None;
        }
        self.acked.insert_below(ack.cumulative);
        self.acked_end = self.acked_end.max(ack.cumulative);
        let mut sack = ack.sack;
        while sack != 0 {
            let seq = u64::from(ack.cumulative) + u64::from(sack.trailing_zeros());
            sack &= sack - 1;
            if seq < self.packets.into() {
                self.acked.insert(seq as u32);
                self.acked_end = self.acked_end.max(seq as u32 + 1);
            }
        }
        self.drop_arrived_losses();
        let timed = self.timed.filter(|&(seq, _)| self.acked.contains(seq));
        let rtt = timed.map(|(_, at)| now.saturating_since(at));
        if rtt.is_some() {
            self.timed = None;
        }
        let cumulative = self.cumulative() - before.0;
        let recovers = before.0 < self.recovery_end;
        let acked = AckEffect {
            now,
            cumulative,
            fresh: self.acked.len() - before.1,
            in_flight: if W::LIMIT == SendLimit::InFlight { self.in_flight() } else { 0 },
            rtt,
            is_marked: ack.is_marked,
            ends_recovery: recovers && self.cumulative() >= self.recovery_end,
        };
        self.window.on_ack(&acked);
        if let Some(reorder_max) = self.window.reorder_max() {
            self.find_losses(now, reorder_max);
        }
        Some(acked)
    }

    /// Finds packets that others, sent well after them, have overtaken.
    fn find_losses(&mut self, now: Time, reorder_max: u32) {
        let end = self.acked_end.saturating_sub(reorder_max);
        let from = self.loss_checked_end.max(self.cumulative());
        self.loss_checked_end = self.loss_checked_end.max(end);
        let missing = (from..end).filter(|&seq| !self.acked.contains(seq));
        let before = self.lost.len();
        self.lost.extend(missing);
        if self.lost.len() > before {
            // A packet that is retransmitted is acknowledged late: it is no sample.
            self.timed = self.timed.filter(|&(seq, _)| seq >= end);
            if from >= self.recovery_end {
                self.recovery_end = self.sent;
                self.window.on_loss(now, self.in_flight());
            }
        }
    }

    /// Restarts at the first packet that is missing.
    pub fn on_timeout(&mut self, now: Time) {
        self.window.on_timeout(now);
        self.next = self.cumulative();
        self.loss_checked_end = self.sent;
        self.lost.clear();
        self.timed = None;
        self.recovery_end = self.cumulative();
    }

    fn drop_arrived_losses(&mut self) {
        if !self.lost.is_empty() {
            let acked = &self.acked;
            self.lost.retain(|&seq| !acked.contains(seq));
        }
    }
}

/// Round-trip times and the retransmission timeout that follows from them (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttEstimator {
    smoothed: Option<(Span, Span)>,
    min: Span,
    max: Span,
}

impl RttEstimator {
    /// Creates an estimator without a sample. Timeouts are between `min` and `max`, and `max`
    /// before the first sample.
    pub fn new(min: Span, max: Span) -> Self {
        Self { smoothed: None, min, max }
    }

    /// Returns an estimator that starts at the unloaded round trip, the shortest timeout.
    pub fn with_initial(rtt: Span, max: Span) -> Self {
        Self { smoothed: Some((rtt, Span::ZERO)), min: rtt, max }
    }

    /// Returns the smoothed round-trip time, once there is a sample.
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.smoothed.map(|(rtt, _)| rtt)
    }

    /// Returns the timeout before the first sample, if `known` is a guess of it.
    pub fn first_timeout(&self, known: Span) -> Span {
        known.clamp(self.min, self.max)
    }

    /// Takes a sample: an eighth of it counts, a quarter of its distance.
    pub fn sample(&mut self, sample: Span) {
        let ps = sample.as_ps();
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((rtt, var)) => {
                let distance = rtt.as_ps().abs_diff(ps);
                let var = Span::from_ps((3 * var.as_ps() + distance) / 4);
                (Span::from_ps((7 * rtt.as_ps() + ps) / 8), var)
            }
        });
    }

    /// Returns the retransmission timeout after `timeouts` in a row, doubled each time.
    pub fn timeout(&self, timeouts: u32) -> Span {
        let base = self.smoothed.map_or(self.max, |(rtt, var)| rtt + var * 4);
        (base.max(self.min) * (1 << timeouts.min(16))).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NewReno in packets: slow start, one packet a round trip after it, half after a loss.
    struct NewReno {
        cwnd: u32,
        threshold: u32,
        acked: u32,
    }

    impl Window for NewReno {
        fn cwnd(&self) -> u32 {
            self.cwnd
        }

        fn reorder_max(&self) -> Option<u32> {
            Some(3)
        }

        fn on_ack(&mut self, acked: &AckEffect) {
            self.acked += acked.fresh;
            let needed = if self.cwnd < self.threshold { 1 } else { self.cwnd };
            while self.acked >= needed {
                self.acked -= needed;
                self.cwnd += 1;
            }
        }

        fn on_loss(&mut self, _now: Time, in_flight: u32) {
            self.threshold = (in_flight / 2).max(2);
            self.cwnd = self.threshold;
        }

        fn on_timeout(&mut self, _now: Time) {
            self.threshold = (self.cwnd / 2).max(2);
            self.cwnd = 1;
        }

        fn pacing(&self) -> Option<Rate> {
            Some(Rate::from_gbps(10))
        }
    }

    fn stream(packets: u32, cwnd: u32) -> Stream<NewReno> {
        Stream::new(packets, NewReno { cwnd, threshold: 64, acked: 0 })
    }

    /// Sends all that the window allows.
    fn send_all(stream: &mut Stream<NewReno>, now: Time) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(seq) = stream.sendable() {
            stream.send(now, seq, 1_500);
            sent.push(seq);
        }
        sent
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn slow_start_doubles_the_window_of_a_stream_each_round_trip() {
        let mut stream = stream(100, 2);
        assert_eq!(send_all(&mut stream, at(0)), [0, 1]);
        let acked = stream.on_ack(at(10), &Ack { cumulative: 2, ..Ack::default() }).unwrap();
        assert_eq!((acked.fresh, acked.rtt), (2, Some(Span::from_us(10))));
        assert_eq!(send_all(&mut stream, at(10)), [2, 3, 4, 5]);
        assert_eq!(stream.in_flight(), 4);
    }

    #[test]
    fn a_hole_below_three_sacks_is_retransmitted_once_before_new_packets() {
        let mut stream = stream(100, 8);
        send_all(&mut stream, at(0));
        for (arrived, lost) in [(0b10, false), (0b110, false), (0b1110, true)] {
            stream.on_ack(at(10), &Ack { sack: arrived, ..Ack::default() });
            assert_eq!(stream.sendable() == Some(0), lost, "{arrived:b}");
        }
        stream.window.cwnd = 5;
        stream.send(at(10), 0, 1_500);
        stream.on_ack(at(11), &Ack { sack: 0b11110, ..Ack::default() });
        assert_ne!(stream.sendable(), Some(0));
        let acked = stream.on_ack(at(20), &Ack { cumulative: 8, ..Ack::default() }).unwrap();
        assert!(acked.ends_recovery && stream.cumulative() == 8);
    }

    #[test]
    fn a_timeout_restarts_at_the_first_missing_packet_and_skips_sacks() {
        let mut stream = stream(6, 6);
        send_all(&mut stream, at(0));
        stream.on_ack(at(10), &Ack { cumulative: 1, sack: 0b10, is_marked: false });
        stream.on_timeout(at(50));
        assert_eq!((stream.window.cwnd(), stream.in_flight()), (1, 0));
        assert_eq!(send_all(&mut stream, at(50)), [1]);
        stream.window.cwnd = 6;
        assert_eq!(send_all(&mut stream, at(51)), [3, 4, 5]);
    }

    #[test]
    fn acknowledgements_of_packets_that_do_not_exist_are_ignored() {
        let mut stream = stream(4, 4);
        send_all(&mut stream, at(0));
        assert_eq!(stream.on_ack(at(1), &Ack { cumulative: 5, ..Ack::default() }), None);
        stream.on_ack(at(1), &Ack { cumulative: 2, sack: u64::MAX << 1, is_marked: false });
        assert_eq!((stream.cumulative(), stream.remaining()), (2, 2));
    }

    #[test]
    fn pacing_spaces_packets_by_their_time_on_the_wire() {
        let mut stream = stream(4, 4);
        send_all(&mut stream, at(0));
        assert_eq!(stream.paced_until(), Time::ZERO + Span::from_ns(4 * 1_200));
    }

    #[test]
    fn the_timeout_follows_round_trips_and_doubles() {
        let mut rtt = RttEstimator::new(Span::from_us(10), Span::from_us(1_000));
        assert_eq!(rtt.timeout(0), Span::from_us(1_000));
        rtt.sample(Span::from_us(40));
        assert_eq!(rtt.timeout(0), Span::from_us(120));
        assert_eq!(rtt.timeout(2), Span::from_us(480));
        rtt.sample(Span::from_us(40));
        assert_eq!(rtt.timeout(0), Span::from_us(100));
    }
}
