//! A node among packets with the right incarnations and arbitrary other fields: memory and work
//! stay bounded. The fuzz target `node_sequences` runs the same.

#[path = "common/sequences/mod.rs"]
mod sequences;

use rampmeter_types::{Purpose, Rng};
use sequences::{CountingAllocator, SequenceCost, transports};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

#[test]
fn memory_and_work_per_peer_are_bounded() {
    let n = std::env::var("RAMPMETER_SEQUENCES").map_or(60, |n| n.parse().expect("a number"));
    for (name, run) in transports() {
        let mut most = SequenceCost::default();
        for seed in 0..n {
            let mut rng = Rng::new(seed, 0, Purpose::Test);
            let len = 20 + rng.uniform_below(1_500);
            let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
            let tally = run(&bytes);
            most.packets += tally.packets;
            most.memory = most.memory.max(tally.memory);
            most.calls = most.calls.max(tally.calls);
            most.poll_ns = most.poll_ns.max(tally.poll_ns);
        }
        println!("{name}: {most:?}");
        assert!(most.packets > n * 100, "{name}: {most:?}");
    }
}
