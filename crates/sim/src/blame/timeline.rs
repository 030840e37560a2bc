//! The states of a message at its sender.

use std::collections::VecDeque;

use rampmeter_types::{MsgId, NodeId, PayloadRef, Permission, Span, Stage, Time};

use super::cause::{Cause, CompletingPacket, LossSignal, Period, PermissionInput, PortFacts};
use super::links::{CONTROL, LinkLogs, TransitPaths};
use super::message::TimeParts;

/// Stage of transports that do not report permissions.
static UNKNOWN: Stage = Stage { name: "permission", meaning: "The transport does not report it." };

/// The lapse of permissions that do not lapse.
const NEVER: (Time, &Stage) = (Time::NEVER, &UNKNOWN);

/// State of a message at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A packet with new bytes is on the link.
    Sending,
    /// A packet with bytes that were sent before is on the link.
    Resending,
    /// The message may send.
    Granted,
    /// The message waits for permission at this stage.
    Awaited(&'static Stage),
    /// The packet that ended this stage is in flight.
    InFlight(&'static Stage),
    /// All bytes have been sent at least once.
    Sent(LossSignal),
}

/// Bytes that have been sent.
#[derive(Debug, Default)]
struct SentRanges {
    /// All bytes before this one.
    until: u64,
    /// Ranges behind, in order.
    later: Vec<(u64, u64)>,
}

impl SentRanges {
    /// Adds a range. Returns true if any of it is new.
    #[inline]
    fn insert(&mut self, from: u64, end: u64) -> bool {
        if from > self.until {
            return self.insert_later(from, end);
        }
        let is_new = end > self.until;
        self.until = self.until.max(end);
        if self.later.is_empty() {
            return is_new;
        }
        let joined = self.later.partition_point(|range| range.0 <= self.until);
        if let Some(&(_, stop)) = self.later[..joined].last() {
            self.until = self.until.max(stop);
            self.later.drain(..joined);
        }
        is_new
    }

    fn insert_later(&mut self, from: u64, end: u64) -> bool {
        let first = self.later.partition_point(|range| range.1 < from);
        let after = self.later.partition_point(|range| range.0 <= end);
        if first == after {
            self.later.insert(first, (from, end));
            return true;
        }
        let (start, stop) = (self.later[first].0, self.later[after - 1].1);
        let is_new = after - first > 1 || from < start || end > stop;
        self.later[first] = (start.min(from), stop.max(end));
        self.later.drain(first + 1..after);
        is_new
    }
}

/// A message until its last byte has arrived.
#[derive(Debug)]
pub(super) struct Timeline {
    msg: MsgId,
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    /// True if its packets may be on the link in any state, as interfaces queue them.
    is_queued: bool,
    /// Tier of the sender's link if that may be idle though the message may send: it is paused.
    pausing_tier: Option<u8>,
    size: u64,
    /// Ranges of bytes that have been sent.
    sent: SentRanges,
    submitted: Time,
    /// Starts of states before the last.
    states: VecDeque<(Time, State)>,
    /// Start of the last state. It may be later than now, at the end of a transmission.
    last: (Time, State),
    /// Times before are in `parts`.
    summed_until: Time,
    parts: TimeParts,
    /// Time at which its permission lapses, and the stage at which it then waits.
    lapse: (Time, &'static Stage),
    /// Tier at which the last of its packets was dropped.
    pub(super) dropped_at: Option<u8>,
}

impl Timeline {
    pub(super) fn new(
        now: Time,
        msg: MsgId,
        src: NodeId,
        dst: NodeId,
        is_queued: bool,
        pausing_tier: Option<u8>,
        size: u64,
    ) -> Self {
        Self {
            msg,
            src,
            dst,
            is_queued,
            pausing_tier,
            size,
            sent: SentRanges::default(),
            submitted: now,
            states: VecDeque::new(),
            last: (now, State::Granted),
            summed_until: now,
            parts: TimeParts::default(),
            lapse: NEVER,
            dropped_at: None,
        }
    }

    fn state_of(&self, permission: Option<Permission>) -> State {
        match permission {
            Some(Permission::Granted | Permission::GrantedUntil(..)) => State::Granted,
            Some(Permission::Awaited(stage)) => self.waiting(stage),
            None => self.waiting(&UNKNOWN),
        }
    }

    /// Returns its state while it has no permission.
    fn waiting(&self, stage: &'static Stage) -> State {
        match self.sent.until >= self.size {
            true => State::Sent(LossSignal::Open),
            false => State::Awaited(stage),
        }
    }

    /// Enters the state that follows a permission that has lapsed before `now`.
    #[inline]
    fn lapse(&mut self, now: Time) {
        if self.lapse.0 >= now {
            return;
        }
        let (at, stage) = std::mem::replace(&mut self.lapse, NEVER);
        if self.last.1 == State::Granted {
            self.enter(at.max(self.last.0), self.waiting(stage));
        }
    }

    /// Enters a state from `at` on. One that begins then or later is replaced.
    #[inline]
    fn enter(&mut self, at: Time, state: State) {
        while self.last.0 >= at {
            match self.states.back() {
                None => {
                    self.last.1 = state;
                    return;
                }
                Some(before) if before.0 < at && before.1 != state => {
                    self.last = (at, state);
                    return;
                }
                Some(&before) => {
                    self.states.pop_back();
                    self.last = before;
                }
            }
        }
        if self.last.1 != state {
            self.states.push_back(self.last);
            self.last = (at, state);
        }
    }

    /// Returns true if it may send once the packet on the link has been sent.
    pub(super) fn is_granted(&self, now: Time) -> bool {
        self.last.1 == State::Granted && self.lapse.0 >= now
    }

    pub(super) fn on_permission(
        &mut self,
        now: Time,
        permission: Option<Permission>,
        input: PermissionInput,
    ) {
        self.lapse(now);
        let (from, before) = self.last;
        let state = self.state_of(permission);
        self.lapse = match permission {
            Some(Permission::GrantedUntil(at, stage)) => (at, stage),
            _ => NEVER,
        };
        if state != before {
            self.change(now, from, before, state, input);
        }
    }

    /// Changes the last state, `before`, which has begun at `from`, after an input.
    fn change(
        &mut self,
        now: Time,
        from: Time,
        before: State,
        state: State,
        input: PermissionInput,
    ) {
        match (before, state, input) {
            (State::Awaited(stage), State::Granted, PermissionInput::Packet(sent))
                if from < now =>
            {
                self.enter(sent.max(from), State::InFlight(stage));
            }
            (State::Sent(LossSignal::Open), State::Granted, _) => {
                self.discover_loss(match input {
                    PermissionInput::Deadline => LossSignal::Timeout,
                    _ => LossSignal::Packet,
                });
            }
            (State::Sent(_), State::Sent(_), _) => return,
            _ => {}
        }
        self.enter(from.max(now), state);
    }

    /// A loss was discovered by `signal`: all of the time since everything was sent is due to it.
    fn discover_loss(&mut self, signal: LossSignal) {
        for (_, state) in self.states.iter_mut().chain([&mut self.last]) {
            if *state == State::Sent(LossSignal::Open) {
                *state = State::Sent(signal);
            }
        }
        self.parts
            .rename(Cause::Loss(LossSignal::Open, None), Cause::Loss(signal, self.dropped_at));
    }

    /// Handles a packet that is handed over. If its link was free, it is on the link until `until`.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, payload: PayloadRef, until: Option<Time>) {
        self.lapse(now);
        let is_new = self.sent.insert(payload.offset, payload.offset + u64::from(payload.len));
        let (from, state) = self.last;
        if state == State::Sent(LossSignal::Open) {
            self.discover_loss(LossSignal::Packet);
        }
        if let Some(until) = until {
            self.enter(now, if is_new { State::Sending } else { State::Resending });
            self.states.push_back(self.last);
            self.last = (until.max(from).max(now), State::Granted);
        }
    }

    /// Adds up the states before `until`.
    pub(super) fn advance(&mut self, until: Time, links: &LinkLogs) {
        self.lapse(until);
        let mut n_past = 0;
        for idx in 0..=self.states.len() {
            let (from, state) = *self.states.get(idx).unwrap_or(&self.last);
            let next = match idx {
                _ if idx == self.states.len() => Time::NEVER,
                _ => self.states.get(idx + 1).unwrap_or(&self.last).0,
            };
            let part = Period { from: from.max(self.summed_until), until: next.min(until) };
            if part.until > part.from {
                self.add(part, state, links);
                self.summed_until = part.until;
            }
            if next >= until {
                break;
            }
            n_past += 1;
        }
        self.states.drain(..n_past);
    }

    fn add(&mut self, part: Period, state: State, links: &LinkLogs) {
        let own_ports = &links.of_host(self.src).from;
        let (cause, ports): (_, &[u32]) = match state {
            State::Sending => return self.parts.add(Cause::Serialisation, part.length()),
            State::Resending => return self.parts.add(Cause::Retransmission, part.length()),
            State::Granted => (Cause::SenderLink, own_ports),
            State::Awaited(stage) => (Cause::Permission(stage), &links.of_host(self.dst).to),
            State::InFlight(stage) => (Cause::PermissionInFlight(stage), &[]),
            State::Sent(LossSignal::Open) => (Cause::Loss(LossSignal::Open, None), &[]),
            State::Sent(signal) => (Cause::Loss(signal, self.dropped_at), &[]),
        };
        let (own, mut rest) = (self.msg.get(), part.length());
        if self.is_queued {
            links.for_each_user(
                own_ports,
                part,
                |msg| msg == own,
                |_, time| {
                    rest = rest - time;
                    self.parts.add(Cause::Serialisation, time);
                },
            );
        }
        let mut unblocked = rest;
        let counts = |msg| msg != own && (msg != CONTROL || state == State::Granted);
        links.for_each_user(ports, part, counts, |msg, time| {
            // The rest after packets of this message that an interface had queued.
            let time = time.min(unblocked);
            if time > Span::ZERO {
                unblocked = unblocked - time;
                self.parts.block(cause, msg, time);
            }
        });
        if let (State::Granted, Some(tier)) = (state, self.pausing_tier) {
            rest = rest - unblocked;
            self.parts.add(Cause::Paused(tier), unblocked);
        }
        self.parts.add(cause, rest);
    }

    /// Returns the parts until `now`, at which the completing packet arrived.
    pub(super) fn finish(
        mut self,
        now: Time,
        packet: &CompletingPacket,
        transits: &TransitPaths,
        port: impl Fn(u32) -> PortFacts,
    ) -> TimeParts {
        self.advance(packet.sent, &transits.links);
        let mut parts = self.parts;
        parts.time = now - self.submitted;
        let mut arrival = packet.sent;
        transits.for_each_port(packet.handle, |at, exception| {
            let facts = port(at.port);
            let ready = arrival + exception.tail_wait;
            parts.add(Cause::CutThrough(facts.tier), exception.tail_wait);
            let wait = Period { from: ready, until: at.start };
            parts.add_wait(wait, at.port, self.msg.get(), &facts, &transits.links);
            let flight = at.flight - exception.fault_delay;
            let delay = facts.delay.min(flight);
            let propagation = facts.propagation.min(delay);
            parts.add(Cause::Serialisation, flight - delay);
            parts.add(Cause::Propagation, propagation + exception.fault_delay);
            parts.add(Cause::Switching, delay - propagation);
            arrival = at.start + at.flight;
        });
        debug_assert_eq!(arrival, now);
        parts
    }
}
