//! Several transports in one network: each host runs an endpoint of every one, and each message
//! belongs to the transport of its tenant.
//!
//! The types of the transports are erased, so that any number of them can share a network: packets
//! carry the encoded headers of their transports. The transports have no arbiters and no programs
//! in switches. Hosts share their links as fair queues do. Of the transports with something to
//! send, the next is the one that has sent the fewest bytes since all of them were idle.

mod erased;
mod header;
mod host;

use std::sync::Arc;

use rampmeter_core::fabric::Spray;
use rampmeter_core::{Family, Hop, NoArbiter, NodeId, Passive, Queueing, Rng, SwitchFacts, Time};

pub use header::MixedHeader;
pub use host::MixedHost;

use crate::keys::BadKey;
use crate::transport::Transport;
use erased::{AnyHost, ErasedEndpoint};

/// Several transports in one network.
#[derive(Clone, Copy, Debug)]
pub struct MixedTransports;

/// The transports of a network, in the order of the tenants whose messages they carry.
#[derive(Clone, Debug)]
pub struct MixedConfig {
    /// At least one.
    pub members: Vec<Member>,
}

/// Makes the endpoint of one host.
type Make = Arc<dyn Fn(NodeId, Rng, Time) -> Box<dyn AnyHost> + Send + Sync>;

/// One of the transports, with its parameters at hosts of one rate.
#[derive(Clone)]
pub struct Member {
    make: Make,
    /// Path choice of its packets; that of the fabric if `None`.
    pub spray: Option<Spray>,
    /// Added to the classes of its packets.
    pub class: u8,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spray, class, .. } = self;
        f.debug_struct("Member").field("spray", spray).field("class", class).finish_non_exhaustive()
    }
}

impl Member {
    /// Returns transport `T` with parameters `config` as the member with this number.
    pub fn new<T: Transport>(
        number: u8,
        config: Arc<T::Config>,
        (spray, class): (Option<Spray>, u8),
    ) -> Self {
        let make: Make = Arc::new(move |node, rng, now| {
            Box::new(ErasedEndpoint::<T>::new(number, Arc::clone(&config), node, rng, now))
        });
        Self { make, spray, class }
    }

    /// Checks that transport `T` can share a network with others.
    ///
    /// # Errors
    /// `name` with the reason, if it has arbiters, programs in switches or special queues.
    pub fn check<T: Transport>() -> Result<(), BadKey> {
        let why = if T::HAS_ARBITERS {
            "an arbiter that schedules all traffic"
        } else if T::Hop::QUEUEING != Queueing::Classes {
            "switches that queue by other rules than classes"
        } else if T::Hop::ACTIVE || T::Hop::DEPARTURES || T::Hop::TIMERS {
            "a program in each switch"
        } else if header::longest::<T::Header>() > MixedHeader::ROOM {
            "headers that are too long"
        } else {
            return Ok(());
        };
        let expected = "a transport that can share the network with another";
        let got = format!("{}, which needs {why}", T::TITLE);
        Err(BadKey::new("name", expected, got))
    }
}

impl Family for MixedTransports {
    const NAME: &'static str = "mixed";
    type Config = MixedConfig;
    type Header = MixedHeader;
    type Host = MixedHost;
    type Arbiter = NoArbiter<MixedHeader, MixedConfig>;
    type Hop = Passive;

    fn hop(_config: &Arc<MixedConfig>, _switch: SwitchFacts) -> Passive {
        Passive
    }
}

#[cfg(test)]
mod tests;
