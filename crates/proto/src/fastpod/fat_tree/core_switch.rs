//! Program of a core switch: packets and acknowledgements between the ports of its pods.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Packet, SwitchFacts, SwitchProgram, Time, TransitPacket, Verdict};

use super::port::PodPort;
use super::stats::CoreStats;
use crate::fastpod::config::Fastpod;
use crate::fastpod::wire::{FastpodHeader, Relay};

/// The program of a switch. Only core switches have one.
#[derive(Debug)]
pub struct FastpodProgram(Option<Box<CoreSwitch>>);

/// A core switch at work.
#[derive(Debug)]
struct CoreSwitch {
    fastpod: Arc<Fastpod>,
    /// Number among core switches.
    number: u16,
    /// Ports by pod.
    ports: Vec<PodPort>,
    /// Bytes held, and the maximum that there is memory for.
    held_bytes: u64,
    held_bytes_max: u64,
    /// Pods with free memory, a bit each.
    open_pods: u32,
    /// Packets whose instant has arrived, and their ports.
    ready: VecDeque<(u32, Packet<FastpodHeader>)>,
    stats: CoreStats,
}

impl FastpodProgram {
    /// Returns the program of a switch of this network.
    pub(crate) fn new(fastpod: &Arc<Fastpod>, switch: &SwitchFacts) -> Self {
        let cores = fastpod.pods.iter().flat_map(|pods| &pods.cores);
        let own = (0..).zip(cores).find(|(_, core)| core.switch == switch.number);
        Self(own.map(|(number, core)| {
            let port = |(pod, &port)| PodPort::new(pod, switch.first_port + u32::from(port));
            let ports = (0..).zip(&core.ports).map(port).collect();
            Box::new(CoreSwitch::new(Arc::clone(fastpod), number, ports))
        }))
    }
}

impl CoreSwitch {
    fn new(fastpod: Arc<Fastpod>, number: u16, ports: Vec<PodPort>) -> Self {
        Self {
            number,
            ports,
            held_bytes: 0,
            held_bytes_max: fastpod.core_cells_max() * fastpod.cell_bytes(),
            open_pods: 0,
            ready: VecDeque::new(),
            stats: CoreStats::default(),
            fastpod,
        }
    }

    /// Takes a packet that has arrived by the port of a pod.
    fn on_packet(&mut self, now: Time, pod: u16, packet: &Packet<FastpodHeader>) -> Verdict {
        let verdict = match packet.header {
            FastpodHeader::Cell { .. } => self.on_cell(now, pod, packet),
            FastpodHeader::CoreSchd { .. } => self.on_schd(now, pod, packet.src, &packet.header),
            _ => Verdict::Drop,
        };
        self.plan(now, pod);
        verdict
    }

    fn on_cell(&mut self, now: Time, from: u16, packet: &Packet<FastpodHeader>) -> Verdict {
        let dst = packet.dst.get();
        let is_host = dst < self.fastpod.n_hosts && !packet.marks.contains(Marks::UNSCHEDULED);
        let to = self.fastpod.pod_of(dst as u16);
        if !is_host || to == from {
            return Verdict::Drop;
        }
        let bytes = u64::from(packet.wire_bytes);
        if self.held_bytes + bytes > self.held_bytes_max {
            self.stats.overflows += 1;
            return Verdict::Drop;
        }
        let port = &mut self.ports[usize::from(to)];
        port.enqueue(now, packet, &self.fastpod, self.number);
        self.held_bytes += bytes;
        self.stats.cells += 1;
        self.stats.cells_max = self.stats.cells_max.max(self.fastpod.cell_count(self.held_bytes));
        self.stats.queue_max = self.stats.queue_max.max(self.fastpod.cell_count(port.held()));
        self.plan(now, to);
        Verdict::Consume
    }

    fn on_schd(&mut self, now: Time, pod: u16, src: NodeId, header: &FastpodHeader) -> Verdict {
        let arbiter = self.fastpod.arbiter_of(src).filter(|(of, _)| *of == pod);
        let Some((_, which)) = arbiter else { return Verdict::Drop };
        let port = &mut self.ports[usize::from(pod)];
        let Some(relays) = port.on_schd(now, which, header, &self.fastpod, self.number) else {
            return Verdict::Consume;
        };
        for &relay in relays.as_slice() {
            self.relay(now, pod, relay);
        }
        Verdict::Consume
    }

    /// Passes on that a message has arrived in the pod `from`.
    fn relay(&mut self, now: Time, from: u16, relay: Relay) {
        let to = self.fastpod.pod_of(relay.to);
        if u32::from(relay.to) >= self.fastpod.n_hosts || to == from {
            return;
        }
        if self.ports[usize::from(to)].relay(relay) {
            self.stats.acks_relayed += 1;
            self.plan(now, to);
        } else {
            self.stats.acks_dropped += 1;
        }
    }

    /// Returns the pods for which there is space: those whose arbiter responds, and whose cells are
    /// fewer than the limit, if all are.
    fn open_pods(&self, now: Time) -> u32 {
        let config = &self.fastpod.config;
        let bytes = |cells: u32| u64::from(cells) * self.fastpod.cell_bytes();
        if self.held_bytes >= bytes(config.core_buffer_cells) {
            return 0;
        }
        let limit = bytes(config.core_queue_cells);
        let is_open = |port: &&PodPort| {
            port.held() < limit && port.is_responsive(now, self.fastpod.unresponsive_after)
        };
        let bits = self.ports.iter().filter(is_open).map(|port| 1 << port.pod());
        bits.fold(0, |open, bit: u32| open | bit)
    }

    /// Sets the time of the next action of a pod's port, and of all ports if they must report
    /// space.
    fn plan(&mut self, now: Time, pod: u16) {
        let open = self.open_pods(now);
        let changed = std::mem::replace(&mut self.open_pods, open) != open;
        let all = 0..self.ports.len() as u16;
        for pod in if changed { all } else { pod..pod + 1 } {
            self.ports[usize::from(pod)].plan(now, open, &self.fastpod, self.number);
        }
    }

    /// Sends the packets that are due, and restarts requests that are not answered.
    fn send_due(&mut self, now: Time) {
        for pod in 0..self.ports.len() as u16 {
            let port = &mut self.ports[usize::from(pod)];
            if port.next() > now {
                continue;
            }
            let before = port.held();
            port.send_due(
                now,
                self.open_pods,
                &self.fastpod,
                self.number,
                &mut self.stats,
                &mut self.ready,
            );
            self.held_bytes -= before - port.held();
            self.plan(now, pod);
        }
    }
}

impl SwitchProgram<FastpodHeader> for FastpodProgram {
    const HANDLES_FORWARD: bool = true;
    const HAS_TIMERS: bool = true;

    #[inline]
    fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<FastpodHeader>,
    ) -> Verdict {
        let Some(core) = &mut self.0 else { return Verdict::Forward };
        let by = core.ports.iter().find(|port| port.number() == crossing.ingress);
        let Some(pod) = by.map(PodPort::pod) else { return Verdict::Drop };
        core.on_packet(crossing.now, pod, packet)
    }

    fn poll_timeout(&self) -> Time {
        let ports = self.0.iter().flat_map(|core| &core.ports);
        ports.map(PodPort::next).min().unwrap_or(Time::NEVER)
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Some(core) = &mut self.0 {
            core.send_due(now);
        }
    }

    fn poll_transmit(&mut self) -> Option<(u32, Packet<FastpodHeader>)> {
        self.0.as_mut()?.ready.pop_front()
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        if let Some(core) = &self.0 {
            core.stats.report(each);
        }
    }
}
