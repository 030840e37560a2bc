//! Peers that have more messages in flight to a host than they may.

use rampmeter_proto::RegisteredTransport;
use rampmeter_types::{Bytes, NodeId, Span};

use crate::wire::{Net, TransportTraits, configure};

/// Messages that a peer may have in flight to a host, and more that it has. Few enough that a host
/// which retransmits all of them again and again still reaches the last.
const LIMIT: usize = 4;
const EXCESS: usize = 2;
/// Two packets of 1460 bytes.
const SIZE: u64 = 2_920;

/// Two peers have more messages in flight to a host than they may. The limit holds for each by
/// itself. Messages above it are counted, and accepted if they are retransmitted after other
/// messages have ended. A peer that restarts frees its share.
///
/// Packets of the host are lost at first, and the last packets of messages, so that none ends. A
/// host that rejects messages by itself (counter `requests_rejected`) need not reach the limit. It
/// must not exceed it.
pub fn limits_peers<T: RegisteredTransport>(keys: &T::Keys) {
    let crowded = || {
        let on_wire = configure::<T>(keys);
        let mut net = Net::<T>::new(&on_wire, TransportTraits::derive(&on_wire.0), 1, 0.0);
        net.blocks = |packet| {
            let end = packet.payload.offset + u64::from(packet.payload.len);
            packet.src == NodeId::new(0) || end == SIZE
        };
        net.limit_arriving(LIMIT as u32);
        for src in [1, 2].repeat(LIMIT + EXCESS) {
            net.submit(src, 0, Bytes::new(SIZE));
        }
        for _ in 0..1_000 {
            net.run_until(net.now + Span::from_us(20));
            assert!(net.at_first_host().0 <= 2 * LIMIT);
            if net.at_first_host() >= (2 * LIMIT, 2 * EXCESS as u64) || net.rejects_messages() {
                break;
            }
        }
        let (arriving, excess) = net.at_first_host();
        assert!(net.delivered.is_empty());
        assert!(net.rejects_messages() || arriving == 2 * LIMIT, "{arriving} arriving");
        assert!(net.rejects_messages() || excess >= 2 * EXCESS as u64, "{excess} dropped");
        net
    };
    let mut net = crowded();
    net.blocks = |_| false;
    for _ in 0..1_000 {
        net.run_until(net.now + Span::from_us(1_000));
        assert!(net.at_first_host().0 <= 2 * LIMIT);
        if net.n_open_messages() == 0 {
            break;
        }
    }
    assert_eq!(net.completed.len() + net.failed.len(), 2 * (LIMIT + EXCESS));
    let mut net = crowded();
    net.forget_peer(NodeId::new(1));
    assert!(net.rejects_messages() || net.at_first_host().0 == LIMIT);
}
