//! Loop that runs a node on a real clock.
//!
//! The problem: a node must handle packets and timers soon, but should use no processor while it
//! has nothing to do. Wake-ups are late and cost more than a packet.
//!
//! The simple way sleeps until the next event, or never sleeps. Sleeping adds a wake-up to every
//! round trip, and paced packets are late. Polling takes a whole core, also from the programs that
//! the node serves.
//!
//! The present way ([`WaitMode::Block`]) tries in this order, after each iteration:
//!
//! * Under load it sleeps for [`Node::coalescing`], so that one iteration handles many packets.
//!   Arrivals do not end this sleep.
//! * If work is due it starts the next iteration at once.
//! * After activity it polls for as long as earlier events made worthwhile ([`BusyPoll`]), and
//!   yields the processor to other programs. If a yield takes long, the processor is contended, and
//!   the node sleeps instead.
//! * Else it sleeps until the next deadline, a packet or a signal. If packets wait for the pacer,
//!   it wakes early by `spin` and spins.
//!
//! Hazards: an application may submit just before the sleep, so the node sleeps only if
//! [`Applications::arm`] finds no submission. A stop must not wait for a long sleep: it wakes the
//! node, and limits its sleeps to the drain timeout. A signal's wake-up must be cleared, or the
//! node never sleeps again. At a real-time priority a yield gives nothing to other programs, so
//! busy polling is off. Sleeps must not be rounded to milliseconds
//! (`short_sleeps_are_not_rounded_up_to_milliseconds`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rampmeter_types::{Endpoint, Span, Time};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::thread::{nanosleep, sched_yield};

use crate::app::Applications;
use crate::busy::BusyPoll;
use crate::clock::{Clock, timespec};
use crate::datapath::Datapath;
use crate::node::Node;

/// Mode in which a node waits for its next iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Sleeps, except for the last part before a packet whose pacing delay ends.
    Block {
        /// Duration of that part: at least the lateness of the system's timers; zero disables
        /// spinning.
        spin: Span,
    },
    /// Never sleeps: minimum latency, for a whole core.
    Poll,
}

/// Signals to a running node, from other threads and from signal handlers.
#[derive(Clone, Debug)]
pub struct Signals(Arc<SignalState>);

#[derive(Debug)]
struct SignalState {
    stop: AtomicBool,
    reload: AtomicBool,
    event: OwnedFd,
}

impl Signals {
    /// Creates signals, none of which is set.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (stop, reload) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self(Arc::new(SignalState { stop, reload, event })))
    }

    /// Requests that the node finishes messages in flight, and stops.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Requests that the owner of the node reads its configuration again.
    pub fn reload(&self) {
        self.0.reload.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns true if a reload was requested since the last call.
    pub fn take_reload(&self) -> bool {
        self.0.reload.swap(false, Ordering::SeqCst)
    }

    /// Clears a wake-up that has been handled, so that it does not wake the node again.
    fn clear_wake(&self) {
        let _ = rustix::io::read(&self.0.event, &mut [0u8; 8]);
    }

    /// Wakes the node, so that `each` of [`drive()`] is called soon.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
    }

    /// Returns true if a stop was requested.
    pub fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::SeqCst)
    }
}

/// Duration of a yield above which the processor counts as contended.
const CONTENDED_YIELD: Span = Span::from_us(20);

/// Runs the node until `signals` requests a stop, and then for at most `drain_timeout` until all
/// its messages have ended. The rest is reported as failed. `each` is called after every iteration,
/// and may read the node's state.
///
/// # Errors
/// Those of the datapath and of the system's calls for waiting.
pub fn drive<E: Endpoint, D: Datapath, A: Applications>(
    node: &mut Node<E, D, A>,
    clock: &Clock,
    wait: WaitMode,
    signals: &Signals,
    drain_timeout: Span,
    mut each: impl FnMut(&mut Node<E, D, A>, Time),
) -> io::Result<()> {
    // Timers fire up to 50 us late by default. A failure to set this is ignored.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let sleeper = EpollWait::create(node, signals)?;
    let (mut stops_at, mut is_contended) = (Time::NEVER, false);
    let mut configured = node.busy_poll();
    let (mut busy, mut seen) = (BusyPoll::new(busy_poll_max(node)), node.active_at());
    loop {
        let now = clock.now();
        let next = node.poll(now)?;
        let active_at = node.active_at();
        if node.busy_poll() != configured {
            configured = node.busy_poll();
            busy = BusyPoll::new(busy_poll_max(node));
        }
        if active_at > seen {
            busy.on_event(active_at.saturating_since(seen));
            seen = active_at;
        }
        each(node, now);
        if signals.is_stopping() {
            if stops_at == Time::NEVER {
                // Queued submissions are reported in the next iterations.
                node.reject_submissions();
                stops_at = now.saturating_add(drain_timeout);
                continue;
            }
            let is_over = node.is_drained() && !node.has_due_packets() && next > now;
            if is_over || now >= stops_at {
                node.fail_all();
                return Ok(());
            }
        }
        let WaitMode::Block { spin } = wait else { continue };
        let now = clock.now();
        let coalescing = node.coalescing().min(stops_at.saturating_since(now));
        if coalescing > Span::ZERO {
            // Packets that arrive meanwhile do not wake the node.
            let _ = nanosleep(&timespec(coalescing));
            continue;
        }
        let left = next.min(stops_at).saturating_since(now);
        if left == Span::ZERO {
            continue;
        }
        if now < seen + busy.budget() && !is_contended {
            // Another runnable program gets the processor. If one did, the node sleeps next instead
            // of polling.
            sched_yield();
            is_contended = clock.now().saturating_since(now) > CONTENDED_YIELD;
            continue;
        }
        is_contended = false;
        let is_spinning = node.has_due_packets() && spin > Span::ZERO;
        let sleep = if is_spinning { left.saturating_sub(spin) } else { left };
        if sleep == Span::ZERO {
            std::hint::spin_loop();
        } else if !node.apps_mut().arm() && sleeper.sleep(sleep)? == Some(WakeSource::Signals) {
            // The next iteration handles the signal.
            signals.clear_wake();
        }
    }
}

/// Returns the maximum duration of busy polling. It is zero at a real-time priority: a yield gives
/// the processor only to threads of the same priority, so it is useless there.
fn busy_poll_max<E: Endpoint, D: Datapath, A: Applications>(node: &Node<E, D, A>) -> Span {
    if is_realtime() { Span::ZERO } else { node.busy_poll() }
}

/// Returns true if this thread has a real-time priority.
#[expect(unsafe_code, reason = "a system call that no safe interface offers")]
fn is_realtime() -> bool {
    // SAFETY: it reads the policy of this thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR)
}

/// Waits for descriptors and for time.
struct EpollWait(OwnedFd);

/// A kind of descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakeSource {
    Node,
    Signals,
}

/// Maximum duration of a sleep, even if the node requests more.
const SLEEP_MAX: Span = Span::from_us(1_000_000);

impl EpollWait {
    /// Creates one for the descriptors that wake a node, and for its signals.
    fn create<E: Endpoint, D: Datapath, A: Applications>(
        node: &Node<E, D, A>,
        signals: &Signals,
    ) -> io::Result<Self> {
        let sleeper = Self::new()?;
        for fd in node.datapath().wakers().into_iter().chain(node.apps().wakers()) {
            sleeper.add(fd, WakeSource::Node)?;
        }
        sleeper.add(signals.0.event.as_fd(), WakeSource::Signals)?;
        Ok(sleeper)
    }

    fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    fn add(&self, fd: BorrowedFd<'_>, waker: WakeSource) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(waker == WakeSource::Signals));
        Ok(epoll::add(&self.0, fd, data, epoll::EventFlags::IN)?)
    }

    /// Sleeps; returns one of the descriptors that have woken it.
    fn sleep(&self, span: Span) -> io::Result<Option<WakeSource>> {
        let mut events = [MaybeUninit::uninit(); 1];
        let timeout = timespec(span.min(SLEEP_MAX));
        match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            Ok((woken, _)) => Ok(woken.first().map(|event| match event.data.u64() {
                0 => WakeSource::Node,
                _ => WakeSource::Signals,
            })),
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockSource;

    #[test]
    fn short_sleeps_are_not_rounded_up_to_milliseconds() {
        let clock = Clock::start(ClockSource::Monotonic).unwrap();
        let sleeper = EpollWait::new().unwrap();
        let sleep = |_| {
            let before = clock.now();
            sleeper.sleep(Span::from_us(100)).unwrap();
            clock.now().saturating_since(before)
        };
        let shortest = (0..100).map(sleep).min().unwrap();
        assert!(Span::from_us(100) <= shortest && shortest < Span::from_us(900), "{shortest:?}");
    }
}
