//! Sends sequences of arbitrary packets from a connected peer to a node. Memory and work of the
//! node are in proportion to the received packets, and nothing is delivered twice.
//! `crates/runtime/tests/common/sequences` defines sequences and limits.

#![no_main]

#[path = "../../crates/runtime/tests/common/sequences/mod.rs"]
mod sequences;

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use sequences::{CountingAllocator, sequence};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Packets of all sequences, and sequences.
static PACKETS: AtomicU64 = AtomicU64::new(0);
static SEQUENCES: AtomicU64 = AtomicU64::new(0);
/// Packets between two lines of the log.
const A_LINE: u64 = 10_000_000;

fuzz_target!(|bytes: &[u8]| {
    let tally = sequence(bytes);
    let before = PACKETS.fetch_add(tally.packets, Ordering::Relaxed);
    let after = before + tally.packets;
    let sequences = SEQUENCES.fetch_add(1, Ordering::Relaxed) + 1;
    if after / A_LINE > before / A_LINE {
        eprintln!("{after} packets in {sequences} sequences");
    }
});
