//! The network as the scheduler sees it: a tree of groups with one virtual link each way.
//!
//! All-path transmission spreads every flow over all parallel links. So the links between two
//! levels count as one link with the sum of their capacities (§IV.D). In a leaf-spine network a
//! host has an access link up and one down, and a rack a core link up and one down. A network with
//! more levels has the same pair of links for each pod, and so on.
//!
//! A flow takes its source's links up and its destination's links down, from the hosts to the level
//! at which both are in one group.

use std::collections::BTreeMap;

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{NodeId, Rate};
use thiserror::Error;

/// Levels of members, hosts included.
pub const LEVELS_MAX: usize = 4;

/// The highest capacity in bits per second. It keeps exact products of a rate and a time in 128
/// bits.
pub const CAPACITY_MAX: u64 = 1 << 56;

/// A virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LinkId(u32);

impl LinkId {
    /// Returns the number as an index into an array of all links.
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A member of a level: a host, a rack or a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelMember {
    /// Group: the number of a member of the next level. Members of the last level have none,
    /// and the value does not matter.
    pub group: u32,
    /// Capacity of its links up, all parallel ones together; `None` if they are down.
    pub up: Option<Rate>,
    /// Capacity of its links down.
    pub down: Option<Rate>,
}

/// Treatment of core links whose capacity is below that of the access links, as after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NarrowCorePolicy {
    /// Figure 6 to the letter: a flow's rate is that of its access links, and a core link with less
    /// capacity carries no flow.
    Refuse,
    /// A flow's rate is the least capacity on its path, so that one flow at a time fills the link.
    /// If every core link is as fast as an access link this is the same as `Refuse`.
    Shrink,
}

/// Levels that are not a network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NetworkError {
    /// Too few or too many levels.
    #[error("levels: expected 1 to {LEVELS_MAX}, got {0}")]
    Levels(usize),
    /// A level without members, or with more than can be numbered.
    #[error("level {level}: expected 1 to 2^28 members, got {members}")]
    Members {
        /// The level, from 0 for hosts.
        level: usize,
        /// Number of members.
        members: usize,
    },
    /// A group that the next level does not have.
    #[error("member {member} of level {level}: expected a group below {groups}, got {group}")]
    Group {
        /// The level.
        level: usize,
        /// The member.
        member: usize,
        /// Members of the next level.
        groups: usize,
        /// The group.
        group: u32,
    },
    /// A capacity beyond the highest.
    #[error("member {member} of level {level}: expected at most {CAPACITY_MAX} bit/s, got {bps}")]
    Capacity {
        /// The level.
        level: usize,
        /// The member.
        member: usize,
        /// The capacity.
        bps: u64,
    },
}

/// Hosts, groups, and the capacities of the links between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    n_hosts: u32,
    narrow: NarrowCorePolicy,
    /// The number of the first member of each level.
    starts: Vec<u32>,
    /// The group of each member, [`ROOT`] at the last level. Hosts are first, then level by level.
    groups: Vec<u32>,
    /// Capacities by link: for each member up, then down.
    capacities: Vec<Option<Rate>>,
    /// Parallel paths that a member's links represent, by level; zero if that is not known.
    parallel_paths: Vec<u32>,
    /// Capacities with all ways.
    full_capacities: Vec<Option<Rate>>,
}

const ROOT: u32 = u32::MAX;

/// Members of a level at most.
const MEMBERS_MAX: usize = 1 << 28;

impl Network {
    /// Returns a network of levels, hosts first. Members of the last level are joined by switches
    /// that never limit.
    ///
    /// # Errors
    /// Levels that do not fit together.
    pub fn new(
        levels: &[Vec<LevelMember>],
        narrow: NarrowCorePolicy,
    ) -> Result<Self, NetworkError> {
        if !(1..=LEVELS_MAX).contains(&levels.len()) {
            return Err(NetworkError::Levels(levels.len()));
        }
        let (mut starts, mut groups, mut capacities) = (Vec::new(), Vec::new(), Vec::new());
        for (level, members) in levels.iter().enumerate() {
            if !(1..=MEMBERS_MAX).contains(&members.len()) {
                return Err(NetworkError::Members { level, members: members.len() });
            }
            let start = groups.len();
            starts.push(start as u32);
            let next = levels.get(level + 1).map(Vec::len);
            for (member, &LevelMember { group, up, down }) in members.iter().enumerate() {
                groups.push(match next {
                    Some(n) if (group as usize) < n => (start + members.len()) as u32 + group,
                    Some(groups) => {
                        return Err(NetworkError::Group { level, member, groups, group });
                    }
                    None => ROOT,
                });
                for capacity in [up, down] {
                    if let Some(rate) = capacity.filter(|rate| rate.as_bps() > CAPACITY_MAX) {
                        let bps = rate.as_bps();
                        return Err(NetworkError::Capacity { level, member, bps });
                    }
                    capacities.push(capacity);
                }
            }
        }
        let n_hosts = levels[0].len() as u32;
        let (parallel_paths, full_capacities) = (vec![0; levels.len()], capacities.clone());
        Ok(Self { n_hosts, narrow, starts, groups, capacities, parallel_paths, full_capacities })
    }

    /// Sets the number of parallel paths of equal capacity that the links of racks, and those of
    /// pods, represent.
    #[must_use]
    pub fn with_parallel_paths(mut self, above: &[u32]) -> Self {
        for (ways, &above) in self.parallel_paths[1..].iter_mut().zip(above) {
            *ways = above;
        }
        self
    }

    /// Returns the links whose capacity changes if these paths are down, with the capacity of the
    /// remaining paths together. A member keeps its capacity if its paths are not known or none
    /// remains: then TCP detects the failure.
    pub fn degraded_capacities(&self, down: &LinksDown) -> Vec<(LinkId, Option<Rate>)> {
        let of_racks = down.racks.iter().map(|&(rack, _)| (1, u32::from(rack)));
        let of_pods = down.pods.iter().map(|&(pod, ..)| (2, u32::from(pod)));
        let mut lost = BTreeMap::new();
        for link in of_racks.chain(of_pods).filter_map(|(level, member)| self.up(level, member)) {
            *lost.entry(link).or_insert(0) += 1;
        }
        let mut changed = Vec::new();
        for (level, &ways) in self.parallel_paths.iter().enumerate().skip(1) {
            for (member, up) in (0..).map_while(|member| Some((member, self.up(level, member)?))) {
                let left = ways.saturating_sub(lost.get(&up).copied().unwrap_or(0));
                for link in [Some(up), self.down(level, member)].into_iter().flatten() {
                    let whole = self.full_capacities[link.index()];
                    let share = |rate: Rate| rate.as_bps() / u64::from(ways) * u64::from(left);
                    let capacity = match left == 0 || left == ways {
                        true => whole,
                        false => whole.and_then(|rate| Rate::from_bps(share(rate))),
                    };
                    if capacity != self.capacities[link.index()] {
                        changed.push((link, capacity));
                    }
                }
            }
        }
        changed
    }

    /// Returns a leaf-spine network. `core` is the sum of a rack's uplinks.
    ///
    /// # Errors
    /// No racks or no hosts.
    pub fn leaf_spine(
        racks: u32,
        hosts_per_rack: u32,
        access: Rate,
        core: Rate,
    ) -> Result<Self, NetworkError> {
        let host = |n: u32| LevelMember {
            group: n / hosts_per_rack,
            up: Some(access),
            down: Some(access),
        };
        let rack = LevelMember { group: 0, up: Some(core), down: Some(core) };
        let hosts = (0..racks * hosts_per_rack).map(host).collect();
        Self::new(&[hosts, vec![rack; racks as usize]], NarrowCorePolicy::Shrink)
    }

    /// Returns the number of hosts.
    #[inline]
    pub fn n_hosts(&self) -> u32 {
        self.n_hosts
    }

    /// Returns the number of links.
    pub fn n_links(&self) -> usize {
        self.capacities.len()
    }

    /// Returns the link up from a member of a level; `None` if there is no such member.
    pub fn up(&self, level: usize, member: u32) -> Option<LinkId> {
        let start = *self.starts.get(level)?;
        let end = self.starts.get(level + 1).copied().unwrap_or(self.groups.len() as u32);
        (member < end - start).then(|| LinkId(2 * (start + member)))
    }

    /// Returns the link down to a member of a level; `None` if there is no such member.
    pub fn down(&self, level: usize, member: u32) -> Option<LinkId> {
        self.up(level, member).map(|LinkId(up)| LinkId(up + 1))
    }

    /// Returns true if a link is the access link of a host.
    #[inline]
    pub fn is_access(&self, link: LinkId) -> bool {
        link.0 < 2 * self.n_hosts
    }

    /// Returns all links, in the order of their numbers.
    pub fn links(&self) -> impl Iterator<Item = LinkId> {
        (0..self.capacities.len() as u32).map(LinkId)
    }

    /// Returns the capacity of a link; `None` if it is down.
    #[inline]
    pub fn capacity(&self, link: LinkId) -> Option<Rate> {
        self.capacities[link.index()]
    }

    /// Changes the capacity of a link. More than [`CAPACITY_MAX`] counts as that.
    pub fn set_capacity(&mut self, link: LinkId, capacity: Option<Rate>) {
        let bps = capacity.map(|rate| rate.as_bps().min(CAPACITY_MAX));
        self.capacities[link.index()] = bps.and_then(Rate::from_bps);
    }

    /// Returns the links of a flow between two hosts of the network, which must differ.
    #[inline]
    pub fn path(&self, src: NodeId, dst: NodeId) -> Path {
        let mut path = Path { links: [LinkId::default(); 2 * LEVELS_MAX], len: 0 };
        let (mut up, mut down) = (src.get(), dst.get());
        while up != down {
            path.links[usize::from(path.len)] = LinkId(2 * up);
            path.links[usize::from(path.len) + 1] = LinkId(2 * down + 1);
            path.len += 2;
            (up, down) = (self.groups[up as usize], self.groups[down as usize]);
        }
        path
    }

    /// Returns the rate at which a granted flow transmits (figure 6, line 6); `None` if a link is
    /// down.
    #[inline]
    pub fn rate(&self, path: &Path) -> Option<Rate> {
        let links = match self.narrow {
            NarrowCorePolicy::Refuse => path.access(),
            NarrowCorePolicy::Shrink => path.links(),
        };
        // `None` is less than any rate.
        links.iter().map(|&link| self.capacity(link)).min().flatten()
    }
}

/// The links that a flow takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    links: [LinkId; 2 * LEVELS_MAX],
    len: u8,
}

impl Path {
    /// Returns all links: access links first, then core links from the racks upwards.
    #[inline]
    pub fn links(&self) -> &[LinkId] {
        &self.links[..usize::from(self.len)]
    }

    /// Returns the access link of the source and that of the destination.
    #[inline]
    pub fn access(&self) -> &[LinkId] {
        &self.links()[..2]
    }

    /// Returns the other links; none within a rack.
    #[inline]
    pub fn core(&self) -> &[LinkId] {
        &self.links()[2..]
    }
}
