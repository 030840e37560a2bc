//! Kinds of topologies, each in a file of its own.

mod dragonfly;
mod dumbbell;
mod fat_tree;
mod file;
mod kind;
mod leaf_spine;
mod links;
mod pod;
mod star;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use dragonfly::Dragonfly;
pub use dumbbell::Dumbbell;
pub use fat_tree::FatTree;
pub use file::File;
pub use kind::TopologyKind;
pub(super) use kind::{access, core, is_false, is_one, one, processing, propagation};
pub(super) use kind::{delay, rate};
pub use leaf_spine::LeafSpine;
pub use links::{LinkSpec, Links};
pub use pod::Pod;
pub use star::Star;

use super::error::TopologyError;
use super::topology::Topology;

macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        /// A topology in a plan. Rates are in Gbit/s and delays in nanoseconds; the defaults of
        /// rates and delays are those of the dcPIM paper (table 1), where 450 ns of processing are
        /// charged at hosts as at switches.
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the structs have documentation")]
        pub enum TopologySpec {
            $($kind($kind),)+
        }

        impl TopologySpec {
            fn kind(&self) -> &dyn TopologyKind {
                match self {
                    $(Self::$kind(keys) => keys,)+
                }
            }
        }

        $(impl From<$kind> for TopologySpec {
            fn from(keys: $kind) -> Self {
                Self::$kind(keys)
            }
        })+
    };
}

kinds!(LeafSpine, FatTree, Star, Dumbbell, Dragonfly, Pod, Links, File);

impl TopologySpec {
    /// Checks the keys and builds the network.
    ///
    /// # Errors
    /// As [`TopologyKind::build`]. A [`File`] is an error, which the caller must read first.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.kind().build()
    }

    /// Returns the number of hosts in each rack; `None` if the kind has no racks.
    pub fn hosts_per_rack(&self) -> Option<u32> {
        self.kind().hosts_per_rack()
    }

    /// Returns the number of hosts in each pod; `None` if the kind has no pods.
    pub fn hosts_per_pod(&self) -> Option<u32> {
        self.kind().hosts_per_pod()
    }
}
