//! The ranks of a few times, without a branch.
//!
//! *Problem*: the order of a handful of events is random, so every comparison that a sorting
//! algorithm branches on is mispredicted half of the time.
//!
//! *This way*: a rank is the number of smaller values, which vector instructions count for all
//! lanes at once. Compilers find these instructions by themselves in [`portable`], but spill half
//! of the values if the code around it changes; [`vector`] prescribes them.

/// Values that are ranked together.
pub(super) const LANES: usize = 16;

/// Upper bits of a word that are its time. The others do not matter.
pub(super) const TIME_BITS: u32 = 12;

/// Returns the rank of each of `words[1..=n]` by time among these: how many are earlier, or as
/// early and before it. Values for the other lanes are at least `n - 1` and have no meaning.
#[inline]
pub(super) fn ranks(words: &[u64; LANES], n: usize) -> [u16; LANES] {
    #[cfg(target_arch = "x86_64")]
    return vector(words, n);
    #[cfg(not(target_arch = "x86_64"))]
    return portable(words, n);
}

/// Each lane's number.
const PLACES: [u16; LANES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The same on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(words: &[u64; LANES], n: usize) -> [u16; LANES] {
    let tag = |place: u16| match (1..=n).contains(&place.into()) {
        true => (words[usize::from(place)] >> (64 - TIME_BITS) << 4) as u16 | place,
        false => u16::MAX,
    };
    let tags = PLACES.map(tag);
    tags.map(|tag| tags.iter().map(|other| u16::from(*other < tag)).sum())
}

/// Returns the same with the instructions of SSE2, which every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "arrays of numbers are passed as registers of 16 bytes")]
fn vector(words: &[u64; LANES], n: usize) -> [u16; LANES] {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_andnot_si128, _mm_castps_si128, _mm_castsi128_ps,
        _mm_cmpgt_epi16, _mm_insert_epi16, _mm_or_si128, _mm_packs_epi32, _mm_set1_epi16,
        _mm_setzero_si128, _mm_shuffle_ps, _mm_srai_epi32, _mm_srli_epi16, _mm_sub_epi16,
        _mm_xor_si128,
    };
    use std::mem::transmute;

    // SAFETY: the target has SSE2. Both types of each conversion are plain numbers of one size.
    unsafe {
        let words: [__m128i; LANES / 2] = transmute(*words);
        // The upper halves of four words.
        let upper = |at: usize| {
            let (a, b) = (_mm_castsi128_ps(words[at]), _mm_castsi128_ps(words[at + 1]));
            _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(a, b))
        };
        let (n, sign) = (_mm_set1_epi16(n as i16), _mm_set1_epi16(i16::MIN));
        let time = _mm_set1_epi16((u16::MAX << (16 - TIME_BITS)) as i16);
        let places: [__m128i; 2] = transmute(PLACES);
        let mut tags = [_mm_setzero_si128(); 2];
        for half in 0..2 {
            let (low, high) = (upper(4 * half), upper(4 * half + 2));
            let top = _mm_packs_epi32(_mm_srai_epi32::<16>(low), _mm_srai_epi32::<16>(high));
            // No two tags are equal. Comparisons are signed, hence the turned sign bit.
            let tag = _mm_or_si128(_mm_and_si128(top, time), places[half]);
            let tag = _mm_xor_si128(tag, sign);
            // Lanes that are not in use hold the largest number.
            let unused = _mm_cmpgt_epi16(places[half], n);
            tags[half] = _mm_or_si128(_mm_andnot_si128(unused, tag), _mm_srli_epi16::<1>(unused));
        }
        // The first word is no event.
        tags[0] = _mm_insert_epi16::<0>(tags[0], i16::MAX.into());
        let each: [i16; LANES] = transmute(tags);
        let mut ranks = [_mm_setzero_si128(); 2];
        for tag in &each[1..] {
            let tag = _mm_set1_epi16(*tag);
            for half in 0..2 {
                ranks[half] = _mm_sub_epi16(ranks[half], _mm_cmpgt_epi16(tags[half], tag));
            }
        }
        transmute(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_a_stable_sort(
            words in proptest::array::uniform16(prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)]),
            n in 0usize..LANES,
        ) {
            let mut sorted: Vec<usize> = (1..=n).collect();
            sorted.sort_by_key(|place| words[*place] >> (64 - TIME_BITS));
            let of = ranks(&words, n);
            for (rank, place) in (0..).zip(&sorted) {
                prop_assert_eq!(of[*place], rank);
            }
            for place in (0..LANES).filter(|place| !(1..=n).contains(place)) {
                prop_assert!(usize::from(of[place]) + 1 >= n);
            }
            prop_assert_eq!(of, portable(&words, n));
        }
    }
}
