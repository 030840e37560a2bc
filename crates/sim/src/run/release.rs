//! Messages that wait for others: the events for their source, and the times of their submission.
//!
//! The problem: collectives and calls have messages that start when others have been delivered, and
//! their times are not known before the run.
//!
//! The simple way lets the source insert each message into the event queue. The source is then part
//! of the simulator, and runs without dependencies pay for it with each message.
//!
//! The present way: the run notifies the source of each delivery and completion. The source has the
//! time of the first message that no longer waits, and one event stands for it. When the event is
//! due, all messages of that time are submitted. An event that an earlier one has replaced does
//! nothing. Sources without dependencies ([`Source::FEEDBACK`]) compile to none of this.
//!
//! Hazards: the end of a run depends on arrivals. A run may not end while a released message is to
//! be submitted, and the time to drain restarts with the last message. A message that waits for
//! one that failed is never submitted, and is reported as withheld
//! (`a_failed_flow_ends_the_run_and_its_dependents_are_reported`). No flow may start before
//! those that it depends on (`no_flow_starts_before_its_dependencies_arrive_and_are_computed`).

use rampmeter_types::{Event, Time, Transport};

use super::{RELEASE, Sim};
use crate::engine::EventLimit;
use crate::probe::Probe;
use crate::source::Source;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Returns true if the source has a message that is still to be submitted.
    #[inline]
    pub(super) fn expects_arrivals(&self) -> bool {
        self.next.is_some() || A::FEEDBACK && self.next_release() < Time::NEVER
    }

    /// Returns the time at which the next message that waited for others is to be submitted.
    fn next_release(&self) -> Time {
        self.arrivals.as_ref().map_or(Time::NEVER, Source::next_release)
    }

    /// Notifies the source of an event of a message at a host. Not inlined: its caller runs for
    /// every packet, and this twice a message.
    #[inline(never)]
    pub(super) fn notify_source(&mut self, event: Event) {
        let (Event::Delivered { msg, .. } | Event::Completed { msg }) = event else { return };
        let Some(source) = &mut self.arrivals else { return };
        let Some(number) = self.ledger.number(msg) else { return };
        match event {
            Event::Delivered { .. } => source.on_delivered(number, self.now),
            _ => source.on_completed(number, self.now),
        }
        self.schedule_release();
    }

    /// Submits the messages that are due.
    pub(super) fn submit_released(&mut self) {
        if self.release_at > self.now {
            // An earlier event has submitted the flows of this one.
            return;
        }
        self.release_at = Time::NEVER;
        while self.next_release() <= self.now {
            let released = self.arrivals.as_mut().and_then(Source::release);
            let Some(arrival) = released else { break };
            let host = self.submit(&arrival);
            self.after_submission(host);
        }
        self.schedule_release();
    }

    /// Makes sure that there is an event for the first message that no longer waits.
    pub(super) fn schedule_release(&mut self) {
        if !A::FEEDBACK {
            return;
        }
        let at = self.next_release();
        if at < Time::NEVER {
            // The time to drain restarts with the last message.
            self.limit = EventLimit::END;
        }
        if at < self.release_at {
            self.release_at = at;
            self.push_other(at.max(self.now), RELEASE);
        }
    }
}
