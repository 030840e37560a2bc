//! The hosts of a pattern.

use std::sync::Arc;

use rampmeter_types::NodeId;

/// Hosts in their order, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSet {
    /// Hosts whose numbers are `step` apart.
    Stride {
        /// The first.
        first: u32,
        /// Number of hosts.
        count: u32,
        /// Distance of neighbours, at least 1.
        step: u32,
    },
    /// Any hosts.
    List(HostList),
}

/// Hosts in any order, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList {
    hosts: Arc<[u32]>,
    /// Each host with its place, in the order of hosts.
    places: Arc<[(u32, u32)]>,
}

impl HostList {
    fn new(hosts: &[u32]) -> Self {
        let mut places: Vec<(u32, u32)> = hosts.iter().copied().zip(0..).collect();
        places.sort_unstable();
        Self { hosts: hosts.into(), places: places.into() }
    }

    fn position(&self, host: u32) -> Option<u32> {
        let at = self.places.binary_search_by_key(&host, |&(own, _)| own).ok()?;
        Some(self.places[at].1)
    }
}

impl HostSet {
    /// Creates the set of the hosts `0..count`.
    pub fn all(count: u32) -> Self {
        Self::Stride { first: 0, count, step: 1 }
    }

    /// Creates a set of the hosts of these numbers. Numbers at equal distances are a stride.
    pub fn list(numbers: &[u32]) -> Self {
        let &[first, ..] = numbers else { return Self::all(0) };
        let count = numbers.len() as u32;
        let step = numbers.get(1).map_or(1, |second| second.saturating_sub(first));
        let is_stride = step > 0
            && numbers.windows(2).all(|pair| pair[1] > pair[0] && pair[1] - pair[0] == step);
        if is_stride {
            Self::Stride { first, count, step }
        } else {
            Self::List(HostList::new(numbers))
        }
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> u32 {
        match self {
            Self::Stride { count, .. } => *count,
            Self::List(list) => list.hosts.len() as u32,
        }
    }

    /// Returns host number `idx` of the set.
    pub fn host(&self, idx: u32) -> NodeId {
        NodeId::new(match self {
            Self::Stride { first, step, .. } => first + idx * step,
            Self::List(list) => list.hosts[idx as usize],
        })
    }

    /// Returns the number of `host` in the set; `None` if it is not in it.
    pub fn position(&self, host: NodeId) -> Option<u32> {
        let host = host.get();
        match self {
            Self::Stride { first, count, step } => {
                let beyond = host.checked_sub(*first)?;
                (beyond.is_multiple_of(*step) && beyond / step < *count).then(|| beyond / step)
            }
            Self::List(list) => list.position(host),
        }
    }

    /// Returns true if `host` is in the set.
    pub fn contains(&self, host: NodeId) -> bool {
        self.position(host).is_some()
    }

    /// Returns the hosts.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.count()).map(|idx| self.host(idx))
    }

    /// Returns the number of hosts that two sets share.
    pub fn overlap(&self, other: &Self) -> u32 {
        self.iter().filter(|&host| other.contains(host)).count() as u32
    }

    /// Returns the distance of neighbours; `None` if there are several.
    pub fn step(&self) -> Option<u32> {
        match self {
            Self::Stride { step, .. } => Some(*step),
            Self::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_each_host_at_its_position(
            first in 0u32..50, count in 1u32..20, step in 1u32..7, other in 0u32..200,
        ) {
            let stride = HostSet::Stride { first, count, step };
            let numbers: Vec<u32> = stride.iter().map(NodeId::get).collect();
            let list = HostSet::List(HostList::new(&numbers));
            if count > 1 {
                prop_assert_eq!(HostSet::list(&numbers), stride.clone());
            }
            for (idx, &number) in (0..).zip(&numbers) {
                let host = NodeId::new(number);
                prop_assert_eq!(stride.position(host), Some(idx));
                prop_assert_eq!(list.position(host), Some(idx));
            }
            let other = NodeId::new(other);
            prop_assert_eq!(stride.contains(other), numbers.contains(&other.get()));
            prop_assert_eq!(stride.overlap(&list), count);
        }
    }

    #[test]
    fn host_lists_keep_their_order() {
        let set = HostSet::list(&[5, 1, 3]);
        assert_eq!(set.step(), None);
        let places = [0, 1, 3, 5].map(|host| set.position(NodeId::new(host)));
        assert_eq!(places, [None, Some(1), Some(2), Some(0)]);
        assert_eq!(set.iter().map(NodeId::get).collect::<Vec<_>>(), [5, 1, 3]);
        assert_eq!(HostSet::list(&[7]), HostSet::Stride { first: 7, count: 1, step: 1 });
    }
}
