//! Identifiers: integers into dense arrays, each kind its own type.

/// Host, numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(u32);

/// Message (the papers' *flow*), numbered by the driver that submits it and unique among the
/// messages of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MsgId(u32);

/// Tenant: one of several users of the network among whom policies divide it. Zero if unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(u32);

macro_rules! dense_id {
    ($name:ident) => {
        impl $name {
            /// Creates the identifier with this number.
            #[inline]
            pub const fn new(n: u32) -> Self {
                Self(n)
            }

            /// Returns the number.
            #[inline]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns the number as an index into a dense array.
            #[inline]
            pub const fn idx(self) -> usize {
                self.0 as usize
            }
        }
    };
}

dense_id!(NodeId);
dense_id!(MsgId);
dense_id!(TenantId);

/// Number of the protocol on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportId(pub u8);

impl TransportId {
    /// First number for transports outside this repository.
    pub const PRIVATE: Self = Self(128);
}
