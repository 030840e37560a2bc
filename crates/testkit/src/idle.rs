//! Times at which hosts neither send nor receive data while a message waits.

use std::ops::Range;

use rampmeter_sim::Direction;
use rampmeter_types::{NodeId, Span, Time};

/// Intervals of each host in which no data passed, by direction.
#[derive(Clone, Debug)]
pub(crate) struct IdleTimes {
    /// Shorter intervals are not kept.
    longest: Span,
    /// Last instants at which data passed, by host, out and in.
    last: Vec<[Time; 2]>,
    /// Idle intervals by host, out and in.
    idle: Vec<[Vec<(Time, Time)>; 2]>,
}

impl IdleTimes {
    /// Keeps intervals that are longer than `longest`.
    pub(crate) fn new(n_hosts: u32, longest: Span) -> Self {
        let n = n_hosts as usize;
        Self { longest, last: vec![[Time::ZERO; 2]; n], idle: vec![[Vec::new(), Vec::new()]; n] }
    }

    /// Notes that data passes the link of a host. Nodes that are no hosts are ignored.
    pub(crate) fn note_data(&mut self, now: Time, host: usize, direction: Direction) {
        let place = usize::from(direction == Direction::Received);
        let Some(last) = self.last.get_mut(host) else { return };
        let last = std::mem::replace(&mut last[place], now);
        if now.saturating_since(last) > self.longest {
            self.idle[host][place].push((last, now));
        }
    }

    /// Returns the longest time between two instants for which both ends of a message were idle.
    pub(crate) fn longest_wait(&self, src: NodeId, dst: NodeId, times: Range<Time>) -> Span {
        let sends = &self.idle[src.idx()][0];
        let receives = &self.idle[dst.idx()][1];
        let mut longest = Span::ZERO;
        let first = sends.partition_point(|&(_, until)| until <= times.start);
        for &(from, until) in sends[first..].iter().take_while(|&&(from, _)| from < times.end) {
            let (from, until) = (from.max(times.start), until.min(times.end));
            let first = receives.partition_point(|&(_, until)| until <= from);
            for &(a, b) in receives[first..].iter().take_while(|&&(a, _)| a < until) {
                longest = longest.max(b.min(until).saturating_since(a.max(from)));
            }
        }
        longest
    }
}
