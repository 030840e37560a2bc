//! The event engine: what happens next, and where packets live meanwhile.

mod pool;
mod wheel;

pub use pool::{Handle, PacketPool};
pub(crate) use pool::{Links, NIL};
pub use wheel::{Key, Wheel};
