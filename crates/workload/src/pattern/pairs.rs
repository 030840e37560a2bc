//! Partners: which host sends to which. Hosts are numbered from zero within a pattern.

use std::sync::Arc;

use rampmeter_types::Rng;

/// The law of pairs.
#[derive(Clone, Debug, PartialEq)]
pub enum Pairs {
    /// Every ordered pair of different hosts is equally likely.
    AllToAll {
        /// Number of hosts.
        n_hosts: u32,
    },
    /// Every host sends to one other, and receives from one: a permutation without fixed points,
    /// drawn uniformly from the seed.
    Permutation {
        /// Number of hosts.
        n_hosts: u32,
    },
    /// Every host sends to the one that is `by` places on.
    Stride {
        /// Number of hosts.
        n_hosts: u32,
        /// Distance of partners, from 1 to `n_hosts - 1`.
        by: u32,
    },
    /// Every host sends to one of the other half, and receives from one there: two one-to-one maps,
    /// drawn uniformly from the seed.
    Bisection {
        /// Number of hosts, which is even.
        n_hosts: u32,
    },
    /// A message is sent to the same rack, the same pod or farther, with a probability for each.
    Staggered(Arc<StaggeredPairs>),
    /// Every ordered pair of different hosts in the same rack is equally likely.
    SameRack {
        /// Number of hosts.
        n_hosts: u32,
        /// Number of hosts that share a rack.
        rack: u32,
    },
    /// Every ordered pair of hosts in different racks is equally likely.
    OtherRack {
        /// Number of hosts.
        n_hosts: u32,
        /// Number of hosts that share a rack.
        rack: u32,
    },
}

impl Pairs {
    /// Returns the number of hosts.
    pub fn n_hosts(&self) -> u32 {
        match self {
            Self::AllToAll { n_hosts }
            | Self::Permutation { n_hosts }
            | Self::Stride { n_hosts, .. }
            | Self::Bisection { n_hosts }
            | Self::SameRack { n_hosts, .. }
            | Self::OtherRack { n_hosts, .. } => *n_hosts,
            Self::Staggered(staggered) => staggered.near.len() as u32,
        }
    }
}

/// Hosts by rack and pod, and the probabilities of each.
#[derive(Clone, Debug, PartialEq)]
pub struct StaggeredPairs {
    /// Hosts of the rack and of the pod of each host, which follow one another.
    near: Vec<[(usize, usize); 2]>,
    rack_share: f64,
    pod_share: f64,
}

impl StaggeredPairs {
    /// Creates hosts of these ascending numbers, of which `per_group` share a rack and a pod.
    /// `shares` are the probabilities of the rack and of the rest of the pod.
    ///
    /// # Errors
    /// The key, and the missing hosts.
    pub fn new(
        numbers: &[u32],
        per_group: (u32, u32),
        shares: (f64, f64),
    ) -> Result<Self, (&'static str, String)> {
        let group = |at: usize, size: u32| {
            let number = numbers[at] / size;
            let from = numbers.partition_point(|&other| other / size < number);
            (from, numbers.partition_point(|&other| other / size <= number))
        };
        let near: Vec<_> =
            (0..numbers.len()).map(|at| [group(at, per_group.0), group(at, per_group.1)]).collect();
        let (rack_share, pod_share) = shares;
        let size = |(from, to): (usize, usize)| to - from;
        for (at, &[rack, pod]) in near.iter().enumerate() {
            let lacks = |peer: &str| format!("{peer}, as host {} has none", numbers[at]);
            if rack_share > 0.0 && size(rack) < 2 {
                return Err(("rack-share", lacks("0, or another host in the rack of each")));
            }
            if pod_share > 0.0 && size(pod) == size(rack) {
                return Err(("pod-share", lacks("0, or hosts in another rack of the pod of each")));
            }
            if rack_share + pod_share < 1.0 - 1e-9 && size(pod) == numbers.len() {
                return Err(("rack-share", lacks("1 with pod-share, or hosts farther away")));
            }
        }
        Ok(Self { near, rack_share, pod_share })
    }

    fn draw(&self, src: usize, rng: &mut Rng) -> usize {
        let [(rack, rack_end), (pod, pod_end)] = self.near[src];
        let (in_rack, in_pod, n) = (rack_end - rack, pod_end - pod, self.near.len());
        let share = rng.uniform_unit();
        if share < self.rack_share || in_pod == n && in_pod == in_rack {
            rack + skip(rng.uniform_below(in_rack - 1), src - rack, 1)
        } else if share < self.rack_share + self.pod_share || in_pod == n {
            pod + skip(rng.uniform_below(in_pod - in_rack), rack - pod, in_rack)
        } else {
            skip(rng.uniform_below(n - in_pod), pod, in_pod)
        }
    }
}

/// Pairs with precomputed data of their law.
#[derive(Debug)]
pub(super) struct PairSource {
    n: usize,
    law: PairPattern,
    rng: Rng,
}

#[derive(Debug)]
enum PairPattern {
    AllToAll,
    /// The partner of each host.
    Fixed(Vec<u32>),
    Staggered(Arc<StaggeredPairs>),
    SameRack {
        rack: usize,
    },
    OtherRack {
        rack: usize,
    },
}

impl PairSource {
    pub(super) fn new(pairs: &Pairs, mut rng: Rng) -> Self {
        let n_hosts = pairs.n_hosts();
        let law = match pairs {
            Pairs::AllToAll { .. } => PairPattern::AllToAll,
            Pairs::Permutation { .. } => PairPattern::Fixed(derangement(n_hosts, &mut rng)),
            Pairs::Stride { by, .. } => {
                PairPattern::Fixed((0..n_hosts).map(|src| (src + by) % n_hosts).collect())
            }
            Pairs::Bisection { .. } => PairPattern::Fixed(halves(n_hosts, &mut rng)),
            Pairs::Staggered(staggered) => PairPattern::Staggered(Arc::clone(staggered)),
            Pairs::SameRack { rack, .. } => PairPattern::SameRack { rack: *rack as usize },
            Pairs::OtherRack { rack, .. } => PairPattern::OtherRack { rack: *rack as usize },
        };
        Self { n: n_hosts as usize, law, rng }
    }

    /// Draws a sender and its receiver.
    pub(super) fn draw(&mut self) -> (u32, u32) {
        let src = self.rng.uniform_below(self.n);
        (src as u32, self.partner(src as u32))
    }

    /// Draws the receiver of a message of `src`.
    pub(super) fn partner(&mut self, src: u32) -> u32 {
        let (src, n, rng) = (src as usize, self.n, &mut self.rng);
        let dst = match &self.law {
            PairPattern::AllToAll => skip(rng.uniform_below(n - 1), src, 1),
            PairPattern::Fixed(to) => return to[src],
            PairPattern::Staggered(staggered) => staggered.draw(src, rng),
            PairPattern::SameRack { rack } => {
                let first = src / rack * rack;
                first + skip(rng.uniform_below(rack - 1), src - first, 1)
            }
            PairPattern::OtherRack { rack } => {
                skip(rng.uniform_below(n - rack), src / rack * rack, *rack)
            }
        };
        dst as u32
    }
}

/// Returns number `idx` of the numbers without the `n` numbers from `hole` on.
pub(super) fn skip(idx: usize, hole: usize, n: usize) -> usize {
    if idx < hole { idx } else { idx + n }
}

/// Returns a uniformly random permutation without fixed points, by rejection: about e tries.
fn derangement(n: u32, rng: &mut Rng) -> Vec<u32> {
    let mut to: Vec<u32> = (0..n).collect();
    loop {
        rng.shuffle(&mut to);
        if to.iter().zip(0..).all(|(&dst, src)| dst != src) {
            return to;
        }
    }
}

/// Returns the partners of the hosts of one half in the other.
fn halves(n: u32, rng: &mut Rng) -> Vec<u32> {
    let half = n / 2;
    let (mut low, mut high): (Vec<u32>, Vec<u32>) = ((0..half).collect(), (half..n).collect());
    rng.shuffle(&mut high);
    rng.shuffle(&mut low);
    high.append(&mut low);
    high
}
