//! Tests of the event queue.

use super::*;
use crate::engine::event::{ARRIVE, event, packet_event};
use proptest::prelude::*;

/// One step of a random schedule: push at a distance, pop, or pop all up to a distance.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u64),
    Pop,
    PopBefore(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..40).prop_map(Step::Push),
        (0u64..4_000).prop_map(Step::Push),
        (0u64..8_000_000).prop_map(Step::Push),
        (0u64..4_000_000_000).prop_map(Step::Push),
        Just(Step::Pop),
        Just(Step::Pop),
        Just(Step::Pop),
        (0u64..20_000).prop_map(Step::PopBefore),
    ]
}

/// Returns the `n`th event pushed at `time`, of one of five ports.
fn nth(n: usize, time: Time) -> EventKey {
    packet_event(time, ARRIVE, n as u32 % 5, n as u32)
}

proptest! {
    #[test]
    fn events_are_popped_in_heap_order(
        steps in proptest::collection::vec(step(), 0..2_000),
        width in 1u64..5_000,
    ) {
        let mut wheel = Wheel::new(Span::from_ps(width));
        let mut heap = BinaryHeap::new();
        let mut now = 0;
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(ahead) => {
                    let key = nth(n, Time::from_ps(now + ahead));
                    wheel.push(key);
                    heap.push(Reverse((key.time, rank(key.code), n, key.code)));
                }
                Step::Pop => {
                    let popped = wheel.pop().map(|k| (k.time, k.code));
                    let expected = heap.pop().map(|Reverse((time, .., what))| (time, what));
                    prop_assert_eq!(popped, expected);
                    now = popped.map_or(now, |(t, _)| t.as_ps());
                }
                Step::PopBefore(ahead) => {
                    // Events from the limit on may be pushed before those that are queued.
                    let (time, port) = (Time::from_ps(now + ahead), 2);
                    let limit = EventLimit { time, rank: rank(event(time, ARRIVE, port).code) };
                    let is_before = |time: Time, rank| (time, rank) < (limit.time, limit.rank);
                    while let Some(&Reverse((time, rank, _, code))) = heap.peek()
                        && is_before(time, rank)
                    {
                        heap.pop();
                        let popped = wheel.pop_before(limit).map(|k| (k.time, k.code));
                        prop_assert_eq!(popped, Some((time, code)));
                    }
                    prop_assert_eq!(wheel.pop_before(limit), None);
                    let first = heap.peek().map(|Reverse((time, ..))| *time);
                    prop_assert_eq!(wheel.next_time().is_some(), first.is_some());
                    prop_assert!(wheel.next_time() <= first);
                    now += ahead;
                }
            }
            prop_assert_eq!(wheel.len(), heap.len());
        }
        while let Some(Reverse((time, .., what))) = heap.pop() {
            prop_assert_eq!(wheel.pop().map(|k| (k.time, k.code)), Some((time, what)));
        }
        prop_assert!(wheel.pop().is_none());
    }

    #[test]
    fn the_order_of_insertion_does_not_matter(
        events in proptest::collection::btree_set(
            (prop_oneof![0u64..9, 0u64..9_000_000], 0u32..4, 0u32..90),
            0..200,
        )
            .prop_flat_map(|set| {
                let sorted: Vec<_> = set.into_iter().collect();
                (Just(sorted.clone()), Just(sorted).prop_shuffle())
            }),
        width in 1u64..5_000,
    ) {
        let order = |events: &[(u64, u32, u32)]| {
            let mut wheel = Wheel::new(Span::from_ps(width));
            for &(ps, kind, port) in events {
                wheel.push(event(Time::from_ps(ps), u64::from(kind) * ARRIVE, port));
            }
            std::iter::from_fn(|| wheel.pop()).collect::<Vec<_>>()
        };
        prop_assert_eq!(order(&events.0), order(&events.1));
    }
}
