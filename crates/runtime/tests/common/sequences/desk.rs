//! Applications without their own memory, and a network by hand.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rampmeter_runtime::app::Admission;
use rampmeter_runtime::datapath::{ArrivedPacket, Route};
use rampmeter_runtime::wire::{DatagramKind, Envelope};
use rampmeter_runtime::{Applications, Assembly, Datapath, Outcome, Payload, Submission, Ticket};
use rampmeter_types::packet::Marks;
use rampmeter_types::{NodeId, Span, TenantId, Time};

use super::HOSTILE;
use super::counting::uncounted;

const LABEL: usize = 16;

/// A message that consists of its label and bytes that follow from their position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternPayload {
    label: [u8; LABEL],
    size: usize,
}

/// Bytes of any message after its label, from a position that is a multiple of 256.
const FILLING: [u8; 2_048] = {
    let mut bytes = [0; 2_048];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};

/// Returns `len` of them from `offset` on, at most 1500.
fn filling(offset: usize, len: usize) -> &'static [u8] {
    &FILLING[offset % 256..][..len]
}

impl Payload for PatternPayload {
    fn size(&self) -> usize {
        self.size
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(filling(offset, out.len()));
        if let Some(label) = self.label.get(offset..) {
            let n = label.len().min(out.len());
            out[..n].copy_from_slice(&label[..n]);
        }
    }
}

/// A message that arrives, of which only the label is stored.
#[derive(Debug, Default)]
pub(crate) struct Page {
    label: [u8; LABEL],
    is_wrong: bool,
}

impl Assembly for Page {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let n = LABEL.saturating_sub(offset).min(bytes.len());
        if n > 0 {
            self.label[offset..offset + n].copy_from_slice(&bytes[..n]);
        }
        self.is_wrong |= bytes[n..] != *filling(offset + n, bytes.len() - n);
    }
}

/// Submissions and events of a node's application.
#[derive(Debug)]
pub(crate) struct ApplicationState {
    submissions: VecDeque<Submission<PatternPayload>>,
    n_submitted: u64,
    /// Node whose messages must arrive once and unaltered.
    honest: NodeId,
    delivered: BTreeSet<[u8; LABEL]>,
    pub(crate) admission: Admission,
    /// Number of messages that the node has accepted, and their bytes.
    taken: (u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Apps(pub(crate) Rc<RefCell<ApplicationState>>);

impl Apps {
    pub(crate) fn new(honest: NodeId) -> Self {
        let (submissions, delivered) = (VecDeque::new(), BTreeSet::new());
        let (admission, n_submitted, taken) = (Admission::Accept, 0, (0, 0));
        let desk =
            ApplicationState { submissions, n_submitted, honest, delivered, admission, taken };
        Self(Rc::new(RefCell::new(desk)))
    }

    pub(crate) fn submit(&self, src: NodeId, dst: NodeId, service: u16, size: usize) {
        let desk = &mut *self.0.borrow_mut();
        desk.n_submitted += 1;
        let mut label = [0; LABEL];
        label[..8].copy_from_slice(&desk.n_submitted.to_le_bytes());
        label[8] = src.get() as u8;
        let payload = PatternPayload { label, size: size.max(LABEL) };
        let (app, ticket, tenant) = (0, Ticket(desk.n_submitted), TenantId::new(0));
        let deadline = Time::NEVER;
        desk.submissions.push_back(Submission {
            app,
            ticket,
            dst,
            service,
            deadline,
            tenant,
            payload,
        });
    }

    /// Returns the number of messages that the node has accepted, and their bytes.
    pub(crate) fn taken(&self) -> (u64, u64) {
        self.0.borrow().taken
    }
}

impl Applications for Apps {
    type Payload = PatternPayload;
    type Assembly = Page;

    fn poll_submission(&mut self) -> Option<Submission<PatternPayload>> {
        let desk = &mut *self.0.borrow_mut();
        let next = desk.submissions.pop_front();
        if let Some(Submission { payload, .. }) = &next {
            desk.taken = (desk.taken.0 + 1, desk.taken.1 + payload.size as u64);
        }
        next
    }

    fn next_submission(&self) -> Time {
        if self.0.borrow().submissions.is_empty() { Time::NEVER } else { Time::ZERO }
    }

    fn finish(&mut self, _app: u32, _ticket: Ticket, _outcome: Outcome) {}

    fn admission(&self, service: u16, _size: u32) -> Admission {
        match service {
            0 => Admission::Absent,
            1 => Admission::Refuse,
            _ => self.0.borrow().admission,
        }
    }

    fn open(&mut self, _service: u16, _size: u32) -> Page {
        Page::default()
    }

    fn deliver(&mut self, from: NodeId, _service: u16, page: Page) {
        let desk = &mut *self.0.borrow_mut();
        if from == desk.honest {
            assert!(!page.is_wrong, "a message of {from:?} was altered");
            let is_new = uncounted(|| desk.delivered.insert(page.label));
            assert!(is_new, "{:?} of {from:?} was delivered twice", page.label);
        }
    }

    fn arm(&mut self) -> bool {
        !self.0.borrow().submissions.is_empty()
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// Packets in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlightPackets {
    pub(crate) now: Time,
    queues: Vec<VecDeque<(Time, Vec<u8>)>>,
    spare: Vec<Vec<u8>>,
    /// Latest packets to the hostile node, and hellos that it has to answer.
    pub(crate) to_hostile: VecDeque<Vec<u8>>,
    pub(crate) hellos: Vec<(NodeId, u32)>,
    /// Latest packets of the honest node.
    pub(crate) of_honest: VecDeque<Vec<u8>>,
    /// Packets and bytes that the node under test has received, and packets that it has sent.
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    pub(crate) sent: u64,
}

const KEPT: usize = 32;
const DELAY: Span = Span::from_us(20);
const DATAGRAM_MAX: usize = 1_472;

fn keep(ring: &mut VecDeque<Vec<u8>>, bytes: &[u8]) {
    let mut kept = if ring.len() == KEPT { ring.pop_front().unwrap() } else { Vec::new() };
    kept.clear();
    kept.extend(bytes);
    ring.push_back(kept);
}

impl InFlightPackets {
    pub(crate) fn new(n: usize) -> Self {
        Self { queues: vec![VecDeque::new(); n], ..Self::default() }
    }

    pub(crate) fn put(&mut self, at: Time, dst: usize, bytes: &[u8]) {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend(bytes);
        let queue = &mut self.queues[dst];
        let place = queue.partition_point(|(of, _)| *of <= at);
        queue.insert(place, (at, packet));
    }

    fn sent(&mut self, src: NodeId, dst: NodeId, bytes: &[u8]) {
        self.sent += u64::from(src.idx() == 0);
        if src.idx() == 1 && dst.idx() == 0 {
            keep(&mut self.of_honest, bytes);
        }
        if dst == HOSTILE {
            match Envelope::decode(bytes) {
                Ok((Envelope { kind: DatagramKind::Hello { nonce }, .. }, _)) => {
                    self.hellos.push((src, nonce));
                }
                _ => keep(&mut self.to_hostile, bytes),
            }
        } else {
            self.put(self.now + DELAY, dst.idx(), bytes);
        }
    }
}

/// One node's access to the network.
#[derive(Clone, Debug)]
pub(crate) struct NodeDatapath(pub(crate) Rc<RefCell<InFlightPackets>>, pub(crate) NodeId);

impl Datapath for NodeDatapath {
    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    fn overhead(&self) -> usize {
        28
    }

    fn send(&mut self, route: Route, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let mut bytes = [0; DATAGRAM_MAX];
        let len = write(&mut bytes);
        uncounted(|| self.0.borrow_mut().sent(self.1, route.dst, &bytes[..len]));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, now: Time, mut each: impl FnMut(ArrivedPacket<'_>)) -> io::Result<usize> {
        let mut n = 0;
        while n < 64 && self.next_arrival() <= now {
            let packet = self.0.borrow_mut().queues[self.1.idx()].pop_front();
            let Some((_, bytes)) = packet else { break };
            each(ArrivedPacket { bytes: &bytes, from: None, rail: 0, marks: Marks::NONE });
            n += 1;
            uncounted(|| {
                let wire = &mut *self.0.borrow_mut();
                if self.1.idx() == 0 {
                    wire.received += 1;
                    wire.bytes += bytes.len() as u64;
                }
                wire.spare.push(bytes);
            });
        }
        Ok(n)
    }

    fn next_arrival(&self) -> Time {
        self.0.borrow().queues[self.1.idx()].front().map_or(Time::NEVER, |(at, _)| *at)
    }
}
