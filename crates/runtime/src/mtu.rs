//! Maximum length of datagrams to a peer: packetization layer path MTU discovery for datagrams (RFC
//! 8899).
//!
//! The configuration states the packet size that all links carry. A node checks that with hellos of
//! full length, which must not be fragmented. If none is answered, though shorter packets of the
//! peer arrive, the path carries less. The node then performs a binary search for the longest
//! datagram that passes. Longer ones may then be fragmented by the network
//! ([`Datapath::set_limit`](crate::Datapath::set_limit)), which costs more, and messages continue.
//! The full length is probed again after 4 s, so that a change of the path is detected. A shorter
//! one is searched again.
//!
//! If the node's own interface carries less, the system refuses packets at once (`EMSGSIZE`), so no
//! timeout is needed. [`PathMtu::on_refused`] limits packets in the same poll, and each probe of
//! the search is answered or refused within a round trip.
//!
//! If a peer has several networks, a probe is sent over each that is in use. It counts as answered
//! after it has been answered over all of them: a peer's limit applies to all its networks.

use rampmeter_types::{Span, Time};

/// Bytes of a datagram that every path carries: 576 (RFC 791) without headers (`MIN_PLPMTU`).
const MIN: usize = 528;
/// Bytes of a datagram that nearly every path carries: the `BASE_PLPMTU` of 1200 without headers. A
/// search begins with it.
const BASE: usize = 1_152;
/// Accuracy in bytes at which the search ends.
const EXACT: usize = 8;
/// Timeout of an answer (`PROBE_TIMER`), and number of lost probes after which a length counts as
/// too long (`MAX_PROBES`).
const ANSWER: Span = Span::from_us(1_000_000);
const PROBES: u32 = 3;
/// Time until a length that has passed is probed again. A path that narrows is detected after this
/// and [`PROBES`] times [`ANSWER`], before messages fail as unreachable (10 s by default).
const CONFIRM: Span = Span::from_us(4_000_000);
/// Time until a longer one is tried again (`PMTU_RAISE_TIMER`).
const RAISE: Span = Span::from_us(600_000_000);

/// Search for the MTU of a path. Lengths are those of datagrams as the node writes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathMtu {
    /// Longest datagram that has passed in this search, and shortest that is too long.
    longest_passed: usize,
    shortest_failed: usize,
    /// Longest datagram that the node sends.
    len_max: usize,
    limit: Option<usize>,
    /// Result of the latest search that has ended.
    last_result: Option<usize>,
    probe: Option<Probe>,
    next_at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u32,
    len: usize,
    sent_at: Time,
    n_sent: u32,
}

impl PathMtu {
    /// Creates a search without a result; `most` is the longest datagram that the node sends.
    pub(crate) fn new(len_max: usize) -> Self {
        let (longest_passed, shortest_failed) = (MIN.min(len_max), len_max + 1);
        let next_at = Time::NEVER;
        Self {
            longest_passed,
            shortest_failed,
            len_max,
            limit: None,
            last_result: None,
            probe: None,
            next_at,
        }
    }

    /// Restarts the search, because the path may have changed: this node received the peer's first
    /// packet, or the first after a restart.
    pub(crate) fn restart(&mut self, now: Time) {
        *self = Self { next_at: now, limit: self.limit, ..Self::new(self.len_max) };
    }

    /// Stops the search. The peer accepts no packets of full length: probes would be lost, and
    /// would not measure the path.
    pub(crate) fn suspend(&mut self) {
        *self = Self::new(self.len_max);
    }

    /// Handles a datagram of `len` bytes that the system has refused: it is longer than the path
    /// carries.
    pub(crate) fn on_refused(&mut self, now: Time, len: usize) {
        if len <= MIN {
            // Shorter than all paths must carry: smaller fragments are useless.
            return;
        }
        if self.probe.take_if(|probe| probe.len == len).is_some() {
            // Same as the loss of the last probe.
            self.on_lost(len);
            self.next_at = if self.is_found() { now + self.conclude() } else { now };
        } else if self.limit.is_none_or(|limit| len <= limit) {
            (self.longest_passed, self.shortest_failed, self.probe) = (MIN, len, None);
            self.next_at = now;
        }
        // Until the search continues, the length that every path carries.
        if self.limit.is_none_or(|limit| len <= limit) {
            self.limit = Some(self.longest_passed);
        }
    }

    /// Returns the longest datagram that passes in one piece; `None` while all seem to pass.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Returns true if a probe has not been answered yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.probe.is_some()
    }

    /// Returns true if this is the number of the probe that has not been answered.
    pub(crate) fn is_probe(&self, nonce: u32) -> bool {
        self.probe.is_some_and(|probe| probe.nonce == nonce)
    }

    /// Returns the time of the next [`PathMtu::poll`].
    pub(crate) fn deadline(&self) -> Time {
        self.next_at
    }

    /// Returns the length of a probe to send now under the number `nonce`, if one is due.
    /// `heard_at` is the time of the peer's latest packet: an unresponsive peer gives no
    /// information on the path.
    pub(crate) fn poll(&mut self, now: Time, heard_at: Option<Time>, nonce: u32) -> Option<usize> {
        if now < self.next_at {
            return None;
        }
        if let Some(probe) = self.probe.take() {
            if heard_at.is_none_or(|at| at <= probe.sent_at) {
                // No packet has been lost that the path would have carried.
                return self.send(now, nonce, probe.len, probe.n_sent);
            }
            if probe.n_sent < PROBES {
                return self.send(now, nonce, probe.len, probe.n_sent + 1);
            }
            self.on_lost(probe.len);
            if self.is_found() {
                self.next_at = now + self.conclude();
                return None;
            }
            // Until the search continues, the length that every path carries; or the earlier one,
            // if that may still pass.
            if self.limit.is_none_or(|limit| probe.len <= limit) {
                self.limit = Some(self.longest_passed);
            }
        } else if self.is_found() {
            // A new search is due, first for the full length.
            (self.longest_passed, self.shortest_failed) = (MIN.min(self.len_max), self.len_max + 1);
        }
        let len = match self.shortest_failed {
            fails if fails > self.len_max => self.len_max,
            fails if (self.longest_passed + 1..fails).contains(&BASE) => BASE,
            fails => (self.longest_passed + fails) / 2,
        };
        self.send(now, nonce, len, 1)
    }

    fn send(&mut self, now: Time, nonce: u32, len: usize, n_sent: u32) -> Option<usize> {
        self.probe = Some(Probe { nonce, len, sent_at: now, n_sent });
        self.next_at = now + ANSWER;
        Some(len)
    }

    fn on_lost(&mut self, len: usize) {
        self.shortest_failed = len;
        if self.longest_passed >= len {
            self.longest_passed = MIN.min(len.saturating_sub(1));
        }
    }

    /// Ends a search with a result below the maximum. Returns the time until a longer datagram is
    /// probed again. It is short unless the search before had the same result, since probes may be
    /// lost by chance and answers may be late.
    fn conclude(&mut self) -> Span {
        let before = self.last_result.replace(self.longest_passed);
        self.limit = self.last_result;
        let is_same = before.is_some_and(|found| found.abs_diff(self.longest_passed) <= EXACT);
        if is_same && self.len_max - self.longest_passed > 2 * EXACT { RAISE } else { CONFIRM }
    }

    /// Returns true if the search has ended.
    fn is_found(&self) -> bool {
        self.longest_passed == self.len_max
            || self.shortest_failed.saturating_sub(self.longest_passed) <= EXACT
    }

    /// Handles the answer to the probe with this number; returns false if there is no such probe.
    pub(crate) fn on_answer(&mut self, now: Time, nonce: u32) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.nonce == nonce) else { return false };
        self.longest_passed = self.longest_passed.max(probe.len);
        if self.longest_passed == self.len_max {
            (self.limit, self.last_result) = (None, None);
            self.next_at = now + CONFIRM;
        } else {
            self.next_at = match self.is_found() {
                true => now + self.conclude(),
                false => now,
            };
            self.limit = self.limit.max(Some(self.longest_passed));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Simulates a path that carries datagrams of `carries` bytes, for `span`. Returns the number
    /// of probes sent.
    fn after(mtu: &mut PathMtu, now: &mut Time, carries: usize, span: Span) -> usize {
        let (ends, mut n) = (*now + span, 0);
        while mtu.deadline() < ends {
            *now = mtu.deadline().max(*now);
            n += 1;
            let nonce = n as u32;
            // Packets of the peer arrive all the time.
            if let Some(len) = mtu.poll(*now, Some(*now), nonce)
                && len <= carries
            {
                *now += Span::from_us(100);
                assert!(mtu.on_answer(*now, nonce));
            }
        }
        *now = ends;
        n
    }

    const MINUTE: Span = Span::from_us(60_000_000);

    proptest! {
        /// The search converges to the longest datagram that passes, within its accuracy, and again
        /// after a change of the path.
        #[test]
        fn the_longest_datagram_is_found(
            most in 600usize..9_000,
            carries in prop::collection::vec(MIN..9_100, 1..4),
        ) {
            let (mut mtu, mut now) = (PathMtu::new(most), Time::ZERO + MINUTE);
            mtu.restart(now);
            for carries in carries {
                after(&mut mtu, &mut now, carries, MINUTE * 12);
                match mtu.limit() {
                    None => prop_assert!(carries >= most),
                    Some(limit) => {
                        prop_assert!(carries < most && limit <= carries);
                        prop_assert!(carries - limit <= EXACT);
                    }
                }
            }
        }

        /// If the system refuses datagrams that are too long, all datagrams fit at once. The search
        /// ends within the round trips of a binary search.
        #[test]
        fn a_refusal_is_noticed_at_once(
            most in 1_300usize..9_000,
            carries in prop::collection::vec(MIN..9_000, 1..4),
        ) {
            let (mut mtu, mut now) = (PathMtu::new(most), Time::ZERO + MINUTE);
            mtu.restart(now);
            after(&mut mtu, &mut now, 9_000, MINUTE);
            let mut longest = most;
            for carries in carries.into_iter().filter(|carries| *carries < most) {
                if carries < longest {
                    mtu.on_refused(now, longest);
                    prop_assert!(mtu.limit().is_some_and(|limit| limit <= carries));
                }
                let started = now;
                while mtu.deadline() <= now {
                    if let Some(len) = mtu.poll(now, Some(now), 1) {
                        if len <= carries {
                            now += Span::from_us(100);
                            prop_assert!(mtu.on_answer(now, 1));
                        } else {
                            mtu.on_refused(now, len);
                        }
                    }
                }
                prop_assert!(now.saturating_since(started) < Span::from_us(2_000));
                if carries < longest {
                    let limit = mtu.limit().unwrap();
                    prop_assert!(limit <= carries && carries - limit <= EXACT);
                    longest = limit;
                }
            }
        }

        /// Probes that are lost by chance do not cause fragmentation for long.
        #[test]
        fn a_wrong_estimate_is_corrected_soon(most in 1_300usize..9_000, carries in MIN..1_250) {
            let (mut mtu, mut now) = (PathMtu::new(most), Time::ZERO + MINUTE);
            mtu.restart(now);
            after(&mut mtu, &mut now, carries, CONFIRM);
            prop_assert!(mtu.limit().is_some());
            after(&mut mtu, &mut now, most, MINUTE * 2);
            prop_assert_eq!(mtu.limit(), None);
        }

        /// A path that carries all costs a probe every [`CONFIRM`].
        #[test]
        fn a_good_path_costs_little(most in 1_200usize..9_000) {
            let (mut mtu, mut now) = (PathMtu::new(most), Time::ZERO + MINUTE);
            mtu.restart(now);
            let n = after(&mut mtu, &mut now, most, MINUTE * 10);
            prop_assert!((149..=151).contains(&n), "{n}");
        }
    }

    #[test]
    fn an_unresponsive_peer_does_not_change_the_path_mtu() {
        let (mut mtu, mut now) = (PathMtu::new(1_400), Time::ZERO + MINUTE);
        mtu.restart(now);
        let heard_at = Some(now);
        for nonce in 0..100 {
            assert_eq!(mtu.poll(now, heard_at, nonce), Some(1_400));
            now += ANSWER;
        }
        assert_eq!(mtu.limit(), None);
        assert!(mtu.on_answer(now, 99));
        assert!(!mtu.on_answer(now, 99));
    }
}
