//! Times of slots: instants by the arbiter's clock at which hosts, core switches and arbiters send
//! (§3.2, §3.4).
//!
//! At the racks' switches slot n is [n x length, (n + 1) x length), later by the time that the
//! slowest host's packets take there. Hosts with shorter cables wait for the others. Cells of hosts
//! and of core switches pass aggregation switches one switch later, and their receivers' racks two
//! switches later. So do SCHDs, at the receiver's switch.

use rampmeter_types::{FabricFacts, Span, Time};

use super::slots::Slots;

use crate::fastpod::topology::{CoreSwitch, Pod, PodHost};

/// A time by an arbiter's clock in picoseconds. Hosts' clocks may be ahead of it from the start.
pub type Instant = i128;

/// A host of the pod, or a core switch, and its delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    leaf: u16,
    place: u16,
    /// Time from the first bit that it sends to the first bit that the leaf sends.
    up: Span,
    /// Time from the first bit of a control packet that the leaf sends until it is received.
    down: Span,
}

/// A switch to which ends are joined, and arbiters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    /// Times in a slot at which its cells pass a leaf: those from its ends, and those to them.
    up_cell_time: Span,
    down_cell_time: Span,
    /// Delays of each arbiter, as those of ends: up and down.
    arbiters: Vec<(Span, Span)>,
}

/// Times of slots at each end of a pod and at its arbiters.
///
/// Ends are numbered from zero in each pod: its hosts, then all core switches. Leaves are the
/// switches of its racks, then its aggregation switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    slots: Slots,
    n_hosts: u32,
    n_racks: u16,
    ends: Vec<End>,
    leaves: Vec<Leaf>,
    /// The time from the start of a slot's number to the slot at the racks' switches.
    base: Span,
    /// Time from the read of demands by an arbiter to its first SCHD of a slot.
    compute: Span,
    /// Slots between an SCHD and the slot that it gives.
    pub lead_slots: u64,
    /// Maximum time from an RTS with a request to the SCHD that answers.
    pub answer_time: Span,
    /// Time in a slot at which an arbiter's packet to the other passes a rack; `None` if cells are
    /// too short for it.
    pub watchdog_at: Option<Span>,
    /// Maximum number of slots whose cells reach a core switch after it has decided that there
    /// should be no more, until its RTS is obeyed.
    pub in_flight_to_core: u64,
    /// Slots from a slot to the RTS that reports its arrivals.
    pub settled: u64,
    /// Maximum time before the start of a slot at which its first packet may seem to begin, for an
    /// end that receives it.
    early_max: Span,
}

fn most(spans: impl Iterator<Item = Span>) -> Span {
    spans.max().unwrap_or(Span::ZERO)
}

impl Timing {
    /// Returns the times of a pod, which the core switches join to others. Slots are computed in
    /// `compute`.
    pub(crate) fn of_pod(pod: &Pod, cores: &[CoreSwitch], slots: Slots, compute: Span) -> Self {
        let ends = ends_of_pod(pod, cores, slots.control);
        let leaves = leaves_of_pod(pod, slots.control);
        Self::new(
            pod.hosts.len() as u32,
            ends,
            pod.arbiter_propagation.len(),
            leaves,
            slots,
            compute,
            1,
        )
    }

    /// Creates the timing of networks without pods: two hops between a host and an arbiter, four
    /// between hosts.
    pub(crate) fn without_pods(facts: &FabricFacts, slots: Slots, compute: Span) -> Self {
        let hop = facts.control_rtt / 4;
        let place = |number: u32| (number % u32::from(slots.hosts)) as u16;
        let end = |number| End { leaf: 0, place: place(number), up: hop, down: hop };
        let arbiters = vec![(hop, hop); 2];
        let leaf = Leaf { up_cell_time: Span::ZERO, down_cell_time: hop * 2, arbiters };
        let ends = (0..facts.n_hosts).map(end).collect();
        // Networks with queues are late.
        Self::new(facts.n_hosts, ends, 1, vec![leaf], slots, compute, 3)
    }

    fn new(
        n_hosts: u32,
        ends: Vec<End>,
        n_racks: usize,
        leaves: Vec<Leaf>,
        slots: Slots,
        compute: Span,
        slack: u64,
    ) -> Self {
        let (hosts, cores) = ends.split_at(n_hosts as usize);
        let ups = |ends: &[End]| most(ends.iter().map(|end| end.up));
        let downs = |ends: &[End]| most(ends.iter().map(|end| end.down));
        let early = |end: &End| end.up.saturating_sub(leaves[usize::from(end.leaf)].up_cell_time);
        let base = most(ends.iter().map(early));
        let across = most(leaves.iter().map(|leaf| leaf.down_cell_time));
        let arbiters = || leaves.iter().flat_map(|leaf| &leaf.arbiters);
        let up_arbiter = most(arbiters().map(|delays| delays.0));
        let to_arbiter = most(arbiters().map(|delays| delays.1));
        // From the start of the slot of an SCHD at its sender to the start of the one given. Ends
        // receive the last SCHD of a slot, and then send.
        let way = (ups(hosts) + across + downs(hosts)).max(ups(cores) + downs(cores));
        let to_arbiter_max = way + slots.length() + slots.error * 2;
        let lead_slots = to_arbiter_max.div_floor(slots.length()) + slack;
        let (up, down) = (ups(&ends), downs(&ends));
        let rts = slots.length() * 2 + up + to_arbiter;
        let answer_time = rts + compute + slots.length() * 2 + up_arbiter + across + up + down;
        // From the arrival of the cell that makes the switch close, in slot a there. The switch
        // sends an RTS within two slots. Let m be the last slot that the arbiter decides before it
        // receives that RTS. So m - a is less than this time in slots, and one; cells of slots a to
        // m + ahead arrive.
        let to_host_max = slots.length() * 2 + ups(cores) + to_arbiter + slots.error * 2;
        let on_way = to_host_max + compute + up_arbiter + downs(cores);
        let in_flight_to_core = match cores {
            [] => 0,
            _ => on_way.div_floor(slots.length()) + 2 + lead_slots,
        };
        let watchdog_at =
            slots.watchdog_at(leaves[0].down_cell_time.saturating_sub(leaves[0].up_cell_time));
        let n_racks = n_racks as u16;
        let settled = lead_slots + 1;
        Self {
            slots,
            watchdog_at,
            n_hosts,
            n_racks,
            ends,
            leaves,
            base,
            compute,
            lead_slots,
            answer_time,
            in_flight_to_core,
            settled,
            // Clocks are apart by less, and the last cell of a slot begins earlier.
            early_max: slots.cell / 2,
        }
    }

    /// Returns the same if cells are shared: the last packet of a slot may begin just before its
    /// end. Guard bands keep it away from the next slot by more than clocks may be wrong.
    pub(crate) fn with_packing(self) -> Self {
        Self { early_max: self.slots.error, ..self }
    }

    /// Returns the number of hosts of the pod.
    #[inline]
    pub(crate) fn n_hosts(&self) -> u32 {
        self.n_hosts
    }

    /// Returns the number of an end at its leaf.
    #[inline]
    pub(crate) fn place(&self, end: u16) -> u16 {
        self.ends[usize::from(end)].place
    }

    /// Returns the switch that an end is joined to.
    #[inline]
    pub(crate) fn leaf(&self, end: u16) -> u16 {
        self.ends[usize::from(end)].leaf
    }

    /// Returns the number of racks.
    pub(crate) fn n_racks(&self) -> usize {
        self.n_racks.into()
    }

    /// Returns the start of the slot at racks' switches, for ends without a way there.
    fn number_start(&self, slot: u64) -> Instant {
        i128::from(slot) * i128::from(self.slots.length().as_ps())
    }

    /// Returns the instant at which an end sends the first packet of a slot.
    #[inline]
    pub(crate) fn start(&self, end: u16, slot: u64) -> Instant {
        let End { leaf, up, .. } = self.ends[usize::from(end)];
        let phase = self.leaves[usize::from(leaf)].up_cell_time;
        self.number_start(slot) + ps(self.base) + ps(phase) - ps(up)
    }

    /// Returns the slot that an end is in; `None` before the first.
    #[inline]
    pub(crate) fn slot_at(&self, end: u16, at: Instant) -> Option<u64> {
        let since = at - self.start(end, 0);
        u64::try_from(since.div_euclid(ps(self.slots.length()))).ok()
    }

    /// Returns the instant at which an arbiter sends an end the packet that is at `position` of a
    /// slot at the end's leaf.
    #[inline]
    pub(crate) fn schd_at(&self, arbiter: u32, end: u16, slot: u64, position: Span) -> Instant {
        self.leaf_at(arbiter, self.leaf(end), slot, position)
    }

    /// Returns the same for packets to a leaf.
    pub(crate) fn leaf_at(&self, arbiter: u32, leaf: u16, slot: u64, position: Span) -> Instant {
        let leaf = &self.leaves[usize::from(leaf)];
        let up = leaf.arbiters[arbiter as usize].0;
        self.number_start(slot) + ps(position) + ps(self.base) + ps(leaf.down_cell_time) - ps(up)
    }

    /// Returns the time from the departure of an SCHD until it is received.
    #[inline]
    pub(crate) fn schd_delay(&self, arbiter: u32, end: u16) -> Span {
        let End { leaf, down, .. } = self.ends[usize::from(end)];
        self.leaves[usize::from(leaf)].arbiters[arbiter as usize].0 + down
    }

    /// Returns the instant at which an arbiter decides the content of the SCHDs of a slot. Only
    /// packets received before count.
    #[inline]
    pub(crate) fn tick_at(&self, arbiter: u32, slot: u64) -> Instant {
        let first = |leaf: &Leaf| ps(leaf.down_cell_time) - ps(leaf.arbiters[arbiter as usize].0);
        let first = self.leaves.iter().map(first).min().unwrap_or(0);
        self.number_start(slot) + ps(self.base) + first - ps(self.compute)
    }

    /// Returns the first slot of which an arbiter decides after `at`; `None` if it is before the
    /// first.
    #[inline]
    pub(crate) fn tick_after(&self, arbiter: u32, at: Instant) -> Option<u64> {
        let since = at - self.tick_at(arbiter, 0);
        u64::try_from(since.div_euclid(ps(self.slots.length())) + 1).ok()
    }

    /// Returns the slot in which another end sent a control packet that an end has received at
    /// `at`, and the end of that slot's arrivals. Returns `None` before the first.
    pub(crate) fn slot_of_arrival(&self, end: u16, at: Instant) -> Option<(u64, Instant)> {
        let End { leaf, down, .. } = self.ends[usize::from(end)];
        let leaf = ps(self.base) + ps(self.leaves[usize::from(leaf)].down_cell_time);
        // A packet that begins a slot is not of the one before.
        let first = leaf + ps(down) - ps(self.early_max);
        let slot = (at - first).div_euclid(ps(self.slots.length()));
        let slot = u64::try_from(slot).ok()?;
        Some((slot, self.number_start(slot + 1) + first))
    }

    /// Returns the slot in which an end sent an RTS that an arbiter has received at `at`, or the
    /// next.
    pub(crate) fn rts_sent_about(&self, arbiter: u32, end: u16, at: Time) -> u64 {
        let End { leaf, up, .. } = self.ends[usize::from(end)];
        let down = self.leaves[usize::from(leaf)].arbiters[arbiter as usize].1;
        let sent = i128::from(at.as_ps()) - ps(up) - ps(down);
        self.slot_at(end, sent).unwrap_or(0)
    }

    /// Returns the instant at which an end receives the first SCHD that can depend on the RTS that
    /// it sends at `sent`. No packet to the end is then scheduled (§3.3).
    pub(crate) fn schd_after_report(&self, arbiter: u32, end: u16, sent: Instant) -> Instant {
        let End { leaf, place, up, .. } = self.ends[usize::from(end)];
        let down = self.leaves[usize::from(leaf)].arbiters[arbiter as usize].1;
        let to_arbiter_max = sent + ps(up) + ps(down);
        let slot = self.tick_after(arbiter, to_arbiter_max).unwrap_or(0);
        let schd = self.schd_at(arbiter, end, slot, self.slots.idle_gap(place));
        schd + ps(self.schd_delay(arbiter, end))
    }
}

/// Returns a time by a clock as an instant of that clock.
#[inline]
pub(crate) fn instant(at: Time) -> Instant {
    i128::from(at.as_ps())
}

/// Returns an instant by a node's own clock as its time; the start for instants before it.
#[inline]
pub(crate) fn local(at: Instant) -> Time {
    Time::from_ps(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
}

#[inline]
fn ps(span: Span) -> Instant {
    i128::from(span.as_ps())
}

/// Returns the time from the first bit on a link to the first bit that the switch at its end sends.
/// The switch forwards when it has the header.
fn to_switch(pod: &Pod, cable: Span) -> Span {
    pod.rate.tx_time(pod.header) + cable + pod.switch_latency
}

/// Returns the delay to a host, which receives a packet when all of it has arrived.
fn to_host(pod: &Pod, cable: Span, control: Span) -> Span {
    control + cable + pod.host_latency
}

fn ends_of_pod(pod: &Pod, cores: &[CoreSwitch], control: Span) -> Vec<End> {
    let of_host = |host: &PodHost| End {
        leaf: host.rack,
        place: host.index,
        up: to_switch(pod, host.propagation),
        down: to_host(pod, host.propagation, control),
    };
    let n_racks = pod.arbiter_propagation.len() as u16;
    let of_core = |core: &CoreSwitch| End {
        leaf: n_racks + core.agg,
        place: core.index,
        up: to_switch(pod, core.propagation),
        down: to_switch(pod, core.propagation),
    };
    pod.hosts.iter().map(of_host).chain(cores.iter().map(of_core)).collect()
}

fn leaves_of_pod(pod: &Pod, control: Span) -> Vec<Leaf> {
    let both = |&cable: &Span| (to_switch(pod, cable), to_host(pod, cable, control));
    // If trunks differ, guard bands allow for half of that either way on each of the two.
    let (near, far) =
        (to_switch(pod, pod.trunk_propagation.0), to_switch(pod, pod.trunk_propagation.1));
    let leaf = |cables: &Vec<Span>, up_cell_time, down_cell_time| Leaf {
        up_cell_time,
        down_cell_time,
        arbiters: cables.iter().map(both).collect(),
    };
    let racks = pod.arbiter_propagation.iter().map(|cables| leaf(cables, Span::ZERO, near + far));
    racks.chain(pod.agg_arbiter_propagation.iter().map(|cables| leaf(cables, near, near))).collect()
}
