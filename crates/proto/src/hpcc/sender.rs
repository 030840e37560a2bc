//! The source's side: a window and a pace for each flow (§3.3, §4.2).
//!
//! A flow may send while fewer bytes than its window are in flight, at the rate W / T. Flows are
//! served in the order of the instants at which their pace allows a packet. This is round robin
//! among flows of equal rate. A window below a packet still allows one, at its pace.

use rampmeter_types::collections::{HeapPositions, KeyedHeap};
use rampmeter_types::{
    Event, Gauge, Message, MsgId, NodeId, Packet, Permission, Priority, Rate, Span, Stage, Time,
};

use super::config::{Hpcc, Recovery};
use super::control::{AckTelemetry, Control};
use super::stats::HpccStats;
use super::wire::{HpccHeader, Records};
use crate::toolkit::{Ack, AckEffect, OutgoingFlows, Output, RttEstimator, Stream, Window};

/// The class of data, below that of acknowledgements.
const DATA: Priority = Priority::new(1);

/// The window of one flow, in packets for its [`Stream`].
#[derive(Debug)]
pub(super) struct FlowWindow {
    control: Control,
    rtt: RttEstimator,
    /// Timeout before a round trip is measured.
    initial_timeout: Span,
    /// Time before which no timeout expires: a flow that switches pause has its first samples
    /// before a long pause.
    first_due: Time,
    cwnd: u32,
    pace: Rate,
    is_selective: bool,
}

impl FlowWindow {
    /// Creates the window; `known` is the last timeout of the host's other flows.
    fn new(dst: NodeId, known: Option<Span>, hpcc: &Hpcc) -> Self {
        let rtt = hpcc.timeouts_to(dst);
        let mut paced = Self {
            control: Control::new(hpcc.windows_to(dst)),
            initial_timeout: known
                .map_or(rtt.timeout(0), |known| rtt.first_timeout(known * FIRST_TIMES)),
            first_due: Time::ZERO,
            rtt,
            cwnd: 1,
            pace: Rate::from_gbps(1),
            is_selective: hpcc.config.recovery == Recovery::SelectiveRepeat,
        };
        paced.update_from_control(hpcc);
        paced
    }

    /// Returns the timeout after `attempts` in a row.
    fn timeout(&self, attempts: u32) -> Span {
        match self.rtt.smoothed_rtt() {
            Some(_) => self.rtt.timeout(attempts),
            None => (self.initial_timeout * (1 << attempts.min(16))).min(self.rtt.timeout(0)),
        }
    }

    /// Sets window and pace to the values of the control.
    fn update_from_control(&mut self, hpcc: &Hpcc) {
        let window = self.control.window();
        self.cwnd =
            ((window / hpcc.segmentation().full_wire_bytes().get() as f64).ceil() as u32).max(1);
        let bps = (window * 8e12 / self.control.rtt().as_ps() as f64) as u64;
        self.pace = Rate::from_bps(bps.max(1)).unwrap_or(self.pace);
    }
}

impl Window for FlowWindow {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// A message stays on one path, on which packets do not overtake one another.
    fn reorder_max(&self) -> Option<u32> {
        self.is_selective.then_some(1)
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        if let Some(rtt) = acked.rtt {
            self.rtt.sample(rtt);
        }
    }

    /// Telemetry alone changes the window.
    fn on_timeout(&mut self, _now: Time) {}

    fn pacing(&self) -> Option<Rate> {
        Some(self.pace)
    }
}

/// Multiple of other flows' timeout after which the first packets of a flow are retransmitted: its
/// path may be a busier one.
const FIRST_TIMES: u64 = 4;

pub(crate) const WINDOW: &Stage =
    &Stage { name: "window", meaning: "As many bytes are in flight as the window allows (§3.3)." };

pub(crate) const PACING: &Stage = &Stage {
    name: "pacing",
    meaning: "The pace of the flow allows the next packet later (§4.2).",
};

/// Stages at which messages wait for permission to send.
pub(crate) const STAGES: &[&Stage] = &[WINDOW, PACING];

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    flows: OutgoingFlows<Stream<FlowWindow>>,
    /// Flows that may send, by the instant from which their pace allows it.
    ready: KeyedHeap<(Time, u32)>,
    /// Flows whose window is open and whose pace allows a packet later.
    paced: KeyedHeap<(Time, u32)>,
    positions: HeapPositions,
    /// The latest timeout that follows from a measured round trip.
    measured_timeout: Option<Span>,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        let (ready, paced, positions) =
            (KeyedHeap::default(), KeyedHeap::default(), HeapPositions::default());
        Self { flows: OutgoingFlows::new(node), ready, paced, positions, measured_timeout: None }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        let paced = self.paced.first().map_or(Time::NEVER, |((at, _), _)| at);
        self.flows.deadline().min(paced)
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Reports the windows of all flows.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        self.flows.gauges(each, |flow| {
            [
                ("window_bytes", flow.state.window.control.window() as u64),
                ("in_flight_packets", flow.state.in_flight().into()),
            ]
        });
    }

    /// Returns the permission of a message to send its next packet.
    pub(super) fn permission(&self, now: Time, msg: MsgId) -> Option<Permission> {
        let state = &self.flows[self.flows.slot(msg)?].state;
        Some(match state.sendable() {
            Some(_) if state.paced_until() <= now => Permission::Granted,
            Some(_) => Permission::Awaited(PACING),
            None => Permission::Awaited(WINDOW),
        })
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the window of a message in bytes.
    pub(super) fn window(&self, msg: MsgId) -> Option<f64> {
        let slot = self.flows.slot(msg)?;
        Some(self.flows[slot].state.window.control.window())
    }

    pub(super) fn submit(&mut self, now: Time, message: &Message, hpcc: &Hpcc) {
        let packets = hpcc.segmentation().packets(message.size);
        let state = Stream::new(packets, FlowWindow::new(message.dst, self.measured_timeout, hpcc));
        let slot = self.flows.submit(message, packets, state);
        self.update(now, slot);
    }

    pub(super) fn cancel(&mut self, msg: MsgId) {
        if let Some(slot) = self.flows.slot(msg) {
            self.drop_flow(slot);
        }
    }

    fn drop_flow(&mut self, slot: u32) {
        self.flows.remove(slot);
        self.ready.remove(&mut self.positions, slot);
        self.paced.remove(&mut self.positions, slot);
    }

    /// Handles a destination that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<HpccHeader>) {
        let Self { flows, ready, paced, positions, .. } = self;
        flows.forget_peer(peer, out, |slot, _| {
            ready.remove(positions, slot);
            paced.remove(positions, slot);
        });
    }

    /// Handles an acknowledgement or a NACK.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        msg: MsgId,
        header: &HpccHeader,
        hpcc: &Hpcc,
        out: &mut Output<HpccHeader>,
        stats: &mut HpccStats,
    ) {
        let &HpccHeader::Ack { tx_slot, cumulative, sack, is_go_back_n, path, ref records } =
            header
        else {
            return;
        };
        let Some(flow) = self.flows.get_current(tx_slot, msg) else { return };
        let ack = Ack { cumulative, sack, is_marked: false };
        if flow.state.on_ack(now, &ack).is_none() {
            // A NACK that a later acknowledgement has overtaken is still valid: the packets after
            // the missing one were dropped.
            if is_go_back_n {
                flow.state.on_timeout(now);
                self.update(now, tx_slot);
            }
            return;
        }
        let next = flow.state.sent();
        let window = &mut flow.state.window;
        let of = AckTelemetry { path, records };
        let follows = window.control.on_ack(of, cumulative, next, hpcc);
        stats.path_changes += u64::from(!follows);
        window.update_from_control(hpcc);
        let timeout = window.timeout(0);
        self.measured_timeout = Some(timeout);
        let due = (now + timeout).max(window.first_due);
        self.flows.on_response(tx_slot, due);
        let flow = &mut self.flows[tx_slot];
        if flow.state.is_done() {
            self.drop_flow(tx_slot);
            out.push_event(Event::Completed { msg });
            return;
        }
        if is_go_back_n {
            flow.state.on_timeout(now);
        }
        self.update(now, tx_slot);
    }

    /// Enters the flow among those that may send, those that will, or neither.
    fn update(&mut self, now: Time, slot: u32) {
        let flow = &self.flows[slot];
        let at = flow.state.paced_until();
        let key = (at, flow.msg.get());
        let is_open = flow.state.sendable().is_some();
        if is_open && at <= now {
            self.paced.remove(&mut self.positions, slot);
            self.ready.set(&mut self.positions, slot, key);
        } else {
            self.ready.remove(&mut self.positions, slot);
            match is_open {
                true => self.paced.set(&mut self.positions, slot, key),
                false => _ = self.paced.remove(&mut self.positions, slot),
            }
        }
    }

    /// Moves flows whose pace allows a packet now to those that may send.
    #[inline]
    fn wake(&mut self, now: Time) {
        while let Some((key, slot)) = self.paced.first().filter(|(key, _)| key.0 <= now) {
            self.paced.remove(&mut self.positions, slot);
            self.ready.set(&mut self.positions, slot, key);
        }
    }

    /// Returns the next packet of the flow whose pace has allowed one for longest.
    pub(super) fn next_data(&mut self, now: Time, hpcc: &Hpcc) -> Option<Packet<HpccHeader>> {
        self.wake(now);
        let (_, slot) = self.ready.first()?;
        let flow = &self.flows[slot];
        let seq = flow.state.sendable()?;
        let header = HpccHeader::Data {
            flow: flow.flow,
            tx_slot: slot,
            seq,
            size: flow.size,
            path: 0,
            records: Records::default(),
        };
        let packet = hpcc.segmentation().data(self.flows.message(slot), seq, DATA, header);
        let flow = &mut self.flows[slot];
        let was_idle = flow.state.in_flight() == 0;
        flow.state.send(now, seq, packet.wire_bytes);
        let window = &mut flow.state.window;
        let due = now + window.timeout(flow.retry.attempts());
        if window.first_due == Time::ZERO {
            window.first_due = due;
        }
        let due = due.max(window.first_due);
        if was_idle || !flow.retry.is_running() {
            self.flows.defer_timer(slot, due);
        }
        self.update(now, slot);
        Some(packet)
    }

    /// Returns flows without a packet for a timeout to the first packet that is missing.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        hpcc: &Hpcc,
        out: &mut Output<HpccHeader>,
        stats: &mut HpccStats,
    ) {
        self.wake(now);
        while let Some(slot) = self.flows.next_due(now) {
            let flow = &mut self.flows[slot];
            if flow.state.in_flight() == 0 {
                // Nothing is in flight: its pace or a pause holds it back. Sending starts the
                // timer.
                continue;
            }
            stats.timeouts += 1;
            if !flow.retry.attempt(now, &hpcc.attempt_limit) {
                let msg = flow.msg;
                self.drop_flow(slot);
                out.push_event(Event::Failed { msg });
                continue;
            }
            flow.state.on_timeout(now);
            let timeout = flow.state.window.timeout(flow.retry.attempts());
            self.flows.start_timer(slot, now + timeout);
            self.update(now, slot);
        }
    }
}
