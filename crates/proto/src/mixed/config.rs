//! Parameters of several transports in one network.

use std::sync::Arc;

use rampmeter_types::fabric::Spray;
use rampmeter_types::{NodeId, Queueing, Rng, SwitchProgram, Time};

use super::erased::{AnyHost, ErasedEndpoint};
use super::header::{MixedHeader, longest_header};
use crate::keys::BadKey;
use crate::registered::RegisteredTransport;

/// The transports of a network, in the order of the tenants whose messages they carry.
#[derive(Clone, Debug)]
pub struct MixedConfig {
    /// Transports, at least one.
    pub members: Vec<MemberTransport>,
}

/// Creates the endpoint of one host.
type EndpointFactory = Arc<dyn Fn(NodeId, Rng, Time) -> Box<dyn AnyHost> + Send + Sync>;

/// One transport of a network of several, configured for hosts of one rate.
#[derive(Clone)]
pub struct MemberTransport {
    pub(super) make: EndpointFactory,
    /// Path choice of its packets; that of the fabric if `None`.
    pub spray: Option<Spray>,
    /// Number that is added to the classes of its packets.
    pub class_offset: u8,
}

impl std::fmt::Debug for MemberTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spray, class_offset, .. } = self;
        f.debug_struct("MemberTransport")
            .field("spray", spray)
            .field("class_offset", class_offset)
            .finish_non_exhaustive()
    }
}

impl MemberTransport {
    /// Returns transport `T` with parameters `config` as the member with this number.
    pub fn new<T: RegisteredTransport>(
        number: u8,
        config: Arc<T::Config>,
        spray: Option<Spray>,
        class_offset: u8,
    ) -> Self {
        let make: EndpointFactory = Arc::new(move |node, rng, now| {
            Box::new(ErasedEndpoint::<T>::new(number, Arc::clone(&config), node, rng, now))
        });
        Self { make, spray, class_offset }
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
