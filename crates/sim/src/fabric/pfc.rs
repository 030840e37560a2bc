//! Priority flow control (IEEE 802.1Qbb): switches that pause the port at the other end of a link
//! instead of dropping its packets.
//!
//! A switch charges each queued packet to the port at which it arrived, its *ingress*. Up to a
//! threshold the packet takes shared memory. A packet beyond the threshold takes the ingress's
//! *headroom*, a separate memory. The switch then pauses the port at the other end of the ingress's
//! link. The pause takes effect after that link's delay. Until then the other end continues to
//! send, and headroom holds the packets. Departures free headroom first. When the headroom is empty
//! again, and the ingress is below its threshold by the hysteresis, the switch resumes the other
//! end.
//!
//! There is one pause for all classes that it stops, not one a class. [`PfcClasses::Data`] spares
//! the highest class, which carries acknowledgements, tokens and other control packets in most
//! transports here. So a pause stops the data that causes it, and not the control loop of the other
//! direction. Packets of that class are charged to no ingress, and are dropped if shared memory is
//! full. [`PfcClasses::All`] stops and charges every class; it is for transports whose data is in
//! the highest class, and needs `FabricConfig::express_max` to be 0. Ports that queue by rank have
//! no classes, and a pause stops them altogether.
//!
//! Pause frames take no time on the link and are never lost.

use rampmeter_types::fabric::{PfcClasses, PfcThreshold};
use rampmeter_types::{Bytes, Header, Rate, Span, SwitchProgram, Time};

use super::Fabric;
use super::config::{Buffer, FabricConfig, PfcConfig, Switching};
use super::deadlock::Deadlock;
use super::discipline;
use crate::engine::event::{PFC, WAKE, event, packet_event};
use crate::engine::{Handle, Wheel};
use crate::topo::{Node, Topology};

impl PfcConfig {
    /// Returns the headroom of an ingress. `there` and `back` are the delays of its link in both
    /// directions, with propagation and processing.
    ///
    /// A pause that is sent at t takes effect at t + `back`. Packets whose transmission starts from
    /// t - `there` until then arrive after t: the bits that the link carries in `there` + `back`,
    /// and one packet, rounded up. The packet that caused the pause takes headroom too. If switches
    /// cut through, one more may be between its arrival and the start of its wait.
    pub fn headroom_of(&self, rate: Rate, there: Span, back: Span, switching: Switching) -> Bytes {
        let round = (there + back).as_ps();
        let carried = u128::from(rate.as_bps()) * u128::from(round);
        let carried = u64::try_from(carried.div_ceil(8_000_000_000_000)).unwrap_or(u64::MAX);
        let packets = if switching == Switching::StoreAndForward { 2 } else { 3 };
        let derived = Bytes::new(carried.saturating_add(packets * self.packet.get()));
        self.headroom.unwrap_or(derived)
    }

    /// Returns true if an ingress with these bytes in memory resumes its link, with `free` bytes of
    /// shared memory unused.
    pub(super) fn is_clear(&self, shared: u64, headroom: u64, free: u64) -> bool {
        let below = || shared.saturating_add(self.hysteresis.get()) <= Pfc::threshold(self, free);
        headroom == 0 && (shared == 0 || below())
    }

    /// Returns the classes that a pause stops, a bit each.
    fn stopped(&self) -> u8 {
        match self.classes {
            PfcClasses::Data => !1,
            PfcClasses::All => !0,
        }
    }

    /// Returns the headroom of all ports of the switch of `topology` that needs most, and the most
    /// ports of any switch.
    pub fn reserve(&self, topology: &Topology, switching: Switching) -> (Bytes, u64) {
        let n_switches = topology.n_switches() as usize;
        let mut each = vec![(0u64, 0u64); n_switches];
        for link in topology.links() {
            let delay = |to| link.propagation + topology.latency(to);
            for (near, far) in [(link.a, link.b), (link.b, link.a)] {
                if let Node::Switch(switch) = near {
                    let own =
                        self.headroom_of(link.rate_to(near), delay(near), delay(far), switching);
                    let (bytes, ports) = &mut each[switch as usize];
                    *bytes = bytes.saturating_add(own.get());
                    *ports += 1;
                }
            }
        }
        let bytes = each.iter().map(|e| e.0).max().unwrap_or(0);
        (Bytes::new(bytes), each.iter().map(|e| e.1).max().unwrap_or(0))
    }

    /// Returns the minimum shared memory of a switch that loses nothing. It is the headroom of its
    /// ports and one packet. With a static threshold, it is the headroom and the threshold of every
    /// port.
    pub fn memory_min(&self, topology: &Topology, switching: Switching) -> Bytes {
        let (reserve, ports) = self.reserve(topology, switching);
        let shared = match self.threshold {
            PfcThreshold::Dynamic { .. } => self.packet,
            PfcThreshold::Static(bytes) => Bytes::new(bytes.get().saturating_mul(ports)),
        };
        reserve + shared
    }
}

/// Counters of priority flow control, by tier of the ports that are paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcStats {
    /// Pauses sent to ports of the tier.
    pub pauses: u64,
    /// Time for which its ports have been paused, all together.
    pub paused: Span,
    /// The most headroom that any ingress at the far end of its links has taken.
    pub headroom_max: Bytes,
}

/// An ingress, by its port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauge {
    /// Bytes in shared memory.
    pub(super) shared: u32,
    /// Bytes in headroom.
    pub(super) headroom: u32,
    /// The most headroom that it may take.
    headroom_end: u32,
    /// True if the last frame that it sent was a pause.
    pub(super) is_pausing: bool,
}

/// The state of priority flow control. Off, it holds nothing.
#[derive(Debug)]
pub(super) struct Pfc {
    pub(super) config: Option<PfcConfig>,
    pub(super) gauges: Vec<Gauge>,
    /// Shared memory in use, and in all, by switch.
    pub(super) memory: Vec<(u64, u64)>,
    /// Since when each port has been paused.
    pub(super) paused_since: Vec<Time>,
    /// Counters by tier.
    stats: Vec<PfcStats>,
    /// Deadlocks at the end of the run.
    pub(super) deadlocks: Option<Vec<Deadlock>>,
}

impl Pfc {
    pub(super) fn disabled() -> Self {
        let (gauges, memory, paused_since, stats) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { config: None, gauges, memory, paused_since, stats, deadlocks: None }
    }

    /// Returns true if switches pause ports.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.config.is_some()
    }

    /// Returns the bytes of one ingress that may wait, with `free` bytes of shared memory unused.
    fn threshold(config: &PfcConfig, free: u64) -> u64 {
        match config.threshold {
            PfcThreshold::Dynamic { alpha } => (alpha * free as f64) as u64,
            PfcThreshold::Static(bytes) => bytes.get(),
        }
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Sets priority flow control up, if the settings have it.
    ///
    /// # Panics
    /// If switches do not share their memory among ports.
    pub(super) fn start_pfc(&mut self) {
        let Some(config) = self.config.pfc else { return };
        let Buffer::Shared { per_switch, .. } = self.config.buffer else {
            panic!("priority flow control needs memory that ports share");
        };
        let fullest = self.topology.clone().with_fullest_links(self.faults.link_changes());
        let n_switches = self.topology.n_switches() as usize;
        let mut gauges = vec![Gauge::default(); self.ports.len()];
        let mut memory = vec![(0, per_switch.get()); n_switches];
        for number in self.n_interfaces as usize..self.ports.len() {
            let delay = |port: usize| {
                let (link, to) = self.routes.end(port as u32);
                fullest.links[link as usize].propagation + fullest.latency(to)
            };
            let via = self.opposite[number] as usize;
            let (link, to) = self.routes.end(via as u32);
            let rate = fullest.links[link as usize].rate_to(to);
            let (there, back) = (delay(via), delay(number));
            let own = config.headroom_of(rate, there, back, self.config.switching).get();
            gauges[number].headroom_end = u32::try_from(own).unwrap_or(u32::MAX);
            let total = &mut memory[self.ports[number].switch as usize].1;
            *total = total.saturating_sub(own);
        }
        let (paused_since, stats) = (vec![Time::ZERO; self.ports.len()], vec![]);
        self.pfc =
            Pfc { config: Some(config), gauges, memory, paused_since, stats, deadlocks: None };
        self.pfc.stats = vec![PfcStats::default(); self.stats.n_tiers()];
    }

    /// Returns the classes that all links of a host's plane stop, a bit each.
    pub(crate) fn stopped_classes(&self, host: u32, plane: usize) -> u8 {
        if !self.pfc.is_on() {
            return 0;
        }
        if let Some(port) = self.only_uplink(host) {
            return self.ports[port as usize].paused_priorities;
        }
        let ports =
            self.uplinks_by(host, plane).map(|port| self.ports[port as usize].paused_priorities);
        ports.fold(!0, |all, stopped| all & stopped)
    }

    /// Returns the port that a packet in a switch is charged to, if it is charged to one.
    pub(super) fn ingress_port(&self, handle: Handle, config: &PfcConfig) -> Option<u32> {
        let is_spared = config.stopped() & 1 << self.pool.get(handle).priority.get() == 0;
        self.ingress.port_of(handle).filter(|_| !is_spared)
    }

    /// Returns true if a packet may be queued at a port of `switch`, and charges its memory if so.
    #[inline(never)]
    pub(super) fn admit_paced(
        &mut self,
        switch: u32,
        handle: Handle,
        bytes: u32,
        now: Time,
        wheel: &mut Wheel,
    ) -> bool {
        let Some(config) = self.pfc.config else { return false };
        let ingress = self.ingress_port(handle, &config);
        let (used, total) = &mut self.pfc.memory[switch as usize];
        let free = total.saturating_sub(*used);
        let fits = u64::from(bytes) <= free;
        let Some(ingress) = ingress else {
            *used += u64::from(bytes) * u64::from(fits);
            return fits;
        };
        let gauge = &mut self.pfc.gauges[ingress as usize];
        let waiting = u64::from(gauge.shared) + u64::from(bytes);
        if fits && gauge.headroom == 0 && waiting <= Pfc::threshold(&config, free) {
            *used += u64::from(bytes);
            gauge.shared += bytes;
            return true;
        }
        let admitted = gauge.headroom + bytes <= gauge.headroom_end;
        if admitted {
            gauge.headroom += bytes;
            let via = self.opposite[ingress as usize];
            let tier = &mut self.pfc.stats[self.ports[via as usize].tier as usize];
            let taken = Bytes::new(u64::from(gauge.headroom));
            tier.headroom_max = tier.headroom_max.max(taken);
        }
        if !std::mem::replace(&mut gauge.is_pausing, true) {
            self.send_pause(ingress, true, now, wheel);
        }
        admitted
    }

    /// Frees the memory of a packet that a port of `switch` has sent. The other end of the link by
    /// which it arrived may resume.
    #[inline(never)]
    pub(super) fn release_paced(
        &mut self,
        switch: u32,
        handle: Handle,
        now: Time,
        wheel: &mut Wheel,
    ) {
        let Some(config) = self.pfc.config else { return };
        if switch as usize >= self.pfc.memory.len() {
            return;
        }
        let bytes = u32::from(self.pool.get(handle).wire_bytes.max(self.config.buffer_cell));
        let ingress = self.ingress_port(handle, &config);
        let (used, total) = &mut self.pfc.memory[switch as usize];
        let Some(ingress) = ingress else {
            *used -= u64::from(bytes);
            return;
        };
        let gauge = &mut self.pfc.gauges[ingress as usize];
        let from_headroom = gauge.headroom.min(bytes);
        gauge.headroom -= from_headroom;
        gauge.shared -= bytes - from_headroom;
        *used -= u64::from(bytes - from_headroom);
        let (shared, headroom) = (gauge.shared.into(), gauge.headroom.into());
        let free = total.saturating_sub(*used);
        if gauge.is_pausing && config.is_clear(shared, headroom, free) {
            gauge.is_pausing = false;
            self.send_pause(ingress, false, now, wheel);
        }
    }

    /// Sends a pause, or the end of one, to the port at the other end of `ingress`'s link.
    fn send_pause(&mut self, ingress: u32, pauses: bool, now: Time, wheel: &mut Wheel) {
        let via = self.opposite[ingress as usize];
        let at = now + self.ports[ingress as usize].delay;
        let tier = self.ports[via as usize].tier as usize;
        self.pfc.stats[tier].pauses += u64::from(pauses);
        wheel.push(packet_event(at, PFC, via, u32::from(pauses)));
    }

    /// Handles the start or the end of a pause at a port.
    #[cold]
    pub(crate) fn on_pause(&mut self, number: u32, pauses: bool, now: Time, wheel: &mut Wheel) {
        let port = &mut self.ports[number as usize];
        let stopped = self.pfc.config.map_or(0, |config| config.stopped());
        let stopped = if discipline::pauses_all(P::QUEUEING) { !0 } else { stopped };
        port.paused_priorities = if pauses { stopped } else { 0 };
        if pauses {
            self.pfc.paused_since[number as usize] = now;
            return;
        }
        self.pfc.stats[port.tier as usize].paused += now - self.pfc.paused_since[number as usize];
        if !port.has_wakeup {
            port.has_wakeup = true;
            wheel.push(event(port.busy_until.max(now), WAKE, number));
        }
    }

    /// Counts the time until `now` for ports that are still paused.
    pub(crate) fn count_pauses(&mut self, now: Time) {
        for (port, since) in self.ports.iter().zip(&mut self.pfc.paused_since) {
            if port.paused_priorities != 0 {
                self.pfc.stats[port.tier as usize].paused += now - *since;
                *since = now;
            }
        }
    }

    /// Returns the counters of priority flow control by tier; `None` if it is off. The time of
    /// ports that are paused at this moment is added at the end of the run.
    pub fn pfc_stats(&self) -> Option<&[PfcStats]> {
        self.pfc.is_on().then_some(self.pfc.stats.as_slice())
    }

    /// Checks that shared memory and headroom hold all queues of switches.
    pub(super) fn check_pfc(&self) {
        if !self.pfc.is_on() {
            return;
        }
        let headroom: u64 = self.pfc.gauges.iter().map(|g| u64::from(g.headroom)).sum();
        let shared: u64 = self.pfc.memory.iter().map(|m| m.0).sum();
        let used: u64 = self.used_bytes[..self.used_bytes.len() - 1].iter().sum();
        assert!(shared + headroom == used, "{shared} B shared, {headroom} B headroom of {used} B");
    }
}

impl FabricConfig {
    /// Returns true if ports may be paused. Hosts then check a port's state before they send.
    pub(crate) fn has_pauses(&self) -> bool {
        self.pfc.is_some()
    }
}
