//! Packets that arrive: checks them, passes them to the endpoint, and writes their payloads to
//! messages.
//!
//! A datagram is checked in this order: envelope, sender and address, destination, transport, both
//! incarnations, header, memory, and for the rest of a message the digest. A packet that fails a
//! check is counted and dropped.

use rampmeter_types::packet::Marks;
use rampmeter_types::{
    Bytes, Endpoint, Header, MsgId, NodeId, Packet, PayloadRef, Priority, Receipt, Span, Time,
};

use super::state::{BATCH, NodeState};
use super::verify::{CorruptMessage, PayloadShare};
use crate::app::{Admission, Applications, Assembly, Failure, Outcome};
use crate::datapath::ArrivedPacket;
use crate::digest::ReceiveDigest;
use crate::inbox::{FragmentState, HeldMessage, RefusalReason};
use crate::outbox::OutgoingMessage;
use crate::peer::HelloOutcome;
use rampmeter_types::envelope::{DatagramKind, Envelope, Fragment, Incarnation, for_each_bundled};

/// Interval at which a node checks if applications have memory for deferred messages.
const CREDIT_NOTE_INTERVAL: Span = Span::from_us(100);

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Handles a datagram: a packet of the endpoint, or a note of another node.
    pub(super) fn on_datagram(&mut self, now: Time, arrived: ArrivedPacket<'_>) {
        let ArrivedPacket { bytes, from, rail, marks } = arrived;
        self.stats.packets_received += 1;
        self.stats.received_bytes += bytes.len() as u64;
        let Ok((envelope, read)) = Envelope::decode(bytes) else {
            self.stats.malformed_packets += 1;
            return;
        };
        let Envelope { transport, src, dst, src_incarnation, dst_incarnation, kind, .. } = envelope;
        if !self.peers.has_source_address(src, from) || src == self.config.node {
            self.stats.unknown_sender_packets += 1;
        } else if dst != self.config.node {
            self.stats.misdirected_packets += 1;
        } else if transport != self.config.transport {
            self.stats.wrong_transport_packets += 1;
            self.on_other_transport(now, src, transport);
        } else {
            let body = &bytes[read..];
            match kind {
                DatagramKind::Hello { nonce } => {
                    self.compare(now, src, body);
                    // On the same network: the peer may be testing it.
                    self.answer(src, Some(src_incarnation), DatagramKind::HelloAck { nonce }, rail);
                    if self.peers.peer_incarnation(src) != Some(src_incarnation) {
                        self.peers.call(now, src);
                    }
                }
                _ if dst_incarnation
                    != Some(self.peers.own_incarnation(self.config.incarnation, src)) =>
                {
                    // The peer addresses an earlier incarnation; a hello makes it request this one.
                    self.stats.stale_packets += 1;
                    self.peers.call(now, src);
                }
                DatagramKind::HelloAck { nonce } => {
                    self.compare(now, src, body);
                    self.on_hello_reply(now, src, rail, nonce, src_incarnation);
                }
                _ if self.peers.peer_incarnation(src) != Some(src_incarnation) => {
                    self.stats.stale_packets += 1;
                    self.peers.call(now, src);
                }
                _ => {
                    self.peers.on_received(now, src, rail, bytes.len());
                    self.active_at = now;
                    self.on_current_incarnation(now, src, marks, kind, body);
                }
            }
        }
    }

    /// Handles a datagram of the known incarnation of a peer.
    fn on_current_incarnation(
        &mut self,
        now: Time,
        src: NodeId,
        marks: Marks,
        kind: DatagramKind,
        body: &[u8],
    ) {
        match kind {
            DatagramKind::Refused { msg } => self.on_refused(now, src, msg, Failure::Refused),
            DatagramKind::Corrupt { msg } => {
                let is_incompatible = self.peers.is_incompatible(src);
                let failure = if is_incompatible { Failure::Mismatch } else { Failure::Corrupt };
                self.on_refused(now, src, msg, failure);
            }
            DatagramKind::Control { msg } => self.on_packet(now, src, marks, msg, None, body),
            DatagramKind::Bundle { n } => {
                let each = |msg, header: &[u8]| self.on_packet(now, src, marks, msg, None, header);
                if for_each_bundled(n, body, each).is_err() {
                    self.stats.malformed_packets += 1;
                }
            }
            DatagramKind::Data { msg, fragment } => {
                self.on_packet(now, src, marks, msg, Some(fragment), body)
            }
            DatagramKind::Hello { .. } | DatagramKind::HelloAck { .. } => {
                unreachable!("handled for any incarnation")
            }
            // The datapath handles these itself.
            DatagramKind::Initiation { .. }
            | DatagramKind::Response { .. }
            | DatagramKind::Cookie { .. }
            | DatagramKind::Confirmation => self.stats.malformed_packets += 1,
        }
    }

    /// Records the settings in which the peer differs, if it has sent them.
    fn compare(&mut self, now: Time, src: NodeId, digests: &[u8]) {
        if digests.is_empty() {
            return;
        }
        let own = self.config.agreement;
        match own.read(digests) {
            Ok(settings) => {
                self.peers.on_settings(now, src, settings, own.differences(&settings));
                self.watch(now, src);
            }
            Err(_) => self.stats.malformed_packets += 1,
        }
    }

    /// Handles a packet of the protocol.
    fn on_packet(
        &mut self,
        now: Time,
        src: NodeId,
        marks: Marks,
        msg: MsgId,
        fragment: Option<Fragment>,
        bytes: &[u8],
    ) {
        let Ok((header, read)) = E::Header::decode(bytes) else {
            self.stats.malformed_packets += 1;
            return;
        };
        let refusal = self.refusals.find(now, (src, msg));
        let is_refused = refusal.is_some();
        if let Some((why, is_due)) = refusal {
            if is_due {
                self.note_refusal(src, msg, why);
            }
            if fragment.is_some() {
                self.stats.no_memory_packets += u64::from(why == RefusalReason::NoReceiver);
                return;
            }
        }
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
        let mut digest = None;
        if let Some(fragment) = &fragment {
            let Some(brings) = self.admits(now, &packet, fragment, payload.len()) else { return };
            if brings == PayloadShare::Rest {
                match self.verify(&packet, fragment, payload) {
                    Ok(verified) => digest = verified,
                    Err(CorruptMessage) => return self.on_corrupt(now, src, msg),
                }
            }
        }
        let receipt = self.endpoint.handle_packet(now, &packet);
        if is_refused {
            // Unless the packet is about this node's message of that number, it has announced the
            // message once more.
            self.endpoint.abandon(now, src, msg);
        }
        if let Some(fragment) = &fragment {
            self.place(src, msg, fragment, payload, receipt, digest);
        }
        self.on_events(Failure::Unreachable);
    }

    /// Returns the part of its message that a data packet has. Returns none if the packet is
    /// invalid or its application has no memory; the endpoint then does not receive it.
    fn admits(
        &mut self,
        now: Time,
        packet: &Packet<E::Header>,
        fragment: &Fragment,
        len: usize,
    ) -> Option<PayloadShare> {
        let (src, msg) = (packet.src, packet.payload.msg);
        let Fragment { service, offset, size, .. } = *fragment;
        let is_within = u64::from(offset) + len as u64 <= size.into();
        if len == 0 || len > usize::from(u16::MAX) || !is_within {
            self.stats.malformed_packets += 1;
            return None;
        }
        if size > self.config.message_max {
            self.stats.no_memory_packets += 1;
            self.refuse(now, src, msg, RefusalReason::NoReceiver);
            return None;
        }
        let brings = |got: u64| Some(PayloadShare::new(got + len as u64, size));
        match self.inbox.find(src, msg, fragment) {
            FragmentState::Arriving(got) => brings(got),
            FragmentState::Conflict => {
                self.stats.malformed_packets += 1;
                None
            }
            FragmentState::New => match self.apps.admission(service, size) {
                Admission::Accept => {
                    self.absences.end(service);
                    brings(0)
                }
                // The message is complete, but its acknowledgement was lost or is in flight.
                _ if self.endpoint.touch_if_delivered(now, packet) => brings(0),
                admission => {
                    self.stats.no_memory_packets += 1;
                    let waits = match admission {
                        Admission::Absent => !self.absences.has_timed_out(now, service),
                        _ => {
                            self.absences.end(service);
                            admission == Admission::Wait
                        }
                    };
                    if !waits {
                        self.refuse(now, src, msg, RefusalReason::NoReceiver);
                    } else if self.deferred.enter(HeldMessage { src, msg, service, size }) {
                        self.endpoint.pause(now, src, msg);
                    }
                    None
                }
            },
        }
    }

    /// Refuses a message: its sender is notified, and the endpoint forgets it.
    pub(super) fn refuse(&mut self, now: Time, src: NodeId, msg: MsgId, why: RefusalReason) {
        self.note_refusal(src, msg, why);
        self.refusals.enter(now, (src, msg), why, self.config.connect_timeout);
        drop(self.inbox.take(src, msg));
        self.deferred.remove(src, msg);
        self.endpoint.abandon(now, src, msg);
        self.on_events(Failure::Unreachable);
    }

    pub(super) fn note_refusal(&mut self, src: NodeId, msg: MsgId, why: RefusalReason) {
        let kind = match why {
            RefusalReason::NoReceiver => DatagramKind::Refused { msg },
            RefusalReason::Corrupt => DatagramKind::Corrupt { msg },
        };
        self.queue_note(src, self.peers.peer_incarnation(src), kind);
    }

    /// Copies a payload to its place in the message, if the endpoint calls it fresh. `digest` is
    /// the message's digest with it, if known.
    fn place(
        &mut self,
        src: NodeId,
        msg: MsgId,
        fragment: &Fragment,
        payload: &[u8],
        receipt: Receipt,
        digest: Option<ReceiveDigest>,
    ) {
        let len = payload.len() as u64;
        match receipt {
            Receipt::Fresh => {
                let (apps, Fragment { service, offset, size, .. }) = (&mut self.apps, *fragment);
                let arriving = self.inbox.entry(src, msg, fragment, || apps.open(service, size));
                arriving.received_bytes += len;
                arriving.digest = digest.unwrap_or_else(|| arriving.digest.with(fragment, payload));
                arriving.assembly.write(offset as usize, payload);
                self.stats.payload_received_bytes += len;
            }
            Receipt::Duplicate => self.stats.payload_duplicate_bytes += len,
            Receipt::Control | Receipt::Ignored => {}
        }
    }

    /// Releases the oldest deferred message of each service, if it fits now. It releases one per
    /// service and iteration, so that its memory is allocated before the next check. Refuses those
    /// that no application will receive, at most a batch. Returns the time of the next check.
    pub(super) fn release_held(&mut self, now: Time) -> Time {
        for n_refused in 0..BATCH {
            if self.deferred.is_empty() {
                return Time::NEVER;
            }
            let Self { apps, absences, deferred: held, .. } = self;
            let is_decided = |m: &HeldMessage| match apps.admission(m.service, m.size) {
                Admission::Wait => {
                    absences.end(m.service);
                    false
                }
                Admission::Absent => absences.has_expired(now, m.service),
                Admission::Accept => n_refused == 0,
                Admission::Refuse => true,
            };
            let mut is_last = true;
            for HeldMessage { src, msg, service, size } in held.take_first(is_decided) {
                if self.apps.admission(service, size) == Admission::Accept {
                    self.absences.end(service);
                    self.endpoint.resume(now, src, msg);
                    self.on_events(Failure::Unreachable);
                } else {
                    self.refuse(now, src, msg, RefusalReason::NoReceiver);
                    is_last = false;
                }
            }
            if is_last {
                break;
            }
        }
        now.saturating_add(CREDIT_NOTE_INTERVAL)
    }

    /// Fails a message that its receiver has refused: no application receives it, it is too long,
    /// or its bytes have changed.
    fn on_refused(&mut self, now: Time, src: NodeId, msg: MsgId, failure: Failure) {
        if self.outbox.get(msg).is_some_and(|m| m.dst == src && !m.is_queued.get()) {
            self.endpoint.cancel(now, msg);
            self.end_submission(msg, Outcome::Failed(failure));
        }
    }

    /// Handles the reply to a hello, which has the peer's incarnation. Messages that were queued
    /// for the peer are submitted. If the peer has been restarted, messages that had begun fail,
    /// since its earlier incarnation may have delivered them; the others are submitted again. A
    /// bound counts from the first submission, so that messages with one fail as well.
    fn on_hello_reply(
        &mut self,
        now: Time,
        src: NodeId,
        rail: u8,
        nonce: u32,
        replier: Incarnation,
    ) {
        match self.peers.on_hello_reply(now, src, rail, nonce, replier) {
            HelloOutcome::Unmatched => return,
            HelloOutcome::SameIncarnation | HelloOutcome::FirstIncarnation => {}
            HelloOutcome::Restarted => {
                self.stats.peer_restarts += 1;
                self.deferred.forget_peer(src);
                self.refusals.forget_peer(src);
                let bound = self.endpoint.latency_bound();
                let has_no_bound = |message: &OutgoingMessage<A::Payload>| {
                    let size = Bytes::new(message.size.into());
                    bound.and_then(|bound| bound.bound(size, message.tenant)).is_none()
                };
                let unbegun = self.outbox.take_unsent(src, has_no_bound);
                self.send_queues.forget_peer(src);
                self.endpoint.forget_peer(now, src);
                self.on_events(Failure::PeerRestarted);
                for sending in unbegun {
                    self.submit_again(now, sending);
                }
            }
        }
        for waiting in self.peers.take_waiting(src) {
            self.submit_late(now, waiting);
        }
    }
}
