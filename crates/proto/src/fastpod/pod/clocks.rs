//! Drift between clocks, and the guard bands that allow for it (Fastpod §4).

use rampmeter_types::Span;

use crate::fastpod::config::FastpodConfig;
use crate::fastpod::slots::Slots;
use crate::fastpod::timing::Instant;
use crate::keys::BadKey;

/// Slots beyond those that an arbiter gives ahead, for clocks that are apart and late packets.
pub(crate) const LEAD_SLACK: i64 = 64;

/// Epochs that an arbiter may be ahead of those that follow it. Each takeover takes 2. A packet
/// with an epoch beyond that is damaged.
const EPOCHS_AHEAD: u32 = 1 << 16;

/// Returns true if an arbiter of `epoch` may follow that of `known`, or is the same; any if none is
/// known.
pub(crate) fn is_next_epoch(epoch: u32, known: u32) -> bool {
    known == 0 || (known..=known.saturating_add(EPOCHS_AHEAD)).contains(&epoch)
}

/// Returns true if the offset of an arbiter's clock has changed by more than a late packet
/// explains. Slots that were given by the clock before are others by this one.
pub(crate) fn is_jump(before: Instant, offset: Instant) -> bool {
    before.abs_diff(offset) > u128::from(JUMP.as_ps())
}

const JUMP: Span = Span::from_us(100_000);

impl FastpodConfig {
    /// Returns the maximum offset of a host's clock from the arbiter's, in either direction. Two
    /// clocks drift apart from one SCHD to the next, and for the slot that has begun by then. Both
    /// ends read a time stamp with an error (§4).
    pub(crate) fn clock_error(&self, perfect: &Slots, ahead: u64) -> Result<Span, BadKey> {
        if self.clock_ppb == 0 && self.clock_jitter_ns == 0 {
            return Ok(Span::ZERO);
        }
        // Guard bands lengthen the slots that they follow from. The error is drift x slots x
        // (length + 12 errors) + read-out, solved for the error.
        const BILLION: u128 = 1_000_000_000;
        let slots = u128::from(self.beacon_slots) + u128::from(ahead) + SLOTS_OLD;
        let drift = 2 * u128::from(self.clock_ppb) * slots;
        let Some(rest) = BILLION.checked_sub(12 * drift).filter(|&rest| rest > 0) else {
            let most = (BILLION / (24 * slots)) as f64 / 1e3;
            let expected = format!("less than {most} between SCHDs {slots} slots apart");
            let got = f64::from(self.clock_ppb) / 1e3;
            return Err(BadKey::new("clock-drift-ppm", expected, got));
        };
        let read_out = 2_000 * u128::from(self.clock_jitter_ns) + ROUNDING_PS;
        let error = drift * u128::from(perfect.length().as_ps()) + read_out * BILLION;
        Ok(Span::from_ps(error.div_ceil(rest) as u64))
    }

    /// Returns the time by which a fast clock exceeds `time` on the link, rounded up.
    pub(crate) fn drift(&self, time: Span) -> Span {
        let drift = u128::from(self.clock_ppb) * u128::from(time.as_ps());
        Span::from_ps(drift.div_ceil(1_000_000_000) as u64 + 2)
    }

    /// Returns the time for which a clock may be used after it was set. The slot that has begun by
    /// then, including its last packets, is within the guard bands.
    pub(crate) fn clock_lifetime(&self, slot: Span, ahead: u64) -> Span {
        slot * (u64::from(self.beacon_slots) + ahead + SLOTS_OLD as u64 - 2)
    }
}

/// Slots for which a clock is used beyond a beacon's interval and the travel time of the SCHD.
/// Positions differ from slot to slot, and a slot that has begun keeps its clock. Its last packets
/// wait if the clock runs faster than the link.
const SLOTS_OLD: u128 = 5;
/// Rounding of clocks to picoseconds.
const ROUNDING_PS: u128 = 8;
