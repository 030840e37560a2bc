//! Objects that a Python endpoint uses: its host, messages, packets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rampmeter_proto::toolkit::OutgoingMessage;
use rampmeter_types::Segmentation;
use rampmeter_types::packet::Marks;
use rampmeter_types::{Bytes, Event, MsgId, NodeId, Packet, PayloadRef, Priority, Span};

use super::ScriptedConfig;
use super::wire::ScriptedHeader;

/// Words of a packet that the class defines.
const WORDS: usize = 3;

/// A message to send.
#[pyclass(frozen, get_all, name = "MessageToSend", module = "rampmeter._core")]
pub(crate) struct MessageToSend {
    /// Number of the message, which packets and completions carry.
    id: u32,
    dst: u32,
    size: u64,
    packets: u32,
    tenant: u32,
}

/// A packet.
#[pyclass(frozen, get_all, name = "Packet", module = "rampmeter._core")]
pub(crate) struct PyPacket {
    src: u32,
    dst: u32,
    message: u32,
    /// The number of the packet in its message; `None` without payload.
    index: Option<u32>,
    packets: Option<u32>,
    words: [u64; WORDS],
    priority: u8,
    is_new: bool,
    is_marked: bool,
}

impl PyPacket {
    /// Returns a packet that has arrived; `is_new` if its payload had not.
    pub(super) fn arrived(packet: &Packet<ScriptedHeader>, is_new: bool) -> Self {
        let (index, packets, words) = match packet.header {
            ScriptedHeader::Data { index, packets, a, b, c } => {
                (Some(index), Some(packets), [a, b, c])
            }
            ScriptedHeader::Control { a, b, c } => (None, None, [a, b, c]),
        };
        Self {
            src: packet.src.get(),
            dst: packet.dst.get(),
            message: packet.payload.msg.get(),
            index,
            packets,
            words,
            priority: packet.priority.get(),
            is_new,
            is_marked: packet.marks.contains(Marks::CONGESTION),
        }
    }
}

/// A host for its endpoint: facts of the network, packets to make, and completions.
#[pyclass(frozen, module = "rampmeter._core")]
pub(crate) struct Host {
    node: u32,
    seed: u64,
    n_hosts: u32,
    gbps: f64,
    rtt: Span,
    control_rtt: Span,
    segmentation: Segmentation,
    sending: Mutex<Sending>,
}

#[derive(Default)]
struct Sending {
    /// Messages that are neither completed nor failed.
    open: BTreeMap<u32, OutgoingMessage>,
    events: VecDeque<Event>,
}

impl Host {
    pub(super) fn new(config: &ScriptedConfig, node: NodeId, seed: u64) -> Self {
        let ScriptedConfig { facts, segmentation, .. } = config;
        Self {
            node: node.get(),
            seed,
            n_hosts: facts.n_hosts,
            gbps: facts.access_rate.as_bps() as f64 / 1e9,
            rtt: facts.data_rtt,
            control_rtt: facts.control_rtt,
            segmentation: *segmentation,
            sending: Mutex::default(),
        }
    }

    /// Records a message that is submitted, and returns it as Python's object.
    pub(super) fn open(&self, message: &rampmeter_types::Message) -> MessageToSend {
        let (id, dst, size) = (message.id, message.dst, message.size);
        let outgoing =
            OutgoingMessage { src: NodeId::new(self.node), dst, msg: id, size: size.get() };
        self.lock().open.insert(id.get(), outgoing);
        MessageToSend {
            id: id.get(),
            dst: dst.get(),
            size: size.get(),
            packets: self.segmentation.packets(size),
            tenant: message.tenant.get(),
        }
    }

    /// Removes a message that is withdrawn.
    pub(super) fn withdraw(&self, msg: MsgId) {
        self.lock().open.remove(&msg.get());
    }

    /// Fails the messages to a peer.
    pub(super) fn forget_peer(&self, peer: NodeId) {
        let mut sending = self.lock();
        let to_peer = sending.open.iter().filter(|(_, message)| message.dst == peer);
        let lost: Vec<u32> = to_peer.map(|(&id, _)| id).collect();
        for id in lost {
            sending.open.remove(&id);
            sending.events.push_back(Event::Failed { msg: MsgId::new(id) });
        }
    }

    pub(super) fn push_event(&self, event: Event) {
        self.lock().events.push_back(event);
    }

    pub(super) fn next_event(&self) -> Option<Event> {
        self.lock().events.pop_front()
    }

    /// Returns the packet that the host sends for a packet that Python has made.
    ///
    /// # Errors
    /// `ValueError` for a packet of a message that has ended, or of another host.
    pub(super) fn packet(&self, packet: &PyPacket) -> PyResult<Packet<ScriptedHeader>> {
        if packet.src != self.node {
            return Err(PyValueError::new_err(format!(
                "poll_transmit: expected a packet of host {}, got one of host {}",
                self.node, packet.src
            )));
        }
        let [a, b, c] = packet.words;
        let priority = Priority::new(packet.priority);
        let marks = Marks::ECN_CAPABLE;
        let (Some(index), Some(packets)) = (packet.index, packet.packets) else {
            let msg = MsgId::new(packet.message);
            return Ok(Packet {
                header: ScriptedHeader::Control { a, b, c },
                payload: PayloadRef { msg, offset: 0, len: 0 },
                src: NodeId::new(self.node),
                dst: NodeId::new(packet.dst),
                wire_bytes: self.segmentation.header.get() as u16,
                path: 0,
                priority,
                marks,
            });
        };
        let outgoing = self.outgoing(packet.message)?;
        let header = ScriptedHeader::Data { index, packets, a, b, c };
        Ok(Packet { marks, ..self.segmentation.data(outgoing, index, priority, header) })
    }

    /// Returns a message that is neither completed nor failed.
    fn outgoing(&self, id: u32) -> PyResult<OutgoingMessage> {
        self.lock().open.get(&id).copied().ok_or_else(|| {
            let expected =
                "expected a message that this host sends and that is neither completed nor failed";
            PyValueError::new_err(format!("{expected}, got {id}"))
        })
    }

    fn close(&self, id: u32, event: Event) -> PyResult<()> {
        self.outgoing(id)?;
        let mut sending = self.lock();
        sending.open.remove(&id);
        sending.events.push_back(event);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn words(given: &[i128]) -> PyResult<[u64; WORDS]> {
    if given.len() > WORDS {
        let got = given.len();
        return Err(PyValueError::new_err(format!("words: expected at most {WORDS}, got {got}")));
    }
    let mut words = [0; WORDS];
    for (word, &number) in words.iter_mut().zip(given) {
        *word = u64::try_from(number).map_err(|_| {
            PyValueError::new_err(format!("words: expected 0 to 2^64 - 1, got {number}"))
        })?;
    }
    Ok(words)
}

fn checked_priority(priority: u8) -> PyResult<u8> {
    if usize::from(priority) < Priority::COUNT {
        return Ok(priority);
    }
    Err(PyValueError::new_err(format!("priority: expected 0 (the highest) to 7, got {priority}")))
}

#[pymethods]
impl Host {
    /// Returns the number of this host, from 0.
    #[getter]
    fn node(&self) -> u32 {
        self.node
    }

    /// Returns a separate seed of this host, for random decisions.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of hosts.
    #[getter]
    fn n_hosts(&self) -> u32 {
        self.n_hosts
    }

    /// Returns the rate of the slowest host link in Gbit/s.
    #[getter]
    fn gbps(&self) -> f64 {
        self.gbps
    }

    /// Returns the unloaded round trip with full packets on the longest path, in picoseconds.
    #[getter]
    fn rtt(&self) -> u64 {
        self.rtt.as_ps()
    }

    /// Returns the unloaded round trip with control packets on the longest path, in picoseconds.
    #[getter]
    fn control_rtt(&self) -> u64 {
        self.control_rtt.as_ps()
    }

    /// Returns the payload of a full packet.
    #[getter]
    fn payload_bytes(&self) -> u64 {
        self.segmentation.payload.get()
    }

    /// Returns the bytes of headers charged to each packet, and the length of a control packet.
    #[getter]
    fn header_bytes(&self) -> u64 {
        self.segmentation.header.get()
    }

    /// Returns the serialisation time of `size` bytes on the slowest host link, in picoseconds.
    fn transmission(&self, size: u64) -> u64 {
        (Bytes::new(size).get() as f64 * 8e3 / self.gbps).round() as u64
    }

    /// Returns packet number `index` of a message, counted from 0.
    #[pyo3(signature = (message, index, *, words=Vec::new(), priority=1))]
    fn data(&self, message: u32, index: u32, words: Vec<i128>, priority: u8) -> PyResult<PyPacket> {
        let outgoing = self.outgoing(message)?;
        let packets = self.segmentation.packets(Bytes::new(outgoing.size));
        if index >= packets {
            let last = packets - 1;
            return Err(PyValueError::new_err(format!("index: expected 0 to {last}, got {index}")));
        }
        Ok(PyPacket {
            src: self.node,
            dst: outgoing.dst.get(),
            message,
            index: Some(index),
            packets: Some(packets),
            words: self::words(&words)?,
            priority: checked_priority(priority)?,
            is_new: false,
            is_marked: false,
        })
    }

    /// Returns a packet without payload to host `dst`, about a message of either.
    #[pyo3(signature = (dst, message, *, words=Vec::new(), priority=0))]
    fn control(
        &self,
        dst: u32,
        message: u32,
        words: Vec<i128>,
        priority: u8,
    ) -> PyResult<PyPacket> {
        if dst >= self.n_hosts || dst == self.node {
            let (n, node) = (self.n_hosts, self.node);
            return Err(PyValueError::new_err(format!(
                "dst: expected a host below {n} other than {node}, got {dst}"
            )));
        }
        Ok(PyPacket {
            src: self.node,
            dst,
            message,
            index: None,
            packets: None,
            words: self::words(&words)?,
            priority: checked_priority(priority)?,
            is_new: false,
            is_marked: false,
        })
    }

    /// Completes a message of this host, which the receiver has acknowledged.
    fn complete(&self, message: u32) -> PyResult<()> {
        self.close(message, Event::Completed { msg: MsgId::new(message) })
    }

    /// Aborts a message of this host.
    fn fail(&self, message: u32) -> PyResult<()> {
        self.close(message, Event::Failed { msg: MsgId::new(message) })
    }
}
