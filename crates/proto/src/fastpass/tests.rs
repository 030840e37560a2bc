//! Tests of Fastpass's parts. Whole runs are in `tests/` of this crate.

mod allocate;
mod arbiters;
mod colour;
mod flows;
mod paths;
