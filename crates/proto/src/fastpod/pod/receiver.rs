//! Arrivals at a host. Cells may arrive more than once: unscheduled, scheduled, and retransmitted
//! if no acknowledgement has arrived.

use rampmeter_types::{NodeId, Receipt, Time};

use super::backlog::Backlog;
use crate::fastpod::config::Fastpod;
use crate::fastpod::wire::{ACKS_MAX, Ack, FastpodHeader, List};
use crate::toolkit::{Announcement, ArrivingFlows, FlowStatus, Output};

/// The messages that arrive at a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<()>,
    /// Messages that have arrived and that no RTS has reported.
    acks: Backlog<Ack>,
}

impl Receiver {
    /// Takes cell `seq` of a message.
    pub(super) fn on_cell(
        &mut self,
        now: Time,
        announcement: Announcement,
        seq: u32,
        fastpod: &Fastpod,
        out: &mut Output<FastpodHeader>,
    ) -> Receipt {
        if seq >= announcement.packets {
            return Receipt::Ignored;
        }
        self.flows.sweep(now, fastpod.forget_timeout, out);
        let slot = match self.flows.find(&announcement) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::New => match self.flows.insert(now, announcement, ()) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::Delivered => {
                // The acknowledgement is lost or in flight: it is repeated once a round.
                if seq + 1 == announcement.packets {
                    self.acknowledge(announcement);
                }
                return Receipt::Duplicate;
            }
        };
        let flow = &mut self.flows[slot];
        // Only a damaged packet is beyond the length that the first one of its flow carried.
        if seq >= flow.announcement.packets {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        if !flow.received.insert(seq) {
            return Receipt::Duplicate;
        }
        if flow.remaining() == 0 {
            self.flows.deliver(slot, out);
            self.acknowledge(announcement);
        }
        Receipt::Fresh
    }

    /// Handles a probe of a source whose message is held.
    pub(super) fn on_pause_probe(
        &mut self,
        announcement: Announcement,
        out: &mut Output<FastpodHeader>,
    ) {
        match self.flows.find(&announcement) {
            FlowStatus::Delivered => self.acknowledge(announcement),
            FlowStatus::Abandoned => {}
            FlowStatus::Arriving(_) | FlowStatus::New => {
                let is_paused = self.flows.is_paused(announcement.src, announcement.msg);
                out.send(announcement.src, announcement.msg, FastpodHeader::Pause { is_paused });
            }
        }
    }

    fn acknowledge(&mut self, announcement: Announcement) {
        self.acks.push(Ack { host: announcement.src.get() as u16, flow: announcement.flow as u16 });
    }

    /// Returns true if an RTS has acknowledgements to carry.
    #[inline]
    pub(super) fn has_acks(&self) -> bool {
        !self.acks.is_empty()
    }

    /// Takes acknowledgements for the next RTS.
    pub(super) fn take_acks(&mut self) -> List<Ack, ACKS_MAX> {
        self.acks.take()
    }

    /// Removes the messages of a source that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<FastpodHeader>) {
        self.acks.retain(|ack| u32::from(ack.host) != peer.get());
        self.flows.forget_peer(peer, out, |_, _| {});
    }
}
