//! Incasts and outcasts: keys and checks.

use rampmeter_types::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, StopCondition, WorkloadError, one};
use super::{HostSpec, HostsSpec};
use crate::pattern::burst::{BatchPattern, Direction, Fan, FlowVolume};

/// Defines the keys of a fan, and its direction.
macro_rules! fans {
    ($($(#[$about:meta])* $name:ident $direction:ident)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct $name {
            /// Number of senders (incast) or receivers (outcast); redrawn in every round.
            pub fan: u32,
            /// The receiver (incast) or sender (outcast); default: redrawn in every round.
            pub hub: Option<HostSpec>,
            /// The hosts among which the senders (incast) or receivers (outcast) are drawn;
            /// default: all. The hub is never among them.
            pub peers: Option<HostsSpec>,
            /// Size of every flow. Either this or `total-bytes`.
            pub flow_bytes: Option<u64>,
            /// Size of all flows of a round together. Either this or `flow-bytes`.
            pub total_bytes: Option<u64>,
            /// Start of the first round.
            #[serde(default)]
            pub start_us: f64,
            /// Time from one round to the next; needed for more than one.
            pub period_us: Option<f64>,
            /// Number of rounds.
            #[serde(default = "one")]
            pub rounds: u64,
            /// Stop after this many flows.
            pub flows: Option<u64>,
            /// Stop before this instant.
            pub until_us: Option<f64>,
        }

        impl Pattern for $name {
            fn stop(&self) -> StopCondition {
                StopCondition { flows: self.flows, until_us: self.until_us }
            }

            fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
                let &Self { fan, flow_bytes, total_bytes, start_us, period_us, rounds, .. } = self;
                let (hub, peers) = (self.hub.as_ref(), self.peers.as_ref());
                let rounds = (start_us, period_us, rounds);
                let keys = Keys { fan, hub, peers, flow_bytes, total_bytes, rounds };
                check(&keys, Direction::$direction, checker)
            }
        }
    )*};
}

fans! {
    /// Keys of `incast`.
    IncastSpec Incast
    /// Keys of `outcast`.
    OutcastSpec Outcast
}

/// The keys of both.
struct Keys<'a> {
    fan: u32,
    hub: Option<&'a HostSpec>,
    peers: Option<&'a HostsSpec>,
    flow_bytes: Option<u64>,
    total_bytes: Option<u64>,
    /// Start, period and number.
    rounds: (f64, Option<f64>, u64),
}

fn check(
    keys: &Keys<'_>,
    direction: Direction,
    checker: &mut Checker<'_>,
) -> Result<CheckedPattern, WorkloadError> {
    let peers = checker.hosts("peers", keys.peers, 1)?;
    let hub = match keys.hub {
        Some(hub) => Some(NodeId::new(checker.host("hub", hub)?)),
        None => None,
    };
    // A hub that is drawn later may be one of the peers.
    let inside = hub.is_none_or(|hub| peers.contains(hub));
    let n = checker.count("fan", keys.fan, peers.count() - u32::from(inside))?;
    let volume = match (keys.flow_bytes, keys.total_bytes) {
        (Some(size), None) => FlowVolume::PerFlow(checker.bytes("flow-bytes", size)?),
        (None, Some(total)) if total < u64::from(n) => {
            return checker.wrong(
                "total-bytes",
                &format!("at least a byte for each of {n} flows"),
                total,
            );
        }
        (None, Some(total)) => FlowVolume::Total(checker.bytes("total-bytes", total)?),
        (None, None) => {
            return checker.wrong("flow-bytes", "flow-bytes or total-bytes", "neither");
        }
        (Some(_), Some(_)) => {
            return checker.wrong("flow-bytes", "flow-bytes or total-bytes", "both");
        }
    };
    let rounds = checker.rounds(keys.rounds.0, keys.rounds.1, keys.rounds.2)?;
    let n_hosts = checker.n();
    let fan = Fan { direction, n, hub, volume, n_hosts, peers };
    Ok(CheckedPattern::new(checker.bursts(BatchPattern::Fan(fan), rounds)))
}
