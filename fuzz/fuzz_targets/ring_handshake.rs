//! An acceptor refuses any bytes, or they request memory within the limits. A client accepts or
//! refuses any reply.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rampmeter_ring::handshake::{AttachReply, Request};

const ARENA_MAX: u64 = 4 << 30;

fuzz_target!(|bytes: &[u8]| {
    if let Some(answer) = AttachReply::decode(bytes) {
        assert_eq!(AttachReply::decode(&answer.encode()).is_some(), answer.encode().len() >= 16);
    }
    match Request::decode(bytes) {
        Ok(request) => {
            assert_eq!(request.encode(), bytes);
            if let Ok(layout) = request.layout(ARENA_MAX) {
                assert!(request.send + request.receive <= ARENA_MAX);
                assert!(layout.total() >= request.send + request.receive);
            }
        }
        Err(refusal) => assert!(AttachReply::from(&refusal).encode().len() <= AttachReply::LEN_MAX),
    }
});
