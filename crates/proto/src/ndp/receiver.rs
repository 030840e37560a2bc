//! The receiver's side (NDP, section 3): every packet is answered at once, and adds a pull.
//!
//! The problem: senders start at line rate without a request. Many of them to one receiver send
//! more than its link carries, and a sender that loses a window must not wait for a timeout.
//!
//! The simple way drops packets that do not fit. Senders find losses by timeouts, or by later
//! packets, which an incast may lose too. Queues that are long enough to hold all first windows
//! delay all packets.
//!
//! The present way has two parts. A switch with a full data queue trims a packet: its header is
//! sent ahead of data, in a queue with a limit of its own. So the receiver knows of each packet
//! within a short time. By default ten headers are sent for each data packet, if both wait. The
//! receiver then controls all further packets. It answers each arrival at once: payload is
//! acknowledged, a header is refused. Each arrival also adds a pull, with its payload or without,
//! until the flow is complete. Then the queued pulls are dropped.
//!
//! The pacer sends one pull a packet time, so that pulled packets arrive at the rate of the link
//! regardless of the number of senders. The answer carries a pull if none is queued and the pacer
//! allows it. Flows take turns in the queue, or the one with the fewest missing packets is first
//! (`pulls`). Pulls are numbered cumulatively, so a later one makes up for a lost one.
//!
//! Hazards: pulls must be as many as arrivals, or a flow stops with nothing in flight; a timeout of
//! the sender then sends one packet. The sum of all pulls must keep to the pace
//! (`pulls_are_one_packet_time_apart_for_any_number_of_senders`). Pulls of a complete flow
//! would use the pace for nothing (`a_complete_flow_has_no_pulls_left`). A trimmed packet may have
//! arrived in full before, and is then acknowledged. A paused message collects pulls but sends none
//! (`a_paused_message_is_not_pulled_until_it_is_resumed`).

use rampmeter_types::{MsgId, NodeId, Receipt, Span, Time};

use super::config::Ndp;
use super::pulls::{FlowPulls, PullQueue};
use super::stats::NdpStats;
use super::wire::NdpHeader;
use crate::toolkit::{Announcement, ArrivingFlow, ArrivingFlows, FlowStatus, Output};

/// A flow's own part.
#[derive(Debug, Default)]
pub(super) struct PullState {
    /// Packets pulled so far.
    issued: u32,
    queued: FlowPulls,
}

type RxFlow = ArrivingFlow<PullState>;

/// A data packet, with its payload or without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) announcement: Announcement,
    pub(super) seq: u32,
    pub(super) path: u16,
    pub(super) is_trimmed: bool,
}

/// The receiver of one host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) flows: ArrivingFlows<PullState>,
    queue: PullQueue,
    /// Time at which the pacer allows the next pull.
    next_pull: Time,
}

impl Receiver {
    pub(super) fn new() -> Self {
        let flows = ArrivingFlows::default();
        Self { flows, queue: PullQueue::default(), next_pull: Time::ZERO }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        if self.queue.is_empty() { Time::NEVER } else { self.next_pull }
    }

    /// Handles a data packet.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        arrival: Arrival,
        ndp: &Ndp,
        out: &mut Output<NdpHeader>,
        stats: &mut NdpStats,
    ) -> Receipt {
        let Arrival { announcement, seq, is_trimmed, .. } = arrival;
        if seq >= announcement.packets {
            return Receipt::Ignored;
        }
        self.sweep(now, ndp, out);
        let slot = match self.flows.find(&announcement) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::New => match self.flows.insert(now, announcement, PullState::default()) {
                Some(slot) => slot,
                None => return Receipt::Ignored,
            },
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::Delivered => {
                let cumulative = announcement.packets;
                out.send(announcement.src, announcement.msg, make_answer(&arrival, cumulative, 0));
                return if is_trimmed { Receipt::Control } else { Receipt::Duplicate };
            }
        };
        let flow = &mut self.flows[slot];
        // Only a damaged packet is beyond the length that the first one of its flow carried.
        if seq >= flow.announcement.packets {
            return Receipt::Ignored;
        }
        flow.last_packet_at = now;
        let receipt = match is_trimmed {
            true => Receipt::Control,
            false if flow.received.insert(seq) => Receipt::Fresh,
            false => Receipt::Duplicate,
        };
        stats.trimmed += u64::from(is_trimmed);
        if flow.remaining() == 0 {
            self.complete(slot, &arrival, out);
            return receipt;
        }
        self.add_pull(now, slot, ndp, stats);
        let flow = &self.flows[slot];
        // A refused packet may have arrived before, in full.
        let refuses = is_trimmed && !flow.received.contains(seq);
        let (cumulative, pull) = (flow.received.first_missing(), flow.state.issued);
        out.send(
            announcement.src,
            announcement.msg,
            make_answer(&Arrival { is_trimmed: refuses, ..arrival }, cumulative, pull),
        );
        receipt
    }

    /// Removes the pulls of a complete flow.
    fn complete(&mut self, slot: u32, arrival: &Arrival, out: &mut Output<NdpHeader>) {
        let state = &mut self.flows[slot].state;
        self.queue.remove(slot, &mut state.queued);
        let issued = state.issued;
        if let Some(flow) = self.flows.deliver(slot, out) {
            let Announcement { src, msg, packets, .. } = flow.announcement;
            out.send(src, msg, make_answer(arrival, packets, issued));
        }
    }

    /// Adds a pull for a flow: sent with the answer, or queued.
    fn add_pull(&mut self, now: Time, slot: u32, ndp: &Ndp, stats: &mut NdpStats) {
        let idle = self.queue.is_empty() && now >= self.next_pull;
        let flow = &mut self.flows[slot];
        if idle && !flow.is_paused {
            flow.state.issued += 1;
            self.next_pull = now + ndp.pull_interval;
            stats.pulls_piggybacked += 1;
            return;
        }
        flow.state.queued.pulls += 1;
        if !flow.is_paused {
            let missing = flow.remaining();
            self.queue.insert(slot, missing, &mut flow.state.queued, ndp.config.pull_order);
        }
    }

    /// Sends a pull if one is due.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        ndp: &Ndp,
        out: &mut Output<NdpHeader>,
        stats: &mut NdpStats,
    ) {
        let Self { flows, queue, .. } = self;
        let Some(slot) = queue.pop(|slot| flows.get(slot).map(|flow| &flow.state.queued)) else {
            return;
        };
        let flow = &mut flows[slot];
        queue.remove(slot, &mut flow.state.queued);
        flow.state.queued.pulls -= 1;
        flow.state.issued += 1;
        let Announcement { src, msg, tx_slot, .. } = flow.announcement;
        out.send(src, msg, NdpHeader::Pull { tx_slot, pull: flow.state.issued });
        stats.pulls += 1;
        self.next_pull = now + ndp.pull_interval;
        self.requeue(slot, ndp);
    }

    /// Queues a flow that has pulls to send and is not paused.
    fn requeue(&mut self, slot: u32, ndp: &Ndp) {
        let flow = &mut self.flows[slot];
        if flow.state.queued.pulls > 0 && !flow.is_paused {
            let missing = flow.remaining();
            self.queue.insert(slot, missing, &mut flow.state.queued, ndp.config.pull_order);
        }
    }

    /// Pauses a message, for which no pulls are sent until it is resumed.
    pub(super) fn pause(&mut self, src: NodeId, msg: MsgId) {
        if let Some(slot) = self.flows.pause(src, msg) {
            self.queue.remove(slot, &mut self.flows[slot].state.queued);
        }
    }

    /// Resumes a paused message, for which pulls may be sent.
    pub(super) fn resume(&mut self, now: Time, src: NodeId, msg: MsgId, ndp: &Ndp) {
        if let Some(slot) = self.flows.resume(now, src, msg, Span::ZERO) {
            self.requeue(slot, ndp);
        }
    }

    /// Abandons flows whose senders have been unresponsive for too long.
    fn sweep(&mut self, now: Time, ndp: &Ndp, out: &mut Output<NdpHeader>) {
        let Self { flows, queue, .. } = self;
        flows.sweep_with(now, ndp.forget_timeout, out, |slot, flow| {
            queue.forget(slot, &flow.state.queued)
        });
    }

    /// Ends a message that the driver refuses.
    pub(super) fn abandon(&mut self, src: NodeId, msg: MsgId, out: &mut Output<NdpHeader>) {
        if let Some((slot, flow)) = self.flows.abandon_message(src, msg, out) {
            self.queue.forget(slot, &flow.state.queued);
        }
    }

    /// Handles a sender that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<NdpHeader>) {
        let Self { flows, queue, .. } = self;
        flows.forget_peer(peer, out, |slot, flow: &RxFlow| queue.forget(slot, &flow.state.queued));
    }
}

/// Returns the answer to a packet: an acknowledgement, or a refusal.
fn make_answer(arrival: &Arrival, cumulative: u32, pull: u32) -> NdpHeader {
    let &Arrival { announcement: Announcement { tx_slot, packets, .. }, seq, path, is_trimmed } =
        arrival;
    if is_trimmed && cumulative < packets {
        NdpHeader::Nack { tx_slot, seq, pull, path }
    } else {
        NdpHeader::Ack { tx_slot, seq, cumulative, pull, path }
    }
}
