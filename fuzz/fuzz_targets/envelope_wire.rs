//! Checks that the envelope's decoder returns for any bytes, and that accepted ones are encoded to
//! the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rampmeter_runtime::wire::Envelope;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((envelope, read)) = Envelope::decode(bytes) {
        let mut again = [0; Envelope::LEN_MAX];
        assert_eq!(envelope.encode(&mut again), Ok(read));
        assert_eq!(&again[..read], &bytes[..read]);
    }
});
