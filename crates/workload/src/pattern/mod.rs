//! Traffic patterns: who sends to whom, and when.
//!
//! [`poisson`] has the open-loop patterns, whose flows arrive at random at a given load;
//! [`burst`] and [`skewed`] those that release flows together, once or with a period;
//! [`collective`] collective operations, whose flows wait for each other.

pub mod burst;
pub mod collective;
pub mod poisson;
pub mod skewed;
#[cfg(test)]
mod tests;

use rampmeter_core::NodeId;

/// A run of hosts with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl HostRange {
    /// The hosts `0..count`.
    pub fn all(count: u32) -> Self {
        Self { first: 0, count }
    }

    /// Host number `idx` of the range.
    pub fn host(self, idx: u32) -> NodeId {
        NodeId::new(self.first + idx)
    }

    /// Whether `host` is in the range.
    pub fn contains(self, host: NodeId) -> bool {
        (self.first..self.first + self.count).contains(&host.get())
    }

    /// How many hosts two ranges share.
    pub fn overlap(self, other: Self) -> u32 {
        let end = (self.first + self.count).min(other.first + other.count);
        end.saturating_sub(self.first.max(other.first))
    }
}
