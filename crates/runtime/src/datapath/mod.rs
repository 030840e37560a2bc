//! Datapaths: transport of packets from one node to another.

pub mod fault;
pub mod mem;
pub mod rails;
pub mod secure;
mod traits;
pub mod udp;
#[cfg(feature = "xdp")]
pub mod xdp;

pub use self::rails::Rails;
pub use self::traits::{ArrivedPacket, Counts, Datapath, RAILS_MAX, Rail, RailSet, Report, Route};
