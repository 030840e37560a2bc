//! An endpoint that calls a Python object, and keeps account of what has arrived itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rampmeter_core::collections::SeqSet;
use rampmeter_core::{Endpoint, Event, Message, MsgId, NodeId, Packet, Receipt, Rng, Time};

use super::ScriptedConfig;
use super::failure;
use super::objects::{Host, PyPacket};
use super::wire::ScriptedHeader;

/// A Python endpoint at one host.
#[derive(Debug)]
pub(crate) struct ScriptedHost {
    node: NodeId,
    object: Py<PyAny>,
    host: Py<Host>,
    /// Packets of each message that have arrived, by sender and message.
    arrived: BTreeMap<(NodeId, MsgId), SeqSet>,
    /// What the attribute `deadline` said after the last call.
    deadline: Time,
    /// Whether the class has a `wants_transmit` of its own.
    says_wants: bool,
    /// Whether the object may have something to send.
    wants: bool,
}

/// Packet and number of packets of its message.
fn place(packet: &Packet<ScriptedHeader>) -> Option<(u32, u32)> {
    match packet.header {
        ScriptedHeader::Data { index, packets, .. } => Some((index, packets)),
        ScriptedHeader::Control { .. } => None,
    }
}

impl ScriptedHost {
    /// Calls a method of the object, and sees when and why it wants to be called again.
    fn call<'py, A: pyo3::call::PyCallArgs<'py>>(
        &mut self,
        py: Python<'py>,
        now: Time,
        method: &Bound<'py, PyString>,
        arguments: A,
    ) -> Bound<'py, PyAny> {
        let object = self.object.bind(py);
        let answer = object.call_method1(method, arguments).and_then(|answer| {
            let deadline: Option<u64> = object.getattr(intern!(py, "deadline"))?.extract()?;
            // One that has passed is due at once.
            self.deadline = deadline.map_or(Time::NEVER, Time::from_ps).max(now);
            self.wants = !self.says_wants
                || object.call_method0(intern!(py, "wants_transmit"))?.is_truthy()?;
            Ok(answer)
        });
        answer.unwrap_or_else(|error| failure::end(self.node, &method.to_string(), now, error))
    }
}

impl Endpoint for ScriptedHost {
    type Header = ScriptedHeader;
    type Config = ScriptedConfig;

    fn new(config: Arc<ScriptedConfig>, node: NodeId, mut rng: Rng, now: Time) -> Self {
        let made = Python::attach(|py| {
            let host = Py::new(py, Host::new(&config, node, rng.bits()))?;
            let json = py.import(intern!(py, "json"))?;
            let parameters = json.call_method1(intern!(py, "loads"), (&config.parameters,))?;
            let named = PyDict::new(py);
            for (name, value) in parameters.cast::<PyDict>()? {
                named.set_item(name.to_string().replace('-', "_"), value)?;
            }
            let class = config.class.bind(py);
            let base = py.import(intern!(py, "rampmeter.endpoint"))?.getattr("Endpoint")?;
            let wants = intern!(py, "wants_transmit");
            let says_wants = !class.getattr(wants)?.is(base.getattr(wants)?);
            Ok((class.call((&host,), Some(&named))?.unbind(), host, says_wants))
        });
        let (object, host, says_wants) =
            made.unwrap_or_else(|e: PyErr| failure::end(node, "__init__", now, e));
        let arrived = BTreeMap::new();
        let (deadline, wants) = (Time::NEVER, true);
        Self { node, object, host, arrived, deadline, says_wants, wants }
    }

    fn submit(&mut self, now: Time, message: Message) {
        let told = self.host.get().open(&message);
        Python::attach(|py| {
            self.call(py, now, intern!(py, "submit"), (now.as_ps(), told));
        });
    }

    fn cancel(&mut self, now: Time, msg: MsgId) {
        self.host.get().withdraw(msg);
        Python::attach(|py| {
            self.call(py, now, intern!(py, "cancel"), (now.as_ps(), msg.get()));
        });
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet<ScriptedHeader>) -> Receipt {
        let (src, msg) = (packet.src, packet.payload.msg);
        let receipt = match place(packet) {
            None => Receipt::Control,
            Some((index, packets)) => {
                let arrived = self.arrived.entry((src, msg)).or_default();
                if arrived.insert(index) {
                    if arrived.len() == packets {
                        self.host.get().say(Event::Delivered { src, msg });
                    }
                    Receipt::Fresh
                } else {
                    Receipt::Duplicate
                }
            }
        };
        let told = PyPacket::arrived(packet, receipt == Receipt::Fresh);
        Python::attach(|py| {
            self.call(py, now, intern!(py, "on_packet"), (now.as_ps(), told));
        });
        receipt
    }

    fn has_delivered(&mut self, _now: Time, packet: &Packet<ScriptedHeader>) -> bool {
        let arrived = self.arrived.get(&(packet.src, packet.payload.msg));
        place(packet).is_some_and(|(_, packets)| arrived.is_some_and(|a| a.len() == packets))
    }

    fn has_arrived(&mut self, packet: &Packet<ScriptedHeader>) -> bool {
        let arrived = self.arrived.get(&(packet.src, packet.payload.msg));
        place(packet).is_none_or(|(index, _)| arrived.is_some_and(|a| a.contains(index)))
    }

    fn forget_peer(&mut self, now: Time, peer: NodeId) {
        let messages = (peer, MsgId::new(0))..=(peer, MsgId::new(u32::MAX));
        let known: Vec<_> = self.arrived.range(messages).map(|(key, _)| *key).collect();
        for key in known {
            self.arrived.remove(&key);
        }
        for id in self.host.get().forget_peer(peer) {
            Python::attach(|py| {
                self.call(py, now, intern!(py, "cancel"), (now.as_ps(), id));
            });
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        Python::attach(|py| {
            // A method that forgets to set another deadline is not called for ever.
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
        if !self.wants {
            return None;
        }
        Python::attach(|py| {
            let answer = self.call(py, now, intern!(py, "poll_transmit"), (now.as_ps(),));
            if answer.is_none() {
                self.wants = false;
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
        self.wants
    }

    fn poll_timeout(&self) -> Time {
        self.deadline
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.host.get().next_event()
    }
}
