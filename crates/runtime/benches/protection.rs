//! Cost of the protection of a full packet: from the sender's buffer to the receiver's, through a
//! pipe in memory. The pipe alone is measured too, to be subtracted.

use std::cell::RefCell;
use std::hint::black_box;
use std::io;
use std::rc::Rc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rampmeter_runtime::datapath::{ArrivedPacket, Rail, Route};
use rampmeter_runtime::wire::{
    DatagramKind, Envelope, Fragment, Incarnation, Protection, TransportId,
};
use rampmeter_runtime::{Datapath, PrivateKey, SealConfig, SecureDatapath, Security};
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Priority, Time};

/// Bytes of a full datagram in a 1500-byte packet.
const FULL: usize = 1_472;

/// Pipe that stores datagrams for the other node, and delivers those for its own.
struct Pipe {
    node: usize,
    lanes: Rc<RefCell<[Vec<Vec<u8>>; 2]>>,
    /// Free buffers.
    spare: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Datapath for Pipe {
    fn datagram_max(&self) -> usize {
        FULL
    }

    fn overhead(&self) -> usize {
        0
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let mut bytes = self.spare.borrow_mut().pop().unwrap_or_default();
        bytes.resize(FULL, 0);
        let len = write(&mut bytes);
        bytes.truncate(len);
        self.lanes.borrow_mut()[route.dst.idx()].push(bytes);
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
        let arrived = std::mem::take(&mut self.lanes.borrow_mut()[self.node]);
        let n = arrived.len();
        for bytes in arrived {
            each(ArrivedPacket { bytes: &bytes, from: None, rail: 0, marks: Marks::NONE });
            self.spare.borrow_mut().push(bytes);
        }
        Ok(n)
    }
}

fn envelope() -> Envelope {
    let fragment = Fragment { service: 7, offset: 0, size: 1 << 20, digest: None };
    Envelope {
        transport: TransportId(1),
        src: NodeId::new(0),
        dst: NodeId::new(1),
        src_incarnation: Incarnation::new(1),
        dst_incarnation: Some(Incarnation::new(2)),
        kind: DatagramKind::Data { msg: rampmeter_types::MsgId::new(3), fragment },
        protection: Protection::Unprotected,
    }
}

/// Carries a full packet from one end to the other.
fn carry<D: Datapath>([from, to]: &mut [D; 2]) {
    let dst = NodeId::new(1);
    let route =
        Route { dst, class: Priority::HIGHEST, path: 0, rail: Rail::Any, marks: Marks::NONE };
    let full = from.datagram_max();
    let written = from.send(route, |out| {
        envelope().encode(out).expect("room for the envelope");
        full
    });
    written.and_then(|()| from.flush()).expect("a pipe takes everything");
    let mut got = 0;
    to.receive(Time::ZERO, |arrived| got += black_box(arrived.bytes).len()).expect("a pipe gives");
    assert_eq!(got, full);
}

fn ends<D>(end: impl Fn(Pipe) -> D) -> [D; 2] {
    let (lanes, spare) = (Rc::default(), Rc::default());
    [0, 1].map(|node| end(Pipe { node, lanes: Rc::clone(&lanes), spare: Rc::clone(&spare) }))
}

fn protection(c: &mut Criterion) {
    let mut group = c.benchmark_group("full-packet");
    let mut bare = ends(|pipe| pipe);
    let bench = |name: &str| BenchmarkId::from_parameter(name.to_owned());
    group.bench_function(bench("bare"), |b| b.iter(|| carry(&mut bare)));
    let mut checksum = ends(|pipe| SecureDatapath::new(pipe, Security::Checksum));
    group.bench_function(bench("checksum"), |b| b.iter(|| carry(&mut checksum)));
    let keys = [0, 1].map(|_| PrivateKey::generate().expect("random numbers"));
    let mut sealed = ends(|pipe| {
        let config = SealConfig {
            node: NodeId::new(pipe.node as u32),
            transport: TransportId(1),
            incarnation: Incarnation::new(1),
            started_ns: 1,
            key: keys[pipe.node].clone(),
            peers: keys.iter().map(|key| Some(vec![key.public()])).collect(),
        };
        SecureDatapath::new(pipe, Security::Sealed(config))
    });
    shake_hands(&mut sealed);
    group.bench_function(bench("sealed"), |b| b.iter(|| carry(&mut sealed)));
    group.finish();
}

/// Starts a session: the first packet waits for the handshake.
fn shake_hands<D: Datapath>(ends: &mut [D; 2]) {
    let dst = NodeId::new(1);
    let route =
        Route { dst, class: Priority::HIGHEST, path: 0, rail: Rail::Any, marks: Marks::NONE };
    let sent = ends[0].send(route, |out| envelope().encode(out).expect("room for the envelope"));
    sent.and_then(|()| ends[0].flush()).expect("a pipe takes everything");
    for node in [1, 0, 1] {
        ends[node].receive(Time::ZERO, |_| ()).expect("a pipe gives");
    }
}

criterion_group!(benches, protection);
criterion_main!(benches);
