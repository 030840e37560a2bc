//! Every transport between nodes and in the simulator, and nodes that receive arbitrary, changed
//! and repeated packets. One program, since each compiles every transport.

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod corrupt;
mod duplicates;
mod hostile;

use rampmeter_testkit::{Suite, here};

fn main() {
    let suite = Suite::new(here!());
    conformance::add(hostile::add(duplicates::add(corrupt::add(suite)))).run();
}
