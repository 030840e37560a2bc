//! Effects of faults on the packets of a fabric.

use rampmeter_types::fabric::LinksDown;
use rampmeter_types::{Header, SwitchProgram, Time};

use super::Fabric;

use super::stats::DropReason;
use super::watch::PortChange;
use crate::engine::event::{ARRIVE, packet_event};
use crate::engine::{Handle, Wheel};
use crate::topo::{LinkChange, Routes};

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Loses, doubles or delays a packet that the link has carried; `None` if it is lost.
    #[cold]
    pub(super) fn apply_faults(
        &mut self,
        number: u32,
        handle: Handle,
        at: Time,
        wheel: &mut Wheel,
    ) -> Option<Time> {
        if !self.ports[number as usize].is_up {
            self.discard(number, handle, DropReason::LinkDown);
            return None;
        }
        let fate = self.faults.draw(number);
        if fate.lost {
            self.discard(number, handle, DropReason::Loss);
            return None;
        }
        if fate.doubled {
            let copy = *self.pool.get(handle);
            let stamps = *self.pool.stamps(handle);
            let twin = self.pool.insert(copy, stamps.sent);
            *self.pool.stamps(twin) = stamps;
            self.stats.duplicated += 1;
            if copy.payload.len > 0 {
                let delay = fate.twin_delay;
                self.note_transit(|transits| transits.on_double(handle, twin, delay));
            }
            self.record(number, |_| PortChange::Duplicate { handle, twin });
            wheel.push(packet_event(at + fate.twin_delay, ARRIVE, number, twin));
        }
        if self.pool.get(handle).payload.len > 0 {
            self.note_transit(|transits| transits.delay_last(handle, fate.delay));
        }
        Some(at + fate.delay)
    }

    /// Returns true if the link of `via` failed while the packet was on it.
    #[cold]
    pub(super) fn lost_in_outage(&mut self, via: u32, handle: Handle, now: Time) -> bool {
        let port = &self.ports[via as usize];
        let bytes = self.pool.get(handle).wire_bytes;
        let on_link = port.delay + port.tx_time(bytes, &self.rates, via);
        !port.is_up || self.faults.failed_within(via, now, on_link)
    }

    /// Returns the time at which the next link or switch fails or is repaired, or routing follows.
    pub(crate) fn next_outage(&self) -> Option<Time> {
        self.faults.next_change()
    }

    /// Carries out the failures, repairs and changes of links and routing that are due at `now`.
    /// Returns true if routing uses other links than before.
    pub(crate) fn apply_outages(&mut self, now: Time, wheel: &mut Wheel) -> bool {
        while let Some(change) = self.faults.pop_link_change(now) {
            self.change_link(change);
        }
        for (link, up) in self.faults.take_changed_links(now, &self.topology) {
            for number in 0..self.ports.len() as u32 {
                if self.routes.end(number).0 != link {
                    continue;
                }
                let was_up = std::mem::replace(&mut self.ports[number as usize].is_up, up);
                if was_up != up {
                    self.record(number, |_| match up {
                        true => PortChange::LinkUp,
                        false => PortChange::LinkDown,
                    });
                }
                if !up {
                    self.faults.mark_failed(number, now);
                    self.flush(number, now, wheel);
                }
            }
        }
        let differs = self.faults.update_routing(now, &self.topology);
        if differs {
            let faults = &self.faults;
            self.routes = Routes::new(&self.topology, &|link| faults.is_routed(link));
        }
        differs
    }

    /// Gives the ports of a link other rates and another delay.
    fn change_link(&mut self, change: LinkChange) {
        let ends = self.topology.links()[change.link as usize];
        for number in 0..self.ports.len() as u32 {
            let (link, to) = self.routes.end(number);
            if link != change.link {
                continue;
            }
            let port = &mut self.ports[number as usize];
            if let Some([there, back]) = change.rates {
                let rate = if to == ends.b { there } else { back };
                self.rates[number as usize] = rate;
                port.set_rate(rate);
            }
            if let Some(propagation) = change.propagation {
                port.delay = propagation + self.topology.latency(to);
            }
        }
    }

    /// Returns the links that routing does not use.
    pub(crate) fn links_down(&self) -> LinksDown {
        self.topology.links_down(&|link| self.faults.is_routed(link))
    }

    /// Returns the switches that restart at `now`, by number.
    pub(crate) fn switches_restarting(&self, now: Time) -> Vec<u32> {
        self.faults.switches_restarting(now)
    }

    /// Returns the arbiters that restart at `now` after a crash, by number.
    pub(crate) fn arbiters_restarting(&self, now: Time) -> Vec<u32> {
        self.faults.arbiters_restarting(now)
    }

    /// Drops the queue of a port whose link has failed.
    fn flush(&mut self, number: u32, now: Time, wheel: &mut Wheel) {
        while self.ports[number as usize].queued_priorities != 0 {
            let handle = self.port_queue(number).pop(P::QUEUEING);
            let switch = self.ports[number as usize].switch;
            self.end_wait(switch, handle);
            if self.pfc.is_on() {
                self.release_paced(switch, handle, now, wheel);
            }
            self.note_queue(number);
            self.discard(number, handle, DropReason::LinkDown);
        }
    }
}
