//! Nodes in memory, on simulated time. One program, since each compiles every transport.

mod bundles;
mod clocks;
#[path = "../common/mod.rs"]
mod common;
mod depth;
mod leaving;
mod memory;
mod mutated;
mod reload;

#[allow(dead_code, reason = "benchmarks of hosts use more")]
#[path = "../common/bed.rs"]
mod bed;
#[path = "../common/net.rs"]
mod net;
