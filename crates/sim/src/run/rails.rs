//! Interfaces that queue, hosts with several links, and hosts whose links may be paused. The others
//! are served in the run loop itself.

use rampmeter_types::Transport;

use super::Sim;
use super::packets::{check_codec, departure_callback};
use crate::probe::Probe;
use crate::source::Source;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Takes packets of an interface that queues, or of a host whose links must be checked.
    pub(super) fn serve(&mut self, station: u32) {
        if station >= self.n_pull_hosts {
            self.drain_endpoint(station);
        } else {
            self.pull_by_rails(station);
        }
    }

    /// A link of a host has fallen idle, in a network of several links a host.
    pub(super) fn wake_rail(&mut self, port: u32) {
        let station = self.fabric.owner(port);
        let Self { fabric, wheel, probe, ledger, now, .. } = self;
        let leaves = departure_callback(probe, ledger, *now, station);
        fabric.on_link_idle(port, *now, wheel, leaves);
        self.pull_by_rails(station);
    }

    /// Polls the endpoints of a host with several links for packets, plane by plane. It continues
    /// as long as a link of the plane is idle and none has a queue. A packet is sent by an idle one
    /// of the links that are nearest to its destination. If none of these is idle, it is queued at
    /// one, and the plane is not polled before it has been sent. While all links of a plane have
    /// stopped some classes, packets of the highest class are sent, if that is not stopped.
    fn pull_by_rails(&mut self, station: u32) {
        self.note_due_permissions(station);
        for plane in 0..self.fabric.n_planes(station) {
            let stopped = self.fabric.stopped_classes(station, plane);
            while self.stations[station].endpoint.is_plane_waiting(plane)
                && stopped & 1 == 0
                && self.fabric.can_pull(station, plane, self.now)
            {
                let state = &mut self.stations[station];
                let local = state.clock.local(self.now);
                let polled = match stopped {
                    0 => state.endpoint.poll_plane(plane, local),
                    _ => state.endpoint.poll_plane_control(plane, local),
                };
                let Some(packet) = polled else { break };
                if self.paranoid {
                    check_codec(&packet);
                }
                let payload = packet.payload;
                self.ledger.on_sent(payload);
                let leaves = departure_callback(&mut self.probe, &self.ledger, self.now, station);
                let n_started = self.fabric.n_started();
                self.fabric.inject_by_rails(station, packet, self.now, &mut self.wheel, leaves);
                self.note_sent(station, payload, self.fabric.n_started() > n_started);
            }
        }
        if self.stations[station].endpoint.wants_transmit() {
            self.fabric.wake_uplinks(station, self.now, &mut self.wheel);
        }
        self.set_timer(station);
    }

    /// Hands every packet that an endpoint has to its interface, which queues them.
    fn drain_endpoint(&mut self, station: u32) {
        self.note_due_permissions(station);
        let local = self.stations[station].clock.local(self.now);
        while let Some(packet) = self.stations[station].endpoint.poll_transmit(local) {
            if self.paranoid {
                check_codec(&packet);
            }
            let payload = packet.payload;
            self.ledger.on_sent(payload);
            let leaves = departure_callback(&mut self.probe, &self.ledger, self.now, station);
            let n_started = self.fabric.n_started();
            self.fabric.inject_queued(station, packet, self.now, &mut self.wheel, leaves);
            self.note_sent(station, payload, self.fabric.n_started() > n_started);
        }
        self.set_timer(station);
    }
}
