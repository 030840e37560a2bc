//! Files that users of other simulators already have, read as traces.

pub mod chakra;
mod chakra_schema;
mod collective;
pub mod goal;
pub mod hpcc;
pub mod htsim;
mod json;
mod line;
pub mod msccl;
mod schedule;
pub mod simai;
#[cfg(test)]
mod tests;
pub mod yaps;

pub use json::parse_json;
use line::Line;
pub use line::count;

/// Returns a note if a file has fewer ranks than the network has hosts. `rank` is the noun.
fn idle_hosts(n_ranks: u64, rank: &str, n_hosts: Option<u32>) -> Option<String> {
    let n_hosts = n_hosts.filter(|&n_hosts| u64::from(n_hosts) > n_ranks)?;
    let (ranks, hosts) = (count(n_ranks as usize, rank), count(n_hosts as usize, "host"));
    Some(format!("{ranks} in a network of {hosts}: the others are idle"))
}
