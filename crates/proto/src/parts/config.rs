//! Checks and settings that configurations share.

use std::ops::RangeInclusive;

use rampmeter_core::{Bytes, FabricFacts, Span};
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
///
/// # Errors
/// It is not.
pub fn within(
    key: &'static str,
    got: u64,
    range: RangeInclusive<u64>,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if range.contains(&got) { Ok(()) } else { Err(ConfigError { key, expected, got }) }
}

/// Checks the payload of a full packet and the bytes of headers charged to each packet.
///
/// # Errors
/// A number out of range.
pub fn check_packets(payload: Bytes, header: Bytes) -> Result<(), ConfigError> {
    within("payload-bytes", payload.get(), 1..=9_000, "1 to 9000")?;
    within("header-bytes", header.get(), 1..=1_000, "1 to 1000")
}

/// Checks the number of unanswered repetitions after which a flow fails: 1 to 1000.
///
/// # Errors
/// A number out of range.
pub fn check_attempts(attempts_max: u32) -> Result<(), ConfigError> {
    within("attempts-max", attempts_max.into(), 1..=1_000, "1 to 1000")
}

/// Interval after which a sender that has heard nothing asks whether its receiver still knows a
/// flow: 64 control round trips.
pub fn keepalive(facts: &FabricFacts) -> Span {
    facts.control_rtt * 64
}

/// Time after which a receiver forgets a flow whose sender is silent: twice as long as a sender
/// that repeats itself every `interval` takes to give up.
pub fn forget_after(interval: Span, attempts_max: u32) -> Span {
    interval * (u64::from(attempts_max) + 2) * 2
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
