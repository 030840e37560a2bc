//! A packet as unit tests of endpoints receive it.

use rampmeter_types::packet::Marks;
use rampmeter_types::{MsgId, NodeId, Packet, PayloadRef, Priority};

/// Returns a control packet of message `msg` from one node to another.
pub(crate) fn make_control<H>(header: H, msg: u32, src: u32, dst: u32) -> Packet<H> {
    Packet {
        header,
        payload: PayloadRef { msg: MsgId::new(msg), offset: 0, len: 0 },
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        wire_bytes: 40,
        path: 0,
        priority: Priority::HIGHEST,
        marks: Marks::NONE,
    }
}
