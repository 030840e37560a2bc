//! Messages of collective operations in files that name only the operation.
//!
//! All-reduces, all-gathers and reduce-scatters use a ring, all-to-alls are direct. Broadcasts and
//! reductions to one host use a binomial tree. The pattern `collective` has the same defaults.

use rampmeter_types::Bytes;

use crate::graph::Round;
use crate::pattern::HostSet;
use crate::pattern::collective::{Algorithm, Operation};

/// A collective operation of a file. The vector is the larger of the bytes that a host has at the
/// start and at the end. The first host is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    Barrier,
}

/// A message among hosts that are numbered from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectiveStep {
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) bytes: u64,
    /// The steps that `src` must have received before, by their places.
    pub(super) after: Vec<usize>,
}

impl Collective {
    /// Returns the messages among `n` hosts, each after its dependencies.
    pub(super) fn steps(self, n: usize, bytes: u64) -> Vec<CollectiveStep> {
        if n < 2 {
            return Vec::new();
        }
        match self {
            Self::AllReduce => ring(n, bytes, 2 * (n - 1)),
            Self::AllGather | Self::ReduceScatter => ring(n, bytes, n - 1),
            Self::AllToAll => {
                let pairs = (1..n).flat_map(|by| (0..n).map(move |src| (src, (src + by) % n)));
                pairs.map(|(src, dst)| step(src, dst, part(bytes, n, dst))).collect()
            }
            Self::Broadcast => tree(n, bytes, false, true),
            Self::Reduce => tree(n, bytes, true, false),
            Self::Barrier => tree(n, 1, true, true),
            Self::Gather => (1..n).map(|src| step(src, 0, part(bytes, n, src))).collect(),
            Self::Scatter => (1..n).map(|dst| step(0, dst, part(bytes, n, dst))).collect(),
        }
    }

    /// Returns the round of a collective whose messages have these rows; `None` if plans have no
    /// such operation.
    pub(super) fn round(
        self,
        hosts: &[usize],
        bytes: u64,
        rows: std::ops::Range<u32>,
        number: u32,
    ) -> Option<Round> {
        let (operation, algorithm) = match self {
            Self::AllReduce => (Operation::AllReduce, Algorithm::Ring),
            Self::AllGather => (Operation::AllGather, Algorithm::Ring),
            Self::ReduceScatter => (Operation::ReduceScatter, Algorithm::Ring),
            Self::AllToAll => (Operation::AllToAll, Algorithm::Direct),
            Self::Broadcast => (Operation::Broadcast, Algorithm::Tree),
            Self::Reduce | Self::Gather | Self::Scatter | Self::Barrier => return None,
        };
        let numbers: Vec<u32> = hosts.iter().map(|&host| host as u32).collect();
        let (hosts, bytes) = (HostSet::list(&numbers), Bytes::new(bytes));
        Some(Round { operation, algorithm, hosts, number, bytes, nodes: rows })
    }
}

fn step(src: usize, dst: usize, bytes: u64) -> CollectiveStep {
    CollectiveStep { src, dst, bytes, after: Vec::new() }
}

/// Returns the length of part `idx` of a vector that is divided into `n`; at least a byte, as no
/// message is empty.
fn part(bytes: u64, n: usize, idx: usize) -> u64 {
    let (n, idx) = (n as u64, (idx % n) as u64);
    (bytes / n + u64::from(idx < bytes % n)).max(1)
}

fn ring(n: usize, bytes: u64, n_steps: usize) -> Vec<CollectiveStep> {
    let mut steps = Vec::with_capacity(n * n_steps);
    for at in 0..n_steps {
        for src in 0..n {
            // The message of the step before, from the host before.
            let before = at.checked_sub(1).map(|at| at * n + (src + n - 1) % n);
            let bytes = part(bytes, n, src + 2 * n - at);
            let after = before.into_iter().collect();
            steps.push(CollectiveStep { src, dst: (src + 1) % n, bytes, after });
        }
    }
    steps
}

/// Returns a binomial tree, up to the first host, down from it, or both.
fn tree(n: usize, bytes: u64, up: bool, down: bool) -> Vec<CollectiveStep> {
    let levels = n.next_power_of_two().trailing_zeros();
    let pairs = |level: u32| {
        let far = 1usize << level;
        (0..n).step_by(2 * far).map(move |low| (low, low + far)).filter(move |&(_, high)| high < n)
    };
    let mut received: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut steps = Vec::new();
    let mut send = |src: usize, dst: usize, received: &mut Vec<Vec<usize>>| {
        steps.push(CollectiveStep { src, dst, bytes: bytes.max(1), after: received[src].clone() });
        received[dst].push(steps.len() - 1);
    };
    if up {
        for level in 0..levels {
            pairs(level).for_each(|(parent, child)| send(child, parent, &mut received));
        }
    }
    if down {
        for level in (0..levels).rev() {
            for (parent, child) in pairs(level) {
                received[child].clear();
                send(parent, child, &mut received);
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the hosts whose data each host has at the end, if a message contains the data of all
    /// its dependencies.
    fn collected_hosts(n: usize, steps: &[CollectiveStep]) -> Vec<u64> {
        let mut carried = Vec::new();
        let mut known: Vec<u64> = (0..n).map(|host| 1 << host).collect();
        for step in steps {
            let own = 1u64 << step.src;
            let all = step.after.iter().fold(own, |all, &of| all | carried[of]);
            carried.push(all);
            known[step.dst] |= all;
        }
        known
    }

    proptest! {
        #[test]
        fn every_operation_produces_its_named_result(n in 2usize..20, bytes in 1u64..1000) {
            use Collective::{
                AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter,
                Scatter,
            };
            let everybody = (1u64 << n) - 1;
            for kind in [AllReduce, AllGather, ReduceScatter, AllToAll, Barrier] {
                let steps = kind.steps(n, bytes);
                let collected = collected_hosts(n, &steps);
                prop_assert!(collected.iter().all(|&of| of == everybody), "{kind:?}");
            }
            for kind in [Reduce, Gather] {
                prop_assert_eq!(collected_hosts(n, &kind.steps(n, bytes))[0], everybody);
            }
            for kind in [Broadcast, Scatter] {
                let known = collected_hosts(n, &kind.steps(n, bytes));
                prop_assert!(known.iter().all(|&of| of & 1 == 1));
            }
            for kind in [
                AllReduce, AllGather, ReduceScatter, AllToAll, Barrier, Reduce, Gather, Broadcast,
                Scatter,
            ] {
                for (at, step) in kind.steps(n, bytes).iter().enumerate() {
                    prop_assert!(step.bytes > 0 && step.src != step.dst);
                    prop_assert!(step.after.iter().all(|&before| before < at));
                }
            }
        }
    }

    #[test]
    fn a_ring_sends_two_parts_less_than_twice_the_vector() {
        let sent: u64 = Collective::AllReduce.steps(4, 8 << 20).iter().map(|s| s.bytes).sum();
        assert_eq!(sent, 4 * 6 * (2 << 20));
    }
}
