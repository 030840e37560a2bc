//! Collisions in fabrics in which no packet may wait, as summaries report them.

use std::collections::BTreeMap;

use rampmeter_sim::fabric::{CollidingPacket, CollisionKind, Collisions, Violation};
use schemars::JsonSchema;
use serde::Serialize;

/// Packets that found their port busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollisionReport {
    /// Number of collisions by the packets that collided: `control-control`, `control-data`,
    /// `scheduled-scheduled`, or `unscheduled`, if packets without a schedule were preempted.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The first 16 of those in which neither packet was preempted.
    pub violations: Vec<ViolationReport>,
}

/// A collision of two packets that should not have met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ViolationReport {
    /// Time at which the second packet reached the port.
    pub time_ps: u64,
    /// The end of the link that sends.
    pub from: String,
    /// The end that receives.
    pub to: String,
    /// Kind of the collision.
    pub kind: &'static str,
    /// The packet that was dropped.
    pub arriving_packet: CollidingPacketReport,
    /// The packet that was on the link, in the same words.
    pub transmitted_packet: CollidingPacketReport,
}

/// A packet in a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollidingPacketReport {
    /// Sender; arbiters are numbered after hosts.
    pub src: u32,
    /// Receiver.
    pub dst: u32,
    /// The message that it is about, by its place in the order of submission.
    pub msg: u32,
    /// The first of the message's bytes that it carries.
    pub offset: u64,
    /// True if it carries no payload.
    pub control: bool,
}

impl CollisionReport {
    /// Returns the report of these collisions.
    pub(crate) fn new(collisions: &Collisions) -> Self {
        Self {
            kinds: CollisionKind::NAMES.into_iter().zip(collisions.kinds).collect(),
            violations: collisions.violations.iter().map(ViolationReport::new).collect(),
        }
    }
}

impl ViolationReport {
    fn new(violation: &Violation) -> Self {
        Self {
            time_ps: violation.at.as_ps(),
            from: violation.from.to_string(),
            to: violation.to.to_string(),
            kind: CollisionKind::NAMES[violation.kind as usize],
            arriving_packet: CollidingPacketReport::new(violation.arriving_packet),
            transmitted_packet: CollidingPacketReport::new(violation.transmitted_packet),
        }
    }
}

impl CollidingPacketReport {
    fn new(party: CollidingPacket) -> Self {
        Self {
            src: party.src.get(),
            dst: party.dst.get(),
            msg: party.msg.get(),
            offset: party.offset,
            control: party.is_control,
        }
    }
}

#[cfg(test)]
mod tests {
    use rampmeter_sim::Node;
    use rampmeter_types::{MsgId, NodeId, Time};

    use super::*;

    #[test]
    fn a_report_names_ports_kinds_and_both_packets() {
        let party = |src, is_control| CollidingPacket {
            src: NodeId::new(src),
            dst: NodeId::new(2),
            msg: MsgId::new(7),
            offset: 1_460,
            is_control,
            is_unscheduled: false,
        };
        let violation = Violation {
            at: Time::from_ps(5),
            from: Node::Switch(1),
            to: Node::Host(2),
            kind: CollisionKind::ControlData,
            arriving_packet: party(3, true),
            transmitted_packet: party(4, false),
        };
        let collisions = Collisions { kinds: [1, 2, 3, 4], violations: vec![violation] };
        let report = serde_json::to_value(CollisionReport::new(&collisions)).unwrap();
        let packet = |src: u32, control: bool| {
            serde_json::json!({
                "src": src, "dst": 2, "msg": 7, "offset": 1460, "control": control
            })
        };
        let expected = serde_json::json!({
            "kinds": {
                "control-control": 1, "control-data": 2, "scheduled-scheduled": 3, "unscheduled": 4
            },
            "violations": [{
                "time_ps": 5, "from": "s1", "to": "h2", "kind": "control-data",
                "arriving_packet": packet(3, true), "transmitted_packet": packet(4, false),
            }],
        });
        assert_eq!(report, expected);
    }
}
