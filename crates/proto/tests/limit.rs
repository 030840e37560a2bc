//! Peers with a limit on the messages in flight to a host.

use rampmeter_proto::Builtin;
use rampmeter_testkit::bodies::Limit;
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!()).each_preset::<Builtin, _>(Limit).run();
}
