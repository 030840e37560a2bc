//! Messages that the driver does not accept yet. The window of a connection ends at the start of
//! the first of them, so that messages before it still arrive. Its sender probes now and then with
//! one segment, as it does a closed window (RFC 9293 §3.8.6.1).

use rampmeter_types::{MsgId, NodeId, Time};

use super::Receiver;
use super::arrival::Arrival;
use crate::tcp::config::Tcp;
use crate::tcp::wire::TcpHeader;
use crate::toolkit::Output;

/// Maximum number of window updates that remind a sender, with intervals that double.
const REMINDERS: u32 = 6;

impl Receiver {
    /// Holds a message for which there is no space. The window of its connection ends before it
    /// until it is released. Its sender is notified.
    pub(crate) fn pause(
        &mut self,
        now: Time,
        src: NodeId,
        msg: MsgId,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) {
        self.paused.places.entry((src, msg)).or_insert(None);
        let probed =
            self.paused.last_query.take().filter(|probed| (probed.src, probed.msg) == (src, msg));
        let Some(arrival) = probed else { return };
        let conn = arrival.conn;
        let Some(slot) = self.connection_of(now, src, conn, msg, tcp, out) else { return };
        self.connections[slot].last_segment_at = now;
        self.pause_at(slot, &arrival, tcp, out);
    }

    /// Handles a segment of a message that is held.
    pub(super) fn pause_at(
        &mut self,
        slot: u32,
        arrival: &Arrival,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) {
        let incoming = &mut self.connections[slot];
        let place = self.paused.places.get_mut(&(arrival.src, arrival.msg));
        if let Some(place @ None) = place
            && let Some((first, end)) = incoming.range_of(arrival)
            && end > incoming.next
            && !incoming.paused.contains_key(&first.max(incoming.next))
        {
            let missing = first.max(incoming.next);
            *place = Some((arrival.conn, missing));
            incoming.paused.insert(missing, arrival.msg);
        }
        incoming.latest_message = arrival.msg;
        incoming.acknowledge(tcp, out);
    }

    /// Releases a held message, for which there is space now: its sender is notified.
    pub(crate) fn resume(
        &mut self,
        now: Time,
        src: NodeId,
        msg: MsgId,
        tcp: &Tcp,
        out: &mut Output<TcpHeader>,
    ) {
        let Some((conn, first)) = self.paused.places.remove(&(src, msg)).flatten() else { return };
        let Some(slot) = self.find(src, conn) else { return };
        let incoming = &mut self.connections[slot];
        incoming.paused.remove(&first);
        (incoming.last_segment_at, incoming.latest_message) = (now, msg);
        incoming.acknowledge(tcp, out);
        incoming.reminders = REMINDERS;
        self.schedule_reminder(now, slot, tcp);
    }

    /// Schedules another window update for the sender if it needs one. The sender rarely probes if
    /// many of its messages wait.
    pub(super) fn schedule_reminder(&mut self, now: Time, slot: u32, tcp: &Tcp) {
        let incoming = &mut self.connections[slot];
        if incoming.reminders == 0 {
            return;
        }
        let doublings = REMINDERS - incoming.reminders;
        let first = tcp.rto_initial;
        incoming.ack_at = now.saturating_add(first * (1 << doublings));
        self.timers.push(incoming.ack_at, (slot, incoming.number));
    }
}
