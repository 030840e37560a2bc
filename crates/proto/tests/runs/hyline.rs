//! Hyline in whole simulations: the cost of scheduling, the order of messages, and their paths.

use rampmeter_proto::central::ControllerKeys;
use rampmeter_proto::hyline::{HylineConfig, HylineTransport};
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::{Rate, Span};

type Hyline = TestNetwork<HylineTransport>;

/// Two racks of three hosts and two core switches, all links of 10 Gbit/s.
fn network() -> Topology {
    leaf_spine_of([10.0, 10.0], 2, 3, 2).build().unwrap()
}

/// Returns the delivery time of each message, in microseconds after its arrival.
fn delivered(keys: &HylineConfig, arrivals: Vec<Arrival>) -> Vec<f64> {
    let TestNetwork { topology, config, fabric, .. } = Hyline::simulated(keys, network());
    let fabric = FabricConfig { spray: Spray::Ecmp, ..fabric };
    let spec = SimSpec { fabric, ..spec(topology, 1) };
    let (status, records) = run::<HylineTransport>(config, spec, arrivals);
    assert_eq!(status, Status::Finished);
    records.iter().map(|r| (r.delivered.unwrap() - r.arrival).as_us_f64()).collect()
}

/// All messages send requests, and grants fill the pipe.
fn all_scheduled() -> HylineConfig {
    HylineConfig {
        short_flow_bytes: 0,
        window_granted: Some(1_000),
        controller: ControllerKeys {
            compute: Some(Span::from_us(10)),
            ..ControllerKeys::default()
        },
        ..HylineConfig::paper()
    }
}

/// Returns the time of a message of full packets at 10 Gbit/s, headers included, in microseconds.
fn at_line_rate(bytes: u64) -> f64 {
    let tx = Rate::from_gbps(10).tx_time(rampmeter_types::Bytes::new(1_500));
    (tx * bytes.div_ceil(1_460)).as_us_f64()
}

#[test]
fn a_scheduled_message_takes_its_request_and_then_the_time_of_its_bytes() {
    let size = 2_920_000;
    let took = delivered(&all_scheduled(), vec![arrival(0, 0, 4, size)])[0];
    let facts = facts(&network());
    let delay = took - at_line_rate(size);
    let scheduling = 10.0;
    assert!(delay > scheduling, "{delay} us");
    assert!(delay < scheduling + 2.0 * facts.data_rtt.as_us_f64(), "{delay} us");
}

/// Four packets a round trip, one way as data and the other as acknowledgement.
#[test]
fn the_window_bounds_a_flow_with_a_grant() {
    let size = 2_920_000;
    let facts = facts(&network());
    let rtt = (facts.data_rtt.as_us_f64() + facts.control_rtt.as_us_f64()) / 2.0;
    let keys = HylineConfig { window_granted: Some(4), ..all_scheduled() };
    let took = delivered(&keys, vec![arrival(0, 0, 4, size)])[0];
    let round_trips = size as f64 / (4.0 * 1_460.0);
    assert!((took / (round_trips * rtt) - 1.0).abs() < 0.05, "{took} us");
}

/// Three messages from three hosts to three others need two paths. By hash two of the first would
/// meet on one with a chance of one half; the controller prevents that.
#[test]
fn flows_have_a_path_each_and_the_longest_waits_for_one() {
    let (short, middle, long) = (1_000_000, 1_500_000, 2_000_000);
    let alone = |size| delivered(&all_scheduled(), vec![arrival(0, 0, 3, size)])[0];
    let (short_alone, middle_alone, long_alone) = (alone(short), alone(middle), alone(long));
    let all = vec![arrival(0, 0, 3, long), arrival(1, 1, 4, short), arrival(2, 2, 5, middle)];
    let took = delivered(&all_scheduled(), all);
    assert!(took[1] < short_alone * 1.05, "{} us, alone {short_alone}", took[1]);
    assert!(took[2] < middle_alone * 1.05, "{} us, alone {middle_alone}", took[2]);
    let waited = took[0] - long_alone;
    assert!(waited > 0.7 * short_alone && waited < 1.1 * short_alone, "{waited} us");
}

/// Messages up to the threshold are plain TCP, and do not wait for others.
#[test]
fn messages_up_to_the_threshold_do_not_wait() {
    let size = 1_000_000;
    let keys = HylineConfig { short_flow_bytes: size, ..HylineConfig::paper() };
    let alone = delivered(&keys, vec![arrival(0, 0, 4, size)])[0];
    let long = arrival(0, 0, 5, 20_000_000);
    let with_long_flow = delivered(&keys, vec![long, arrival(1_000_000_000, 0, 4, size)])[1];
    // They share the source's link.
    assert!(with_long_flow < 2.5 * alone, "{with_long_flow} us, alone {alone}");
}
