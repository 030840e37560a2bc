//! Many messages to one node, with a processing time of nodes per datagram, for each transport of
//! hosts. All messages complete, and a third node is reachable meanwhile.

use crate::bed::{Outcome, TrafficPattern, run};
use crate::net::MessageOutcomes;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::cosy::CosyTransport;
use rampmeter_proto::fastpod::FastpodTransport;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::NodeConfig;
use rampmeter_types::{Span, Transport};

/// More messages than a pair of nodes may have in flight.
const MESSAGES: u64 = NodeConfig::ARRIVING_MAX as u64 + 4_096;
/// Messages between slow nodes: 20 windows and more.
const SLOW_MESSAGES: u64 = 20_000;
/// Maximum median completion time of a ping between slow nodes. With windows of 1024 messages it
/// was 44 ms (Fastpass) to 103 ms (Homa), except for SIRD.
const SLOW_PING_MAX: Span = Span::from_us(12_000);
/// Maximum completion time of a ping with only its own node's queue before it.
const PING_MAX: Span = Span::from_us(40_000);

struct Deep;

impl Visitor for Deep {
    fn transport<T: RegisteredTransport>(&mut self) {
        // cosy rejects messages that it cannot deliver in time.
        if T::NAME == CosyTransport::NAME {
            return;
        }
        let Outcome { fates, excess, .. } = run::<T>(TrafficPattern::Two, MESSAGES);
        let MessageOutcomes { completed, failed, delivered, pings, pings_failed, .. } = fates;
        let of = T::NAME;
        assert_eq!((completed, failed, delivered), (MESSAGES, 0, MESSAGES), "{of}");
        assert_eq!((excess, pings_failed), (0, 0), "{of}");
        let longest = pings.iter().map(|(_, took)| *took).max().unwrap_or(Span::from_ps(u64::MAX));
        assert!(longest <= PING_MAX, "{of}: a ping took {longest}");
    }
}

#[test]
fn queues_deeper_than_the_flight_limit_complete_and_starve_no_node() {
    HostCatalogue::<Builtin>::visit(&mut Deep);
}

struct Slow;

impl Visitor for Slow {
    fn transport<T: RegisteredTransport>(&mut self) {
        // cosy rejects messages that it cannot deliver in time. A slot of Fastpod at this rate is
        // shorter than these nodes take for a datagram.
        let is_left_out = [CosyTransport::NAME, FastpodTransport::NAME].contains(&T::NAME);
        if is_left_out {
            return;
        }
        let Outcome { fates, excess, .. } = run::<T>(TrafficPattern::Slow, SLOW_MESSAGES);
        let MessageOutcomes { completed, failed, delivered, mut pings, pings_failed, .. } = fates;
        let of = T::NAME;
        assert_eq!((completed, failed, delivered), (SLOW_MESSAGES, 0, SLOW_MESSAGES), "{of}");
        assert_eq!((excess, pings_failed), (0, 0), "{of}");
        pings.sort_unstable_by_key(|(_, took)| *took);
        let (_, median) = pings[pings.len() / 2];
        assert!(median <= SLOW_PING_MAX, "{of}: the median ping took {median}");
    }
}

/// With processors slower than links, queueing delays are no longer than otherwise.
#[test]
fn queues_of_slow_nodes_delay_another_node_by_little() {
    HostCatalogue::<Builtin>::visit(&mut Slow);
}
