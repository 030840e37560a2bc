//! Impairments between a node and any datapath: loss, damage, duplication and reordering.

use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Purpose, Rng, Span, Time};

use super::{ArrivedPacket, Counts, Datapath, RailSet, Route};

/// Impairments of arriving packets, each independent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet is delayed.
    pub reorder: f64,
    /// Maximum delay.
    pub delay_max: Span,
    /// Probability that two bits of a packet, 16 bits apart or a multiple of that, are flipped. The
    /// checksum of UDP misses such damage if one was set and the other was not.
    pub flip: f64,
}

/// Origin of a delayed packet: address, network and marks.
type PacketOrigin = (Option<IpAddr>, u8, Marks);

/// Datapath with impairments in the receive direction.
#[derive(Debug)]
pub struct FaultyDatapath<D> {
    inner: D,
    faults: Faults,
    rng: Rng,
    held: Vec<(Time, Vec<u8>, PacketOrigin)>,
    lost: u64,
}

impl<D: Datapath> FaultyDatapath<D> {
    /// Wraps `inner`, with impairments drawn from `seed`.
    pub fn new(inner: D, faults: Faults, seed: u64) -> Self {
        let rng = Rng::new(seed, 0, Purpose::Fault);
        Self { inner, faults, rng, held: Vec::new(), lost: 0 }
    }

    /// Returns the number of packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Flips two bits at the same position of different 16-bit words.
fn flip_two(bytes: &mut [u8], rng: &mut Rng) {
    let words = bytes.len() / 2;
    if words < 2 {
        return;
    }
    let (first, bit) = (rng.uniform_below(words), rng.uniform_below(16));
    let second = (first + 1 + rng.uniform_below(words - 1)) % words;
    for word in [first, second] {
        bytes[2 * word + bit / 8] ^= 1 << (bit % 8);
    }
}

impl<D: Datapath> Datapath for FaultyDatapath<D> {
    fn datagram_max(&self) -> usize {
        self.inner.datagram_max()
    }

    fn overhead(&self) -> usize {
        self.inner.overhead()
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        self.inner.send(route, write)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let Self { inner, faults, rng, held, lost } = self;
        let mut n = 0;
        held.retain(|(at, bytes, (from, rail, marks))| {
            let is_due = *at <= now;
            if is_due {
                each(ArrivedPacket { bytes, from: *from, rail: *rail, marks: *marks });
                n += 1;
            }
            !is_due
        });
        n += inner.receive(now, |arrived| {
            if rng.bernoulli(faults.loss) {
                *lost += 1;
                return;
            }
            let mut damaged;
            let arrived = if rng.bernoulli(faults.flip) {
                damaged = arrived.bytes.to_vec();
                flip_two(&mut damaged, rng);
                ArrivedPacket { bytes: &damaged, ..arrived }
            } else {
                arrived
            };
            if rng.bernoulli(faults.reorder) {
                let at = now + faults.delay_max.scale_floor(rng.uniform_below(1_000) as u64, 1_000);
                let from = (arrived.from, arrived.rail, arrived.marks);
                held.push((at, arrived.bytes.to_vec(), from));
            } else {
                each(arrived);
            }
            if rng.bernoulli(faults.duplicate) {
                each(arrived);
            }
        })?;
        Ok(n)
    }

    fn n_rails(&self) -> u8 {
        self.inner.n_rails()
    }

    fn set_rails(&mut self, peer: NodeId, up: RailSet) {
        self.inner.set_rails(peer, up);
    }

    fn sent_over(&self, peer: NodeId, rail: u8) -> (u64, u64) {
        self.inner.sent_over(peer, rail)
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.wakers()
    }

    fn next_arrival(&self) -> Time {
        let held = self.held.iter().map(|(at, ..)| *at).min().unwrap_or(Time::NEVER);
        held.min(self.inner.next_arrival())
    }

    fn counts(&self) -> Counts {
        self.inner.counts()
    }
}
