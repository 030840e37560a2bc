//! Names of published distributions.

/// The names that [`named`](super::named) accepts.
pub const NAMES: [&str; 12] = [
    "imc10",
    "web-search",
    "data-mining",
    "ns-2-web-search",
    "ns-2-data-mining",
    "hpcc-web-search",
    "ali-storage",
    "homa-w1",
    "homa-w2",
    "homa-w3",
    "homa-w4",
    "homa-w5",
];
