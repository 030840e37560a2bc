//! Segments of messages as they arrive.

use rampmeter_types::packet::Marks;
use rampmeter_types::{MsgId, NodeId, Packet};

use crate::tcp::wire::TcpHeader;

/// A segment, as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) src: NodeId,
    pub(crate) conn: u32,
    pub(crate) seq: u32,
    pub(crate) msg: MsgId,
    /// Offset in the message, length of the segment, and length of the message.
    pub(crate) offset: u64,
    pub(crate) len: u16,
    pub(crate) size: u64,
    pub(crate) cwr: bool,
    pub(crate) is_marked: bool,
}

/// A request of a connection, as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syn {
    pub(crate) src: NodeId,
    pub(crate) msg: MsgId,
    pub(crate) conn: u32,
    pub(crate) seq: u32,
    /// True if its sender can use ECN.
    pub(crate) ecn: bool,
}

/// Returns the segment that a packet carries.
pub(crate) fn parse_arrival(packet: &Packet<TcpHeader>) -> Option<Arrival> {
    let TcpHeader::Data { conn, seq, size, cwr } = packet.header else { return None };
    let payload = packet.payload;
    Some(Arrival {
        src: packet.src,
        conn,
        seq,
        msg: payload.msg,
        offset: payload.offset,
        len: payload.len,
        size,
        cwr,
        is_marked: packet.marks.contains(Marks::CONGESTION),
    })
}
