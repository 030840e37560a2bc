//! Order of offers.

use super::config::Dcpim;
use super::matching::OfferOrder;

/// Returns the order in which offers are served: smallest flow first in the first round (§3.5).
pub(super) fn order(round: u8, dcpim: &Dcpim) -> OfferOrder {
    if round == 0 && dcpim.config.fct_round {
        OfferOrder::SmallestFirst
    } else {
        OfferOrder::Random
    }
}
