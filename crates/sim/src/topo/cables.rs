//! Propagation delays of cables in a pod.

use rampmeter_types::{Purpose, Rng, Span};

/// Propagation delays of the cables of a pod's hosts and arbiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CableDelays {
    /// The shortest.
    pub(super) min: Span,
    /// Maximum additional propagation.
    pub(super) spread: Span,
}

impl CableDelays {
    /// Returns the stream of the cables of a host or arbiter; topologies have no seed.
    pub(super) fn stream(station: u32) -> Rng {
        Rng::new(0, u64::from(station), Purpose::Cable)
    }

    /// Draws a cable.
    pub(super) fn draw(self, rng: &mut Rng) -> Span {
        self.min + Span::from_ps(rng.uniform_below(self.spread.as_ps() as usize + 1) as u64)
    }

    /// Returns the cables from an arbiter to that number of racks.
    pub(super) fn of_arbiter(self, station: u32, racks: usize) -> Vec<Span> {
        let mut rng = Self::stream(station);
        (0..racks).map(|_| self.draw(&mut rng)).collect()
    }
}
