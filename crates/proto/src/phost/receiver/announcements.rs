//! Announced flows: by a RTS, or by a free packet that arrives before it.

use rampmeter_types::{Receipt, TenantId, Time};

use super::Receiver;
use crate::phost::config::{Downgrading, FreeTokenRepair, Phost, Policy, TokenSuppression};
use crate::phost::expiry::Expiry;
use crate::phost::rx_flow::{PendingFlow, Wait};
use crate::phost::wire::PhostHeader;
use crate::toolkit::{FlowStatus, Output, SizedFlow, TokenCursor};

impl Receiver {
    /// Enters a flow that is new. `None` if its number is too far ahead, or its source has too
    /// many.
    fn enter(
        &mut self,
        now: Time,
        flow: SizedFlow,
        deadline: Time,
        tenant: TenantId,
        phost: &Phost,
    ) -> Option<u32> {
        let SizedFlow { announcement, size } = flow;
        let pair = phost.pair_from(announcement.src);
        let free = pair.free_packets(announcement.packets, phost.config.free_tokens_for);
        let free_time = pair.mtu_time * u64::from(free);
        let wait = match phost.config.free_token_repair {
            FreeTokenRepair::Measured => {
                let arrived = now + free_time;
                Wait::AtLeast(arrived + pair.rtt, arrived + self.free_delay.wait(pair.rtt))
            }
            FreeTokenRepair::RoundTrip => Wait::Until(now + free_time + pair.rtt),
            FreeTokenRepair::TwicePace => Wait::Until(now + free_time * 2),
        };
        let late = now + pair.free_lifetime(free) + pair.rtt;
        let has_more = free > 0 && free < announcement.packets;
        let mut expiry = Expiry::default();
        if phost.config.downgrade_on == Downgrading::Expired && has_more {
            expiry.push(late, free);
        }
        let waits = phost.config.token_suppression == TokenSuppression::UntilData && has_more;
        let state = PendingFlow {
            expiry,
            downgraded: None,
            free: free.checked_sub(1),
            tokens_from: waits.then_some(late),
            deadline,
            tenant,
            announced: now,
            tokens: TokenCursor::new(now, free),
            goal: announcement.packets,
            repair_wait: (free == announcement.packets).then_some(wait),
            pair,
            is_paced: pair.mtu_time > phost.mtu_time,
        };
        let slot = self.flows.insert(now, announcement, state)?;
        let time = phost.segmentation().link_time(phost.mtu_time, size, free);
        self.arrivals.free.announce(now, time);
        self.arrivals.latest = now;
        self.selector.insert(slot, &self.flows[slot], phost.config.policy);
        if phost.config.token_suppression == TokenSuppression::Withhold {
            self.withheld = free;
        }
        self.start(now);
        Some(slot)
    }

    pub(crate) fn on_rts(
        &mut self,
        now: Time,
        flow: SizedFlow,
        deadline: Time,
        tenant: TenantId,
        repeated: bool,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) {
        let of = flow.announcement;
        let tx_slot = of.tx_slot;
        let slot = match self.flows.find(&of) {
            FlowStatus::New => {
                let Some(slot) = self.enter(now, flow, deadline, tenant, phost) else {
                    // The source has too many flows in flight. This one waits until others have
                    // ended.
                    if repeated {
                        out.send(of.src, of.msg, PhostHeader::RtsAck { tx_slot, is_paused: true });
                    }
                    return;
                };
                slot
            }
            FlowStatus::Arriving(slot) => {
                // A free packet, which carries less, may have arrived first.
                let flow = &mut self.flows[slot];
                flow.last_packet_at = now;
                if (flow.state.deadline, flow.state.tenant) != (deadline, tenant) {
                    if phost.config.policy == Policy::TenantFair {
                        let arrived = flow.announcement.packets - flow.remaining();
                        self.served.transfer(flow.state.tenant, tenant, arrived);
                    }
                    self.selector.remove(slot, flow, phost.config.policy);
                    (flow.state.deadline, flow.state.tenant) = (deadline, tenant);
                    self.selector.insert(slot, &self.flows[slot], phost.config.policy);
                }
                slot
            }
            FlowStatus::Delivered => {
                if repeated {
                    out.send(of.src, of.msg, PhostHeader::Ack { tx_slot });
                }
                return;
            }
            FlowStatus::Abandoned => return,
        };
        if repeated {
            out.send(
                of.src,
                of.msg,
                PhostHeader::RtsAck { tx_slot, is_paused: self.flows[slot].is_paused },
            );
        }
    }

    /// Handles a packet sent with a free token, which may arrive before the RTS.
    pub(crate) fn on_free(
        &mut self,
        now: Time,
        flow: SizedFlow,
        seq: u32,
        phost: &Phost,
        out: &mut Output<PhostHeader>,
    ) -> Receipt {
        self.arrivals.latest = now;
        let of = flow.announcement;
        let slot = match self.flows.find(&of) {
            FlowStatus::Arriving(slot) => slot,
            FlowStatus::Delivered => {
                let tx_slot = of.tx_slot;
                out.send(of.src, of.msg, PhostHeader::Ack { tx_slot });
                return Receipt::Duplicate;
            }
            FlowStatus::Abandoned => return Receipt::Ignored,
            FlowStatus::New => {
                match self.enter(now, flow, Time::NEVER, TenantId::default(), phost) {
                    Some(slot) => slot,
                    None => return Receipt::Ignored,
                }
            }
        };
        if seq == 0 && phost.config.free_token_repair == FreeTokenRepair::Measured {
            // Longer than a round trip after the announcement it has waited at its source or at a
            // port, and so will others.
            let PendingFlow { announced, pair, .. } = &self.flows[slot].state;
            let waited = now.saturating_since(*announced);
            if waited > pair.rtt {
                self.free_delay.sample(waited + pair.rtt, pair.rtt);
            }
        }
        self.on_packet(now, slot, seq, seq, phost, out)
    }
}
