//! The loop that runs a node on a real clock.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rampmeter_core::{Endpoint, Span, Time};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::thread::{nanosleep, sched_yield};

use crate::app::Applications;
use crate::busy::BusyPoll;
use crate::clock::{Clock, timespec};
use crate::datapath::Datapath;
use crate::node::Node;

/// How a node waits for the next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It sleeps, but for the last so long before a packet that waits for its pace.
    Block {
        /// At least as long as a timer of the system is late; zero never to spin.
        spin: Span,
    },
    /// It never sleeps: the lowest latency, for a whole core.
    Poll,
}

/// How a running node is told to stop, from other threads and from signal handlers.
#[derive(Clone, Debug)]
pub struct Signals(Arc<Told>);

#[derive(Debug)]
struct Told {
    stop: AtomicBool,
    reload: AtomicBool,
    event: OwnedFd,
}

impl Signals {
    /// Nothing has been said.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (stop, reload) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self(Arc::new(Told { stop, reload, event })))
    }

    /// Tells the node to finish what is under way, and to stop.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Tells the owner of the node to read its configuration again.
    pub fn reload(&self) {
        self.0.reload.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Whether the owner has been told to, since it last asked.
    pub fn take_reload(&self) -> bool {
        self.0.reload.swap(false, Ordering::SeqCst)
    }

    /// A wake-up that has been taken must not wake the node again.
    fn quiet(&self) {
        let _ = rustix::io::read(&self.0.event, &mut [0u8; 8]);
    }

    /// Wakes the node, so that `each` of [`drive()`] is called soon.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
    }

    /// Whether it has been told.
    pub fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::SeqCst)
    }
}

/// A yield of the processor takes longer only where others have work for it.
const CROWDED: Span = Span::from_us(20);

/// Runs the node until `signals` says stop, and then for at most `grace` until all it sends is
/// over. What is not by then is reported as failed. `each` is called after every turn, and may read
/// the node's state.
///
/// # Errors
/// Those of the datapath and of the system's calls for waiting.
pub fn drive<E: Endpoint, D: Datapath, A: Applications>(
    node: &mut Node<E, D, A>,
    clock: &Clock,
    wait: Wait,
    signals: &Signals,
    grace: Span,
    mut each: impl FnMut(&mut Node<E, D, A>, Time),
) -> io::Result<()> {
    // Timers fire up to 50 us late by default. What cannot be set is done without.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let sleeper = Sleeper::new()?;
    for fd in node.datapath().wakers().into_iter().chain(node.apps().wakers()) {
        sleeper.add(fd, Waker::Node)?;
    }
    sleeper.add(signals.0.event.as_fd(), Waker::Signals)?;
    let (mut stops_at, mut is_crowded) = (Time::NEVER, false);
    // Where others of this priority alone would get the processor, offering it is no use.
    let most = |node: &Node<E, D, A>| if is_realtime() { Span::ZERO } else { node.busy_poll() };
    let mut configured = node.busy_poll();
    let (mut busy, mut seen) = (BusyPoll::new(most(node)), node.active_at());
    loop {
        let now = clock.now();
        let next = node.turn(now)?;
        let active_at = node.active_at();
        if node.busy_poll() != configured {
            configured = node.busy_poll();
            busy = BusyPoll::new(most(node));
        }
        if active_at > seen {
            busy.on_event(active_at.saturating_since(seen));
            seen = active_at;
        }
        each(node, now);
        if signals.is_stopping() {
            if stops_at == Time::NEVER {
                // What is in the queues is reported in the turns to come.
                node.stop_taking();
                stops_at = now.saturating_add(grace);
                continue;
            }
            let is_over = node.is_drained() && !node.has_due_packets() && next > now;
            if is_over || now >= stops_at {
                node.fail_all();
                return Ok(());
            }
        }
        let Wait::Block { spin } = wait else { continue };
        let now = clock.now();
        let gather = node.gather().min(stops_at.saturating_since(now));
        if gather > Span::ZERO {
            // Packets that come meanwhile do not wake the node.
            let _ = nanosleep(&timespec(gather));
            continue;
        }
        let left = next.min(stops_at).saturating_since(now);
        if left == Span::ZERO {
            continue;
        }
        if now < seen + busy.budget() && !is_crowded {
            // Another program that wants the processor has it, and the node sleeps from then on.
            sched_yield();
            is_crowded = clock.now().saturating_since(now) > CROWDED;
            continue;
        }
        is_crowded = false;
        let is_spinning = node.has_due_packets() && spin > Span::ZERO;
        let sleep = if is_spinning { left.saturating_sub(spin) } else { left };
        if sleep == Span::ZERO {
            std::hint::spin_loop();
        } else if !node.apps_mut().arm() && sleeper.sleep(sleep)? == Some(Waker::Signals) {
            // The next turn handles the signal.
            signals.quiet();
        }
    }
}

/// Whether this thread runs before all that has no priority.
#[expect(unsafe_code, reason = "a system call that no safe interface offers")]
fn is_realtime() -> bool {
    // SAFETY: it reads the policy of this thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR)
}

/// Waits for descriptors and for time.
struct Sleeper(OwnedFd);

/// A kind of descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waker {
    Node,
    Signals,
}

/// Sleeps are no longer than this, whatever the node wants.
const SLEEP_MAX: Span = Span::from_us(1_000_000);

impl Sleeper {
    fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    fn add(&self, fd: BorrowedFd<'_>, waker: Waker) -> io::Result<()> {
        let data = epoll::EventData::new_u64(u64::from(waker == Waker::Signals));
        Ok(epoll::add(&self.0, fd, data, epoll::EventFlags::IN)?)
    }

    /// Sleeps; returns one of those that have woken it.
    fn sleep(&self, span: Span) -> io::Result<Option<Waker>> {
        let mut events = [MaybeUninit::uninit(); 1];
        let timeout = timespec(span.min(SLEEP_MAX));
        match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            Ok((woken, _)) => Ok(woken.first().map(|event| match event.data.u64() {
                0 => Waker::Node,
                _ => Waker::Signals,
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
        let sleeper = Sleeper::new().unwrap();
        let sleep = |_| {
            let before = clock.now();
            sleeper.sleep(Span::from_us(100)).unwrap();
            clock.now().saturating_since(before)
        };
        let shortest = (0..100).map(sleep).min().unwrap();
        assert!(Span::from_us(100) <= shortest && shortest < Span::from_us(900), "{shortest:?}");
    }
}
