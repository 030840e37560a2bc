//! Tokens for sources that are slower than their destination (pHost §3.2: a token is valid for 1.5
//! packet times).
//!
//! A destination sends a token each packet time of the destination's link. A source that is slower
//! could not use most of them: they would expire, and the source would be downgraded. So it gets a
//! token each packet time of the source's link, for all its flows together. Other sources get the
//! rest. The flows of a slow source are skipped together until its next token is due
//! ([`super::queues`]).

use std::collections::BTreeMap;

use rampmeter_types::{NodeId, Time};

use super::config::{Pair, Phost};

/// Instants of the next tokens for sources that are slower than this host.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    next: BTreeMap<NodeId, Time>,
}

impl Pacing {
    /// Returns the instant of the next token for `src`.
    #[inline]
    pub(super) fn next(&self, src: NodeId) -> Time {
        self.next.get(&src).copied().unwrap_or_default()
    }

    /// Counts a token for `src` and returns the instant of the next. The clock of tokens may be
    /// late by a packet time of this host, which does not slow down the source.
    #[inline]
    pub(super) fn count(&mut self, now: Time, src: NodeId, pair: &Pair, phost: &Phost) -> Time {
        let earliest = Time::ZERO + now.saturating_since(Time::ZERO + phost.mtu_time);
        let next = self.next.entry(src).or_default();
        *next = earliest.max(*next) + pair.mtu_time;
        *next
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_types::{FabricFacts, Rate, Span};

    use super::super::PhostConfig;
    use super::*;

    #[test]
    fn a_slow_source_gets_a_token_per_packet_time_of_its_link() {
        let facts = FabricFacts {
            n_hosts: 3,
            access_rate: Rate::from_gbps(40),
            core_rate: None,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            abort_timeout_min: Span::ZERO,
        };
        let phost = PhostConfig::paper().derive(&facts).unwrap();
        let own = phost.pair_from(NodeId::new(1));
        let slow = Pair { mtu_time: own.mtu_time * 4, ..own };
        let (mut pacing, src) = (Pacing::default(), NodeId::new(1));
        let (mut tokens, mut tick) = (0, Time::ZERO);
        let end = Time::ZERO + own.mtu_time * 400;
        // The clock of tokens runs a little slow, which the source does not notice.
        while tick < end {
            if pacing.next(src) <= tick {
                pacing.count(tick, src, &slow, &phost);
                tokens += 1;
            }
            tick += own.mtu_time + Span::from_ps(7);
        }
        assert!((100..=101).contains(&tokens), "{tokens}");
        assert_eq!(pacing.next(NodeId::new(2)), Time::ZERO);
    }
}
