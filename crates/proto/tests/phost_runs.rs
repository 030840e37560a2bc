//! pHost in whole simulations: exact times, loss of everything, faults by seed.

mod common;

use common::*;
use rampmeter_proto::phost::{PhostConfig, PhostFamily};
use rampmeter_sim::*;

fn presets() -> [(&'static str, PhostConfig); 2] {
    [("paper", PhostConfig::paper()), ("reference", PhostConfig::reference())]
}

fn run(config: PhostConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let config = config.on(&facts(&spec.topology)).unwrap();
    common::run::<PhostFamily>(config, spec, arrivals)
}

/// protocol-notes: a RTS of 40 B goes first (32 ns at 10 Gbit/s); the first rows of the published
/// run read 4 712 000 ps for one packet between racks whose ideal is 4 680 000 ps.
#[test]
fn a_lone_packet_takes_its_ideal_time_after_its_rts() {
    let topology = TopologySpec::LeafSpine {
        racks: 9,
        hosts_per_rack: 16,
        spines: 4,
        access_gbps: 10.0,
        core_gbps: 40.0,
        propagation_ns: 200.0,
        switch_ns: 0.0,
        host_ns: 0.0,
    };
    for (_, config) in presets() {
        let spec = spec(topology.build().unwrap(), 1);
        let (_, records) = run(config, spec, vec![arrival(310_200, 81, 28, 1460)]);
        assert_eq!((records[0].completed.unwrap() - records[0].arrival).as_ps(), 4_712_000);
    }
}

#[test]
fn every_flow_finishes_with_1_percent_loss_of_everything() {
    for (_, config) in presets() {
        let spec = spec(leaf_spine_at(10.0, 9, 16, 4), 5);
        let config = config.on(&facts(&spec.topology)).unwrap();
        assert_all_finish_with_loss::<PhostFamily>(config, spec, imc10(10_000, 10, 5));
    }
}

#[test]
fn every_message_is_delivered_once_or_reported_failed_if_its_peer_is_gone() {
    let seeds = 0..1_000;
    for seed in seeds {
        for (preset, config) in presets() {
            let (spec, arrivals, cut) = scenario(leaf_spine(2, 3, 2), seed);
            let ran = run(config, spec, arrivals);
            assert_sound(&ran, cut, &format!("seed {seed}, preset {preset}"));
        }
    }
}
