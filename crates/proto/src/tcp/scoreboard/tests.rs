//! Scoreboards by hand, and against a list of segments that is searched as a whole.

use super::*;
use proptest::prelude::*;

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn sent(n: u64) -> Scoreboard {
    let mut board = Scoreboard::new(1);
    (0..n).for_each(|us| board.send(at(us), 100));
    board
}

#[test]
fn segments_received_above_a_hole_are_not_in_flight() {
    let mut board = sent(5);
    let report = board.on_ack(at(10), 1, [(201, 401)].into_iter());
    assert_eq!((report.delivered, report.rtt), (200, Some(Span::from_us(7))));
    assert_eq!((board.in_flight(), board.n_sacked()), (300, 2));
    let report = board.on_ack(at(12), 401, [].into_iter());
    assert_eq!((report.cumulative, report.delivered, board.in_flight()), (400, 200, 100));
    assert!(report.is_reordered);
}

#[test]
fn segments_below_n_received_ones_are_lost_and_retransmitted_in_order() {
    let mut board = sent(6);
    board.on_ack(at(10), 1, [(201, 301), (401, 601)].into_iter());
    let below = board.overtaken_below(3);
    assert_eq!(below, 201);
    assert!(board.mark_lost_if(|segment| Some(segment.start < below)));
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
    board.mark_lost_if(|segment| Some(segment.start == 1));
    assert_eq!(board.on_ack(at(11), 51, [].into_iter()).cumulative, 0);
    assert_eq!((board.una(), board.in_flight()), (1, 100));
    board.on_ack(at(12), 250, [].into_iter());
    assert_eq!((board.una(), board.in_flight()), (201, 100));
}

/// A segment that was sent twice is no sample of the round trip (Karn).
#[test]
fn retransmitted_segments_give_no_samples() {
    let mut board = sent(2);
    board.mark_lost_if(|segment| Some(segment.start == 1));
    board.resend(at(5), 1);
    let report = board.on_ack(at(9), 101, [].into_iter());
    assert_eq!((report.rtt, report.latest.map(|segment| segment.sends)), (None, Some(2)));
    assert_eq!(board.on_ack(at(9), 201, [].into_iter()).rtt, Some(Span::from_us(8)));
}

#[test]
fn a_range_below_the_acknowledgement_reports_a_duplicate() {
    let mut board = sent(3);
    let report = board.on_ack(at(9), 201, [(1, 101)].into_iter());
    assert!(report.has_duplicate);
}

/// Reference scoreboard with a list of all segments.
#[derive(Default)]
struct Naive(Vec<Segment>);

impl Naive {
    fn on_ack(&mut self, ack: u64, sacks: &[Range]) {
        self.0.retain(|segment| segment.end() > ack);
        for segment in &mut self.0 {
            let is_in = |&(start, end): &Range| start <= segment.start && segment.end() <= end;
            if sacks.iter().any(is_in) {
                segment.state = SegmentState::Sacked;
            }
        }
    }

    fn lose_overtaken(&mut self, n: usize) {
        for place in 0..self.0.len() {
            let above =
                self.0[place + 1..].iter().filter(|s| s.state == SegmentState::Sacked).count();
            let segment = &mut self.0[place];
            if segment.state == SegmentState::InFlight && segment.sends == 1 && above >= n {
                segment.state = SegmentState::Lost;
            }
        }
    }

    fn first(&self, state: SegmentState, sends: u8) -> Option<u64> {
        let top = self.0.iter().rfind(|segment| segment.state == SegmentState::Sacked)?.start;
        let mut below = self.0.iter().take_while(|segment| segment.start < top);
        below.find(|s| s.state == state && s.sends <= sends).map(|segment| segment.start)
    }
}

fn states(segments: impl Iterator<Item = Segment>) -> Vec<(u64, u8, SegmentState)> {
    segments.map(|segment| (segment.start, segment.sends, segment.state)).collect()
}

proptest! {
    /// Arrivals in any order and by any ranges have the same effect as in a list that is searched
    /// as a whole.
    #[test]
    fn cursors_and_known_ranges_match_a_full_scan(
        steps in prop::collection::vec((0u8..6, 0u64..40, 1u64..12, 0usize..3), 1..200),
    ) {
        let mut board = Scoreboard::new(0);
        let mut naive = Naive::default();
        let mut blocks: VecDeque<Range> = VecDeque::new();
        for (step, (what, place, len, n)) in steps.into_iter().enumerate() {
            let now = at(step as u64);
            match what {
                0 | 1 => for _ in 0..len {
                    board.send(now, 10);
                    naive.0.extend(board.last());
                },
                2 => {
                    let start = board.una() + 10 * place;
                    let end = (start + 10 * len).min(board.next());
                    if start < end {
                        blocks.push_front((start, end));
                        blocks.truncate(3);
                    }
                    let report: Vec<Range> = blocks.iter().copied().take(n + 1).collect();
                    board.on_ack(now, board.una(), report.clone().into_iter());
                    naive.on_ack(board.una(), &report);
                    board.mark_overtaken_lost(3);
                    naive.lose_overtaken(3);
                }
                // Some of those in flight up to a place, as RACK judges them by time.
                5 => {
                    let end = board.una() + 10 * place;
                    let judge = |segment: &Segment| {
                        (segment.start < end).then_some(segment.start.is_multiple_of(30))
                    };
                    board.mark_lost_if(judge);
                    for segment in &mut naive.0 {
                        if segment.state == SegmentState::InFlight && judge(segment) == Some(true) {
                            segment.state = SegmentState::Lost;
                        }
                    }
                }
                3 => {
                    let ack = (board.una() + 10 * (place / 8)).min(board.next());
                    board.on_ack(now, ack, [].into_iter());
                    naive.on_ack(ack, &[]);
                    blocks.retain(|&(start, _)| start >= ack);
                }
                _ => if let Some(lost) = board.next_lost() {
                    board.resend(now, lost.start);
                    let same = naive.0.iter_mut().find(|s| s.start == lost.start);
                    let same = same.expect("the list has it");
                    prop_assert_eq!(same.state, SegmentState::Lost);
                    (same.state, same.sends) = (SegmentState::InFlight, same.sends + 1);
                },
            }
            let own = states(board.segments.iter().copied());
            prop_assert_eq!(own, states(naive.0.iter().copied()));
            let hole = board.first_hole().map(|segment| segment.start);
            prop_assert_eq!(hole, naive.first(SegmentState::InFlight, 1));
            let is_pipe = |s: &&Segment| s.state == SegmentState::InFlight;
            let pipe: u64 = naive.0.iter().filter(is_pipe).map(|s| u64::from(s.len)).sum();
            prop_assert_eq!(board.in_flight(), pipe);
        }
    }
}
