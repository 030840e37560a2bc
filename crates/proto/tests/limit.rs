//! Peers that may have so many messages under way to a host, and no more.

use rampmeter_proto::Builtin;
use rampmeter_testkit::bodies::Limit;
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!()).each_preset::<Builtin, _>(Limit).run();
}
