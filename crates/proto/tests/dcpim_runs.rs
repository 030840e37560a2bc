//! dcPIM in whole simulations: exact times, loss of everything in the paper's network, clocks apart.

use rampmeter_core::{Purpose, Rng, Span};
use rampmeter_proto::dcpim::config::Handshake;
use rampmeter_proto::dcpim::{DcpimConfig, DcpimFamily};
use rampmeter_sim::*;
use rampmeter_testkit::bodies::assert_all_finish_with_loss;
use rampmeter_testkit::{arrival, facts, leaf_spine, spec};

fn presets() -> [DcpimConfig; 2] {
    [DcpimConfig::paper(), DcpimConfig::reference()]
}

fn run(config: DcpimConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let dcpim = config.on(&facts(&spec.topology)).unwrap();
    rampmeter_testkit::run::<DcpimFamily>(dcpim, spec, arrivals)
}

mod alone {
    use super::*;

    /// The notification (3.2 ns at 100 Gbit/s) goes first, then the pipeline runs as fast as links
    /// do: 4 x 650 ns and 300 ns for the first packet between racks, 120 ns for each further one.
    #[test]
    fn a_short_flow_takes_the_pipeline_time_after_its_notification() {
        for config in presets() {
            for (dst, packets, delivered_ns) in
                [(22, 1, 2_900), (22, 49, 2_900 + 48 * 120), (5, 1, 1_540), (5, 4, 1_540 + 360)]
            {
                let flow = arrival(24_600, 1, dst, packets * 1460);
                let (status, records) =
                    run(config.clone(), spec(leaf_spine(9, 16, 4), 3), vec![flow]);
                assert_eq!(status, Status::Finished);
                let delivered = records[0].delivered.unwrap() - records[0].arrival;
                // The paper's finish takes another spine than the last packet, is there first, and
                // goes before it on the last link.
                let overtakes = config.handshake == Handshake::Explicit && dst == 22 && packets > 1;
                let control = if overtakes { 6_400 } else { 3_200 };
                assert_eq!(delivered.as_ps(), delivered_ns * 1_000 + control);
            }
        }
    }

    /// protocol-notes: 5.508 us and 2.846 us from submission to the final acknowledgement, plus the
    /// notification; the first rows of the published run read 5 511 200 ps.
    #[test]
    fn the_acknowledgement_of_the_reference_preset_takes_the_published_time() {
        for (dst, ps) in [(22, 5_511_200), (5, 2_849_600)] {
            let flow = vec![arrival(24_600, 1, dst, 1460)];
            let (_, records) = run(DcpimConfig::reference(), spec(leaf_spine(9, 16, 4), 3), flow);
            assert_eq!((records[0].completed.unwrap() - records[0].arrival).as_ps(), ps);
        }
    }

    /// A matched flow alone gets all k channels: once data flows it flows at line rate, but for
    /// stalls of less than a window at phase borders.
    #[test]
    fn a_long_flow_runs_at_line_rate_after_its_first_matching() {
        for config in presets() {
            let phase_ps = 30_513_600;
            let packets = 20_000;
            let flow = vec![arrival(0, 0, 100, packets * 1460)];
            let (_, records) = run(config, spec(leaf_spine(9, 16, 4), 1), flow);
            let took = (records[0].delivered.unwrap() - records[0].arrival).as_ps();
            let line = packets * 120_000;
            assert!(took > line && took < line + line / 100 + 3 * phase_ps, "{took} of {line}");
        }
    }
}

mod loss {
    use super::*;

    /// §3.5: recovery from the loss of any packet. IMC10 at load .6 with 1 % loss on every link.
    #[test]
    fn every_flow_finishes_with_1_percent_loss_of_everything() {
        for config in presets() {
            let spec = spec(leaf_spine(9, 16, 4), 5);
            let dcpim = config.on(&facts(&spec.topology)).unwrap();
            assert_all_finish_with_loss::<DcpimFamily>(dcpim, spec, 100);
        }
    }
}

mod clocks {
    use super::*;

    /// §3.5: clocks need not be synchronised. Within the slack of beta = 1.3 (0.78 us) offsets cost
    /// little; stages, and even phases, apart they cost matches but no flow starves.
    #[test]
    fn matching_survives_clocks_apart() {
        let mean_fct = |offset: Span| {
            let mut spec = spec(leaf_spine(2, 8, 2), 9);
            spec.clocks = ClockSpec { offset_max: offset, drift_ppm_max: 20.0 };
            let mut rng = Rng::new(4, 0, Purpose::Test);
            let flow = |i: u64| {
                let src = rng.below(16) as u32;
                let dst = (src + 1 + rng.below(15) as u32) % 16;
                arrival(i * 1_500_000, src, dst, 200_000)
            };
            let flows = (0..600).map(flow).collect();
            let (status, records) = run(DcpimConfig::paper(), spec, flows);
            assert_eq!(status, Status::Finished);
            let fct = |r: &FlowRecord| (r.delivered.unwrap() - r.arrival).as_us_f64();
            records.iter().map(fct).sum::<f64>() / records.len() as f64
        };
        let together = mean_fct(Span::ZERO);
        for (offset, factor) in
            [(Span::from_ns(300), 1.1), (Span::from_us(2), 2.0), (Span::from_us(100), 5.0)]
        {
            let apart = mean_fct(offset);
            assert!(apart < factor * together, "{offset}: {apart} us against {together} us");
        }
    }
}
