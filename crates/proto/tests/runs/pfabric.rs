//! pFabric in whole simulations: exact times.

use rampmeter_proto::pfabric::{PfabricConfig, PfabricTransport};
use rampmeter_testkit::*;

/// A flow alone in the network has slowdown exactly 1: its window of 12 packets is more than a
/// bandwidth-delay product of the study's network.
#[test]
fn a_lone_pfabric_flow_runs_at_line_rate() {
    for config in [PfabricConfig::paper(), PfabricConfig::reference()] {
        for packets in [1, 7, 500] {
            let spec = spec(leaf_spine_at(10.0, 9, 16, 4), 1);
            let config = config.clone().derive(&facts(&spec.topology)).unwrap();
            let flow = vec![arrival(0, 1, 100, packets * 1460)];
            let (_, records) = run::<PfabricTransport>(config, spec, flow);
            let took = (records[0].delivered.unwrap() - records[0].arrival).as_ps();
            let alone = 4 * 650_000 + 2 * 1_200_000 + 2 * 300_000 + (packets - 1) * 1_200_000;
            assert_eq!(took, alone, "{packets} packets");
        }
    }
}
