//! Bursts: their beginning, remaining bytes and end.
//!
//! A burst begins when a program has written more than the threshold to a connection. It ends when
//! all bytes are acknowledged and the program requests nothing more, or when it makes no progress
//! for [`STALL`](super::event::STALL) although it may send.
//!
//! The remaining bytes are those queued on the connection plus those of a blocked call. A program
//! that sends a long stream writes a piece at a time. So the estimate of the remaining bytes is at
//! least the number that earlier calls have requested. A burst therefore loses priority to shorter
//! ones as it continues.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

use rampmeter_gate::{BurstPermission, Slot, open_gate};
use rampmeter_proto::capton::CaptonAgent;
use rampmeter_proto::central::agent::SendPermission;
use rampmeter_types::{Bytes, MsgId, Rate, Span, Time};
use tracing::debug;

use super::event::{Burst, LastActivity, ProgramEvent};
use super::probe::Probe;
use super::programs::Programs;

/// Maximum and minimum interval of kernel queries about bursts that may send.
const POLL: Span = Span::from_us(2_000);
const POLL_MIN: Span = Span::from_us(100);
/// Minimum interval per burst, which limits the total cost of queries.
const POLL_EACH: Span = Span::from_us(50);
/// Interval of queries about bursts that may not send, which detect broken connections.
const POLL_HELD: Span = Span::from_us(50_000);
/// Interval of queries about connections without a burst.
const POLL_IDLE: Span = Span::from_us(1_000_000);
/// All bursts of a host.
pub(super) struct Bursts {
    pub(super) programs: Programs,
    probe: Probe,
    /// Program and slot of each flow of the controller.
    places: BTreeMap<MsgId, (u64, u32)>,
    next_poll: Time,
    next_idle: Time,
    /// Bytes of a stream per byte on the wire.
    share: f64,
}

impl Bursts {
    pub(super) fn new(programs: Programs, probe: Probe, share: f64) -> Self {
        let (next_poll, next_idle) = (Time::NEVER, Time::ZERO);
        Self { programs, probe, places: BTreeMap::new(), next_poll, next_idle, share }
    }

    /// Returns the next time at which [`Bursts::iterate`] must run without a note of a program.
    pub(super) fn next(&self) -> Time {
        self.next_poll.min(self.next_idle)
    }

    /// Handles notes of programs and forwards decisions of the controller.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn iterate(&mut self, now: Time, agent: &mut CaptonAgent) -> io::Result<()> {
        for note in self.programs.read_notes(now)? {
            match note {
                ProgramEvent::BurstStarted { program, slot } => {
                    self.begin(now, program, slot, agent)?
                }
                ProgramEvent::Closed { program, slot } => {
                    self.query_connection(now, program, slot, agent)?
                }
                ProgramEvent::Exited { program } => self.forget(program, agent),
            }
        }
        if now >= self.next() {
            self.poll(now, agent)?;
        }
        while let Some((msg, verdict)) = agent.poll_permission() {
            self.obey(now, msg, verdict);
        }
        self.programs.iter().for_each(|(_, program)| program.region.beat());
        Ok(())
    }

    fn begin(
        &mut self,
        now: Time,
        program: u64,
        number: u32,
        agent: &mut CaptonAgent,
    ) -> io::Result<()> {
        let Some(of) = self.programs.get_mut(program) else { return Ok(()) };
        let Some(slot) = of.region.slot(number) else { return Ok(()) };
        let burst = slot.burst();
        let Some(connection) = of.connections.get_mut(&number) else {
            // The agent has no gate, for example without free descriptors: the burst may send.
            slot.set(burst, BurstPermission::Send(None));
            return Ok(());
        };
        if let Some(before) = connection.burst.take() {
            agent.finish(before.msg);
            self.places.remove(&before.msg);
        }
        let Some(held) = self.probe.unacknowledged(&connection.tuple)? else {
            slot.set(burst, BurstPermission::Send(None));
            open_gate(connection.gate.as_fd());
            return Ok(());
        };
        slot.set(burst, BurstPermission::Stop);
        let msg = agent.begin(now, connection.dst, Bytes::new(left(held, slot)));
        let last_activity = LastActivity { held_bytes: held, program: slot.activity() };
        let may_send = false;
        connection.burst = Some(Burst {
            msg,
            number: burst,
            may_send,
            rate: None,
            last_activity,
            changed_at: now,
        });
        connection.probed_at = now;
        self.places.insert(msg, (program, number));
        self.next_poll = self.next_poll.min(now + POLL);
        Ok(())
    }

    /// Applies a decision of the controller.
    fn obey(&mut self, now: Time, msg: MsgId, verdict: SendPermission) {
        let Some(&(program, number)) = self.places.get(&msg) else { return };
        let Some(of) = self.programs.get_mut(program) else { return };
        let Some(slot) = of.region.slot(number) else { return };
        let Some(connection) = of.connections.get_mut(&number) else { return };
        let Some(burst) = &mut connection.burst else { return };
        let payload = |rate: Rate| (rate.as_bps() as f64 * self.share / 8.0) as u64;
        let order = match verdict {
            SendPermission::Rate(rate) => BurstPermission::Send(Some(payload(rate))),
            SendPermission::Stopped => BurstPermission::Stop,
            SendPermission::Free => BurstPermission::Send(None),
        };
        slot.set(burst.number, order);
        debug!(
            program,
            slot = number,
            ?order,
            held = burst.last_activity.held_bytes,
            requested = slot.unsent_bytes(),
            "order"
        );
        let may_send = verdict != SendPermission::Stopped;
        if may_send && !burst.may_send {
            burst.changed_at = now;
        }
        burst.may_send = may_send;
        burst.rate = if let SendPermission::Rate(rate) = verdict { Some(rate) } else { None };
        if may_send {
            open_gate(connection.gate.as_fd());
            self.next_poll = self.next_poll.min(now + POLL);
        }
    }

    /// Queries the kernel about connections that are due.
    fn poll(&mut self, now: Time, agent: &mut CaptonAgent) -> io::Result<()> {
        let with_idle = now >= self.next_idle;
        let mut due = Vec::new();
        let (mut n_sending, mut n_held) = (0u64, 0u64);
        for (program, of) in self.programs.iter() {
            for (&number, connection) in &of.connections {
                let every = match &connection.burst {
                    Some(burst) if burst.may_send => {
                        n_sending += 1;
                        Span::ZERO
                    }
                    Some(_) => {
                        n_held += 1;
                        POLL_HELD
                    }
                    None if with_idle => Span::ZERO,
                    None => continue,
                };
                if now.saturating_since(connection.probed_at) >= every {
                    due.push((program, number));
                }
            }
        }
        for (program, number) in due {
            self.query_connection(now, program, number, agent)?;
        }
        self.next_poll = match (n_sending, n_held) {
            (0, 0) => Time::NEVER,
            (0, _) => now + POLL_HELD,
            (n, _) => now + self.soonest().max(POLL_EACH * n),
        };
        if with_idle {
            self.next_idle = now + POLL_IDLE;
        }
        Ok(())
    }

    /// Returns the time until the first burst may end.
    fn soonest(&self) -> Span {
        let connections = self.programs.iter().flat_map(|(_, of)| of.connections.values());
        let bursts = connections.filter_map(|connection| connection.burst.as_ref());
        let left = bursts.filter_map(|burst| {
            Some(burst.rate?.tx_time(Bytes::new(burst.last_activity.held_bytes)))
        });
        left.min().map_or(POLL, |left| left.clamp(POLL_MIN, POLL))
    }

    /// Queries the kernel about one connection.
    fn query_connection(
        &mut self,
        now: Time,
        program: u64,
        number: u32,
        agent: &mut CaptonAgent,
    ) -> io::Result<()> {
        let Some(of) = self.programs.get_mut(program) else { return Ok(()) };
        let Some(slot) = of.region.slot(number) else { return Ok(()) };
        let Some(connection) = of.connections.get_mut(&number) else { return Ok(()) };
        connection.probed_at = now;
        let held = self.probe.unacknowledged(&connection.tuple)?;
        let is_over = match (&mut connection.burst, held) {
            (None, Some(_)) => return Ok(()),
            (None, None) => true,
            (Some(_), None) => true,
            (Some(burst), Some(held)) => {
                agent.update(now, burst.msg, Bytes::new(left(held, slot)));
                burst.is_over(now, held, slot)
            }
        };
        if !is_over {
            // Threads that were blocked at the same time may have closed the gate again.
            if connection.burst.is_some_and(|burst| burst.may_send) {
                open_gate(connection.gate.as_fd());
            }
            return Ok(());
        }
        if let Some(burst) = connection.burst.take() {
            slot.set(burst.number, BurstPermission::None);
            agent.finish(burst.msg);
            self.places.remove(&burst.msg);
        }
        open_gate(connection.gate.as_fd());
        if held.is_none() {
            of.connections.remove(&number);
            slot.free();
        }
        Ok(())
    }

    fn forget(&mut self, program: u64, agent: &mut CaptonAgent) {
        let Some(of) = self.programs.remove(program) else { return };
        for burst in of.connections.into_values().filter_map(|connection| connection.burst) {
            agent.finish(burst.msg);
            self.places.remove(&burst.msg);
        }
    }
}

/// Returns the remaining bytes of a burst, of which `held` are queued on the connection.
fn left(held: u64, slot: Slot<'_>) -> u64 {
    held.saturating_add(slot.unsent_bytes()).max(slot.age()).min(1 << 40)
}
