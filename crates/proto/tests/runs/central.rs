//! Transports with a controller that starts and stops flows, when it crashes.

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::capton::{CaptonConfig, CaptonTransport};
use rampmeter_proto::central::ControllerKeys;
use rampmeter_proto::hyline::{HylineConfig, HylineTransport};
use rampmeter_sim::Target;
use rampmeter_sim::*;
use rampmeter_testkit::suite::each_seed;
use rampmeter_testkit::*;
use rampmeter_types::{Purpose, Rng, Span, Time};

/// The controller crashes, with and without a standby; in half of the runs it returns, knowing
/// nothing. Hosts do without it, and return. `keys` are those for a number of controllers.
fn crash<T: RegisteredTransport>(name: &str, keys: impl Fn(u32) -> T::Keys) {
    each_seed(here!(), name, 0..1_000, |seed| {
        let mut rng = Rng::new(seed, 1, Purpose::Test);
        let controllers = 1 + rng.uniform_below(2) as u32;
        let place = TestNetwork::<T>::simulated(&keys(controllers), leaf_spine(2, 3, 2));
        let Scenario { mut spec, arrivals, .. } = scenario(place.topology, seed);
        spec.fabric = place.fabric;
        spec.faults.outages.clear();
        let from = Time::from_ps(rng.uniform_below(400_000_000) as u64);
        let until = match rng.bernoulli(0.5) {
            true => from + Span::from_us(1 + rng.uniform_below(20_000) as u64),
            false => Time::NEVER,
        };
        spec.faults.outages.push(Outage { target: Target::Arbiter(0), from, until });
        assert_sound(&run::<T>(place.config, spec, arrivals), None);
    });
}

#[test]
fn no_message_is_lost_or_doubled_when_captons_controller_crashes() {
    crash::<CaptonTransport>(
        "no_message_is_lost_or_doubled_when_captons_controller_crashes",
        |controllers| CaptonConfig {
            controller: ControllerKeys { controllers, ..ControllerKeys::default() },
            rto_min_us: Some(5_000),
            ..CaptonConfig::paper()
        },
    );
}

/// Half of the messages send requests.
#[test]
fn no_message_is_lost_or_doubled_when_hylines_controller_crashes() {
    crash::<HylineTransport>(
        "no_message_is_lost_or_doubled_when_hylines_controller_crashes",
        |controllers| HylineConfig {
            controller: ControllerKeys { controllers, ..ControllerKeys::default() },
            short_flow_bytes: 20_000,
            ..HylineConfig::paper()
        },
    );
}
