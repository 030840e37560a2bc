//! Fastpod's parameters and what they imply for one network.

use std::ops::Range;

use rampmeter_types::{Bytes, FabricFacts, NodeId, Rate, Rng, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::slots::Slots;
use super::timing::{Instant, Timing, instant};
use super::topology::{Pod, Pods};
use super::wire::{POD_FLAG, REPORT_SLOTS};
use crate::keys::{BadKey, Keys, PacketSizes, Preset, check_ranges};
use crate::toolkit::{
    AttemptLimit, Padding, Segmentation, check_range, keepalive, paused_probe_interval,
    retransmit_gap,
};

/// Message to one destination that is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageOrder {
    /// The one with the fewest remaining cells.
    Srpt,
    /// The one that was submitted first.
    Fifo,
}

/// Fastpod's parameters. [`FastpodConfig::paper`] is the preset.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FastpodConfig {
    /// Arbiters: one, or one and its standby.
    #[schemars(range(min = 1, max = 2))]
    pub arbiters: u32,
    /// True if messages are sent before they are scheduled when nothing else waits (§3.3).
    pub optimistic: bool,
    /// Message to one destination that is sent first.
    pub message_order: MessageOrder,
    /// Slots from one control packet without content to the next, in each direction of each host.
    #[schemars(range(min = 1, max = 65_536))]
    pub beacon_slots: u32,
    /// Computation time of each slot at the arbiter; default: none. Slots are computed in parallel.
    #[serde(rename = "compute-us", with = "crate::keys::micros")]
    #[schemars(with = "Option<f64>", range(min = 0.0, max = 1e6))]
    pub compute: Option<Span>,
    /// Drift of clocks that guard bands allow for, in parts per million.
    #[serde(rename = "clock-drift-ppm", with = "crate::keys::milli")]
    #[schemars(with = "f64", range(min = 0.0, max = 1_000.0))]
    pub clock_ppb: u32,
    /// Error of a time stamp that guard bands allow for, in nanoseconds.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub clock_jitter_ns: u32,
    /// Error of a time stamp at each end, either way, in nanoseconds. Guard bands allow for
    /// `clock-jitter-ns`; without an error simulated clocks are read exactly.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub timestamp_error_ns: u32,
    /// Charged length of last cells.
    pub padding: Padding,
    /// True if short packets to one destination share a scheduled cell, in the order of the queue
    /// (§3.2). Last packets are then charged their length, at least `control-bytes`.
    pub packing: bool,
    /// Lengths of full packets.
    #[serde(flatten)]
    pub packet: PacketSizes,
    /// Bytes charged to an RTS or SCHD.
    #[serde(rename = "control-bytes")]
    #[schemars(with = "u64", range(min = 46, max = 1_000))]
    pub control: Bytes,
    /// Cells for one pod that a core switch holds before arbiters of other pods are notified that
    /// they may not send more by it (§3.4).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub core_queue_cells: u32,
    /// Cells of all pods together that a core switch holds before it notifies arbiters not to send
    /// more by it (§3.4).
    #[schemars(range(min = 1, max = 16_000_000))]
    pub core_buffer_cells: u32,
    /// Unanswered repetitions after which a flow is reported as failed.
    #[schemars(range(min = 1, max = 1000))]
    pub attempts_max: u32,
}

impl Default for FastpodConfig {
    fn default() -> Self {
        Self::paper()
    }
}

impl Keys for FastpodConfig {
    const PRESETS: &'static [Preset<Self>] = &[("paper", FastpodConfig::paper)];
}

impl FastpodConfig {
    /// Returns the paper's evaluation (§5): cells of 1500 bytes, control packets of 64, one
    /// arbiter, and clocks that agree.
    pub fn paper() -> Self {
        Self {
            arbiters: 1,
            optimistic: true,
            message_order: MessageOrder::Srpt,
            beacon_slots: 64,
            compute: None,
            clock_ppb: 0,
            clock_jitter_ns: 0,
            timestamp_error_ns: 0,
            padding: Padding::Full,
            packing: false,
            packet: PacketSizes::new(1460, 40),
            control: Bytes::new(64),
            core_queue_cells: 512,
            core_buffer_cells: 2_048,
            attempts_max: 24,
        }
    }

    /// Checks the parameters and derives what follows from them on a network. Without pods there
    /// are no source routes, and delays are taken as a quarter of `control_rtt` a hop.
    ///
    /// # Errors
    /// A parameter out of range, or a pod that no arbiter of Fastpod can schedule.
    pub fn derive(self, facts: &FabricFacts, pods: Option<Pods>) -> Result<Fastpod, BadKey> {
        check_ranges(&self)?;
        let attempt_limit = AttemptLimit::with_doubling(self.attempts_max, facts);
        let hosts = self.largest_pod(facts, pods.as_ref())?;
        let all = pods.iter().flat_map(|pods| &pods.pods);
        let rate = pods.as_ref().map_or(facts.access_rate, |pods| pods.pods[0].rate);
        let compute = self.compute.unwrap_or(Span::ZERO);
        let timings = |slots| timings(facts, pods.as_ref(), slots, compute, self.packing);
        let perfect = self.slots(rate, hosts);
        let ahead = max_over(&timings(perfect), |timing| timing.lead_slots);
        let spreads = all.map(|pod| pod.trunk_propagation.1 - pod.trunk_propagation.0);
        let spread = spreads.max().unwrap_or(Span::ZERO);
        let clock_error = self.clock_error(&perfect, ahead)?;
        // A clock that is set may pass over an instant by as much as it was wrong.
        let slots = Slots { error: clock_error * 2 + spread, ..perfect };
        let timings = timings(slots);
        let has_standby = pods.is_some() && self.arbiters > 1;
        let has_place = |timing: &Timing| !has_standby || timing.watchdog_at.is_some();
        if slots.cell < slots.shortest_cell() || !timings.iter().all(has_place) {
            return Err(self.short_slot_error(&slots, has_standby));
        }
        let lead_slots = max_over(&timings, |timing| timing.lead_slots);
        let answer_time = max_over(&timings, |timing| timing.answer_time);
        let slot = slots.length();
        let beacon = slot * u64::from(self.beacon_slots);
        let (retry, rto) = (answer_time * 2 + slot * 4, answer_time * 4 + slot * 64);
        // A message to another pod, and its acknowledgement, wait for two arbiters each. All core
        // switches may hold full queues of cells to its receiver.
        let n_cores = pods.as_ref().map_or(0, |pods| pods.cores.len() as u64);
        let queues = slots.cell * u64::from(self.core_queue_cells) * n_cores;
        let rto_far = rto * 2 + queues;
        let attempts = (retry + beacon * 2) * u64::from(self.attempts_max) * 64;
        // Hosts report their epoch at least once per beacon interval.
        let listen_slots = ((lead_slots + 2) * TAKEOVER).max(2 * u64::from(self.beacon_slots));
        let listen_time = slot * listen_slots + answer_time * 4;
        let keepalive = keepalive(facts, self.packet.wire());
        Ok(Fastpod {
            n_hosts: facts.n_hosts,
            rate,
            slots,
            slot,
            rto,
            rto_far,
            retry,
            unresponsive_after: retry + beacon * 2,
            late_max: clock_error,
            missed_max: clock_error.saturating_sub(self.drift(slot)),
            clock_lifetime: match self.clock_ppb {
                0 if has_standby => listen_time,
                0 => Span::MAX,
                _ => self.clock_lifetime(slot, lead_slots),
            },
            report_slots: match pods {
                Some(_) => u64::from(self.beacon_slots).min(REPORT_SLOTS),
                None => u64::MAX / 2,
            },
            lead_slots,
            answer_time,
            watchdog_slots: lead_slots + 2,
            listen_time,
            paused_probe_interval: paused_probe_interval(keepalive),
            retransmit_gap: retransmit_gap(facts),
            // Longer than a message waits before it is retransmitted.
            forget_timeout: attempt_limit.forget_timeout(attempts.max(rto_far * 128)),
            attempt_limit,
            timings,
            pods,
            config: self,
        })
    }

    /// Returns the number of hosts of the largest pod.
    ///
    /// # Errors
    /// More than [`POD_FLAG`] hosts, or a pod that no arbiter of Fastpod can schedule.
    fn largest_pod(&self, facts: &FabricFacts, pods: Option<&Pods>) -> Result<u16, BadKey> {
        if facts.n_hosts > POD_FLAG.into() {
            let expected = format!("a transport for {} hosts", facts.n_hosts);
            let got = format!("fastpod, which supports {POD_FLAG}");
            return Err(BadKey::new("name", expected, got));
        }
        let mut hosts = if pods.is_some() { 0 } else { HOSTS_DEFAULT };
        for pod in pods.iter().flat_map(|pods| &pods.pods) {
            hosts = hosts.max(self.pod_hosts(pod)?);
        }
        Ok(hosts)
    }

    /// Returns the segmentation of messages.
    pub(super) fn segmentation(&self) -> Segmentation {
        self.packet.segmentation(if self.packing { Padding::Exact } else { self.padding })
    }

    /// Cells between which control packets with their guard bands find no place.
    fn short_slot_error(&self, slots: &Slots, has_standby: bool) -> BadKey {
        let ns = |span: Span| span.as_ps().div_ceil(1_000);
        // With nine control slots arbiters' packets to one another always find a place.
        let least = slots.control_slot() * if has_standby { 9 } else { 2 };
        let control = ns(slots.control_slot());
        let why = format!("as a control packet and its guard bands take {control} ns");
        let expected = format!("cells of {} ns or more, {why}", ns(least));
        let (payload, header) = (self.packet.payload.get(), self.packet.header.get());
        let got = format!("{payload} and {header} of header: {} ns", ns(slots.cell));
        BadKey::new("payload-bytes", expected, got)
    }

    /// Returns the slots of racks of this many hosts, if clocks agree.
    pub(super) fn slots(&self, rate: Rate, hosts: u16) -> Slots {
        let cell = rate.tx_time(self.packet.wire());
        Slots { hosts, cell, control: rate.tx_time(self.control), error: Span::ZERO }
    }

    /// Returns the hosts of a rack of a pod that can be scheduled.
    fn pod_hosts(&self, pod: &Pod) -> Result<u16, BadKey> {
        if self.padding == Padding::Exact {
            let expected = "full in pods without memory: instants are those of whole cells";
            return Err(BadKey::new("padding", expected, "exact"));
        }
        let hosts = pod.hosts.iter().map(|host| host.index + 1).max().unwrap_or(0);
        let n_aggs = pod.ports_to_rack.len();
        if !(2..=n_aggs).contains(&usize::from(hosts)) {
            let expected = format!("a transport for {hosts} hosts a rack under {n_aggs} switches");
            return Err(BadKey::new("name", expected, "fastpod, which supports 2 to as many"));
        }
        let arbiters = pod.arbiter_propagation.iter().map(Vec::len).min().unwrap_or(0);
        let expected = format!("at most the {arbiters} at the switch of every rack");
        check_range("arbiters", self.arbiters.into(), 1..=arbiters as u64, &expected)?;
        let expected = format!("the {} with which switches forward, or more", pod.header.get());
        check_range("control-bytes", self.control.get(), pod.header.get()..=u64::MAX, &expected)?;
        Ok(hosts)
    }
}

/// Returns the times of all pods; of another network as those of one.
fn timings(
    facts: &FabricFacts,
    pods: Option<&Pods>,
    slots: Slots,
    compute: Span,
    packing: bool,
) -> Vec<Timing> {
    let of_pod = |pod, cores| match packing {
        true => Timing::of_pod(pod, cores, slots, compute).with_packing(),
        false => Timing::of_pod(pod, cores, slots, compute),
    };
    match pods {
        None => vec![Timing::without_pods(facts, slots, compute)],
        Some(Pods { pods, cores }) => pods.iter().map(|pod| of_pod(pod, cores)).collect(),
    }
}

/// Returns the greatest of what follows from the times of pods.
fn max_over<T: Ord + Default>(timings: &[Timing], value: impl Fn(&Timing) -> T) -> T {
    timings.iter().map(value).max().unwrap_or_default()
}

/// Hosts of a rack if racks are not known: those of the paper's pod.
pub(super) const HOSTS_DEFAULT: u16 = 4;
/// Watchdog intervals without a sign of the other arbiter after which an arbiter takes over.
const TAKEOVER: u64 = 4;

/// The parameters of Fastpod on one network: a configuration that has been checked, and the times
/// and counts that follow from it.
#[derive(Clone, PartialEq)]
pub struct Fastpod {
    /// The parameters.
    pub config: FastpodConfig,
    /// Number of hosts; arbiters' numbers follow.
    pub n_hosts: u32,
    /// The pods that the network is made of, if it is.
    pub pods: Option<Pods>,
    /// Rate of the links of hosts.
    pub rate: Rate,
    /// Times of all packets in a slot.
    pub slots: Slots,
    /// Length of a slot.
    pub slot: Span,
    /// Times of slots at each host and arbiter of each pod; outside datacenters all are of one pod.
    pub timings: Vec<Timing>,
    /// Maximum number of slots between an SCHD and the slot that it gives.
    pub lead_slots: u64,
    /// Maximum time from an RTS with a request to the SCHD that answers.
    pub answer_time: Span,
    /// Time after which a message that has not been acknowledged is retransmitted.
    pub rto: Span,
    /// The same for a message to another pod.
    pub rto_far: Span,
    /// Time after which a host repeats an RTS that has not been answered.
    pub retry: Span,
    /// Time after which a waiting host regards its arbiter as unresponsive.
    pub unresponsive_after: Span,
    /// Maximum lateness of a packet in a pod. A clock that is set may pass over an instant, and one
    /// that runs fast puts cells closer together than the link can take them.
    pub late_max: Span,
    /// Maximum age of the instant of a packet when it is made. It is less than `late_max` by the
    /// time that a clock may gain in a slot, as the packets that follow wait for this one.
    pub missed_max: Span,
    /// Time for which a clock may be used after it was set. A host without a packet from its
    /// arbiter for longer sends nothing. Clocks that do not drift may differ from the start. With a
    /// standby they are used for its patience, so that hosts stop before it takes over; without one
    /// they are used forever.
    pub clock_lifetime: Span,
    /// Slots from one report of a host in a pod to the next, while it has something to report and
    /// RTSs without demands.
    pub report_slots: u64,
    /// Slots from one sign of an arbiter to the other to the next.
    pub watchdog_slots: u64,
    /// Time for which an arbiter listens before it takes over.
    pub listen_time: Span,
    /// Time after which a receiver forgets a message whose sender is unresponsive.
    pub forget_timeout: Span,
    /// Unanswered attempts after which a message fails.
    pub attempt_limit: AttemptLimit,
    /// Interval at which a sender probes a receiver whose flow control pauses a message.
    pub paused_probe_interval: Span,
    /// Time between probes for two paused messages, if many are due.
    pub retransmit_gap: Span,
}

/// Omits derived values: they are long, and the same in every part of a run.
impl std::fmt::Debug for Fastpod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { n_hosts, slot, .. } = self;
        f.debug_struct("Fastpod")
            .field("n_hosts", n_hosts)
            .field("slot", slot)
            .finish_non_exhaustive()
    }
}

impl Fastpod {
    #[inline]
    pub(super) fn segmentation(&self) -> Segmentation {
        self.config.segmentation()
    }

    /// Returns the time stamp of an SCHD that is sent at `now`, with the errors of both ends.
    pub(super) fn stamp(&self, now: Time, rng: &mut Rng) -> u64 {
        let most = i64::from(self.config.timestamp_error_ns) * 1_000;
        if most == 0 {
            return now.as_ps();
        }
        let mut error = || rng.uniform_below(2 * most as usize + 1) as i64 - most;
        now.as_ps().saturating_add_signed(error() + error())
    }

    /// Returns true if packets may be sent only at their instants.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.pods.is_some()
    }

    /// Returns the earliest instant of packets that may still be made: in pods a little late,
    /// elsewhere any.
    pub(super) fn earliest(&self, now: Time) -> Instant {
        match self.is_exact() {
            true => instant(now) - i128::from(self.missed_max.as_ps()),
            false => Instant::MIN,
        }
    }

    /// Returns the number of pods; 1 outside datacenters.
    #[inline]
    pub(super) fn n_pods(&self) -> u16 {
        self.timings.len() as u16
    }

    /// Returns the number of core switches.
    #[inline]
    pub(super) fn n_cores(&self) -> u16 {
        self.pods.as_ref().map_or(0, |pods| pods.cores.len() as u16)
    }

    #[inline]
    pub(super) fn pod_of(&self, host: u16) -> u16 {
        // Pods have as many hosts.
        match self.timings.len() {
            1 => 0,
            _ => (u32::from(host) / self.timings[0].n_hosts()) as u16,
        }
    }

    #[inline]
    pub(super) fn hosts_of(&self, pod: u16) -> Range<u32> {
        let (pod, n) = (u32::from(pod), self.timings[0].n_hosts());
        pod * n..(pod + 1) * n
    }

    /// The number of a host among the ends of its pod.
    #[inline]
    pub(super) fn end_of(&self, host: u16) -> u16 {
        match self.timings.len() {
            1 => host,
            _ => (u32::from(host) % self.timings[0].n_hosts()) as u16,
        }
    }

    /// The number of a core switch among the ends of each pod.
    #[inline]
    pub(super) fn end_of_core(&self, core: u16) -> u16 {
        self.timings[0].n_hosts() as u16 + core
    }

    /// Returns the target of a request: the destination host, or its pod with [`POD_FLAG`].
    #[inline]
    pub(super) fn target(&self, pod: u16, dst: u16) -> u16 {
        match self.pod_of(dst) {
            own if own == pod => dst,
            other => POD_FLAG | other,
        }
    }

    /// Returns the times of the pod with this number.
    #[inline]
    pub(super) fn timing(&self, pod: u16) -> &Timing {
        &self.timings[usize::from(pod)]
    }

    /// Returns the number of a host in its rack.
    #[inline]
    pub(super) fn place(&self, host: u16) -> u16 {
        self.timing(self.pod_of(host)).place(self.end_of(host))
    }

    /// Returns the number of a core switch among those of an aggregation switch.
    #[inline]
    pub(super) fn core_place(&self, core: u16) -> u16 {
        self.timings[0].place(self.end_of_core(core))
    }

    /// Returns the numbers in their racks of a pair of hosts.
    #[inline]
    pub(super) fn pair(&self, src: u16, dst: u16) -> (u16, u16) {
        (self.place(src), self.place(dst))
    }

    /// Returns the arbiter of a pod with this number among those of the pod.
    #[inline]
    pub(super) fn arbiter(&self, pod: u16, which: u32) -> NodeId {
        NodeId::new(self.n_hosts + u32::from(pod) * self.config.arbiters + which)
    }

    /// Returns the pod of an arbiter and its number among those of the pod; `None` if the node is
    /// none.
    #[inline]
    pub(super) fn arbiter_of(&self, node: NodeId) -> Option<(u16, u32)> {
        let number = node.get().checked_sub(self.n_hosts)?;
        let pod = u16::try_from(number / self.config.arbiters).ok()?;
        (pod < self.n_pods()).then_some((pod, number % self.config.arbiters))
    }

    /// Returns the node number of a core switch in packets.
    #[inline]
    pub(super) fn core(&self, core: u16) -> NodeId {
        NodeId::new(self.arbiter(self.n_pods(), 0).get() + u32::from(core))
    }

    /// The core switch that packets call so; `None` if the node is none.
    #[inline]
    pub(super) fn core_of(&self, node: NodeId) -> Option<u16> {
        let core = node.get().checked_sub(self.core(0).get())?;
        u16::try_from(core).ok().filter(|&core| core < self.n_cores())
    }

    /// Maximum number of cells that a core switch ever holds. These are the cells of its limit, and
    /// those in flight to it when arbiters are notified. If packets share cells, their bytes count.
    pub fn core_cells_max(&self) -> u64 {
        let on_way = self.timings.iter().map(|timing| timing.in_flight_to_core).sum::<u64>();
        u64::from(self.config.core_buffer_cells) + on_way * u64::from(self.slots.cells())
    }
}
