//! Tests of the colouring of matchings.

use super::super::colour::EdgeColourer;
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    /// König: a bipartite multigraph of degree d has a colouring with d colours, and this is
    /// one.
    #[test]
    fn no_colour_meets_itself_in_a_rack_and_there_are_no_more_than_the_degree(
        n in 1usize..12,
        ends in proptest::collection::vec((0u16..12, 0u16..12), 0..300),
    ) {
        let edges: Vec<(u16, u16)> =
            ends.iter().map(|&(a, b)| (a % n as u16, b % n as u16)).collect();
        let mut colouring = EdgeColourer::default();
        let (colours, used) = colouring.colour(n, &edges);
        let degree = |end: &dyn Fn(&(u16, u16)) -> u16| {
            (0..n as u16).map(|r| edges.iter().filter(|e| end(e) == r).count()).max().unwrap()
        };
        let most = degree(&|e| e.0).max(degree(&|e| e.1));
        prop_assert_eq!(usize::from(used), most);
        let mut seen = BTreeSet::new();
        for (&(src, dst), &colour) in edges.iter().zip(colours) {
            prop_assert!(colour < used);
            prop_assert!(seen.insert((0, src, colour)) && seen.insert((1, dst, colour)));
        }
    }
}
