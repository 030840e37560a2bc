//! Permission to send: the stages at which messages wait for it, and the expiry of tokens.

use rampmeter_types::{MsgId, NodeId, Permission, Stage, Time};

use super::{AwaitedResponse, Sender};
use crate::dcpim::config::{Dcpim, Rounds};

pub(crate) const ANNOUNCEMENT: &Stage = &Stage {
    name: "announcement",
    meaning: "The receiver has not answered the notification of the flow (§3.2).",
};

pub(crate) const MATCHING: &Stage = &Stage {
    name: "matching",
    meaning: "The receiver has not been matched with this sender in the phase (§3.1).",
};

pub(crate) const DATA_PHASE: &Stage = &Stage {
    name: "data-phase",
    meaning: "The receiver is matched for the next data phase, which has not begun (§3.1).",
};

pub(crate) const TOKEN: &Stage = &Stage {
    name: "token",
    meaning: "The receiver is matched, and the flow has no token (§3.2).",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[ANNOUNCEMENT, MATCHING, DATA_PHASE, TOKEN];

impl Sender {
    /// Returns the permission of a message to send its next packet.
    pub(crate) fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        let flow = &self.flows[self.flows.slot(msg)?];
        let (dst, state) = (flow.dst, &flow.state);
        if state.is_queued {
            return Some(Permission::Granted);
        }
        let own = self.permits.iter().filter(|permit| permit.msg == msg);
        if let Some(expires) = own.map(|permit| permit.expires).max().filter(|&at| at >= now) {
            return Some(Permission::GrantedUntil(expires, MATCHING));
        }
        let has_begun = |phase: u32| phase.wrapping_sub(self.phase) as i32 >= 0;
        Some(Permission::Awaited(match self.matched_phase(dst) {
            _ if state.awaited_response == AwaitedResponse::Any => ANNOUNCEMENT,
            _ if state.token_phase.is_some_and(has_begun) => TOKEN,
            Some(phase) if phase == self.phase => TOKEN,
            Some(_) => DATA_PHASE,
            None => MATCHING,
        }))
    }

    /// Notes that a receiver is matched for a data phase.
    pub(super) fn note_match(&mut self, receiver: NodeId, phase: u32) {
        let now = self.phase;
        self.matches.retain(|&(_, of)| of.wrapping_sub(now) as i32 >= 0);
        self.matches.push((receiver, phase));
    }

    /// Returns the first data phase, this one or a later one, for which a receiver is matched.
    fn matched_phase(&self, receiver: NodeId) -> Option<u32> {
        let of_receiver = self.matches.iter().filter(|&&(peer, _)| peer == receiver);
        let ahead = of_receiver.map(|&(_, phase)| phase.wrapping_sub(self.phase));
        ahead.filter(|&ahead| ahead as i32 >= 0).min().map(|ahead| self.phase.wrapping_add(ahead))
    }

    /// Returns the expiry of a token of the receiver's `phase` that arrives now: a grace period
    /// after the end of that phase (§3.2). With local rounds the phases of a receiver may be far
    /// from those of this host. Then the token is for this host's phase.
    pub(super) fn expiry(&self, now: Time, phase: u32, dcpim: &Dcpim) -> Time {
        let ahead = phase.wrapping_sub(self.phase) as i32;
        let away = dcpim.phase() * u64::from(ahead.unsigned_abs());
        let end = match ahead {
            0.. => self.phase_end.saturating_add(away),
            _ => Time::from_ps(self.phase_end.as_ps().saturating_sub(away.as_ps())),
        };
        let is_apart = end.saturating_add(dcpim.grace) < now || ahead > 1;
        let end = match dcpim.config.stage_check {
            Rounds::Local if is_apart => self.phase_end,
            Rounds::Local | Rounds::Strict => end,
        };
        end.saturating_add(dcpim.grace)
    }
}
