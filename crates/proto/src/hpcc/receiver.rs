//! The destination's side: every packet is acknowledged with its telemetry.
//!
//! With go-back-N packets after a missing one are dropped, as network cards without memory for them
//! do. The first of them is answered by a NACK. Further ones are answered only after two base round
//! trips, in which the requested packet should have arrived.

use rampmeter_types::{Bytes, Packet, Receipt, Time};

use super::config::{Hpcc, Recovery};
use super::stats::HpccStats;
use super::wire::HpccHeader;
use crate::toolkit::{Announcement, ArrivingFlows, FlowStatus, Output, sack_bits};

/// The last NACK of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    /// The packet that was missing.
    missing: Option<u32>,
    /// Time from which the same one may be requested once more.
    nack_again_at: Time,
}

/// The receiver of one host.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Flows that are not complete.
    pub(super) flows: ArrivingFlows<Gap>,
}

impl Receiver {
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet<HpccHeader>,
        hpcc: &Hpcc,
        out: &mut Output<HpccHeader>,
        stats: &mut HpccStats,
    ) -> Receipt {
        let HpccHeader::Data { flow, tx_slot, seq, size, path, records } = packet.header else {
            return Receipt::Ignored;
        };
        let (src, msg) = (packet.src, packet.payload.msg);
        let packets = hpcc.segmentation().packets(Bytes::new(size));
        if seq >= packets {
            return Receipt::Ignored;
        }
        let ack = |cumulative, sack, is_go_back_n| HpccHeader::Ack {
            tx_slot,
            cumulative,
            sack,
            is_go_back_n,
            path,
            records,
        };
        self.flows.sweep(now, hpcc.forget_timeout, out);
        let of = Announcement { src, msg, flow, tx_slot, packets };
        let slot = match self.flows.find(&of) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::New => {
                let Some(slot) = self.flows.insert(now, of, Gap::default()) else {
                    return Receipt::Ignored;
                };
                slot
            }
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::Delivered => {
                out.send(src, msg, ack(packets, 0, false));
                return Receipt::Duplicate;
            }
        };
        let flow = &mut self.flows[slot];
        // Only a damaged packet is beyond the length that the first one of its flow carried.
        if seq >= flow.announcement.packets {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        let missing = flow.received.first_missing();
        if hpcc.config.recovery == Recovery::GoBackN && seq > missing {
            stats.out_of_order_drops += 1;
            if flow.state.missing != Some(missing) || now >= flow.state.nack_again_at {
                flow.state = Gap {
                    missing: Some(missing),
                    nack_again_at: now + hpcc.windows_to(src).rtt * 2,
                };
                stats.nacks_sent += 1;
                out.send(src, msg, ack(missing, 0, true));
            }
            return Receipt::Ignored;
        }
        let receipt = if flow.received.insert(seq) { Receipt::Fresh } else { Receipt::Duplicate };
        let cumulative = flow.received.first_missing();
        let is_complete = cumulative == flow.announcement.packets;
        out.send(src, msg, ack(cumulative, sack_bits(&flow.received), false));
        if is_complete {
            self.flows.deliver(slot, out);
        }
        receipt
    }
}
