//! The matching: the choice that both sides make among offers (§3.1, §3.4, §3.5).
//!
//! The problem: a sender may have flows for many receivers, and a receiver flows from many senders.
//! Packets that are sent without agreement queue at the receiver's port, or find no link free.
//!
//! The simple way is one round, as in earlier receiver-driven transports: each receiver sends a
//! request to one sender. Several receivers then choose the same sender, and all but one are idle.
//! Rounds until no pair can be added take about log n rounds of control packets (§2).
//!
//! The present way: a fixed number of rounds, r, each of three stages (`schedule`). Receivers send
//! a request to every source whose flows need channels. A sender grants its free channels among the
//! requests, and a receiver accepts some of the grants. By theorem 1, r rounds are near the result
//! of many, if hosts have few partners on average. A host has k channels, so it can be matched with
//! up to k others at a time (§3.4).
//!
//! Senders choose among requests and receivers among grants in the same way, so [`choose`] serves
//! both. The last offer is served in part if capacity runs out. In the first round the smallest
//! remaining flow is served first (the FCT-optimising round). In the others every order is equally
//! likely. Only an accept reserves channels. A grant that is not accepted is free again in the next
//! grant stage, without a message.
//!
//! Hazards:
//!
//! * A receiver's accepted channels never exceed its channels. [`choose`] never grants more than
//!   its capacity (`capacity_is_used_up_and_never_exceeded`).
//! * Theorem 1 needs random rounds (`a_random_choice_is_uniform`,
//!   `sizes_are_at_least_those_of_theorem_1`). A fixed preference in all rounds lets senders and
//!   receivers repeat the same conflicts.
//! * Offers of a later round may arrive early and are kept. With strict rounds late ones are
//!   dropped (`strict_rounds_drop_late_offers_and_keep_early_ones`). Hosts with clocks further
//!   apart than the slack of a stage may then never match.
//! * An accept in flight at the next grant stage is unknown to its sender, which may grant too
//!   much. Then the sender counts no more than its channels, and with prompt channels it releases
//!   the surplus.

use rampmeter_types::{NodeId, Rng};

use super::config::Rounds;
use super::schedule::MatchingRound;
use super::wire::Match;

/// A request or a grant, and its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The other side.
    pub peer: NodeId,
    /// The fields of its message.
    pub fields: Match,
}

/// Order in which offers are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOrder {
    /// Smallest remaining flow, ties to the one announced first.
    SmallestFirst,
    /// Uniformly random.
    Random,
}

/// Channels that may still be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of channels in the coming data phase.
    pub channels: u8,
    /// Number of those that may start at once.
    pub prompt: u8,
}

/// Serves `offers` until `capacity` is used up. Reorders and shortens `offers` to those served,
/// with the channels that each is given.
pub fn choose(offers: &mut Vec<Offer>, order: OfferOrder, capacity: Capacity, rng: &mut Rng) {
    match order {
        OfferOrder::SmallestFirst => {
            // Modulo 2^64: all are within half of that of any.
            let middle = offers.first().map_or(0, |first| first.fields.announced);
            let since = |announced: u64| announced.wrapping_sub(middle).cast_signed();
            offers.sort_by_key(|o| (o.fields.remaining, since(o.fields.announced)));
        }
        OfferOrder::Random => rng.shuffle(offers),
    }
    let mut left = capacity;
    let mut served = 0;
    for offer in offers.iter_mut() {
        if left.channels == 0 {
            break;
        }
        let fields = &mut offer.fields;
        fields.channels = fields.channels.min(left.channels);
        fields.prompt = fields.prompt.min(fields.channels).min(left.prompt);
        left.channels -= fields.channels;
        left.prompt -= fields.prompt;
        served += 1;
    }
    offers.truncate(served);
}

/// Offers that wait for the stage that handles them.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    offers: Vec<Offer>,
    late: u64,
}

impl Inbox {
    /// Maximum number of queued offers: more than any fabric has hosts.
    const LIMIT: usize = 1 << 16;

    /// Returns true if no offer is queued.
    pub fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// Queues `offer`. If rounds are strict, an offer of a round before `next` is late and dropped
    /// (§3.3). `next` is the round to be handled next.
    pub fn push(&mut self, offer: Offer, next: MatchingRound, rounds: Rounds) {
        let is_late = rounds == Rounds::Strict && round_of(&offer) < next;
        if is_late || self.offers.len() == Self::LIMIT {
            self.late += 1;
        } else {
            self.offers.push(offer);
        }
    }

    /// Moves the offers that the stage of `round` handles into `out`. These are the offers of the
    /// round, or all if hosts follow their own stages. Offers of later rounds stay queued.
    pub fn take(&mut self, round: MatchingRound, rounds: Rounds, out: &mut Vec<Offer>) {
        out.clear();
        if self.offers.is_empty() {
            return;
        }
        match rounds {
            Rounds::Local => out.append(&mut self.offers),
            Rounds::Strict => {
                out.extend(self.offers.iter().filter(|o| round_of(o) == round));
                self.late += self.offers.iter().filter(|o| round_of(o) < round).count() as u64;
                self.offers.retain(|o| round_of(o) > round);
            }
        }
    }

    /// Returns the number of offers that arrived too late.
    pub fn late_offers(&self) -> u64 {
        self.late
    }
}

fn round_of(offer: &Offer) -> MatchingRound {
    MatchingRound { phase: offer.fields.phase, round: offer.fields.round }
}
