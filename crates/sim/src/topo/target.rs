//! Links and nodes that fail or change.

use rampmeter_types::{Rate, Span, Time};

/// Link or node that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A link, by its place in [`Topology::links`](super::Topology::links).
    Link(u32),
    /// A host, by number: all its links fail. Its state is kept.
    Host(u32),
    /// A switch, by number: all its links fail, and its program restarts without state.
    Switch(u32),
    /// An arbiter, by number among arbiters: all its links fail, and it restarts without state.
    Arbiter(u32),
}

/// A change of a link at a time. Packets that are on it arrive at their original time, so that
/// later ones may overtake them if the link becomes shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The link, by its place in [`Topology::links`](super::Topology::links).
    pub link: u32,
    /// Time of the change.
    pub at: Time,
    /// Rates from the first end to the second and back; as before if `None`.
    pub rates: Option<[Rate; 2]>,
    /// Propagation; as before if `None`.
    pub propagation: Option<Span>,
}
