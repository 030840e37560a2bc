//! Announced flows: by a notification, a packet of a short flow, or a sender that has finished.

use rampmeter_types::{Receipt, Time};

use super::{Receiver, ack};
use crate::dcpim::config::{Dcpim, Notification, ShortFlowPacing};
use crate::dcpim::rx_flow::Progress;
use crate::dcpim::wire::DcpimHeader;
use crate::toolkit::{FlowStatus, Output, SizedFlow};

impl Receiver {
    /// Enters a new flow. Returns `None` if its number is too far ahead, or its source has too many
    /// flows.
    fn enter(&mut self, now: Time, flow: SizedFlow, dcpim: &Dcpim) -> Option<u32> {
        let SizedFlow { announcement, size } = flow;
        let pair = dcpim.pair_from(announcement.src);
        let is_short = announcement.packets <= pair.short_max;
        let time = dcpim.segmentation().link_time(dcpim.mtu_time, size, announcement.packets);
        let state = match is_short {
            true => {
                let held_up =
                    self.backlog.core_delay(now).max(self.backlog.drain_time_with(now, time));
                let timeout = pair.data_timeout.max(held_up);
                Progress::with_unscheduled(
                    announcement.packets,
                    now,
                    self.phase_begun,
                    pair,
                    timeout,
                )
            }
            false => Progress::new(now, self.phase_begun, pair),
        };
        let slot = self.flows.insert(now, announcement, state)?;
        if is_short {
            self.backlog.announce(now, time);
        }
        if is_short && dcpim.config.short_flow_pacing == ShortFlowPacing::Withhold {
            self.withheld = announcement.packets;
        }
        self.sources.insert(now, slot, &mut self.flows);
        Some(slot)
    }

    pub(crate) fn on_notification(
        &mut self,
        now: Time,
        flow: SizedFlow,
        repeated: bool,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let of = flow.announcement;
        let explicit = dcpim.config.notification == Notification::Explicit;
        let slot = match self.flows.find(&of) {
            FlowStatus::New => {
                let Some(slot) = self.enter(now, flow, dcpim) else { return };
                // A match of the running phase serves new flows too, without a request.
                if self.links.is_waiting(of.src) && self.candidate(of.src, now) == Some(slot) {
                    self.links.wake(of.src, now);
                }
                slot
            }
            FlowStatus::Arriving(slot) => {
                self.flows[slot].last_packet_at = now;
                slot
            }
            FlowStatus::Delivered => {
                if repeated {
                    let tx_slot = of.tx_slot;
                    out.send(of.src, of.msg, DcpimHeader::FinishAck { tx_slot });
                }
                return;
            }
            FlowStatus::Abandoned => return,
        };
        if explicit || repeated {
            out.send(of.src, of.msg, ack(&self.flows[slot]));
        }
    }

    /// Handles a packet of a short flow, which may arrive before its notification.
    pub(crate) fn on_unscheduled(
        &mut self,
        now: Time,
        flow: SizedFlow,
        seq: u32,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) -> Receipt {
        let slot = match self.flows.find(&flow.announcement) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::Delivered => return Receipt::Duplicate,
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::New => match self.enter(now, flow, dcpim) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
        };
        self.on_packet(now, slot, seq, seq, dcpim, out)
    }

    /// Handles a finish: the sender has sent every packet (§3.2). The response is sent once all
    /// have arrived.
    pub(crate) fn on_finish(
        &mut self,
        now: Time,
        flow: SizedFlow,
        dcpim: &Dcpim,
        out: &mut Output<DcpimHeader>,
    ) {
        let of = flow.announcement;
        match self.flows.find(&of) {
            FlowStatus::Arriving(slot) => {
                let entry = &mut self.flows[slot];
                entry.last_packet_at = now;
                // A repeated finish is unnecessary: packets are missing and will get tokens.
                if std::mem::replace(&mut entry.state.has_finish_request, true) {
                    out.send(of.src, of.msg, ack(entry));
                }
            }
            FlowStatus::Delivered => {
                let tx_slot = of.tx_slot;
                out.send(of.src, of.msg, DcpimHeader::FinishAck { tx_slot });
            }
            FlowStatus::Abandoned => {}
            // All earlier packets of the flow were lost.
            FlowStatus::New => {
                if let Some(slot) = self.enter(now, flow, dcpim) {
                    self.flows[slot].state.has_finish_request = true;
                    out.send(of.src, of.msg, ack(&self.flows[slot]));
                }
            }
        }
    }
}
