//! Hash map keyed by identifiers, with a fixed hash.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Map whose order and layout are the same in every run. Never iterate it if the order can affect
/// results.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiply-and-rotate hashing of a few machine words. This program chooses the keys, or their
/// number is bounded per peer. So resistance to chosen collisions is not needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl IdHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

impl Hasher for IdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.rotate_left(20)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add(u64::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_pairs_differ_in_their_low_bits() {
        let mut map: IdMap<(u32, u32), u32> = IdMap::default();
        for a in 0..200 {
            for b in 0..200 {
                map.insert((a, b), a * 1000 + b);
            }
        }
        assert_eq!(map.len(), 40_000);
        assert_eq!(map.get(&(7, 199)), Some(&7199));
    }
}
