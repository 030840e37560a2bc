//! An endpoint that calls a Python object, and records itself which packets have arrived.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rampmeter_types::collections::SeqSet;
use rampmeter_types::{
    Event, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Protocol, Receipt, Rng, Time,
};

use super::ScriptedConfig;
use super::failure;
use super::objects::{Host, PyPacket};
use super::wire::ScriptedHeader;

/// Calls of a host at one instant above which it is considered to be in an endless loop.
const CALLS_MAX: u32 = 100_000;

/// A Python endpoint at one host.
#[derive(Debug)]
pub(crate) struct ScriptedHost {
    node: NodeId,
    object: Py<PyAny>,
    host: Py<Host>,
    /// Packets of each message that have arrived, by sender and message.
    arrived: BTreeMap<(NodeId, MsgId), SeqSet>,
    /// Value of the attribute `deadline` after the last call.
    deadline: Time,
    /// Time of the object's last call, and the number of calls at that time.
    last_call: (Time, u32),
    /// True if the class overrides `wants_transmit`.
    has_wants_transmit: bool,
    /// True if the object may have something to send.
    may_transmit: bool,
}

/// Returns the packet's number, and how many its message has.
fn index_of(packet: &Packet<ScriptedHeader>) -> Option<(u32, u32)> {
    match packet.header {
        ScriptedHeader::Data { index, packets, .. } => Some((index, packets)),
        ScriptedHeader::Control { .. } => None,
    }
}

impl ScriptedHost {
    /// Calls a method of the object, and reads the time and reason of its next call.
    fn call<'py, A: pyo3::call::PyCallArgs<'py>>(
        &mut self,
        py: Python<'py>,
        now: Time,
        method: &Bound<'py, PyString>,
        arguments: A,
    ) -> Bound<'py, PyAny> {
        let object = self.object.bind(py);
        let answer = object.call_method1(method, arguments).and_then(|answer| {
            // A deadline that has passed is due at once.
            self.deadline = deadline_of(object)?.max(now);
            self.may_transmit = !self.has_wants_transmit
                || object.call_method0(intern!(py, "wants_transmit"))?.is_truthy()?;
            Ok(answer)
        });
        let (at, calls) = self.last_call;
        self.last_call = (now, if at == now { calls + 1 } else { 1 });
        // Time does not advance if a host is called endlessly at one instant.
        let answer = if self.last_call.1 < CALLS_MAX {
            answer
        } else {
            Err(PyRuntimeError::new_err(format!(
                "expected this instant to end, got {CALLS_MAX} calls at it; deadline and \
                 poll_transmit may go round in circles"
            )))
        };
        answer.unwrap_or_else(|error| failure::end(self.node, &method.to_string(), now, error))
    }
}

/// Returns the attribute `deadline`.
fn deadline_of(object: &Bound<'_, PyAny>) -> PyResult<Time> {
    let value = object.getattr(intern!(object.py(), "deadline"))?;
    if value.is_none() {
        return Ok(Time::NEVER);
    }
    value.extract().map(Time::from_ps).map_err(|_: PyErr| {
        PyValueError::new_err(format!(
            "deadline: expected None or whole picoseconds from 0 to 2^64 - 1, got {value}"
        ))
    })
}

impl Protocol for ScriptedHost {
    type Header = ScriptedHeader;
    type Config = ScriptedConfig;

    fn new(config: Arc<ScriptedConfig>, node: NodeId, mut rng: Rng, now: Time) -> Self {
        let made = Python::attach(|py| {
            let host = Py::new(py, Host::new(&config, node, rng.bits()))?;
            let class = config.endpoint.bind(py).getattr(intern!(py, "func"))?;
            let base = py.import(intern!(py, "rampmeter.endpoint"))?.getattr("Endpoint")?;
            let wants_method = intern!(py, "wants_transmit");
            let has_wants_transmit = !class.getattr(wants_method)?.is(base.getattr(wants_method)?);
            let object = config.endpoint.bind(py).call1((&host,))?;
            let deadline = deadline_of(&object)?.max(now);
            Ok((object.unbind(), host, has_wants_transmit, deadline))
        });
        let (object, host, has_wants_transmit, deadline) =
            made.unwrap_or_else(|e: PyErr| failure::end(node, "__init__", now, e));
        let arrived = BTreeMap::new();
        let may_transmit = true;
        let last_call = (now, 0);
        Self { node, object, host, arrived, deadline, last_call, has_wants_transmit, may_transmit }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let opened = self.host.get().open(&message);
        Python::attach(|py| {
            self.call(py, now, intern!(py, "submit"), (now.as_ps(), opened));
        });
    }

    /// The class is not notified: the simulator withdraws no messages.
    fn cancel(&mut self, _now: Time, msg: MsgId) {
        self.host.get().withdraw(msg);
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<ScriptedHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        let receipt = match index_of(packet) {
            None => Receipt::Control,
            Some((index, packets)) => {
                let arrived = self.arrived.entry((src, msg)).or_default();
                if arrived.insert(index) {
                    if arrived.len() == packets {
                        self.host.get().push_event(Event::Delivered { src, msg });
                    }
                    Receipt::Fresh
                } else {
                    Receipt::Duplicate
                }
            }
        };
        let opened = PyPacket::arrived(packet, receipt == Receipt::Fresh);
        Python::attach(|py| {
            self.call(py, now, intern!(py, "on_packet"), (now.as_ps(), opened));
        });
        receipt
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        Python::attach(|py| {
            // A method that does not set another deadline is not called endlessly.
            let cleared = self.object.setattr(py, intern!(py, "deadline"), py.None());
            if let Err(error) = cleared {
                failure::end(self.node, "deadline", now, error);
            }
            self.call(py, now, intern!(py, "on_timeout"), (now.as_ps(),));
            if self.deadline <= now {
                let message = format!("deadline: expected a time after {now}, got an earlier one");
                let error = PyValueError::new_err(message);
                failure::end(self.node, "on_timeout", now, error);
            }
        });
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet<ScriptedHeader>> {
        if !self.may_transmit {
            return None;
        }
        Python::attach(|py| {
            let answer = self.call(py, now, intern!(py, "poll_transmit"), (now.as_ps(),));
            if answer.is_none() {
                self.may_transmit = false;
                return None;
            }
            let packet = match answer.cast::<PyPacket>() {
                Ok(packet) => self.host.get().packet(packet.get()),
                Err(_) => {
                    let got = answer.get_type().to_string();
                    let message = format!("poll_transmit: expected a Packet or None, got {got}");
                    Err(PyTypeError::new_err(message))
                }
            };
            match packet {
                Ok(packet) => Some(packet),
                Err(error) => failure::end(self.node, "poll_transmit", now, error),
            }
        })
    }

    fn wants_transmit(&self) -> bool {
        self.may_transmit
    }

    fn poll_timeout(&self) -> Time {
        self.deadline
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.host.get().next_event()
    }
}

impl Observation for ScriptedHost {}

impl HostPolicy for ScriptedHost {
    fn touch_if_delivered(&mut self, _now: Time, packet: &Packet<ScriptedHeader>) -> bool {
        let arrived = self.arrived.get(&(packet.src, packet.payload.msg));
        index_of(packet).is_some_and(|(_, packets)| arrived.is_some_and(|a| a.len() == packets))
    }

    fn is_duplicate(&mut self, packet: &Packet<ScriptedHeader>) -> bool {
        let arrived = self.arrived.get(&(packet.src, packet.payload.msg));
        index_of(packet).is_none_or(|(index, _)| arrived.is_some_and(|a| a.contains(index)))
    }

    /// The class is not notified: hosts of the simulator do not lose their state.
    fn forget_peer(&mut self, _now: Time, peer: NodeId) {
        let messages = (peer, MsgId::new(0))..=(peer, MsgId::new(u32::MAX));
        let known: Vec<_> = self.arrived.range(messages).map(|(key, _)| *key).collect();
        for key in known {
            self.arrived.remove(&key);
        }
        self.host.get().forget_peer(peer);
    }
}
