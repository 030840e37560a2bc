//! Sealed datagrams: their contents, logged keys, and changed datagrams.

use std::collections::BTreeSet;
use std::io::Read as _;

use proptest::prelude::*;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::*;

/// Both ends log the same keys, and the key of a direction opens its packets.
#[test]
fn logged_keys_open_datagrams() {
    let mut net = Net::sealed();
    let mut logs = Vec::new();
    for end in &mut net.ends {
        let (reader, writer) = io::pipe().unwrap();
        end.log_keys(writer);
        logs.push(reader);
    }
    net.send(0, b"first");
    net.run(MOMENT);
    net.send(0, b"a secret");
    let datagram = net.wires.borrow()[1][0].clone();
    let logged = logs.into_iter().map(|mut log| {
        let mut text = [0; 1_000];
        let len = log.read(&mut text).unwrap();
        let text = str::from_utf8(&text[..len]).unwrap();
        text.lines().map(str::to_owned).collect::<BTreeSet<String>>()
    });
    let logged: Vec<_> = logged.collect();
    assert_eq!(logged[0], logged[1]);
    assert_eq!(logged[0].len(), 2);
    let (sealed, trailer) = datagram.split_last_chunk::<SEALED>().unwrap();
    let session = u16::from_be_bytes([trailer[0], trailer[1]]);
    let prefix = format!("RAMPMETER_KEY 0 1 {session} ");
    let key = logged[0].iter().find_map(|line| line.strip_prefix(&prefix)).unwrap();
    let digits = |at| u8::from_str_radix(&key[at..at + 2], 16).unwrap();
    let key: Vec<u8> = (0..64).step_by(2).map(digits).collect();
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
    let mut nonce = [0; NONCE_LEN];
    nonce[6..].copy_from_slice(&trailer[2..8]);
    let (head, body) = sealed.split_at(Envelope::DATA_LEN);
    let mut body = [body, &trailer[8..]].concat();
    let nonce = Nonce::assume_unique_for_key(nonce);
    let opened = key.open_in_place(nonce, Aad::from(head), &mut body).unwrap();
    assert_eq!(opened, [&9u32.to_be_bytes()[..], b"a secret"].concat());
}

#[test]
fn datagrams_arrive_as_they_were_sent_and_are_not_readable_on_the_way() {
    let mut net = Net::sealed();
    net.send(0, b"a secret of some length");
    assert_eq!(net.run(MOMENT), [vec![], vec![b"a secret of some length".to_vec()]]);
    net.send(1, b"an answer");
    let on_the_way = net.wires.borrow()[0].clone();
    assert_eq!(on_the_way.len(), 1);
    assert_eq!(on_the_way[0].len(), Envelope::LEN_MAX + 9 + Protection::Sealed.trailer());
    let readable = Envelope::decode(&on_the_way[0]).unwrap().0;
    let kind = readable.kind;
    assert_eq!(readable, Envelope { protection: Protection::Sealed, kind, ..envelope(1) });
    assert!(!on_the_way[0].windows(4).any(|part| part == b"answ"));
    assert_eq!(net.run(MOMENT), [vec![b"an answer".to_vec()], vec![]]);
    assert_eq!((net.counts(0).handshakes, net.counts(1).handshakes), (1, 1));
}

/// Two messages that differ in every byte, and so in their digests, have the same bytes in the
/// clear.
#[test]
fn nothing_in_the_clear_derives_from_the_bytes_of_a_message() {
    let clear = |digest: u32, payload: &[u8]| {
        let mut net = Net::sealed();
        net.send(0, b"first");
        net.run(MOMENT);
        let dst = NodeId::new(1);
        let (class, rail, marks) = (Priority::HIGHEST, Rail::Any, Marks::NONE);
        let route = Route { dst, class, path: 0, rail, marks };
        let write = |out: &mut [u8]| {
            let head = envelope(0).encode(out).unwrap();
            Envelope::set_digest(out, digest);
            out[head..head + payload.len()].copy_from_slice(payload);
            head + payload.len()
        };
        net.ends[0].send(route, write).unwrap();
        let datagram = net.wires.borrow()[1][0].clone();
        let sealed_from = Envelope::DATA_LEN;
        let trailer_at = datagram.len() - SEALED;
        let digest = digest.to_be_bytes();
        assert!(!datagram.windows(4).any(|part| part == digest), "the digest is readable");
        // The number of the session is random: it precedes the number of the packet.
        let numbers = datagram[trailer_at + 2..trailer_at + 8].to_vec();
        (datagram[..sealed_from].to_vec(), numbers, datagram.len())
    };
    let of = |payload: &[u8]| clear(crc32c::crc32c(payload), payload);
    assert_eq!(of(b"4711"), of(b"9999"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any change of any datagram is detected, including two flips that cancel out in the checksum
    /// of UDP.
    #[test]
    fn changed_datagrams_are_dropped(
        is_sealed in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..200),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut net = if is_sealed { Net::sealed() } else { Net::checksum() };
        net.send(0, b"first");
        net.run(MOMENT);
        net.send(0, &payload);
        let whole = net.wires.borrow()[1][0].clone();
        let mut bytes = whole.clone();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        prop_assume!(bytes != whole);
        net.wires.borrow_mut()[1][0] = bytes;
        let mut got = 0;
        let now = net.now;
        net.ends[1].receive(now, |_| got += 1).unwrap();
        prop_assert_eq!(got, 0);
        // The intact one is still accepted.
        net.wires.borrow_mut()[1] = vec![whole];
        prop_assert_eq!(net.receive(1), [payload]);
    }

    /// No input makes a node panic, or deliver a packet.
    #[test]
    fn strange_datagrams_are_dropped(
        is_sealed in any::<bool>(),
        kind in 0..12u8,
        protection in 0..4u8,
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut net = if is_sealed { Net::sealed() } else { Net::checksum() };
        net.send(0, b"first");
        net.run(MOMENT);
        let mut bytes = vec![0; Envelope::LEN_MAX];
        envelope(0).encode(&mut bytes).unwrap();
        (bytes[3], bytes[5]) = (kind, protection);
        bytes.extend(body);
        net.wires.borrow_mut()[1] = vec![bytes];
        prop_assert!(net.receive(1).is_empty());
    }
}
