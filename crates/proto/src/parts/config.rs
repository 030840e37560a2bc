//! Checks and settings that configurations share.

use std::ops::RangeInclusive;

use rampmeter_core::fabric::Buffer;
use rampmeter_core::{Bytes, FabricFacts, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::BadKey;

/// Checks a parameter whose range depends on others.
///
/// # Errors
/// It is out of range.
pub fn within(
    key: &str,
    got: u64,
    range: RangeInclusive<u64>,
    expected: &str,
) -> Result<(), BadKey> {
    if range.contains(&got) { Ok(()) } else { Err(BadKey::new(key, expected, got)) }
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

/// The bandwidth-delay product in packets that take `packet` bytes of a link, rounded up.
pub fn bdp_packets(packet: Bytes, facts: &FabricFacts) -> u32 {
    let time = facts.access_rate.tx_time(packet);
    facts.data_rtt.as_ps().div_ceil(time.as_ps()) as u32
}

/// Ports that hold two bandwidth-delay products: the buffers of pFabric (§5.1) and of the pHost
/// study (§4.1), which are 36 KB at 10 Gbit/s.
pub fn two_bdps(packet: Bytes, facts: &FabricFacts) -> Buffer {
    Buffer::PerPort(packet * (2 * u64::from(bdp_packets(packet, facts))))
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
