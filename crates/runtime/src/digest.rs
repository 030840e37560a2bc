//! Digest of a message: the CRC32C of all its bytes. The receiving node checks the whole message
//! with it before its transport receives the last packet.
//!
//! A sender extends a running CRC by the bytes of each packet, which have just been copied. If
//! packets are sent out of order it adds as many bytes as the packet has, so that the work is
//! bounded. Once every byte has been sent, all bytes have been added. From then on packets have the
//! digest.
//!
//! A receiver extends a running CRC too while packets arrive in order. CRCs are linear: that of a
//! message is the sum (exclusive or) of those of its parts, each followed by zeros up to the
//! message's end. So a packet out of order ends a run. The run's CRC is shifted by the bytes that
//! follow it and added. The order of runs does not matter, and no byte is read twice. A shift by n
//! bytes is a multiplication by x^8n modulo the polynomial, for which there are tables.

use std::cell::Cell;

use crate::app::Payload;
use rampmeter_types::envelope::{Envelope, Fragment};

/// Digest at the sender, of the message's first bytes.
#[derive(Clone, Copy, Debug)]
pub struct SendDigest {
    register: u32,
    /// Number of bytes that have been added.
    end: u32,
    /// True if no packet has been sent ahead of an earlier one.
    is_ordered: bool,
}

impl Default for SendDigest {
    fn default() -> Self {
        Self { register: EMPTY, end: 0, is_ordered: true }
    }
}

impl SendDigest {
    /// Returns the number of bytes that have been added; it grows until every byte has been sent
    /// once.
    pub fn added(&self) -> u32 {
        self.end
    }

    /// Returns the number of bytes that will have been added after `len` bytes from `offset` of a
    /// message of `size` have been sent.
    fn end_with(&self, offset: u32, len: u32, size: u32) -> u32 {
        if self.is_ordered && offset <= self.end {
            self.end.max(offset + len)
        } else {
            self.end.saturating_add(len).min(size)
        }
    }

    /// Adds the bytes of a packet that is sent, `body`, or as many others.
    fn add<P: Payload>(&mut self, payload: &P, offset: u32, body: &[u8]) {
        let end = self.end_with(offset, body.len() as u32, payload.size() as u32);
        self.is_ordered &= offset <= self.end;
        let hot = self.end.checked_sub(offset).and_then(|at| body.get(at as usize..));
        match hot.filter(|hot| hot.len() == (end - self.end) as usize) {
            Some(hot) => self.register = extend(self.register, hot),
            None => self.add_from(payload, end),
        }
        self.end = end;
    }

    /// Adds bytes up to `end`, which are read for that.
    #[cold]
    fn add_from<P: Payload>(&mut self, payload: &P, end: u32) {
        let mut part = [0; 2_048];
        for at in (self.end..end).step_by(part.len()) {
            let part = &mut part[..((end - at) as usize).min(2_048)];
            payload.copy_to(at as usize, part);
            self.register = extend(self.register, part);
        }
    }
}

/// Returns the digest field of a packet of a message that is being sent, still without its value.
pub fn digest_to_be(digest: &Cell<SendDigest>, offset: u32, len: u32, size: u32) -> Option<u32> {
    (digest.get().end_with(offset, len, size) == size).then_some(0)
}

/// Adds the payload of a packet, the last `len` bytes of `datagram`, to the digest of its message.
/// Writes the digest into the envelope if that has the field.
pub fn count_out<P: Payload>(
    digest: &Cell<SendDigest>,
    payload: &P,
    fragment: &Fragment,
    len: usize,
    datagram: &mut [u8],
) {
    let mut counted = digest.get();
    counted.add(payload, fragment.offset, &datagram[datagram.len() - len..]);
    if fragment.digest.is_some() {
        Envelope::set_digest(datagram, !counted.register);
    }
    digest.set(counted);
}

/// Digest at the receiver, of the bytes that have arrived.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveDigest {
    /// Sum of the completed runs.
    sum: u32,
    /// CRC of the latest run of bytes that arrived in order, and the offset of its end.
    run: u32,
    end: u32,
    /// Digest that the sender has sent, if any.
    sender_digest: Option<u32>,
}

impl Default for ReceiveDigest {
    fn default() -> Self {
        // An empty run: the initial value of a CRC counts as if it preceded the message.
        Self { sum: 0, run: EMPTY, end: 0, sender_digest: None }
    }
}

impl ReceiveDigest {
    /// Returns the digest with the payload of a fragment, which has not been added before.
    pub fn with(mut self, fragment: &Fragment, payload: &[u8]) -> Self {
        let Fragment { offset, size, digest, .. } = *fragment;
        if offset != self.end {
            self.sum ^= shift(self.run, size.saturating_sub(self.end));
            self.run = 0;
        }
        self.run = extend(self.run, payload);
        self.end = offset + payload.len() as u32;
        self.sender_digest = self.sender_digest.or(digest);
        self
    }

    /// Returns true if it equals the sender's digest, for a message of which `size` bytes have been
    /// added.
    pub fn matches(&self, size: u32) -> bool {
        let whole = self.sum ^ shift(self.run, size.saturating_sub(self.end));
        self.sender_digest == Some(!whole)
    }
}

/// Register of CRC32C before the first byte.
const EMPTY: u32 = !0;

/// Returns the register after more bytes.
#[inline]
fn extend(register: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!register, bytes)
}

/// Returns the register after `n` zero bytes, without initial and final inversion: times x^8n.
fn shift(mut register: u32, n: u32) -> u32 {
    for (table, byte) in POWERS.iter().zip(n.to_le_bytes()) {
        if byte != 0 {
            register = multiply(register, table[usize::from(byte)]);
        }
    }
    register
}

/// Polynomial of CRC32C, with x^31 in the lowest bit, as in registers. x^32 is omitted.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// One, which is x^0.
const ONE: u32 = 1 << 31;

/// Table k has the entries x^(8 * 256^k * i - 32) modulo the polynomial: [`multiply`] adds the 32.
static POWERS: [[u32; 256]; 4] = powers();

const fn powers() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    // x^8, then x^(8 * 256), and so on.
    let (mut step, mut k) = (ONE >> 8, 0);
    while k < tables.len() {
        let mut power = ONE;
        let mut down = 0;
        while down < 32 {
            power = over_x(power);
            down += 1;
        }
        let (mut i, mut next) = (0, ONE);
        while i < 256 {
            tables[k][i] = power;
            power = times(power, step);
            next = times(next, step);
            i += 1;
        }
        step = next;
        k += 1;
    }
    tables
}

/// Returns a product modulo the polynomial, bit by bit.
const fn times(mut a: u32, b: u32) -> u32 {
    let (mut product, mut bit) = (0, ONE);
    while bit != 0 {
        if b & bit != 0 {
            product ^= a;
        }
        a = if a & 1 == 1 { a >> 1 ^ POLYNOMIAL } else { a >> 1 };
        bit >>= 1;
    }
    product
}

/// Returns the quotient by x. The polynomial has a constant term: either the dividend is divisible,
/// or its sum with the polynomial is.
const fn over_x(a: u32) -> u32 {
    if a & ONE != 0 { (a ^ POLYNOMIAL) << 1 | 1 } else { a << 1 }
}

/// Returns a product times x^32 modulo the polynomial. The 63-bit product is reduced like a CRC of
/// 8 bytes.
#[inline]
fn multiply(a: u32, b: u32) -> u32 {
    extend(0, &(carryless(a, b) << 1).to_le_bytes())
}

/// Returns a product without carries. It multiplies every fourth bit of each factor, so that the
/// carries of integer products fall into the three bits between (Pornin, BearSSL's `ctmul`).
fn carryless(a: u32, b: u32) -> u64 {
    const MASK: u64 = 0x1111_1111_1111_1111;
    let split = |n: u32| [0, 1, 2, 3].map(|i| u64::from(n) & MASK << i);
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (split(a), split(b));
    let product = |a: u64, b: u64| a.wrapping_mul(b);
    let z0 = product(a0, b0) ^ product(a1, b3) ^ product(a2, b2) ^ product(a3, b1);
    let z1 = product(a0, b1) ^ product(a1, b0) ^ product(a2, b3) ^ product(a3, b2);
    let z2 = product(a0, b2) ^ product(a1, b1) ^ product(a2, b0) ^ product(a3, b3);
    let z3 = product(a0, b3) ^ product(a1, b2) ^ product(a2, b1) ^ product(a3, b0);
    z0 & MASK | z1 & MASK << 1 | z2 & MASK << 2 | z3 & MASK << 3
}

#[cfg(test)]
mod tests;
