//! Every transport and preset in whole simulations. They have all faults, a high load, reordered
//! control packets, cancelled messages, or a limit on the messages in flight to a host. One
//! program, since each compiles every transport.

use rampmeter_proto::Builtin;
use rampmeter_testkit::bodies::{Cancel, Faults, Limit, Loss};
use rampmeter_testkit::liveness::Liveness;
use rampmeter_testkit::reorder::{RandomReorder, Reorder};
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!())
        .each_preset::<Builtin, _>(Faults)
        .each_preset::<Builtin, _>(Loss)
        .each_preset::<Builtin, _>(Liveness)
        .each_preset::<Builtin, _>(Reorder)
        .each_preset::<Builtin, _>(RandomReorder)
        .each_preset::<Builtin, _>(Cancel)
        .each_preset::<Builtin, _>(Limit)
        .run();
}
