//! One connection at its sender: the stream of its messages, the next segment, and the effects of
//! acknowledgements and timers.

mod recovery;
mod timers;

use std::collections::VecDeque;

use rampmeter_types::{Bytes, MsgId, NodeId, Priority, Rate, Span, Time};

use super::config::{Connections, RttResolution, Tcp};
use super::control::{AckEffect, CongestionControl, Control};
use super::prr::Prr;
use super::rack::Rack;
use super::scoreboard::Scoreboard;
use super::seq::{CONFLICTS_MAX, Range, unwrap};
use super::stats::TcpStats;
use crate::toolkit::RttEstimator;

/// A message in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxMessage {
    pub(super) msg: MsgId,
    pub(super) size: u64,
    /// Offset of its first byte in the stream.
    pub(super) start: u64,
}

impl TxMessage {
    pub(super) fn end(&self) -> u64 {
        self.start + self.size
    }
}

/// Control of a connection's sending rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Congestion control.
    CongestionControl,
    /// A controller: at this rate, regardless of the congestion window (CAPTON §IV.C).
    Rate(Rate),
    /// A controller: not at all.
    Stopped,
}

/// State of loss recovery: the byte up to which losses are being repaired, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// After losses that acknowledgements of later segments revealed (RFC 6675 §5).
    Fast(u64),
    /// Recovery after a timeout.
    Timeout(u64),
}

/// Next segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextSegment {
    /// Offset of its start in the stream.
    pub(super) start: u64,
    /// Length in bytes; zero for a FIN.
    pub(super) len: u32,
    pub(super) is_new: bool,
}

/// Action of a connection when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerAction {
    /// No action, except that the connection may send more.
    None,
    /// Retransmit the SYN.
    Syn,
    /// Abort the connection: there were too many timeouts without an answer.
    Abort,
}

/// Meaning of an acknowledgement for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckOutcome {
    /// The acknowledgement is old, or is for unsent bytes.
    Ignored,
    /// The acknowledgement was processed.
    Progress,
    /// Everything has arrived, the FIN too.
    FinAck,
    /// The acknowledgement is one of several in a row for unsent bytes: the receiver has accepted
    /// damaged segments.
    Conflict,
}

/// An acknowledgement, as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement<'a> {
    pub(super) ack: u32,
    pub(super) window: u32,
    pub(super) ece: bool,
    /// Sequence numbers.
    pub(super) sack: &'a [super::wire::SackBlock],
}

/// One connection at its sender.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) dst: NodeId,
    /// Number among the connections of the pair.
    pub(super) number: u32,
    /// The initial sequence number.
    pub(super) initial: u32,
    pub(super) is_open: bool,
    /// True if both ends support congestion marks (RFC 3168 §6.1.1).
    pub(super) has_ecn: bool,
    /// The messages that are not wholly acknowledged.
    pub(super) messages: VecDeque<TxMessage>,
    /// The message that was acknowledged last.
    last_done: MsgId,
    /// The byte after the last that was submitted.
    end: u64,
    /// True if a FIN follows the last message.
    has_fin: bool,
    pub(super) board: Scoreboard,
    control: Control,
    rtt: RttEstimator,
    /// The first byte that the receiver does not take.
    window_end: u64,
    recovery: Recovery,
    /// The window of a recovery.
    prr: Prr,
    /// The end of the recovery in which the end of the flight was last retransmitted (RFC 6675's
    /// RescueRxt).
    rescue_end: u64,
    /// True if the first lost segment is sent regardless of the window (RFC 6675 §5, step 4.3).
    is_urgent: bool,
    /// Echoes count once up to this byte (RFC 3168 §6.1.2).
    echo_end: u64,
    pub(super) needs_cwr: bool,
    /// End of the bytes that the window has delayed.
    limited_end: u64,
    /// Timeouts since the last sample of the round trip: the timer doubles with each (RFC 6298
    /// §5.5).
    timeouts: u32,
    /// Timeouts since the last packet from the receiver, after which the connection is aborted.
    n_unanswered: u32,
    /// Time of the first of these timeouts.
    unanswered_since: Time,
    /// Number of consecutive acknowledgements of unsent bytes.
    n_beyond: u32,
    last_sent: Time,
    rack: Rack,
    rto_at: Time,
    probe_at: Time,
    /// True if the next packet is a probe that needs no window.
    is_probing: bool,
    pub(super) paced_until: Time,
    pub(super) grant: Grant,
    /// True if it is queued to probe the receiver's window.
    pub(super) is_probe_queued: bool,
    /// Time of its valid entry among the timers.
    pub(super) entry_at: Time,
    /// Time of its valid entry among the connections that are paced.
    pub(super) paced_entry_at: Time,
}

/// The first byte of data: the SYN is byte 0.
const DATA_START: u64 = 1;

impl Connection {
    pub(super) fn new(dst: NodeId, number: u32, initial: u32, tcp: &Tcp) -> Self {
        let mut rtt = RttEstimator::new(tcp.rto_min, tcp.rto_max);
        if !tcp.config.handshake {
            // Such a connection was used before, so its round trip is known.
            rtt.sample(tcp.base_rtt_to(dst));
        }
        Self {
            dst,
            number,
            initial,
            is_open: false,
            has_ecn: false,
            messages: VecDeque::new(),
            last_done: MsgId::default(),
            end: DATA_START,
            has_fin: tcp.config.connections == Connections::PerMessage,
            board: Scoreboard::new(DATA_START),
            control: Control::new(tcp.config.congestion_control, tcp.start_to(dst)),
            rtt,
            window_end: DATA_START,
            recovery: Recovery::None,
            prr: Prr::default(),
            rescue_end: 0,
            is_urgent: false,
            echo_end: 0,
            needs_cwr: false,
            limited_end: 0,
            timeouts: 0,
            n_unanswered: 0,
            unanswered_since: Time::ZERO,
            n_beyond: 0,
            last_sent: Time::ZERO,
            rack: Rack::new(tcp.config.rack_quarters),
            rto_at: Time::NEVER,
            probe_at: Time::NEVER,
            is_probing: false,
            paced_until: Time::ZERO,
            grant: Grant::CongestionControl,
            is_probe_queued: false,
            entry_at: Time::NEVER,
            paced_entry_at: Time::NEVER,
        }
    }

    /// Opens the connection without a handshake, as if it was opened before the run.
    pub(super) fn open_at_once(&mut self, tcp: &Tcp) {
        (self.is_open, self.has_ecn) = (true, tcp.config.ecn);
        self.window_end = DATA_START + tcp.receive_buffer_bytes;
    }

    /// Adds a message to the stream.
    pub(super) fn submit(&mut self, now: Time, msg: MsgId, size: u64, tcp: &Tcp) {
        if self.board.is_empty() && self.is_open && tcp.config.idle_restart {
            let idle = now.saturating_since(self.last_sent);
            if self.last_sent > Time::ZERO && idle > self.timeout(tcp) {
                self.control.on_idle(tcp.start_to(self.dst).initial);
            }
        }
        self.messages.push_back(TxMessage { msg, size, start: self.end });
        self.end += size;
    }

    /// Returns the byte after the last that was sent.
    pub(super) fn sent_end(&self) -> u64 {
        self.board.next()
    }

    /// Removes an unsent message from the end of the stream. Returns false if it was sent in part,
    /// or is not the last one.
    pub(super) fn withdraw(&mut self, msg: MsgId) -> bool {
        let is_last = |m: &&TxMessage| m.msg == msg && m.start >= self.board.next();
        let Some(&message) = self.messages.back().filter(is_last) else { return false };
        // The receiver waits for the first message of a connection.
        let is_first = self.board.next() == DATA_START;
        let is_only = self.messages.len() == 1 && (self.has_fin || is_first);
        if !is_only {
            self.end = message.start;
            self.messages.pop_back();
        }
        !is_only
    }

    /// Removes the first message if all of it is acknowledged.
    pub(super) fn pop_acknowledged(&mut self) -> Option<MsgId> {
        let message = self.messages.front().filter(|m| m.end() <= self.board.una())?;
        let msg = message.msg;
        self.last_done = msg;
        self.messages.pop_front();
        Some(msg)
    }

    /// Returns the bytes of a message that are not acknowledged.
    pub(super) fn unacknowledged(&self, msg: MsgId) -> Option<u64> {
        let message = self.messages.iter().find(|message| message.msg == msg)?;
        Some(message.end() - self.board.una().max(message.start))
    }

    /// Returns the message that a FIN names.
    pub(super) fn last_message(&self) -> MsgId {
        self.messages.back().map_or(self.last_done, |message| message.msg)
    }

    /// Returns the class of the next segment (PIAS: by the bytes of its message before it).
    pub(super) fn class(&self, next: NextSegment, tcp: &Tcp) -> Priority {
        if tcp.thresholds.is_empty() || next.len == 0 {
            return Priority::HIGHEST;
        }
        let message = self.message_at(next.start);
        tcp.class(message.map_or(0, |message| next.start - message.start))
    }

    /// Starts the timer of the SYN, which is retransmitted if `is_open` is still false at the
    /// timeout.
    pub(super) fn start(&mut self, now: Time, tcp: &Tcp) {
        self.rto_at = now.saturating_add(self.timeout(tcp));
        self.last_sent = now;
    }

    /// Handles the answer of the receiver to the SYN.
    pub(super) fn on_open(&mut self, now: Time, window: u32, ecn: bool, tcp: &Tcp) {
        if self.is_open {
            return;
        }
        // A backed-off timeout stays until there is a sample (RFC 6298 §5.7).
        if self.timeouts == 0 {
            self.rtt.sample(
                tcp.config.rtt_resolution.measure(now, now.saturating_since(self.last_sent)),
            );
        }
        (self.is_open, self.has_ecn, self.rto_at) = (true, ecn && tcp.config.ecn, Time::NEVER);
        self.n_unanswered = 0;
        self.window_end = DATA_START + u64::from(window);
    }

    /// Returns the message that has byte `offset` of the stream.
    pub(super) fn message_at(&self, offset: u64) -> Option<&TxMessage> {
        let place = self.messages.partition_point(|message| message.end() <= offset);
        self.messages.get(place)
    }

    /// Returns the bytes that are not acknowledged. It excludes those sent beyond the window
    /// because others had arrived (RFC 3042; RFC 5681 §3.2, step 2).
    fn flight(&self) -> u64 {
        (self.board.next() - self.board.una()).min(self.control.cwnd())
    }

    /// Returns the congestion window and the bytes in flight.
    pub(super) fn windows(&self) -> [(&'static str, u64); 2] {
        [("cwnd_bytes", self.window()), ("in_flight_bytes", self.board.in_flight())]
    }

    /// Returns the congestion window, in bytes.
    fn window(&self) -> u64 {
        match self.recovery {
            Recovery::Fast(_) => self.prr.window(),
            Recovery::None | Recovery::Timeout(_) => self.control.cwnd(),
        }
    }

    /// Returns the next segment to send if the windows allow any. Pacing is the caller's concern.
    pub(super) fn next_segment(&mut self, tcp: &Tcp) -> Option<NextSegment> {
        if !self.is_open || self.grant == Grant::Stopped {
            return None;
        }
        let in_flight = self.board.in_flight();
        let cwnd = match self.grant {
            Grant::Rate(_) => tcp.start_to(self.dst).granted,
            Grant::CongestionControl | Grant::Stopped => self.window(),
        };
        let has_room = |len: u64| in_flight == 0 || in_flight.saturating_add(len) <= cwnd;
        if let Some(segment) = self.board.next_lost() {
            // Segments that were sent before the receiver closed its window wait, except for the
            // probe.
            let is_beyond = segment.start >= self.window_end && segment.start < self.end;
            let may_send = self.is_urgent || !is_beyond && has_room(segment.len.into());
            if !may_send {
                self.limited_end = self.board.next();
                return None;
            }
            let len = if segment.start == self.end { 0 } else { segment.len };
            return Some(NextSegment { start: segment.start, len, is_new: false });
        }
        let start = self.board.next();
        if start >= self.end {
            if self.has_fin && start == self.end {
                return Some(NextSegment { start, len: 0, is_new: true });
            }
            return self.rescue_segment(tcp).filter(|rest| has_room(rest.len.into()));
        }
        let message = self.message_at(start)?;
        let offset = start - message.start;
        let rest = message.size - offset;
        let len = rest.min(tcp.start.mss - offset % tcp.start.mss);
        if !self.is_probing && !has_room(len) {
            self.limited_end = start;
            return None;
        }
        let Some(len) = self.fitting_len(start, len, in_flight) else {
            return self.rescue_segment(tcp).filter(|rest| has_room(rest.len.into()));
        };
        Some(NextSegment { start, len: len as u32, is_new: true })
    }

    /// Returns as much of a new segment as the receiver accepts. A part is only sent if nothing is
    /// in flight (RFC 9293 §3.8.6.2.1); one byte probes a closed window (§3.8.6.1).
    fn fitting_len(&self, start: u64, len: u64, in_flight: u64) -> Option<u64> {
        let room = self.window_end.saturating_sub(start);
        if len <= room {
            return Some(len);
        }
        if self.is_probing {
            return Some(len.min(room.max(1)));
        }
        (room > 0 && in_flight == 0).then_some(room)
    }

    /// Returns true if only the receiver's window keeps it from sending.
    pub(super) fn is_window_closed(&self) -> bool {
        self.is_open && self.board.una() < self.end && self.window_end <= self.board.una()
    }

    /// Sends the segment that `next` returned, with `wire_bytes` on the wire.
    pub(super) fn send(&mut self, now: Time, next: NextSegment, wire_bytes: u16, tcp: &Tcp) {
        let len = next.len.max(1);
        if next.is_new {
            self.board.send(now, len);
        } else {
            if self.board.is_end(next.start)
                && let Recovery::Fast(end) = self.recovery
            {
                self.rescue_end = end;
            }
            self.board.resend(now, next.start);
            self.is_urgent = false;
        }
        self.prr.on_send(len.into());
        self.is_probing = false;
        self.last_sent = now;
        if self.rto_at == Time::NEVER {
            self.rto_at = now.saturating_add(self.timeout(tcp));
        }
        self.schedule_probe(now, tcp);
        if let Some(rate) = self.pace(tcp) {
            let time = rate.tx_time(Bytes::new(wire_bytes.into()));
            self.paced_until = self.paced_until.max(now) + time;
        }
    }

    /// Returns the rate at which packets are sent, if it is limited.
    fn pace(&self, tcp: &Tcp) -> Option<Rate> {
        if let Grant::Rate(rate) = self.grant {
            return Some(rate);
        }
        let smoothed = self.rtt.smoothed_rtt().filter(|_| tcp.config.pacing)?;
        let factor = if self.control.cwnd() < self.control.ssthresh() { 2.0 } else { 1.2 };
        let bits = self.control.cwnd() as f64 * 8.0 * factor;
        Rate::from_bps((bits / smoothed.as_secs_f64()) as u64)
    }

    /// Handles an acknowledgement.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        received: &Acknowledgement<'_>,
        tcp: &Tcp,
        stats: &mut TcpStats,
    ) -> AckOutcome {
        let una = self.board.una();
        let ack = match unwrap(received.ack, self.initial, una) {
            Some(ack) if ack >= una => ack,
            _ => return AckOutcome::Ignored,
        };
        if ack > self.board.next() {
            self.n_beyond += 1;
            let is_last = self.n_beyond == CONFLICTS_MAX;
            return if is_last { AckOutcome::Conflict } else { AckOutcome::Ignored };
        }
        self.n_beyond = 0;
        let was_shut = self.is_window_closed();
        self.window_end = ack + u64::from(received.window);
        let (initial, flight) = (self.initial, self.flight());
        let offsets = received.sack.iter().filter_map(|block| -> Option<Range> {
            Some((unwrap(block.start, initial, ack)?, unwrap(block.end, initial, ack)?))
        });
        let report = self.board.on_ack(now, ack, offsets);
        let rtt_resolution = tcp.config.rtt_resolution;
        if let Some(rtt) = report.rtt {
            self.rtt.sample(rtt_resolution.measure(now, rtt));
            self.timeouts = 0;
        }
        if report.cumulative > 0 || self.is_window_closed() {
            self.n_unanswered = 0;
        }
        let reopens = was_shut && self.window_end > self.board.una();
        if reopens && !self.board.is_empty() {
            // Segments that were sent while the window was closed were not taken.
            self.board.mark_lost_if(|_| Some(true));
            (self.recovery, self.timeouts) = (Recovery::Timeout(self.board.next()), 0);
        }
        self.rack.on_ack(now, &report, &self.board);
        if self.rack.has_repaired(&report, &self.board) && self.recovery == Recovery::None {
            self.control.on_loss(now, flight);
        }
        let was_fast = matches!(self.recovery, Recovery::Fast(_));
        self.find_losses(now, flight, tcp, stats);
        let (in_flight, mss) = (self.board.in_flight(), tcp.start.mss);
        self.prr.on_ack(report.delivered, in_flight, self.control.ssthresh(), mss);
        self.end_recovery();
        if received.ece {
            self.on_echo(now, flight, stats);
        }
        let is_fast = matches!(self.recovery, Recovery::Fast(_));
        self.control.on_ack(&AckEffect {
            now,
            bytes: report.cumulative,
            una: ack,
            next: self.board.next(),
            rtt: match rtt_resolution {
                RttResolution::Exact => report.rtt,
                RttResolution::Milliseconds => self.rtt.smoothed_rtt(),
            },
            smoothed: self.rtt.smoothed_rtt(),
            is_marked: received.ece,
            is_limited: una <= self.limited_end,
            in_recovery: was_fast || is_fast,
        });
        self.set_timers(now, report.cumulative > 0 || reopens, tcp);
        let has_ended = self.has_fin && ack > self.end;
        if has_ended { AckOutcome::FinAck } else { AckOutcome::Progress }
    }
}
