//! Time from a token to its data at a receiver (RFC 6298), on which repairs depend.

use rampmeter_types::{NodeId, Span, Time};

use super::RttEstimator;

/// A token: source, flow and number.
pub(crate) type TokenId = (NodeId, u32, u32);

/// Time from a token to its data. One token at a time is timed. Sources at other distances share
/// the estimate, which is in proportion to their round trips.
#[derive(Debug)]
pub struct TokenDelay {
    /// Longest unloaded round trip: the shortest timeout.
    rtt: Span,
    /// Longest timeout, and the time after which a measurement is abandoned.
    max: Span,
    timed: Option<(TokenId, Time)>,
    estimate: Option<RttEstimator>,
}

impl TokenDelay {
    /// Returns an estimate without a sample. Timeouts are between `rtt`, the longest unloaded round
    /// trip, and `max`.
    pub fn new(rtt: Span, max: Span) -> Self {
        Self { rtt, max, timed: None, estimate: None }
    }

    /// Returns an estimate that starts at the unloaded round trip, so that a single sample has less
    /// weight.
    pub fn with_initial(rtt: Span, max: Span) -> Self {
        Self { estimate: Some(RttEstimator::with_initial(rtt, max)), ..Self::new(rtt, max) }
    }

    /// Returns how long a destination waits for data of a source at the round trip `rtt`: that long
    /// before the first sample.
    pub fn wait(&self, rtt: Span) -> Span {
        let wait =
            |known: RttEstimator| known.timeout(0).scale_floor(rtt.as_ps(), self.rtt.as_ps());
        self.estimate.map_or(rtt, wait)
    }

    /// Returns the smoothed delay, in proportion to the longest round trip; none before the first
    /// sample.
    pub fn smoothed_delay(&self) -> Span {
        self.estimate.and_then(|rtt| rtt.smoothed_rtt()).unwrap_or(Span::ZERO)
    }

    /// Times a token that is sent, unless another is being timed. That measurement is abandoned in
    /// the end, as its source may never use it.
    pub fn on_token(&mut self, now: Time, token: TokenId) {
        if self.timed.is_none_or(|(_, at)| now.saturating_since(at) > self.max) {
            self.timed = Some((token, now));
        }
    }

    /// Handles data for a token of a source at the round trip `rtt`. That for a later token of the
    /// same flow is no sample of the timed one.
    #[inline]
    pub fn on_data(&mut self, now: Time, token: TokenId, rtt: Span) {
        let Some(((src, flow, number), at)) = self.timed else { return };
        if (src, flow) != (token.0, token.1) || token.2 < number {
            return;
        }
        self.timed = None;
        if token.2 == number {
            self.sample(now.saturating_since(at), rtt);
        }
    }

    /// Records that data took `took`, a round trip of `rtt` included.
    pub fn sample(&mut self, took: Span, rtt: Span) {
        let sample = took.scale_floor(self.rtt.as_ps(), rtt.as_ps());
        let new = || RttEstimator::new(self.rtt, self.max);
        self.estimate.get_or_insert_with(new).sample(sample);
    }
}
