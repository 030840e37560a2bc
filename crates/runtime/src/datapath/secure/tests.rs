//! Two ends, and a network between them that the test controls.

mod datagrams;
mod floods;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rampmeter_types::{MsgId, NodeId, Span};

use super::*;
use crate::datapath::Rail;
use rampmeter_types::envelope::{Fragment, Incarnation, TransportId};

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

    fn receive(
        &mut self,
        _now: Time,
        mut each: impl FnMut(ArrivedPacket<'_>),
    ) -> io::Result<usize> {
        let arriving = std::mem::take(&mut self.wires.borrow_mut()[self.node]);
        let from = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2 - self.node as u8)));
        arriving
            .iter()
            .for_each(|bytes| each(ArrivedPacket { bytes, from, rail: 0, marks: Marks::NONE }));
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
        src_incarnation: Incarnation::new(5),
        dst_incarnation: Some(Incarnation::new(6)),
        kind: DatagramKind::Data { msg: MsgId::new(9), fragment },
        protection: Protection::Unprotected,
    }
}

/// Two protected datapaths.
struct Net {
    ends: Vec<SecureDatapath<Wire>>,
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
        let end =
            |node| SecureDatapath::new(Wire { node, wires: Rc::clone(&wires) }, Security::Checksum);
        let ends = vec![end(0), end(1)];
        Self { ends, wires, keys: Vec::new(), now: Time::ZERO }
    }

    fn public(&self) -> Vec<Option<Vec<PublicKey>>> {
        self.keys.iter().map(|key| Some(vec![key.public()])).collect()
    }

    /// Starts a new incarnation of a node.
    fn end(&self, node: usize) -> SecureDatapath<Wire> {
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
    fn end_with(&self, node: usize, key: PrivateKey) -> SecureDatapath<Wire> {
        self.end_started(node, started(), key)
    }

    /// Starts such an end with a clock of that time.
    fn end_started(&self, node: usize, started_ns: u64, key: PrivateKey) -> SecureDatapath<Wire> {
        let config = SealConfig { started_ns, ..self.config(node, key) };
        let wire = Wire { node, wires: Rc::clone(&self.wires) };
        SecureDatapath::new(wire, Security::Sealed(config))
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
    assert_eq!(
        (net.counts(0).unauthenticated_packets, net.counts(1).unauthenticated_packets),
        (0, 0)
    );
    assert_eq!((net.counts(0).handshakes, net.counts(1).handshakes), (2, 2));
}

#[test]
fn lost_messages_of_handshakes_are_retransmitted() {
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
fn replayed_packets_are_dropped() {
    let mut net = Net::sealed();
    net.send(0, b"first");
    net.run(MOMENT);
    net.send(0, b"once");
    let recorded = net.wires.borrow()[1].clone();
    assert_eq!(net.run(MOMENT)[1].len(), 1);
    net.wires.borrow_mut()[1] = recorded;
    assert_eq!(net.run(MOMENT)[1].len(), 0);
    assert_eq!(net.counts(1).replayed_packets, 1);
}

#[test]
fn packets_of_a_restarted_node_are_accepted_and_old_ones_dropped() {
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
    let Counts { handshakes, unauthenticated_packets, outdated_initiations, .. } = net.counts(1);
    assert_eq!((handshakes, unauthenticated_packets, outdated_initiations), (2, 0, 3));
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
    assert_eq!(
        (net.counts(0).unauthenticated_packets, net.counts(1).unauthenticated_packets),
        (0, 0)
    );
}

#[test]
fn a_pair_communicates_after_a_long_idle_time() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    net.run(SECOND);
    net.now += SECOND * 1_000;
    net.send(1, b"after a pause");
    assert_eq!(net.run(MOMENT)[0], [b"after a pause".to_vec()]);
}

#[test]
fn unknown_nodes_establish_no_session() {
    let mut net = Net::sealed();
    net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
    net.send(0, b"let me in");
    net.send(1, b"for the real one");
    assert_eq!(net.run(SECOND * 10), [Vec::<Vec<u8>>::new(), vec![]]);
    assert!(net.counts(1).unauthenticated_packets > 0);
    assert_eq!(net.counts(1).handshakes, 0);
}

/// A peer that runs another transport does not count as a forger.
#[test]
fn another_transport_is_reported_as_such() {
    let mut net = Net::sealed();
    let config = SealConfig { transport: TransportId(9), ..net.config(0, net.keys[0].clone()) };
    net.ends[0] = SecureDatapath::new(
        Wire { node: 0, wires: Rc::clone(&net.wires) },
        Security::Sealed(config),
    );
    net.send(0, b"x");
    net.run(MOMENT);
    let Counts { unauthenticated_packets, wrong_transport_packets, .. } = net.counts(1);
    assert_eq!((unauthenticated_packets, wrong_transport_packets), (0, 1));
    let report = Some((NodeId::new(0), Report::OtherTransport(TransportId(9))));
    assert_eq!(net.ends[1].poll_report(), report);
    assert_eq!(net.ends[1].poll_report(), None);
}

/// A peer with another key than this node expects is reported.
#[test]
fn another_key_is_reported_as_such() {
    let mut net = Net::sealed();
    let config = net.config(0, PrivateKey::generate().unwrap());
    net.ends[0] = SecureDatapath::new(
        Wire { node: 0, wires: Rc::clone(&net.wires) },
        Security::Sealed(config),
    );
    net.send(0, b"x");
    net.run(MOMENT);
    assert_eq!(net.counts(1).unauthenticated_packets, 1);
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
