//! pHost in whole simulations: exact times.

use rampmeter_proto::phost::{PhostConfig, PhostTransport};
use rampmeter_sim::*;
use rampmeter_testkit::*;

/// protocol-notes: a RTS of 40 B is sent first (32 ns at 10 Gbit/s). The first rows of the
/// published run read 4 712 000 ps for one packet between racks whose ideal is 4 680 000 ps.
#[test]
fn a_lone_packet_takes_its_ideal_time_after_its_rts() {
    let topology = TopologySpec::LeafSpine(topologies::LeafSpine {
        rails: 1,
        planes: 1,
        racks: 9,
        hosts_per_rack: 16,
        spines: 4,
        access_gbps: 10.0,
        core_gbps: 40.0,
        propagation_ns: 200.0,
        switch_ns: 0.0,
        host_ns: 0.0,
    });
    for config in [PhostConfig::paper(), PhostConfig::reference()] {
        let spec = spec(topology.build().unwrap(), 1);
        let config = config.derive(&facts(&spec.topology)).unwrap();
        let (_, records) =
            run::<PhostTransport>(config, spec, vec![arrival(310_200, 81, 28, 1460)]);
        assert_eq!((records[0].completed.unwrap() - records[0].arrival).as_ps(), 4_712_000);
    }
}
