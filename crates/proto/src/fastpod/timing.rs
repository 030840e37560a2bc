//! When slots are: instants by the arbiter's clock at which hosts and arbiters send (§3.2).
//!
//! Slot n is [n x length, (n + 1) x length) at the racks' switches, later by the time that the
//! slowest host's packets take there. Hosts with shorter cables wait for the others. Cells are at
//! their receivers' racks two switches later, and so are SCHDs.

use rampmeter_core::fabric::{Pod, PodHost};
use rampmeter_core::{FabricFacts, Span};

use super::slots::Slots;

/// A time by an arbiter's clock in picoseconds. Hosts' clocks may be ahead of it from the start.
pub type Instant = i128;

/// A host and its delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Host {
    rack: u16,
    place: u16,
    /// From the first bit that it sends to the first that leaves the rack's switch.
    up: Span,
    /// From the first bit of a control packet that leaves the switch to its being heard.
    down: Span,
}

/// When slots are at each host and arbiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    slots: Slots,
    hosts: Vec<Host>,
    /// The same delays between racks and arbiters: rack, then arbiter: up and down.
    arbiters: Vec<Vec<(Span, Span)>>,
    /// The longest way up of a host.
    up_max: Span,
    /// From a source's rack to the receiver's.
    across: Span,
    /// From an arbiter's look at demands to its first SCHD of a slot.
    compute: Span,
    /// How many slots after its SCHD a slot that is given is.
    pub ahead: u64,
    /// The longest time from an RTS that asks to the SCHD that answers.
    pub answer: Span,
}

impl Timing {
    /// The times of a pod, or of another network. Slots are computed in `compute`.
    pub(super) fn new(facts: &FabricFacts, pod: Option<&Pod>, slots: Slots, compute: Span) -> Self {
        let (hosts, arbiters, across) = match pod {
            Some(pod) => of_pod(pod, slots.control),
            None => elsewhere(facts, slots.hosts),
        };
        let most = |spans: &mut dyn Iterator<Item = Span>| spans.max().unwrap_or(Span::ZERO);
        let up_max = most(&mut hosts.iter().map(|host| host.up));
        let down_max = most(&mut hosts.iter().map(|host| host.down));
        let to_arbiter = most(&mut arbiters.iter().flatten().map(|delays| delays.1));
        // From the start of the slot of an SCHD at its sender to the start of the one given: hosts
        // hear the last SCHD of a slot, and then send.
        let heard = up_max + across + down_max + slots.length() + slots.error * 2;
        // Networks with queues are late.
        let slack = if pod.is_some() { 1 } else { 3 };
        let ahead = heard.div_floor(slots.length()) + slack;
        let up_arbiter = most(&mut arbiters.iter().flatten().map(|delays| delays.0));
        let rts = slots.length() * 2 + up_max + to_arbiter;
        let answer = rts + compute + slots.length() * 2 + up_arbiter + across + up_max + down_max;
        Self { slots, hosts, arbiters, up_max, across, compute, ahead, answer }
    }

    /// The number of a host in its rack.
    #[inline]
    pub(super) fn place(&self, host: u16) -> u16 {
        self.hosts[usize::from(host)].place
    }

    /// The rack of a host.
    #[inline]
    pub(super) fn rack(&self, host: u16) -> u16 {
        self.hosts[usize::from(host)].rack
    }

    /// How many racks there are.
    pub(super) fn n_racks(&self) -> usize {
        self.arbiters.len()
    }

    fn start(&self, slot: u64) -> Instant {
        i128::from(slot) * i128::from(self.slots.length().as_ps())
    }

    /// When a host sends what is at the start of a slot.
    #[inline]
    pub(super) fn host_start(&self, host: u16, slot: u64) -> Instant {
        self.start(slot) + ps(self.up_max) - ps(self.hosts[usize::from(host)].up)
    }

    /// The slot that a host is in; `None` before the first.
    #[inline]
    pub(super) fn host_slot(&self, host: u16, at: Instant) -> Option<u64> {
        let since = at - self.host_start(host, 0);
        u64::try_from(since.div_euclid(ps(self.slots.length()))).ok()
    }

    /// When an arbiter sends a host what is at `position` of a slot at the host's rack.
    #[inline]
    pub(super) fn schd_at(
        &self,
        arbiter: u32,
        host: u16,
        (slot, position): (u64, Span),
    ) -> Instant {
        self.rack_at(arbiter, self.rack(host), (slot, position))
    }

    /// The same for packets to a rack.
    pub(super) fn rack_at(
        &self,
        arbiter: u32,
        rack: u16,
        (slot, position): (u64, Span),
    ) -> Instant {
        let up = self.arbiters[usize::from(rack)][arbiter as usize].0;
        self.start(slot) + ps(position) + ps(self.up_max) + ps(self.across) - ps(up)
    }

    /// From the departure of an SCHD to its being heard.
    #[inline]
    pub(super) fn schd_delay(&self, arbiter: u32, host: u16) -> Span {
        let Host { rack, down, .. } = self.hosts[usize::from(host)];
        self.arbiters[usize::from(rack)][arbiter as usize].0 + down
    }

    /// When an arbiter decides what the SCHDs of a slot say. It knows what it has heard before.
    #[inline]
    pub(super) fn tick_at(&self, arbiter: u32, slot: u64) -> Instant {
        let ups = self.arbiters.iter().map(|rack| rack[arbiter as usize].0);
        let first = ps(self.up_max) + ps(self.across) - ps(ups.max().unwrap_or(Span::ZERO));
        self.start(slot) + first - ps(self.compute)
    }

    /// The first slot of which an arbiter decides after `at`; `None` if it is before the first.
    #[inline]
    pub(super) fn tick_after(&self, arbiter: u32, at: Instant) -> Option<u64> {
        let since = at - self.tick_at(arbiter, 0);
        u64::try_from(since.div_euclid(ps(self.slots.length())) + 1).ok()
    }

    /// When a host that sends an RTS at `sent` hears the first SCHD that can know of it, if
    /// nobody is scheduled to send to it then (§3.3).
    pub(super) fn knowing(&self, arbiter: u32, host: u16, sent: Instant) -> Instant {
        let Host { rack, place, up, .. } = self.hosts[usize::from(host)];
        let heard = sent + ps(up) + ps(self.arbiters[usize::from(rack)][arbiter as usize].1);
        let slot = self.tick_after(arbiter, heard).unwrap_or(0);
        let schd = self.schd_at(arbiter, host, (slot, self.slots.idle_gap(place)));
        schd + ps(self.schd_delay(arbiter, host))
    }
}

#[inline]
fn ps(span: Span) -> Instant {
    i128::from(span.as_ps())
}

type Delays = (Vec<Host>, Vec<Vec<(Span, Span)>>, Span);

/// A switch forwards when the header is in; a host hears a packet when all of it is.
fn of_pod(pod: &Pod, control: Span) -> Delays {
    let head = pod.rate.tx_time(pod.header);
    let up = |cable: Span| head + cable + pod.switch_latency;
    let down = |cable: Span| control + cable + pod.host_latency;
    let of_host = |host: &PodHost| Host {
        rack: host.rack,
        place: host.place,
        up: up(host.cable),
        down: down(host.cable),
    };
    let hosts = pod.hosts.iter().map(of_host).collect();
    let both = |cables: &Vec<Span>| cables.iter().map(|&c| (up(c), down(c))).collect();
    let arbiters = pod.arbiters.iter().map(both).collect();
    // Where trunks differ, guard bands allow for half of that either way on each of the two.
    let trunks = pod.trunks.0 + pod.trunks.1;
    (hosts, arbiters, (head + pod.switch_latency) * 2 + trunks)
}

/// Two hops between a host and an arbiter, four between hosts.
fn elsewhere(facts: &FabricFacts, per_rack: u16) -> Delays {
    let hop = facts.control_rtt / 4;
    let host = |number: u32| Host {
        rack: 0,
        place: (number % u32::from(per_rack)) as u16,
        up: hop,
        down: hop,
    };
    ((0..facts.n_hosts).map(host).collect(), vec![vec![(hop, hop); 2]], hop * 2)
}
