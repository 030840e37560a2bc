//! Whatever bytes come, the decoder answers, and what it accepts encodes to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rampmeter_core::Header;
use rampmeter_proto::cosy::wire::CosyHeader;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, read)) = CosyHeader::decode(bytes) {
        let mut again = [0; 256];
        assert_eq!(header.encode(&mut again), Ok(read));
        assert_eq!(&again[..read], &bytes[..read]);
    }
});
