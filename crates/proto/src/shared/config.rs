//! Checks and settings that configurations share.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::BadKey;

/// Checks a parameter whose range depends on others.
pub(crate) fn within(
    key: &str,
    got: u64,
    range: RangeInclusive<u64>,
    expected: &str,
) -> Result<(), BadKey> {
    if range.contains(&got) { Ok(()) } else { Err(BadKey::new(key, expected, got)) }
}

/// How data packets are charged to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// The last packet of a flow is as long as its payload and header.
    Exact,
    /// Every data packet is as long as a full one, as in the simulators of pHost and dcPIM.
    Full,
}
