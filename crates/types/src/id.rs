//! Typed identifiers that index dense arrays.

/// Host or arbiter, numbered from zero. Arbiters follow all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(u32);

/// Message (the papers' *flow*), numbered by the driver that submits it. The number is unique in a
/// simulated run, and between hosts among the messages of one sender.
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

/// Number of a transport in the envelope of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportId(pub u8);

impl TransportId {
    /// First number for transports outside this repository.
    pub const PRIVATE: Self = Self(128);
}
