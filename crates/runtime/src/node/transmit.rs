//! Packets to send: the endpoint's, paced, and the node's own notes.

use std::io;

use rampmeter_types::fabric::Spray;
use rampmeter_types::packet::Marks;
use rampmeter_types::rng::mix;
use rampmeter_types::{
    Endpoint, Header, MsgId, NodeId, Packet, PayloadRef, Priority, Time, WireError,
};

use super::bundles::BundleKey;
use super::state::{BATCH, NodeState};
use crate::app::{Applications, Outcome, Payload, Submission};
use crate::datapath::{Datapath, Rail, Route};
use crate::digest::{count_out, digest_to_be};
use rampmeter_types::envelope::{DatagramKind, Envelope, Fragment, Incarnation, Protection};

/// A packet of the node itself, apart from the protocol: a hello, its answer, or a request to abort
/// a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlNote {
    dst: NodeId,
    rail: Rail,
    /// Incarnation of the receiver; `None` in a hello, which requests it.
    incarnation: Option<Incarnation>,
    kind: DatagramKind,
    /// Bytes of a hello that probes the path.
    len: Option<usize>,
}

impl<E: Endpoint, A: Applications> NodeState<E, A> {
    /// Sends all packets that may be sent now: all notes, then at most a batch of packets. Returns
    /// true if there are more. `are_many` is true if packets arrive at a high rate.
    pub(super) fn transmit<D: Datapath>(
        &mut self,
        now: Time,
        are_many: bool,
        datapath: &mut D,
    ) -> io::Result<bool> {
        if !self.notes.is_empty() {
            let path = self.rng.bits() as u16;
            while let Some(note) = self.notes.pop_front() {
                self.send_note(now, note, path, datapath)?;
            }
            // Before the packets to a peer that has just responded: it must receive this node's
            // incarnation first.
            datapath.flush()?;
        }
        self.paths.begin_turn();
        let mut left = BATCH;
        while left > 0 && self.pacer.is_free(now) && self.endpoint.wants_transmit() {
            let Some(packet) = self.endpoint.poll_transmit(now) else { break };
            left -= 1;
            self.send(now, &packet, datapath)?;
        }
        // Under load control packets are batched for a short time.
        if !are_many || now >= self.bundles.opened_at() + self.config.coalescing {
            self.send_bundles(datapath)?;
        }
        // Notes that were queued while sending, such as hellos, are sent with the next batch.
        datapath.flush()?;
        Ok(left == 0 || !self.notes.is_empty())
    }

    fn send_note<D: Datapath>(
        &mut self,
        now: Time,
        ControlNote { dst, rail, incarnation, kind, len }: ControlNote,
        path: u16,
        datapath: &mut D,
    ) -> io::Result<()> {
        let envelope = self.envelope(dst, incarnation, kind);
        let route = Route { dst, class: Priority::HIGHEST, path, rail, marks: Marks::NONE };
        let (agreement, mut sent) = (self.config.agreement, 0);
        let write = |out: &mut [u8]| {
            sent = envelope.encode(out).unwrap_or(0);
            if matches!(kind, DatagramKind::Hello { .. } | DatagramKind::HelloAck { .. }) {
                sent += agreement.encode(&mut out[sent..]).unwrap_or(0);
            }
            if let Some(len) = len.filter(|len| *len > sent) {
                out[sent..len].fill(0);
                sent = len;
            }
            sent
        };
        if len.is_some() {
            datapath.send_whole(route, write)?;
        } else {
            datapath.send(route, write)?;
        }
        self.pacer.charge(now, sent + datapath.overhead());
        self.on_sent(dst, sent);
        self.peers.on_note_sent(dst);
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
        let (dst, class, marks) = (packet.dst, packet.priority, packet.marks);
        let Some(incarnation) = self.peers.peer_incarnation(dst) else {
            self.stats.unknown_incarnation_packets += 1;
            self.peers.call(now, dst);
            return Ok(());
        };
        let is_routed = marks.contains(Marks::ROUTED);
        let path = match self.config.spray {
            _ if is_routed => Some(packet.path),
            Spray::Ecmp => Some(path_of(dst, msg)),
            Spray::EcmpPair => Some(path_of(dst, MsgId::default())),
            Spray::SourceRoundRobin | Spray::Random => None,
        };
        if len == 0 {
            let way = BundleKey { dst, incarnation, class, marks, path };
            self.bundle(now, way, msg, &packet.header, datapath);
            return Ok(());
        }
        // After the node has failed all its messages, the endpoint may still request one of them.
        let Some(message) = self.outbox.get(msg) else { return Ok(()) };
        message.is_begun.set(true);
        let (service, size, offset) = (message.service, message.size, offset as u32);
        let digest = digest_to_be(&message.digest, offset, len.into(), size);
        let fragment = Fragment { service, offset, size, digest };
        let envelope = self.envelope(dst, Some(incarnation), DatagramKind::Data { msg, fragment });
        let path = path.unwrap_or_else(|| self.paths.next(|| self.rng.bits() as u16));
        let mut sent = 0;
        datapath.send(Route { dst, class, path, rail: Rail::Any, marks }, |out| {
            let payload = &message.payload;
            sent = compose(&envelope, &packet.header, payload, packet.payload, out).unwrap_or(0);
            if sent > 0 {
                let before = message.digest.get().added();
                count_out(&message.digest, payload, &fragment, len.into(), &mut out[..sent]);
                if message.digest.get().added() > before {
                    message.progress_at.set(now);
                }
            }
            sent
        })?;
        assert!(sent > 0, "a packet of {len} bytes and its headers fit into a datagram");
        self.pacer.charge(now, sent + datapath.overhead());
        self.on_sent(dst, sent);
        Ok(())
    }

    /// Adds a control packet, which is sent at the end of the iteration.
    fn bundle<D: Datapath>(
        &mut self,
        now: Time,
        way: BundleKey,
        msg: MsgId,
        header: &E::Header,
        datapath: &D,
    ) {
        let (paths, rng) = (&mut self.paths, &mut self.rng);
        let choose_path = || paths.of_turn(|| rng.bits() as u16);
        let is_new = self.bundles.add(now, way, msg, header, datapath.datagram_max(), choose_path);
        let is_new = is_new.expect("a header has its encoded length");
        let more = if is_new {
            Envelope::CONTROL_LEN + datapath.overhead()
        } else {
            Envelope::BUNDLE_ENTRY
        };
        self.pacer.charge(now, header.wire_len() + more);
    }

    /// Sends the control packets of the iteration.
    fn send_bundles<D: Datapath>(&mut self, datapath: &mut D) -> io::Result<()> {
        let mut bundles = std::mem::take(&mut self.bundles);
        for bundle in bundles.take() {
            let (kind, body) = bundle.contents();
            let envelope = self.envelope(bundle.route.dst, Some(bundle.incarnation), kind);
            let mut sent = 0;
            datapath.send(bundle.route, |out| {
                let at = envelope.encode(out).unwrap_or(0);
                sent = at + body.len();
                out[at..sent].copy_from_slice(body);
                sent
            })?;
            self.on_sent(bundle.route.dst, sent);
        }
        self.bundles = bundles;
        Ok(())
    }

    /// Counts a datagram that is sent to `dst`.
    fn on_sent(&mut self, dst: NodeId, bytes: usize) {
        self.peers.on_sent(dst, bytes);
        self.stats.packets_sent += 1;
        self.stats.sent_bytes += bytes as u64;
    }

    fn envelope(
        &self,
        dst: NodeId,
        dst_incarnation: Option<Incarnation>,
        kind: DatagramKind,
    ) -> Envelope {
        Envelope {
            transport: self.config.transport,
            src: self.config.node,
            dst,
            src_incarnation: self.peers.own_incarnation(self.config.incarnation, dst),
            dst_incarnation,
            kind,
            protection: Protection::Unprotected,
        }
    }

    /// Queues a note, which the next [`NodeState::transmit`] sends.
    pub(super) fn queue_note(
        &mut self,
        dst: NodeId,
        incarnation: Option<Incarnation>,
        kind: DatagramKind,
    ) {
        self.notes.push_back(ControlNote { dst, rail: Rail::Any, incarnation, kind, len: None });
    }

    /// Queues a note for the network on which its request arrived.
    pub(super) fn answer(
        &mut self,
        dst: NodeId,
        incarnation: Option<Incarnation>,
        kind: DatagramKind,
        rail: u8,
    ) {
        self.notes.push_back(ControlNote {
            dst,
            rail: Rail::Exactly(rail),
            incarnation,
            kind,
            len: None,
        });
    }

    /// Sends the hellos that are due, and fails messages whose receiver has not answered in time.
    pub(super) fn call_peers(&mut self, now: Time) {
        let (notes, mut expired) = (&mut self.notes, Vec::new());
        // Before an answer to the same peer's hello. After the answer the peer may send packets,
        // which this node accepts only once the peer has answered this hello.
        let hello = |(dst, rail), nonce, len| {
            notes.push_front(ControlNote {
                dst,
                rail,
                incarnation: None,
                kind: DatagramKind::Hello { nonce },
                len,
            });
        };
        self.peers.fire(now, hello, |submission, failure| expired.push((submission, failure)));
        for (Submission { app, ticket, .. }, failure) in expired {
            self.finish(app, ticket, Outcome::Failed(failure));
        }
    }
}

/// Paths of packets that may use any path. `run` successive data packets use the same one. The
/// first data packets of an iteration use that of its control packets, so that one system call
/// sends both.
#[derive(Debug)]
pub(super) struct Paths {
    run: u16,
    remaining: u16,
    path: u16,
    iteration_path: Option<u16>,
    is_first: bool,
}

impl Paths {
    /// Creates paths of which `run` successive data packets, at least one, use the same.
    pub(super) fn new(run: u16) -> Self {
        Self { run: run.max(1), remaining: 0, path: 0, iteration_path: None, is_first: true }
    }

    /// Begins an iteration with another path. No run continues from the iteration before, whose
    /// packets have been sent.
    fn begin_turn(&mut self) {
        (self.remaining, self.iteration_path, self.is_first) = (0, None, true);
    }

    /// Returns the path of the iteration's control packets; `choose` chooses it.
    fn of_turn(&mut self, choose: impl FnOnce() -> u16) -> u16 {
        *self.iteration_path.get_or_insert_with(choose)
    }

    /// Returns the path of the next data packet; `choose` chooses one for a run.
    fn next(&mut self, choose: impl FnOnce() -> u16) -> u16 {
        if self.remaining == 0 {
            let is_first = std::mem::take(&mut self.is_first);
            self.path = if is_first { self.of_turn(choose) } else { choose() };
            self.remaining = self.run;
        }
        self.remaining -= 1;
        self.path
    }
}

/// Returns the path of all packets of a message.
fn path_of(dst: NodeId, msg: MsgId) -> u16 {
    mix(u64::from(dst.get()) << 32 | u64::from(msg.get())) as u16
}

/// Writes a whole datagram; returns its length.
fn compose<H: Header, P: Payload>(
    envelope: &Envelope,
    header: &H,
    payload: &P,
    PayloadRef { offset, len, .. }: PayloadRef,
    out: &mut [u8],
) -> Result<usize, WireError> {
    let mut at = envelope.encode(out)?;
    at += header.encode(&mut out[at..])?;
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
    fn a_path_is_used_for_n_packets_in_a_row() {
        let of_run = |run| {
            let (mut paths, mut chosen) = (Paths::new(run), 0..);
            let path = |_| paths.next(|| chosen.next().unwrap());
            (0..6).map(path).collect::<Vec<_>>()
        };
        assert_eq!(of_run(1), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of_run(4), [0, 0, 0, 0, 1, 1]);
        assert_eq!(of_run(0), of_run(1));
    }

    #[test]
    fn the_first_packets_of_an_iteration_use_one_path() {
        let (mut paths, mut chosen) = (Paths::new(2), 0..);
        let mut next_rails = || {
            let mut choose = || chosen.next().unwrap();
            paths.begin_turn();
            let control = paths.of_turn(&mut choose);
            let mut data = || paths.next(&mut choose);
            [control, data(), data(), data()]
        };
        assert_eq!([next_rails(), next_rails()], [[0, 0, 0, 1], [2, 2, 2, 3]]);
    }

    #[test]
    fn messages_use_all_paths_equally() {
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
