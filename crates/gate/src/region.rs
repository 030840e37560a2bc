//! Memory that an agent and a program share: settings, the addresses of hosts, and slots.
//!
//! Words have eight bytes, in the machine's byte order.
//!
//! | words | contents |
//! |---|---|
//! | 0 | magic and version |
//! | 1 | bytes of a burst that are sent at once |
//! | 2 | maximum number of bytes that the kernel accepts ahead of sending |
//! | 3 | number of addresses |
//! | 4 | number of slots |
//! | 5 | time in ns after which an unresponsive agent is ignored |
//! | 6 | iterations of the agent |
//! | from 16 on | addresses in ascending order, two words each |
//! | after them | slots of eight words |
//!
//! | word of a slot | written by | contents |
//! |---|---|---|
//! | 0 | program claims, agent frees | 1 if a connection uses it |
//! | 1 | agent | times that it was freed |
//! | 2 | program | number of the present burst |
//! | 3 | agent | the order (see [`BurstPermission`]) and the burst that it refers to |
//! | 4 | program | bytes that a call could not send yet |
//! | 5 | program | bytes written to the kernel, of all bursts |
//! | 6 | program | number of calls |
//! | 7 | program | bytes of the burst that were requested by calls before the last |

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};

use crate::memory::Memory;

const MAGIC: u64 = u64::from_le_bytes(*b"RMGATE\0\x01");
const HEAD: usize = 16;
const SLOT: usize = 8;

/// Connections of a program that may be scheduled at once; further ones are not scheduled.
pub const SLOTS: usize = 4096;

/// Maximum number of addresses in a region.
const ADDRESSES_MAX: usize = 1 << 20;

/// Settings that an agent sends to a program at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a burst that are sent at once.
    pub threshold: u64,
    /// Maximum number of bytes that the kernel accepts ahead of sending.
    pub unsent: u64,
    /// Time in ns after which an unresponsive agent is ignored.
    pub timeout_ns: u64,
}

/// Memory that an agent and a program share.
#[derive(Debug)]
pub struct Region {
    memory: Memory,
    settings: Settings,
    n_addresses: usize,
}

/// Permission of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstPermission {
    /// The burst has ended, or the agent has no state of it.
    None,
    /// Wait.
    Stop,
    /// Send at a rate in bytes a second, or as congestion control allows if there is none.
    Send(Option<u64>),
}

/// An order and the burst that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOrder {
    /// Number of the burst, modulo 65 536.
    pub burst: u16,
    /// The order.
    pub order: BurstPermission,
}

const RATE_MAX: u64 = (1 << 46) - 1;

impl BurstOrder {
    fn pack(self) -> u64 {
        let (state, rate) = match self.order {
            BurstPermission::None => (0, 0),
            BurstPermission::Stop => (1, 0),
            BurstPermission::Send(rate) => {
                (2, rate.map_or(RATE_MAX, |rate| rate.clamp(1, RATE_MAX - 1)))
            }
        };
        u64::from(self.burst) << 48 | state << 46 | rate
    }

    fn unpack(word: u64) -> Self {
        let rate = word & RATE_MAX;
        let order = match word >> 46 & 3 {
            1 => BurstPermission::Stop,
            2 => BurstPermission::Send((rate != RATE_MAX).then_some(rate)),
            _ => BurstPermission::None,
        };
        Self { burst: (word >> 48) as u16, order }
    }
}

/// Numbers that change whenever a program acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Bytes that the kernel has accepted.
    pub written_bytes: u64,
    /// Calls of the program.
    pub calls: u64,
}

/// State that a connection and its agent share.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a>(&'a [AtomicU64]);

impl Region {
    /// Makes memory for a program whose peers have `addresses`, and the file that the program maps.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(settings: Settings, addresses: &[IpAddr]) -> io::Result<(Self, OwnedFd)> {
        let mut sorted: Vec<[u8; 16]> = addresses.iter().map(|&ip| bytes_of(ip)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let words = HEAD + sorted.len() * 2 + SLOTS * SLOT;
        let file = memfd_create("capton", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, words as u64 * 8)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = Memory::map(file.as_fd(), words)?;
        let Settings { threshold, unsent, timeout_ns } = settings;
        let n = sorted.len() as u64;
        let head = [MAGIC, threshold, unsent, n, SLOTS as u64, timeout_ns];
        let of_address = sorted.iter().flat_map(|&bytes| halves(bytes));
        for (word, value) in memory.words().iter().zip(head) {
            word.store(value, SeqCst);
        }
        for (word, value) in memory.words().iter().skip(HEAD).zip(of_address) {
            word.store(value, SeqCst);
        }
        Ok((Self { memory, settings, n_addresses: sorted.len() }, file))
    }

    /// Maps the file of an agent.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::InvalidData`] for any other file.
    pub fn open(file: impl AsFd + Copy) -> io::Result<Self> {
        let words = fstat(file)?.st_size as usize / 8;
        if words < HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let memory = Memory::map(file.as_fd(), words)?;
        let word = |idx: usize| memory.words().get(idx).map_or(0, |word| word.load(SeqCst));
        let n_addresses = word(3) as usize;
        let is_whole = word(0) == MAGIC
            && word(4) == SLOTS as u64
            && n_addresses <= ADDRESSES_MAX
            && words == HEAD + n_addresses * 2 + SLOTS * SLOT;
        if !is_whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let settings = Settings { threshold: word(1), unsent: word(2), timeout_ns: word(5) };
        Ok(Self { memory, settings, n_addresses })
    }

    /// Returns the settings that the agent has written.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns true if flows to an address are scheduled.
    pub fn has_address(&self, ip: IpAddr) -> bool {
        let target = halves(bytes_of(ip));
        let (mut low, mut high) = (0, self.n_addresses);
        while low < high {
            let mid = low.midpoint(high);
            let at = HEAD + 2 * mid;
            let Some([a, b]) = self.memory.words().get(at..at + 2) else { return false };
            match [a.load(SeqCst), b.load(SeqCst)].cmp(&target) {
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Less => low = mid + 1,
                std::cmp::Ordering::Greater => high = mid,
            }
        }
        false
    }

    /// Counts an iteration of the agent.
    pub fn beat(&self) {
        if let Some(word) = self.memory.words().get(6) {
            word.fetch_add(1, SeqCst);
        }
    }

    /// Returns the number of iterations of the agent.
    pub fn n_iterations(&self) -> u64 {
        self.memory.words().get(6).map_or(0, |word| word.load(SeqCst))
    }

    /// Returns a slot; `None` beyond the last one.
    pub fn slot(&self, idx: u32) -> Option<Slot<'_>> {
        if idx as usize >= SLOTS {
            return None;
        }
        let at = HEAD + self.n_addresses * 2 + idx as usize * SLOT;
        self.memory.words().get(at..at + SLOT).map(Slot)
    }

    /// Claims a free slot, searched from `hint` on. Returns its number and generation.
    pub fn claim(&self, hint: u32) -> Option<(u32, u64)> {
        (0..SLOTS as u32).map(|i| hint.wrapping_add(i) % SLOTS as u32).find_map(|idx| {
            let slot = self.slot(idx)?;
            slot.0[0].compare_exchange(0, 1, SeqCst, SeqCst).ok()?;
            Some((idx, slot.generation()))
        })
    }
}

impl Slot<'_> {
    /// Returns the number of times that the slot was freed. A connection that remembers another
    /// number has lost the slot.
    pub fn generation(&self) -> u64 {
        self.0[1].load(SeqCst)
    }

    /// Frees the slot after its connection has closed.
    pub fn free(&self) {
        self.0[1].fetch_add(1, SeqCst);
        // Numbers of bursts continue, so that the next connection does not use the order of the
        // last burst.
        self.set(self.burst(), BurstPermission::None);
        self.0[0].store(0, SeqCst);
    }

    /// Returns the number of the present burst.
    pub fn burst(&self) -> u64 {
        self.0[2].load(SeqCst)
    }

    /// Begins the burst after `before`; returns false if another thread has begun it.
    pub fn begin(&self, before: u64) -> bool {
        let next = before.wrapping_add(1);
        self.0[2].compare_exchange(before, next, SeqCst, SeqCst).is_ok()
    }

    /// Returns the agent's order for the present burst; `None` if there is none yet.
    pub fn order(&self) -> Option<BurstPermission> {
        let orders = BurstOrder::unpack(self.0[3].load(SeqCst));
        (orders.burst == self.burst() as u16).then_some(orders.order)
    }

    /// Writes an order.
    pub fn set(&self, burst: u64, order: BurstPermission) {
        self.0[3].store(BurstOrder { burst: burst as u16, order }.pack(), SeqCst);
    }

    /// Returns the bytes that a call could not send yet.
    pub fn unsent_bytes(&self) -> u64 {
        self.0[4].load(SeqCst)
    }

    /// Sets the bytes that a call could not send yet.
    pub fn set_unsent_bytes(&self, bytes: u64) {
        self.0[4].store(bytes, SeqCst);
    }

    /// Counts bytes that the kernel has accepted.
    pub fn add_written(&self, bytes: u64) {
        self.0[5].fetch_add(bytes, SeqCst);
    }

    /// Returns numbers that change whenever the program acts: bytes written and calls made.
    pub fn activity(&self) -> Activity {
        Activity { written_bytes: self.0[5].load(SeqCst), calls: self.0[6].load(SeqCst) }
    }

    /// Counts a call.
    pub fn call(&self) {
        self.0[6].fetch_add(1, SeqCst);
    }

    /// Returns the bytes of the burst that were requested by calls before the last.
    pub fn age(&self) -> u64 {
        self.0[7].load(SeqCst)
    }

    /// Sets the bytes that earlier calls of the burst have requested.
    pub fn set_age(&self, bytes: u64) {
        self.0[7].store(bytes, SeqCst);
    }
}

/// Returns an address as IPv6 address.
fn bytes_of(ip: IpAddr) -> [u8; 16] {
    let v6: Ipv6Addr = match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    v6.octets()
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(bytes);
    [(whole >> 64) as u64, whole as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { threshold: 14_600, unsent: 16_384, timeout_ns: 5 };

    #[test]
    fn programs_read_the_region_that_the_agent_wrote() {
        let hosts: Vec<IpAddr> = (0..9u8).map(|i| IpAddr::from([10, 0, 9 - i, i])).collect();
        let (ours, file) = Region::create(SETTINGS, &hosts).unwrap();
        let theirs = Region::open(&file).unwrap();
        assert_eq!(theirs.settings(), SETTINGS);
        assert!(hosts.iter().all(|&ip| theirs.has_address(ip)));
        assert!(theirs.has_address("::ffff:10.0.9.0".parse().unwrap()));
        assert!(!theirs.has_address(IpAddr::from([10, 0, 9, 9])));
        let (idx, generation) = theirs.claim(7).unwrap();
        assert_eq!((idx, generation), (7, 0));
        assert_eq!(ours.claim(7).unwrap().0, 8, "a slot has one owner");
        let (slot, seen) = (theirs.slot(idx).unwrap(), ours.slot(idx).unwrap());
        assert!(slot.begin(0) && !slot.begin(0));
        assert_eq!(slot.order(), None, "the agent has not seen the burst");
        for order in [
            BurstPermission::Stop,
            BurstPermission::Send(Some(125)),
            BurstPermission::Send(None),
            BurstPermission::None,
        ] {
            seen.set(seen.burst(), order);
            assert_eq!(slot.order(), Some(order));
        }
        slot.begin(1);
        seen.free();
        assert_eq!(slot.generation(), 1);
        assert_eq!(theirs.claim(7), Some((7, 1)));
        assert_eq!(
            slot.order(),
            Some(BurstPermission::None),
            "the next connection has no burst yet"
        );
        assert!(ours.slot(SLOTS as u32).is_none());
    }

    #[test]
    fn files_that_are_no_regions_are_refused() {
        let (_, file) = Region::create(SETTINGS, &[]).unwrap();
        let alike = memfd_create("no region", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&alike, fstat(&file).unwrap().st_size as u64).unwrap();
        assert_eq!(Region::open(&alike).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let short = memfd_create("short", MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(Region::open(&short).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
