//! Places of packets in their pool.

/// A packet's place in the pool.
pub type Handle = u32;

/// No packet.
pub(crate) const NIL: Handle = u32::MAX;
/// Bits of a handle in the code of an event.
pub(crate) const HANDLE_BITS: u32 = 26;
/// The first handle that no packet may have.
pub(crate) const HANDLES_END: usize = 1 << HANDLE_BITS;
