//! Decodes arbitrary bytes with the decoder of each transport. Accepted headers encode to the same
//! bytes. The first byte chooses the transport.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rampmeter_proto::{Builtin, formats};

fuzz_target!(|bytes: &[u8]| {
    let [choice, header @ ..] = bytes else { return };
    let wires = formats::<Builtin>();
    wires[usize::from(*choice) % wires.len()].check_bytes(header);
});
