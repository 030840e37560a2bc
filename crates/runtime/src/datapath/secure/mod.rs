//! Protected datagrams over any datapath.
//!
//! [`SecureDatapath`] is between a node and its datapath. It appends a trailer to each datagram and
//! drops received datagrams whose trailer is wrong. The trailer's format is in
//! [`rampmeter_types::envelope`].
//!
//! * The problem: UDP's checksum misses some damage, and any host can forge packets.
//! * [`Security::Checksum`], the simple way: a CRC32C over the datagram. It detects damage, but any
//!   host can compute it.
//! * [`Security::Sealed`], the present way: each pair of nodes has a session, from a Noise
//!   handshake (`Noise_IK_25519_ChaChaPoly_SHA256`). AES-256-GCM encrypts and authenticates
//!   packets. The envelope is authenticated but readable, except its digest. Packet numbers and a
//!   window reject duplicates. The design follows WireGuard (Donenfeld, NDSS 2017).
//! * Hazards: datagrams are queued or dropped until a session exists (`pairs`). Handshakes cost
//!   processor time, so their rates are limited (`allowance`, `cookie`). Recorded initiations
//!   cannot be distinguished from those of a clock that was set back (`pairs`).
//!
//! Other modules: `keys` (private and public keys), `key_log` (session keys, to decrypt captures),
//! `handshake` (its two messages), `session` (state that both ends derive from a handshake).

mod cookie;
mod handshake;
mod key_log;
mod keys;
mod pairs;
mod session;
mod token_bucket;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Time};

use self::key_log::KeyLog;
pub use self::key_log::{BadKeyLine, Decryption, DecryptionKeys};
pub use self::keys::{BadKey, PrivateKey, PublicKey};
pub use self::pairs::SealConfig;
use self::pairs::{HandshakeRefusal, Pairs};
use self::session::Trailer;
use super::{ArrivedPacket, Counts, Datapath, RailSet, Report, Route};
use rampmeter_types::envelope::{DatagramKind, Envelope, Protection};

/// Protection of a node's datagrams.
#[derive(Debug)]
pub enum Security {
    /// Protection by a checksum.
    Checksum,
    /// Protection by keys.
    Sealed(SealConfig),
}

/// Datapath with protected datagrams.
#[derive(Debug)]
pub struct SecureDatapath<D> {
    inner: D,
    guard: ProtectionState,
    /// Time of the latest [`Datapath::receive`].
    now: Time,
    /// Buffer for a datagram that is being opened, or queued until there is a session.
    scratch: Vec<u8>,
    counts: Counts,
}

#[derive(Debug)]
enum ProtectionState {
    Checksum,
    Sealed(Box<Pairs>),
}

const CHECKSUM: usize = Protection::Checksum.trailer();

impl<D: Datapath> SecureDatapath<D> {
    /// Wraps `inner`, with datagrams protected as `security` requires.
    pub fn new(inner: D, security: Security) -> Self {
        let guard = match security {
            Security::Checksum => ProtectionState::Checksum,
            Security::Sealed(config) => ProtectionState::Sealed(Box::new(Pairs::new(config))),
        };
        let scratch = Vec::with_capacity(inner.datagram_max());
        Self { inner, guard, now: Time::ZERO, scratch, counts: Counts::default() }
    }

    /// Returns the datapath that is wrapped.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Changes the keys of the node and of its peers. Sessions with peers of which a key was
    /// removed end, and the next packet begins new ones; all other sessions continue. Without
    /// effect if there is only a checksum.
    pub fn set_keys(&mut self, key: PrivateKey, peers: Vec<Option<Vec<PublicKey>>>) {
        if let ProtectionState::Sealed(pairs) = &mut self.guard {
            pairs.set_key(key);
            pairs.set_peers(peers);
        }
    }

    /// Writes the keys of sessions that are established from now on to `log`, whose readers can
    /// decrypt all packets. The node's thread writes a session in one call, so `log` must not
    /// block; after an error it logs no more. Without effect if there is only a checksum.
    pub fn log_keys(&mut self, log: impl Write + Send + 'static) {
        if let ProtectionState::Sealed(pairs) = &mut self.guard {
            pairs.log_keys(KeyLog(Box::new(log)));
        }
    }

    fn trailer(&self) -> usize {
        match self.guard {
            ProtectionState::Checksum => CHECKSUM,
            ProtectionState::Sealed(_) => SEALED,
        }
    }

    /// Protects a datagram and sends it.
    fn send_as(
        &mut self,
        route: Route,
        cut: Fragmentation,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        let Self { inner, guard, now, counts, scratch } = self;
        match guard {
            ProtectionState::Checksum => cut.send(inner, route, |out| {
                let room = out.len() - CHECKSUM;
                let len = write(&mut out[..room]);
                out[PROTECTION_AT] = 1;
                let sum = crc32c::crc32c(&out[..len]);
                out[len..len + CHECKSUM].copy_from_slice(&sum.to_be_bytes());
                len + CHECKSUM
            }),
            ProtectionState::Sealed(pairs) => match pairs.session(*now, route.dst) {
                Some(session) => cut.send(inner, route, |out| {
                    let room = out.len() - SEALED;
                    let len = write(&mut out[..room]);
                    session.seal(out, len)
                }),
                // A probe of the path is useless if it may be fragmented later.
                None if matches!(cut, Fragmentation::Forbidden) => Ok(()),
                None => {
                    scratch.resize(inner.datagram_max() - SEALED, 0);
                    let len = write(scratch);
                    let is_kept = pairs.queue_datagram(*now, route, &scratch[..len]);
                    counts.drops += u64::from(!is_kept);
                    Ok(())
                }
            },
        }
    }

    /// Sends handshake messages, and datagrams that were queued until there was a session.
    fn send_queued(&mut self) -> io::Result<()> {
        let ProtectionState::Sealed(pairs) = &mut self.guard else { return Ok(()) };
        while let Some((dst, rail, message)) = pairs.poll_message() {
            let (class, path, marks) = (Priority::HIGHEST, pairs.path(), Marks::NONE);
            let route = Route { dst, class, path, rail, marks };
            self.inner.send(route, |out| {
                out[..message.len()].copy_from_slice(&message);
                message.len()
            })?;
        }
        while let Some((route, datagram)) = pairs.poll_queued() {
            let Some(session) = pairs.session(self.now, route.dst) else { continue };
            self.inner.send(route, |out| {
                out[..datagram.len()].copy_from_slice(&datagram);
                session.seal(out, datagram.len())
            })?;
        }
        Ok(())
    }
}

impl<D: Datapath> Datapath for SecureDatapath<D> {
    fn datagram_max(&self) -> usize {
        self.inner.datagram_max() - self.trailer()
    }

    fn overhead(&self) -> usize {
        self.inner.overhead() + self.trailer()
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        self.send_as(route, Fragmentation::Allowed, write)
    }

    fn send_whole(
        &mut self,
        route: Route,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        self.send_as(route, Fragmentation::Forbidden, write)
    }

    fn set_limit(&mut self, peer: NodeId, bytes: Option<usize>) -> io::Result<()> {
        self.inner.set_limit(peer, bytes.map(|bytes| bytes + self.trailer()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_queued()?;
        self.inner.flush()
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        self.now = now;
        let Self { inner, guard, scratch, counts, .. } = self;
        let n = match guard {
            ProtectionState::Checksum => {
                inner.receive(now, |arrived| match checked(arrived.bytes, scratch) {
                    Some(()) => each(ArrivedPacket { bytes: scratch, ..arrived }),
                    None => counts.checksum_error_packets += 1,
                })?
            }
            ProtectionState::Sealed(pairs) => {
                let n = inner.receive(now, |arrived| {
                    if open(now, pairs, arrived, scratch, counts) {
                        each(ArrivedPacket { bytes: scratch, ..arrived });
                    }
                })?;
                // After received packets: they may contain answers, if the node was delayed.
                pairs.fire(now);
                n
            }
        };
        if let ProtectionState::Sealed(pairs) = &self.guard
            && pairs.has_queued()
        {
            self.flush()?;
        }
        Ok(n)
    }

    fn set_peers(&mut self, rail: u8, peers: &[Option<SocketAddr>]) -> bool {
        self.inner.set_peers(rail, peers)
    }

    fn n_rails(&self) -> u8 {
        self.inner.n_rails()
    }

    fn set_rails(&mut self, peer: NodeId, up: RailSet) {
        self.inner.set_rails(peer, up);
    }

    fn sent_over(&self, peer: NodeId, rail: u8) -> (u64, u64) {
        let (packets, bytes) = self.inner.sent_over(peer, rail);
        (packets, bytes.saturating_sub(packets * self.trailer() as u64))
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.wakers()
    }

    fn next_arrival(&self) -> Time {
        let next = self.inner.next_arrival();
        match &self.guard {
            ProtectionState::Checksum => next,
            ProtectionState::Sealed(pairs) => next.min(pairs.deadline()),
        }
    }

    fn counts(&self) -> Counts {
        let Self { guard, counts, .. } = self;
        let (handshakes, outdated_initiations) = match guard {
            ProtectionState::Checksum => (0, 0),
            ProtectionState::Sealed(pairs) => {
                (pairs.n_handshakes(), pairs.n_outdated_initiations())
            }
        };
        self.inner.counts() + Counts { handshakes, outdated_initiations, ..*counts }
    }

    fn poll_report(&mut self) -> Option<(NodeId, Report)> {
        let own = match &mut self.guard {
            ProtectionState::Checksum => None,
            ProtectionState::Sealed(pairs) => pairs.poll_report(),
        };
        let trailer = self.trailer();
        own.or_else(|| match self.inner.poll_report()? {
            (peer, Report::TooLong(len)) => {
                Some((peer, Report::TooLong(len.saturating_sub(trailer))))
            }
            report => Some(report),
        })
    }
}

/// Permission to fragment a datagram.
#[derive(Clone, Copy, Debug)]
enum Fragmentation {
    Allowed,
    Forbidden,
}

impl Fragmentation {
    fn send<D: Datapath>(
        self,
        datapath: &mut D,
        route: Route,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) -> io::Result<()> {
        match self {
            Self::Allowed => datapath.send(route, write),
            Self::Forbidden => datapath.send_whole(route, write),
        }
    }
}

/// Copies a datagram without its checksum to `plain`, if it is intact.
fn checked(bytes: &[u8], plain: &mut Vec<u8>) -> Option<()> {
    let (datagram, sum) = bytes.split_last_chunk::<CHECKSUM>()?;
    if *datagram.get(PROTECTION_AT)? != 1 || crc32c::crc32c(datagram) != u32::from_be_bytes(*sum) {
        return None;
    }
    plain.clear();
    plain.extend_from_slice(datagram);
    plain[PROTECTION_AT] = 0;
    Some(())
}

/// Writes the plain datagram to `plain`, if it is one for the node. Handles messages of handshakes.
fn open(
    now: Time,
    pairs: &mut Pairs,
    arrived: ArrivedPacket<'_>,
    plain: &mut Vec<u8>,
    counts: &mut Counts,
) -> bool {
    let Ok((envelope, read)) = Envelope::decode(arrived.bytes) else {
        counts.malformed_packets += 1;
        return false;
    };
    if envelope.protection != Protection::Sealed {
        match pairs.on_message(now, &envelope, arrived) {
            Ok(()) => {}
            Err(HandshakeRefusal::Unexpected) => counts.unknown_session_packets += 1,
            Err(HandshakeRefusal::OtherTransport) => counts.wrong_transport_packets += 1,
            Err(HandshakeRefusal::Forged) => counts.unauthenticated_packets += 1,
        }
        return false;
    }
    let Some((datagram, trailer)) = arrived.bytes.split_last_chunk::<SEALED>() else {
        counts.malformed_packets += 1;
        return false;
    };
    if datagram.len() < read {
        counts.malformed_packets += 1;
        return false;
    }
    let trailer = Trailer::decode(trailer);
    let Some(session) = pairs.session_of(now, envelope.src, trailer.session) else {
        counts.unknown_session_packets += 1;
        return false;
    };
    if session.is_duplicate(trailer.number) {
        counts.replayed_packets += 1;
        return false;
    }
    plain.clear();
    plain.extend_from_slice(datagram);
    let (head, body) = plain.split_at_mut(Envelope::cleartext_len(datagram));
    if !session.open(head, body, &trailer) {
        counts.unauthenticated_packets += 1;
        return false;
    }
    plain[PROTECTION_AT] = 0;
    pairs.on_opened(envelope.src, trailer.session);
    envelope.kind != DatagramKind::Confirmation
}

mod layout;
#[cfg(test)]
mod tests;
use layout::{PROTECTION_AT, SEALED};
