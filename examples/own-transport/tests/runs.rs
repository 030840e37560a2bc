//! Theory, and the tests that every transport of the repository passes.

use own_transport::StopAndWait;
use rampmeter_proto::Keys;
use rampmeter_proto::catalogue::{Catalogue, Visitor};
use rampmeter_testkit::bodies::{Cancel, Faults, Limit};
use rampmeter_testkit::{Suite, TestNetwork, arrival, here, leaf_spine, run, spec};

use own_transport::config::SawKeys;

/// The transports that are tested here.
struct Mine;

impl Catalogue for Mine {
    fn visit(visitor: &mut impl Visitor) {
        visitor.transport::<StopAndWait>();
    }
}

/// A message of n packets takes n round trips less the way of the last acknowledgement.
fn takes_a_round_trip_a_packet() {
    let (_, keys) = SawKeys::PRESETS[0];
    let network = TestNetwork::<StopAndWait>::simulated(&keys(), leaf_spine(9, 16, 4));
    let arrivals = vec![arrival(0, 0, 100, 5 * 1460)];
    let (_, records) = run::<StopAndWait>(network.config, spec(network.topology, 1), arrivals);
    // 4 links of 650 ns; 120 + 30 + 30 + 120 ns for a packet, 3.2 + 0.8 + 0.8 + 3.2 ns for an
    // answer.
    let (there, back) = (4 * 650_000 + 300_000, 4 * 650_000 + 8_000);
    let took = records[0].delivered.expect("nothing is lost") - records[0].arrival;
    assert_eq!(took.as_ps(), 5 * there + 4 * back);
}

fn main() {
    Suite::new(here!())
        .with_test("takes_a_round_trip_a_packet", takes_a_round_trip_a_packet)
        .each_preset::<Mine, _>(Faults)
        .each_preset::<Mine, _>(Cancel)
        .each_preset::<Mine, _>(Limit)
        .run();
}
