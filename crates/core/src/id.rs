//! Identifiers: integers into dense arrays, each kind its own type.

/// A host, numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(u32);

/// A message (the papers' *flow*), chosen by the driver that submits it and unique among the
/// messages of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MsgId(u32);

/// A tenant: one of several users of the network among whom policies divide it. Zero where nobody
/// says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(u32);

macro_rules! dense_id {
    ($name:ident) => {
        impl $name {
            /// The identifier with this number.
            #[inline]
            pub const fn new(n: u32) -> Self {
                Self(n)
            }

            /// The number.
            #[inline]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The number as an index into a dense array.
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
