//! A receiver that answers every packet with the set of arrived packets, for senders that
//! retransmit.

use rampmeter_types::collections::SeqSet;
use rampmeter_types::{NodeId, Receipt, Span, Time};

use super::{Announcement, ArrivingFlows, FlowStatus, Output};

/// Content of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckContent<'a> {
    /// Every packet below has arrived.
    pub cumulative: u32,
    /// Packets that have arrived; `None` if the flow has ended.
    pub received: Option<&'a SeqSet>,
    /// The packet, unless it was a probe.
    pub seq: Option<u32>,
    /// True if flow control pauses the flow.
    pub is_paused: bool,
}

/// The receiver of one host.
#[derive(Debug, Default)]
pub struct AckReceiver {
    /// Flows that are not complete.
    pub flows: ArrivingFlows<()>,
}

impl AckReceiver {
    /// Takes packet `seq` of a flow, or a probe if there is no number, and sends the
    /// acknowledgement that `ack` makes. Flows whose source has been unresponsive for longer than
    /// `forget` are abandoned.
    pub fn on_packet<H>(
        &mut self,
        now: Time,
        announcement: Announcement,
        seq: Option<u32>,
        forget: Span,
        out: &mut Output<H>,
        ack: impl Fn(&AckContent<'_>) -> H,
    ) -> Receipt {
        if seq.is_some_and(|seq| seq >= announcement.packets) {
            return Receipt::Ignored;
        }
        self.flows.sweep(now, forget, out);
        let slot = match self.flows.find(&announcement) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::New => match self.flows.insert(now, announcement, ()) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::Delivered => {
                let all = AckContent {
                    cumulative: announcement.packets,
                    received: None,
                    seq,
                    is_paused: false,
                };
                out.send(announcement.src, announcement.msg, ack(&all));
                return if seq.is_some() { Receipt::Duplicate } else { Receipt::Control };
            }
        };
        let flow = &mut self.flows[slot];
        // Only a damaged packet is beyond the length that the first one of its flow carried.
        if seq.is_some_and(|seq| seq >= flow.announcement.packets) {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        let receipt = match seq {
            None => Receipt::Control,
            Some(seq) if flow.received.insert(seq) => Receipt::Fresh,
            Some(_) => Receipt::Duplicate,
        };
        let cumulative = flow.received.first_missing();
        let is_complete = cumulative == flow.announcement.packets;
        let (received, is_paused) = (Some(&flow.received), flow.is_paused);
        out.send(
            announcement.src,
            announcement.msg,
            ack(&AckContent { cumulative, received, seq, is_paused }),
        );
        if is_complete {
            self.flows.deliver(slot, out);
        }
        receipt
    }

    /// Abandons the flows of a source that has lost its state.
    pub fn forget_peer<H>(&mut self, peer: NodeId, out: &mut Output<H>) {
        self.flows.forget_peer(peer, out, |_, _| {});
    }
}

/// Returns a bitmap of the arrived packets among the 64 from the first missing one on: bit i is the
/// i-th.
pub fn sack_bits(got: &SeqSet) -> u64 {
    if got.len() == got.first_missing() {
        return 0;
    }
    let has = |bit: u32| u64::from(got.contains(got.first_missing().saturating_add(bit))) << bit;
    (0..u64::BITS).map(has).sum()
}
