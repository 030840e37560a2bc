//! The protocols: one folder each, one state machine each.
//!
//! A protocol is independent of drivers. It implements [`Endpoint`](rampmeter_types::Endpoint) and
//! is run by the simulator, by hosts and by the fault checker alike.

pub mod capton;
pub mod catalogue;
pub mod central;
pub mod coexistence;
pub mod cosy;
pub mod dcpim;
pub mod fastpass;
pub mod fastpod;
mod formats;
pub mod homa;
pub mod hpcc;
pub mod hyline;
pub mod ideal;
pub mod keys;
pub mod mixed;
pub mod ndp;
pub mod pfabric;
pub mod phost;
pub mod pias;
pub mod registered;
pub mod sird;
pub mod tcp;
#[cfg(test)]
mod test_packet;
pub mod toolkit;

pub use catalogue::{Builtin, Catalogue, HostCatalogue, Visitor};
pub use formats::formats;
pub use keys::{BadKey, Keys};
pub use registered::{RegisteredTransport, TransportRules};
pub use toolkit::{Padding, Segmentation};
