//! Errors of packets that cannot be read.

use thiserror::Error;

/// Reason for which bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("header needs {needed} bytes, got {got}")]
    Truncated {
        /// Bytes up to the end of the field.
        needed: usize,
        /// Actual number of bytes.
        got: usize,
    },
    /// The type byte names no packet of this protocol.
    #[error("unknown packet type {0}")]
    UnknownType(u8),
    /// A field holds a value that the protocol never sends.
    #[error("field {field} must be {expected}, got {got}")]
    BadField {
        /// Name of the field in the protocol's page.
        field: &'static str,
        /// Allowed values.
        expected: &'static str,
        /// Actual value.
        got: u64,
    },
}
