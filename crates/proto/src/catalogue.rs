//! The transports of this repository: the one list.
//!
//! A transport is a module of this crate, a line here, and `docs/protocols/<name>.md`. The keys of
//! plans, the simulator, hosts, captures, benchmarks and fuzzing follow from the list. So do the
//! Wireshark table, the Python classes and the tables of the documentation. A crate outside this
//! repository registers its own with `Registry::with`.

use std::marker::PhantomData;

use crate::capton::CaptonTransport;
use crate::cosy::CosyTransport;
use crate::dcpim::DcpimTransport;
use crate::fastpass::FastpassTransport;
use crate::fastpod::FastpodTransport;
use crate::homa::{HomaAeolusTransport, HomaTransport};
use crate::hpcc::HpccTransport;
use crate::hyline::HylineTransport;
use crate::keys::BadKey;
use crate::ndp::NdpTransport;
use crate::pfabric::PfabricTransport;
use crate::phost::PhostTransport;
use crate::pias::PiasTransport;
use crate::registered::RegisteredTransport;
use crate::sird::SirdTransport;
use crate::tcp::{DctcpTransport, TcpTransport};

/// Something that is done with each transport of a catalogue. The type is known inside, so that
/// code is compiled for each.
pub trait Visitor {
    /// One transport.
    fn transport<T: RegisteredTransport>(&mut self);

    /// Two transports on one network, `A` in higher classes than `B`.
    fn coexisting<A: RegisteredTransport, B: RegisteredTransport>(&mut self) {}
}

/// A list of transports.
pub trait Catalogue {
    /// Visits each, in the order of the documentation.
    fn visit(visitor: &mut impl Visitor);
}

/// The transports of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Builtin;

impl Catalogue for Builtin {
    fn visit(visitor: &mut impl Visitor) {
        visitor.transport::<DcpimTransport>();
        visitor.transport::<PhostTransport>();
        visitor.transport::<PfabricTransport>();
        visitor.transport::<FastpassTransport>();
        visitor.transport::<CosyTransport>();
        visitor.transport::<TcpTransport>();
        visitor.transport::<DctcpTransport>();
        visitor.transport::<PiasTransport>();
        visitor.transport::<CaptonTransport>();
        visitor.transport::<HylineTransport>();
        visitor.transport::<FastpodTransport>();
        visitor.transport::<NdpTransport>();
        visitor.transport::<HomaTransport>();
        visitor.transport::<HomaAeolusTransport>();
        visitor.transport::<SirdTransport>();
        visitor.transport::<HpccTransport>();
        visitor.coexisting::<CosyTransport, DcpimTransport>();
        visitor.coexisting::<CosyTransport, PhostTransport>();
    }
}

/// The transports of `C` that run between real hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostCatalogue<C>(PhantomData<C>);

impl<C: Catalogue> Catalogue for HostCatalogue<C> {
    fn visit(visitor: &mut impl Visitor) {
        struct SingleTransport<'a, V>(&'a mut V);

        impl<V: Visitor> Visitor for SingleTransport<'_, V> {
            fn transport<T: RegisteredTransport>(&mut self) {
                if T::ON_HOSTS {
                    self.0.transport::<T>();
                }
            }

            fn coexisting<A: RegisteredTransport, B: RegisteredTransport>(&mut self) {
                if A::ON_HOSTS && B::ON_HOSTS {
                    self.0.coexisting::<A, B>();
                }
            }
        }

        C::visit(&mut SingleTransport(visitor));
    }
}

/// Something that is done with one transport, or with two on one network.
pub trait Action {
    /// Result of the action.
    type Output;

    /// Does it. The type is known inside.
    fn run<T: RegisteredTransport>(self) -> Self::Output;

    /// Does it with `U` in higher classes than `L`.
    fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(self) -> Self::Output;
}

/// Does something with the transport of `C` that is called `name`, and with the one called `lower`
/// in lower classes if that is given.
///
/// # Errors
/// A name that no transport has, or of one that does not run there.
pub fn by_name<C: Catalogue, A: Action>(
    name: &str,
    lower: Option<&str>,
    action: A,
) -> Result<A::Output, BadKey> {
    struct ByName<'a, A: Action> {
        name: &'a str,
        lower: Option<&'a str>,
        action: Option<A>,
        output: Option<A::Output>,
    }

    impl<A: Action> Visitor for ByName<'_, A> {
        fn transport<T: RegisteredTransport>(&mut self) {
            if (T::NAME, None) == (self.name, self.lower)
                && let Some(action) = self.action.take()
            {
                self.output = Some(action.run::<T>());
            }
        }

        fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(&mut self) {
            if (U::NAME, Some(L::NAME)) == (self.name, self.lower)
                && let Some(action) = self.action.take()
            {
                self.output = Some(action.coexisting::<U, L>());
            }
        }
    }

    let mut found = ByName { name, lower, action: Some(action), output: None };
    C::visit(&mut found);
    found.output.ok_or_else(|| unknown(name, lower, &names::<C>(), &lowers::<C>(name)))
}

/// Returns the error for a transport and one in lower classes of which there is no such pair:
/// `names` are those of all transports, `lowers` those that run below the first.
pub fn unknown(name: &str, lower: Option<&str>, names: &[&str], lowers: &[&str]) -> BadKey {
    match lower {
        Some(lower) if names.contains(&name) && lowers.is_empty() => {
            BadKey::new("best-effort", format!("no such key for {name}"), lower)
        }
        Some(lower) if names.contains(&name) => {
            BadKey::new("best-effort.name", lowers.join(" or "), format!("{lower:?}"))
        }
        Some(_) | None => BadKey::unlisted("name", names, name, format!("{name:?}")),
    }
}

/// Returns the names of the transports of `C` that may run in lower classes than `name`.
fn lowers<C: Catalogue>(name: &str) -> Vec<&'static str> {
    struct LowerTransports<'a>(&'a str, Vec<&'static str>);

    impl Visitor for LowerTransports<'_> {
        fn transport<T: RegisteredTransport>(&mut self) {}

        fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(&mut self) {
            if U::NAME == self.0 {
                self.1.push(L::NAME);
            }
        }
    }

    let mut lowers = LowerTransports(name, Vec::new());
    C::visit(&mut lowers);
    lowers.1
}

/// Returns the names of the transports of `C`.
pub fn names<C: Catalogue>() -> Vec<&'static str> {
    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl Visitor for Names {
        fn transport<T: RegisteredTransport>(&mut self) {
            self.0.push(T::NAME);
        }
    }

    let mut names = Names::default();
    C::visit(&mut names);
    names.0
}
