//! Transmissions of ports, and the paths of data packets.

use std::collections::VecDeque;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{NodeId, Span, Time};

use super::cause::Period;
use crate::engine::Handle;

/// Number in logs of control packets, which belong to no message here.
pub(super) const CONTROL: u32 = u32::MAX;

/// Number of transmissions after which old ones are removed.
pub(crate) const CLEANING_INTERVAL: u64 = 1 << 15;

/// Ports on the path of a packet whose times are next to one another in memory.
const NEAR_PORTS: usize = 5;

/// Packets of one message, back to back on a link.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    from: Time,
    /// Duration in picoseconds.
    length: u32,
    /// The message, or [`CONTROL`].
    msg: u32,
}

impl Transmission {
    #[inline]
    fn until(self) -> Time {
        self.from + Span::from_ps(self.length.into())
    }
}

/// Transmissions of a port since the horizon, in one line of a processor's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct LinkLog {
    /// Start and end of the last transmission.
    last: Period,
    /// Message of the last transmission, or [`CONTROL`].
    last_msg: u32,
    /// True if it has several packets, of which later ones may have waited for earlier ones.
    last_is_joined: bool,
    /// True if all transmissions are kept.
    keeps_all: bool,
    /// Transmissions before, without those for which no packet waited.
    earlier: VecDeque<Transmission>,
}

impl LinkLog {
    /// Creates the log of a port that has sent nothing.
    fn new(keeps_all: bool) -> Self {
        let last = Period { from: Time::ZERO, until: Time::ZERO };
        let earlier = VecDeque::new();
        Self { last, last_msg: CONTROL, last_is_joined: false, keeps_all, earlier }
    }

    fn last(&self) -> Transmission {
        let Period { from, until } = self.last;
        Transmission { from, length: (until - from).as_ps() as u32, msg: self.last_msg }
    }

    /// Logs a transmission. If the link was idle before it, `follows` is false, and nobody waited
    /// for the end of the one before.
    #[inline(always)]
    fn push(&mut self, msg: u32, busy: Period, follows: bool) {
        let joins = self.last.until == busy.from && self.last_msg == msg;
        if joins && is_short(Period { from: self.last.from, until: busy.until }) {
            self.last.until = busy.until;
            self.last_is_joined = true;
            return;
        }
        if follows || self.last_is_joined || self.keeps_all {
            self.earlier.push_back(self.last());
        }
        (self.last, self.last_msg, self.last_is_joined) = (busy, msg, false);
        if !is_short(busy) {
            self.split_last();
        }
    }

    /// Divides a transmission of more than four milliseconds.
    #[cold]
    fn split_last(&mut self) {
        while !is_short(self.last) {
            let part = Transmission { from: self.last.from, length: u32::MAX, msg: self.last_msg };
            self.earlier.push_back(part);
            self.last.from = part.until();
        }
    }
}

/// Returns true if the length of a transmission fits into its field.
#[inline]
fn is_short(busy: Period) -> bool {
    busy.length().as_ps() <= u64::from(u32::MAX)
}

/// Ports from and to a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPorts {
    /// Ports of the interfaces of the host.
    pub(crate) from: Vec<u32>,
    /// Ports of switches that lead to the host.
    pub(crate) to: Vec<u32>,
}

/// Transmissions of each port.
#[derive(Debug)]
pub(crate) struct LinkLogs {
    logs: Vec<LinkLog>,
    of_hosts: Vec<HostPorts>,
}

impl LinkLogs {
    /// Returns the ports from and to a host.
    pub(super) fn of_host(&self, host: NodeId) -> &HostPorts {
        &self.of_hosts[host.idx()]
    }

    /// Calls `each` with the parts of a time in which packets were on the link of a port, in order,
    /// with their messages.
    #[inline]
    fn for_each_busy_time(&self, port: u32, period: Period, mut each: impl FnMut(Period, u32)) {
        let log = &self.logs[port as usize];
        let start = log.earlier.partition_point(|one| one.until() <= period.from);
        for one in log.earlier.range(start..).chain([&log.last()]) {
            if one.from >= period.until {
                return;
            }
            let from = one.from.max(period.from);
            let until = one.until().min(period.until);
            if until > from {
                each(Period { from, until }, one.msg);
            }
        }
    }

    /// Calls `each` with the messages among `wanted` that used links of `ports` in a time, and for
    /// how long, in order. If several did at once, the first to start counts.
    #[inline]
    pub(super) fn for_each_user(
        &self,
        ports: &[u32],
        period: Period,
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(u32, Span),
    ) {
        let mut from = period.from;
        let mut add = |busy: Period, msg| {
            if busy.until > from {
                each(msg, busy.until - busy.from.max(from));
                from = busy.until;
            }
        };
        match ports {
            [] => {}
            [port] => self.for_each_busy_time(*port, period, |busy, msg| {
                if wanted(msg) {
                    add(busy, msg);
                }
            }),
            _ => {
                let times = self.busy_times(ports, period, wanted);
                times.into_iter().for_each(|(from, until, msg)| add(Period { from, until }, msg));
            }
        }
    }

    /// Returns the times of `wanted` messages on several links, in the order of their starts.
    fn busy_times(
        &self,
        ports: &[u32],
        period: Period,
        wanted: impl Fn(u32) -> bool,
    ) -> Vec<(Time, Time, u32)> {
        let mut times = Vec::new();
        for &port in ports {
            self.for_each_busy_time(port, period, |Period { from, until }, msg| {
                if wanted(msg) {
                    times.push((from, until, msg));
                }
            });
        }
        times.sort_unstable();
        times
    }

    fn remove_before(&mut self, horizon: Time) {
        for LinkLog { earlier, .. } in &mut self.logs {
            while earlier.front().is_some_and(|one| one.until() <= horizon) {
                earlier.pop_front();
            }
        }
    }
}

/// Times of a packet at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortTimes {
    /// Start of the transmission.
    pub(crate) start: Time,
    pub(crate) port: u32,
    /// Time from the start until the packet is at the next node.
    pub(crate) flight: Span,
}

/// Exceptional times of a packet at a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExceptionalDelay {
    /// Place of the port on the path.
    place: usize,
    /// Time for which it waited for its own tail.
    pub(super) tail_wait: Span,
    /// Delay on the link by a fault, a part of the flight.
    pub(super) fault_delay: Span,
}

/// The path of a data packet, in two lines of a processor's cache. The first two ports are in the
/// line of their number.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Path {
    /// Number of ports passed.
    n_ports: u32,
    /// Times at the first of them.
    near: [PortTimes; NEAR_PORTS],
}

impl Path {
    const NEW: Self = {
        let none = PortTimes { start: Time::ZERO, port: 0, flight: Span::ZERO };
        Self { n_ports: 0, near: [none; NEAR_PORTS] }
    };
}

/// The paths of the data packets in a fabric.
#[derive(Debug)]
pub(crate) struct TransitPaths {
    /// Paths by handle.
    paths: Vec<Path>,
    /// Times at further ports, by handle.
    far: IdMap<u32, Vec<PortTimes>>,
    /// Exceptions on paths, by handle.
    exceptions: IdMap<u32, Vec<ExceptionalDelay>>,
    pub(super) links: LinkLogs,
    /// True if control packets are logged.
    pub(crate) logs_control: bool,
    /// Data packets that were dropped or trimmed and are not yet processed: message and tier.
    pub(crate) drops: Vec<(u32, u8)>,
    /// End of the transmission that began last.
    pub(crate) last_until: Time,
}

impl TransitPaths {
    /// Creates the log of a fabric with these ports of hosts. All transmissions are kept of ports
    /// with `keeps_all`. Control packets are logged if `logs_control`, for ports that may send
    /// nothing though packets wait.
    pub(crate) fn new(of_hosts: Vec<HostPorts>, keeps_all: Vec<bool>, logs_control: bool) -> Self {
        Self {
            paths: Vec::new(),
            far: IdMap::default(),
            exceptions: IdMap::default(),
            links: LinkLogs { logs: keeps_all.into_iter().map(LinkLog::new).collect(), of_hosts },
            logs_control,
            drops: Vec::new(),
            last_until: Time::ZERO,
        }
    }

    /// Calls `each` with the times of a packet at ports, in order. It may just have left the
    /// fabric.
    pub(super) fn for_each_port(
        &self,
        handle: Handle,
        mut each: impl FnMut(&PortTimes, ExceptionalDelay),
    ) {
        let path = &self.paths[handle as usize];
        let n_ports = path.n_ports as usize;
        let near = &path.near[..n_ports.min(NEAR_PORTS)];
        let far = self.far.get(&handle).filter(|_| n_ports > NEAR_PORTS);
        let exceptions = self.exceptions.get(&handle).map_or(&[][..], Vec::as_slice);
        for (place, times) in near.iter().chain(far.into_iter().flatten()).enumerate() {
            let exception = exceptions.iter().find(|one| one.place == place);
            each(times, exception.copied().unwrap_or_default());
        }
    }

    /// Notes a data packet that enters the fabric.
    #[inline]
    pub(crate) fn on_enter(&mut self, handle: Handle) {
        let idx = handle as usize;
        if self.paths.len() <= idx {
            self.paths.resize(idx + 1, Path::NEW);
        }
        self.paths[idx].n_ports = 0;
        if !self.exceptions.is_empty() {
            self.exceptions.remove(&handle);
        }
    }

    /// Notes a data packet that is duplicated on a link. The twin is `delay` longer on the path.
    pub(crate) fn on_double(&mut self, handle: Handle, twin: Handle, delay: Span) {
        self.on_enter(twin);
        let mut ports = Vec::new();
        self.for_each_port(handle, |times, _| ports.push(*times));
        ports.into_iter().for_each(|times| self.push(twin, times));
        if let Some(exceptions) = self.exceptions.get(&handle).cloned() {
            self.exceptions.insert(twin, exceptions);
        }
        self.delay_last(twin, delay);
    }

    /// A data packet waits for its own tail, at the next port of its path.
    pub(crate) fn note_tail_wait(&mut self, handle: Handle, wait: Span) {
        let place = self.paths[handle as usize].n_ports as usize;
        self.exception(handle, place).tail_wait = wait;
    }

    fn exception(&mut self, handle: Handle, place: usize) -> &mut ExceptionalDelay {
        let of_packet = self.exceptions.entry(handle).or_default();
        if of_packet.last().is_none_or(|last| last.place != place) {
            of_packet.push(ExceptionalDelay { place, ..ExceptionalDelay::default() });
        }
        of_packet.last_mut().expect("it was added")
    }

    /// Records a fault that delays a data packet to the next node.
    pub(crate) fn delay_last(&mut self, handle: Handle, delay: Span) {
        if delay == Span::ZERO {
            return;
        }
        let path = &mut self.paths[handle as usize];
        let Some(place) = (path.n_ports as usize).checked_sub(1) else { return };
        let last = match path.near.get_mut(place) {
            Some(near) => Some(near),
            None => self.far.get_mut(&handle).and_then(|far| far.last_mut()),
        };
        if let Some(last) = last {
            last.flight += delay;
        }
        self.exception(handle, place).fault_delay += delay;
    }

    #[inline(always)]
    fn push(&mut self, handle: Handle, times: PortTimes) {
        let path = &mut self.paths[handle as usize];
        let place = path.n_ports as usize;
        path.n_ports += 1;
        match path.near.get_mut(place) {
            Some(near) => *near = times,
            None => self.push_far(handle, place, times),
        }
    }

    #[cold]
    fn push_far(&mut self, handle: Handle, place: usize, times: PortTimes) {
        let far = self.far.entry(handle).or_default();
        far.truncate(place - NEAR_PORTS);
        far.push(times);
    }

    /// Notes a packet of a message with its times at a port, whose link it occupies in `busy`.
    /// `follows` is true if the link was busy until then.
    #[inline(always)]
    pub(crate) fn on_data_start(
        &mut self,
        handle: Handle,
        msg: u32,
        times: PortTimes,
        busy: Period,
        follows: bool,
    ) {
        self.links.logs[times.port as usize].push(msg, busy, follows);
        self.push(handle, times);
    }

    /// Notes a control packet that occupies the link of a port in `busy`.
    #[cold]
    pub(crate) fn on_control_start(&mut self, port: u32, busy: Period, follows: bool) {
        self.links.logs[port as usize].push(CONTROL, busy, follows);
    }

    /// Removes transmissions before `horizon`.
    pub(crate) fn clean(&mut self, horizon: Time) {
        self.links.remove_before(horizon);
    }
}
