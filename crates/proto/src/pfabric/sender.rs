//! The source's side: flows start at line rate and slow down only when they starve (§4.3).

use rampmeter_core::collections::Slab;
use rampmeter_core::{Event, Message, MsgId, NodeId, Packet, Priority, Time};

use super::PfabricStats;
use super::config::{Pfabric, Starving};
use super::wire::{PfabricHeader, SACK_BITS};
use crate::shared::{NextNumber, Outgoing, Output, Timers};

#[derive(Debug)]
struct TxFlow {
    dst: NodeId,
    msg: MsgId,
    flow: u32,
    packets: u32,
    size: u64,
    /// Every packet below has been acknowledged.
    cumulative: u32,
    /// Bit i tells whether packet `cumulative + i` has been acknowledged.
    sack: u64,
    /// The next packet to look at.
    next: u32,
    window: u32,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    /// When the flow times out; it does not while nothing is in flight.
    times_out: Time,
    /// Its valid entry in the timer heap.
    timer_at: Time,
    is_ready: bool,
}

impl TxFlow {
    fn remaining(&self) -> u32 {
        self.packets - self.cumulative
    }

    /// The next packet that the window lets go, unless the flow only probes.
    fn sendable(&self, pfabric: &Pfabric) -> Option<u32> {
        if is_starving(self.timeouts, pfabric) {
            return None;
        }
        let end = self.packets.min(self.cumulative.saturating_add(self.window));
        let is_missing = |&seq: &u32| {
            let bit = seq - self.cumulative;
            bit >= SACK_BITS || self.sack >> bit & 1 == 0
        };
        (self.next.max(self.cumulative)..end).find(is_missing)
    }
}

fn is_starving(timeouts: u32, pfabric: &Pfabric) -> bool {
    timeouts >= pfabric.config.starving_after && pfabric.config.starving == Starving::Probe
}

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    node: NodeId,
    flows: Slab<TxFlow>,
    numbers: NextNumber,
    /// Slots of flows that may send.
    ready: Vec<u32>,
    timers: Timers<(u32, MsgId)>,
}

impl Sender {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            flows: Slab::default(),
            numbers: NextNumber::default(),
            ready: Vec::new(),
            timers: Timers::default(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.timers.next()
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn submit(&mut self, message: Message, pfabric: &Pfabric) {
        let Message { id: msg, dst, size, .. } = message;
        let slot = self.flows.insert(TxFlow {
            dst,
            msg,
            flow: self.numbers.take(dst),
            packets: pfabric.framing().packets(size),
            size: size.get(),
            cumulative: 0,
            sack: 0,
            next: 0,
            window: pfabric.window,
            timeouts: 0,
            times_out: Time::NEVER,
            timer_at: Time::NEVER,
            is_ready: true,
        });
        self.ready.push(slot);
    }

    pub(super) fn on_ack(
        &mut self,
        now: Time,
        msg: MsgId,
        (slot, cumulative, sack): (u32, u32, u64),
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
    ) {
        let Some(flow) = self.flows.get_mut(slot).filter(|f| f.msg == msg) else { return };
        if cumulative > flow.packets || cumulative < flow.cumulative {
            return;
        }
        flow.timeouts = 0;
        flow.times_out = now + pfabric.rto;
        if cumulative > flow.cumulative {
            flow.window = (flow.window + 1).min(pfabric.window_max);
            flow.cumulative = cumulative;
            flow.sack = sack;
        } else {
            flow.sack |= sack;
        }
        if cumulative == flow.packets {
            self.drop_flow(slot);
            out.say(Event::Completed { msg });
        } else {
            self.update(slot, pfabric);
        }
    }

    /// The message is not to be sent after all.
    pub(super) fn cancel(&mut self, msg: MsgId, out: &mut Output<PfabricHeader>) {
        let found = self.flows.iter().find(|(_, f)| f.msg == msg);
        let Some(slot) = found.map(|(slot, _)| slot) else { return };
        self.drop_flow(slot);
        out.cancel(msg, |header| matches!(header, PfabricHeader::Probe { .. }));
    }

    fn drop_flow(&mut self, slot: u32) {
        if self.flows.remove(slot).is_some_and(|f| f.is_ready) {
            self.ready.retain(|&s| s != slot);
        }
    }

    /// The destination has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PfabricHeader>) {
        let of_peer = self.flows.iter().filter(|(_, f)| f.dst == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        self.ready.retain(|slot| !slots.contains(slot));
        for flow in slots.into_iter().filter_map(|slot| self.flows.remove(slot)) {
            out.say(Event::Failed { msg: flow.msg });
        }
        self.numbers.reset(peer);
    }

    /// Enters the flow among those that may send, if it may.
    fn update(&mut self, slot: u32, pfabric: &Pfabric) {
        let flow = &mut self.flows[slot];
        if !flow.is_ready && flow.sendable(pfabric).is_some() {
            flow.is_ready = true;
            self.ready.push(slot);
        }
    }

    /// The next packet of the flow with the fewest remaining, the first submitted of equals.
    pub(super) fn next_data(
        &mut self,
        now: Time,
        pfabric: &Pfabric,
    ) -> Option<Packet<PfabricHeader>> {
        let mut best: Option<((u32, u32), usize, u32)> = None;
        let mut idx = 0;
        while let Some(&slot) = self.ready.get(idx) {
            let flow = &mut self.flows[slot];
            let Some(seq) = flow.sendable(pfabric) else {
                flow.is_ready = false;
                self.ready.swap_remove(idx);
                continue;
            };
            let key = (flow.remaining(), flow.msg.get());
            if best.is_none_or(|(least, ..)| key < least) {
                best = Some((key, idx, seq));
            }
            idx += 1;
        }
        let (_, idx, seq) = best?;
        let slot = self.ready[idx];
        let flow = &mut self.flows[slot];
        flow.next = seq + 1;
        if flow.times_out == Time::NEVER {
            flow.times_out = now + pfabric.rto;
        }
        if flow.timer_at == Time::NEVER {
            flow.timer_at = flow.times_out;
            self.timers.push(flow.timer_at, (slot, flow.msg));
        }
        let header = PfabricHeader::Data {
            flow: flow.flow,
            tx_slot: slot,
            seq,
            remaining: flow.remaining(),
            size: flow.size,
        };
        let (dst, msg, size) = (flow.dst, flow.msg, flow.size);
        if flow.sendable(pfabric).is_none() {
            flow.is_ready = false;
            self.ready.swap_remove(idx);
        }
        let message = Outgoing { src: self.node, dst, msg, size };
        Some(pfabric.framing().data(message, seq, Priority::new(1), header))
    }

    /// Flows that have heard nothing for a timeout start again with a window of one (§4.3).
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
        stats: &mut PfabricStats,
    ) {
        while let Some((at, (slot, msg))) = self.timers.pop_due(now) {
            let flow = self.flows.get_mut(slot).filter(|f| f.msg == msg && f.timer_at == at);
            let Some(flow) = flow else { continue };
            if flow.times_out <= now {
                stats.timeouts += 1;
                flow.timeouts += 1;
                if flow.timeouts > pfabric.config.attempts_max {
                    self.drop_flow(slot);
                    out.say(Event::Failed { msg });
                    continue;
                }
                flow.window = 1;
                flow.next = flow.cumulative;
                flow.times_out = now + pfabric.rto;
                if is_starving(flow.timeouts, pfabric) {
                    stats.probes += 1;
                    let probe = PfabricHeader::Probe {
                        flow: flow.flow,
                        tx_slot: slot,
                        remaining: flow.remaining(),
                        size: flow.size,
                    };
                    out.send(flow.dst, msg, probe);
                }
            }
            flow.timer_at = flow.times_out;
            let next = flow.timer_at;
            self.timers.push(next, (slot, msg));
            self.update(slot, pfabric);
        }
    }
}
