//! What several protocols need in the same form.

mod config;
mod framing;
mod held;
mod numbers;
mod output;
mod timers;

pub(crate) use config::within;
pub use config::{ConfigError, Padding};
pub(crate) use framing::{Framing, Outgoing};
pub(crate) use held::Held;
pub(crate) use numbers::{FlowNumbers, Known, NextNumber};
pub(crate) use output::Output;
pub(crate) use timers::Timers;

/// Checks that a header is what it is after its way over the wire, and that every part of its
/// encoding is needed.
#[cfg(test)]
pub(crate) fn assert_codec<H: rampmeter_core::Header>(header: &H) {
    use rampmeter_core::WireError;

    let mut bytes = [0; 256];
    let written = header.encode(&mut bytes).expect("room for any header");
    assert_eq!(written, header.wire_len());
    assert_eq!(H::decode(&bytes[..written]), Ok((*header, written)));
    for short in 0..written {
        let got = H::decode(&bytes[..short]);
        assert!(matches!(got, Err(WireError::Truncated { .. })), "{short} of {written} bytes");
        assert!(header.encode(&mut [0; 256][..short]).is_err());
    }
}
