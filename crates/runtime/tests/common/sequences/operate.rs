//! Operations of a sequence.

use std::collections::VecDeque;

use rampmeter_proto::RegisteredTransport;
use rampmeter_runtime::app::Admission;
use rampmeter_runtime::wire::{DatagramKind, Envelope};
use rampmeter_types::{MsgId, NodeId, Span};

use super::desk::InFlightPackets;
use super::input::{Input, Template};
use super::{HOSTILE, HOSTS, Testbed};

impl Testbed {
    pub(super) fn operate<T: RegisteredTransport>(&mut self, op: u8, input: &mut Input<'_>) {
        match op & 15 {
            0 | 1 => self.wait(Span::from_us(1 << (input.u8() % 14))),
            2 => self.wait(Span::from_us(1 << (input.u8() % 24))),
            3 => self.submit(0, input),
            4 => self.submit(1, input),
            5..=7 => {
                self.template = Some(Template::read::<T::Header>(input));
                self.repeat::<T>(1);
            }
            8 => self.repeat::<T>(1 << (input.u8() % 13)),
            9 => self.raw(input),
            10 => self.again(input, |wire| &wire.of_honest),
            11 => self.again(input, |wire| &wire.to_hostile),
            12 => self.note(input),
            13 => {
                let admissions =
                    [Admission::Accept, Admission::Wait, Admission::Absent, Admission::Refuse];
                let admission = admissions[usize::from(input.u8() % 4)];
                self.apps[0].0.borrow_mut().admission = admission;
            }
            14 => {
                // If there is an arbiter.
                let n = self.nodes.len() as u32;
                self.src = match input.u8() {
                    0..=127 if n > HOSTS => NodeId::new(HOSTS),
                    _ => HOSTILE,
                };
            }
            _ => {
                self.restart += u32::from(input.u8() < 64);
                let nonce = input.u32();
                self.send(DatagramKind::Hello { nonce }, &[]);
                self.wait(Span::from_us(100));
            }
        }
    }

    fn submit(&mut self, src: u32, input: &mut Input<'_>) {
        let (to, shape) = (input.u8(), input.u8());
        let dst = if src == 0 && to & 1 == 1 { HOSTILE } else { NodeId::new(1 - src) };
        let size = 16 + (usize::from(input.u8()) << (shape % 13));
        for _ in 0..1_u32 << (shape >> 5) {
            let service = 2 + u16::from(to >> 1 & 7);
            self.apps[src as usize].submit(NodeId::new(src), dst, service, size);
        }
        self.next[src as usize] = self.now;
        self.run_until(self.now);
    }

    /// Sends copies of the latest packet that was made.
    fn repeat<T: RegisteredTransport>(&mut self, n: u32) {
        let Some(template) = self.template.clone() else { return };
        let mut body = Vec::new();
        for copy in 0..n.min(self.packets_left) {
            body.clear();
            let Some(kind) = template.write::<T::Header>(copy, &mut body) else { return };
            self.send(kind, &body);
        }
    }

    /// Sends random bytes in a valid envelope.
    fn raw(&mut self, input: &mut Input<'_>) {
        let (msg, n) = (MsgId::new(u32::from(input.u8() % 4)), input.u8() % 64);
        let body: Vec<u8> = (0..n).map(|_| input.u8()).collect();
        let kind = match body.first() {
            Some(_) if input.u8() < 32 => DatagramKind::Bundle { n: u32::from(input.u8()) },
            _ => DatagramKind::Control { msg },
        };
        self.send(kind, &body);
    }

    /// Sends a copy of an earlier packet, with a few bytes changed.
    fn again(
        &mut self,
        input: &mut Input<'_>,
        queue: impl Fn(&InFlightPackets) -> &VecDeque<Vec<u8>>,
    ) {
        let which = usize::from(input.u8());
        let mut bytes = {
            let wire = self.wire.borrow();
            let ring = queue(&wire);
            let Some(bytes) = ring.get(which % ring.len().max(1)) else { return };
            bytes.clone()
        };
        let Ok((Envelope { kind, .. }, read)) = Envelope::decode(&bytes) else { return };
        for _ in 0..input.u8() % 4 {
            let (at, value) = (usize::from(input.u8()), input.u8());
            let at = read + at % (bytes.len() - read).max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let len = match input.u8() {
            byte @ 0..16 => bytes.len().saturating_sub(byte.into()).max(read),
            _ => bytes.len(),
        };
        self.send(kind, &bytes[read..len]);
    }

    /// Sends a packet of nodes apart from their protocols.
    fn note(&mut self, input: &mut Input<'_>) {
        let msg = MsgId::new(u32::from(input.u8() % 8));
        let kind = match input.u8() % 4 {
            0 => DatagramKind::HelloAck { nonce: input.u32() },
            _ => DatagramKind::Refused { msg },
        };
        self.send(kind, &[]);
    }
}
