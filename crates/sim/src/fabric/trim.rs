//! Ports that trim: a data packet that does not fit loses its payload, and its header is sent first
//! (NDP, section 3).
//!
//! A port has a queue for data packets and one for headers and control packets. Both have separate
//! limits, so that data never takes the room of headers. A header that does not fit either is
//! returned to its sender (section 3), or is dropped.

use rampmeter_types::fabric::{HeaderOverflow, TrimChoice};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Header, Priority, SwitchProgram, Time};

use super::Fabric;
use super::stats::DropReason;
use crate::engine::{Handle, Wheel};

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns true if the packet may be queued at a switch's port, perhaps without its payload. If
    /// not, it has been returned or dropped.
    pub(super) fn trim_for_room(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) -> bool {
        let packet = self.pool.get(handle);
        let port = &self.ports[egress as usize];
        let bytes = port.memory_of(packet.wire_bytes);
        if packet.priority == Priority::HIGHEST {
            return self.header_fits(switch, egress, handle, now, wheel);
        }
        let data = port.queued - port.header_bytes;
        let used = self.used_bytes[switch as usize];
        if self.config.admits(data, port.buffer_max, used, bytes) {
            return true;
        }
        let takes_newest = match self.config.trim.choice {
            TrimChoice::Coin => data > 0 && self.coins[switch as usize].bits() & 1 == 0,
            TrimChoice::Arriving => false,
        };
        if takes_newest && let Some(newest) = self.take_newest(switch, egress) {
            self.trim(egress, newest);
            if self.header_fits(switch, egress, newest, now, wheel) {
                self.admit(switch, egress, newest, now, wheel);
            }
            return true;
        }
        self.trim(egress, handle);
        self.header_fits(switch, egress, handle, now, wheel)
    }

    /// Takes the newest data packet out of a port's queue.
    fn take_newest(&mut self, switch: u32, egress: u32) -> Option<Handle> {
        let newest = self.port_queue(egress).take_newest_data()?;
        self.end_wait(switch, newest);
        Some(newest)
    }

    /// Cuts the payload off a packet.
    fn trim(&mut self, egress: u32, handle: Handle) {
        let tier = self.ports[egress as usize].tier;
        let packet = self.pool.get_mut(handle);
        let msg = packet.payload.msg.get();
        packet.wire_bytes = packet.wire_bytes.min(self.config.trim.trimmed_bytes);
        packet.payload.len = 0;
        packet.priority = Priority::HIGHEST;
        packet.marks = packet.marks.union(Marks::TRIMMED);
        self.stats.count_trim(tier);
        self.note_data_drop(msg, tier);
    }

    /// Returns true if the header queue of a port has space. If not, a trimmed packet is
    /// returned to its sender, and any other is dropped.
    fn header_fits(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) -> bool {
        let port = &self.ports[egress as usize];
        let bytes = port.memory_of(self.pool.get(handle).wire_bytes);
        let trim = self.config.trim;
        if u64::from(port.header_bytes + bytes) <= trim.headers.get() {
            return true;
        }
        let marks = self.pool.get(handle).marks;
        let may_return = marks.contains(Marks::TRIMMED) && !marks.contains(Marks::RETURNED);
        match trim.overflow {
            HeaderOverflow::Return if may_return => {
                self.stats.count_return(port.tier);
                self.return_to_sender(switch, egress, handle, now, wheel);
            }
            HeaderOverflow::Return | HeaderOverflow::Drop => {
                self.discard(egress, handle, DropReason::Buffer);
            }
        }
        false
    }

    /// Returns a trimmed packet to its sender along its path number.
    fn return_to_sender(
        &mut self,
        switch: u32,
        egress: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        let packet = self.pool.get_mut(handle);
        std::mem::swap(&mut packet.src, &mut packet.dst);
        packet.marks = packet.marks.union(Marks::RETURNED);
        let path = self.digits[switch as usize].choice(packet.path);
        match self.routes.by_path(switch, packet.dst.get(), path) {
            Some(back) => self.defer_cut_through(switch, back, handle, now, wheel),
            None => self.discard(egress, handle, DropReason::NoRoute),
        }
    }
}
