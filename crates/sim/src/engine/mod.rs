//! The event engine: what happens next, and where packets live meanwhile.

pub(crate) mod event;
mod pool;
mod ranks;
mod wheel;

pub use pool::{Handle, PacketPool};
pub(crate) use pool::{Links, NIL};
pub use wheel::{Key, Wheel};
