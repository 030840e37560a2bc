//! Collisions in fabrics in which nothing may wait, as summaries tell them.

use std::collections::BTreeMap;

use rampmeter_sim::fabric::{CollisionKind, Collisions, Party, Violation};
use schemars::JsonSchema;
use serde::Serialize;

/// Packets that found their port busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollisionReport {
    /// How many collisions there were, by what collided: `control-control`, `control-data`,
    /// `scheduled-scheduled`, or `unscheduled`, where packets without a schedule made way.
    pub kinds: BTreeMap<&'static str, u64>,
    /// The first of those in which neither packet made way.
    pub violations: Vec<ViolationReport>,
}

/// A collision of two packets that should not have met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ViolationReport {
    /// When.
    pub time_ps: u64,
    /// The end of the link that sends.
    pub from: String,
    /// The end that receives.
    pub to: String,
    /// What collided.
    pub kind: &'static str,
    /// The packet that was dropped.
    pub newcomer: PartyReport,
    /// The packet that was on the link.
    pub occupant: PartyReport,
}

/// A packet in a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartyReport {
    /// Its sender; arbiters are numbered after hosts.
    pub src: u32,
    /// Its receiver.
    pub dst: u32,
    /// The message that it is about, by its place in the order of submission.
    pub msg: u32,
    /// The first of the message's bytes that it carries.
    pub offset: u64,
    /// Whether it carries none.
    pub control: bool,
}

impl CollisionReport {
    /// The report of these collisions.
    pub(crate) fn of(collisions: &Collisions) -> Self {
        Self {
            kinds: CollisionKind::NAMES.into_iter().zip(collisions.kinds).collect(),
            violations: collisions.violations.iter().map(ViolationReport::of).collect(),
        }
    }
}

impl ViolationReport {
    fn of(violation: &Violation) -> Self {
        Self {
            time_ps: violation.at.as_ps(),
            from: violation.from.to_string(),
            to: violation.to.to_string(),
            kind: CollisionKind::NAMES[violation.kind as usize],
            newcomer: PartyReport::of(violation.newcomer),
            occupant: PartyReport::of(violation.occupant),
        }
    }
}

impl PartyReport {
    fn of(party: Party) -> Self {
        Self {
            src: party.src.get(),
            dst: party.dst.get(),
            msg: party.msg.get(),
            offset: party.offset,
            control: party.is_control,
        }
    }
}
