//! Random streams by (seed, node, purpose).
//!
//! Each user of randomness has a separate stream, so that adding a node or a draw in one place
//! changes no other draw. The generator is PCG-64 MCG: small, fast, and with the same output on
//! every machine.

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Purpose of a stream. A new purpose gets a new number; numbers are never reused, because they
/// determine the effect of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Decisions of a protocol endpoint.
    Endpoint = 1,
    /// Path choice at a switch or a network interface.
    Spray = 2,
    /// Loss, duplication and reordering on a link.
    Fault = 3,
    /// Arrival times of a workload.
    Arrival = 4,
    /// Message sizes of a workload.
    Size = 5,
    /// Sources and destinations of a workload.
    Pair = 6,
    /// Offsets and drifts of host clocks.
    Clock = 7,
    /// Tests and tools.
    Test = 8,
    /// Deadlines of messages.
    Deadline = 9,
    /// Nonces by which a node recognises answers to its hellos.
    Hello = 10,
    /// Decisions of a switch's program.
    SwitchProgram = 11,
    /// Lengths of cables.
    Cable = 12,
    /// Choice of the packet that a port trims.
    Trim = 13,
    /// Choice of the packets to mark.
    Mark = 14,
}

/// One random stream.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// Creates the stream of `node` for `purpose` under `seed`.
    pub fn new(seed: u64, node: u64, purpose: Purpose) -> Self {
        let a = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        let b = mix(a ^ node.wrapping_mul(0xff51_afd7_ed55_8ccd));
        let c = mix(b ^ (purpose as u64).wrapping_mul(0xc4ce_b9fe_1a85_ec53));
        let mut state = [0; 16];
        state[..8].copy_from_slice(&c.to_le_bytes());
        state[8..].copy_from_slice(&mix(c).to_le_bytes());
        Self(Pcg64Mcg::from_seed(state))
    }

    /// Returns a separate stream for part `n` of this one's user. It depends on this stream's
    /// state, and does not change it.
    #[must_use]
    pub fn substream(&self, n: u64) -> Self {
        let mut ahead = self.clone();
        let (a, b) = (ahead.bits(), mix(ahead.bits() ^ mix(n.wrapping_add(1))));
        let mut state = [0; 16];
        state[..8].copy_from_slice(&mix(a ^ b).to_le_bytes());
        state[8..].copy_from_slice(&b.to_le_bytes());
        Self(Pcg64Mcg::from_seed(state))
    }

    /// Returns a uniform number below `n`, which must not be zero.
    #[inline]
    pub fn uniform_below(&mut self, n: usize) -> usize {
        if n == 1 { 0 } else { self.0.random_range(0..n) }
    }

    /// Returns a uniform number in [0, 1).
    #[inline]
    pub fn uniform_unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Returns an exponentially distributed number with mean one.
    pub fn exponential(&mut self) -> f64 {
        // 1 - u is in (0, 1], so that the logarithm is finite. The platform's own logarithm may
        // differ in the last bit from machine to machine; this one does not.
        -libm::log(1.0 - self.uniform_unit())
    }

    /// Returns true with probability `p`.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform_unit() < p
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Puts `items` into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.uniform_below(i + 1));
        }
    }
}

/// Bijection of 64-bit words with good avalanche (the finaliser of SplitMix64).
#[inline]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_every_key() {
        let first = |s, n, p| Rng::new(s, n, p).bits();
        assert_eq!(first(1, 2, Purpose::Spray), first(1, 2, Purpose::Spray));
        assert_ne!(first(1, 2, Purpose::Spray), first(2, 2, Purpose::Spray));
        assert_ne!(first(1, 2, Purpose::Spray), first(1, 3, Purpose::Spray));
        assert_ne!(first(1, 2, Purpose::Spray), first(1, 2, Purpose::Fault));
    }

    #[test]
    fn components_have_separate_random_streams() {
        let whole = Rng::new(1, 2, Purpose::Endpoint);
        let first = |n| whole.substream(n).bits();
        assert_eq!(first(0), first(0));
        assert_ne!(first(0), first(1));
        assert_ne!(first(0), whole.clone().bits());
        // Two parts agree in as many bits as independent streams: half, within 5 sigma.
        let (mut a, mut b) = (whole.substream(0), whole.substream(1));
        let equal: u32 = (0..1_000).map(|_| (a.bits() ^ b.bits()).count_zeros()).sum();
        assert!((31_368..=32_632).contains(&equal), "{equal} of 64000");
    }

    #[test]
    fn exponential_has_mean_and_variance_one() {
        let mut rng = Rng::new(7, 0, Purpose::Test);
        let draws: Vec<f64> = (0..200_000).map(|_| rng.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        // Standard errors are 0.0022 and 0.0063 at this count; the bounds are 5 of them.
        assert!((mean - 1.0).abs() < 0.011, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.032, "variance {variance}");
    }
}
