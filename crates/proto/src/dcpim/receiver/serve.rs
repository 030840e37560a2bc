//! Which flow of a source is served: not those that are silent, nor those that are held.

use rampmeter_core::{MsgId, NodeId, Time};

use super::super::rx_flow::RxFlow;
use super::Receiver;

impl Receiver {
    /// Whether a flow may be asked for: neither silent nor held.
    fn is_awake(&self, slot: u32, now: Time) -> bool {
        let flow = &self.flows[slot];
        flow.silent_until <= now && !self.held.contains(flow.src, flow.msg)
    }

    /// A message that was held may be asked for again.
    pub(in super::super) fn release(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if !self.held.release(src, msg) {
            return;
        }
        let Some(slot) = self.of_source(src).find(|&s| self.flows[s].msg == msg) else { return };
        self.flows[slot].heard = now;
        if self.links.is_waiting(src) && self.candidate(src, now) == Some(slot) {
            self.links.wake(src, now);
        }
    }

    /// The flows of a source that are awake.
    pub(super) fn awake(&self, src: NodeId, now: Time) -> impl Iterator<Item = &RxFlow> {
        let slots = self.of_source(src).filter(move |&slot| self.is_awake(slot, now));
        slots.map(|slot| &self.flows[slot])
    }

    /// The flow of a source that is served: of those not silent, the one with the fewest missing
    /// packets, of equals the one announced first.
    pub(super) fn candidate(&self, src: NodeId, now: Time) -> Option<u32> {
        let awake = self.of_source(src).filter(|&slot| self.is_awake(slot, now));
        awake.min_by_key(|&slot| self.flows[slot].key())
    }
}
