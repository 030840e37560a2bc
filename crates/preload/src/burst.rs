//! Requests of connections, and the permission to send.

use std::sync::atomic::Ordering::SeqCst;

use libc::{AF_INET, AF_INET6, TCP_NOTSENT_LOWAT};
use libc::{IPPROTO_TCP, SO_DOMAIN, SO_MAX_PACING_RATE, SO_PROTOCOL, SOL_SOCKET, c_int};
use rampmeter_gate::{BurstPermission, ConnectionAddresses, Slot, SlotNote, close_gate, gate_pair};

use crate::link::{Link, RawDescriptor, link, move_to_high_number, register_own};
use crate::table::{DescriptorKind, DescriptorState, TRACKED, entry};
use crate::{lock, sandbox, sys, watch};

/// Permission of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendPermission {
    /// Send as without this library.
    Free,
    /// Send; the rate has been set.
    Open,
    /// Wait at the gate.
    Held,
}

/// Bytes that a call requests to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendRequest {
    /// A call begins.
    New(usize),
    /// The rest of a call that has begun.
    Rest(usize),
}

impl SendRequest {
    fn bytes(self) -> u64 {
        let (Self::New(bytes) | Self::Rest(bytes)) = self;
        bytes as u64
    }
}

/// Returns the kind of a descriptor. Connections are [`DescriptorKind::Tcp`] until there is an
/// agent and they are connected.
pub(crate) fn kind(fd: c_int) -> DescriptorKind {
    if sandbox::is_on() {
        return DescriptorKind::Other;
    }
    let Some(entry) = entry(fd) else { return DescriptorKind::Other };
    let kind = entry.kind();
    if matches!(kind, DescriptorKind::Other | DescriptorKind::Scheduled) {
        return kind;
    }
    if kind == DescriptorKind::Unknown {
        let domain = sys::option::<c_int>(fd, SOL_SOCKET, SO_DOMAIN);
        let is_tcp = matches!(domain, Some(AF_INET | AF_INET6))
            && sys::option::<c_int>(fd, SOL_SOCKET, SO_PROTOCOL) == Some(IPPROTO_TCP);
        lock::start();
        if !lock::is_own_process() {
            return DescriptorKind::Other;
        }
        TRACKED.set(fd, true);
        entry.set_kind(if is_tcp { DescriptorKind::Tcp } else { DescriptorKind::Other });
        if !is_tcp {
            return DescriptorKind::Other;
        }
    }
    let Some(link) = link() else { return DescriptorKind::Tcp };
    let Some((_, remote)) = sys::addresses(fd) else { return DescriptorKind::Tcp };
    let is_scheduled = link.region.has_address(remote.ip());
    entry.set_kind(if is_scheduled { DescriptorKind::Scheduled } else { DescriptorKind::Other });
    entry.kind()
}

/// Requests permission for a call that sends on `fd`.
pub(crate) fn request_permission(fd: c_int, request: SendRequest) -> SendPermission {
    if kind(fd) != DescriptorKind::Scheduled {
        return SendPermission::Free;
    }
    let Some(entry) = entry(fd) else { return SendPermission::Free };
    let Some(link) = link() else {
        release(fd, entry);
        return SendPermission::Free;
    };
    if let Some(slot) = slot(link, entry)
        && is_burst(slot)
    {
        publish_request(entry, slot, request);
        return way(fd, entry, slot);
    }
    let Ok(held) = sys::outq(fd) else {
        forget(fd);
        return SendPermission::Free;
    };
    if held as u64 + request.bytes() <= link.region.settings().threshold {
        pace(fd, entry, None);
        watch::restore(fd);
        return SendPermission::Free;
    }
    begin(fd, entry, link, request)
}

/// Returns true if a burst is active in a slot.
fn is_burst(slot: Slot<'_>) -> bool {
    slot.order() != Some(BurstPermission::None)
}

/// Returns the slot of a connection; `None` if it has no slot of this agent, or has lost it.
fn slot<'a>(link: &'a Link, entry: &DescriptorState) -> Option<Slot<'a>> {
    let slot = link.region.slot(entry.slot.load(SeqCst))?;
    let is_ours = entry.link.load(SeqCst) == link.number
        && entry.generation.load(SeqCst) == slot.generation();
    is_ours.then_some(slot)
}

/// Writes the bytes that a call requests into the slot.
fn publish_request(entry: &DescriptorState, slot: Slot<'_>, request: SendRequest) {
    slot.call();
    let bytes = request.bytes();
    if let SendRequest::New(_) = request {
        let fresh = bytes.saturating_sub(slot.unsent_bytes());
        if fresh > 0 {
            slot.set_age(slot.age().saturating_add(entry.requested_bytes.swap(fresh, SeqCst)));
        }
    }
    slot.set_unsent_bytes(bytes);
}

/// Returns the permission that follows from the agent's order.
fn way(fd: c_int, entry: &DescriptorState, slot: Slot<'_>) -> SendPermission {
    match slot.order() {
        None | Some(BurstPermission::Stop) => SendPermission::Held,
        Some(BurstPermission::Send(rate)) => {
            pace(fd, entry, rate);
            SendPermission::Open
        }
        Some(BurstPermission::None) => {
            watch::restore(fd);
            SendPermission::Free
        }
    }
}

/// Begins a burst, and notifies the agent.
fn begin(fd: c_int, entry: &DescriptorState, link: &Link, request: SendRequest) -> SendPermission {
    let guard = lock::lock();
    let Some((slot, number)) = slot_for(fd, entry, link) else {
        drop(guard);
        release(fd, entry);
        return SendPermission::Free;
    };
    let before = slot.burst();
    let is_first = !is_burst(slot);
    if is_first {
        slot.set_age(0);
        slot.set_unsent_bytes(request.bytes());
        entry.requested_bytes.store(request.bytes(), SeqCst);
    }
    let is_told = !is_first
        || !slot.begin(before)
        || link.notify(SlotNote::BurstStarted { slot: number }, None);
    drop(guard);
    if !is_told {
        release(fd, entry);
        return SendPermission::Free;
    }
    if entry.unsent.load(SeqCst) == 0 {
        let limit = sys::option::<u32>(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT).unwrap_or(0);
        entry.unsent.store(u64::from(limit) + 1, SeqCst);
        let unsent = link.region.settings().unsent.min(u64::from(u32::MAX)) as u32;
        sys::set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent);
    }
    way(fd, entry, slot)
}

/// Returns the slot of a connection. Claims one and notifies the agent if there is none. The lock
/// must be held.
fn slot_for<'a>(fd: c_int, entry: &DescriptorState, link: &'a Link) -> Option<(Slot<'a>, u32)> {
    if let Some(slot) = slot(link, entry) {
        return Some((slot, entry.slot.load(SeqCst)));
    }
    let (local, remote) = sys::addresses(fd)?;
    watch::restore_locked(fd, entry);
    drop_gate(entry);
    let (ours, theirs) = gate_pair().ok()?;
    let (ours, theirs) = (move_to_high_number(ours), RawDescriptor::new(theirs));
    let (number, generation) = link.region.claim(fd as u32)?;
    let note = SlotNote::Connected { slot: number, tuple: ConnectionAddresses { local, remote } };
    if !link.notify(note, theirs.as_fd()) {
        return None;
    }
    entry.gate.store(register_own(ours.into_inner()?) + 1, SeqCst);
    entry.slot.store(number, SeqCst);
    entry.generation.store(generation, SeqCst);
    entry.link.store(link.number, SeqCst);
    link.region.slot(number).map(|slot| (slot, number))
}

/// Sets the rate at which the kernel sends; `None` for as fast as congestion control allows.
fn pace(fd: c_int, entry: &DescriptorState, rate: Option<u64>) {
    let next_rate = rate.map_or(0, |rate| rate.saturating_add(1));
    if entry.pacing_rate.swap(next_rate, SeqCst) != next_rate {
        sys::set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, rate.unwrap_or(u64::MAX));
    }
}

/// Restores the program's own settings of a connection that is no longer scheduled.
fn release(fd: c_int, entry: &DescriptorState) {
    pace(fd, entry, None);
    let before = entry.unsent.swap(0, SeqCst);
    if before > 0 {
        sys::set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (before - 1) as u32);
    }
    watch::restore(fd);
}

/// Closes the gate of a connection that is held. Returns the gate, or `None` if the connection is
/// not held any more.
pub(crate) fn close_held_gate(fd: c_int) -> Option<c_int> {
    let entry = entry(fd)?;
    let link = link()?;
    let slot = slot(link, entry)?;
    let is_held = || is_burst(slot) && way(fd, entry, slot) == SendPermission::Held;
    if !is_held() {
        return None;
    }
    link.check();
    crate::link::link()?;
    let gate = entry.gate.load(SeqCst) - 1;
    close(gate)?;
    // If the agent changes its order after this, it opens the gate.
    is_held().then_some(gate)
}

#[allow(unsafe_code, reason = "descriptors of this library stay open while entries have them")]
fn close(gate: c_int) -> Option<()> {
    if gate < 0 {
        return None;
    }
    // SAFETY: the descriptor is open. If another thread closes the connection meanwhile, the
    // datagram has no effect.
    close_gate(unsafe { std::os::fd::BorrowedFd::borrow_raw(gate) });
    Some(())
}

/// Checks if the agent has ended or is unresponsive.
pub(crate) fn check_agent() {
    if let Some(link) = link() {
        link.check();
    }
}

/// Returns the descriptor that hangs up when the agent ends.
pub(crate) fn agent_fd() -> Option<c_int> {
    link().map(Link::fd)
}

/// Records that the system has accepted `sent` bytes of a call, and that `rest` remain.
pub(crate) fn sent(fd: c_int, sent: usize, rest: usize) {
    if let (Some(entry), Some(link)) = (entry(fd), link())
        && let Some(slot) = slot(link, entry)
    {
        slot.add_written(sent as u64);
        slot.set_unsent_bytes(rest as u64);
    }
}

/// Closes the program's end of a gate.
fn drop_gate(entry: &DescriptorState) {
    let gate = entry.gate.swap(0, SeqCst);
    if gate > 0 {
        crate::table::OWN.set(gate - 1, false);
        sys::close(gate - 1);
    }
}

/// Clears the state of a descriptor that is closed or replaced.
pub(crate) fn forget(fd: c_int) {
    if !TRACKED.has(fd) || !lock::is_own_process() {
        return;
    }
    let Some(entry) = entry(fd) else { return };
    if entry.kind() == DescriptorKind::Other {
        entry.clear();
        TRACKED.set(fd, false);
        return;
    }
    let _guard = lock::lock();
    watch::restore_locked(fd, entry);
    if let Some(link) = link()
        && let Some(slot) = slot(link, entry)
    {
        // The rest of the failed call is not sent any more.
        slot.set_unsent_bytes(0);
        link.notify(SlotNote::Closed { slot: entry.slot.load(SeqCst) }, None);
    }
    drop_gate(entry);
    entry.clear();
    TRACKED.set(fd, false);
}
