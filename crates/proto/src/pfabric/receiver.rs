//! The destination's side: arrival, and an acknowledgement a packet.

use rampmeter_core::collections::{IdMap, SeqSet};
use rampmeter_core::{Bytes, Event, MsgId, NodeId, Receipt, Time};

use super::config::Pfabric;
use super::wire::{PfabricHeader, SACK_BITS};
use crate::shared::{FlowNumbers, Known, Output};

/// A flow as each of its packets describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described {
    pub(super) src: NodeId,
    pub(super) msg: MsgId,
    pub(super) flow: u32,
    pub(super) tx_slot: u32,
    pub(super) size: u64,
}

#[derive(Debug)]
struct RxFlow {
    msg: MsgId,
    packets: u32,
    heard: Time,
    got: SeqSet,
}

/// The receiver of one host.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Flows that are not complete, by source and number.
    flows: IdMap<(u32, u32), RxFlow>,
    pub(super) numbers: FlowNumbers,
    /// When flows whose source is gone are looked for next.
    search_at: Time,
}

impl Receiver {
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// A packet of a flow, or a probe if it has no number. Everything is answered with what has
    /// arrived.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        of: Described,
        seq: Option<u32>,
        pfabric: &Pfabric,
        out: &mut Output<PfabricHeader>,
    ) -> Receipt {
        let packets = pfabric.framing().packets(Bytes::new(of.size));
        if seq.is_some_and(|seq| seq >= packets) {
            return Receipt::Ignored;
        }
        if now >= self.search_at {
            self.search_at = now.saturating_add(pfabric.forget);
            self.forget_silent(now, pfabric, out);
        }
        let key = (of.src.get(), of.flow);
        if !self.flows.contains_key(&key) {
            match self.numbers.known(of.src, of.flow) {
                Known::Abandoned => return Receipt::Ignored,
                Known::Entered => {
                    acknowledge(&of, packets, 0, out);
                    return if seq.is_some() { Receipt::Duplicate } else { Receipt::Control };
                }
                Known::New if !self.numbers.enter(of.src, of.flow) => return Receipt::Ignored,
                Known::New => {
                    let flow = RxFlow { msg: of.msg, packets, heard: now, got: SeqSet::default() };
                    self.flows.insert(key, flow);
                }
            }
        }
        let Some(flow) = self.flows.get_mut(&key) else { return Receipt::Ignored };
        flow.heard = now;
        let receipt = match seq {
            None => Receipt::Control,
            Some(seq) if seq >= flow.packets => return Receipt::Ignored,
            Some(seq) if flow.got.insert(seq) => Receipt::Fresh,
            Some(_) => Receipt::Duplicate,
        };
        let cumulative = flow.got.first_missing();
        let is_complete = cumulative == flow.packets;
        acknowledge(&of, cumulative, sack(&flow.got), out);
        if is_complete {
            self.flows.remove(&key);
            self.numbers.complete(of.src);
            out.say(Event::Delivered { src: of.src, msg: of.msg });
        }
        receipt
    }

    pub(super) fn has_delivered(&mut self, src: NodeId, flow: u32) -> bool {
        !self.flows.contains_key(&(src.get(), flow))
            && self.numbers.known(src, flow) == Known::Entered
    }

    fn forget_silent(&mut self, now: Time, pfabric: &Pfabric, out: &mut Output<PfabricHeader>) {
        let stale = |f: &RxFlow| now.saturating_since(f.heard) > pfabric.forget;
        for (&(src, flow), state) in self.flows.iter().filter(|(_, f)| stale(f)) {
            let src = NodeId::new(src);
            self.numbers.abandon(src, flow);
            out.say(Event::Abandoned { src, msg: state.msg });
        }
        self.flows.retain(|_, f| !stale(f));
    }

    /// The source has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<PfabricHeader>) {
        for (_, state) in self.flows.iter().filter(|((src, _), _)| *src == peer.get()) {
            out.say(Event::Abandoned { src: peer, msg: state.msg });
        }
        self.flows.retain(|(src, _), _| *src != peer.get());
        self.numbers.reset(peer);
    }
}

fn acknowledge(of: &Described, cumulative: u32, sack: u64, out: &mut Output<PfabricHeader>) {
    let ack = PfabricHeader::Ack { tx_slot: of.tx_slot, cumulative, sack };
    out.send(of.src, of.msg, ack);
}

/// Which packets from the first missing one on have arrived.
fn sack(got: &SeqSet) -> u64 {
    if got.len() == got.first_missing() {
        return 0;
    }
    let has = |bit: u32| u64::from(got.contains(got.first_missing().saturating_add(bit))) << bit;
    (0..SACK_BITS).map(has).sum()
}
