//! pFabric in whole simulations: exact times, loss of everything, faults by seed.

mod common;

use common::*;
use rampmeter_proto::pfabric::{PfabricConfig, PfabricFamily};
use rampmeter_sim::*;

fn presets() -> [(&'static str, PfabricConfig); 2] {
    [("paper", PfabricConfig::paper()), ("reference", PfabricConfig::reference())]
}

fn run(config: PfabricConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let config = config.on(&facts(&spec.topology)).unwrap();
    common::run::<PfabricFamily>(config, spec, arrivals)
}

/// A flow alone in the network has slowdown exactly 1: its window of 12 packets is more than a
/// bandwidth-delay product of the study's network.
#[test]
fn a_lone_flow_runs_at_line_rate() {
    for (_, config) in presets() {
        for packets in [1, 7, 500] {
            let spec = spec(leaf_spine_at(10.0, 9, 16, 4), 1);
            let (_, records) = run(config.clone(), spec, vec![arrival(0, 1, 100, packets * 1460)]);
            let took = (records[0].delivered.unwrap() - records[0].arrival).as_ps();
            let alone = 4 * 650_000 + 2 * 1_200_000 + 2 * 300_000 + (packets - 1) * 1_200_000;
            assert_eq!(took, alone, "{packets} packets");
        }
    }
}

#[test]
fn every_flow_finishes_with_1_percent_loss_of_everything() {
    for (_, config) in presets() {
        let spec = spec(leaf_spine_at(10.0, 9, 16, 4), 5);
        let config = config.on(&facts(&spec.topology)).unwrap();
        assert_all_finish_with_loss::<PfabricFamily>(config, spec, imc10(10_000, 10, 5));
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
