//! Events of programs on a host.

use rampmeter_types::Span;

use rampmeter_gate::{Activity, Slot};
use rampmeter_types::{MsgId, Rate, Time};

/// Time without progress after which a burst ends.
pub(super) const STALL: Span = Span::from_us(200_000);

/// Bytes on a connection, and activity of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastActivity {
    pub(super) held_bytes: u64,
    pub(super) program: Activity,
}

/// A burst of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) msg: MsgId,
    /// Number of the burst at the program.
    pub(super) number: u64,
    pub(super) may_send: bool,
    /// Granted rate, if there is one.
    pub(super) rate: Option<Rate>,
    /// State at the last change, and the time of that change.
    pub(super) last_activity: LastActivity,
    pub(super) changed_at: Time,
}

impl Burst {
    /// Returns true if the burst has ended.
    pub(super) fn is_over(&mut self, now: Time, held: u64, slot: Slot<'_>) -> bool {
        let seen = LastActivity { held_bytes: held, program: slot.activity() };
        if seen != self.last_activity {
            (self.last_activity, self.changed_at) = (seen, now);
        }
        let idle_time = now.saturating_since(self.changed_at);
        let is_all_sent = held == 0 && slot.unsent_bytes() == 0;
        is_all_sent || (self.may_send && idle_time >= STALL)
    }
}

/// Event of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramEvent {
    /// A burst begins on a connection.
    BurstStarted { program: u64, slot: u32 },
    /// A connection may be closed.
    Closed { program: u64, slot: u32 },
    /// All processes of a program have ended.
    Exited { program: u64 },
}
