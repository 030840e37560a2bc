//! A receiver's links: its channels from one matched source, and the timers of their tokens.
//!
//! The channels that a receiver has accepted from one source are one link. The matching builds the
//! links of the next data phase while those of the present one run. At the start of a phase the
//! former replace the latter. Prompt channels of a link that is being built send tokens at once, if
//! the running phase has idle channels.
//!
//! A link's timer is *paced* if its next token is due by its rate. It is *stalled* if its flow's
//! window is full or its flows wait for packets in flight. It is *dead* if no flow needs tokens.
//! Data and new flows wake a running link that is stalled or dead. A paced link is not woken, so
//! that tokens never exceed its rate.
//!
//! Links are ranked by the remaining packets of the flow that they were matched for (§3.4). Tokens
//! carry the rank, and data has it as its priority. Packets of a channel are subtracted from demand
//! once, whether they have arrived or not (`channels_promise_the_missing_packets_of_their_phase`).

use rampmeter_types::{NodeId, Span, Time};

/// Delay of a link's timer after its cause, so that other events of the same instant are handled
/// first.
pub(super) const TIMER_DELAY: Span = Span::from_ps(1);

/// Rank of the first of the matched sources; short flows have rank 1.
const FIRST_RANK: u8 = 2;
/// Rank of tokens for prompt channels.
const PROMPT_RANK: u8 = 7;

/// Timer of a link's next token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkTimer {
    /// The link sends none until it is woken.
    Stopped,
    /// The time that its pace allows.
    Paced(Time),
    /// The time at which its flow's window is reopened. Data that arrives earlier wakes the link.
    Stalled(Time),
}

/// The channels from one source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) src: NodeId,
    /// Channels that it may use now.
    pub(super) active: u8,
    /// Channels that it has been matched on.
    pub(super) channels: u8,
    /// Packets that have arrived for tokens of its data phase.
    arrived: u32,
    /// Remaining packets and announcement of the flow that it was first matched for.
    key: (u32, u64),
    pub(super) rank: u8,
    pub(super) timer: LinkTimer,
}

/// The links of the running data phase, and those that the matching is building.
#[derive(Debug, Default)]
pub(super) struct Links {
    running: Vec<Link>,
    building: Vec<Link>,
    deadline: Option<Time>,
}

impl Links {
    /// Returns true if no source is matched.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.building.is_empty()
    }

    /// Returns the time at which the first timer expires.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadline.unwrap_or(Time::NEVER)
    }

    /// Adds accepted channels; prompt ones start at once.
    pub(super) fn accept(
        &mut self,
        src: NodeId,
        channels: u8,
        prompt: u8,
        key: (u32, u64),
        now: Time,
    ) {
        let idx = self.building.iter().position(|l| l.src == src).unwrap_or_else(|| {
            let (active, channels, timer) = (0, 0, LinkTimer::Stopped);
            let rank = PROMPT_RANK;
            self.building.push(Link { src, active, channels, arrived: 0, key, rank, timer });
            self.building.len() - 1
        });
        let link = &mut self.building[idx];
        link.channels += channels;
        link.active += prompt;
        if prompt > 0 {
            link.timer = LinkTimer::Paced(now + TIMER_DELAY);
        }
        self.refresh();
    }

    /// Takes back channels that the sender cannot serve.
    pub(super) fn release(&mut self, src: NodeId, channels: u8, prompt: u8) {
        if let Some(link) = self.building.iter_mut().find(|l| l.src == src) {
            link.channels = link.channels.saturating_sub(channels);
            link.active = link.active.saturating_sub(prompt);
            if link.active == 0 {
                link.timer = LinkTimer::Stopped;
            }
        }
        self.refresh();
    }

    /// Makes the new links those that run, ranked by remaining packets. Ranks are those among `k`
    /// channels, of which a faster host has `channels`.
    pub(super) fn begin(&mut self, now: Time, k: u8, channels: u8) {
        std::mem::swap(&mut self.running, &mut self.building);
        self.building.clear();
        self.running.sort_by_key(|l| l.key);
        let mut before = 0;
        for link in &mut self.running {
            let rank = u32::from(FIRST_RANK) + before * u32::from(k) / u32::from(channels);
            link.rank = rank.min(PROMPT_RANK.into()) as u8;
            before += u32::from(link.channels);
            link.active = link.channels;
            link.timer = LinkTimer::Paced(now + TIMER_DELAY);
        }
        self.refresh();
    }

    /// Channels from `src` in the running data phase and in the coming one.
    pub(super) fn n_channels_from(&self, src: NodeId) -> u32 {
        let of = |links: &[Link]| {
            links.iter().filter(|l| l.src == src).map(|l| u32::from(l.channels)).sum::<u32>()
        };
        of(&self.running) + of(&self.building)
    }

    /// Returns the channels from `src` in the coming data phase.
    pub(super) fn matched_channels(&self, src: NodeId) -> u8 {
        self.building.iter().find(|l| l.src == src).map_or(0, |l| l.channels)
    }

    /// Returns the number of packets that matched channels have yet to bring from `src`. In the
    /// running data phase these are the packets that have not arrived yet, in the next one all. A
    /// channel brings `per_channel` packets in a phase (§3.4).
    pub(super) fn expected_packets(&self, src: NodeId, per_channel: u32) -> u64 {
        let of = |links: &[Link]| {
            let link = links.iter().find(|l| l.src == src);
            link.map_or(0, |l| (u32::from(l.channels) * per_channel).saturating_sub(l.arrived))
        };
        u64::from(of(&self.running)) + u64::from(of(&self.building))
    }

    /// Counts a packet that has arrived from `src` for a token of the running data phase.
    #[inline]
    pub(super) fn count(&mut self, src: NodeId) {
        if let Some(link) = self.running.iter_mut().find(|l| l.src == src) {
            link.arrived += 1;
        }
    }

    /// Returns true if a running link from `src` is dead or stalled: a new flow or data can wake
    /// it.
    pub(super) fn is_waiting(&self, src: NodeId) -> bool {
        let waits = |l: &Link| l.src == src && !matches!(l.timer, LinkTimer::Paced(_));
        self.running.iter().any(waits)
    }

    /// Wakes the running link from `src`, which tries at once.
    pub(super) fn wake(&mut self, src: NodeId, now: Time) {
        if let Some(link) = self.running.iter_mut().find(|l| l.src == src) {
            link.timer = LinkTimer::Paced(now + TIMER_DELAY);
        }
        self.refresh();
    }

    /// Returns the number of links. Running links have the lowest indices.
    pub(super) fn len(&self) -> usize {
        self.running.len() + self.building.len()
    }

    fn link_mut(&mut self, idx: usize) -> &mut Link {
        let n = self.running.len();
        if idx < n { &mut self.running[idx] } else { &mut self.building[idx - n] }
    }

    /// Returns the link `idx` if it is due at `now`.
    pub(super) fn due_link(&mut self, idx: usize, now: Time) -> Option<Link> {
        let link = *self.link_mut(idx);
        match link.timer {
            LinkTimer::Paced(at) | LinkTimer::Stalled(at) if at <= now => Some(link),
            _ => None,
        }
    }

    pub(super) fn set_timer(&mut self, idx: usize, timer: LinkTimer) {
        self.link_mut(idx).timer = timer;
    }

    /// Recomputes the first deadline.
    pub(super) fn refresh(&mut self) {
        let at = |l: &Link| match l.timer {
            LinkTimer::Stopped => None,
            LinkTimer::Paced(at) | LinkTimer::Stalled(at) => Some(at),
        };
        self.deadline = self.running.iter().chain(&self.building).filter_map(at).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §3.4: a channel's bytes are subtracted once, whether they have arrived or not.
    #[test]
    fn channels_promise_the_missing_packets_of_their_phase() {
        let (src, key, mut links) = (NodeId::new(7), (400, 0), Links::default());
        links.accept(src, 4, 0, key, Time::ZERO);
        assert_eq!(links.expected_packets(src, 50), 200);
        links.begin(Time::ZERO, 4, 4);
        (0..150).for_each(|_| links.count(src));
        assert_eq!(links.expected_packets(src, 50), 50);
        links.accept(src, 1, 0, key, Time::ZERO);
        assert_eq!(links.expected_packets(src, 50), 50 + 50);
        // Of 400 packets 250 are missing, of which 100 are promised: three more channels are
        // needed.
        assert_eq!((250 - links.expected_packets(src, 50)).div_ceil(50), 3);
        (0..150).for_each(|_| links.count(src));
        assert_eq!(links.expected_packets(src, 50), 50);
        assert_eq!(links.expected_packets(NodeId::new(8), 50), 0);
    }
}
