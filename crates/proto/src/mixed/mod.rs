//! Several transports in one network: each host runs an endpoint of every one, and each message
//! belongs to the transport of its tenant.
//!
//! The types of the transports are erased, so that any number of them can share a network: packets
//! carry the encoded headers of their transports. The transports have no arbiters and no programs
//! in switches. Hosts share their links as fair queues do. Of the transports with something to
//! send, the next is the one that has sent the fewest bytes since all of them were idle.

mod config;
mod erased;
mod header;
mod host;

pub use config::{MemberTransport, MixedConfig};
pub use header::MixedHeader;
pub use host::MixedHost;

use rampmeter_types::ForwardOnly;

use crate::toolkit::transport;

transport! {
    /// Several transports in one network.
    pub struct MixedTransports {
        const NAME = "mixed";
        type Config = MixedConfig;
        type Header = MixedHeader;
        type Host = MixedHost;
        type SwitchProgram = ForwardOnly;
    }
}

#[cfg(test)]
mod tests;
