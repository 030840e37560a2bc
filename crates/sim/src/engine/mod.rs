//! The event engine: pending events in order, and the pool of packets.

pub(crate) mod event;
mod pool;
mod ranks;
mod wheel;

pub use pool::{Handle, PacketPool};
pub(crate) use pool::{Links, NIL};
pub use wheel::{Key, Wheel};
