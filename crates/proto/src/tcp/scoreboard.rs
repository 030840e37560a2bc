//! State of the sent segments that are not yet acknowledged: arrived, lost or in flight (RFC 6675
//! §4).
//!
//! The problem: each acknowledgement names the first missing byte and a few ranges above it. From
//! this a sender needs the bytes in flight, the segments that are lost, and the next one to
//! retransmit.
//!
//! The simple way keeps a list and passes over all of it with each acknowledgement. Windows have
//! thousands of segments here, so each packet would cost thousands of steps.
//!
//! The present way: segments are in the order of the stream. Each has one [`SegmentState`], and
//! sums of bytes by state are kept as states change. So bytes in flight (RFC 6675's pipe) are one
//! subtraction. Searches start from cursors below which nothing can be found:
//!
//! * `lost_from`: no segment below is lost.
//! * `hole_from`: every segment below has arrived, is lost or was retransmitted.
//! * `overtaken`: segments below were judged by [`Scoreboard::mark_overtaken_lost`].
//!
//! Ranges that were reported before are remembered, as acknowledgements repeat them. Only the new
//! parts of a range are visited. Most segments are equally long, so a segment's place is computed
//! and not searched for.
//!
//! Losses are judged elsewhere: by segments that overtook others
//! ([`Scoreboard::mark_overtaken_lost`]), by time (`rack`) or by a timeout.
//!
//! Hazards: a change of state must update the sums and lower the cursors
//! (`cursors_and_known_ranges_match_a_full_scan` compares with a whole pass). A segment that was
//! retransmitted without being lost counts twice in flight, until it arrives. Only segments sent
//! once give a round trip (`retransmitted_segments_give_no_samples`). A remembered range may be
//! forgotten, which costs time only.

use std::collections::VecDeque;

use rampmeter_types::{Span, Time};

use super::seq::Range;
use super::wire::SACK_MAX;

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// The segment was sent or retransmitted, and may be in flight.
    InFlight,
    /// The segment is lost, and has not been retransmitted.
    Lost,
    /// The segment has arrived: an acknowledgement reported it.
    Sacked,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Offset of its start in the stream.
    pub(super) start: u64,
    /// Length in bytes.
    pub(super) len: u32,
    /// Number of transmissions; stays at 255.
    pub(super) sends: u8,
    pub(super) state: SegmentState,
    /// True if it was retransmitted without being lost, and counts twice in flight.
    is_double: bool,
    /// Time of its last transmission.
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

/// Report of an acknowledgement about segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckReport {
    /// Bytes by which the cumulative acknowledgement rose.
    pub(super) cumulative: u64,
    /// Bytes that it reported for the first time.
    pub(super) delivered: u64,
    /// The segment sent last of those that it reported for the first time.
    pub(super) latest: Option<Segment>,
    /// The time since the last of them was sent that was sent once (Karn's rule).
    pub(super) rtt: Option<Span>,
    /// True if a segment that was sent once arrived after others that follow it in the stream.
    pub(super) is_reordered: bool,
    /// True if it reports a segment that has arrived twice.
    pub(super) has_duplicate: bool,
}

/// The segments between the cumulative acknowledgement and the unsent bytes.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    next: u64,
    /// Bytes by state.
    sacked: u64,
    lost: u64,
    /// Bytes in flight that count twice.
    doubled: u64,
    /// Segments by state.
    n_sacked: u32,
    /// One more than the highest byte that has arrived (RFC 8985's `RACK.fack`).
    fack: u64,
    /// No segment below is lost.
    lost_from: u64,
    /// Start of the search of [`Scoreboard::first_hole`]: every segment below has arrived, is lost
    /// or was retransmitted.
    hole_from: u64,
    /// Start of the search of [`Scoreboard::mark_overtaken_lost`]: as above.
    overtaken: u64,
    /// Ranges of which every segment has arrived: those that acknowledgements reported last.
    known: [Range; KNOWN],
}

/// Ranges that are remembered: those of an acknowledgement and one more. The one that was reported
/// longest ago is forgotten first; that costs a pass over its segments and nothing else. Ranges may
/// lie below the cumulative acknowledgement.
const KNOWN: usize = SACK_MAX + 1;

impl Scoreboard {
    /// Creates a scoreboard without segments, whose first byte is `start`.
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
            hole_from: start,
            overtaken: start,
            known: [(start, start); KNOWN],
        }
    }

    /// Returns the first byte that is not acknowledged (SND.UNA).
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// Returns the first byte that was never sent (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns true if nothing is unacknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the bytes in flight (RFC 6675's pipe): sent, neither arrived nor lost. Bytes that
    /// were retransmitted all the same count twice.
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

    /// Returns true if the last segment starts at `start`.
    pub(super) fn is_end(&self, start: u64) -> bool {
        self.last().is_some_and(|last| last.start == start)
    }

    pub(super) fn last(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// Records a new segment of `len` bytes as sent.
    pub(super) fn send(&mut self, now: Time, len: u32) {
        let (start, state) = (self.next, SegmentState::InFlight);
        let segment = Segment { start, len, sends: 1, state, is_double: false, sent_at: now };
        self.segments.push_back(segment);
        self.next += u64::from(len);
    }

    /// Records the segment that starts at `start` as retransmitted.
    pub(super) fn resend(&mut self, now: Time, start: u64) {
        let place = self.place(start);
        let Some(segment) = self.segments.get_mut(place) else { return };
        if segment.state == SegmentState::Lost {
            self.lost -= u64::from(segment.len);
            self.lost_from = segment.end();
        } else if !segment.is_double {
            segment.is_double = true;
            self.doubled += u64::from(segment.len);
        }
        segment.state = SegmentState::InFlight;
        segment.sends = segment.sends.saturating_add(1);
        segment.sent_at = now;
    }

    /// Returns true if bytes between two places of the stream are lost.
    pub(super) fn has_lost(&self, start: u64, end: u64) -> bool {
        let is_in = |segment: &&Segment| segment.start < end && segment.end() > start;
        self.lost > 0 && self.segments.iter().filter(is_in).any(|of| of.state == SegmentState::Lost)
    }

    /// Returns the first segment that is lost.
    pub(super) fn next_lost(&mut self) -> Option<Segment> {
        if self.lost == 0 {
            return None;
        }
        let from = self.place(self.lost_from);
        let segment =
            self.segments.range(from..).find(|segment| segment.state == SegmentState::Lost)?;
        self.lost_from = segment.start;
        Some(*segment)
    }

    /// Returns the first segment that was sent once, has not arrived, and is below one that has.
    pub(super) fn first_hole(&mut self) -> Option<Segment> {
        let from = self.place(self.hole_from);
        for segment in self.segments.range(from..) {
            self.hole_from = segment.start;
            if segment.end() >= self.fack {
                return None;
            }
            if segment.state == SegmentState::InFlight && segment.sends == 1 {
                return Some(*segment);
            }
        }
        None
    }

    /// Returns the place of the segment that has byte `offset`. If all segments below are as long
    /// as the first, as most are, no search is needed.
    fn place(&self, offset: u64) -> usize {
        let Some(first) = self.segments.front() else { return 0 };
        let before = offset.saturating_sub(first.start).checked_div(first.len.into());
        let place = before.map_or(usize::MAX, |before| before as usize);
        match self.segments.get(place) {
            Some(guess) if guess.start <= offset && offset < guess.end() => place,
            _ => self.segments.partition_point(|segment| segment.end() <= offset),
        }
    }

    /// Takes an acknowledgement of all below `ack`, and of `sacks`.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: u64,
        sacks: impl Iterator<Item = Range>,
    ) -> AckReport {
        let mut report = AckReport::default();
        while let Some(&segment) = self.segments.front().filter(|segment| segment.end() <= ack) {
            self.segments.pop_front();
            let len = u64::from(segment.len);
            self.doubled -= if segment.is_double { len } else { 0 };
            match segment.state {
                SegmentState::Sacked => {
                    (self.sacked, self.n_sacked) = (self.sacked - len, self.n_sacked - 1)
                }
                SegmentState::Lost => self.lost -= len,
                SegmentState::InFlight => {}
            }
            if segment.state != SegmentState::Sacked {
                self.record_delivery(now, segment, &mut report);
            }
        }
        // An acknowledgement within a segment counts up to its start: receivers take whole
        // segments.
        let ack = self.segments.front().map_or(ack, |segment| ack.min(segment.start));
        report.cumulative = ack - self.una;
        self.una = ack;
        self.fack = self.fack.max(ack);
        for (start, end) in sacks {
            if end <= ack || start < ack {
                report.has_duplicate = true;
                continue;
            }
            self.sack(now, (start, end), &mut report);
        }
        report
    }

    fn sack(&mut self, now: Time, (start, end): Range, report: &mut AckReport) {
        let touches = |known: &Range| known.0 <= end && start <= known.1;
        let place = self.known.iter().position(touches).unwrap_or(KNOWN - 1);
        self.known[..=place].rotate_right(1);
        let known = self.known[0];
        if known.0 <= start && end <= known.1 {
            return;
        }
        let is_part = touches(&known) && start <= known.0 && known.1 <= end;
        if is_part {
            self.sack_new(now, (start, known.0), report);
            self.sack_new(now, (known.1, end), report);
        } else {
            self.sack_new(now, (start, end), report);
        }
        self.known[0] = (start, end.min(self.next));
    }

    fn sack_new(&mut self, now: Time, (start, end): Range, report: &mut AckReport) {
        if start >= end {
            return;
        }
        let mut place = self.place(start);
        while let Some(segment) = self.segments.get_mut(place).filter(|s| s.end() <= end) {
            place += 1;
            let len = u64::from(segment.len);
            match segment.state {
                SegmentState::Sacked => continue,
                SegmentState::Lost => self.lost -= len,
                SegmentState::InFlight => {}
            }
            self.doubled -= if segment.is_double { len } else { 0 };
            (segment.state, segment.is_double) = (SegmentState::Sacked, false);
            (self.sacked, self.n_sacked) = (self.sacked + len, self.n_sacked + 1);
            let segment = *segment;
            self.record_delivery(now, segment, report);
        }
    }

    fn record_delivery(&mut self, now: Time, segment: Segment, report: &mut AckReport) {
        report.delivered += u64::from(segment.len);
        if segment.sends == 1 {
            report.is_reordered |= segment.end() < self.fack;
            if report.latest.is_none_or(|latest| latest.sent_key() <= segment.sent_key()) {
                report.rtt = Some(now.saturating_since(segment.sent_at));
            }
        }
        self.fack = self.fack.max(segment.end());
        if report.latest.is_none_or(|latest| latest.sent_key() <= segment.sent_key()) {
            report.latest = Some(segment);
        }
    }

    /// Judges the segments in flight in the order of the stream; returns true if any was lost.
    /// `judge` answers whether a segment is lost, and `None` to stop.
    pub(super) fn mark_lost_if(&mut self, mut judge: impl FnMut(&Segment) -> Option<bool>) -> bool {
        let before = self.lost;
        let mut place = 0;
        while let Some(&segment) = self.segments.get(place) {
            if segment.state != SegmentState::InFlight {
                place = self.next_place(place, &segment);
                continue;
            }
            match judge(&segment) {
                None => break,
                Some(false) => {}
                Some(true) => self.mark_lost(place),
            }
            place += 1;
        }
        self.lost > before
    }

    /// Loses the segments sent once above which `n` others have arrived; returns true if there were
    /// any (RFC 6675 §4).
    pub(super) fn mark_overtaken_lost(&mut self, n: u32) -> bool {
        let before = self.lost;
        let below = self.overtaken_below(n);
        if below <= self.overtaken {
            return false;
        }
        let (from, end) = (self.place(self.overtaken), self.place(below));
        for place in from..end {
            let segment = &self.segments[place];
            if segment.state == SegmentState::InFlight && segment.sends == 1 {
                self.mark_lost(place);
            }
        }
        self.overtaken = below;
        self.lost > before
    }

    fn mark_lost(&mut self, place: usize) {
        let segment = &mut self.segments[place];
        let len = u64::from(segment.len);
        self.doubled -= if segment.is_double { len } else { 0 };
        (segment.state, segment.is_double) = (SegmentState::Lost, false);
        self.lost += len;
        self.lost_from = self.lost_from.min(segment.start);
    }

    /// Returns the place of the next segment that may be in flight after one that is not.
    fn next_place(&self, place: usize, segment: &Segment) -> usize {
        let is_around = |known: &&Range| known.0 <= segment.start && segment.end() < known.1;
        let known = self.known.iter().find(is_around);
        known.map_or(place + 1, |known| self.place(known.1))
    }

    /// Returns the place in the stream below which a segment that has not arrived is lost because
    /// `n` segments above it have (RFC 6675's IsLost).
    fn overtaken_below(&self, n: u32) -> u64 {
        if self.n_sacked < n {
            return self.una;
        }
        let end = self.place(self.fack.saturating_sub(1)) + 1;
        let arrived = self.segments.range(..end.min(self.segments.len())).rev();
        let mut arrived = arrived.filter(|segment| segment.state == SegmentState::Sacked);
        arrived.nth(n as usize - 1).map_or(self.una, |segment| segment.start)
    }
}

#[cfg(test)]
mod tests;
