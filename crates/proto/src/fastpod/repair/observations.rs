//! Observations of a host about its slots, from which the arbiter finds broken links (§4). They are
//! the slots in which it sent by schedule, and those in which a scheduled packet arrived.

use crate::fastpod::config::Fastpod;
use crate::fastpod::timing::Instant;

/// Content of a report: slots in which its sender sent, and in which something arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotReport {
    /// The latest slot of which everything has arrived.
    pub(crate) latest: u64,
    /// Bitmap of the slots up to it in which the host sent.
    pub(crate) sent: u64,
    /// Bitmap of those in which something arrived.
    pub(crate) received: u64,
}

/// Content of a report on one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BriefReport {
    pub(crate) slot: u64,
    /// True if its sender sent in the slot.
    pub(crate) has_sent: bool,
    /// True if something arrived in it.
    pub(crate) has_received: bool,
}

/// Slots that a brief report distinguishes.
const BRIEF_SLOTS: u64 = 64;

/// Slots of the last 128.
#[derive(Clone, Copy, Debug, Default)]
struct SlotBitmap {
    last: u64,
    /// Bit n represents the slot n before the last.
    bits: u128,
}

impl SlotBitmap {
    fn set(&mut self, slot: u64, is_marked: bool) {
        if slot > self.last {
            let more = u32::try_from(slot - self.last).unwrap_or(u32::MAX);
            self.bits = self.bits.checked_shl(more).unwrap_or(0);
            self.last = slot;
        }
        let bit = u32::try_from(self.last - slot).ok().and_then(|age| 1_u128.checked_shl(age));
        let bit = bit.unwrap_or(0);
        self.bits = if is_marked { self.bits | bit } else { self.bits & !bit };
    }

    /// Returns the marks of the slots up to `slot`, that one in bit 0.
    fn marks_until(&self, slot: u64) -> u64 {
        let shift = |by: u64| u32::try_from(by).unwrap_or(u32::MAX);
        let bits = match slot.checked_sub(self.last) {
            Some(later) => self.bits.checked_shl(shift(later)),
            None => self.bits.checked_shr(shift(self.last - slot)),
        };
        bits.unwrap_or(0) as u64
    }
}

/// Observations of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostObservations {
    sent: SlotBitmap,
    received: SlotBitmap,
    /// Instant, by the arbiter's clock, before which arrivals belong to a marked slot.
    received_until: Instant,
    /// Maximum number of slots from one report to the next, and until the events of a slot are
    /// known.
    interval: u64,
    settled_slots: u64,
    /// The slot of the next report; `u64::MAX` if everything has been reported.
    due: u64,
}

impl HostObservations {
    /// Returns the observations of a host of a pod that has observed nothing.
    pub(crate) fn new(fastpod: &Fastpod, pod: u16) -> Self {
        Self {
            sent: SlotBitmap::default(),
            received: SlotBitmap::default(),
            received_until: Instant::MIN,
            interval: fastpod.report_slots,
            settled_slots: fastpod.timing(pod).settled,
            due: u64::MAX,
        }
    }

    /// Slot from which on the host sends an RTS without requests or acknowledgements, so that its
    /// observations are reported; `u64::MAX` if there are none.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Sees to it that a slot is reported.
    #[inline]
    fn report_soon(&mut self, slot: u64) {
        if self.due == u64::MAX {
            self.due = slot.saturating_add(self.settled_slots + self.interval - 1);
        }
    }

    /// Notes if a scheduled packet was sent in a slot.
    #[inline]
    pub(crate) fn on_sent(&mut self, slot: u64, is_sent: bool) {
        self.sent.set(slot, is_sent);
        self.report_soon(slot);
    }

    /// Notes that a scheduled packet has arrived, as early as a control packet that began at the
    /// same time.
    #[inline]
    pub(crate) fn on_arrival(&mut self, pod: u16, end: u16, at: Instant, fastpod: &Fastpod) {
        if at < self.received_until {
            return;
        }
        if let Some((slot, until)) = fastpod.timing(pod).slot_of_arrival(end, at) {
            self.received.set(slot, true);
            self.received_until = until;
            self.report_soon(slot);
        }
    }

    /// Returns the content of a report in a slot. It has the latest slot of which everything has
    /// arrived, and bitmaps of the slots up to it. One is of slots in which the host sent, the
    /// other of slots in which something arrived. Returns `None` in the first slots of a run.
    pub(crate) fn report(&mut self, slot: u64) -> Option<SlotReport> {
        let latest = slot.checked_sub(self.settled_slots)?;
        let has_more = self.sent.last.max(self.received.last) > latest;
        self.due = if has_more { slot.saturating_add(self.interval) } else { u64::MAX };
        let (sent, received) = (self.sent.marks_until(latest), self.received.marks_until(latest));
        Some(SlotReport { latest, sent, received })
    }

    /// Returns the same for the latest slot alone, for RTSs with demands. It has the lowest bits of
    /// the slot's number, a bit if the host sent, and a bit if something arrived.
    pub(crate) fn brief_report(&self, slot: u64) -> u8 {
        let Some(latest) = slot.checked_sub(self.settled_slots) else { return 0 };
        let bit = |marked: &SlotBitmap| (marked.marks_until(latest) & 1) as u8;
        (latest % BRIEF_SLOTS) as u8 | bit(&self.sent) << 6 | bit(&self.received) << 7
    }
}

/// Reads a brief report that was sent about in `slot`.
pub(crate) fn decode_brief_report(brief: u8, slot: u64, settled: u64) -> Option<BriefReport> {
    // `slot` is at most 32 before the true one, and at most 31 after it.
    let first = (slot + 1).checked_sub(settled + BRIEF_SLOTS / 2)?;
    let latest = first + (u64::from(brief) + BRIEF_SLOTS - first % BRIEF_SLOTS) % BRIEF_SLOTS;
    Some(BriefReport { slot: latest, has_sent: brief & 64 != 0, has_received: brief & 128 != 0 })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::fastpod::wire::REPORT_SLOTS;

    proptest! {
        /// The slot may be any, as long as the arbiter can derive roughly the time at which it was
        /// sent.
        #[test]
        fn a_brief_report_returns_from_the_wire(
            (slot, settled) in (0u64..1_000, 1u64..100),
            off in 0u64..50,
            (is_sent, is_got) in any::<(bool, bool)>(),
        ) {
            let mut seen = HostObservations {
                sent: SlotBitmap::default(),
                received: SlotBitmap::default(),
                received_until: Instant::MIN,
                interval: REPORT_SLOTS,
                settled_slots: settled,
                due: u64::MAX,
            };
            let Some(latest) = slot.checked_sub(settled) else { return Ok(()) };
            seen.sent.set(latest, is_sent);
            seen.received.set(latest, is_got);
            let about = (slot + off).saturating_sub(25);
            if about >= settled + BRIEF_SLOTS / 2 {
                let found = decode_brief_report(seen.brief_report(slot), about, settled);
                let report = BriefReport { slot: latest, has_sent: is_sent, has_received: is_got };
                prop_assert_eq!(found, Some(report));
            }
        }

        /// Against a set of slots.
        #[test]
        fn marks_are_those_of_the_last_slots(
            slots in prop::collection::vec((0u64..300, any::<bool>()), 1..60),
            back in 0u64..64,
        ) {
            let mut marked = SlotBitmap::default();
            let mut all = BTreeSet::new();
            let mut last = 0;
            for (slot, is_marked) in slots {
                last = last.max(slot);
                marked.set(slot, is_marked);
                match is_marked {
                    true => all.insert(slot),
                    false => all.remove(&slot),
                };
            }
            let at = (last + 10).saturating_sub(back);
            let known = |age: &u64| at >= *age && last - (at - age).min(last) < 128;
            for age in (0..REPORT_SLOTS).filter(known) {
                let is_marked = marked.marks_until(at) >> age & 1 == 1;
                prop_assert_eq!(is_marked, all.contains(&(at - age)), "slot {}", at - age);
            }
        }
    }
}
