//! The sending side of a host: its connections, the choice of the next to send, and their timers.
//!
//! Connections that may send are served round robin, a packet each. With classes, those in higher
//! classes are served first.

use rampmeter_types::collections::{HeapPositions, IdMap, KeyedHeap, Slab};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Event, Gauge, Message, MsgId, NodeId, Packet, Priority, Rng, Time};

use super::config::{Connections, Tcp};
use super::connection::{
    AckOutcome, Acknowledgement, Connection, Grant, NextSegment, TimerAction, TxMessage,
};
use super::seq::wrap;
use super::stats::TcpStats;
use super::wire::TcpHeader;
use crate::toolkit::{NextNumber, OutgoingMessage, Output, RetransmitQueue, Timers};

pub(crate) mod permission;

/// The sender of one host.
#[derive(Debug)]
pub(super) struct Sender {
    node: NodeId,
    rng: Rng,
    connections: Slab<Connection>,
    /// Slots by receiver and number.
    by_number: IdMap<(u32, u32), u32>,
    /// Slots by message.
    by_message: IdMap<u32, u32>,
    /// Open connections that the next message may take, by receiver; the one that is to be taken
    /// first is last.
    shared: IdMap<u32, Vec<u32>>,
    numbers: NextNumber,
    /// Connections that may send, by class and order of service.
    ready: KeyedHeap<(u8, u64)>,
    positions: HeapPositions,
    next_turn: u64,
    timers: Timers<(u32, u32)>,
    /// Connections that wait for pacing. They have separate entries: timeouts are far off, and an
    /// entry for each packet would stay until then.
    paced: Timers<(u32, u32)>,
    /// Connections whose receivers' windows must be probed, by slot and number.
    window_probes: RetransmitQueue<(u32, u32)>,
}

impl Sender {
    pub(super) fn new(node: NodeId, rng: Rng) -> Self {
        Self {
            node,
            rng,
            connections: Slab::default(),
            by_number: IdMap::default(),
            by_message: IdMap::default(),
            shared: IdMap::default(),
            numbers: NextNumber::default(),
            ready: KeyedHeap::default(),
            positions: HeapPositions::default(),
            next_turn: 0,
            timers: Timers::default(),
            paced: Timers::default(),
            window_probes: RetransmitQueue::default(),
        }
    }

    /// Returns the messages that are not over.
    pub(super) fn len(&self) -> usize {
        self.by_message.len()
    }

    /// Reports the windows of all connections.
    pub(super) fn gauges(&self, each: &mut dyn FnMut(Gauge)) {
        for (_, connection) in self.connections.iter() {
            let msg = connection.messages.front().map(|message| message.msg);
            let peer = connection.dst;
            for (name, value) in connection.windows() {
                each(Gauge { name, peer, msg, value });
            }
        }
    }

    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.timers.next().min(self.paced.next()).min(self.window_probes.next_at())
    }

    pub(super) fn submit(
        &mut self,
        now: Time,
        message: &Message,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) {
        let slot = match self.take_shared(message.dst, tcp) {
            Some(slot) => slot,
            None => self.open(now, message.dst, tcp, out),
        };
        self.connections[slot].submit(now, message.id, message.size.get(), tcp);
        self.by_message.insert(message.id.get(), slot);
        self.update(now, slot, tcp);
    }

    /// Returns a connection that exists, for a message to `dst`.
    fn take_shared(&mut self, dst: NodeId, tcp: &Tcp) -> Option<u32> {
        let of_pair = self.shared.get_mut(&dst.get())?;
        match tcp.config.connections {
            Connections::PerMessage => None,
            Connections::Persistent => of_pair.last().copied(),
            Connections::Pool => of_pair.pop(),
        }
    }

    fn open(&mut self, now: Time, dst: NodeId, tcp: &Tcp, out: &mut Output<TcpHeader>) -> u32 {
        let number = self.numbers.take(dst);
        // The connections of a pair that count as opened before start at zero, as the receiver has
        // no record of them.
        let is_there = !tcp.config.handshake && (number == 0 || !tcp.has_late_handshakes());
        let initial = if is_there { 0 } else { self.rng.bits() as u32 };
        let mut connection = Connection::new(dst, number, initial, tcp);
        if is_there {
            connection.open_at_once(tcp);
        } else {
            connection.start(now, tcp);
        }
        let slot = self.connections.insert(connection);
        self.by_number.insert((dst.get(), number), slot);
        if tcp.config.connections == Connections::Persistent {
            self.shared.entry(dst.get()).or_default().push(slot);
        }
        if !is_there {
            self.send_syn(slot, tcp, out);
        }
        slot
    }

    fn send_syn(&mut self, slot: u32, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let connection = &self.connections[slot];
        let (dst, msg) = (connection.dst, first_message(connection));
        let syn = TcpHeader::Syn {
            conn: connection.number,
            seq: wrap(0, connection.initial),
            ecn: tcp.config.ecn,
        };
        let packet = out.send_class(dst, msg, syn, Priority::HIGHEST);
        packet.marks = tcp.control_marks();
    }

    /// Returns the slot of a connection to `dst`.
    pub(super) fn find(&self, dst: NodeId, number: u32) -> Option<u32> {
        self.by_number.get(&(dst.get(), number)).copied()
    }

    /// Handles the answer of the receiver to the SYN, if `ack` is of that.
    pub(super) fn on_syn_ack(
        &mut self,
        now: Time,
        src: NodeId,
        conn: u32,
        ack: u32,
        window: u32,
        ecn: bool,
        tcp: &Tcp,
    ) {
        let Some(slot) = self.find(src, conn) else { return };
        let connection = &mut self.connections[slot];
        if ack != wrap(1, connection.initial) {
            return;
        }
        connection.on_open(now, window, ecn, tcp);
        self.update(now, slot, tcp);
    }

    pub(super) fn on_ack(
        &mut self,
        now: Time,
        src: NodeId,
        conn: u32,
        acknowledgement: &Acknowledgement<'_>,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
        stats: &mut TcpStats,
    ) {
        let Some(slot) = self.find(src, conn) else { return };
        let connection = &mut self.connections[slot];
        if !connection.is_open {
            return;
        }
        let outcome = connection.on_ack(now, acknowledgement, tcp, stats);
        if outcome == AckOutcome::Ignored {
            return;
        }
        if outcome == AckOutcome::Conflict {
            let msg = first_message(connection);
            self.fail(slot, out);
            out.send(src, msg, TcpHeader::Reset { conn });
            return;
        }
        self.complete(slot, tcp, out);
        if outcome == AckOutcome::FinAck {
            self.remove(slot);
        } else {
            self.update(now, slot, tcp);
        }
    }

    /// Reports the messages that are completely acknowledged.
    fn complete(&mut self, slot: u32, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let connection = &mut self.connections[slot];
        let before = connection.messages.len();
        while let Some(msg) = connection.pop_acknowledged() {
            self.by_message.remove(&msg.get());
            out.push_event(Event::Completed { msg });
        }
        let is_freed = before > 0 && connection.messages.is_empty();
        if is_freed && tcp.config.connections == Connections::Pool {
            let dst = connection.dst.get();
            self.shared.entry(dst).or_default().push(slot);
        }
    }

    /// Handles the end of a connection: everything had arrived before.
    pub(super) fn on_ended(&mut self, src: NodeId, conn: u32, out: &mut Output<TcpHeader>) {
        let Some(slot) = self.find(src, conn) else { return };
        for message in self.take_connection(slot) {
            out.push_event(Event::Completed { msg: message.msg });
        }
    }

    /// Fails the messages of a connection that the receiver does not have and cannot get.
    pub(super) fn on_refused(&mut self, src: NodeId, conn: u32, out: &mut Output<TcpHeader>) {
        let Some(slot) = self.find(src, conn) else { return };
        self.fail(slot, out);
    }

    fn fail(&mut self, slot: u32, out: &mut Output<TcpHeader>) {
        for message in self.take_connection(slot) {
            out.push_event(Event::Failed { msg: message.msg });
        }
    }

    /// Removes a connection and returns its messages.
    fn take_connection(&mut self, slot: u32) -> Vec<TxMessage> {
        let messages = std::mem::take(&mut self.connections[slot].messages);
        for message in &messages {
            self.by_message.remove(&message.msg.get());
        }
        self.remove(slot);
        messages.into()
    }

    fn remove(&mut self, slot: u32) {
        let Some(connection) = self.connections.remove(slot) else { return };
        self.by_number.remove(&(connection.dst.get(), connection.number));
        if let Some(of_pair) = self.shared.get_mut(&connection.dst.get()) {
            of_pair.retain(|&shared| shared != slot);
        }
        self.ready.remove(&mut self.positions, slot);
    }

    /// Cancels a message. Its connection is aborted, and with it other messages of which something
    /// was sent. Queued ones move to another connection.
    pub(super) fn cancel(&mut self, now: Time, msg: MsgId, tcp: &Tcp, out: &mut Output<TcpHeader>) {
        let Some(&slot) = self.by_message.get(&msg.get()) else { return };
        let connection = &mut self.connections[slot];
        let (dst, sent) = (connection.dst, connection.sent_end());
        // A connection of a pool has one message, and is free when that is acknowledged.
        let is_pooled = tcp.config.connections == Connections::Pool;
        if !is_pooled && connection.withdraw(msg) {
            self.by_message.remove(&msg.get());
            return;
        }
        let reset = TcpHeader::Reset { conn: connection.number };
        let others = self.take_connection(slot);
        out.cancel(msg, |header| matches!(header, TcpHeader::Reset { .. }));
        out.send(dst, msg, reset);
        for message in others.into_iter().filter(|message| message.msg != msg) {
            if message.start < sent {
                out.push_event(Event::Failed { msg: message.msg });
            } else {
                let size = rampmeter_types::Bytes::new(message.size);
                self.submit(now, &Message::new(message.msg, dst, size), tcp, out);
            }
        }
    }

    /// Handles a receiver that has lost its state.
    pub(super) fn forget_peer(&mut self, peer: NodeId, out: &mut Output<TcpHeader>) {
        let of_peer = self.connections.iter().filter(|(_, connection)| connection.dst == peer);
        let slots: Vec<u32> = of_peer.map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.fail(slot, out));
        self.numbers.reset(peer);
    }

    /// Sets the sending rate of a message.
    pub(crate) fn grant(&mut self, now: Time, msg: MsgId, grant: Grant, tcp: &Tcp) {
        let Some(&slot) = self.by_message.get(&msg.get()) else { return };
        self.connections[slot].grant = grant;
        self.update(now, slot, tcp);
    }

    /// Returns true if the connection of a message may send nothing because its receiver's window
    /// is closed.
    pub(crate) fn is_window_closed(&self, msg: MsgId) -> bool {
        self.by_message
            .get(&msg.get())
            .is_some_and(|&slot| self.connections[slot].is_window_closed())
    }

    /// Returns the bytes of a message that are not acknowledged; `None` if it has ended.
    pub(crate) fn unacknowledged(&self, msg: MsgId) -> Option<u64> {
        let slot = *self.by_message.get(&msg.get())?;
        self.connections[slot].unacknowledged(msg)
    }

    /// Enters a connection among those that may send, if it may, and sets its timer.
    fn update(&mut self, now: Time, slot: u32, tcp: &Tcp) {
        let connection = &mut self.connections[slot];
        let next = connection.next_segment(tcp).filter(|_| connection.paced_until <= now);
        match next {
            Some(next) => {
                let class = connection.class(next, tcp);
                let before = self.ready.get(&self.positions, slot);
                if before.is_none_or(|(of_before, _)| of_before != class.get()) {
                    self.next_turn += 1;
                    self.ready.set(&mut self.positions, slot, (class.get(), self.next_turn));
                }
            }
            None => {
                self.ready.remove(&mut self.positions, slot);
            }
        }
        let at = if connection.is_probe_queued { Time::NEVER } else { connection.deadline() };
        if at < connection.entry_at {
            connection.entry_at = at;
            self.timers.push(at, (slot, connection.number));
        }
        let paced = connection.paced_until;
        if paced > now && paced < connection.paced_entry_at {
            connection.paced_entry_at = paced;
            self.paced.push(paced, (slot, connection.number));
        }
    }

    /// Returns the next packet of the connection that is served next.
    pub(super) fn next_data(&mut self, now: Time, tcp: &Tcp) -> Option<Packet<TcpHeader>> {
        let (_, slot) = self.ready.first()?;
        self.ready.remove(&mut self.positions, slot);
        let connection = &mut self.connections[slot];
        let next = connection.next_segment(tcp)?;
        let packet = packet_of(self.node, connection, next, tcp)?;
        connection.send(now, next, packet.wire_bytes, tcp);
        self.update(now, slot, tcp);
        Some(packet)
    }

    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
        stats: &mut TcpStats,
    ) {
        while let Some((at, (slot, number))) = self.paced.pop_due(now) {
            let connection = self.connections.get_mut(slot);
            let is_valid = |c: &&mut Connection| c.number == number && c.paced_entry_at == at;
            if let Some(connection) = connection.filter(is_valid) {
                connection.paced_entry_at = Time::NEVER;
                self.update(now, slot, tcp);
            }
        }
        while let Some((at, (slot, number))) = self.timers.pop_due(now) {
            let connection = self.connections.get_mut(slot);
            let is_valid = |c: &&mut Connection| c.number == number && c.entry_at == at;
            let Some(connection) = connection.filter(is_valid) else { continue };
            connection.entry_at = Time::NEVER;
            if connection.is_window_closed() {
                connection.is_probe_queued = true;
                self.window_probes.push((slot, number), true);
                continue;
            }
            self.on_timer(now, slot, tcp, out, stats);
        }
        while let Some((slot, number)) = self.window_probes.pop(now) {
            let connection = self.connections.get_mut(slot).filter(|c| c.number == number);
            let Some(connection) = connection else { continue };
            connection.is_probe_queued = false;
            let probes = connection.is_window_closed() && connection.deadline() <= now;
            if probes {
                self.window_probes.count(now, tcp.window_probe_gap, true);
                self.on_timer(now, slot, tcp, out, stats);
            } else {
                self.update(now, slot, tcp);
            }
        }
    }

    /// Handles a timer of a connection that is due.
    fn on_timer(
        &mut self,
        now: Time,
        slot: u32,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
        stats: &mut TcpStats,
    ) {
        let connection = &mut self.connections[slot];
        match connection.on_timer(now, tcp, stats) {
            TimerAction::None => {}
            TimerAction::Syn => self.send_syn(slot, tcp, out),
            TimerAction::Abort => {
                let (dst, conn) = (connection.dst, connection.number);
                let msg = first_message(connection);
                self.fail(slot, out);
                out.send(dst, msg, TcpHeader::Reset { conn });
                return;
            }
        }
        self.update(now, slot, tcp);
    }
}

/// Returns the message that control packets of a connection name.
fn first_message(connection: &Connection) -> MsgId {
    connection.messages.front().map_or(MsgId::default(), |message| message.msg)
}

/// Returns the packet of a segment that `next` returned.
fn packet_of(
    node: NodeId,
    connection: &mut Connection,
    next: NextSegment,
    tcp: &Tcp,
) -> Option<Packet<TcpHeader>> {
    let (conn, seq) = (connection.number, wrap(next.start, connection.initial));
    let (src, dst) = (node, connection.dst);
    if next.len == 0 {
        let message = OutgoingMessage { src, dst, msg: connection.last_message(), size: 0 };
        let mut packet = tcp.segmentation().part(message, 0, 0, TcpHeader::Fin { conn, seq });
        packet.marks = tcp.control_marks();
        return Some(packet);
    }
    let priority = connection.class(next, tcp);
    let &TxMessage { msg, size, start } = connection.message_at(next.start)?;
    let cwr = std::mem::take(&mut connection.needs_cwr);
    let header = TcpHeader::Data { conn, seq, size, cwr };
    let message = OutgoingMessage { src, dst, msg, size };
    let (offset, len) = (next.start - start, next.len as u16);
    let mut packet = tcp.segmentation().part(message, offset, len, header);
    packet.priority = priority;
    if connection.has_ecn {
        packet.marks = Marks::ECN_CAPABLE;
    }
    Some(packet)
}
