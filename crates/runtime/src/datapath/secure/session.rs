//! A session: the two keys that both ends derive from a handshake.

use rampmeter_types::{Span, Time};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::layout::{PROTECTION_AT, SEALED};
use rampmeter_types::envelope::Envelope;

/// Age at which the end that began a session begins the next; the other end waits for
/// [`RENEW_LATE`] more.
pub(super) const RENEW_AFTER: Span = Span::from_us(120_000_000);
pub(super) const RENEW_LATE: Span = Span::from_us(10_000_000);
/// Packets after which a session is renewed: far below the limit of one key of AES-GCM.
const RENEW_PACKETS: u64 = 1 << 28;
/// Age at which a session ends.
const END_AFTER: Span = Span::from_us(180_000_000);
/// Packets at which a session ends: 2^37 blocks of AES in full packets of 1500 bytes. The
/// probability to distinguish them from noise is then below 2^-50.
const END_PACKETS: u64 = 1 << 30;

/// Bytes of the number of a packet on the wire.
const NUMBER: usize = 6;
/// Bytes of the authentication tag.
const TAG: usize = 16;

/// Fields after the payload of a sealed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Receiver's number of the session.
    pub(super) session: u16,
    /// Number of the packet in the session.
    pub(super) number: u64,
    tag: [u8; TAG],
}

impl Trailer {
    pub(super) fn decode(bytes: &[u8; SEALED]) -> Self {
        let [s0, s1, rest @ ..] = *bytes;
        let mut number = [0; 8];
        number[8 - NUMBER..].copy_from_slice(&rest[..NUMBER]);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&rest[NUMBER..]);
        let session = u16::from_be_bytes([s0, s1]);
        Self { session, number: u64::from_be_bytes(number), tag }
    }
}

/// Key of one direction of a session.
#[derive(Debug)]
pub(super) struct PacketKey(LessSafeKey);

impl PacketKey {
    pub(super) fn new(bytes: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("a key has 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Decrypts `body` and returns true, if it was sealed by this key with `head`.
    pub(super) fn open(&self, head: &[u8], body: &mut [u8], trailer: &Trailer) -> bool {
        let Trailer { number, tag, .. } = *trailer;
        let (nonce, head) = (nonce(number), Aad::from(head));
        self.0.open_in_place_separate_tag(nonce, head, tag.into(), body, 0..).is_ok()
    }
}

/// One end of a session.
#[derive(Debug)]
pub(super) struct Session {
    /// Number of the session at this end, which arriving packets carry.
    pub(super) id: u16,
    /// Number of the session at the other end.
    remote_id: u16,
    send: PacketKey,
    receive: PacketKey,
    /// Number of the next packet.
    next: u64,
    replay_window: Window,
    established_at: Time,
    is_initiator: bool,
}

/// Numbers and keys of a session.
pub(super) struct SessionKeys {
    /// Numbers of the session at this end and at the other.
    pub(super) ids: (u16, u16),
    /// Keys to send with and to receive with.
    pub(super) keys: ([u8; 32], [u8; 32]),
    pub(super) is_initiator: bool,
}

impl Session {
    pub(super) fn new(now: Time, agreed: &SessionKeys) -> Self {
        Self {
            id: agreed.ids.0,
            remote_id: agreed.ids.1,
            send: PacketKey::new(&agreed.keys.0),
            receive: PacketKey::new(&agreed.keys.1),
            next: 0,
            replay_window: Window::default(),
            established_at: now,
            is_initiator: agreed.is_initiator,
        }
    }

    /// Returns true if packets may be sent with it, and accepted.
    pub(super) fn is_alive(&self, now: Time) -> bool {
        self.next < END_PACKETS && now.saturating_since(self.established_at) < END_AFTER
    }

    /// Returns true if this end should begin the next session.
    pub(super) fn is_due(&self, now: Time) -> bool {
        let after = if self.is_initiator { RENEW_AFTER } else { RENEW_AFTER + RENEW_LATE };
        self.next >= RENEW_PACKETS || now.saturating_since(self.established_at) >= after
    }

    /// Seals the datagram of `len` bytes at the front of `out`; returns its new length.
    pub(super) fn seal(&mut self, out: &mut [u8], len: usize) -> usize {
        let number = self.next;
        self.next += 1;
        out[PROTECTION_AT] = 2;
        let head = Envelope::cleartext_len(&out[..len]);
        let (datagram, trailer) = out[..len + SEALED].split_at_mut(len);
        let (head, body) = datagram.split_at_mut(head);
        let tag = self
            .send
            .0
            .seal_in_place_separate_tag(nonce(number), Aad::from(&*head), body)
            .expect("a datagram is shorter than what AES-GCM seals");
        let (session, rest) = trailer.split_at_mut(2);
        session.copy_from_slice(&self.remote_id.to_be_bytes());
        rest[..NUMBER].copy_from_slice(&number.to_be_bytes()[8 - NUMBER..]);
        rest[NUMBER..].copy_from_slice(tag.as_ref());
        len + SEALED
    }

    /// Returns true if a packet with this number has been opened before, or is too old to decide.
    pub(super) fn is_duplicate(&self, number: u64) -> bool {
        !self.replay_window.is_new(number)
    }

    /// Decrypts `body` and returns true, if the other end has sealed it with `head`.
    pub(super) fn open(&mut self, head: &[u8], body: &mut [u8], trailer: &Trailer) -> bool {
        let is_opened = self.receive.open(head, body, trailer);
        if is_opened {
            self.replay_window.enter(trailer.number);
        }
        is_opened
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Number of packets by which one may be late: more than all queues of a path hold.
const WINDOW: u64 = 1 << 14;
const BITS: u64 = u64::BITS as u64;
/// One word more than the window needs: the newest is not full (RFC 6479).
const WORDS: u64 = WINDOW / BITS + 1;

/// Numbers of the packets that have arrived, of the latest [`WINDOW`] (RFC 6479).
#[derive(Debug)]
struct Window {
    /// The number that follows the highest.
    end: u64,
    words: Box<[u64]>,
}

impl Default for Window {
    fn default() -> Self {
        Self { end: 0, words: vec![0; WORDS as usize].into() }
    }
}

impl Window {
    fn is_new(&self, number: u64) -> bool {
        if number >= self.end {
            return true;
        }
        let is_recent = self.end - number <= WINDOW;
        let word = self.words[(number / BITS % WORDS) as usize];
        is_recent && word >> (number % BITS) & 1 == 0
    }

    fn enter(&mut self, number: u64) {
        if number >= self.end {
            let (newest, next) = (self.end.div_ceil(BITS), number / BITS + 1);
            // The words between belong to numbers that are no longer in the window.
            for word in newest.max(next.saturating_sub(WORDS))..next {
                self.words[(word % WORDS) as usize] = 0;
            }
            self.end = number + 1;
        }
        self.words[(number / BITS % WORDS) as usize] |= 1 << (number % BITS);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a set of all numbers: no number is accepted twice, and every number in the
        /// window is recognised.
        #[test]
        fn replay_windows_reject_received_packets(steps in prop::collection::vec(
            prop_oneof![
                5 => -200i64..200,
                1 => -(WINDOW as i64) - 100..WINDOW as i64 + 100,
                1 => -3 * WINDOW as i64..3 * WINDOW as i64,
            ],
            1..400,
        )) {
            let (mut window, mut all) = (Window::default(), BTreeSet::new());
            let mut end = 0u64;
            for step in steps {
                let number = end.saturating_add_signed(step);
                let is_recent = number + WINDOW >= end;
                prop_assert_eq!(window.is_new(number), is_recent && !all.contains(&number));
                if window.is_new(number) {
                    window.enter(number);
                    all.insert(number);
                    end = end.max(number + 1);
                }
                prop_assert!(!window.is_new(number));
            }
        }
    }
}
