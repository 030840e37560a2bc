//! Grants that name a path.

use rampmeter_types::Rate;

use crate::central::FlowGrant;

/// Grant of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathGrant {
    /// The rate at which it transmits.
    pub rate: Rate,
    /// The number of its path; `None` within a rack, or if paths are not known.
    pub path: Option<u16>,
}

impl FlowGrant for PathGrant {
    const HAS_PATH: bool = true;

    fn rate(self) -> Rate {
        self.rate
    }

    fn path(self) -> Option<u16> {
        self.path
    }
}
