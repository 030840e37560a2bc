//! The ranks of a few times, without a branch.
//!
//! *Problem*: the order of a handful of events is random, so every comparison that a sorting
//! algorithm branches on is mispredicted half of the time.
//!
//! *This way*: a rank is the number of smaller values, which vector instructions count for all
//! lanes at once. Compilers find these instructions by themselves in [`portable`], but spill half
//! of the values where the code around it changes; [`vector`] leaves them no choice.

/// Values that are ranked together.
pub(super) const LANES: usize = 16;

/// The rank of each of `times[1..=n]` among these: how many are smaller, or equal and before it.
/// The low four bits of times are zero. What is returned for the other lanes is at least `n - 1`
/// and means nothing.
#[inline]
pub(super) fn ranks(times: &[u16; LANES], n: u16) -> [u16; LANES] {
    #[cfg(target_arch = "x86_64")]
    return vector(times, n);
    #[cfg(not(target_arch = "x86_64"))]
    return portable(times, n);
}

/// Each lane's number.
const PLACES: [u16; LANES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The same on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(times: &[u16; LANES], n: u16) -> [u16; LANES] {
    let is_used = |place: u16| (1..=n).contains(&place);
    let tag = |place: u16| match is_used(place) {
        true => times[usize::from(place)] | place,
        false => u16::MAX,
    };
    let tags = PLACES.map(tag);
    tags.map(|tag| tags.iter().map(|other| u16::from(*other < tag)).sum())
}

/// The same with the instructions of SSE2, which every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "arrays of 16 numbers are passed as two registers of 8")]
fn vector(times: &[u16; LANES], n: u16) -> [u16; LANES] {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpgt_epi16, _mm_or_si128, _mm_set1_epi16,
        _mm_setzero_si128, _mm_srli_epi16, _mm_sub_epi16, _mm_xor_si128,
    };
    use std::mem::transmute;

    // SAFETY: the target has SSE2, and both types of each conversion are 32 bytes of plain numbers.
    unsafe {
        let places: [__m128i; 2] = transmute(PLACES);
        let (n, sign) = (_mm_set1_epi16(n as i16), _mm_set1_epi16(i16::MIN));
        let mut tags: [__m128i; 2] = transmute(*times);
        for half in 0..2 {
            // No two tags are equal. Comparisons are signed, hence the turned sign bit.
            let tag = _mm_xor_si128(_mm_or_si128(tags[half], places[half]), sign);
            // Lanes that are not in use hold the largest number.
            let unused = _mm_cmpgt_epi16(places[half], n);
            tags[half] = _mm_or_si128(_mm_andnot_si128(unused, tag), _mm_srli_epi16::<1>(unused));
        }
        let mut each: [i16; LANES] = transmute(tags);
        each[0] = i16::MAX;
        tags = transmute(each);
        let mut ranks = [_mm_setzero_si128(); 2];
        for tag in each {
            let tag = _mm_set1_epi16(tag);
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
            times in proptest::array::uniform16((0u16..=0xfff).prop_map(|time| time << 4)),
            n in 0u16..16,
        ) {
            let mut sorted: Vec<u16> = (1..=n).collect();
            sorted.sort_by_key(|place| times[usize::from(*place)]);
            let of = ranks(&times, n);
            for (rank, place) in (0..).zip(&sorted) {
                prop_assert_eq!(of[usize::from(*place)], rank);
            }
            let rest = (0..LANES).filter(|place| *place == 0 || *place > n.into());
            for place in rest {
                prop_assert!(of[place] + 1 >= n);
            }
            prop_assert_eq!(of, portable(&times, n));
        }
    }
}
