//! Figure 6, word for word: the scheduler on a whole set of flows.
//!
//! This is the specification of [`Scheduler`](super::Scheduler) and the oracle of its tests. It
//! takes O(F log F) for F flows, and O(L) for L links.
//!
//! Choices that the figure does not make:
//!
//! * Flows with equal remaining sizes: in the order of their arrival, as the sort is stable.
//! * `.size` or `.left`: `.left`. Equation 1 calls the remaining size `f.size`. The figure's own
//!   structure, equation 2 and the text call it `.left`.
//! * Access links of different capacity: the rate is the smaller one (line 6). The faster link has
//!   capacity to spare but counts as in use (line 5): a host sends one flow and receives one.
//! * An access link that is down: its flows are not granted. To the letter they would be, at a rate
//!   of zero.
//! * A core link slower than the access links:
//!   [`NarrowCorePolicy`](super::network::NarrowCorePolicy) has both readings.
//! * More than one level of core links: all links of the path are tested as the two of the figure
//!   are.
//! * The limit of N grants (lines 2 to 4): kept. It only saves time: each grant takes a source, so
//!   that after N grants no source is free.

use rampmeter_types::{NodeId, Rate};

use super::network::Network;
use crate::central::RemainingSize;

/// A flow to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingFlow {
    /// The sending host.
    pub src: NodeId,
    /// The receiving host, another one.
    pub dst: NodeId,
    /// Remaining size.
    pub remaining: RemainingSize,
}

/// Schedules `flows`, which are in the order of their arrival. The answer has, in the same order,
/// the rate of each flow that is to transmit, and `None` for each that is to stop.
pub fn schedule_by_figure6(network: &Network, flows: &[PendingFlow]) -> Vec<Option<Rate>> {
    let mut granted = vec![None; flows.len()];
    let mut in_use = vec![0; network.n_links()];
    let mut n = 0;
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&f| flows[f].remaining);
    // Line 1.
    for f in order {
        // Lines 2 to 4.
        if n == network.n_hosts() {
            break;
        }
        let path = network.path(flows[f].src, flows[f].dst);
        // Line 5.
        if path.access().iter().any(|link| in_use[link.index()] != 0) {
            continue;
        }
        // Line 6.
        let Some(rate) = network.rate(&path) else { continue };
        // Lines 7 and 12 to 16. Within a rack there is no core link.
        let fits = path.core().iter().all(|&link| {
            let capacity = network.capacity(link).map_or(0, Rate::as_bps);
            in_use[link.index()] + rate.as_bps() <= capacity
        });
        if fits {
            // Lines 8 to 11 and 17 to 22.
            granted[f] = Some(rate);
            path.links().iter().for_each(|link| in_use[link.index()] += rate.as_bps());
            n += 1;
        }
    }
    granted
}
