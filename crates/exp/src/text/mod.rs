//! TOML texts of plans and topologies: quantities with units, and the places of errors.

pub(crate) mod migrate;
pub(crate) mod parse;
mod place;
pub(crate) mod units;
pub(crate) mod words;
