//! Kinds of topologies, each in a file of its own.

mod dragonfly;
mod dumbbell;
mod fat_tree;
mod file;
mod leaf_spine;
mod links;
mod pod;
mod star;

use rampmeter_core::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use dragonfly::Dragonfly;
pub use dumbbell::Dumbbell;
pub use fat_tree::FatTree;
pub use file::File;
pub use leaf_spine::LeafSpine;
pub use links::{LinkSpec, Links};
pub use pod::Pod;
pub use star::Star;

use super::{Topology, TopologyError};

/// A kind of topology: a struct of its keys in plans. Rates are in Gbit/s and delays in
/// nanoseconds.
pub trait Kind {
    /// Checks the keys and builds the network.
    ///
    /// # Errors A count, rate or delay is out of range. The graph is not connected. A host has no
    /// link, or one that does not lead to a switch.
    fn build(&self) -> Result<Topology, TopologyError>;

    /// Returns the number of hosts in each rack; `None` if the kind has no racks.
    fn hosts_per_rack(&self) -> Option<u32> {
        None
    }

    /// Returns the number of hosts in each pod; `None` if the kind has no pods.
    fn hosts_per_pod(&self) -> Option<u32> {
        None
    }
}

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
            fn kind(&self) -> &dyn Kind {
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
    /// # Errors As [`Kind::build`]. A [`File`] is an error, which the caller must read first.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn one() -> u64 {
    1
}

fn access() -> f64 {
    100.0
}

fn core() -> f64 {
    400.0
}

fn propagation() -> f64 {
    200.0
}

fn processing() -> f64 {
    450.0
}

/// Gbit/s to a rate; integer bits per second.
pub(super) fn rate(what: &'static str, gbps: f64) -> Result<Rate, TopologyError> {
    let bps = (gbps * 1e9).round();
    let valid = (1e3..=1e14).contains(&bps);
    valid.then(|| Rate::from_bps(bps as u64)).flatten().ok_or_else(|| TopologyError::Number {
        what,
        expected: "a rate from 0.000001 to 100000 Gbit/s",
        got: gbps.to_string(),
    })
}

/// Nanoseconds to a span; whole picoseconds.
pub(super) fn delay(what: &'static str, ns: f64) -> Result<Span, TopologyError> {
    if !(0.0..=1e9).contains(&ns) {
        let expected = "a delay from 0 to 1000000000 ns";
        return Err(TopologyError::Number { what, expected, got: ns.to_string() });
    }
    Ok(Span::from_ps((ns * 1e3).round() as u64))
}
