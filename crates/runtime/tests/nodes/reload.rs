//! Peers that a reload removes and adds again, for each transport of hosts: every message that
//! completes has been delivered, once.

use crate::common::{MemTestbed, facts, protocol};
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_runtime::app::Outcome;
use rampmeter_runtime::datapath::mem::Impairments;
use rampmeter_testkit::network::n_arbiters;
use rampmeter_types::Span;

const RTT: Span = Span::from_us(200);
const BEFORE: u64 = 40;
const IN_FLIGHT: u64 = 20;
const AFTER: u64 = 60;

struct Reload;

impl Visitor for Reload {
    fn transport<T: RegisteredTransport>(&mut self) {
        let facts = facts(3, 1_000, RTT);
        if n_arbiters::<T>(&T::Keys::default(), &facts) > 0 {
            return;
        }
        let mut bed = MemTestbed::<T::Host>::new(
            protocol::<T>(&facts),
            &facts,
            Impairments::fair(RTT / 2),
            1,
        );
        let mut n_sent = 0;
        let mut send = |bed: &mut MemTestbed<T::Host>, n: u64, long: usize| {
            for number in n_sent..n_sent + n {
                let size = if number % 2 == 0 { 1_000 } else { long };
                assert!(bed.submit(0, 2, size, number) && bed.submit(2, 0, size, number));
            }
            n_sent += n;
        };
        let second = Span::from_us(1_000_000);
        send(&mut bed, BEFORE, 30_000);
        bed.run_until(bed.now + second);
        send(&mut bed, IN_FLIGHT, 100_000);
        bed.run_until(bed.now + RTT * 2);
        bed.set_peers(0, &[0, 1]);
        bed.run_until(bed.now + second);
        bed.set_peers(0, &[0, 1, 2]);
        bed.run_until(bed.now + second);
        send(&mut bed, AFTER, 30_000);
        bed.run_until(bed.now + second * 20);
        let n_all = 2 * (BEFORE + IN_FLIGHT + AFTER);
        assert_eq!(
            bed.seen.outcomes.len() as u64,
            n_all,
            "{}: messages without an outcome",
            T::NAME
        );
        for (label, outcome) in &bed.seen.outcomes {
            let n_delivered = bed.seen.delivered.get(label).copied().unwrap_or(0);
            let (source, _, number) = label;
            let of = format!("{}: message {number} of node {source}: {outcome:?}", T::NAME);
            assert!(n_delivered <= 1, "{of}, delivered {n_delivered} times");
            let is_in_flight = (BEFORE..BEFORE + IN_FLIGHT).contains(number);
            assert!(is_in_flight || *outcome == Outcome::Completed, "{of}");
            assert!(*outcome != Outcome::Completed || n_delivered == 1, "{of}, never delivered");
        }
    }
}

#[test]
fn peers_that_are_removed_and_added_again_get_every_message_that_completes() {
    HostCatalogue::<Builtin>::visit(&mut Reload);
}
