//! Queue of the interface: the socket that receives its packets, and packets that are not delivered
//! yet.

use rampmeter_types::packet::Marks;

use super::frame;
use super::socket::{Frame, Frames, Xsk};
use crate::datapath::ArrivedPacket;

/// Maximum number of packets that are removed from the ring at once.
const TAKE_MAX: usize = 256;

/// Packets that arrive at one queue. Their frames are returned to their socket.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) xsk: Xsk,
    /// Packets that have just been removed from the ring.
    received: Frames,
    /// Data packets that are not delivered yet.
    undelivered: Frames,
    waiting_max: usize,
}

impl Queue {
    /// Creates a queue whose socket has `rx_frames` for receiving.
    pub(super) fn new(xsk: Xsk, rx_frames: usize) -> Self {
        let waiting_max = rx_frames / 2;
        let undelivered = Frames::with_capacity(waiting_max + TAKE_MAX);
        Self { xsk, received: Frames::with_capacity(TAKE_MAX), undelivered, waiting_max }
    }

    /// Returns true if data packets are to be delivered.
    pub(super) fn is_waiting(&self) -> bool {
        self.undelivered.len() > 0
    }

    /// Reads packets from the ring. Delivers those to the port `control`, and queues the others.
    /// Returns the number of delivered ones; adds invalid packets to `malformed`.
    pub(super) fn take(
        &mut self,
        control: u16,
        malformed: &mut u64,
        each: &mut impl FnMut(ArrivedPacket<'_>),
    ) -> usize {
        let mut n = 0;
        if self.undelivered.len() < self.waiting_max {
            self.xsk.receive(&mut self.received);
        }
        while let Some(frame) = self.received.pop() {
            if frame::port_to(&frame) == Some(control) {
                self.deliver(frame, malformed, each);
                n += 1;
            } else {
                self.undelivered.push(frame);
            }
        }
        n
    }

    /// Delivers up to `max` queued packets. Returns their number.
    pub(super) fn deliver_queued(
        &mut self,
        max: usize,
        malformed: &mut u64,
        each: &mut impl FnMut(ArrivedPacket<'_>),
    ) -> usize {
        for n in 0..max {
            let Some(frame) = self.undelivered.pop() else { return n };
            self.deliver(frame, malformed, each);
        }
        max
    }

    /// Delivers a packet and frees its frame.
    fn deliver(
        &mut self,
        frame: Frame,
        malformed: &mut u64,
        each: &mut impl FnMut(ArrivedPacket<'_>),
    ) {
        if let Some((from, class, bytes)) = frame::parse(&frame) {
            let marks = Marks::from_traffic_class(class);
            each(ArrivedPacket { bytes, from: Some(from.into()), rail: 0, marks });
        } else {
            *malformed += 1;
        }
        self.xsk.free(frame);
    }
}
