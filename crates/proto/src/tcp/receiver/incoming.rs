//! One connection at its receiver: received bytes, and acknowledgements.

use std::collections::{BTreeMap, VecDeque};

use rampmeter_types::{MsgId, NodeId, Priority, Time};

use super::super::config::Tcp;
use super::super::control::Algorithm;
use super::super::seq::{Range, Ranges, unwrap, wrap};
use super::super::wire::{List, SackBlock, TcpHeader};
use super::arrival::Arrival;
use crate::toolkit::Output;

/// A message in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct RxMessage {
    pub(super) msg: MsgId,
    pub(super) range: Range,
}

/// One connection at its receiver.
#[derive(Clone, Debug)]
pub(super) struct IncomingConnection {
    pub(super) src: NodeId,
    pub(super) number: u32,
    pub(super) initial: u32,
    /// SYNs with different initial sequence numbers have arrived, of which one was damaged.
    pub(super) is_disputed: bool,
    /// The first byte that has not arrived (RCV.NXT).
    pub(super) next: u64,
    /// Ranges that have arrived above.
    pub(super) out_of_order: Ranges,
    /// Messages of which something has arrived and something is missing, in order.
    pub(super) messages: VecDeque<RxMessage>,
    /// The message of which a packet arrived last.
    pub(super) latest_message: MsgId,
    /// The place of the FIN, once it has arrived.
    pub(super) fin: Option<u64>,
    pub(super) last_segment_at: Time,
    /// True if it counts as in flight: not between messages, if connections stay.
    pub(super) is_busy: bool,
    /// Segments that have arrived and are not acknowledged, and when they have to be.
    pub(super) pending: u32,
    pub(super) ack_at: Time,
    /// Remaining window updates to the sender unless data arrives; `ack_at` is the time of the
    /// next, if any.
    pub(super) reminders: u32,
    /// True if the last segment was marked (RFC 8257 §3.2, DCTCP.CE).
    pub(super) was_marked: bool,
    /// True if acknowledgements echo a mark until the sender has reacted (RFC 3168 §6.1.3).
    pub(super) echoes_ece: bool,
    /// A segment that has arrived twice and was not reported (RFC 2883).
    pub(super) duplicate: Option<Range>,
    /// Number of consecutive segments that contradict received ones.
    pub(super) conflicts: u32,
    /// Messages for which there is no room, by the first byte that is not taken: the window ends at
    /// the first of them.
    pub(super) paused: BTreeMap<u64, MsgId>,
}

/// Treatment of the message that a segment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The message is among those of the connection, now at the latest.
    ProbeReply,
    /// The segment's bytes are those of another message.
    Contradiction,
    /// The sender has more messages in flight than it may.
    TooMany,
}

impl IncomingConnection {
    pub(super) fn new(now: Time, src: NodeId, number: u32, initial: u32) -> Self {
        Self {
            src,
            number,
            initial,
            is_disputed: false,
            next: 1,
            out_of_order: Ranges::default(),
            messages: VecDeque::new(),
            latest_message: MsgId::default(),
            fin: None,
            last_segment_at: now,
            is_busy: true,
            pending: 0,
            ack_at: Time::NEVER,
            reminders: 0,
            was_marked: false,
            echoes_ece: false,
            duplicate: None,
            conflicts: 0,
            paused: BTreeMap::new(),
        }
    }

    /// Returns true if no data and no FIN has arrived.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == 1
            && self.out_of_order.is_empty()
            && self.messages.is_empty()
            && self.fin.is_none()
    }

    /// Takes the initial sequence number from the first segment, if SYNs differed in it. The first
    /// message of a connection starts with its first byte.
    pub(super) fn settle_initial(&mut self, arrival: &Arrival) {
        if std::mem::take(&mut self.is_disputed) && self.is_untouched() {
            self.initial = arrival.seq.wrapping_sub(1).wrapping_sub(arrival.offset as u32);
        }
    }

    /// Returns the bytes above `next` that are taken.
    pub(super) fn window(&self, tcp: &Tcp) -> u32 {
        let buffer = tcp.receive_buffer_bytes;
        match self.paused.first_key_value() {
            Some((first, _)) => first.saturating_sub(self.next).min(buffer) as u32,
            None => buffer as u32,
        }
    }

    /// Returns the bytes of the stream that a segment's message has.
    pub(super) fn range_of(&self, arrival: &Arrival) -> Option<Range> {
        let start = unwrap(arrival.seq, self.initial, self.next)?;
        let first = start.checked_sub(arrival.offset).filter(|&first| first > 0)?;
        Some((first, first.checked_add(arrival.size)?))
    }

    /// Sends an acknowledgement of all that has arrived.
    pub(super) fn acknowledge(&mut self, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let number = |offset: u64| wrap(offset, self.initial);
        let mut sack = List::default();
        let twice = self.duplicate.take().into_iter();
        for (start, end) in twice.chain(self.out_of_order.iter()) {
            if !sack.push(SackBlock { start: number(start), end: number(end) }) {
                break;
            }
        }
        let ack = TcpHeader::Ack {
            conn: self.number,
            ack: number(self.next),
            window: self.window(tcp),
            ece: self.echoes_ece,
            sack,
        };
        (self.pending, self.ack_at) = (0, Time::NEVER);
        let packet = out.send_class(self.src, self.latest_message, ack, Priority::HIGHEST);
        packet.marks = tcp.control_marks();
    }

    /// Handles congestion marks for the echo.
    pub(super) fn on_mark(&mut self, arrival: &Arrival, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        if tcp.config.congestion_control == Algorithm::Dctcp {
            // A change is reported at once, with the state before (RFC 8257 §3.2).
            if self.was_marked != arrival.is_marked && self.pending > 0 {
                self.acknowledge(tcp, out);
            }
            (self.was_marked, self.echoes_ece) = (arrival.is_marked, arrival.is_marked);
            return;
        }
        self.echoes_ece &= !arrival.cwr;
        self.echoes_ece |= arrival.is_marked;
    }

    /// Enters the message of a segment, if it is new and something of it is missing.
    pub(super) fn enter(&mut self, msg: MsgId, range: Range, most: Option<u32>) -> Entry {
        if range.1 <= self.next {
            return Entry::ProbeReply;
        }
        let place = self.messages.partition_point(|message| message.range.0 < range.0);
        if let Some(there) = self.messages.get(place).filter(|m| m.range.0 < range.1) {
            let is_same = there.range == range && there.msg == msg;
            return if is_same { Entry::ProbeReply } else { Entry::Contradiction };
        }
        if place > 0 && self.messages[place - 1].range.1 > range.0 {
            return Entry::Contradiction;
        }
        if most.is_some_and(|most| self.messages.len() >= most as usize) {
            return Entry::TooMany;
        }
        self.messages.insert(place, RxMessage { msg, range });
        Entry::ProbeReply
    }

    /// Returns true if everything has arrived, including the FIN.
    pub(super) fn has_ended(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }
}

impl IncomingConnection {
    /// The FIN takes a place in the stream.
    pub(super) fn pass_fin(&mut self) {
        if self.fin == Some(self.next) {
            self.next += 1;
        }
    }
}
