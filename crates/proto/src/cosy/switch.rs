//! Switch of cosy: virtual links, the choice of paths, releases, rejects (cosy §3.2, §3.3, §4).
//!
//! The problem: a message has a bound that is known when it is submitted. So every queue on its
//! path needs an upper bound for any traffic of other hosts.
//!
//! The simple way reserves bandwidth for each flow at each switch, with its path in a table. State
//! then grows with flows, each set-up needs a search, and a lost packet of the set-up holds
//! bandwidth forever.
//!
//! The present way: each link is divided into virtual links, K for each access link's rate. A rsvp
//! that is sent by a port reserves one of the port's virtual links for the data that will arrive by
//! it. Among the ports on shortest paths with a free one, the switch chooses at random. The rsvp
//! collects the ports by which it arrived, and data carries this list as its source route. Data of
//! a virtual link is sent at a K-th of the access rate, which bounds all queues.
//!
//! A switch without a free virtual link turns the rsvp into a release, which returns to the
//! receiver and frees the links reserved so far. If it was the last rsvp of the message, a reject
//! goes to the sender. The last data packet, or a release, frees each virtual link on its path.
//!
//! The table has an entry for each virtual link. It has a bit that is set if the link is reserved,
//! and the virtual link by which the rsvp arrived. Data will be sent on the latter. That is pK + pK
//! log2(pK) bits for p ports of K (`the_state_of_switches_is_that_of_the_paper`). Each
//! reservation also has its number and the end of its lease (§4). After the lease no packet of it
//! can arrive unless something has failed, and the virtual link is free.
//!
//! Hazards: only the packet with a reservation's number may free it, as a late one could free that
//! of another message. A duplicate rsvp would reserve twice, and is dropped. Leases end lazily, in
//! the next search of a port that lacks room. A lease that is too short admits others while data is
//! in flight; then queues may exceed their bound. Tests: `faults_leave_no_reservation`,
//! `every_promise_is_kept_up_to_saturation_and_beyond`, and the model checker in `model`.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::packet::{Marks, Packet};
use rampmeter_types::{
    NodeId, PayloadRef, Priority, Rng, Span, SwitchFacts, SwitchProgram, Time, TransitPacket,
    Verdict,
};

use super::config::Cosy;
use super::wire::{CosyHeader, NO_LINK, ReleaseReason, Route};

/// cosy at one switch.
#[derive(Clone, Debug)]
pub struct CosySwitch {
    first_port: u32,
    /// Start of the virtual links of each port in the table, and the end of the table.
    starts: Vec<u32>,
    table: Vec<Option<Reservation>>,
    /// Inverse of the table: the virtual link to which the rsvp was sent that arrived by a virtual
    /// link. It is also found in the table, by a search.
    forwarded_link: Vec<u32>,
    /// Virtual links of each port that are reserved.
    in_use: Vec<u32>,
    /// A time before which no lease of the port ends.
    next_lease_end_min: Vec<Time>,
    rng: Rng,
    out: VecDeque<(u32, Packet<CosyHeader>)>,
    stats: SwitchStats,
}

/// Counters of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchStats {
    /// Virtual links reserved so far.
    pub reserved: u64,
    /// Virtual links of these that were released by the end of their lease.
    pub cleaned: u64,
    /// Rsvps that found no virtual link.
    pub blocked: u64,
}

/// A virtual link that is reserved.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    /// The virtual link by which the rsvp arrived, by its place in the table.
    ingress_link: u32,
    seq: u32,
    lease_end: Time,
}

/// A rsvp's fields that a switch uses.
#[derive(Clone, Copy)]
struct Rsvp {
    tx_slot: u32,
    seq: u32,
    lease: Span,
    rx_slot: u16,
    link: u16,
    last: bool,
}

impl CosySwitch {
    pub(super) fn new(config: &Arc<Cosy>, switch: SwitchFacts) -> Self {
        let access = config.facts.access_rate.as_bps();
        let mut starts = vec![0];
        for rate in &switch.rates {
            // Virtual links are equally fast everywhere (appendix A).
            let ratio = u32::try_from(rate.as_bps() / access).unwrap_or(u32::MAX);
            let links = config.config.slots.saturating_mul(ratio).min(u32::from(NO_LINK));
            starts.push(starts[starts.len() - 1] + links);
        }
        let n_ports = switch.rates.len();
        Self {
            first_port: switch.first_port,
            table: vec![None; starts[n_ports] as usize],
            forwarded_link: vec![u32::MAX; starts[n_ports] as usize],
            starts,
            in_use: vec![0; n_ports],
            next_lease_end_min: vec![Time::NEVER; n_ports],
            rng: switch.rng,
            out: VecDeque::new(),
            stats: SwitchStats::default(),
        }
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> SwitchStats {
        self.stats
    }

    /// Bits of the table of virtual links: one is set if it is reserved, the others are the virtual
    /// link of its data.
    pub fn state_bits(&self) -> u64 {
        let links = self.table.len() as u64;
        let place = u64::from(links.next_power_of_two().trailing_zeros());
        links + links * place
    }

    /// Returns the virtual links that are reserved at `now`.
    pub fn reserved(&self, now: Time) -> usize {
        self.table.iter().flatten().filter(|reservation| reservation.lease_end > now).count()
    }

    /// Returns the reservation of a port's virtual link, and the virtual link on which its data is
    /// forwarded.
    #[cfg(test)]
    pub(super) fn holder(&self, port: u32, link: u16) -> Option<(u32, u16)> {
        let place = self.place(port - self.first_port, link)?;
        let Reservation { ingress_link, seq, .. } = self.table[place as usize]?;
        let port = self.starts.partition_point(|&start| start <= ingress_link) - 1;
        Some((seq, (ingress_link - self.starts[port]) as u16))
    }

    /// Returns true if the table alone determines the known reservations, except for their numbers
    /// and leases, in the bits that [`Self::state_bits`] counts.
    #[cfg(test)]
    pub(super) fn follows_from_its_table(&self, now: Time) -> bool {
        let reserved = |place: &usize| self.table[*place];
        let is_indexed = (0..self.table.len()).all(|place| {
            // Expired reservations stay until the next search for a virtual link.
            reserved(&place).filter(|r| r.lease_end > now).is_none_or(|reservation| {
                let from = reservation.ingress_link as usize;
                from < self.table.len() && self.forwarded_link[from] as usize == place
            })
        });
        let mut ports = 0..self.in_use.len() as u32;
        is_indexed
            && ports.all(|port| {
                let untils = self.links(port).filter_map(|place| Some(reserved(&place)?.lease_end));
                let (n, earliest) = (untils.clone().count(), untils.min());
                self.in_use[port as usize] as usize == n
                    && earliest.is_none_or(|first| self.next_lease_end_min[port as usize] <= first)
            })
    }

    /// Makes future random choices depend on `rng` alone.
    #[cfg(test)]
    pub(super) fn reseed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Returns the place of a port's virtual link in the table, if it has that many.
    fn place(&self, port: u32, link: u16) -> Option<u32> {
        let place = self.starts[port as usize].checked_add(link.into())?;
        (place < self.starts[port as usize + 1]).then_some(place)
    }

    fn links(&self, port: u32) -> std::ops::Range<usize> {
        self.starts[port as usize] as usize..self.starts[port as usize + 1] as usize
    }

    /// Frees the virtual links of a port whose lease has expired.
    fn clean(&mut self, port: u32, now: Time) {
        if self.next_lease_end_min[port as usize] > now {
            return;
        }
        let mut next = Time::NEVER;
        for place in self.links(port) {
            match self.table[place] {
                Some(reservation) if reservation.lease_end <= now => {
                    self.table[place] = None;
                    self.in_use[port as usize] -= 1;
                    self.stats.cleaned += 1;
                }
                Some(reservation) => next = next.min(reservation.lease_end),
                None => {}
            }
        }
        self.next_lease_end_min[port as usize] = next;
    }

    fn has_free_link(&self, port: u32) -> bool {
        (self.in_use[port as usize] as usize) < self.links(port).len()
    }

    /// Returns a port with a free virtual link, each with the same chance (§3.2).
    fn choose(&mut self, now: Time, choices: &[u32]) -> Option<u32> {
        let n_free = |switch: &Self| {
            choices.iter().filter(|&&port| switch.has_free_link(port - switch.first_port)).count()
        };
        let mut free = n_free(self);
        if free < choices.len() {
            for &port in choices {
                self.clean(port - self.first_port, now);
            }
            free = n_free(self);
        }
        if free == 0 {
            return None;
        }
        let pick = self.rng.uniform_below(free);
        let has_room = |port: &u32| self.has_free_link(port - self.first_port);
        choices.iter().copied().filter(has_room).nth(pick)
    }

    /// Reserves a virtual link of `port` for a rsvp that arrived by the one at `from`.
    fn reserve(&mut self, now: Time, port: u32, ingress_link: u32, rsvp: Rsvp) -> Option<u16> {
        let links = self.links(port);
        let link = self.table[links.clone()].iter().position(Option::is_none)?;
        let lease_end = now.saturating_add(rsvp.lease);
        self.table[links.start + link] =
            Some(Reservation { ingress_link, seq: rsvp.seq, lease_end });
        self.forwarded_link[ingress_link as usize] = (links.start + link) as u32;
        self.in_use[port as usize] += 1;
        self.next_lease_end_min[port as usize] =
            self.next_lease_end_min[port as usize].min(lease_end);
        self.stats.reserved += 1;
        u16::try_from(link).ok()
    }

    /// Frees a virtual link if `seq` still holds it. Returns the virtual link on which the packet
    /// is forwarded.
    fn release(&mut self, port: u32, link: u16, seq: u32) -> u16 {
        let Some(place) = self.place(port, link) else { return NO_LINK };
        match self.table[place as usize] {
            Some(reservation) if reservation.seq == seq => {
                self.table[place as usize] = None;
                self.in_use[port as usize] -= 1;
                let port =
                    self.starts.partition_point(|&start| start <= reservation.ingress_link) - 1;
                u16::try_from(reservation.ingress_link - self.starts[port]).unwrap_or(NO_LINK)
            }
            _ => NO_LINK,
        }
    }

    /// Forwards a rsvp with a reserved virtual link, or turns it into a reject.
    fn on_rsvp(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<CosyHeader>,
        rsvp: Rsvp,
        mut route: Route,
    ) -> Verdict {
        let (now, ingress) = (crossing.now, crossing.ingress - self.first_port);
        let way_back = route;
        let Some(from) = self.place(ingress, rsvp.link) else { return Verdict::Drop };
        let Ok(back) = u16::try_from(ingress) else { return Verdict::Drop };
        let gone_by =
            self.table.get(self.forwarded_link[from as usize] as usize).copied().flatten();
        if gone_by.is_some_and(|r| r.ingress_link == from && r.seq == rsvp.seq && r.lease_end > now)
        {
            // The network has doubled it.
            return Verdict::Drop;
        }
        if !route.push(back) {
            return Verdict::Drop;
        }
        let chosen = self.choose(now, crossing.choices);
        let reserved = chosen
            .and_then(|port| Some((port, self.reserve(now, port - self.first_port, from, rsvp)?)));
        let Rsvp { tx_slot, seq, rx_slot, link, last, .. } = rsvp;
        if let Some((port, link)) = reserved {
            if let CosyHeader::Rsvp { link: on, route: way, .. } = &mut packet.header {
                (*on, *way) = (link, route);
            }
            return Verdict::Redirect(port);
        }
        self.stats.blocked += 1;
        if let (true, Some(port)) = (last, crossing.egress) {
            let reject =
                make_control(packet, packet.src, packet.dst, CosyHeader::Reject { tx_slot });
            self.out.push_back((port, reject));
        }
        let release = CosyHeader::Release {
            seq,
            rx_slot,
            link,
            reason: ReleaseReason::Blocked,
            route: way_back,
        };
        *packet = make_control(packet, packet.dst, packet.src, release);
        Verdict::Redirect(crossing.ingress)
    }

    /// Returns the output port of a packet that carries its route.
    fn next_port(&self, route: &mut Route) -> Option<u32> {
        let port = u32::from(route.pop()?);
        (port < self.in_use.len() as u32).then_some(self.first_port + port)
    }
}

/// Returns a control packet about the same message.
fn make_control(
    about: &Packet<CosyHeader>,
    src: NodeId,
    dst: NodeId,
    header: CosyHeader,
) -> Packet<CosyHeader> {
    let payload = PayloadRef { len: 0, ..about.payload };
    let (priority, marks) = (Priority::HIGHEST, Marks::NONE);
    Packet { header, payload, src, dst, priority, marks, ..*about }
}

impl SwitchProgram<CosyHeader> for CosySwitch {
    const HANDLES_FORWARD: bool = true;

    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<CosyHeader>,
    ) -> Verdict {
        let ingress = crossing.ingress - self.first_port;
        let next = match &mut packet.header {
            &mut CosyHeader::Rsvp { tx_slot, seq, lease_us, rx_slot, link, last, route } => {
                let lease = Span::from_us(lease_us.into());
                let rsvp = Rsvp { tx_slot, seq, lease, rx_slot, link, last };
                return self.on_rsvp(crossing, packet, rsvp, route);
            }
            CosyHeader::Data { seq, link, last, route, .. } => {
                if *last {
                    *link = self.release(ingress, *link, *seq);
                }
                self.next_port(route)
            }
            CosyHeader::Release { seq, link, route, .. } => {
                *link = self.release(ingress, *link, *seq);
                self.next_port(route)
            }
            CosyHeader::Request { .. }
            | CosyHeader::Reject { .. }
            | CosyHeader::Complete { .. }
            | CosyHeader::Failure { .. } => return Verdict::Forward,
        };
        next.map_or(Verdict::Drop, Verdict::Redirect)
    }

    #[inline]
    fn poll_transmit(&mut self) -> Option<(u32, Packet<CosyHeader>)> {
        self.out.pop_front()
    }
}
