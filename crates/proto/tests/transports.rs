//! Every transport in whole simulations with all faults.

use rampmeter_proto::Builtin;
use rampmeter_testkit::bodies::{Faults, Loss};
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!()).each_preset::<Builtin, _>(Faults).each_preset::<Builtin, _>(Loss).run();
}
