//! Containers for hot paths: no allocation per packet, no hashing with a random seed.

mod id_map;
mod seq_set;
mod slab;

pub use id_map::{IdHasher, IdMap};
pub use seq_set::SeqSet;
pub use slab::Slab;
