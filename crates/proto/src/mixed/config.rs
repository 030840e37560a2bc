//! Parameters of several transports in one network.

use std::sync::Arc;

use rampmeter_core::fabric::Spray;
use rampmeter_core::{NodeId, Queueing, Rng, SwitchProgram, Time};

use super::erased::{AnyHost, ErasedEndpoint};
use super::header::{MixedHeader, longest_header};
use crate::keys::BadKey;
use crate::registered::RegisteredTransport;

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
    pub(super) make: Make,
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
    pub fn new<T: RegisteredTransport>(
        number: u8,
        config: Arc<T::Config>,
        spray: Option<Spray>,
        class: u8,
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
    pub fn check<T: RegisteredTransport>() -> Result<(), BadKey> {
        let why = if T::HAS_ARBITERS {
            "an arbiter that schedules all traffic"
        } else if T::SwitchProgram::QUEUEING != Queueing::Classes {
            "switches that queue by other rules than classes"
        } else if T::SwitchProgram::HANDLES_FORWARD
            || T::SwitchProgram::HANDLES_DEPART
            || T::SwitchProgram::HAS_TIMERS
        {
            "a program in each switch"
        } else if longest_header::<T::Header>() > MixedHeader::LEN_MAX {
            "headers that are too long"
        } else {
            return Ok(());
        };
        let expected = "a transport that can share the network with another";
        let got = format!("{}, which needs {why}", T::TITLE);
        Err(BadKey::new("name", expected, got))
    }
}
