//! Pairs of rates.

use crate::units::Rate;

/// The rates at which a host sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DuplexRates {
    /// The rate at which it sends.
    pub tx: Rate,
    /// The rate at which it receives.
    pub rx: Rate,
}

impl DuplexRates {
    /// Returns the same rate in both directions.
    pub const fn equal(rate: Rate) -> Self {
        Self { tx: rate, rx: rate }
    }
}

/// The lowest and the highest rate of several links, paths or directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRange {
    /// The lowest rate.
    pub slowest: Rate,
    /// The highest rate.
    pub fastest: Rate,
}
