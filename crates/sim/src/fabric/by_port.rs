//! Settings that differ between ports: packet memory and thresholds of marks.

use std::collections::BTreeMap;
use std::fmt;

use rampmeter_types::{Bytes, Rate};

/// A group of ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortGroup {
    /// The ports of a tier, such as `tor-down`.
    Tier(String),
    /// The ports of a rate.
    Rate(Rate),
}

impl fmt::Display for PortGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tier(name) => write!(f, "{name:?}"),
            Self::Rate(rate) => write!(f, "{} Gbit/s", rate.as_bps() as f64 / 1e9),
        }
    }
}

/// Bytes by group of ports. That of a port's tier takes precedence over that of its rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortBytes(BTreeMap<PortGroup, Bytes>);

impl FromIterator<(PortGroup, Bytes)> for PortBytes {
    fn from_iter<T: IntoIterator<Item = (PortGroup, Bytes)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl PortBytes {
    /// Returns true if all ports have the fabric's own value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of a port of this tier and rate.
    pub fn get(&self, tier: &str, rate: Rate) -> Option<Bytes> {
        if self.0.is_empty() {
            return None;
        }
        let own = self.0.get(&PortGroup::Tier(tier.to_owned()));
        own.or_else(|| self.0.get(&PortGroup::Rate(rate))).copied()
    }

    /// Returns the groups.
    pub fn groups(&self) -> impl Iterator<Item = &PortGroup> {
        self.0.keys()
    }

    /// Returns the groups and their bytes.
    pub fn entries(&self) -> impl Iterator<Item = (&PortGroup, Bytes)> {
        self.0.iter().map(|(group, &bytes)| (group, bytes))
    }

    /// Returns the smallest number of bytes.
    pub fn min(&self) -> Option<Bytes> {
        self.0.values().min().copied()
    }
}

/// Marks of a port: none up to `above` bytes queued, all above `all_above`, and a share of packets
/// in between. The share grows from zero to `share` (RED, as DCQCN configures it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Marking {
    pub(super) above: u32,
    pub(super) all_above: u32,
    pub(super) share: f64,
}

impl Marking {
    /// No marks.
    pub(super) const NEVER: Self = Self { above: u32::MAX, all_above: u32::MAX, share: 1.0 };

    /// Marks above some bytes.
    pub(super) fn new(above: Option<Bytes>, all_above: Option<Bytes>, share: f64) -> Self {
        let most = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let above = above.map_or(u32::MAX, most);
        Self { above, all_above: all_above.map_or(above, most).max(above), share }
    }

    /// Returns the place in `table`, into which it is put if it is not there.
    ///
    /// # Panics
    /// If there are more than 256 of them.
    pub(super) fn place(self, table: &mut Vec<Self>) -> u8 {
        let place = table.iter().position(|other| *other == self).unwrap_or_else(|| {
            table.push(self);
            table.len() - 1
        });
        u8::try_from(place).expect("ports have at most 256 thresholds of marks")
    }

    /// Returns true if there are queues of which a share of packets is marked.
    pub(super) fn has_ramp(&self) -> bool {
        self.all_above > self.above
    }

    /// Returns true if a packet is marked that finds `queued` bytes, more than `above`.
    pub(super) fn marks(&self, queued: u32, coin: impl FnOnce() -> f64) -> bool {
        let part =
            || f64::from(queued - self.above) / f64::from(self.all_above - self.above) * self.share;
        queued > self.all_above || coin() < part()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_take_precedence_over_rates() {
        let of = |bytes| Bytes::new(bytes);
        let rate = Rate::from_gbps(25);
        let groups = [(PortGroup::Rate(rate), of(1)), (PortGroup::Tier("tor-up".into()), of(2))];
        let bytes: PortBytes = groups.into_iter().collect();
        assert_eq!(bytes.get("tor-down", rate), Some(of(1)));
        assert_eq!(bytes.get("tor-up", rate), Some(of(2)));
        assert_eq!(bytes.get("tor-down", Rate::from_gbps(40)), None);
        assert_eq!(bytes.min(), Some(of(1)));
    }

    #[test]
    fn shares_grow_between_the_thresholds() {
        let marking = Marking::new(Some(Bytes::new(100)), Some(Bytes::new(300)), 0.5);
        assert!(marking.has_ramp());
        let least_coin = |queued| {
            let coins = (0..=1000).map(|n| f64::from(n) / 1000.0);
            coins.filter(|&coin| marking.marks(queued, || coin)).count()
        };
        assert_eq!(least_coin(101), 3);
        assert_eq!(least_coin(200), 250);
        assert_eq!(least_coin(300), 500);
        assert_eq!(least_coin(301), 1001);
        assert!(!Marking::new(Some(Bytes::new(100)), None, 1.0).has_ramp());
        assert!(!Marking::new(None, Some(Bytes::new(100)), 1.0).has_ramp());
    }
}
