//! The receiving side of a host: connections, their received bytes, and acknowledgements.

pub(super) mod arrival;
mod incoming;
mod paused_messages;
mod pausing;

use rampmeter_types::collections::{IdMap, Slab};
use rampmeter_types::{Event, MsgId, NodeId, Priority, Receipt, Span, Time};

use self::arrival::{Arrival, Syn};
use self::incoming::{Entry, IncomingConnection};
use self::paused_messages::PausedMessages;
use super::config::{Connections, Tcp};
use super::seq::{CONFLICTS_MAX, Range, unwrap, wrap};
use super::wire::TcpHeader;
use crate::toolkit::{FlowNumbers, NumberState, Output, Timers};

/// The receiver of one host.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    connections: Slab<IncomingConnection>,
    /// Slots by sender and number.
    slots: IdMap<(u32, u32), u32>,
    numbers: FlowNumbers,
    paused: PausedMessages,
    timers: Timers<(u32, u32)>,
    sweep_at: Time,
    /// Messages that a sender may have in flight, and how often others arrived.
    limit: Option<u32>,
    excess: u64,
}

impl Receiver {
    /// Returns the messages of which something is missing, with those of which only the connection
    /// is known.
    pub(super) fn len(&self, tcp: &Tcp) -> usize {
        match tcp.config.connections {
            Connections::PerMessage => self.connections.len(),
            Connections::Persistent | Connections::Pool => {
                let messages = |incoming: &IncomingConnection| {
                    incoming.messages.len().max(usize::from(incoming.is_busy))
                };
                self.connections.iter().map(|(_, incoming)| messages(incoming)).sum()
            }
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timers.next()
    }

    pub(super) fn limit(&mut self, per_peer: u32) {
        self.limit = Some(per_peer);
        self.numbers.limit(per_peer);
    }

    pub(super) fn excess(&self) -> u64 {
        self.excess + self.numbers.excess()
    }

    fn find(&self, src: NodeId, number: u32) -> Option<u32> {
        self.slots.get(&(src.get(), number)).copied()
    }

    fn insert(&mut self, now: Time, src: NodeId, number: u32, initial: u32) -> Option<u32> {
        if !self.numbers.insert(src, number) {
            return None;
        }
        let slot = self.connections.insert(IncomingConnection::new(now, src, number, initial));
        self.slots.insert((src.get(), number), slot);
        Some(slot)
    }

    /// Returns the connection of a segment. One that is not known is answered.
    fn connection_of(
        &mut self,
        now: Time,
        src: NodeId,
        conn: u32,
        msg: MsgId,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) -> Option<u32> {
        if let Some(slot) = self.find(src, conn) {
            return Some(slot);
        }
        let answer = match self.numbers.state(src, conn) {
            NumberState::New
                if !tcp.config.handshake && (conn == 0 || !tcp.has_late_handshakes()) =>
            {
                return self.insert(now, src, conn, 0);
            }
            // The SYN may still arrive, if packets overtake one another.
            NumberState::New => return None,
            NumberState::Abandoned => TcpHeader::Refused { conn },
            NumberState::Entered => TcpHeader::Ended { conn },
        };
        out.send(src, msg, answer);
        None
    }

    pub(super) fn on_syn(&mut self, now: Time, syn: Syn, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let Syn { src, msg, conn, seq, ecn } = syn;
        self.sweep(now, tcp, out);
        if self.find(src, conn).is_none() && self.numbers.state(src, conn) == NumberState::New {
            self.insert(now, src, conn, seq);
        }
        let Some(slot) = self.connection_of(now, src, conn, msg, tcp, out) else { return };
        let incoming = &mut self.connections[slot];
        if incoming.initial != seq {
            // One of the two SYNs was damaged.
            if !incoming.is_untouched() {
                out.send(src, msg, TcpHeader::Refused { conn });
                return self.abandon(slot, out);
            }
            (incoming.initial, incoming.is_disputed) = (seq, true);
        }
        incoming.last_segment_at = now;
        let syn_ack = TcpHeader::SynAck {
            conn,
            ack: wrap(1, incoming.initial),
            window: tcp.receive_buffer_bytes as u32,
            ecn: ecn && tcp.config.ecn,
        };
        out.send_class(src, msg, syn_ack, Priority::HIGHEST).marks = tcp.control_marks();
    }

    /// Handles a segment that has arrived.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        arrival: &Arrival,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) -> Receipt {
        self.sweep(now, tcp, out);
        let &Arrival { src, conn, msg, .. } = arrival;
        let Some(slot) = self.connection_of(now, src, conn, msg, tcp, out) else {
            let is_over = self.numbers.state(src, conn) == NumberState::Entered;
            return if is_over { Receipt::Duplicate } else { Receipt::Ignored };
        };
        let incoming = &mut self.connections[slot];
        incoming.last_segment_at = now;
        if self.paused.contains(arrival.src, arrival.msg) {
            self.pause_at(slot, arrival, tcp, out);
            return Receipt::Ignored;
        }
        incoming.settle_initial(arrival);
        let Some(of_message) = incoming.range_of(arrival) else { return Receipt::Ignored };
        let start = of_message.0 + arrival.offset;
        let range = (start, start + u64::from(arrival.len));
        let is_beyond = range.1 > incoming.next + u64::from(incoming.window(tcp));
        if is_beyond || range.1 > of_message.1 {
            incoming.acknowledge(tcp, out);
            return Receipt::Ignored;
        }
        if !incoming.is_busy && of_message.1 > incoming.next {
            incoming.is_busy = self.numbers.resume(arrival.src);
            if !incoming.is_busy {
                return Receipt::Ignored;
            }
        }
        match incoming.enter(arrival.msg, of_message, self.limit) {
            Entry::ProbeReply => {}
            Entry::Contradiction => return self.on_conflict(slot, arrival, out),
            Entry::TooMany => {
                self.excess += 1;
                return Receipt::Ignored;
            }
        }
        incoming.latest_message = arrival.msg;
        incoming.on_mark(arrival, tcp, out);
        let receipt = self.take_segment(now, slot, range, tcp, out);
        match receipt {
            Receipt::Ignored => return self.on_conflict(slot, arrival, out),
            _ => self.connections[slot].conflicts = 0,
        }
        self.deliver(slot, tcp, out);
        receipt
    }

    /// Handles a segment that contradicts earlier arrivals, so that one of them was damaged. After
    /// several in a row the sender must use another connection.
    fn on_conflict(
        &mut self,
        slot: u32,
        arrival: &Arrival,
        out: &mut Output<TcpHeader>,
    ) -> Receipt {
        let incoming = &mut self.connections[slot];
        incoming.conflicts += 1;
        if incoming.conflicts == CONFLICTS_MAX {
            out.send(arrival.src, arrival.msg, TcpHeader::Refused { conn: arrival.conn });
            self.abandon(slot, out);
        }
        Receipt::Ignored
    }

    /// Takes the bytes of a segment in, and acknowledges them now or later.
    fn take_segment(
        &mut self,
        now: Time,
        slot: u32,
        range: Range,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) -> Receipt {
        let incoming = &mut self.connections[slot];
        if std::mem::take(&mut incoming.reminders) > 0 {
            incoming.ack_at = Time::NEVER;
        }
        if range.1 <= incoming.next || incoming.out_of_order.contains(range) {
            incoming.duplicate = Some(range);
            incoming.acknowledge(tcp, out);
            return Receipt::Duplicate;
        }
        if range.0 < incoming.next || incoming.out_of_order.overlaps(range) {
            return Receipt::Ignored;
        }
        let was_in_order = incoming.out_of_order.is_empty();
        if range.0 > incoming.next {
            incoming.out_of_order.insert(range);
        } else {
            incoming.next = range.1;
            while let Some(end) = incoming.out_of_order.take(incoming.next) {
                incoming.next = end;
            }
        }
        incoming.pass_fin();
        incoming.pending += 1;
        // A segment that is out of order or fills a hole is acknowledged at once (RFC 5681 §4.2).
        let is_urgent = !was_in_order || !incoming.out_of_order.is_empty();
        if is_urgent || incoming.pending >= tcp.config.segments_per_ack {
            incoming.acknowledge(tcp, out);
        } else if incoming.ack_at == Time::NEVER {
            incoming.ack_at = now + Span::from_us(tcp.config.ack_delay_us);
            self.timers.push(incoming.ack_at, (slot, incoming.number));
        }
        Receipt::Fresh
    }

    /// Reports messages that have arrived completely.
    fn deliver(&mut self, slot: u32, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let incoming = &mut self.connections[slot];
        while let Some(message) = incoming.messages.front().filter(|m| m.range.1 <= incoming.next) {
            out.push_event(Event::Delivered { src: incoming.src, msg: message.msg });
            incoming.messages.pop_front();
        }
        let (src, has_ended) = (incoming.src, incoming.has_ended());
        let stays = tcp.config.connections != Connections::PerMessage;
        let is_over = has_ended || stays && incoming.messages.is_empty();
        if is_over && std::mem::take(&mut incoming.is_busy) {
            self.numbers.complete(src);
        }
        if has_ended {
            self.remove(slot);
        }
    }

    /// Handles the end of the stream.
    pub(super) fn on_fin(
        &mut self,
        now: Time,
        src: NodeId,
        conn: u32,
        seq: u32,
        msg: MsgId,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) {
        let Some(slot) = self.connection_of(now, src, conn, msg, tcp, out) else { return };
        let incoming = &mut self.connections[slot];
        let Some(fin) = unwrap(seq, incoming.initial, incoming.next) else { return };
        incoming.last_segment_at = now;
        if fin >= incoming.next {
            incoming.fin = Some(fin);
            incoming.pass_fin();
        }
        incoming.acknowledge(tcp, out);
        self.deliver(slot, tcp, out);
    }

    /// Handles a connection that the sender has aborted.
    pub(super) fn on_reset(&mut self, src: NodeId, conn: u32, out: &mut Output<TcpHeader>) {
        let Some(slot) = self.find(src, conn) else { return };
        self.abandon(slot, out);
    }

    fn abandon(&mut self, slot: u32, out: &mut Output<TcpHeader>) {
        let Some(incoming) = self.remove(slot) else { return };
        let IncomingConnection { src, number, is_busy, .. } = incoming;
        for message in incoming.messages {
            out.push_event(Event::Abandoned { src, msg: message.msg });
        }
        if is_busy {
            self.numbers.abandon(src, number);
        } else {
            self.numbers.refuse(src, number);
        }
    }

    fn remove(&mut self, slot: u32) -> Option<IncomingConnection> {
        let incoming = self.connections.remove(slot)?;
        self.slots.remove(&(incoming.src.get(), incoming.number));
        self.paused.forget_connection(&incoming);
        Some(incoming)
    }

    /// Abandons connections whose senders are unresponsive, once every `forget`. Those that wait
    /// for the next message stay.
    fn sweep(&mut self, now: Time, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now.saturating_add(tcp.forget_timeout);
        let is_silent = |incoming: &IncomingConnection| {
            let silence = now.saturating_since(incoming.last_segment_at);
            silence > tcp.forget_timeout && incoming.is_busy && incoming.paused.is_empty()
        };
        let silent = self.connections.iter().filter(|(_, incoming)| is_silent(incoming));
        let silent: Vec<u32> = silent.map(|(slot, _)| slot).collect();
        silent.into_iter().for_each(|slot| self.abandon(slot, out));
    }

    /// Handles a sender that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<TcpHeader>) {
        let of_peer = self.connections.iter().filter(|(_, incoming)| incoming.src == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.abandon(slot, out));
        self.paused.forget_peer(peer);
        self.numbers.reset(peer);
    }

    /// Returns true if the message of a segment was delivered before; its sender is alive in any
    /// case.
    pub(super) fn is_delivered(&mut self, now: Time, arrival: &Arrival) -> bool {
        let Some(slot) = self.find(arrival.src, arrival.conn) else {
            let is_over = self.numbers.state(arrival.src, arrival.conn) != NumberState::New;
            if !is_over {
                self.paused.record_query(arrival);
            }
            return is_over;
        };
        let incoming = &mut self.connections[slot];
        incoming.last_segment_at = now;
        let is_over = incoming.range_of(arrival).is_some_and(|(_, end)| end <= incoming.next);
        if !is_over {
            self.paused.record_query(arrival);
        }
        is_over
    }

    /// Returns true if part of a segment has arrived before, or its connection has ended.
    pub(super) fn has_received(&mut self, arrival: &Arrival) -> bool {
        let Some(slot) = self.find(arrival.src, arrival.conn) else {
            return self.numbers.state(arrival.src, arrival.conn) != NumberState::New;
        };
        let incoming = &self.connections[slot];
        let start = unwrap(arrival.seq, incoming.initial, incoming.next);
        start.is_none_or(|start| {
            let range = (start, start + u64::from(arrival.len));
            start < incoming.next || incoming.out_of_order.overlaps(range)
        })
    }

    /// Acknowledgements that were delayed for long enough.
    pub(super) fn handle_timeout(&mut self, now: Time, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        while let Some((at, (slot, number))) = self.timers.pop_due(now) {
            let incoming = self.connections.get_mut(slot);
            let is_due = |i: &&mut IncomingConnection| i.number == number && i.ack_at == at;
            if let Some(incoming) = incoming.filter(is_due) {
                incoming.acknowledge(tcp, out);
                incoming.reminders = incoming.reminders.saturating_sub(1);
                self.schedule_reminder(now, slot, tcp);
            }
        }
    }
}
