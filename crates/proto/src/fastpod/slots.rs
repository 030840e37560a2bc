//! A slot: positions of its packets (Fastpod §3.2, figures 3 and 4).
//!
//! A slot has one cell less than a rack has hosts, and two control slots. The host with number i in
//! its rack sends its RTS before cell i. If it sends to the host with number j of a rack, there is
//! a gap before cell j. In it the arbiter's SCHD reaches the receiver. If i = j, the RTS is first.
//! Positions are times from the start of the slot, at the racks' switches.

use rampmeter_types::Span;

/// Structure of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Hosts of a rack, at least 2: one more than cells of a slot.
    pub hosts: u16,
    /// Time of a cell on a link.
    pub cell: Span,
    /// Time of an RTS or SCHD on a link.
    pub control: Span,
    /// Maximum offset of a clock from the arbiter's, in either direction. A control slot is longer
    /// than a control packet by twice that, and so is the slot than its content (§4).
    pub error: Span,
}

impl Slots {
    /// Cells of a slot.
    pub fn cells(&self) -> u16 {
        self.hosts - 1
    }

    /// Returns a control slot: a control packet with its guard band.
    pub fn control_slot(&self) -> Span {
        self.control + self.error * 2
    }

    /// Returns the length of a slot.
    pub fn length(&self) -> Span {
        self.cell * u64::from(self.cells()) + self.control_slot() * 2 + self.error * 2
    }

    /// Returns the start of cell `p` from host `i` of a rack to host `j` of a rack.
    #[inline]
    pub fn cell_at(&self, p: u16, (i, j): (u16, u16)) -> Span {
        let control_slots = u64::from(i <= p) + u64::from(j <= p);
        self.cell * u64::from(p) + self.control_slot() * control_slots
    }

    /// Returns the start of host `i`'s RTS in a slot to host `j` of a rack, or to nobody. It is in
    /// the middle of its control slot.
    #[inline]
    pub fn rts_at(&self, i: u16, j: Option<u16>) -> Span {
        let gap = u64::from(j.is_some_and(|j| j < i));
        self.cell * u64::from(i) + self.control_slot() * gap + self.error
    }

    /// Returns the start of the SCHD to host `j` of a rack, in a slot in which host `i` of a rack
    /// sends to it.
    #[inline]
    pub fn gap_at(&self, i: u16, j: u16) -> Span {
        self.cell * u64::from(j) + self.control_slot() * u64::from(i <= j) + self.error
    }

    /// Returns the start of the SCHD to host `j` of a rack in a slot in which nobody is to send to
    /// it. It is the position at which most senders have a gap.
    #[inline]
    pub fn idle_gap(&self, j: u16) -> Span {
        let is_late = 2 * j >= self.hosts;
        self.cell * u64::from(j) + self.control_slot() * u64::from(is_late) + self.error
    }

    /// Returns true if cell `p` from `i` to `j` does not overlap the control slot of the SCHD to an
    /// idle receiver. Unscheduled cells that overlap it are not sent.
    #[inline]
    pub fn is_clear(&self, p: u16, (i, j): (u16, u16)) -> bool {
        let (cell, gap) = (self.cell_at(p, (i, j)), self.idle_gap(j).saturating_sub(self.error));
        cell + self.cell <= gap || gap + self.control_slot() <= cell
    }

    /// Returns the start of a packet from an arbiter to the other, at the switch of a rack. At that
    /// time no SCHD of the sender passes there, and no RTS to the other. SCHDs have their places in
    /// slots that begin `across` later than those in which RTSs have theirs. `None` if cells are so
    /// short that there is no such place.
    pub fn watchdog_at(&self, across: Span) -> Option<Span> {
        let length = self.length();
        let shift = Span::from_ps(across.as_ps() % length.as_ps());
        let within = |at: Span| Span::from_ps(at.as_ps() % length.as_ps());
        let after_schd = |i: u16| self.cell * u64::from(i) + self.control_slot() * 2;
        let after_rts = |i| within(after_schd(i) + length.saturating_sub(shift));
        let places = (0..self.hosts).flat_map(|i| [within(after_schd(i)), after_rts(i)]);
        let is_free = |&at: &Span| self.is_quiet(at) && self.is_quiet(within(at + shift));
        places.into_iter().find(is_free).map(|at| at + self.error)
    }

    /// Returns true if neither an RTS of a rack nor an SCHD uses the control slot from `at` on.
    fn is_quiet(&self, at: Span) -> bool {
        let end = at + self.control_slot();
        let is_clear = |i: u16| {
            let from = self.cell * u64::from(i);
            end <= from || from + self.control_slot() * 2 <= at
        };
        end <= self.length() && (0..self.hosts).all(is_clear)
    }

    /// Returns the shortest cell with which control packets of a rack do not meet: two control
    /// slots (§3.2).
    pub fn shortest_cell(&self) -> Span {
        self.control_slot() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts and lengths, in picoseconds.
    type Item = (i64, i64);

    fn overlap(items: &mut [Item]) -> bool {
        items.sort_unstable();
        items.windows(2).any(|w| w[0].0 + w[0].1 > w[1].0)
    }

    fn slots(hosts: u16, error: u64) -> Slots {
        let ns = Span::from_ps;
        Slots { hosts, cell: ns(120_000), control: ns(5_120), error: ns(error) }
    }

    /// A rule for the position of the gap for the SCHD.
    type Gap = fn(&Slots, u16, u16) -> Span;

    fn at(span: Span, slot: i64, error: i64, slots: &Slots) -> i64 {
        span.as_ps() as i64 + slot * slots.length().as_ps() as i64 + error
    }

    fn errors(error: i64) -> impl Iterator<Item = (i64, i64)> {
        let each = [-error, 0, error];
        each.into_iter().flat_map(move |a| each.map(|b| (a, b)))
    }

    /// Iterates over the peers of a host, to send to or receive from: a number in a rack, or none.
    fn anybody(n: u16) -> impl Iterator<Item = Option<u16>> + Clone {
        (0..n).map(Some).chain([None])
    }

    fn cells(slots: &Slots, pair: (u16, u16), slot: i64, error: i64, items: &mut Vec<Item>) {
        let len = slots.cell.as_ps() as i64;
        items.extend(
            (0..slots.cells()).map(|p| (at(slots.cell_at(p, pair), slot, error, slots), len)),
        );
    }

    /// Returns true if packets collide on the link to a receiver: two slots of any two senders.
    fn meets_at_receiver(slots: &Slots, gap: Gap, error: i64) -> bool {
        let (n, control) = (slots.hosts, slots.control.as_ps() as i64);
        let mut items = Vec::new();
        let mut meets = false;
        for j in 0..n {
            for (one, other) in anybody(n).flat_map(|a| anybody(n).map(move |b| (a, b))) {
                for (a, b) in errors(error) {
                    items.clear();
                    for (slot, (sender, error)) in (0..).zip([(one, a), (other, b)]) {
                        let schd = match sender {
                            Some(i) => {
                                cells(slots, (i, j), slot, error, &mut items);
                                gap(slots, i, j)
                            }
                            None => slots.idle_gap(j),
                        };
                        items.push((at(schd, slot, 0, slots), control));
                    }
                    meets |= overlap(&mut items);
                }
            }
        }
        meets
    }

    /// Returns true if packets collide on the link of a sender, whose clock is set between slots.
    fn meets_at_sender(slots: &Slots, error: i64) -> bool {
        let (n, control) = (slots.hosts, slots.control.as_ps() as i64);
        let mut meets = false;
        for i in 0..n {
            for (one, other) in anybody(n).flat_map(|a| anybody(n).map(move |b| (a, b))) {
                for (a, b) in errors(error) {
                    let mut items = Vec::new();
                    for (slot, (dst, error)) in (0..).zip([(one, a), (other, b)]) {
                        if let Some(j) = dst {
                            cells(slots, (i, j), slot, error, &mut items);
                        }
                        items.push((at(slots.rts_at(i, dst), slot, error, slots), control));
                    }
                    meets |= overlap(&mut items);
                }
            }
        }
        meets
    }

    /// Returns true if RTSs of a rack collide on the link to the arbiter, in one slot or two.
    fn meets_at_arbiter(slots: &Slots, error: i64) -> bool {
        let (n, control) = (slots.hosts, slots.control.as_ps() as i64);
        let mut meets = false;
        for (i, k) in (0..n).flat_map(|i| (0..n).map(move |k| (i, k))) {
            for (one, other) in anybody(n).flat_map(|a| anybody(n).map(move |b| (a, b))) {
                for (a, b) in errors(error) {
                    let first = (at(slots.rts_at(i, one), 0, a, slots), control);
                    if i != k {
                        let same = (at(slots.rts_at(k, other), 0, b, slots), control);
                        meets |= overlap(&mut [first, same]);
                    }
                    let next = (at(slots.rts_at(k, other), 1, b, slots), control);
                    meets |= overlap(&mut [first, next]);
                }
            }
        }
        meets
    }

    /// Returns true if packets of an arbiter collide on its link to a rack.
    fn meets_on_the_way_down(slots: &Slots, gap: Gap) -> bool {
        let (n, control) = (slots.hosts, slots.control.as_ps() as i64);
        let schd = |sender: Option<u16>, j| sender.map_or(slots.idle_gap(j), |i| gap(slots, i, j));
        let mut meets = false;
        for (j, k) in (0..n).flat_map(|j| (0..n).map(move |k| (j, k))) {
            for (one, other) in anybody(n).flat_map(|a| anybody(n).map(move |b| (a, b))) {
                let first = (at(schd(one, j), 0, 0, slots), control);
                let watchdog = (at(slots.watchdog_at(Span::ZERO).unwrap(), 0, 0, slots), control);
                let next = (at(schd(other, k), 1, 0, slots), control);
                meets |= overlap(&mut [first, watchdog, next]);
                if j != k {
                    meets |= overlap(&mut [first, (at(schd(other, k), 0, 0, slots), control)]);
                }
            }
        }
        meets
    }

    /// §3.2, for all racks of 2 to 16 hosts, with and without clocks that are apart.
    #[test]
    fn no_packets_collide_for_any_pair_of_hosts() {
        for n in 2..=16 {
            for error in [0, 700] {
                let (slots, error) = (slots(n, error), error as i64);
                assert!(!meets_at_receiver(&slots, Slots::gap_at, error), "{n} hosts");
                assert!(!meets_at_sender(&slots, error), "{n} hosts");
                assert!(!meets_at_arbiter(&slots, error), "{n} hosts");
                assert!(!meets_on_the_way_down(&slots, Slots::gap_at), "{n} hosts");
            }
        }
    }

    /// Guard bands are as short as can be: a clock that is apart by a picosecond more is too much.
    #[test]
    fn clocks_further_apart_than_the_guard_bands_allow_make_packets_meet() {
        for n in 2..=16 {
            assert!(meets_at_receiver(&slots(n, 0), Slots::gap_at, 1), "{n} hosts");
            assert!(meets_at_receiver(&slots(n, 700), Slots::gap_at, 701), "{n} hosts");
        }
    }

    /// The checks detect three wrong gaps. One does not follow the sender's RTS, one precedes it
    /// and should follow, and one is in the place of the RTS. The last is free at the receiver. But
    /// SCHDs to several receivers of a rack meet, which is why there are two gaps (§3.2).
    #[test]
    fn a_gap_in_another_place_is_found() {
        let wrong: [Gap; 2] = [
            |s, _, j| s.cell * u64::from(j) + s.error,
            |s, i, j| s.cell * u64::from(j) + s.control_slot() * u64::from(j < i) + s.error,
        ];
        let of_rts: Gap = |s, i, j| s.rts_at(i, Some(j));
        for n in 2..=16 {
            for gap in wrong {
                assert!(meets_at_receiver(&slots(n, 0), gap, 0), "{n} hosts");
            }
            assert!(!meets_at_receiver(&slots(n, 0), of_rts, 0), "{n} hosts");
            assert!(meets_on_the_way_down(&slots(n, 0), of_rts), "{n} hosts");
        }
    }

    /// However far the slots of RTSs and SCHDs are shifted, a watchdog meets none of both.
    #[test]
    fn watchdogs_meet_no_other_control_packet_of_a_rack() {
        for n in 2..=16 {
            for (error, sign) in [(0, 0), (700, -1), (700, 1)] {
                let slots = slots(n, error);
                // Cells of nine control slots always have a place.
                let shortest = Slots { cell: slots.control_slot() * 9, ..slots };
                for slots in [slots, shortest] {
                    for across in (0..slots.length().as_ps()).step_by(1_013) {
                        let across = Span::from_ps(across);
                        let watchdog = slots.watchdog_at(across).unwrap();
                        assert!(!meets_watchdog(&slots, watchdog, across, sign * error as i64));
                    }
                }
            }
        }
    }

    /// Returns true if a watchdog collides with an SCHD to a rack, or with an RTS from there.
    fn meets_watchdog(slots: &Slots, watchdog: Span, across: Span, error: i64) -> bool {
        let control = slots.control.as_ps() as i64;
        let pairs = || {
            let all = 0..slots.hosts;
            all.clone().flat_map(move |i| all.clone().map(move |j| (i, j)))
        };
        let schds = pairs().flat_map(|(i, j)| [slots.gap_at(i, j), slots.idle_gap(j)]);
        let of_schds = schds.map(|schd| at(schd, 0, 0, slots));
        let rtss = pairs().flat_map(|(i, j)| [slots.rts_at(i, None), slots.rts_at(i, Some(j))]);
        let slots_before = across.as_ps() as i64 / slots.length().as_ps() as i64;
        let of_rtss = rtss.flat_map(|rts| {
            (slots_before..slots_before + 3)
                .map(move |slot| at(rts, slot, error, slots) - across.as_ps() as i64)
        });
        let watchdog = (at(watchdog, 0, 0, slots), control);
        of_schds.chain(of_rtss).any(|other| overlap(&mut [watchdog, (other, control)]))
    }

    /// Cells so short that two control slots do not fit make RTSs meet.
    #[test]
    fn the_shortest_cell_is_no_longer_than_need_be() {
        for (n, error) in [(3, 0), (4, 0), (16, 0), (4, 700)] {
            let cell = slots(n, error).shortest_cell();
            let slots = Slots { cell, ..slots(n, error) };
            assert!(!meets_at_arbiter(&slots, error as i64), "{n} hosts");
            let shorter = Span::from_ps(cell.as_ps() - 1);
            assert!(meets_at_arbiter(&Slots { cell: shorter, ..slots }, error as i64), "{n} hosts");
        }
    }

    /// §3.3: the only cell left out is one that an SCHD to an idle receiver would cut off.
    #[test]
    fn unscheduled_cells_never_meet_an_schd_to_an_idle_receiver() {
        for n in 2..=16 {
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                for (error, sign) in [(0, 0), (700, -1), (700, 1)] {
                    let (slots, error) = (slots(n, error), sign * error as i64);
                    let (cell, control) = (slots.cell.as_ps() as i64, slots.control.as_ps() as i64);
                    let schd = (at(slots.idle_gap(j), 0, 0, &slots), control);
                    let meets = |p| {
                        let start = at(slots.cell_at(p, (i, j)), 0, error, &slots);
                        overlap(&mut [(start, cell), schd])
                    };
                    let clear = |p: &u16| slots.is_clear(*p, (i, j));
                    assert!(!(0..slots.cells()).filter(clear).any(meets), "{i} to {j} of {n}");
                    let left_out: Vec<u16> = (0..slots.cells()).filter(|p| !clear(p)).collect();
                    assert!(left_out.len() <= 1 && left_out.into_iter().all(meets));
                }
            }
        }
    }

    /// §5: three cells and two control packets for racks of four hosts.
    #[test]
    fn a_slot_of_the_papers_pod_takes_370_ns() {
        assert_eq!(slots(4, 0).length(), Span::from_ps(370_240));
        // Two guard bands of control slots and one of the slot.
        assert_eq!(slots(4, 1_000).length(), Span::from_ps(370_240 + 6_000));
    }
}
