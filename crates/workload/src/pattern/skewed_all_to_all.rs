//! An all-to-all with popular receivers, at fixed instants.

use rampmeter_types::{Bytes, Time};

use super::HostSet;
use super::draw::DrawState;
use super::pairs::skip;
use crate::flow::Flow;

/// An all-to-all in which some receivers are more popular than others, as with the experts of a
/// mixture-of-experts model.
///
/// In every round the hosts are ranked in a random order. Each sender divides its bytes among the
/// others in proportion to `1 / rank^skew` (Zipf's law; 0 is the plain all-to-all). A flow has at
/// least one byte.
#[derive(Clone, Debug)]
pub struct SkewedPairs {
    /// Participating hosts.
    pub hosts: HostSet,
    /// Bytes that every host sends in a round, before rounding.
    pub size: Bytes,
    /// The exponent.
    pub skew: f64,
}

impl SkewedPairs {
    /// Returns the number of flows of a round.
    pub(super) fn flows_per_round(&self) -> u64 {
        u64::from(self.hosts.count()) * u64::from(self.hosts.count() - 1)
    }

    /// Returns the bytes of a round, up to the rounding of each flow.
    pub(super) fn total(&self) -> u128 {
        u128::from(self.size.get()) * u128::from(self.hosts.count())
    }

    pub(super) fn fill(
        &self,
        arrival: Time,
        sender: u32,
        draw: &mut DrawState,
        out: &mut Vec<Flow>,
    ) {
        let n = self.hosts.count() as usize;
        if draw.order.len() != n {
            draw.order = (0..n as u32).collect();
        }
        if sender == 0 {
            draw.rng.shuffle(&mut draw.order);
        }
        let src = self.hosts.host(sender);
        let shares = shares(self.size, self.skew, &draw.order, sender);
        out.extend(shares.map(|(host, size)| Flow::new(arrival, src, self.hosts.host(host), size)));
    }
}

/// Returns the bytes from `sender` to each other host, if `ranks` has the hosts' ranks from 0.
pub(super) fn shares(
    size: Bytes,
    skew: f64,
    ranks: &[u32],
    sender: u32,
) -> impl Iterator<Item = (u32, Bytes)> {
    let weight = move |host: usize| f64::from(ranks[host] + 1).powf(-skew);
    let others = move || (0..ranks.len() - 1).map(move |i| skip(i, sender as usize, 1));
    let whole: f64 = others().map(weight).sum();
    others().map(move |host| {
        let share = (size.get() as f64 * weight(host) / whole).round();
        (host as u32, Bytes::new((share as u64).max(1)))
    })
}
