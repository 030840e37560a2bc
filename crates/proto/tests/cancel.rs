//! Messages that are cancelled at any time while packets are lost.

use rampmeter_proto::Builtin;
use rampmeter_testkit::bodies::Cancel;
use rampmeter_testkit::{Suite, here};

fn main() {
    Suite::new(here!()).each_preset::<Builtin, _>(Cancel).run();
}
