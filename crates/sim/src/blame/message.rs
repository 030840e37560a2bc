//! The parts of a message's time while they are added up.

use std::cmp::Reverse;

use rampmeter_types::Span;
use rampmeter_types::collections::IdMap;

use super::cause::{BLOCKERS_MAX, Blocker, Cause, FlowBlame, Period, PortFacts};
use super::links::{CONTROL, LinkLogs};

/// Parts of a message's time.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeParts {
    /// Time since the submission.
    pub(super) time: Span,
    causes: Vec<(Cause, Span)>,
    /// Place of the last cause of each kind.
    recent: [u8; Cause::N_KINDS],
    /// Times by the number of the cause and the message that used the link.
    blockers: IdMap<(u32, u32), Span>,
}

impl TimeParts {
    #[inline]
    fn idx(&mut self, cause: Cause) -> usize {
        let recent = usize::from(self.recent[cause.kind()]);
        match self.causes.get(recent) {
            Some(known) if known.0 == cause => recent,
            _ => self.find(cause),
        }
    }

    /// Returns the place of a cause, which is added if it is new.
    #[inline(never)]
    fn find(&mut self, cause: Cause) -> usize {
        let found = self.causes.iter().position(|&(known, _)| known == cause);
        let idx = found.unwrap_or_else(|| {
            self.causes.push((cause, Span::ZERO));
            self.causes.len() - 1
        });
        self.recent[cause.kind()] = idx.min(usize::from(u8::MAX)) as u8;
        idx
    }

    /// Adds a part.
    #[inline]
    pub(super) fn add(&mut self, cause: Cause, time: Span) {
        if time > Span::ZERO {
            let idx = self.idx(cause);
            self.causes[idx].1 += time;
        }
    }

    /// Notes that `msg` used the link for some of a part.
    pub(super) fn block(&mut self, cause: Cause, msg: u32, time: Span) {
        let idx = self.idx(cause) as u32;
        *self.blockers.entry((idx, msg)).or_default() += time;
    }

    /// Gives a cause another name, under which there may be parts already.
    pub(super) fn rename(&mut self, from: Cause, to: Cause) {
        let place = |cause| self.causes.iter().position(|&(known, _)| known == cause);
        match (place(from), place(to)) {
            (Some(idx), None) => self.causes[idx].0 = to,
            (Some(idx), Some(_)) => {
                let time = std::mem::take(&mut self.causes[idx].1);
                self.add(to, time);
            }
            (None, _) => {}
        }
    }

    /// Adds the wait of the completing packet of `msg` at a port.
    pub(super) fn add_wait(
        &mut self,
        wait: Period,
        port: u32,
        msg: u32,
        facts: &PortFacts,
        links: &LinkLogs,
    ) {
        let mut rest = wait.length();
        if rest == Span::ZERO {
            return;
        }
        links.for_each_user(
            &[port],
            wait,
            |_| true,
            |other, time| {
                rest = rest - time;
                if other == msg {
                    return self.add(Cause::Serialisation, time);
                }
                self.add(Cause::Queueing(facts.tier), time);
                self.block(Cause::Queueing(facts.tier), other, time);
            },
        );
        self.add(facts.idle_cause, rest);
        if rest > Span::ZERO && facts.idle_cause == Cause::Queueing(facts.tier) {
            self.block(facts.idle_cause, CONTROL, rest);
        }
    }

    /// Returns the causes of message `number`; `number_of` returns those of others.
    pub(super) fn into_blame(self, number: u32, number_of: impl Fn(u32) -> u32) -> FlowBlame {
        let Self { time, causes, blockers, .. } = self;
        let mut blockers: Vec<((u32, u32), Span)> = blockers.into_iter().collect();
        blockers.sort_unstable_by_key(|&((idx, msg), time)| (idx, Reverse(time), msg));
        let mut named = Vec::new();
        for of_cause in blockers.chunk_by(|a, b| a.0.0 == b.0.0) {
            let before = &causes[..of_cause[0].0.0 as usize];
            let part = before.iter().filter(|(_, time)| *time > Span::ZERO).count() as u32;
            let mut rest = Span::ZERO;
            for (place, &((_, msg), time)) in of_cause.iter().enumerate() {
                match msg != CONTROL && place < BLOCKERS_MAX {
                    true => named.push(Blocker { part, flow: Some(number_of(msg)), time }),
                    false => rest += time,
                }
            }
            if rest > Span::ZERO {
                named.push(Blocker { part, flow: None, time: rest });
            }
        }
        let parts = causes.into_iter().filter(|&(_, time)| time > Span::ZERO).collect();
        FlowBlame { number, time, parts, blockers: named }
    }
}
