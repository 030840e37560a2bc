//! Operations of collectives, and algorithms by which their data move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every host has a vector, and at the end the sum of all.
    AllReduce,
    /// Every host has one `n`-th of a vector, and at the end all of it.
    AllGather,
    /// Every host has a vector, and at the end one `n`-th of the sum.
    ReduceScatter,
    /// The first host has a vector, and at the end every host has it.
    Broadcast,
    /// Every host has one `n`-th of its vector for each host.
    AllToAll,
    /// Every host sends to each other host the bytes of a matrix or a skew.
    AllToAllV,
    /// A vector is sent in chunks from host to host, each of which computes on every chunk.
    Pipeline,
}

impl Operation {
    /// Returns its name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Broadcast => "broadcast",
            Self::AllToAll => "all-to-all",
            Self::AllToAllV => "all-to-all-v",
            Self::Pipeline => "pipeline",
        }
    }

    /// Returns the algorithms that can do it, the default first.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm::{Chain, Direct, HalvingDoubling, Ring, Tree};
        match self {
            Self::AllReduce => &[Ring, Tree, HalvingDoubling],
            Self::AllGather | Self::ReduceScatter => &[Ring, HalvingDoubling],
            Self::Broadcast => &[Tree, Chain],
            Self::AllToAll | Self::AllToAllV => &[Direct],
            Self::Pipeline => &[Chain],
        }
    }

    /// Returns the bus bandwidth over the algorithm bandwidth among `n` hosts: the minimum that a
    /// host's link must carry for each byte of the vector. These are the factors of nccl-tests
    /// (doc/PERFORMANCE.md).
    pub fn bus_factor(self, n: u32) -> f64 {
        let others = f64::from(n - 1) / f64::from(n);
        match self {
            Self::AllReduce => 2.0 * others,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => others,
            Self::Broadcast | Self::AllToAllV | Self::Pipeline => 1.0,
        }
    }
}

/// Algorithm by which a collective moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Around a ring: `n - 1` steps for a reduce-scatter, as many for an all-gather. In step `s`
    /// host `i` sends part `i - s` to host `i + 1` as soon as it has it.
    Ring,
    /// A binomial tree whose root is the first host, up for a reduction and down for a broadcast.
    Tree,
    /// Recursive halving with partners `n / 2`, `n / 4`, ... 1 apart, then recursive doubling the
    /// other way. Needs a power of two of hosts.
    HalvingDoubling,
    /// Every host to every other one at once.
    Direct,
    /// A chain: each host sends to the next one, chunk by chunk.
    Chain,
}

impl Algorithm {
    /// Returns its name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::HalvingDoubling => "halving-doubling",
            Self::Direct => "direct",
            Self::Chain => "chain",
        }
    }

    /// Returns true if it can send a vector in chunks that do not wait for each other.
    pub const fn has_chunks(self) -> bool {
        matches!(self, Self::Ring | Self::Tree | Self::Chain)
    }
}
