//! Packets that wait: admission to a port's queue, and departure from it.

use rampmeter_types::packet::Marks;
use rampmeter_types::{Header, Packet, SwitchProgram, Time};

use super::discipline::{self, PortQueue};
use super::stats::DropReason;
use super::{Fabric, PortChange};
use crate::engine::event::{WAKE, event};
use crate::engine::{Handle, Wheel};

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the queued packets of a port.
    #[inline(always)]
    pub(super) fn port_queue(&mut self, number: u32) -> PortQueue<'_, H> {
        PortQueue {
            number,
            port: &mut self.ports[number as usize],
            queues: &mut self.queues[number as usize],
            pool: &mut self.pool,
            fair: &mut self.fair,
            config: &self.config,
        }
    }

    /// The wake-up of a port with a queue: its link is idle and packets wait. If it is the
    /// interface of a host, `leaves` is called with the packet that is next.
    #[inline]
    pub(crate) fn on_link_idle(
        &mut self,
        number: u32,
        now: Time,
        wheel: &mut Wheel,
        leaves: impl FnOnce(&Packet<H>),
    ) {
        let port = &mut self.ports[number as usize];
        if port.busy_until > now {
            // An express packet has taken the link in the meantime.
            wheel.push(event(port.busy_until, WAKE, number));
            return;
        }
        port.has_wakeup = false;
        if !port.has_sendable() {
            return;
        }
        let handle = self.port_queue(number).pop(P::QUEUEING);
        let port = &self.ports[number as usize];
        let (switch, more) = (port.switch, port.has_sendable());
        self.end_wait(switch, handle);
        if self.pfc.is_on() {
            self.release_paced(switch, handle, now, wheel);
        }
        self.note_queue(number);
        if number < self.n_interfaces && !self.pool.get(handle).marks.contains(Marks::ROUTED) {
            self.pool.get_mut(handle).path = self.take_path(self.routes.owner(number));
        }
        if number < self.n_interfaces {
            leaves(self.pool.get(handle));
        }
        self.start_tx(number, handle, now, wheel);
        if more {
            let port = &mut self.ports[number as usize];
            port.has_wakeup = true;
            wheel.push(event(port.busy_until.max(now), WAKE, number));
        }
    }

    pub(super) fn enqueue(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        if !self.ports[egress as usize].is_up {
            self.discard(egress, handle, DropReason::LinkDown);
            return;
        }
        if self.occupancy.is_on && self.ports[egress as usize].buffer_max == 0 {
            self.collide(egress, handle, now, wheel);
            return;
        }
        if self.ports[egress as usize].queued > self.drop_unscheduled_above
            && egress >= self.n_interfaces
            && self.pool.get(handle).marks.contains(Marks::UNSCHEDULED)
        {
            self.discard(egress, handle, DropReason::Unscheduled);
            return;
        }
        if discipline::trims(P::QUEUEING) && egress >= self.n_interfaces {
            if !self.trim_for_room(switch, egress, handle, now, wheel) {
                return;
            }
        } else if !self.make_room(switch, egress, handle, now, wheel) {
            self.discard(egress, handle, DropReason::Buffer);
            return;
        }
        self.admit(switch, egress, handle, now, wheel);
    }

    /// Queues a packet that fits.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        let port = &self.ports[egress as usize];
        if port.queued > self.marking[usize::from(port.marking)].above {
            self.mark(egress, handle);
        }
        let longest = self.ports[egress as usize].queued_max;
        self.port_queue(egress).push(P::QUEUEING, handle);
        let port = &mut self.ports[egress as usize];
        if discipline::trims(P::QUEUEING) {
            let data = port.queued - port.header_bytes;
            self.stats.note_trimming_queues(port.tier, data, port.header_bytes);
        }
        if port.queued_max > longest {
            let rank = wheel.highest_rank();
            self.stats.note_peak(port.tier, egress, port.queued, now, rank);
        }
        if !port.has_wakeup && port.has_sendable() {
            port.has_wakeup = true;
            wheel.push(event(port.busy_until.max(now), WAKE, egress));
        }
        self.begin_wait(switch, handle);
        self.note_queue(egress);
    }

    /// Marks a packet at a port whose queue is above the lower threshold, between the thresholds at
    /// random.
    fn mark(&mut self, egress: u32, handle: Handle) {
        let port = &self.ports[egress as usize];
        let (tier, switch) = (port.tier, port.switch as usize);
        let coin = || self.mark_coins[switch].uniform_unit();
        if !self.marking[usize::from(port.marking)].marks(port.queued, coin) {
            return;
        }
        let packet = self.pool.get_mut(handle);
        let before = packet.marks;
        packet.marks = before.mark_congestion();
        let packet = *packet;
        if packet.marks.contains(Marks::CONGESTION) {
            self.stats.count_mark(tier);
        }
        if packet.marks != before {
            self.record(egress, |_| PortChange::Mark { handle, packet });
        }
    }

    /// Returns true if the packet may be queued, after pushing out lower ones if the fabric does
    /// that.
    fn make_room(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) -> bool {
        let bytes = self.pool.get(handle).wire_bytes;
        let bytes = self.ports[egress as usize].memory_of(bytes);
        if self.pfc.is_on() && egress >= self.n_interfaces {
            return self.admit_paced(switch, handle, bytes, now, wheel);
        }
        loop {
            let port = &self.ports[egress as usize];
            let fits = if egress < self.n_interfaces {
                port.queued + bytes <= port.buffer_max
            } else {
                self.config.admits(
                    port.queued,
                    port.buffer_max,
                    self.used_bytes[switch as usize],
                    bytes,
                )
            };
            if fits {
                return true;
            }
            let Some(out) = self.port_queue(egress).choose_drop(P::QUEUEING, handle) else {
                return false;
            };
            self.end_wait(switch, out);
            self.note_queue(egress);
            self.discard(egress, out, DropReason::PushedOut);
        }
    }
}
