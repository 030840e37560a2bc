//! Containers for hot paths: no allocation per packet, no hashing with a random seed.

mod id_map;
mod id_table;
mod keyed_heap;
mod seq_set;
mod slab;

pub use id_map::{IdHasher, IdMap};
pub use id_table::IdTable;
pub use keyed_heap::{HeapPositions, KeyedHeap};
pub use seq_set::SeqSet;
pub use slab::Slab;
