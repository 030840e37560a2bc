//! Places and lengths of the fields of protection.

use rampmeter_types::envelope::Protection;

/// Byte of the envelope that names the protection.
pub(super) const PROTECTION_AT: usize = 5;

/// Protection of datagrams in decrypted captures. No node sends or accepts it.
pub(super) const DECRYPTED: u8 = 3;

pub(super) const SEALED: usize = Protection::Sealed.trailer();
