//! Priorities by the distribution of message sizes (Homa §3.4).
//!
//! The problem: a receiver cannot choose the priority of unscheduled packets, as they are in flight
//! before it knows of the message. A single priority for them lets short messages queue behind
//! longer ones.
//!
//! The simple way divides sizes evenly among levels. Most messages, or most bytes, then share one
//! level, and the other levels are of no use.
//!
//! The present way: a receiver knows the distribution of sizes. The share of levels for unscheduled
//! packets is their share of the bytes. The cut-offs between these levels give each the same number
//! of unscheduled bytes. Shorter messages have the higher levels. Here both are computed from a
//! given distribution before the run, and are parameters of all hosts. The paper's receivers
//! measure it and send the cut-offs to senders.
//!
//! Hazards: at least one level is left for each kind of packet
//! (`every_level_is_of_scheduled_or_unscheduled_packets`). For the published workloads W2 and W3
//! this rule gives other numbers of levels than the paper has
//! (`priorities_of_the_published_workloads_follow_their_bytes`). Plans need cut-offs that ascend,
//! so that unused ones repeat the last.

use super::config::Cutoffs;

/// Division of priorities for a distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrioritySplit {
    /// The share of bytes that is unscheduled.
    pub unscheduled_share: f64,
    /// Levels for unscheduled packets.
    pub unscheduled_priorities: u8,
    /// Cut-offs between them.
    pub cutoffs: Cutoffs,
}

/// Splits `priorities` levels for messages whose sizes have the cumulative distribution `cdf`. This
/// is a list of (size in bytes, probability of at most this size) in ascending order. Each message
/// has at most `rtt_bytes` unscheduled bytes.
pub fn split_priorities(cdf: &[(f64, f64)], rtt_bytes: f64, priorities: u8) -> PrioritySplit {
    let before = std::iter::once(0.0).chain(cdf.iter().map(|&(_, cdf)| cdf));
    let masses: Vec<(f64, f64)> =
        cdf.iter().zip(before).map(|(&(size, cdf), before)| (size, cdf - before)).collect();
    let all: f64 = masses.iter().map(|(size, p)| size * p).sum();
    let first: f64 = masses.iter().map(|(size, p)| size.min(rtt_bytes) * p).sum();
    let unscheduled_share = if all > 0.0 { first / all } else { 1.0 };
    let levels = (unscheduled_share * f64::from(priorities)).round();
    let levels = levels.clamp(1.0, f64::from(priorities - 1)) as u8;
    let mut cutoffs = Cutoffs::default();
    let (mut sum, mut level) = (0.0, 0);
    for &(size, p) in &masses {
        sum += size.min(rtt_bytes) * p;
        while level < usize::from(levels) - 1
            && sum >= first * (level + 1) as f64 / f64::from(levels)
        {
            cutoffs[level] = size as u64;
            level += 1;
        }
    }
    // Plans have lists that ascend; those beyond the borders do not count.
    let last = level.checked_sub(1).map_or(0, |last| cutoffs[last]);
    cutoffs[level..].fill(last);
    PrioritySplit { unscheduled_share, unscheduled_priorities: levels, cutoffs }
}
