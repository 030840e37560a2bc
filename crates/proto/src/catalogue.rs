//! The transports of this repository: the one list.
//!
//! A transport is a module of this crate, a line here, and `docs/protocols/<name>.md`. The keys of
//! plans, the simulator, hosts, captures, benchmarks, fuzzing, the Wireshark table, the Python
//! classes and the tables of the documentation follow from the list. A crate outside this
//! repository registers its own with `Registry::with`.

use crate::cosy::CosyFamily;
use crate::dcpim::DcpimFamily;
use crate::fastpass::FastpassFamily;
use crate::pfabric::PfabricFamily;
use crate::phost::PhostFamily;
use crate::transport::Transport;

/// Something that is done with each transport of a catalogue. The type is known inside, so that
/// what is done is compiled for each.
pub trait Visitor {
    /// One transport.
    fn transport<T: Transport>(&mut self);

    /// Two transports on one network, `A` in higher classes than `B`.
    fn beside<A: Transport, B: Transport>(&mut self) {}
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
        visitor.transport::<DcpimFamily>();
        visitor.transport::<PhostFamily>();
        visitor.transport::<PfabricFamily>();
        visitor.transport::<FastpassFamily>();
        visitor.transport::<CosyFamily>();
        visitor.beside::<CosyFamily, DcpimFamily>();
        visitor.beside::<CosyFamily, PhostFamily>();
    }
}

/// Something that is done with one transport.
pub trait Action {
    /// What comes of it.
    type Output;

    /// Does it. The type is known inside.
    fn run<T: Transport>(self) -> Self::Output;
}

/// Does something with the transport of `C` that is called `name`; `None` if there is none.
pub fn by_name<C: Catalogue, A: Action>(name: &str, action: A) -> Option<A::Output> {
    struct ByName<'a, A: Action> {
        name: &'a str,
        action: Option<A>,
        output: Option<A::Output>,
    }

    impl<A: Action> Visitor for ByName<'_, A> {
        fn transport<T: Transport>(&mut self) {
            if T::NAME == self.name
                && let Some(action) = self.action.take()
            {
                self.output = Some(action.run::<T>());
            }
        }
    }

    let mut found = ByName { name, action: Some(action), output: None };
    C::visit(&mut found);
    found.output
}

/// The names of the transports of `C`.
pub fn names<C: Catalogue>() -> Vec<&'static str> {
    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl Visitor for Names {
        fn transport<T: Transport>(&mut self) {
            self.0.push(T::NAME);
        }
    }

    let mut names = Names::default();
    C::visit(&mut names);
    names.0
}
