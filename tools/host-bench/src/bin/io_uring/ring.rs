//! A round through io_uring.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::{JOINED_MAX, LEN, Pair, ROUND, Round, packets};

/// Memory from which packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A copy that the system makes.
    Copied,
    /// Registered memory. The system reports when it is free again.
    Registered,
}

/// Number of buffers for packets, a power of two.
const BUFFERS: u16 = 256;
const GROUP: u16 = 7;
const TX: Fixed = Fixed(0);
const RX: Fixed = Fixed(1);
/// User data of completions.
const RECEIVED: u64 = 1;
const SENT: u64 = 2;
/// Maximum number of waits in a round, since a lost packet never arrives.
const WAITS: usize = 50;

/// Page of the entries of a ring of buffers.
#[repr(C, align(4096))]
struct Page([u8; 4_096]);

/// Buffers that the system fills with packets.
struct Buffers {
    page: Box<Page>,
    memory: Vec<u8>,
    size: usize,
    tail: u16,
}

impl Buffers {
    fn new(size: usize) -> Self {
        let memory = vec![0; usize::from(BUFFERS) * size];
        Self { page: Box::new(Page([0; 4_096])), memory, size, tail: 0 }
    }

    fn entries(&mut self) -> *mut BufRingEntry {
        self.page.0.as_mut_ptr().cast()
    }

    /// Returns a buffer to the system.
    fn give(&mut self, number: u16) {
        let place = usize::from(self.tail % BUFFERS);
        let start = &raw const self.memory[usize::from(number) * self.size];
        self.tail = self.tail.wrapping_add(1);
        let (tail, size, entries) = (self.tail, self.size as u32, self.entries());
        // SAFETY: the page has space for all entries, and the buffer lives as long as the ring. The
        // system reads the entry after the tail.
        unsafe {
            let entry = &mut *entries.add(place);
            entry.set_addr(start as u64);
            entry.set_len(size);
            entry.set_bid(number);
            let shared = BufRingEntry::tail(entries).cast::<AtomicU16>();
            (*shared).store(tail, Ordering::Release);
        }
    }
}

/// Queues an operation.
fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    // SAFETY: the memory that it names lives as long as the ring.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)
}

pub(crate) fn round(pair: Pair, from: Memory) -> io::Result<Round> {
    let (n, bytes) = (pair.sends(), pair.bytes());
    let mut data = vec![1_u8; ROUND * LEN];
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(1_024)
        .build(256)?;
    let mut buffers = Buffers::new(if pair.run > 1 { JOINED_MAX } else { 2_048 });
    let memory = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: the memory lives as long as the ring.
    unsafe {
        ring.submitter().register_buffers(&[memory])?;
        let entries = buffers.entries() as u64;
        ring.submitter().register_buf_ring_with_flags(entries, BUFFERS, GROUP, 0)?;
    }
    ring.submitter().register_files(&[pair.tx.as_raw_fd(), pair.rx.as_raw_fd()])?;
    (0..BUFFERS).for_each(|number| buffers.give(number));
    let receive = opcode::RecvMulti::new(RX, GROUP).build().user_data(RECEIVED);
    let mut is_armed = false;
    Ok(Box::new(move || {
        // The sockets live as long as the ring.
        let _ = &pair;
        for part in data.chunks(bytes) {
            let (start, len) = (part.as_ptr(), bytes as u32);
            let send = match from {
                Memory::Copied => opcode::Send::new(TX, start, len).build(),
                Memory::Registered => {
                    opcode::SendZc::new(TX, start, len).buf_index(Some(0)).build()
                }
            };
            push(&mut ring, &send.user_data(SENT))?;
        }
        let mut left = n * if from == Memory::Registered { 2 } else { 1 };
        let (mut arrived, mut wanted) = (0, n);
        for _ in 0..WAITS {
            if !is_armed {
                push(&mut ring, &receive)?;
                is_armed = true;
            }
            ring.submit_and_wait(wanted)?;
            wanted = 1;
            let completions: Vec<cqueue::Entry> = ring.completion().collect();
            for completion in completions {
                let (result, flags) = (completion.result(), completion.flags());
                if completion.user_data() == SENT {
                    left -= 1;
                    if result < 0 && !cqueue::notif(flags) {
                        return Err(io::Error::from_raw_os_error(-result));
                    }
                    continue;
                }
                is_armed &= cqueue::more(flags);
                if let Some(number) = cqueue::buffer_select(flags) {
                    arrived += packets(result.max(0) as usize);
                    buffers.give(number);
                }
            }
            if left == 0 && arrived >= ROUND {
                break;
            }
        }
        Ok(arrived)
    }))
}
