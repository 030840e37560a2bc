//! What a node does with what comes in: datagrams, submissions, the endpoint's events.

use std::collections::VecDeque;
use std::io;

use rampmeter_core::packet::Marks;
use rampmeter_core::{
    Bytes, Endpoint, Event, Header, Message, MsgId, NodeId, Packet, PayloadRef, Priority, Receipt,
    Rng, Span, Time, WireError,
};

use crate::app::{
    Admission, Applications, Assembly, Failure, Outcome, Payload, Submission, Ticket,
};
use crate::datapath::{Arrived, Datapath, Route};
use crate::inbox::{Absences, Found, Held, HeldMessage, Inbox};
use crate::node::{BATCH, NodeConfig};
use crate::outbox::{Outbox, Sending};
use crate::pacer::Pacer;
use crate::peer::{Learned, Peers};
use crate::stats::NodeStats;
use crate::wire::{Envelope, Fragment, Incarnation, Kind};

/// Something that the node itself has to say, apart from the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    pub(crate) dst: NodeId,
    /// The life of the receiver that it is for.
    pub(crate) life: Option<Incarnation>,
    pub(crate) kind: Kind,
}

/// How often a node looks whether applications have room for messages that wait for it.
const ROOM_EVERY: Span = Span::from_us(100);

/// All of a node but its datapath, which lends packets to it.
pub(crate) struct State<E: Endpoint, A: Applications> {
    pub(crate) config: NodeConfig,
    pub(crate) endpoint: E,
    pub(crate) apps: A,
    pub(crate) peers: Peers<A::Payload>,
    pub(crate) outbox: Outbox<A::Payload>,
    pub(crate) inbox: Inbox<A::Assembly>,
    pub(crate) absences: Absences,
    pub(crate) held: Held,
    pub(crate) pacer: Pacer,
    pub(crate) rng: Rng,
    /// What this node itself has to say, apart from the protocol.
    pub(crate) notes: VecDeque<Note>,
    /// When the latest turn was: the endpoint's time does not go back.
    pub(crate) told: Time,
    pub(crate) is_stopping: bool,
    pub(crate) stats: NodeStats,
}

impl<E: Endpoint, A: Applications> State<E, A> {
    pub(crate) fn envelope(
        &self,
        dst: NodeId,
        dst_life: Option<Incarnation>,
        kind: Kind,
    ) -> Envelope {
        Envelope {
            transport: self.config.transport,
            src: self.config.node,
            dst,
            src_life: self.config.incarnation,
            dst_life,
            kind,
        }
    }

    /// Time this turn starts from: an overdue timer's deadline, at most one burst ago. Arrivals are
    /// handled first, then timers at their scheduled times, so that a protocol that paces by timers
    /// catches up as the pacer does.
    pub(crate) fn as_of(&self, now: Time) -> Time {
        let earliest = self.pacer.earliest(now).max(self.told);
        self.endpoint.poll_timeout().max(earliest).min(now)
    }

    /// Fires the timers that are due, a batch at most, beginning as of `at`.
    pub(crate) fn fire(&mut self, mut at: Time, now: Time) {
        for _ in 0..BATCH {
            let due = self.endpoint.poll_timeout();
            if due > now {
                break;
            }
            at = at.max(due);
            self.endpoint.handle_timeout(at);
            self.on_events(Failure::Unreachable);
        }
        self.told = now;
    }

    fn note(&mut self, dst: NodeId, life: Option<Incarnation>, kind: Kind) {
        self.notes.push_back(Note { dst, life, kind });
    }

    /// Counts a datagram that leaves.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    /// Sends a packet of the endpoint.
    pub(crate) fn send<D: Datapath>(
        &mut self,
        now: Time,
        packet: &Packet<E::Header>,
        datapath: &mut D,
    ) -> io::Result<()> {
        let PayloadRef { msg, offset, len } = packet.payload;
        let Some(life) = self.peers.life(packet.dst) else {
            self.stats.unready += 1;
            self.peers.call(now, packet.dst);
            return Ok(());
        };
        let (kind, payload) = if len == 0 {
            (Kind::Control { msg }, None)
        } else {
            // A node that has failed all its messages has none that its endpoint may ask for.
            let Some(message) = self.outbox.get(msg) else { return Ok(()) };
            let (service, size, offset) = (message.service, message.size, offset as u32);
            let fragment = Fragment { service, offset, size };
            (Kind::Data { msg, fragment }, Some(&message.payload))
        };
        let envelope = self.envelope(packet.dst, Some(life), kind);
        let path = match packet.marks.contains(Marks::ROUTED) {
            true => packet.path,
            false => self.rng.bits() as u16,
        };
        let (class, marks) = (packet.priority, packet.marks);
        let route = Route { dst: packet.dst, class, path, marks };
        let mut sent = 0;
        datapath.send(route, |out| {
            sent = compose(&envelope, &packet.header, payload, packet.payload, out).unwrap_or(0);
            sent
        })?;
        assert!(sent > 0, "a packet of {len} bytes and its headers fit into a datagram");
        self.pacer.charge(now, sent + datapath.overhead());
        self.on_sent(sent);
        Ok(())
    }

    pub(crate) fn on_datagram(&mut self, now: Time, arrived: Arrived<'_>) {
        let Arrived { bytes, from, marks } = arrived;
        self.stats.packets_received += 1;
        self.stats.bytes_received += bytes.len() as u64;
        let Ok((envelope, read)) = Envelope::decode(bytes) else {
            self.stats.malformed += 1;
            return;
        };
        let Envelope { transport, src, dst, src_life, dst_life, kind } = envelope;
        if !self.peers.is_from(src, from) || src == self.config.node {
            self.stats.unknown_sender += 1;
        } else if dst != self.config.node {
            self.stats.misdirected += 1;
        } else if transport != self.config.transport {
            self.stats.wrong_transport += 1;
        } else {
            match kind {
                Kind::Hello { nonce } => {
                    self.note(src, Some(src_life), Kind::Here { nonce });
                    if self.peers.life(src) != Some(src_life) {
                        self.peers.call(now, src);
                    }
                }
                _ if dst_life != Some(self.config.incarnation) => {
                    // The peer speaks to an earlier life; a hello makes it ask for this one.
                    self.stats.stale += 1;
                    self.peers.call(now, src);
                }
                Kind::Here { nonce } => self.on_here(now, src, nonce, src_life),
                _ if self.peers.life(src) != Some(src_life) => {
                    self.stats.stale += 1;
                    self.peers.call(now, src);
                }
                Kind::Refused { msg } => self.on_refused(now, src, msg),
                Kind::Control { msg } => {
                    self.on_packet(now, (src, marks), msg, None, &bytes[read..])
                }
                Kind::Data { msg, fragment } => {
                    self.on_packet(now, (src, marks), msg, Some(fragment), &bytes[read..]);
                }
            }
        }
    }

    /// A packet of the protocol.
    fn on_packet(
        &mut self,
        now: Time,
        (src, marks): (NodeId, Marks),
        msg: MsgId,
        fragment: Option<Fragment>,
        bytes: &[u8],
    ) {
        let Ok((header, read)) = E::Header::decode(bytes) else {
            self.stats.malformed += 1;
            return;
        };
        let payload = &bytes[read..];
        let packet = Packet {
            header,
            payload: PayloadRef {
                msg,
                offset: fragment.map_or(0, |f| f.offset.into()),
                len: fragment.map_or(0, |_| payload.len() as u16),
            },
            src,
            dst: self.config.node,
            wire_bytes: bytes.len() as u16,
            path: 0,
            priority: Priority::HIGHEST,
            marks,
        };
        if let Some(fragment) = &fragment
            && !self.admits(now, &packet, fragment, payload.len())
        {
            return;
        }
        let receipt = self.endpoint.handle_packet(now, &packet);
        if let Some(fragment) = &fragment {
            self.place(src, msg, fragment, payload, receipt);
        }
        self.on_events(Failure::Unreachable);
    }

    /// Whether a data packet makes sense and has room, so that the endpoint may be told of it.
    fn admits(
        &mut self,
        now: Time,
        packet: &Packet<E::Header>,
        fragment: &Fragment,
        len: usize,
    ) -> bool {
        let (src, msg) = (packet.src, packet.payload.msg);
        let Fragment { service, offset, size } = *fragment;
        let is_within = u64::from(offset) + len as u64 <= size.into();
        if len == 0 || len > usize::from(u16::MAX) || !is_within {
            self.stats.malformed += 1;
            return false;
        }
        if size > self.config.message_max {
            self.stats.no_room += 1;
            self.note(src, self.peers.life(src), Kind::Refused { msg });
            return false;
        }
        match self.inbox.find(src, msg, fragment) {
            Found::Arriving => true,
            Found::Contradicts => {
                self.stats.malformed += 1;
                false
            }
            Found::New => match self.apps.admission(service, size) {
                Admission::Accept => true,
                // Its sender has not heard yet that all of it is here.
                _ if self.endpoint.has_delivered(now, packet) => true,
                Admission::Wait => {
                    self.stats.no_room += 1;
                    if self.held.enter(HeldMessage { src, msg, service, size }) {
                        self.endpoint.hold(now, src, msg);
                    }
                    false
                }
                Admission::Absent if !self.absences.is_over(now, src, msg) => {
                    self.stats.no_room += 1;
                    false
                }
                Admission::Absent | Admission::Refuse => {
                    self.stats.no_room += 1;
                    self.note(src, self.peers.life(src), Kind::Refused { msg });
                    false
                }
            },
        }
    }

    /// Lets the message go on that has waited longest for room, if there is room for it now. One a
    /// turn, so that the room is taken before it is promised again. Says when to look again.
    pub(crate) fn release_held(&mut self, now: Time) -> Time {
        let Some(HeldMessage { src, msg, service, size }) = self.held.first() else {
            return Time::NEVER;
        };
        if self.apps.admission(service, size) != Admission::Wait {
            self.held.remove(src, msg);
            self.endpoint.release(now, src, msg);
            self.on_events(Failure::Unreachable);
        }
        now.saturating_add(ROOM_EVERY)
    }

    /// Puts a payload where it belongs, if the endpoint has not had it before.
    fn place(
        &mut self,
        src: NodeId,
        msg: MsgId,
        fragment: &Fragment,
        payload: &[u8],
        receipt: Receipt,
    ) {
        let len = payload.len() as u64;
        match receipt {
            Receipt::Fresh => {
                let (apps, Fragment { service, offset, size }) = (&mut self.apps, *fragment);
                let arriving = self.inbox.entry(src, msg, fragment, || apps.open(service, size));
                arriving.got += len;
                arriving.assembly.write(offset as usize, payload);
                self.stats.payload_received += len;
            }
            Receipt::Duplicate => self.stats.payload_duplicate += len,
            Receipt::Control | Receipt::Ignored => {}
        }
    }

    /// Passes on what the endpoint has to say. `failure` is why messages fail that fail now.
    pub(crate) fn on_events(&mut self, failure: Failure) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Delivered { src, msg } => {
                    let Some(arrived) = self.inbox.take(src, msg) else {
                        self.stats.inconsistent += 1;
                        continue;
                    };
                    if arrived.got != u64::from(arrived.size) {
                        self.stats.inconsistent += 1;
                        continue;
                    }
                    self.stats.messages_delivered += 1;
                    self.apps.deliver(src, arrived.service, arrived.assembly);
                }
                Event::Abandoned { src, msg } => {
                    drop(self.inbox.take(src, msg));
                    if self.held.remove(src, msg) {
                        self.endpoint.release(self.told, src, msg);
                    }
                }
                Event::Completed { msg } => self.on_over(msg, Outcome::Completed),
                Event::Failed { msg } => self.on_over(msg, Outcome::Failed(failure)),
                Event::Rejected { msg } => self.on_over(msg, Outcome::Failed(Failure::Rejected)),
            }
        }
    }

    fn on_over(&mut self, msg: MsgId, outcome: Outcome) {
        if let Some(message) = self.outbox.remove(msg) {
            self.finish(message.app, message.ticket, outcome);
        }
    }

    pub(crate) fn finish(&mut self, app: u32, ticket: Ticket, outcome: Outcome) {
        match outcome {
            Outcome::Completed => self.stats.messages_completed += 1,
            Outcome::Failed(_) => self.stats.messages_failed += 1,
        }
        self.apps.finish(app, ticket, outcome);
    }

    /// The receiver has nobody for the message.
    fn on_refused(&mut self, now: Time, src: NodeId, msg: MsgId) {
        if self.outbox.get(msg).is_some_and(|m| m.dst == src) {
            self.endpoint.cancel(now, msg);
            self.on_over(msg, Outcome::Failed(Failure::Refused));
        }
    }

    /// A peer has told its incarnation.
    fn on_here(&mut self, now: Time, src: NodeId, nonce: u32, life: Incarnation) {
        match self.peers.on_here(src, nonce, life) {
            Learned::Nothing => return,
            Learned::Same | Learned::First => {}
            Learned::Restarted => {
                self.stats.peer_restarts += 1;
                self.held.forget_peer(src);
                self.endpoint.forget_peer(now, src);
                self.on_events(Failure::PeerRestarted);
            }
        }
        for (_, submission) in self.peers.take_waiting(src) {
            self.submit(now, submission);
        }
    }

    pub(crate) fn take_submissions(&mut self, now: Time) {
        for _ in 0..BATCH {
            let Some(submission) = self.apps.poll_submission() else { return };
            self.stats.messages_submitted += 1;
            let Submission { app, ticket, dst, .. } = submission;
            let size = submission.payload.size();
            let failure = if self.is_stopping {
                Failure::Stopping
            } else if size == 0 || size > self.config.message_max as usize {
                Failure::BadSize
            } else if dst == self.config.node {
                self.deliver_here(submission);
                continue;
            } else if !self.peers.contains(dst) {
                Failure::UnknownPeer
            } else if self.peers.life(dst).is_none() {
                let until = now.saturating_add(self.config.patience);
                self.peers.wait(now, until, submission);
                continue;
            } else {
                self.submit(now, submission);
                continue;
            };
            self.finish(app, ticket, Outcome::Failed(failure));
        }
    }

    fn submit(&mut self, now: Time, submission: Submission<A::Payload>) {
        let Submission { app, ticket, dst, service, deadline, tenant, payload } = submission;
        let size = payload.size() as u32;
        let sending = Sending { app, ticket, dst, service, size, payload };
        let id = self.outbox.insert(sending);
        let size = Bytes::new(size.into());
        self.endpoint.submit(now, Message { id, dst, size, deadline, tenant });
        self.on_events(Failure::Unreachable);
    }

    /// A message from one application of this node to another.
    fn deliver_here(&mut self, submission: Submission<A::Payload>) {
        let Submission { app, ticket, service, payload, .. } = submission;
        let size = payload.size() as u32;
        if self.apps.admission(service, size) != Admission::Accept {
            return self.finish(app, ticket, Outcome::Failed(Failure::Refused));
        }
        let mut assembly = self.apps.open(service, size);
        let mut part = [0; 4_096];
        for offset in (0..size as usize).step_by(part.len()) {
            let len = part.len().min(size as usize - offset);
            payload.copy_to(offset, &mut part[..len]);
            assembly.write(offset, &part[..len]);
        }
        self.stats.messages_delivered += 1;
        self.apps.deliver(self.config.node, service, assembly);
        self.finish(app, ticket, Outcome::Completed);
    }

    pub(crate) fn call_peers(&mut self, now: Time) {
        let (notes, mut expired) = (&mut self.notes, Vec::new());
        let hello = |dst, nonce| {
            notes.push_back(Note { dst, life: None, kind: Kind::Hello { nonce } });
        };
        self.peers.fire(now, hello, |submission| expired.push(submission));
        for Submission { app, ticket, .. } in expired {
            self.finish(app, ticket, Outcome::Failed(Failure::Unreachable));
        }
    }
}

/// Writes a whole datagram; returns its length.
fn compose<H: Header, P: Payload>(
    envelope: &Envelope,
    header: &H,
    payload: Option<&P>,
    PayloadRef { offset, len, .. }: PayloadRef,
    out: &mut [u8],
) -> Result<usize, WireError> {
    let mut at = envelope.encode(out)?;
    at += header.encode(&mut out[at..])?;
    let Some(payload) = payload else { return Ok(at) };
    let (end, got) = (at + usize::from(len), out.len());
    let Some(body) = out.get_mut(at..end) else {
        return Err(WireError::Truncated { needed: end, got });
    };
    payload.copy_to(offset as usize, body);
    Ok(end)
}
