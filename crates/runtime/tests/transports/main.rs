//! Nodes that receive arbitrary, changed and repeated packets, with every transport of hosts. One
//! program, as each would compile every transport anew.

#[path = "../common/mod.rs"]
mod common;
mod corrupt;
mod duplicates;
mod hostile;

use rampmeter_testkit::{Suite, here};

fn main() {
    let suite = Suite::new(here!());
    hostile::add(duplicates::add(corrupt::add(suite))).run();
}
