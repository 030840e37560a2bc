//! Time from a token to its data at a destination (RFC 6298), on which repairs depend.

use rampmeter_core::{NodeId, Span, Time};

use super::config::{Pair, Phost};
use crate::parts::Rtt;

/// A token: source, flow and number.
pub(super) type TokenId = (NodeId, u32, u32);

/// Time from a token to its data. One token at a time is timed. Sources at other distances share
/// the estimate, which is in proportion to their round trips.
#[derive(Debug, Default)]
pub(super) struct Delay {
    timed: Option<(TokenId, Time)>,
    rtt: Option<Rtt>,
}

impl Delay {
    /// Returns how long a destination waits for data: a round trip before the first sample.
    pub(super) fn wait(&self, pair: &Pair, phost: &Phost) -> Span {
        let wait = |rtt: Rtt| rtt.timeout(0).scale_floor(pair.rtt.as_ps(), phost.rtt.as_ps());
        self.rtt.map_or(pair.rtt, wait)
    }

    /// Times a token that is sent, unless another is being timed. That measurement is abandoned in
    /// the end, as its source may never use it.
    pub(super) fn start(&mut self, now: Time, token: TokenId, phost: &Phost) {
        if self.timed.is_none_or(|(_, at)| now.saturating_since(at) > phost.keepalive) {
            self.timed = Some((token, now));
        }
    }

    /// Data for a token has arrived. That for a later one of the same flow is no sample of the
    /// timed one.
    #[inline]
    pub(super) fn see(&mut self, now: Time, token: TokenId, pair: &Pair, phost: &Phost) {
        let Some(((src, flow, number), at)) = self.timed else { return };
        if (src, flow) != (token.0, token.1) || token.2 < number {
            return;
        }
        self.timed = None;
        if token.2 == number {
            let took = now.saturating_since(at);
            let sample = took.scale_floor(phost.rtt.as_ps(), pair.rtt.as_ps());
            let new = || Rtt::new(phost.rtt, phost.keepalive);
            self.rtt.get_or_insert_with(new).sample(sample);
        }
    }
}
