use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

proptest! {
    /// Compared with the library's own way to join CRCs, by matrices.
    #[test]
    fn shifting_a_crc_appends_zero_bytes(crc in any::<u32>(), n in 0..=1u32 << 30) {
        prop_assert_eq!(shift(crc, n), crc32c::crc32c_combine(crc, 0, n as usize));
    }

    #[test]
    fn fast_products_of_crc_polynomials_match_bitwise_products(
        a in any::<u32>(),
        b in any::<u32>(),
    ) {
        let down = (0..32).fold(times(a, b), |product, _| over_x(product));
        prop_assert_eq!((0..32).fold(down, |p, _| times(p, ONE >> 1)), times(a, b));
        prop_assert_eq!(multiply(a, (0..32).fold(b, |b, _| over_x(b))), times(a, b));
    }
}

/// Memory of a sending program.
struct Memory(RefCell<Vec<u8>>);

impl Payload for Memory {
    fn size(&self) -> usize {
        self.0.borrow().len()
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0.borrow()[offset..offset + out.len()]);
    }
}

/// A packet in flight.
#[derive(Clone, Debug)]
struct PacketInFlight {
    fragment: Fragment,
    payload: Vec<u8>,
}

/// A message that is being sent.
struct Sender {
    memory: Memory,
    digest: Cell<SendDigest>,
}

impl Sender {
    fn new(bytes: Vec<u8>) -> Self {
        Self { memory: Memory(RefCell::new(bytes)), digest: Cell::default() }
    }

    fn size(&self) -> u32 {
        self.memory.size() as u32
    }

    /// Sends the bytes from `from` to `to`, as a node does.
    fn send(&self, (from, to): (u32, u32)) -> PacketInFlight {
        let digest = digest_to_be(&self.digest, from, to - from, self.size());
        let fragment = Fragment { service: 0, offset: from, size: self.size(), digest };
        let (head, len) = (Envelope::LEN_MAX, (to - from) as usize);
        let mut datagram = vec![0; head + len];
        self.memory.copy_to(from as usize, &mut datagram[head..]);
        count_out(&self.digest, &self.memory, &fragment, len, &mut datagram);
        let sent_digest =
            datagram[Envelope::DATA_LEN..].first_chunk().map(|b| u32::from_be_bytes(*b));
        let fragment = Fragment { digest: fragment.digest.and(sent_digest), ..fragment };
        PacketInFlight { fragment, payload: datagram.split_off(head) }
    }
}

/// Returns ranges that make up a message of `size` bytes.
fn cut(size: u32, cuts: &[Index]) -> Vec<(u32, u32)> {
    let mut ends: Vec<u32> = cuts.iter().map(|cut| cut.index(size as usize) as u32).collect();
    ends.extend([0, size]);
    ends.sort_unstable();
    ends.dedup();
    ends.windows(2).map(|ends| (ends[0], ends[1])).collect()
}

/// Returns the ranges in some order, with retransmissions of earlier or later ones between them.
fn schedule(parts: &[(u32, u32)], order: &[Index], again: &[(Index, Index)]) -> Vec<(u32, u32)> {
    let mut left = parts.to_vec();
    let mut all: Vec<_> = Vec::new();
    for at in (0..parts.len()).map(|n| order.get(n)) {
        all.push(left.remove(at.map_or(0, |at| at.index(left.len()))));
    }
    for (what, at) in again {
        all.insert(at.index(all.len() + 1), parts[what.index(parts.len())]);
    }
    all
}

/// State of a receiver that accepts each byte once, as endpoints do.
struct Receiver {
    bytes: Vec<Option<u8>>,
    digest: ReceiveDigest,
}

impl Receiver {
    fn new(size: u32) -> Self {
        Self { bytes: vec![None; size as usize], digest: ReceiveDigest::default() }
    }

    /// Receives a packet, if it is no duplicate.
    fn take(&mut self, PacketInFlight { fragment, payload }: &PacketInFlight) {
        let place = &mut self.bytes[fragment.offset as usize..][..payload.len()];
        if place.iter().all(Option::is_none) {
            place.iter_mut().zip(payload).for_each(|(place, byte)| *place = Some(*byte));
            self.digest = self.digest.with(fragment, payload);
        }
    }

    fn whole(&self) -> Option<Vec<u8>> {
        self.bytes.iter().copied().collect()
    }
}

/// The bytes of a message, the ends of its packets, the order of sending, and the retransmissions
/// with their times. Only the first few packets are out of order.
type Plan = (Vec<u8>, Vec<Index>, Vec<Index>, Vec<(Index, Index)>);

fn plans() -> impl Strategy<Value = Plan> {
    let index = any::<Index>;
    let order = vec(index(), 0..20);
    (vec(any::<u8>(), 1..6_000), vec(index(), 0..20), order, vec((index(), index()), 0..10))
}

proptest! {
    /// For any order and number of sent and received packets: a receiver that has all bytes has
    /// received the digest, and it is correct. No packet costs more work than its own bytes.
    #[test]
    fn the_digest_of_a_complete_message_is_correct(
        (bytes, cuts, order, again) in plans(),
        arrivals in vec(any::<Index>(), 0..40),
        doubled in vec((any::<Index>(), any::<Index>()), 0..10),
    ) {
        let sender = Sender::new(bytes.clone());
        let parts = cut(sender.size(), &cuts);
        let mut packets = Vec::new();
        for part in schedule(&parts, &order, &again) {
            let before = sender.digest.get().end;
            packets.push(sender.send(part));
            prop_assert!(sender.digest.get().end - before <= part.1 - part.0);
        }
        let ranges: Vec<_> = (0..packets.len() as u32).map(|n| (n, n + 1)).collect();
        let mut receiver = Receiver::new(sender.size());
        for (n, _) in schedule(&ranges, &arrivals, &doubled) {
            prop_assert!(receiver.whole().is_some() || !receiver.digest.matches(sender.size()));
            receiver.take(&packets[n as usize]);
            if receiver.whole().is_some() {
                prop_assert!(receiver.digest.matches(sender.size()));
            }
        }
        prop_assert_eq!(receiver.whole(), Some(bytes));
    }

    /// A sender may segment the message differently when it retransmits.
    #[test]
    fn the_digest_does_not_depend_on_packet_boundaries(
        (bytes, cuts, order, _) in plans(),
        again in vec(any::<Index>(), 0..20)
    ) {
        let sender = Sender::new(bytes.clone());
        let schedule = |cuts: &[Index]| schedule(&cut(sender.size(), cuts), &order, &[]);
        let lost: Vec<_> = schedule(&cuts).into_iter().map(|part| sender.send(part)).collect();
        prop_assert!(lost.last().is_some_and(|last| last.fragment.digest.is_some()));
        let mut receiver = Receiver::new(sender.size());
        schedule(&again).into_iter().for_each(|part| receiver.take(&sender.send(part)));
        prop_assert_eq!(receiver.whole(), Some(bytes));
        prop_assert!(receiver.digest.matches(sender.size()));
    }

    /// Bytes may change in the sender's memory between packets, or in flight. The digest is correct
    /// if it is that of the reassembled message, and wrong otherwise.
    #[test]
    fn changed_bytes_make_the_digest_wrong(
        (bytes, cuts, order, again) in plans(),
        (when, byte, flipped) in (any::<Index>(), any::<Index>(), 1..=u8::MAX),
        in_memory in any::<bool>(),
    ) {
        let sender = Sender::new(bytes.clone());
        let schedule = schedule(&cut(sender.size(), &cuts), &order, &again);
        let when = when.index(schedule.len());
        let mut receiver = Receiver::new(sender.size());
        for (n, part) in schedule.into_iter().enumerate() {
            if n == when && in_memory {
                let at = byte.index(bytes.len());
                sender.memory.0.borrow_mut()[at] ^= flipped;
            }
            let mut packet = sender.send(part);
            if n == when && !in_memory {
                let at = byte.index(packet.payload.len());
                packet.payload[at] ^= flipped;
            }
            receiver.take(&packet);
        }
        let (whole, sent_digest) = (receiver.whole().unwrap(), receiver.digest.sender_digest);
        let is_what_was_told = sent_digest == Some(crc32c::crc32c(&whole));
        prop_assert_eq!(receiver.digest.matches(sender.size()), is_what_was_told);
        if !in_memory {
            prop_assert_eq!(is_what_was_told, whole == bytes);
        }
    }

    /// A fragment at a wrong offset that the endpoint does not detect: as many bytes as the message
    /// has have arrived. The digest is wrong, unless they happen to equal the message.
    #[test]
    fn displaced_bytes_make_the_digest_wrong(
        (bytes, cuts, order, _) in plans(),
        (which, to) in any::<(Index, Index)>(),
    ) {
        let sender = Sender::new(bytes.clone());
        let schedule = schedule(&cut(sender.size(), &cuts), &order, &[]);
        let which = which.index(schedule.len());
        let (mut memory, mut digest) = (vec![0; bytes.len()], ReceiveDigest::default());
        for (n, part) in schedule.into_iter().enumerate() {
            let PacketInFlight { mut fragment, payload } = sender.send(part);
            if n == which {
                fragment.offset = to.index(bytes.len() - payload.len() + 1) as u32;
            }
            memory[fragment.offset as usize..][..payload.len()].copy_from_slice(&payload);
            digest = digest.with(&fragment, &payload);
        }
        if memory != bytes {
            prop_assert!(!digest.matches(sender.size()));
        }
    }
}
