//! What a sender knows of the segments that it has sent and that are not yet acknowledged: which
//! have arrived, which are lost, how much is in flight (RFC 6675 §4).

use std::collections::VecDeque;

use rampmeter_core::{Span, Time};

use super::seq::Range;

/// What is known of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was sent, perhaps again, and may be on its way.
    InFlight,
    /// It is lost, and has not been sent again.
    Lost,
    /// It has arrived: an acknowledgement told of it.
    Sacked,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Where it starts in the stream.
    pub(super) start: u64,
    /// Its bytes.
    pub(super) len: u32,
    /// How often it was sent; stays at 255.
    pub(super) sends: u8,
    pub(super) fate: Fate,
    /// It was sent again without being lost, and counts twice in flight.
    is_double: bool,
    /// When it was sent last.
    pub(super) sent_at: Time,
}

impl Segment {
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Orders segments by when they were sent last (RFC 8985 §5.2).
    pub(super) fn sent_key(&self) -> (Time, u64) {
        (self.sent_at, self.end())
    }
}

/// What an acknowledgement told of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// By how many bytes the cumulative acknowledgement rose.
    pub(super) cumulative: u64,
    /// Bytes of which it told for the first time.
    pub(super) delivered: u64,
    /// The segment sent last of those that it told of for the first time.
    pub(super) latest: Option<Segment>,
    /// The time since the last of them was sent that was sent once (Karn's rule).
    pub(super) rtt: Option<Span>,
    /// Whether a segment that was sent once arrived after others that follow it in the stream.
    pub(super) is_reordered: bool,
    /// Whether it tells of a segment that has arrived twice.
    pub(super) has_duplicate: bool,
}

/// The segments between the cumulative acknowledgement and what has not been sent.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    next: u64,
    /// Bytes by fate.
    sacked: u64,
    lost: u64,
    /// Bytes in flight that count twice.
    doubled: u64,
    /// Segments by fate.
    n_sacked: u32,
    /// One more than the highest byte that has arrived (RFC 8985's `RACK.fack`).
    fack: u64,
    /// No segment below is lost.
    lost_from: u64,
}

impl Scoreboard {
    /// Nothing sent; the first byte is `start`.
    pub(super) fn new(start: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            una: start,
            next: start,
            sacked: 0,
            lost: 0,
            doubled: 0,
            n_sacked: 0,
            fack: start,
            lost_from: start,
        }
    }

    /// The first byte that is not acknowledged (SND.UNA).
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The first byte that was never sent (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether nothing is unacknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes in flight: sent, neither arrived nor lost, and twice what was sent again all the same
    /// (RFC 6675's pipe).
    pub(super) fn in_flight(&self) -> u64 {
        self.next - self.una - self.sacked - self.lost + self.doubled
    }

    /// Segments that have arrived above the cumulative acknowledgement.
    pub(super) fn n_sacked(&self) -> u32 {
        self.n_sacked
    }

    /// Segments that are not acknowledged.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether the last segment starts at `start`.
    pub(super) fn is_end(&self, start: u64) -> bool {
        self.last().is_some_and(|last| last.start == start)
    }

    pub(super) fn last(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// A new segment of `len` bytes leaves.
    pub(super) fn send(&mut self, now: Time, len: u32) {
        let (start, fate) = (self.next, Fate::InFlight);
        let segment = Segment { start, len, sends: 1, fate, is_double: false, sent_at: now };
        self.segments.push_back(segment);
        self.next += u64::from(len);
    }

    /// The segment that starts at `start` leaves again.
    pub(super) fn resend(&mut self, now: Time, start: u64) {
        let place = self.place(start);
        let Some(segment) = self.segments.get_mut(place) else { return };
        if segment.fate == Fate::Lost {
            self.lost -= u64::from(segment.len);
            self.lost_from = segment.end();
        } else if !segment.is_double {
            segment.is_double = true;
            self.doubled += u64::from(segment.len);
        }
        segment.fate = Fate::InFlight;
        segment.sends = segment.sends.saturating_add(1);
        segment.sent_at = now;
    }

    /// The first segment that is lost.
    pub(super) fn next_lost(&mut self) -> Option<Segment> {
        if self.lost == 0 {
            return None;
        }
        let from = self.place(self.lost_from);
        let segment = self.segments.range(from..).find(|segment| segment.fate == Fate::Lost)?;
        self.lost_from = segment.start;
        Some(*segment)
    }

    /// The first segment that was sent once, has not arrived, and is below one that has.
    pub(super) fn first_hole(&self) -> Option<Segment> {
        let below = self.segments.iter().take_while(|segment| segment.end() < self.fack);
        below.filter(|segment| segment.fate == Fate::InFlight && segment.sends == 1).copied().next()
    }

    /// The place of the segment that has byte `offset`.
    fn place(&self, offset: u64) -> usize {
        self.segments.partition_point(|segment| segment.end() <= offset)
    }

    /// Takes an acknowledgement of all below `ack`, and of `sacks`.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: u64,
        sacks: impl Iterator<Item = Range>,
    ) -> Told {
        // What ends within a segment counts up to its start: receivers take whole segments.
        let within = self.segments.get(self.place(ack)).filter(|segment| segment.start < ack);
        let ack = within.map_or(ack, |segment| segment.start);
        let mut told = Told { cumulative: ack - self.una, ..Told::default() };
        while let Some(&segment) = self.segments.front().filter(|segment| segment.end() <= ack) {
            self.segments.pop_front();
            let len = u64::from(segment.len);
            self.doubled -= if segment.is_double { len } else { 0 };
            match segment.fate {
                Fate::Sacked => {
                    (self.sacked, self.n_sacked) = (self.sacked - len, self.n_sacked - 1)
                }
                Fate::Lost => self.lost -= len,
                Fate::InFlight => {}
            }
            if segment.fate != Fate::Sacked {
                self.learn(now, segment, &mut told);
            }
        }
        self.una = ack;
        self.fack = self.fack.max(ack);
        for (start, end) in sacks {
            if end <= ack || start < ack {
                told.has_duplicate = true;
                continue;
            }
            self.sack(now, (start, end), &mut told);
        }
        told
    }

    fn sack(&mut self, now: Time, (start, end): Range, told: &mut Told) {
        let mut place = self.place(start);
        while let Some(segment) = self.segments.get_mut(place).filter(|s| s.end() <= end) {
            place += 1;
            let len = u64::from(segment.len);
            match segment.fate {
                Fate::Sacked => continue,
                Fate::Lost => self.lost -= len,
                Fate::InFlight => {}
            }
            self.doubled -= if segment.is_double { len } else { 0 };
            (segment.fate, segment.is_double) = (Fate::Sacked, false);
            (self.sacked, self.n_sacked) = (self.sacked + len, self.n_sacked + 1);
            let segment = *segment;
            self.learn(now, segment, told);
        }
    }

    fn learn(&mut self, now: Time, segment: Segment, told: &mut Told) {
        told.delivered += u64::from(segment.len);
        if segment.sends == 1 {
            told.is_reordered |= segment.end() < self.fack;
            if told.latest.is_none_or(|latest| latest.sent_key() <= segment.sent_key()) {
                told.rtt = Some(now.saturating_since(segment.sent_at));
            }
        }
        self.fack = self.fack.max(segment.end());
        if told.latest.is_none_or(|latest| latest.sent_key() <= segment.sent_key()) {
            told.latest = Some(segment);
        }
    }

    /// Judges the segments in flight in the order of the stream; returns whether any was lost.
    /// `judge` answers whether a segment is lost, and `None` to stop.
    pub(super) fn lose(&mut self, mut judge: impl FnMut(&Segment) -> Option<bool>) -> bool {
        let before = self.lost;
        for segment in &mut self.segments {
            if segment.fate != Fate::InFlight {
                continue;
            }
            match judge(segment) {
                None => break,
                Some(false) => {}
                Some(true) => {
                    let len = u64::from(segment.len);
                    self.doubled -= if segment.is_double { len } else { 0 };
                    (segment.fate, segment.is_double) = (Fate::Lost, false);
                    self.lost += len;
                    self.lost_from = self.lost_from.min(segment.start);
                }
            }
        }
        self.lost > before
    }

    /// The place in the stream below which a segment that has not arrived is lost because `n`
    /// segments above it have (RFC 6675's IsLost).
    pub(super) fn overtaken_below(&self, n: u32) -> u64 {
        if self.n_sacked < n {
            return self.una;
        }
        let end = self.place(self.fack.saturating_sub(1)) + 1;
        let arrived = self.segments.range(..end.min(self.segments.len())).rev();
        let mut arrived = arrived.filter(|segment| segment.fate == Fate::Sacked);
        arrived.nth(n as usize - 1).map_or(self.una, |segment| segment.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn sent(n: u64) -> Scoreboard {
        let mut board = Scoreboard::new(1);
        (0..n).for_each(|us| board.send(at(us), 100));
        board
    }

    #[test]
    fn what_arrived_above_a_hole_is_not_in_flight() {
        let mut board = sent(5);
        let told = board.on_ack(at(10), 1, [(201, 401)].into_iter());
        assert_eq!((told.delivered, told.rtt), (200, Some(Span::from_us(7))));
        assert_eq!((board.in_flight(), board.n_sacked()), (300, 2));
        let told = board.on_ack(at(12), 401, [].into_iter());
        assert_eq!((told.cumulative, told.delivered, board.in_flight()), (400, 200, 100));
        assert!(told.is_reordered);
    }

    #[test]
    fn segments_below_n_that_have_arrived_are_lost_and_sent_again_in_order() {
        let mut board = sent(6);
        board.on_ack(at(10), 1, [(201, 301), (401, 601)].into_iter());
        let below = board.overtaken_below(3);
        assert_eq!(below, 201);
        assert!(board.lose(|segment| Some(segment.start < below)));
        assert_eq!(board.in_flight(), 100);
        assert_eq!(board.next_lost().map(|segment| segment.start), Some(1));
        board.resend(at(11), 1);
        board.resend(at(11), 101);
        assert_eq!((board.next_lost().is_none(), board.in_flight()), (true, 300));
    }

    #[test]
    fn an_acknowledgement_of_half_a_segment_counts_to_its_start() {
        let mut board = sent(3);
        board.on_ack(at(10), 1, [(101, 201)].into_iter());
        board.lose(|segment| Some(segment.start == 1));
        assert_eq!(board.on_ack(at(11), 51, [].into_iter()).cumulative, 0);
        assert_eq!((board.una(), board.in_flight()), (1, 100));
        board.on_ack(at(12), 250, [].into_iter());
        assert_eq!((board.una(), board.in_flight()), (201, 100));
    }

    /// A segment that was sent twice says nothing of the round trip (Karn).
    #[test]
    fn only_segments_sent_once_are_samples() {
        let mut board = sent(2);
        board.lose(|segment| Some(segment.start == 1));
        board.resend(at(5), 1);
        let told = board.on_ack(at(9), 101, [].into_iter());
        assert_eq!((told.rtt, told.latest.map(|segment| segment.sends)), (None, Some(2)));
        assert_eq!(board.on_ack(at(9), 201, [].into_iter()).rtt, Some(Span::from_us(8)));
    }

    #[test]
    fn a_range_below_the_acknowledgement_tells_of_a_duplicate() {
        let mut board = sent(3);
        let told = board.on_ack(at(9), 201, [(1, 101)].into_iter());
        assert!(told.has_duplicate);
    }
}
