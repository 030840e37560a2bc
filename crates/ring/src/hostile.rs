//! Applications that write arbitrary bytes into their memory. The node's side never panics and
//! never accesses memory outside the mapping, and other applications are not affected.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;

use proptest::prelude::*;
use rampmeter_runtime::app::{self, Admission};
use rampmeter_runtime::{Applications, Assembly, Clock, ClockSource, Payload, Submission};
use rampmeter_types::NodeId;

use crate::attached::{IncomingMessage, OutgoingMessage};
use crate::client::{Port, PortConfig};
use crate::entry::SubmissionEntry;
use crate::layout::Layout;
use crate::map::Memory;
use crate::server::Clients;
use crate::{AcceptorConfig, Completion, Failure, NodeGone, Outcome};

const SERVICE: u16 = 7;
const CONFIG: PortConfig = PortConfig { depth: 4, send: 8_192, receive: 8_192 };

fn clients(dir: &tempfile::TempDir) -> (Clients, PathBuf) {
    let path = dir.path().join("socket");
    let clock = Clock::start(ClockSource::Monotonic).unwrap();
    (Clients::listen(AcceptorConfig::new(&path), clock).unwrap(), path)
}

/// Attaches a port, while this thread runs the node's part.
fn attach(clients: &mut Clients, path: &std::path::Path, service: u16) -> Port {
    thread::scope(|scope| {
        let port = scope.spawn(|| Port::attach(path, service, CONFIG).unwrap());
        while !port.is_finished() {
            assert!(clients.poll_submission().is_none());
            thread::yield_now();
        }
        port.join().unwrap()
    })
}

/// Waits until the acceptor has noticed that an application has ended, or was disconnected.
fn wait_until_alone(clients: &mut Clients) {
    while clients.len() > 1 {
        clients.poll_submission();
        thread::yield_now();
    }
}

/// Action of either side.
#[derive(Clone, Debug)]
enum Step {
    /// The application sets a counter or flag.
    Control { line: usize, value: u32 },
    /// The application advances a counter.
    Advance { line: usize, by: u32 },
    /// The application writes a word of a ring.
    Word { ring: usize, at: usize, value: u64 },
    /// The node reads a submission.
    Poll,
    /// The node reports the outcome of one.
    Finish(prop::sample::Index),
    /// A message begins to arrive.
    Arrive(u32),
    /// A message is complete.
    Deliver(prop::sample::Index),
    /// A message never completes.
    Abandon(prop::sample::Index),
    /// The node is about to sleep.
    Arm,
}

fn step() -> impl Strategy<Value = Step> {
    let small = prop_oneof![0u32..6, any::<u32>()];
    let word = prop_oneof![0u64..9_000, Just(64 << 32 | 64), any::<u64>()];
    let index = any::<prop::sample::Index>;
    prop_oneof![
        1 => (0usize..9, small).prop_map(|(line, value)| Step::Control { line, value }),
        4 => (0usize..9, 1u32..3).prop_map(|(line, by)| Step::Advance { line, by }),
        4 => (0usize..3, 0usize..64, word)
            .prop_map(|(ring, at, value)| Step::Word { ring, at, value }),
        4 => Just(Step::Poll),
        2 => index().prop_map(Step::Finish),
        2 => (0u32..9_000).prop_map(Step::Arrive),
        2 => index().prop_map(Step::Deliver),
        1 => index().prop_map(Step::Abandon),
        1 => Just(Step::Arm),
    ]
}

/// The node, with the messages in flight.
#[derive(Default)]
struct Busy {
    sending: Vec<Submission<OutgoingMessage>>,
    arriving: Vec<IncomingMessage>,
}

impl Busy {
    fn take(&mut self, clients: &mut Clients) {
        let Some(submission) = clients.poll_submission() else { return };
        let mut bytes = vec![0; submission.payload.size()];
        submission.payload.copy_to(0, &mut bytes);
        self.sending.push(submission);
    }

    fn arrive(&mut self, clients: &mut Clients, size: u32) {
        if clients.admission(SERVICE, size) == Admission::Accept {
            let mut message = clients.open(SERVICE, size);
            message.write(0, &vec![1; size as usize]);
            self.arriving.push(message);
        }
    }
}

fn apply(step: Step, clients: &mut Clients, busy: &mut Busy, memory: &Memory, layout: &Layout) {
    let line = |n: usize| 4_096 + 128 * n;
    match step {
        Step::Control { line: n, value } => memory.word(line(n)).store(value, Ordering::Relaxed),
        Step::Advance { line: n, by } => {
            memory.word(line(n)).fetch_add(by, Ordering::Relaxed);
        }
        Step::Word { ring, at, value } => {
            let entries = [layout.sq, layout.cq, layout.rq][ring].entries;
            memory.long(entries + 8 * at).store(value, Ordering::Relaxed);
        }
        Step::Poll => busy.take(clients),
        Step::Finish(which) if !busy.sending.is_empty() => {
            let Submission { app, ticket, .. } =
                busy.sending.swap_remove(which.index(busy.sending.len()));
            clients.finish(app, ticket, app::Outcome::Completed);
        }
        Step::Arrive(size) => busy.arrive(clients, size),
        Step::Deliver(which) if !busy.arriving.is_empty() => {
            let message = busy.arriving.swap_remove(which.index(busy.arriving.len()));
            clients.deliver(NodeId::new(1), SERVICE, message);
        }
        Step::Abandon(which) if !busy.arriving.is_empty() => {
            drop(busy.arriving.swap_remove(which.index(busy.arriving.len())));
        }
        Step::Finish(_) | Step::Deliver(_) | Step::Abandon(_) => {}
        Step::Arm => drop(clients.arm()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn nothing_that_an_application_writes_harms_the_node(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut clients, path) = clients(&dir);
        let bystander = attach(&mut clients, &path, 1);
        let port = attach(&mut clients, &path, SERVICE);
        let (memory, layout) = port.memory();
        let mut busy = Busy::default();
        for step in steps {
            apply(step, &mut clients, &mut busy, memory, &layout);
        }
        drop(port);
        wait_until_alone(&mut clients);
        // Messages in flight outlive the application, and end without harm.
        for Submission { app, ticket, payload, .. } in busy.sending.drain(..) {
            payload.copy_to(0, &mut vec![0; payload.size()]);
            clients.finish(app, ticket, app::Outcome::Completed);
        }
        for message in busy.arriving.drain(..) {
            clients.deliver(NodeId::new(1), SERVICE, message);
        }
        let ticket = bystander.submit(NodeId::new(1), 1, b"unharmed").unwrap().ticket;
        // Entries that are still in the application's ring are read first: at most one more than
        // its depth.
        let mut submissions = std::iter::from_fn(|| clients.poll_submission()).take(6);
        let is_its = |submission: &Submission<OutgoingMessage>| {
            let mut bytes = vec![0; submission.payload.size()];
            submission.payload.copy_to(0, &mut bytes);
            submission.ticket == ticket && bytes == b"unharmed"
        };
        prop_assert!(submissions.any(|submission| is_its(&submission)));
    }
}

/// Violates the protocol in one way. Returns true if the node has disconnected the application.
fn is_sent_away(offence: impl FnOnce(&mut Clients, &Memory, &Layout)) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let (mut clients, path) = clients(&dir);
    let _bystander = attach(&mut clients, &path, 1);
    let port = attach(&mut clients, &path, SERVICE);
    let ticket = port.submit(NodeId::new(1), 1, b"lost").unwrap().ticket;
    let under_way = clients.poll_submission().unwrap();
    let (memory, layout) = port.memory();
    offence(&mut clients, memory, &layout);
    while clients.poll_submission().is_some() {}
    let gone = port.wait(Some(std::time::Duration::from_millis(500)));
    match gone {
        Ok(Some(Completion::Finished { ticket: failed, outcome })) => {
            assert_eq!((failed, outcome), (ticket, Outcome::Failed(Failure::NodeGone)));
            assert!(matches!(port.wait(None), Err(NodeGone)));
            wait_until_alone(&mut clients);
            assert_eq!(clients.admission(SERVICE, 1), Admission::Absent);
            clients.finish(under_way.app, under_way.ticket, app::Outcome::Completed);
            attach(&mut clients, &path, SERVICE);
            true
        }
        Ok(None) => false,
        other => panic!("{other:?}"),
    }
}

fn submit(memory: &Memory, layout: &Layout, n: u32, submit: SubmissionEntry) {
    for (word, value) in submit.encode().into_iter().enumerate() {
        let at = layout.sq.entries + (n as usize % 4) * 64 + 8 * word;
        memory.long(at).store(value, Ordering::Relaxed);
    }
    memory.word(layout.sq.tail).store(n + 1, Ordering::Release);
}

const FINE: SubmissionEntry = SubmissionEntry {
    ticket: 1,
    offset: 0,
    size: 64,
    dst: 1,
    service: 1,
    tenant: 0,
    deadline_ns: u64::MAX,
};

#[test]
fn each_offence_ends_the_application_that_commits_it() {
    assert!(!is_sent_away(|_, _, _| ()), "without an offence it stays");
    assert!(is_sent_away(|_, memory, layout| {
        memory.word(layout.sq.tail).store(100, Ordering::Relaxed);
    }));
    assert!(is_sent_away(|_, memory, layout| {
        submit(memory, layout, 1, SubmissionEntry { offset: 8_192, size: 1, ..FINE });
    }));
    assert!(is_sent_away(|_, memory, layout| {
        submit(memory, layout, 1, SubmissionEntry { offset: u64::MAX, ..FINE });
    }));
    assert!(is_sent_away(|clients, memory, layout| {
        let all: Vec<_> = (1..5)
            .filter_map(|n| {
                submit(memory, layout, n, FINE);
                clients.poll_submission()
            })
            .collect();
        assert_eq!(all.len(), 3, "one more than the depth of four is too many");
    }));
    assert!(is_sent_away(|clients, memory, layout| {
        memory.long(layout.rq.entries).store(64, Ordering::Relaxed);
        memory.word(layout.rq.tail).store(1, Ordering::Release);
        assert_eq!(clients.admission(SERVICE, 1), Admission::Refuse);
    }));
    assert!(is_sent_away(|clients, memory, layout| {
        // The ring is full according to the application's read counter.
        memory.word(layout.cq.head).store(0x8000_0000, Ordering::Relaxed);
        for n in 1..=layout.cq.capacity + 1 {
            submit(memory, layout, n, SubmissionEntry { ticket: 1_000, ..FINE });
            let Submission { app, ticket, .. } = clients.poll_submission().unwrap();
            clients.finish(app, ticket, app::Outcome::Completed);
        }
        submit(memory, layout, layout.cq.capacity + 2, FINE);
        assert!(clients.poll_submission().is_none());
    }));
}

/// The doorbell belongs to an application. It cannot keep the node awake after the application has
/// ended, nor block the node before that.
#[test]
fn a_doorbell_is_removed_when_its_owner_exits() {
    let dir = tempfile::tempdir().unwrap();
    let (mut clients, path) = clients(&dir);
    let _bystander = attach(&mut clients, &path, 1);
    let port = attach(&mut clients, &path, SERVICE);
    let doorbell: OwnedFd = port.doorbell().try_clone_to_owned().unwrap();
    drop(port);
    wait_until_alone(&mut clients);
    assert!(!clients.arm());
    rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
    let waker = clients.wakers()[0];
    let mut polled = [rustix::event::PollFd::new(&waker, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec::default();
    assert_eq!(rustix::event::poll(&mut polled, Some(&now)), Ok(0));
}
