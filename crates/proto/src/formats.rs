//! The packets of every transport, for users of all of them: tests, fuzzing, sample captures, and
//! the tables of the dissector and the documents.

use rampmeter_core::wire::Wire;

use crate::catalogue::{Catalogue, Visitor};
use crate::transport::Transport;

/// Returns the packets of every transport of `C`.
pub fn formats<C: Catalogue>() -> Vec<Wire> {
    #[derive(Default)]
    struct Wires(Vec<Wire>);

    impl Visitor for Wires {
        fn transport<T: Transport>(&mut self) {
            self.0.push(Wire::describe::<T::Header>(T::WIRE, T::NAME, T::TITLE));
        }
    }

    let mut wires = Wires::default();
    C::visit(&mut wires);
    wires.0
}
