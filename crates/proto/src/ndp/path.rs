//! The paths of a flow: each is used once in a random order, then a new order is drawn (NDP,
//! section 3).
//!
//! A sender counts the trimmed packets of each path. A path with far more of them than the others
//! is left out of the next orders: a link on it has failed or is slower. It is retried, as if it
//! were new, some orders later.

use rampmeter_types::Rng;

use super::config::PathPenalty;

/// Answers after which a path may be judged.
const ANSWERS_MIN: u16 = 8;
/// Answers at which all counts are halved, so that old ones fade.
const ANSWERS_MAX: u16 = 256;

/// Orders for which a path is left out.
const SKIP_ORDERS: u8 = 16;

/// Score of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    /// Packets acknowledged, refused or lost.
    answers: u16,
    /// Number of these packets that were refused or lost.
    bad: u16,
    /// Orders for which it is still left out.
    skip_orders: u8,
}

/// The order of the paths of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    order: Vec<u16>,
    /// Number of paths used of the order.
    used: usize,
    /// Scores by path; empty if no path is penalised.
    scores: Vec<Score>,
}

impl Paths {
    /// Returns the path of the next packet, of `n`.
    #[inline]
    pub(super) fn next(&mut self, n: u16, penalty: PathPenalty, rng: &mut Rng) -> u16 {
        if self.used >= self.order.len() {
            self.redraw(n, penalty, rng);
        }
        let path = self.order[self.used];
        self.used += 1;
        path
    }

    /// Draws an order of all paths that are not left out.
    fn redraw(&mut self, n: u16, penalty: PathPenalty, rng: &mut Rng) {
        self.used = 0;
        self.order.clear();
        match penalty {
            PathPenalty::None => self.order.extend(0..n),
            PathPenalty::Outliers => {
                self.judge();
                let Self { order, scores, .. } = self;
                let is_used =
                    |p: &u16| scores.get(usize::from(*p)).is_none_or(|s| s.skip_orders == 0);
                order.extend((0..n).filter(is_used));
            }
        }
        if self.order.is_empty() {
            self.order.extend(0..n);
        }
        rng.shuffle(&mut self.order);
    }

    /// Notes that a packet of a path was acknowledged, refused or lost.
    #[inline]
    pub(super) fn on_answer(&mut self, path: u16, n: u16, is_bad: bool) {
        if path >= n {
            return;
        }
        if self.scores.is_empty() {
            self.scores.resize(usize::from(n), Score::default());
        }
        let score = &mut self.scores[usize::from(path)];
        score.answers = score.answers.saturating_add(1);
        score.bad = score.bad.saturating_add(u16::from(is_bad));
    }

    /// Removes paths that have more than twice the mean share of bad answers. Restores those that
    /// were removed for long enough, as if they were new.
    fn judge(&mut self) {
        let sum =
            |count: fn(&Score) -> u16| self.scores.iter().map(|s| u64::from(count(s))).sum::<u64>();
        let (answers, bad) = (sum(|s| s.answers), sum(|s| s.bad));
        let is_old = self.scores.iter().any(|s| s.answers >= ANSWERS_MAX);
        for score in &mut self.scores {
            if score.skip_orders > 0 {
                score.skip_orders -= 1;
                if score.skip_orders == 0 {
                    *score = Score::default();
                }
            } else if score.answers >= ANSWERS_MIN
                && u64::from(score.bad) * answers > 2 * bad * u64::from(score.answers)
            {
                score.skip_orders = SKIP_ORDERS;
            } else if is_old {
                (score.answers, score.bad) = (score.answers / 2, score.bad / 2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_types::Purpose;

    use super::*;

    fn order(paths: &mut Paths, n: u16, rng: &mut Rng) -> Vec<u16> {
        let mut order: Vec<u16> =
            (0..n).map(|_| paths.next(n, PathPenalty::Outliers, rng)).collect();
        order.sort_unstable();
        order
    }

    #[test]
    fn every_path_is_used_once_before_any_is_used_again() {
        let mut rng = Rng::new(1, 0, Purpose::Test);
        let mut paths = Paths::default();
        for _ in 0..50 {
            assert_eq!(order(&mut paths, 7, &mut rng), (0..7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_path_with_far_more_trims_is_skipped_and_later_retried() {
        let mut rng = Rng::new(1, 0, Purpose::Test);
        let mut paths = Paths::default();
        let mut used = [0; 4];
        let mut rounds_without = 0;
        for _ in 0..100 {
            let before = used[2];
            for _ in 0..4 {
                let path = paths.next(4, PathPenalty::Outliers, &mut rng);
                used[usize::from(path)] += 1;
                paths.on_answer(path, 4, path == 2 || rng.bernoulli(0.02));
            }
            rounds_without += u32::from(used[2] == before);
        }
        assert!(rounds_without > 50, "excluded in {rounds_without} of 100 rounds");
        assert!(used[2] > 10, "tried again: {used:?}");
    }

    #[test]
    fn paths_that_trim_alike_are_all_used() {
        let mut rng = Rng::new(1, 0, Purpose::Test);
        let mut paths = Paths::default();
        for _ in 0..200 {
            assert_eq!(order(&mut paths, 4, &mut rng), [0, 1, 2, 3]);
            (0..4).for_each(|path| paths.on_answer(path, 4, true));
        }
    }
}
