//! dcPIM in whole simulations: exact times, loss of everything in the paper's network, clocks
//! apart.

use std::collections::BTreeSet;

use rampmeter_proto::dcpim::config::Notification;
use rampmeter_proto::dcpim::{DcpimConfig, DcpimTransport};
use rampmeter_sim::*;
use rampmeter_testkit::bodies::assert_all_finish_with_loss;
use rampmeter_testkit::{arrival, facts, leaf_spine, spec};
use rampmeter_types::{Purpose, Rng, Span, Time};

fn presets() -> [DcpimConfig; 2] {
    [DcpimConfig::paper(), DcpimConfig::reference()]
}

fn run(config: DcpimConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> (Status, Vec<FlowRecord>) {
    let dcpim = config.derive(&facts(&spec.topology)).unwrap();
    rampmeter_testkit::run::<DcpimTransport>(dcpim, spec, arrivals)
}

mod alone {
    use super::*;

    /// The notification (3.2 ns at 100 Gbit/s) is sent first, then the pipeline runs as fast as
    /// links do. The first packet between racks takes 4 x 650 ns and 300 ns, each further one 120
    /// ns.
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
                // The paper's finish takes another spine than the last packet. It arrives there
                // first, and precedes the packet on the last link.
                let overtakes =
                    config.notification == Notification::Explicit && dst == 22 && packets > 1;
                let control = if overtakes { 6_400 } else { 3_200 };
                assert_eq!(delivered.as_ps(), delivered_ns * 1_000 + control);
            }
        }
    }

    /// protocol-notes: 5.508 us and 2.846 us from submission to the final acknowledgement, plus the
    /// notification. The first rows of the published run have 5 511 200 ps.
    #[test]
    fn the_acknowledgement_of_the_reference_preset_takes_the_published_time() {
        for (dst, ps) in [(22, 5_511_200), (5, 2_849_600)] {
            let flow = vec![arrival(24_600, 1, dst, 1460)];
            let (_, records) = run(DcpimConfig::reference(), spec(leaf_spine(9, 16, 4), 3), flow);
            assert_eq!((records[0].completed.unwrap() - records[0].arrival).as_ps(), ps);
        }
    }

    /// A matched flow alone gets all k channels. Once data flows it flows at line rate, except for
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

    /// §3.5: recovery from the loss of any packet. IMC10 at load 0.6 with 1 % loss on every link.
    #[test]
    fn every_flow_finishes_with_1_percent_loss_of_everything() {
        for config in presets() {
            let spec = spec(leaf_spine(9, 16, 4), 5);
            let dcpim = config.derive(&facts(&spec.topology)).unwrap();
            assert_all_finish_with_loss::<DcpimTransport>(dcpim, spec, 100);
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
                let src = rng.uniform_below(16) as u32;
                let dst = (src + 1 + rng.uniform_below(15) as u32) % 16;
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

mod matching {
    use std::sync::Arc;

    use super::*;

    /// Returns the size of a matching of `n` hosts. Each edge of a random bipartite graph of mean
    /// degree about `degree` is a long flow. The second phase is observed, as receivers that send
    /// tokens in the third are those that it has matched.
    fn matched(n: u32, degree: u32, rounds: u8, seed: u64) -> usize {
        let one_channel = DcpimConfig { channels: 1, fct_round: false, ..DcpimConfig::paper() };
        let config = DcpimConfig { matching_rounds: rounds, ..one_channel };
        let spec = SimSpec { paranoid: false, ..spec(leaf_spine((n / 16).into(), 16, 4), seed) };
        let dcpim = Arc::new(config.derive(&facts(&spec.topology)).unwrap());
        let phase = dcpim.phase();
        let flows = edges(n, degree, seed).into_iter();
        let flows: Vec<Arrival> = flows.map(|(src, dst)| arrival(0, src, dst, 1 << 26)).collect();
        let mut sim = Sim::<DcpimTransport, _, _>::new(spec, dcpim, flows.into_iter(), NoProbe);
        let mut tokens_at = |parts_of_a_phase: u64| -> Vec<u64> {
            let until = Time::ZERO + phase.scale_floor(parts_of_a_phase, 10);
            while sim.now() < until {
                sim.run(1);
            }
            (0..n).map(|host| sim.endpoint(host).stats().tokens_sent).collect()
        };
        let (before, after) = (tokens_at(22), tokens_at(29));
        before.iter().zip(&after).filter(|(before, after)| before < after).count()
    }

    fn edges(n: u32, degree: u32, seed: u64) -> BTreeSet<(u32, u32)> {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let edge = |_| (rng.uniform_below(n as usize) as u32, rng.uniform_below(n as usize) as u32);
        (0..n * degree).map(edge).filter(|(src, dst)| src != dst).collect()
    }

    /// Returns the size of a matching that takes every edge that it can, in their order.
    fn greedy(edges: &BTreeSet<(u32, u32)>) -> usize {
        let (mut sends, mut receives) = (BTreeSet::new(), BTreeSet::new());
        let mut free = |&(src, dst): &(u32, u32)| {
            !sends.contains(&src)
                && !receives.contains(&dst)
                && sends.insert(src)
                && receives.insert(dst)
        };
        edges.iter().filter(|edge| free(edge)).count()
    }

    /// Theorem 1 (§3.1) on whole hosts and their packets: after r rounds E[M] is at least (1 - d
    /// alpha / 4^r) M*. M* = n / alpha is the size to which the matching converges. It is tested
    /// for r from 1 to 4. A bound below zero proves nothing.
    #[test]
    fn matchings_are_at_least_as_large_as_theorem_1_requires() {
        let mut n_warned = 0;
        for (n, degree, runs) in [(144, 1, 4), (144, 2, 4), (144, 5, 4), (1024, 5, 1)] {
            let mean = |rounds| {
                let sizes = (1..=runs).map(|seed| matched(n, degree, rounds, seed));
                sizes.sum::<usize>() as f64 / runs as f64
            };
            let n_edges: usize = (1..=runs).map(|seed| edges(n, degree, seed).len()).sum();
            let mean_degree = n_edges as f64 / f64::from(n) / runs as f64;
            let converged = mean(8);
            for rounds in 1..=4 {
                let bound = converged - mean_degree * f64::from(n) / 4f64.powi(rounds.into());
                let size = mean(rounds);
                let what = format!("n {n}, d {mean_degree:.2}, r {rounds}: {size}");
                println!("{what} of {converged}, theorem {bound:.1}");
                n_warned += u32::from(bound > 0.0);
                assert!(size >= bound, "{what}, theorem {bound}");
            }
            // No maximal matching is more than twice as large as another.
            let any = (1..=runs).map(|seed| greedy(&edges(n, degree, seed))).sum::<usize>();
            let any = any as f64 / runs as f64;
            assert!(2.0 * converged >= any, "{converged}, {any} in any order");
        }
        assert!(n_warned >= 11, "{n_warned} bounds above 0");
    }
}
