//! Two ends, and a network between them that the test controls.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use rampmeter_core::{MsgId, NodeId, Span};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::*;
use crate::datapath::Rail;
use crate::wire::{Fragment, Incarnation, TransportId};

/// Datagrams in flight to each of two nodes.
type Wires = Rc<RefCell<[Vec<Vec<u8>>; 2]>>;

#[derive(Debug)]
struct Wire {
    node: usize,
    wires: Wires,
}

impl Datapath for Wire {
    fn datagram_max(&self) -> usize {
        1_472
    }

    fn overhead(&self) -> usize {
        66
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let mut bytes = vec![0; self.datagram_max()];
        let len = write(&mut bytes);
        bytes.truncate(len);
        self.wires.borrow_mut()[route.dst.idx()].push(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, _now: Time, mut each: impl FnMut(Arrived<'_>)) -> io::Result<usize> {
        let arriving = std::mem::take(&mut self.wires.borrow_mut()[self.node]);
        let from = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2 - self.node as u8)));
        arriving
            .iter()
            .for_each(|bytes| each(Arrived { bytes, from, rail: 0, marks: Marks::NONE }));
        Ok(arriving.len())
    }
}

/// Returns starting times of incarnations, one after another.
fn started() -> u64 {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    LATEST.fetch_add(1_000_000, Ordering::Relaxed)
}

fn envelope(src: usize) -> Envelope {
    let fragment = Fragment { service: 7, offset: 3, size: 5_000, digest: Some(9) };
    Envelope {
        transport: TransportId(1),
        src: NodeId::new(src as u32),
        dst: NodeId::new(1 - src as u32),
        src_life: Incarnation::new(5),
        dst_life: Some(Incarnation::new(6)),
        kind: Kind::Data { msg: MsgId::new(9), fragment },
        protection: Protection::Bare,
    }
}

/// Two protected datapaths.
struct Net {
    ends: Vec<Secured<Wire>>,
    wires: Wires,
    keys: Vec<PrivateKey>,
    now: Time,
}

impl Net {
    fn sealed() -> Self {
        let keys = vec![PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap()];
        let wires = Wires::default();
        let mut net = Self { ends: Vec::new(), wires, keys, now: Time::ZERO };
        net.ends = (0..2).map(|node| net.end(node)).collect();
        net
    }

    fn checksum() -> Self {
        let wires = Wires::default();
        let end = |node| Secured::new(Wire { node, wires: Rc::clone(&wires) }, Security::Checksum);
        let ends = vec![end(0), end(1)];
        Self { ends, wires, keys: Vec::new(), now: Time::ZERO }
    }

    fn public(&self) -> Vec<Option<Vec<PublicKey>>> {
        self.keys.iter().map(|key| Some(vec![key.public()])).collect()
    }

    /// Starts a new incarnation of a node.
    fn end(&self, node: usize) -> Secured<Wire> {
        self.end_with(node, self.keys[node].clone())
    }

    fn config(&self, node: usize, key: PrivateKey) -> SealConfig {
        SealConfig {
            node: NodeId::new(node as u32),
            transport: TransportId(1),
            incarnation: Incarnation::new(1 + node as u32),
            started_ns: started(),
            key,
            peers: self.public(),
        }
    }

    /// Starts an end that claims to be a node.
    fn end_with(&self, node: usize, key: PrivateKey) -> Secured<Wire> {
        self.end_started(node, started(), key)
    }

    /// Starts such an end with a clock of that time.
    fn end_started(&self, node: usize, started_ns: u64, key: PrivateKey) -> Secured<Wire> {
        let config = SealConfig { started_ns, ..self.config(node, key) };
        let wire = Wire { node, wires: Rc::clone(&self.wires) };
        Secured::new(wire, Security::Sealed(config))
    }

    /// Sends a data packet of `src` with this payload.
    fn send(&mut self, src: usize, payload: &[u8]) {
        let dst = NodeId::new(1 - src as u32);
        let route =
            Route { dst, class: Priority::HIGHEST, path: 0, rail: Rail::Any, marks: Marks::NONE };
        let write = |out: &mut [u8]| {
            let head = envelope(src).encode(out).unwrap();
            out[head..head + payload.len()].copy_from_slice(payload);
            head + payload.len()
        };
        self.ends[src].now = self.now;
        self.ends[src].send(route, write).unwrap();
        self.ends[src].flush().unwrap();
    }

    /// Returns the packets that arrive at a node, without the envelope, which is checked.
    fn receive(&mut self, node: usize) -> Vec<Vec<u8>> {
        let (mut got, now) = (Vec::new(), self.now);
        self.ends[node]
            .receive(now, |arrived| {
                let (read, len) = Envelope::decode(arrived.bytes).unwrap();
                assert_eq!(read, envelope(1 - node));
                got.push(arrived.bytes[len..].to_vec());
            })
            .unwrap();
        got
    }

    /// Runs both nodes until all packets, and those that these cause, are received, as time passes.
    fn run(&mut self, span: Span) -> [Vec<Vec<u8>>; 2] {
        let until = self.now + span;
        let mut got = [Vec::new(), Vec::new()];
        loop {
            for (node, got) in got.iter_mut().enumerate() {
                got.extend(self.receive(node));
            }
            let is_quiet = self.wires.borrow().iter().all(Vec::is_empty);
            if is_quiet {
                let next = self.ends.iter().map(Datapath::next_arrival).min().unwrap();
                if next > until {
                    break;
                }
                self.now = self.now.max(next);
            }
        }
        self.now = until;
        got
    }

    fn counts(&self, node: usize) -> Counts {
        self.ends[node].counts()
    }
}

const MOMENT: Span = Span::from_us(1_000);
const SECOND: Span = Span::from_us(1_000_000);

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

#[test]
fn packets_of_both_ends_at_once_agree_on_sessions() {
    let mut net = Net::sealed();
    net.send(0, b"from 0");
    net.send(1, b"from 1");
    assert_eq!(net.run(MOMENT), [vec![b"from 1".to_vec()], vec![b"from 0".to_vec()]]);
    for n in 0..10u8 {
        net.send(0, &[n]);
        net.send(1, &[n]);
        assert_eq!(net.run(MOMENT), [vec![vec![n]], vec![vec![n]]]);
    }
    assert_eq!((net.counts(0).forged, net.counts(1).forged), (0, 0));
    assert_eq!((net.counts(0).handshakes, net.counts(1).handshakes), (2, 2));
}

#[test]
fn lost_messages_of_handshakes_are_sent_again() {
    for lost in 0..3 {
        let mut net = Net::sealed();
        net.send(0, b"x");
        // The initiation, the response, or the packet that confirms the session.
        for message in 0..3 {
            let to = 1 - message % 2;
            if message == lost {
                assert_eq!(std::mem::take(&mut net.wires.borrow_mut()[to]).len(), 1);
                break;
            }
            assert!(net.receive(to).is_empty());
        }
        let got = net.run(SECOND);
        assert_eq!(got[1].len(), usize::from(lost < 2), "{lost}");
        net.send(0, b"y");
        net.send(1, b"z");
        assert_eq!(net.run(SECOND), [vec![b"z".to_vec()], vec![b"y".to_vec()]], "{lost}");
    }
}

#[test]
fn what_arrives_again_is_not_handed_over() {
    let mut net = Net::sealed();
    net.send(0, b"first");
    net.run(MOMENT);
    net.send(0, b"once");
    let recorded = net.wires.borrow()[1].clone();
    assert_eq!(net.run(MOMENT)[1].len(), 1);
    net.wires.borrow_mut()[1] = recorded;
    assert_eq!(net.run(MOMENT)[1].len(), 0);
    assert_eq!(net.counts(1).replayed, 1);
}

#[test]
fn a_node_that_is_started_again_is_heard_and_old_packets_are_not() {
    for restarted in 0..2 {
        let mut net = Net::sealed();
        net.send(0, b"x");
        net.run(MOMENT);
        net.send(0, b"y");
        let recorded = net.wires.borrow()[1].clone();
        net.run(MOMENT);
        net.ends[restarted] = net.end(restarted);
        net.wires.borrow_mut()[1] = recorded;
        assert!(net.run(MOMENT).iter().all(Vec::is_empty));
        // The other end still sends in the old session, which makes the new incarnation begin a
        // handshake.
        net.now += SECOND;
        net.send(1 - restarted, b"lost");
        net.run(SECOND);
        net.send(1 - restarted, b"to the new life");
        net.send(restarted, b"of the new life");
        let got = net.run(SECOND);
        assert_eq!(got[restarted].last().unwrap(), b"to the new life");
        assert_eq!(got[1 - restarted].last().unwrap(), b"of the new life");
    }
}

#[test]
fn recorded_handshakes_change_nothing() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    let initiation = net.wires.borrow()[1].clone();
    net.run(MOMENT);
    for _ in 0..3 {
        net.wires.borrow_mut()[1].clone_from(&initiation);
        net.run(MOMENT);
    }
    // The first has made node 1 begin a handshake with the true node 0.
    let Counts { handshakes, forged, old_initiations, .. } = net.counts(1);
    assert_eq!((handshakes, forged, old_initiations), (2, 0, 3));
    net.send(0, b"y");
    net.send(1, b"z");
    assert_eq!(net.run(MOMENT), [vec![b"z".to_vec()], vec![b"y".to_vec()]]);
}

#[test]
fn sessions_are_renewed_without_a_break() {
    let mut net = Net::sealed();
    for n in 0..600u32 {
        net.send(n as usize % 2, &n.to_be_bytes());
        let got = net.run(SECOND);
        assert_eq!(got[1 - n as usize % 2], [n.to_be_bytes().to_vec()], "at {:?}", net.now);
    }
    // Every two minutes.
    assert!((5..=6).contains(&net.counts(0).handshakes), "{:?}", net.counts(0));
    assert_eq!((net.counts(0).forged, net.counts(1).forged), (0, 0));
}

#[test]
fn a_pair_that_was_silent_for_long_speaks_again() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    net.run(SECOND);
    net.now += SECOND * 1_000;
    net.send(1, b"after a pause");
    assert_eq!(net.run(MOMENT)[0], [b"after a pause".to_vec()]);
}

#[test]
fn strangers_agree_on_nothing() {
    let mut net = Net::sealed();
    net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
    net.send(0, b"let me in");
    net.send(1, b"for the real one");
    assert_eq!(net.run(SECOND * 10), [Vec::<Vec<u8>>::new(), vec![]]);
    assert!(net.counts(1).forged > 0);
    assert_eq!(net.counts(1).handshakes, 0);
}

#[test]
fn floods_of_initiations_are_answered_with_cookies_and_honest_nodes_get_through() {
    let mut net = Net::sealed();
    // Packets of a sender that has the public keys, and receives none of the answers.
    let flood = |net: &mut Net| {
        for _ in 0..200 {
            net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
            net.send(0, b"x");
        }
        assert_eq!(net.wires.borrow()[1].len(), 200);
        net.receive(1);
        std::mem::take(&mut net.wires.borrow_mut()[0])
    };
    let answers = flood(&mut net);
    let kind = |bytes: &Vec<u8>| Envelope::decode(bytes).unwrap().0.kind;
    assert!(answers.iter().all(|answer| matches!(kind(answer), Kind::Cookie { .. })));
    // All except a few cost no computation with curves.
    assert_eq!(answers.len() as u64 + net.counts(1).forged, 200);
    assert!((30..40).contains(&net.counts(1).forged), "{:?}", net.counts(1));
    // No answer is longer than its request.
    let initiation = Envelope::CONTROL_LEN + handshake::INITIATION + 2 * cookie::CODE;
    assert!(answers.iter().all(|answer| answer.len() < initiation));
    // An honest node that receives its cookie is answered while the flood lasts.
    net.ends[0] = net.end(0);
    net.send(0, b"honest");
    let mut got = Vec::new();
    for _ in 0..10 {
        got.extend(net.receive(1));
        net.receive(0);
        let honest = net.ends.remove(0);
        net.ends.insert(0, net.end(0));
        let to_honest = std::mem::take(&mut net.wires.borrow_mut()[0]);
        let of_honest = std::mem::take(&mut net.wires.borrow_mut()[1]);
        flood(&mut net);
        net.ends[0] = honest;
        *net.wires.borrow_mut() = [to_honest, of_honest];
        net.now += Span::from_us(20_000);
    }
    assert_eq!(got, [b"honest".to_vec()]);
}

/// An attacker who receives packets at a peer's address has its cookies: it gets few answers, and
/// other peers are answered meanwhile.
#[test]
fn a_cookie_does_not_buy_unlimited_answers() {
    let mut net = Net::sealed();
    let kind = |bytes: &Vec<u8>| Envelope::decode(bytes).unwrap().0.kind;
    let is_cookie = |bytes: &Vec<u8>| matches!(kind(bytes), Kind::Cookie { .. });
    let (mut cookie, mut n_read) = (None, 0);
    for _ in 0..1_000 {
        net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
        if let (Guard::Sealed(pairs), Some(cookie)) = (&mut net.ends[0].guard, cookie) {
            pairs.set_cookie(NodeId::new(1), cookie);
        }
        net.send(0, b"x");
        let before = net.counts(1).forged;
        net.receive(1);
        // Each initiation that is read costs computation with curves, and has an unknown key.
        n_read += net.counts(1).forged - before;
        let answers = std::mem::take(&mut net.wires.borrow_mut()[0]);
        let cookies: Vec<_> = answers.into_iter().filter(is_cookie).collect();
        if cookie.is_none() && cookies.len() == 1 {
            net.wires.borrow_mut()[0] = cookies;
            net.receive(0);
            let Guard::Sealed(pairs) = &net.ends[0].guard else { unreachable!() };
            cookie = pairs.cookie_of(NodeId::new(1));
            assert!(cookie.is_some());
        } else if cookie.is_some() {
            assert!(cookies.is_empty(), "an initiation with a cookie gets no other");
        }
        net.now += Span::from_us(100);
    }
    // In 0.1 s: 34 at once and 20 more without a cookie, 8 at once and 1 more with one.
    assert!((40..70).contains(&n_read), "{n_read} initiations were read");
}

/// The clock of a restarted node may be behind that of its earlier incarnation. The other end then
/// begins the handshake, at most once a second.
#[test]
fn a_clock_that_went_back_keeps_nobody_out() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    net.run(MOMENT);
    for n in 0..3 {
        net.ends[0] = net.end_started(0, 0, net.keys[0].clone());
        net.send(0, b"after");
        assert_eq!(net.run(MOMENT)[1], [b"after".to_vec()], "{n}");
        assert_eq!(net.counts(1).old_initiations, n + 1);
        assert_eq!(net.counts(1).forged, 0);
        net.send(1, b"back");
        assert_eq!(net.run(MOMENT)[0], [b"back".to_vec()], "{n}");
        net.now += SECOND;
    }
}

/// A recorded initiation causes at most one handshake a second with the true peer.
#[test]
fn replayed_initiations_cost_little() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    let recorded = net.wires.borrow()[1].clone();
    net.run(MOMENT);
    net.now += SECOND;
    let mut n_sent = 0;
    for _ in 0..100 {
        net.wires.borrow_mut()[1] = recorded.clone();
        net.receive(1);
        // Beyond the first few, replayed initiations get cookies.
        let is_initiation = |bytes: &&Vec<u8>| {
            let kind = Envelope::decode(bytes).unwrap().0.kind;
            matches!(kind, Kind::Initiation { .. })
        };
        let sent = std::mem::take(&mut net.wires.borrow_mut()[0]);
        n_sent += sent.iter().filter(is_initiation).count();
        net.now += Span::from_us(100);
    }
    assert_eq!(n_sent, 1);
}

/// A node greets many unresponsive peers at a limited rate: a poll of the node takes no longer, and
/// the memory for them is limited.
#[test]
fn unresponsive_peers_are_called_in_paced_steps() {
    let mut net = Net::sealed();
    let other = PrivateKey::generate().unwrap().public();
    let keys: Vec<_> = (0..1_000).map(|_| Some(vec![other])).collect();
    net.ends[0].set_keys(net.keys[0].clone(), keys);
    *net.wires.borrow_mut() = Default::default();
    let mut sent = Vec::new();
    net.ends[0].now = net.now;
    for peer in 1..1_000 {
        let (class, rail, marks) = (Priority::HIGHEST, Rail::Any, Marks::NONE);
        let route = Route { dst: NodeId::new(peer), class, path: 0, rail, marks };
        net.ends[0].send(route, |out| envelope(0).encode(out).unwrap()).unwrap();
    }
    for _ in 0..3_000 {
        let Guard::Sealed(pairs) = &mut net.ends[0].guard else { unreachable!() };
        pairs.fire(net.now);
        let mut n = 0;
        while pairs.poll_message().is_some() {
            n += 1;
        }
        sent.push(n);
        assert!(pairs.deadline() > net.now);
        net.now += Span::from_us(1_000);
    }
    let (burst, rest) = sent.split_first().unwrap();
    assert_eq!(*burst, 32);
    assert!(rest.iter().all(|n| *n <= 1), "{rest:?}");
    let n: usize = rest.iter().sum();
    assert!((1_400..=1_500).contains(&n), "{n} in 3 s");
    // All have been called once before any is called for the third time.
    let Guard::Sealed(pairs) = &net.ends[0].guard else { unreachable!() };
    assert!(pairs.attempts_left().all(|left| (6..8).contains(&left)));
    assert_eq!(pairs.kept_bytes(), 999 * Envelope::LEN_MAX);
}

/// A peer that runs another transport does not count as a forger.
#[test]
fn another_transport_is_reported_as_such() {
    let mut net = Net::sealed();
    let config = SealConfig { transport: TransportId(9), ..net.config(0, net.keys[0].clone()) };
    net.ends[0] =
        Secured::new(Wire { node: 0, wires: Rc::clone(&net.wires) }, Security::Sealed(config));
    net.send(0, b"x");
    net.run(MOMENT);
    let Counts { forged, wrong_transport, .. } = net.counts(1);
    assert_eq!((forged, wrong_transport), (0, 1));
    let report = Some((NodeId::new(0), Report::OtherTransport(TransportId(9))));
    assert_eq!(net.ends[1].poll_report(), report);
    assert_eq!(net.ends[1].poll_report(), None);
}

/// A peer with another key than this node expects is reported.
#[test]
fn another_key_is_reported_as_such() {
    let mut net = Net::sealed();
    let config = net.config(0, PrivateKey::generate().unwrap());
    net.ends[0] =
        Secured::new(Wire { node: 0, wires: Rc::clone(&net.wires) }, Security::Sealed(config));
    net.send(0, b"x");
    net.run(MOMENT);
    assert_eq!(net.counts(1).forged, 1);
    assert_eq!(net.ends[1].poll_report(), Some((NodeId::new(0), Report::OtherKey)));
    assert_eq!(net.ends[1].poll_report(), None);
}

#[test]
fn keys_change_without_a_break() {
    let mut net = Net::sealed();
    net.send(0, b"1");
    net.run(MOMENT);
    // Node 1 receives node 0's next key, then node 0 uses it, then the old one is removed.
    let next = PrivateKey::generate().unwrap();
    let (old, public) = (net.keys[0].public(), net.public());
    let keys = vec![Some(vec![old, next.public()]), public[1].clone()];
    let key = net.keys[1].clone();
    net.ends[1].set_keys(key.clone(), keys);
    net.send(0, b"2");
    net.send(1, b"3");
    assert_eq!(net.run(MOMENT), [vec![b"3".to_vec()], vec![b"2".to_vec()]]);
    net.keys[0] = next.clone();
    let public = net.public();
    net.ends[0].set_keys(next, public);
    net.send(0, b"4");
    assert_eq!(net.run(MOMENT)[1], [b"4".to_vec()]);
    // Node 1 begins too: it determines which of the keys node 0 uses.
    net.now += SECOND * 1_000;
    net.send(1, b"5");
    assert_eq!(net.run(SECOND)[0], [b"5".to_vec()]);
    let public = net.public();
    net.ends[1].set_keys(key, public);
    net.send(0, b"6");
    net.run(SECOND * 2);
    net.send(0, b"7");
    net.send(1, b"8");
    let got = net.run(SECOND);
    assert_eq!((got[0].last().unwrap(), got[1].last().unwrap()), (&b"8".to_vec(), &b"7".to_vec()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any change of any datagram is detected, including two flips that cancel out in the checksum
    /// of UDP.
    #[test]
    fn changed_datagrams_are_not_handed_over(
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
