//! Queues of messages that the endpoint does not have yet.
//!
//! Design notes.
//!
//! 1. The problem: programs submit hundreds of thousands of messages at once.
//! 2. The simple way is to submit all of them to the endpoint. It fails in four ways. Endpoints
//!    send short messages in the order of submission, so that a message to another node is behind
//!    all of them. A receiver drops those beyond [`ARRIVING_MAX`](crate::NodeConfig::ARRIVING_MAX).
//!    Fastpod acknowledges 16 bits of a flow's number, which 65 536 flows of a pair exhaust.
//!    Senders that retransmit announcements of all queued messages use up the link's capacity
//!    (pHost).
//! 3. The present way: a queue for each receiver, service, program and size (within a factor of 4).
//!    The endpoint has a window of each queue, in messages and in bytes. The queues share the
//!    limits of the node. A message that ends admits the next of its queue.
//! 4. Queues are separate by service and program so that one that does not read, or that has much
//!    to send, delays no other. They are separate by size because endpoints prefer short messages,
//!    and a short one must not be behind a window of long ones.
//! 5. A window is as large as completion times allow, since processors may be slower than links. A
//!    window of messages that take hosts 200 ms delays all other messages by as much, and
//!    transports retransmit packets that are only late. So the window of a queue grows by a message
//!    with each that completes within twice the minimum completion time of the queue and
//!    [`DELAY_MAX`]. It halves, at most once per completion time, if one takes longer, and then
//!    grows by a [`GROWTH`]-th in that time.
//! 6. Hazards: a window below that of a round trip limits the rate. At most [`MESSAGES_MAX`]
//!    messages of a queue complete in a round trip. Messages to an unresponsive node would fail a
//!    window at a time. So a whole queue fails when one of its messages does and none has completed
//!    meanwhile.

use std::collections::VecDeque;

use rampmeter_types::collections::IdMap;
use rampmeter_types::{Bytes, MsgId, NodeId, Rate, Span, Time};

/// Maximum number of messages of a queue that the endpoint has: 340 000 a second with a round trip
/// of 3 ms.
const MESSAGES_MAX: u32 = 1_024;
/// Window of a new queue.
const MESSAGES_INITIAL: u32 = 128;
/// Completion time beyond twice the minimum of a queue at which its window shrinks.
const DELAY_MAX: Span = Span::from_us(5_000);
/// Completions for which a window grows by a message once it has shrunk.
const GROWTH: u32 = 16;
/// Number of messages of a queue that the endpoint may have, for any number of queues and any
/// length of messages.
const MESSAGES_MIN: u32 = 16;
/// Messages that the queues share.
const MESSAGES_SHARED: u32 = 8_192;
/// Maximum bytes of a queue that the endpoint has, as the time that they take on the node's link.
const TIME_MAX: Span = Span::from_us(10_000);
/// Time without a completion after which a queue fails with one of its messages. It is less than
/// the default time after which a message fails, and more than the pauses of hosts.
const PROGRESS_MAX: Span = Span::from_us(5_000_000);
/// Number of queues that may each have the bytes of [`TIME_MAX`]; more queues share these bytes.
const FULL_SHARES: u64 = 4;

/// Key of a queue: its messages are alike to the endpoint and to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueueKey {
    dst: NodeId,
    service: u16,
    app: u32,
    /// Logarithm of the size to the base 4.
    size_class: u8,
}

impl QueueKey {
    pub(crate) fn new(dst: NodeId, service: u16, app: u32, size: u32) -> Self {
        let size_class = (size.max(1).ilog2() / 2) as u8;
        Self { dst, service, app, size_class }
    }
}

/// Limits of what a queue may have submitted.
#[derive(Clone, Copy, Debug)]
struct WindowLimit {
    messages: u32,
    bytes: u64,
}

#[derive(Debug)]
struct SendQueue {
    /// Number of messages that the endpoint has, and their bytes.
    submitted: u32,
    submitted_bytes: u64,
    /// Messages that it does not have, oldest first. Some may have ended.
    queued: VecDeque<MsgId>,
    /// Time of the latest completion of a message, or of the first submission.
    progress_at: Time,
    /// Number of messages that the endpoint may have by the completion times.
    window: u32,
    /// Completions since the window last grew.
    n_in_time: u32,
    /// Time at which the window last shrank.
    shrunk_at: Option<Time>,
    /// Minimum completion time.
    min_time: Span,
    /// True if the queue is among those that may admit a message.
    is_ready: bool,
}

/// All queues of a node.
#[derive(Debug)]
pub(crate) struct SendQueues {
    queues: IdMap<QueueKey, SendQueue>,
    /// Queues with messages whose window may have capacity.
    ready: VecDeque<QueueKey>,
    bytes_max: u64,
}

impl SendQueues {
    pub(crate) fn new(rate: Rate) -> Self {
        let bytes_max = rate.bytes_floor(TIME_MAX).get();
        Self { queues: IdMap::default(), ready: VecDeque::new(), bytes_max }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.bytes_max = rate.bytes_floor(TIME_MAX).get();
    }

    /// Returns the limits of a queue's window.
    fn window(&self) -> WindowLimit {
        let n = self.queues.len().max(1) as u64;
        let messages = u64::from(MESSAGES_SHARED) / n;
        let messages = messages.clamp(MESSAGES_MIN.into(), MESSAGES_MAX.into()) as u32;
        WindowLimit { messages, bytes: (self.bytes_max * FULL_SHARES / n).min(self.bytes_max) }
    }

    /// Adds a message. Returns true if the endpoint may have it now.
    pub(crate) fn enter(&mut self, now: Time, key: QueueKey, msg: MsgId, size: Bytes) -> bool {
        let window = self.window();
        let queue = self.queues.entry(key).or_insert_with(|| SendQueue {
            submitted: 0,
            submitted_bytes: 0,
            queued: VecDeque::new(),
            progress_at: now,
            window: MESSAGES_INITIAL,
            n_in_time: 0,
            shrunk_at: None,
            min_time: Span::from_ps(u64::MAX),
            is_ready: false,
        });
        if queue.queued.is_empty() && queue.has_capacity(window) {
            queue.submit(size);
            return true;
        }
        queue.queued.push_back(msg);
        false
    }

    /// Handles the end of a message that the endpoint had: completed after the time `took`, or
    /// failed.
    pub(crate) fn on_end(&mut self, now: Time, key: QueueKey, size: Bytes, took: Option<Span>) {
        let Some(queue) = self.queues.get_mut(&key) else { return };
        queue.submitted = queue.submitted.saturating_sub(1);
        queue.submitted_bytes = queue.submitted_bytes.saturating_sub(size.get());
        if let Some(took) = took {
            queue.progress_at = now;
            queue.adapt(now, took);
        }
        if queue.queued.is_empty() {
            if queue.submitted == 0 {
                self.queues.remove(&key);
            }
        } else if !queue.is_ready {
            queue.is_ready = true;
            self.ready.push_back(key);
        }
    }

    /// Removes and returns a message that the endpoint may have now. `size` returns the size of a
    /// message, or `None` if it has ended.
    pub(crate) fn next(&mut self, size: impl Fn(MsgId) -> Option<Bytes>) -> Option<MsgId> {
        let window = self.window();
        while let Some(&key) = self.ready.front() {
            let Some(queue) = self.queues.get_mut(&key) else {
                self.ready.pop_front();
                continue;
            };
            while queue.has_capacity(window)
                && let Some(msg) = queue.queued.pop_front()
            {
                if let Some(size) = size(msg) {
                    queue.submit(size);
                    return Some(msg);
                }
            }
            queue.is_ready = false;
            self.ready.pop_front();
            if queue.submitted == 0 && queue.queued.is_empty() {
                self.queues.remove(&key);
            }
        }
        None
    }

    /// Handles a message whose receiver is unresponsive. Removes and returns the messages of its
    /// queue if none has completed for [`PROGRESS_MAX`].
    pub(crate) fn on_unreachable(&mut self, now: Time, key: QueueKey) -> VecDeque<MsgId> {
        let has_failed =
            |queue: &&mut SendQueue| now.saturating_since(queue.progress_at) >= PROGRESS_MAX;
        let queue = self.queues.get_mut(&key).filter(has_failed);
        queue.map(|queue| std::mem::take(&mut queue.queued)).unwrap_or_default()
    }

    /// Forgets the queues to a node. Returns the messages that the endpoint does not have, in the
    /// order of their numbers.
    pub(crate) fn forget_peer(&mut self, peer: NodeId) -> Vec<MsgId> {
        let of_peer = self.queues.extract_if(|key, _| key.dst == peer);
        let mut waiting: Vec<_> = of_peer.flat_map(|(_, queue)| queue.queued).collect();
        waiting.sort_unstable();
        waiting
    }

    /// Forgets all messages.
    pub(crate) fn clear(&mut self) {
        self.queues.clear();
        self.ready.clear();
    }
}

impl SendQueue {
    fn has_capacity(&self, limit: WindowLimit) -> bool {
        let messages = limit.messages.min(self.window);
        self.submitted < MESSAGES_MIN
            || self.submitted < messages && self.submitted_bytes < limit.bytes
    }

    /// Adapts the window to the completion time of a message.
    fn adapt(&mut self, now: Time, took: Span) {
        self.min_time = self.min_time.min(took);
        let is_late = took > self.min_time * 2 + DELAY_MAX;
        if !is_late {
            // The completion times of a queue that its window does not limit do not justify a
            // larger one.
            self.n_in_time += u32::from(!self.queued.is_empty());
            if self.n_in_time >= self.shrunk_at.map_or(1, |_| GROWTH) {
                self.window = (self.window + 1).min(MESSAGES_MAX);
                self.n_in_time = 0;
            }
        } else if self.shrunk_at.is_none_or(|at| now.saturating_since(at) >= took) {
            if self.window == MESSAGES_MIN {
                // No smaller window makes messages faster: the path or the receiver is slower now.
                self.min_time = took;
            }
            self.window = (self.window / 2).max(MESSAGES_MIN);
            (self.shrunk_at, self.n_in_time) = (Some(now), 0);
        }
    }

    fn submit(&mut self, size: Bytes) {
        self.submitted += 1;
        self.submitted_bytes += size.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_gbps(10);
    const SIZE: Bytes = Bytes::new(200);

    fn key(dst: u32) -> QueueKey {
        QueueKey::new(NodeId::new(dst), 7, 0, 200)
    }

    /// Adds `n` messages; returns the number of them that the endpoint has.
    fn enter(queues: &mut SendQueues, key: QueueKey, size: Bytes, n: u32) -> u32 {
        let is_submitted = |&msg: &u32| queues.enter(Time::ZERO, key, MsgId::new(msg), size);
        (0..n).filter(is_submitted).count() as u32
    }

    #[test]
    fn the_endpoint_has_a_window_of_each_queue() {
        let mut queues = SendQueues::new(RATE);
        assert_eq!(enter(&mut queues, key(1), SIZE, 5_000), MESSAGES_INITIAL);
        assert_eq!(enter(&mut queues, key(2), SIZE, 5_000), MESSAGES_INITIAL);
        let other_size = QueueKey::new(NodeId::new(1), 7, 0, 100_000);
        assert_eq!(enter(&mut queues, other_size, Bytes::new(100_000), 500), 125);
        let long = QueueKey::new(NodeId::new(1), 7, 0, 1 << 30);
        assert_eq!(enter(&mut queues, long, Bytes::new(1 << 30), 500), MESSAGES_MIN);
    }

    #[test]
    fn queues_share_the_capacity_of_the_endpoint() {
        let mut queues = SendQueues::new(RATE);
        let n: u32 = (0..100).map(|dst| enter(&mut queues, key(dst), SIZE, 5_000)).sum();
        assert!(n <= MESSAGES_INITIAL * 100, "{n}");
        assert_eq!(enter(&mut queues, key(200), SIZE, 5_000), MESSAGES_SHARED / 100);
        (1_000..3_000).for_each(|dst| {
            enter(&mut queues, key(dst), SIZE, 1);
        });
        assert_eq!(enter(&mut queues, key(300), SIZE, 5_000), MESSAGES_MIN);
    }

    /// Messages are admitted in order as others end, and those that have ended are skipped.
    #[test]
    fn a_message_that_ends_admits_the_next_of_its_queue() {
        let mut queues = SendQueues::new(RATE);
        enter(&mut queues, key(1), SIZE, MESSAGES_INITIAL + 6);
        assert_eq!(queues.next(|_| Some(SIZE)), None);
        queues.on_end(Time::ZERO, key(1), SIZE, None);
        let has_ended = |msg: MsgId| (msg.get() != MESSAGES_INITIAL).then_some(SIZE);
        assert_eq!(queues.next(has_ended), Some(MsgId::new(MESSAGES_INITIAL + 1)));
        assert_eq!(queues.next(has_ended), None);
        for _ in 0..2 {
            queues.on_end(Time::ZERO, key(1), SIZE, None);
        }
        assert_eq!(queues.next(has_ended), Some(MsgId::new(MESSAGES_INITIAL + 2)));
        assert_eq!(queues.next(has_ended), Some(MsgId::new(MESSAGES_INITIAL + 3)));
        while !queues.queues.is_empty() {
            queues.on_end(Time::ZERO, key(1), SIZE, None);
            while queues.next(has_ended).is_some() {}
        }
        assert!(queues.ready.is_empty());
    }

    /// A queue whose messages fail without a completion fails as a whole.
    #[test]
    fn a_queue_without_progress_fails_with_its_message() {
        let mut queues = SendQueues::new(RATE);
        let at = |ms: u64| Time::ZERO + Span::from_us(ms * 1_000);
        enter(&mut queues, key(1), SIZE, MESSAGES_INITIAL + 6);
        queues.on_end(at(5), key(1), SIZE, Some(DELAY_MAX));
        assert!(queues.on_unreachable(at(5_004), key(1)).is_empty());
        assert_eq!(queues.on_unreachable(at(5_005), key(1)).len(), 6);
        assert_eq!(queues.next(|_| Some(SIZE)), None);
    }

    #[test]
    fn the_queues_to_a_node_are_forgotten() {
        let mut queues = SendQueues::new(RATE);
        enter(&mut queues, key(1), SIZE, MESSAGES_INITIAL + 6);
        enter(&mut queues, key(2), SIZE, MESSAGES_INITIAL + 6);
        assert_eq!(queues.forget_peer(NodeId::new(1)).len(), 6);
        queues.on_end(Time::ZERO, key(1), SIZE, None);
        assert_eq!(queues.next(|_| Some(SIZE)), None);
        assert_eq!(queues.queues.len(), 1);
    }

    /// Simulates messages that take `each` one after the other, and at least `least`, while `n`
    /// wait. Returns the longest completion time of the last 10 %, and the total time.
    fn run(each: Span, least: Span, n: u32) -> (Span, Span) {
        let mut queues = SendQueues::new(RATE);
        let (mut now, mut free_at) = (Time::ZERO, Time::ZERO);
        let mut in_flight = VecDeque::new();
        let mut begin = |now: Time| {
            free_at = free_at.max(now) + each;
            (now, free_at.max(now + least))
        };
        (0..enter(&mut queues, key(1), SIZE, n)).for_each(|_| in_flight.push_back(begin(now)));
        let (mut n_ended, mut longest) = (0, Span::ZERO);
        while let Some((at, ends)) = in_flight.pop_front() {
            now = now.max(ends);
            n_ended += 1;
            let took = now.saturating_since(at);
            longest = if n_ended > n * 9 / 10 { longest.max(took) } else { longest };
            queues.on_end(now, key(1), SIZE, Some(took));
            while queues.next(|_| Some(SIZE)).is_some() {
                in_flight.push_back(begin(now));
            }
        }
        assert_eq!(n_ended, n);
        (longest, now.saturating_since(Time::ZERO))
    }

    /// Hosts that take 100 us for a message delay others by no more than the limit, and lose no
    /// time. A path with a long round trip gets the whole window.
    #[test]
    fn windows_follow_completion_times() {
        let us = Span::from_us;
        let (longest, all) = run(us(100), us(300), 20_000);
        assert!(longest <= (us(300) * 2 + DELAY_MAX) * 5 / 4, "{longest}");
        assert!(all <= us(100) * 20_010, "{all}");
        let (longest, all) = run(us(1), us(50_000), 100_000);
        assert!(longest <= us(52_000), "{longest}");
        assert!(all <= us(50_000) * (100_000 / u64::from(MESSAGES_MAX) + 12), "{all}");
    }
}
