//! The event engine: pending events in order, and the pool of packets.

pub(crate) mod event;
mod handle;
mod key;
mod pool;
mod prefetch;
mod ranks;
mod wheel;

pub use handle::Handle;
pub(crate) use handle::NIL;
pub use key::EventKey;
pub(crate) use key::EventLimit;
pub(crate) use pool::Links;
pub use pool::PacketPool;
pub(crate) use pool::PacketTimes;
pub(crate) use prefetch::prefetch;
pub use wheel::Wheel;
