//! Stages, rounds and phases by a host's own clock (§3.3, figure 2).
//!
//! Stage s of phase p starts at p P + s L. Round i uses stage 2i for requests, 2i + 1 for grants
//! and 2i + 2 for accepts. The accepts therefore coincide with the requests of round i + 1. In the
//! paper's schedule a phase has 2r + 1 stages. In the overlapped one it has 2r, and the last
//! accepts coincide with the start of the next phase.

use rampmeter_types::{ClockOrigin, Phase, Time};

use super::config::Dcpim;

/// The stage that starts next. Stages are counted from an instant that all hosts share, and phases
/// are numbered modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    phase: u32,
    stage: u32,
    at: Time,
    clock: ClockOrigin,
}

/// A round of a phase of matching. Both are numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchingRound {
    /// Number of the phase.
    pub phase: u32,
    /// Number of the round in the phase.
    pub round: u8,
}

impl MatchingRound {
    /// Returns the first round of a phase.
    pub const fn first_of(phase: u32) -> Self {
        Self { phase, round: 0 }
    }

    /// Returns the next round of the phase.
    #[must_use]
    pub fn next(self) -> Self {
        Self { round: self.round + 1, ..self }
    }
}

/// Duties of a host at the start of a stage, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageActions {
    /// Round whose grants the receiver accepts.
    pub accept: Option<MatchingRound>,
    /// Phase that begins: the matches made before become those of its data phase.
    pub begin: Option<u32>,
    /// Round in which the receiver sends requests.
    pub request: Option<MatchingRound>,
    /// Round whose requests the sender grants.
    pub grant: Option<MatchingRound>,
}

impl Schedule {
    /// Returns the first stage that starts at `now` or later.
    pub fn at_next_stage(now: Time, clock: ClockOrigin, dcpim: &Dcpim) -> Self {
        let stages = clock.next_interval(now, dcpim.stage);
        let per_phase = u64::from(dcpim.stages);
        Self {
            phase: (stages / per_phase) as u32,
            stage: (stages % per_phase) as u32,
            at: clock.interval_start(stages, dcpim.stage),
            clock,
        }
    }

    /// Returns the same stage. If it lags by more than two phases, returns the start of the phase
    /// before the one of `now`.
    #[must_use]
    pub fn skip(self, now: Time, dcpim: &Dcpim) -> Self {
        let phase = dcpim.phase();
        if now.saturating_since(self.at) <= phase * 2 {
            return self;
        }
        let number = self.clock.interval(now, phase).saturating_sub(1);
        let at = self.clock.interval_start(number, phase);
        Self { phase: number as u32, stage: 0, at, clock: self.clock }
    }

    /// Returns the origin of the host's clock.
    pub fn clock(&self) -> ClockOrigin {
        self.clock
    }

    /// Returns the time at which the next stage starts.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Returns the phase of the next stage, and its end.
    pub fn phase(&self, dcpim: &Dcpim) -> (u32, Time) {
        (self.phase, self.at + dcpim.stage * u64::from(dcpim.stages - self.stage))
    }

    /// Reports the current stage and the concurrent data phase to `each`, and nothing before the
    /// first stage. The matches of a data phase are those made in the phase of the same number
    /// (§3.3).
    pub fn report_phases(&self, dcpim: &Dcpim, each: &mut dyn FnMut(Phase)) {
        let (phase, stage) = match (self.phase, self.stage) {
            (0, 0) => return,
            (phase, 0) => (phase - 1, dcpim.stages - 1),
            (phase, stage) => (phase, stage - 1),
        };
        let rounds = u32::from(dcpim.config.matching_rounds);
        let (name, round) = match stage {
            s if s % 2 == 1 => ("grant", s.div_ceil(2)),
            s if s == 2 * rounds => ("accept", rounds),
            0 => ("request", 1),
            s => ("accept, request", s / 2 + 1),
        };
        each(Phase { track: "matching", name, number: round.into() });
        if let Some(number) = phase.checked_sub(1) {
            each(Phase { track: "data phase", name: "data phase", number: number.into() });
        }
    }

    /// Returns the duties of the stage that starts now, and advances to the next one.
    pub fn advance(&mut self, dcpim: &Dcpim) -> StageActions {
        let (phase, stage) = (self.phase, self.stage);
        let rounds = u32::from(dcpim.config.matching_rounds);
        let round = (stage / 2) as u8;
        let is_receivers = stage.is_multiple_of(2);
        let accept = if !is_receivers {
            None
        } else if stage > 0 {
            Some(MatchingRound { phase, round: round - 1 })
        } else if dcpim.stages == 2 * rounds && phase > 0 {
            Some(MatchingRound {
                phase: phase.wrapping_sub(1),
                round: dcpim.config.matching_rounds - 1,
            })
        } else {
            None
        };
        let in_round = u32::from(round) < rounds;
        self.stage += 1;
        if self.stage == dcpim.stages {
            self.stage = 0;
            self.phase = self.phase.wrapping_add(1);
        }
        self.at += dcpim.stage;
        StageActions {
            accept,
            begin: (stage == 0).then_some(phase),
            request: (is_receivers && in_round).then_some(MatchingRound { phase, round }),
            grant: (!is_receivers).then_some(MatchingRound { phase, round }),
        }
    }
}
