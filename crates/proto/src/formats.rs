//! The packets of every transport, for users of all of them: tests, fuzzing, sample captures, and
//! the tables of the dissector and the documents.

use rampmeter_types::wire::WireFormat;

use crate::catalogue::{Catalogue, Visitor};
use crate::registered::RegisteredTransport;

/// Returns the packets of every transport of `C`.
pub fn formats<C: Catalogue>() -> Vec<WireFormat> {
    #[derive(Default)]
    struct Wires(Vec<WireFormat>);

    impl Visitor for Wires {
        fn transport<T: RegisteredTransport>(&mut self) {
            self.0.push(WireFormat::describe::<T::Header>(T::WIRE, T::NAME, T::TITLE));
        }
    }

    let mut wires = Wires::default();
    C::visit(&mut wires);
    wires.0
}
