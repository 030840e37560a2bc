//! Kinds of topologies, and defaults and units of the keys that they share.

use rampmeter_types::{Rate, Span};

use crate::topo::error::TopologyError;
use crate::topo::topology::Topology;

/// A kind of topology: a struct of its keys in plans. Rates are in Gbit/s and delays in
/// nanoseconds.
pub trait TopologyKind {
    /// Checks the keys and builds the network.
    ///
    /// # Errors
    /// A count, rate or delay is out of range. The graph is not connected. A host has no
    /// link, or one that does not lead to a switch.
    fn build(&self) -> Result<Topology, TopologyError>;

    /// Returns the number of hosts in each rack; `None` if the kind has no racks.
    fn hosts_per_rack(&self) -> Option<u32> {
        None
    }

    /// Returns the number of hosts in each pod; `None` if the kind has no pods.
    fn hosts_per_pod(&self) -> Option<u32> {
        None
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_one(value: &u64) -> bool {
    *value == 1
}

pub(crate) fn one() -> u64 {
    1
}

pub(crate) fn access() -> f64 {
    100.0
}

pub(crate) fn core() -> f64 {
    400.0
}

pub(crate) fn propagation() -> f64 {
    200.0
}

pub(crate) fn processing() -> f64 {
    450.0
}

/// Gbit/s to a rate; integer bits per second.
pub(crate) fn rate(name: &'static str, gbps: f64) -> Result<Rate, TopologyError> {
    let bps = (gbps * 1e9).round();
    let valid = (1e3..=1e14).contains(&bps);
    valid.then(|| Rate::from_bps(bps as u64)).flatten().ok_or_else(|| TopologyError::Number {
        name,
        expected: "a rate from 0.000001 to 100000 Gbit/s",
        got: gbps.to_string(),
    })
}

/// Nanoseconds to a span; whole picoseconds.
pub(crate) fn delay(name: &'static str, ns: f64) -> Result<Span, TopologyError> {
    if !(0.0..=1e9).contains(&ns) {
        let expected = "a delay from 0 to 1000000000 ns";
        return Err(TopologyError::Number { name, expected, got: ns.to_string() });
    }
    Ok(Span::from_ps((ns * 1e3).round() as u64))
}
