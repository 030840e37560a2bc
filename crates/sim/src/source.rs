//! Sources of the messages of a run.
//!
//! An iterator of arrivals is a source whose messages wait for no others. A source with feedback
//! also has messages that wait for others. The run notifies it if a message has been delivered or
//! completed, and takes the messages that this releases.

use rampmeter_types::Time;

use crate::arrival::Arrival;

/// A source of messages.
///
/// A run takes [`Source::poll_arrival`] one message ahead. With [`Source::FEEDBACK`] it calls
/// [`Source::on_delivered`] and [`Source::on_completed`] when messages are delivered and completed.
/// It submits the messages of [`Source::release`] at [`Source::next_release`]. At the end of the
/// run, it takes all messages that were never released from [`Source::take_withheld`].
pub trait Source {
    /// True if messages may wait for others. If none does, a run never calls any method but
    /// [`Source::poll_arrival`].
    const FEEDBACK: bool;

    /// Returns true if messages of this source may wait for others.
    fn has_dependent_messages(&self) -> bool {
        Self::FEEDBACK
    }

    /// Returns the next message that waits for no other. They are in order of time.
    fn poll_arrival(&mut self) -> Option<Arrival>;

    /// The receiver of message `number` has every byte at `at`.
    fn on_delivered(&mut self, number: u32, at: Time);

    /// The sender of message `number` is notified at `at` that it has been delivered.
    fn on_completed(&mut self, number: u32, at: Time);

    /// Returns the time at which the first of the released messages is to be submitted;
    /// [`Time::NEVER`] if there is none.
    fn next_release(&self) -> Time;

    /// Takes that message. Its `at` is [`Source::next_release`].
    fn release(&mut self) -> Option<Arrival>;

    /// Takes one of the messages that were not submitted, at the end of the run. Its `at` means
    /// nothing.
    fn take_withheld(&mut self) -> Option<Arrival>;
}

impl<I: Iterator<Item = Arrival>> Source for I {
    const FEEDBACK: bool = false;

    #[inline]
    fn poll_arrival(&mut self) -> Option<Arrival> {
        self.next()
    }

    fn on_delivered(&mut self, _number: u32, _at: Time) {}

    fn on_completed(&mut self, _number: u32, _at: Time) {}

    fn next_release(&self) -> Time {
        Time::NEVER
    }

    fn release(&mut self) -> Option<Arrival> {
        None
    }

    fn take_withheld(&mut self) -> Option<Arrival> {
        None
    }
}
