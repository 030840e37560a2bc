//! Packets that leave: the endpoint's, at the node's pace, and the node's own notes.

use std::io;

use rampmeter_core::fabric::Spray;
use rampmeter_core::packet::Marks;
use rampmeter_core::rng::mix;
use rampmeter_core::{
    Endpoint, Header, MsgId, NodeId, Packet, PayloadRef, Priority, Time, WireError,
};

use super::{BATCH, State};
use crate::app::{Applications, Failure, Outcome, Payload, Submission};
use crate::datapath::{Datapath, Route};
use crate::wire::{Envelope, Fragment, Incarnation, Kind, Protection};

/// A packet that the node sends for itself, apart from the protocol: a hello, its answer, or a
/// refusal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    dst: NodeId,
    /// The receiver's incarnation; `None` in a hello, which asks for it.
    life: Option<Incarnation>,
    kind: Kind,
}

impl<E: Endpoint, A: Applications> State<E, A> {
    /// Sends what may be sent now: all notes, then a batch of packets at most. True if there is
    /// more.
    pub(super) fn transmit<D: Datapath>(
        &mut self,
        now: Time,
        datapath: &mut D,
    ) -> io::Result<bool> {
        if !self.notes.is_empty() {
            let path = self.rng.bits() as u16;
            while let Some(note) = self.notes.pop_front() {
                self.send_note(now, note, path, datapath)?;
            }
            // Before the packets for a peer that has just been heard: it must know this node first.
            datapath.flush()?;
        }
        let mut left = BATCH;
        while left > 0 && self.pacer.is_free(now) && self.endpoint.wants_transmit() {
            let Some(packet) = self.endpoint.poll_transmit(now) else { break };
            left -= 1;
            self.send(now, &packet, datapath)?;
        }
        // Notes that sending has caused, such as hellos, go out with the next batch.
        datapath.flush()?;
        Ok(left == 0 || !self.notes.is_empty())
    }

    fn send_note<D: Datapath>(
        &mut self,
        now: Time,
        Note { dst, life, kind }: Note,
        path: u16,
        datapath: &mut D,
    ) -> io::Result<()> {
        let envelope = self.envelope(dst, life, kind);
        let route = Route { dst, class: Priority::HIGHEST, path, marks: Marks::NONE };
        let mut sent = 0;
        datapath.send(route, |out| {
            sent = envelope.encode(out).unwrap_or(0);
            sent
        })?;
        self.pacer.charge(now, sent + datapath.overhead());
        self.on_sent(sent);
        Ok(())
    }

    /// Sends a packet of the endpoint.
    fn send<D: Datapath>(
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
            message.is_begun.set(true);
            let (service, size, offset) = (message.service, message.size, offset as u32);
            let fragment = Fragment { service, offset, size };
            (Kind::Data { msg, fragment }, Some(&message.payload))
        };
        let envelope = self.envelope(packet.dst, Some(life), kind);
        let is_routed = packet.marks.contains(Marks::ROUTED);
        let path = match self.config.spray {
            _ if is_routed => packet.path,
            Spray::Ecmp => path_of(packet.dst, msg),
            Spray::SourceRoundRobin | Spray::Random => self.rng.bits() as u16,
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

    /// Counts a datagram that leaves.
    fn on_sent(&mut self, bytes: usize) {
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    fn envelope(&self, dst: NodeId, dst_life: Option<Incarnation>, kind: Kind) -> Envelope {
        Envelope {
            transport: self.config.transport,
            src: self.config.node,
            dst,
            src_life: self.config.incarnation,
            dst_life,
            kind,
            protection: Protection::Bare,
        }
    }

    /// Enters a note, which the next [`State::transmit`] sends.
    pub(super) fn note(&mut self, dst: NodeId, life: Option<Incarnation>, kind: Kind) {
        self.notes.push_back(Note { dst, life, kind });
    }

    /// Sends the hellos that are due, and fails messages whose receiver has not answered in time.
    pub(super) fn call_peers(&mut self, now: Time) {
        let (notes, mut expired) = (&mut self.notes, Vec::new());
        // Ahead of an answer to the same peer's hello: with that it may send packets, which are of use
        // here only once it has answered this one.
        let hello = |dst, nonce| {
            notes.push_front(Note { dst, life: None, kind: Kind::Hello { nonce } });
        };
        self.peers.fire(now, hello, |submission| expired.push(submission));
        for Submission { app, ticket, .. } in expired {
            self.finish(app, ticket, Outcome::Failed(Failure::Unreachable));
        }
    }
}

/// The path that all packets of a message take.
fn path_of(dst: NodeId, msg: MsgId) -> u16 {
    mix(u64::from(dst.get()) << 32 | u64::from(msg.get())) as u16
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_all_paths_alike() {
        let mut of_path = [0; 16];
        for dst in 0..8 {
            for msg in 0..200 {
                let path = path_of(NodeId::new(dst), MsgId::new(msg));
                of_path[usize::from(path) % 16] += 1;
            }
        }
        assert!(of_path.iter().all(|n| (75..=125).contains(n)), "{of_path:?}");
    }
}
