//! `rampd` with the transports of this repository.

use std::process::ExitCode;

use rampmeter_proto::Builtin;

fn main() -> ExitCode {
    rampd::main::<Builtin>()
}
