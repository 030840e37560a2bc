//! Files that users of other simulators already have, read as traces.

pub mod chakra;
mod chakra_schema;
mod collective;
pub mod goal;
pub mod hpcc;
pub mod htsim;
pub mod msccl;
mod schedule;
pub mod simai;
#[cfg(test)]
mod tests;
pub mod yaps;

use crate::trace::TraceError;

/// A line of a file, for errors of its parser.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    file: &'a str,
    number: u64,
}

impl Line<'_> {
    fn wrong(&self, field: &'static str, expected: &str, got: &str) -> TraceError {
        self.wrong_as(field, expected, format!("\"{got}\""))
    }

    /// Returns an error with `got` as it is, not as a text of the file.
    fn wrong_as(&self, field: &'static str, expected: &str, got: String) -> TraceError {
        TraceError::Field {
            file: self.file.to_owned(),
            place: self.number,
            field: field.to_owned(),
            expected: expected.to_owned(),
            got,
        }
    }

    fn number(&self, field: &'static str, text: &str) -> Result<u64, TraceError> {
        text.parse().map_err(|_| self.wrong(field, "a whole number", text))
    }
}

/// Returns `n` with the noun, in the plural unless `n` is 1.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns a note if a file has fewer ranks than the network has hosts. `rank` is the noun.
fn idle_hosts(n_ranks: u64, rank: &str, n_hosts: Option<u32>) -> Option<String> {
    let n_hosts = n_hosts.filter(|&n_hosts| u64::from(n_hosts) > n_ranks)?;
    let (ranks, hosts) = (count(n_ranks as usize, rank), count(n_hosts as usize, "host"));
    Some(format!("{ranks} in a network of {hosts}: the others are idle"))
}
