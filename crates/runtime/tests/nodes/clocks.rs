//! Nodes whose clocks count from different instants, as if started months apart, with each
//! transport of hosts. They behave like nodes whose clocks count from the same instant.

use crate::bed::{Testbed, TrafficPattern};
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::fastpod::FastpodTransport;
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_types::{ClockOrigin, Span, Time};

const DAY: Span = Span::from_us(86_400_000_000);
/// Start of the simulation: a day of 2025 and a fraction, in nanoseconds since 1970.
const START_NS: u64 = 20_100 * 86_400 * 1_000_000_000 + 123_456_789;
const MESSAGES: u64 = 400;
const UNTIL: Time = Time::from_ps(200_000_000_000);

struct ClockOrigins;

impl Visitor for ClockOrigins {
    fn transport<T: RegisteredTransport>(&mut self) {
        // Days since the origin of each node's clock.
        let run = |days: fn(u32) -> u64| {
            let clock = |node| {
                let shift = DAY * days(node);
                (shift, ClockOrigin::from_ns(START_NS - shift.as_ps() / 1_000))
            };
            let mut bed = Testbed::with_clocks::<T>(TrafficPattern::Third, MESSAGES, clock);
            bed.run_until(UNTIL, Span::ZERO, |_| false);
            let fates = bed.fates.borrow().clone();
            (fates.completed, fates.failed, fates.pings)
        };
        let expected = run(|_| 1);
        assert!(expected.2.len() > 50, "{}: {expected:?}", T::NAME);
        let of_hosts = run(|node| [1, 184, 30, 212][node as usize % 4]);
        if T::NAME == <FastpodTransport as rampmeter_types::Transport>::NAME {
            // Hosts follow the clock of the arbiter, which counts slots from its own start.
            let (n, n_expected) = (of_hosts.2.len(), expected.2.len());
            assert_eq!((of_hosts.0, of_hosts.1), (MESSAGES, 0));
            assert!(n * 10 >= n_expected * 9, "{n} pings instead of {n_expected}");
            return;
        }
        assert!(of_hosts == expected, "{}: {of_hosts:?} instead of {expected:?}", T::NAME);
    }
}

#[test]
fn transports_do_not_depend_on_when_nodes_were_started() {
    HostCatalogue::<Builtin>::visit(&mut ClockOrigins);
}
