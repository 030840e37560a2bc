//! Tests of the choice among flows.

use super::super::flows::Flows;
use super::super::{Fastpass, FastpassConfig};
use crate::toolkit::Output;
use proptest::prelude::*;
use rampmeter_types::{Bytes, FabricFacts, Message, MsgId, NodeId, Rate, Span, Time};

fn fastpass() -> Fastpass {
    let facts = FabricFacts {
        n_hosts: 4,
        access_rate: Rate::from_gbps(10),
        core_rate: None,
        data_rtt: Span::from_us(12),
        control_rtt: Span::from_us(10),
        abort_timeout_min: Span::ZERO,
    };
    FastpassConfig::paper().derive(&facts, None, Span::ZERO).unwrap()
}

/// Returns a search of all flows.
fn searched(flows: &Flows, dst: NodeId) -> Option<u32> {
    let waiting = flows.iter().filter(|(_, flow)| flow.dst == dst && flow.unsent() > 0);
    waiting.min_by_key(|(_, flow)| (flow.remaining(), flow.msg)).map(|(slot, _)| slot)
}

proptest! {
    #[test]
    fn the_flow_with_the_fewest_packets_left_is_next(
        steps in proptest::collection::vec((0u8..8, 0u32..12, 0u32..9), 0..300),
    ) {
        let fastpass = fastpass();
        let (mut flows, mut out) =
            (Flows::new(NodeId::new(0)), Output::new(NodeId::new(0), 40));
        let mut now = Time::ZERO;
        for (msg, (step, number, seq)) in (0..).zip(steps) {
            let dst = NodeId::new(1 + number % 3);
            let slots: Vec<u32> = flows.iter().map(|(slot, _)| slot).collect();
            let slot = slots.get(number as usize % slots.len().max(1)).copied();
            let of_slot = slot.and_then(|slot| Some((slot, flows.get(slot)?.msg)));
            match (step, of_slot) {
                (0..=1, _) => {
                    let size = Bytes::new(1 + 1_400 * u64::from(seq));
                    flows.submit(&Message::new(MsgId::new(msg), dst, size), &fastpass);
                }
                (2..=4, Some((slot, _))) => {
                    flows.send(now, slot, None, &fastpass);
                }
                (5, Some((slot, msg))) => {
                    flows.on_ack(msg, slot, seq / 2, seq, &mut out);
                }
                (6, _) => {
                    now += fastpass.rto;
                    flows.handle_timeout(now, &fastpass, &mut out);
                }
                (7, _) if seq == 0 => {
                    flows.forget_peer(dst, &mut out);
                }
                (7, Some((_, msg))) => {
                    flows.cancel(msg);
                }
                _ => {}
            }
            for dst in (1..4).map(NodeId::new) {
                prop_assert_eq!(flows.next_flow_to(dst), searched(&flows, dst));
            }
        }
    }
}
