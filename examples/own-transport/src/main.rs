//! `rampd` with one transport more.

use std::process::ExitCode;

fn main() -> ExitCode {
    rampd::main::<own_transport::All>()
}
