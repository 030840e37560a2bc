//! Tests of SIRD's parts. Whole runs are in `tests/` of this crate.
