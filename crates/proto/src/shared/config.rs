//! Checks and settings that configurations share.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a protocol's parameters are no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key} must be {expected}, got {got}")]
pub struct ConfigError {
    /// The parameter, as plans spell it.
    pub key: &'static str,
    /// Its allowed values.
    pub expected: &'static str,
    /// The value.
    pub got: u64,
}

/// Checks that a parameter is in its range.
pub(crate) fn within(
    key: &'static str,
    got: u64,
    range: RangeInclusive<u64>,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if range.contains(&got) { Ok(()) } else { Err(ConfigError { key, expected, got }) }
}

/// How data packets are charged to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The last packet of a flow is as long as its payload and header.
    Exact,
    /// Every data packet is as long as a full one, as in the simulators of pHost and dcPIM.
    Full,
}
