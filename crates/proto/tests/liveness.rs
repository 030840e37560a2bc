//! Nothing stalls: neither in a network without faults at a high load, nor if control packets
//! overtake one another.

use rampmeter_proto::Builtin;
use rampmeter_testkit::liveness::Liveness;
use rampmeter_testkit::reorder::{RandomReorder, Reorder};
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!())
        .each_preset::<Builtin, _>(Liveness)
        .each_preset::<Builtin, _>(Reorder)
        .each_preset::<Builtin, _>(RandomReorder)
        .run();
}
