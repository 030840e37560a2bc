//! How long datagrams to a peer may be: packetization layer path MTU discovery for datagrams (RFC 8899).
//!
//! The configuration says what all links carry. A node checks that with hellos of full length, which
//! may not be cut up. Where none is answered, though shorter packets of the peer arrive, the path
//! carries less: the node searches for the longest datagram that passes, by halves. Longer ones may then
//! be cut up by the network ([`Datapath::set_limit`](crate::Datapath::set_limit)), which costs more, and
//! messages go on. The full length is confirmed from time to time, so that a path that changes is
//! noticed; a shorter one is searched anew.
//!
//! Where the node's own interface carries less, the system refuses packets at once (`EMSGSIZE`),
//! and the node need not time out: [`PathMtu::on_refused`] limits packets in the same poll, and
//! each probe of the search is answered or refused within a round trip.
//!
//! Where a peer has several networks, a probe goes over each that is in use, and counts as answered when
//! it has been answered over all of them: a peer's limit holds on all its networks.

use rampmeter_core::{Span, Time};

/// Bytes of a datagram that every path carries: 576 (RFC 791) without headers (`MIN_PLPMTU`).
const MIN: usize = 528;
/// Bytes of a datagram that nearly every path carries: the `BASE_PLPMTU` of 1200 without headers. A
/// search begins with it.
const BASE: usize = 1_152;
/// The search ends when it is as exact as this.
const EXACT: usize = 8;
/// How long an answer may take (`PROBE_TIMER`), and how many probes of a length are lost before it is
/// taken for too long (`MAX_PROBES`).
const ANSWER: Span = Span::from_us(1_000_000);
const PROBES: u32 = 3;
/// Time until a length that has passed is probed again. A path that narrows is found after this and
/// [`PROBES`] times [`ANSWER`], before messages fail as unreachable (10 s by default).
const CONFIRM: Span = Span::from_us(4_000_000);
/// When a longer one is tried again (`PMTU_RAISE_TIMER`).
const RAISE: Span = Span::from_us(600_000_000);

/// What is known of a path. Lengths are those of datagrams as the node writes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathMtu {
    /// The longest datagram that has passed in this search, and the shortest that is too long.
    passes: usize,
    fails: usize,
    /// The longest that the node sends.
    most: usize,
    limit: Option<usize>,
    /// What the latest search has found that is over.
    found: Option<usize>,
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
    /// Nothing is known; `most` is the longest datagram that the node sends.
    pub(crate) fn new(most: usize) -> Self {
        let (passes, fails) = (MIN.min(most), most + 1);
        let next_at = Time::NEVER;
        Self { passes, fails, most, limit: None, found: None, probe: None, next_at }
    }

    /// The path may have changed: the peer has been heard for the first time, or anew.
    pub(crate) fn restart(&mut self, now: Time) {
        *self = Self { next_at: now, limit: self.limit, ..Self::new(self.most) };
    }

    /// The peer takes no packets of full length: probes would be lost, and say nothing of the path.
    pub(crate) fn suspend(&mut self) {
        *self = Self::new(self.most);
    }

    /// The system has refused a datagram of `len` bytes: it is longer than the path carries.
    pub(crate) fn on_refused(&mut self, now: Time, len: usize) {
        if len <= MIN {
            // Shorter than all paths must carry: to cut packets up at less is no use.
            return;
        }
        if self.probe.take_if(|probe| probe.len == len).is_some() {
            // As if it had been lost for the last time.
            self.on_lost(len);
            self.next_at = if self.is_found() { now + self.conclude() } else { now };
        } else if self.limit.is_none_or(|limit| len <= limit) {
            (self.passes, self.fails, self.probe) = (MIN, len, None);
            self.next_at = now;
        }
        // Until more is known, what every path carries.
        if self.limit.is_none_or(|limit| len <= limit) {
            self.limit = Some(self.passes);
        }
    }

    /// The longest datagram that passes in one piece; `None` while all seem to.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Whether a probe has not been answered yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.probe.is_some()
    }

    /// Whether this is the number of the probe that has not been answered.
    pub(crate) fn is_probe(&self, nonce: u32) -> bool {
        self.probe.is_some_and(|probe| probe.nonce == nonce)
    }

    /// When [`PathMtu::poll`] has something to do.
    pub(crate) fn deadline(&self) -> Time {
        self.next_at
    }

    /// The length of a probe that is to be sent now under the number `nonce`, if one is due. `heard_at` is
    /// when the peer was last heard: a silent peer says nothing of the path.
    pub(crate) fn poll(&mut self, now: Time, heard_at: Option<Time>, nonce: u32) -> Option<usize> {
        if now < self.next_at {
            return None;
        }
        if let Some(probe) = self.probe.take() {
            if heard_at.is_none_or(|at| at <= probe.sent_at) {
                // Nothing has been lost that the path would have carried.
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
            // Until more is known, what every path carries; or what it carried, where that may still be so.
            if self.limit.is_none_or(|limit| probe.len <= limit) {
                self.limit = Some(self.passes);
            }
        } else if self.is_found() {
            // It is time to look again: first whether all passes by now.
            (self.passes, self.fails) = (MIN.min(self.most), self.most + 1);
        }
        let len = match self.fails {
            fails if fails > self.most => self.most,
            fails if (self.passes + 1..fails).contains(&BASE) => BASE,
            fails => (self.passes + fails) / 2,
        };
        self.send(now, nonce, len, 1)
    }

    fn send(&mut self, now: Time, nonce: u32, len: usize, n_sent: u32) -> Option<usize> {
        self.probe = Some(Probe { nonce, len, sent_at: now, n_sent });
        self.next_at = now + ANSWER;
        Some(len)
    }

    fn on_lost(&mut self, len: usize) {
        self.fails = len;
        if self.passes >= len {
            self.passes = MIN.min(len.saturating_sub(1));
        }
    }

    /// A search has found less than the longest. Returns when a longer datagram is tried again: soon,
    /// unless the search before has found the same. Probes may be lost by chance, and answers be late.
    fn conclude(&mut self) -> Span {
        let before = self.found.replace(self.passes);
        self.limit = self.found;
        let is_same = before.is_some_and(|found| found.abs_diff(self.passes) <= EXACT);
        if is_same && self.most - self.passes > 2 * EXACT { RAISE } else { CONFIRM }
    }

    /// Whether the search is over.
    fn is_found(&self) -> bool {
        self.passes == self.most || self.fails.saturating_sub(self.passes) <= EXACT
    }

    /// The probe with this number has been answered; false if it is none.
    pub(crate) fn on_answer(&mut self, now: Time, nonce: u32) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.nonce == nonce) else { return false };
        self.passes = self.passes.max(probe.len);
        if self.passes == self.most {
            (self.limit, self.found) = (None, None);
            self.next_at = now + CONFIRM;
        } else {
            self.next_at = match self.is_found() {
                true => now + self.conclude(),
                false => now,
            };
            self.limit = self.limit.max(Some(self.passes));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A path that carries datagrams of `carries` bytes, for so long. Returns what is known then, and
    /// how many probes were sent.
    fn after(mtu: &mut PathMtu, now: &mut Time, carries: usize, span: Span) -> usize {
        let (ends, mut n) = (*now + span, 0);
        while mtu.deadline() < ends {
            *now = mtu.deadline().max(*now);
            n += 1;
            let nonce = n as u32;
            // The peer is heard all the time.
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
        /// The longest datagram that passes is found, nearly; and found again when the path changes.
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

        /// Where the system refuses what is too long, all datagrams fit at once, and the longest
        /// that does is found within as many round trips as a binary search takes.
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

        /// Probes that are lost by chance are no reason to cut packets up for long.
        #[test]
        fn a_mistake_is_mended_soon(most in 1_300usize..9_000, carries in MIN..1_250) {
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
    fn a_silent_peer_says_nothing_of_the_path() {
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
