//! A host that has received mutated packets of its peers and arbiters recovers after the last of
//! them, with each transport of hosts.

use crate::bed::{Testbed, TrafficPattern};
use crate::net::Mutations;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_proto::{Builtin, HostCatalogue, RegisteredTransport};
use rampmeter_types::{NodeId, Purpose, Rng, Span, Time};

/// Time with mutated packets, and time until pings must complete again.
const MUTATED: Span = Span::from_us(30_000);
const RECOVERY: Span = Span::from_us(2_000_000);
const PINGS: Span = Span::from_us(100_000);
const PING_MAX: Span = Span::from_us(50_000);

struct MutationVisitor(Vec<String>);

impl Visitor for MutationVisitor {
    fn transport<T: RegisteredTransport>(&mut self) {
        for (seed, to) in (0..4).flat_map(|seed| [0, 2].map(|to| (seed, to))) {
            let mut bed = Testbed::new::<T>(TrafficPattern::Third, 0);
            let mutations =
                Mutations { to: NodeId::new(to), rng: Rng::new(seed, 0, Purpose::Test) };
            bed.links.borrow_mut().mutations = Some(mutations);
            let clean = Time::ZERO + MUTATED;
            bed.run_until(clean, Span::ZERO, |_| false);
            bed.links.borrow_mut().mutations = None;
            let recovered = clean + RECOVERY;
            bed.run_until(recovered + PINGS, Span::ZERO, |_| false);
            let fates = bed.fates.borrow();
            let after = fates.pings.iter().filter(|(at, _)| *at >= recovered);
            let (n, longest) = (after.clone().count(), after.map(|(_, took)| *took).max());
            if n < 20 || longest.is_none_or(|longest| longest > PING_MAX) {
                let all = fates.pings.len();
                self.0.push(format!("{} seed {seed} to {to}: {n} of {all}, {longest:?}", T::NAME));
            }
        }
    }
}

#[test]
fn a_host_recovers_from_mutated_packets() {
    let mut mutated = MutationVisitor(Vec::new());
    HostCatalogue::<Builtin>::visit(&mut mutated);
    assert!(mutated.0.is_empty(), "{:#?}", mutated.0);
}
