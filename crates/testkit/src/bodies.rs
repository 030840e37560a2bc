//! Properties of the endpoints of every transport.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rampmeter_proto::RegisteredTransport;
use rampmeter_sim::{ClockSpec, SimSpec, Status};

use crate::limit::limits_peers;
use crate::network::{TestNetwork, leaf_spine, leaf_spine_at};
use crate::run::{imc10, run, spec};
use crate::scenario::{Scenario, assert_sound, scenario};
use crate::suite::{Body, Case};
use crate::wire::{self, TransportTraits};

/// Every message is delivered once, or reported failed if its peer is cut off, for any faults of
/// the network; see [`scenario`].
#[derive(Clone, Copy, Debug)]
pub struct Faults;

impl Body for Faults {
    const NAME: &'static str = "faults";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        case.each_seed(0..300, |seed| {
            let place = TestNetwork::<T>::simulated(&case.keys, leaf_spine(2, 3, 2));
            let Scenario { mut spec, arrivals, failed_host } = scenario(place.topology, seed);
            spec.fabric = place.fabric;
            if place.clock_skew_max.is_some() {
                spec.clocks = ClockSpec::default();
            }
            assert_sound(&run::<T>(place.config, spec, arrivals), failed_host);
        });
    }
}

/// With 1 % loss on every link, control packets not excepted, every message of IMC10 at load 0.6
/// finishes. If the transport promises a bound, every one completes or fails, and most are
/// delivered.
#[derive(Clone, Copy, Debug)]
pub struct Loss;

impl Body for Loss {
    const NAME: &'static str = "loss";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        let place = TestNetwork::<T>::simulated(&case.keys, leaf_spine_at(10.0, 9, 16, 4));
        let spec = SimSpec { fabric: place.fabric, paranoid: false, ..spec(place.topology, 5) };
        assert_all_finish_with_loss::<T>(place.config, spec, 10);
    }
}

/// Runs 10 000 messages of IMC10 at load 0.6 on 144 hosts at `gbps` with 1 % loss on every link.
pub fn assert_all_finish_with_loss<T: RegisteredTransport>(
    config: T::Config,
    mut spec: SimSpec,
    gbps: u64,
) {
    let flows = imc10(10_000, gbps, 5);
    let n = flows.len();
    spec.faults.every_link.loss = 0.01;
    spec.paranoid = false;
    let (status, records) = run::<T>(config, spec, flows);
    assert_eq!(status, Status::Finished);
    assert_eq!(records.len(), n);
    let delivered = records.iter().filter(|r| r.delivered.is_some()).count();
    for r in &records {
        let ends = [r.completed, r.failed, r.rejected].into_iter().flatten().count();
        assert_eq!(ends, 1, "{r:?}");
        assert!(r.bound.is_some() || r.completed.is_some(), "{r:?}");
    }
    assert!(delivered == n || (records[0].bound.is_some() && delivered > n / 2), "{delivered}");
}

/// Messages that are cancelled at any time, while packets are lost, are forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Cancel;

impl Body for Cancel {
    const NAME: &'static str = "cancel";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        case.each_seed(0..60, |seed| {
            test_sample(seed, &wire::plans(), |plan| {
                let on_wire = wire::configure::<T>(&case.keys);
                let manners = TransportTraits::derive(&on_wire.0);
                wire::cancels_cleanly::<T>(&on_wire, manners, &plan);
            });
        });
    }
}

/// Peers may have this many messages in flight to a host, and no more.
#[derive(Clone, Copy, Debug)]
pub struct Limit;

impl Body for Limit {
    const NAME: &'static str = "limit";

    fn test<T: RegisteredTransport>(self, case: &Case<T>) {
        limits_peers::<T>(&case.keys);
    }
}

/// Tests the value of a strategy that belongs to a seed. A failure names the smallest that fails.
pub fn test_sample<S: Strategy>(seed: u64, strategy: &S, test: impl Fn(S::Value)) {
    let config = Config { cases: 1, failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let result = TestRunner::new_with_rng(config, rng).run(strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
