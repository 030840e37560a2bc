//! Draws of hosts and sizes.

use rampmeter_types::Rng;

/// Randomness and scratch of a run.
#[derive(Debug)]
pub(super) struct DrawState {
    pub(super) rng: Rng,
    pub(super) order: Vec<u32>,
}
