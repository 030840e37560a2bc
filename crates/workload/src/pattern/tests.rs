//! Laws of the patterns: rates, independence, uniformity, counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rampmeter_types::{Bytes, NodeId, Rate, Span, Time};

use super::HostSet;
use super::burst::{BatchPattern, Bursts, Direction, Fan, FlowVolume, Grid, PoissonIncast, Rounds};
use super::pairs::Pairs;
use super::poisson::{Load, OnOff, Poisson};
use super::skewed_all_to_all::SkewedPairs;
use crate::flow::Flow;
use crate::size::{SizeDist, named};

fn load(fraction: f64) -> Load {
    Load {
        fraction,
        access_rate: Rate::from_gbps(100),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
    }
}

fn process(pairs: Pairs, fraction: f64) -> Poisson {
    let sizes = Arc::new(SizeDist::fixed(Bytes::new(14_600)));
    let hosts = HostSet::all(pairs.n_hosts());
    Poisson::new(pairs, hosts, sizes, &load(fraction), 0)
}

fn bursts(law: BatchPattern, n: u64) -> Bursts {
    let rounds = Rounds { start: Time::from_ps(1000), period: Span::from_us(100), n };
    Bursts { pattern: Arc::new(law), rounds, stream: 0 }
}

fn pairs_of(flows: impl Iterator<Item = Flow>) -> BTreeMap<(u32, u32), u64> {
    let mut counts = BTreeMap::new();
    for flow in flows {
        assert_ne!(flow.src, flow.dst);
        *counts.entry((flow.src.get(), flow.dst.get())).or_insert(0) += 1;
    }
    counts
}

/// Chi-square of equal cells, with 4 standard deviations of slack: p about 1e-4.
fn assert_uniform(counts: impl IntoIterator<Item = u64>, cells: usize) {
    let counts: Vec<u64> = counts.into_iter().collect();
    assert_eq!(counts.len(), cells);
    let mean = counts.iter().sum::<u64>() as f64 / cells as f64;
    let chi2: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    let freedom = cells as f64 - 1.0;
    let bound = freedom + 4.0 * (2.0 * freedom).sqrt();
    assert!(chi2 < bound, "chi-square {chi2}, bound {bound}");
}

mod poisson {
    use super::*;

    #[test]
    fn the_offered_load_includes_headers() {
        let sizes = Arc::new(named("imc10").unwrap());
        let pairs = Pairs::AllToAll { n_hosts: 144 };
        let flows: Vec<Flow> = Poisson::new(pairs, HostSet::all(144), sizes, &load(0.6), 0)
            .flows(1)
            .take(400_000)
            .collect();
        let wire_bits = |flow: &Flow| flow.size.get() as f64 * 8.0 * 1500.0 / 1460.0;
        let offered: f64 = flows.iter().map(wire_bits).sum();
        let squares: f64 = flows.iter().map(|flow| wire_bits(flow).powi(2)).sum();
        let capacity = 144.0 * 100e9 * flows.last().unwrap().arrival.as_secs_f64();
        // A compound Poisson sum has variance n E[X^2].
        let error = squares.sqrt() / capacity;
        let load = offered / capacity;
        assert!((load - 0.6).abs() < 4.0 * error && error < 0.005, "{load} +- {error}");
    }

    #[test]
    fn gaps_are_exponential_and_independent() {
        let process = process(Pairs::AllToAll { n_hosts: 8 }, 0.5);
        let n = 100_000;
        let times: Vec<u64> = process.flows(3).take(n).map(|flow| flow.arrival.as_ps()).collect();
        let starts = std::iter::once(0).chain(times.iter().copied());
        let mut gaps: Vec<f64> =
            times.iter().zip(starts).map(|(&t, before)| (t - before) as f64).collect();
        let mean = 1.0 / process.arrivals_per_ps;
        let lag: f64 =
            gaps.windows(2).map(|w| (w[0] / mean - 1.0) * (w[1] / mean - 1.0)).sum::<f64>();
        assert!((lag / (n as f64).sqrt()).abs() < 4.0, "correlation of neighbours {lag}");
        gaps.sort_unstable_by(f64::total_cmp);
        let worst = gaps.iter().enumerate().fold(0.0f64, |worst, (i, gap)| {
            worst.max((1.0 - (-gap / mean).exp() - i as f64 / n as f64).abs())
        });
        assert!(worst < 1.95 / (n as f64).sqrt() + 1e-4, "{worst}");
    }

    /// With periods far below the mean gap the process is Poisson. A draw a period would not end.
    #[test]
    fn periods_far_below_the_gap_take_no_time_and_keep_the_load() {
        for on_ps in [1, 1_000, 1_000_000_000] {
            let poisson = process(Pairs::AllToAll { n_hosts: 8 }, 1e-6);
            let mean = 1.0 / poisson.arrivals_per_ps;
            let (on_mean, off_mean) = (Span::from_ps(on_ps), Span::from_ps(3 * on_ps));
            let n = 20_000;
            let times =
                OnOff { poisson, on_mean, off_mean }.flows(2).take(n).map(|flow| flow.arrival);
            let last = times.last().unwrap().as_ps() as f64;
            let error = (last / n as f64 / mean - 1.0).abs();
            assert!(error < 4.0 / (n as f64).sqrt(), "on for {on_ps} ps: {error}");
        }
    }

    #[test]
    fn each_ordered_pair_is_equally_likely() {
        let counts = pairs_of(process(Pairs::AllToAll { n_hosts: 16 }, 0.6).flows(5).take(240_000));
        assert_uniform(counts.into_values(), 16 * 15);
    }

    #[test]
    fn one_pair_alone_is_a_poisson_process() {
        // The counts of a pair in equal windows have a variance equal to their mean.
        let process = process(Pairs::AllToAll { n_hosts: 4 }, 0.6);
        let window = (40.0 / process.arrivals_per_ps) as u64;
        let mut counts = vec![0.0f64; 2000];
        for flow in process.flows(9) {
            let at = (flow.arrival.as_ps() / window) as usize;
            let Some(count) = counts.get_mut(at) else { break };
            if (flow.src.get(), flow.dst.get()) == (2, 1) {
                *count += 1.0;
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!((variance / mean - 1.0).abs() < 4.0 * (2.0 / n).sqrt(), "{variance} {mean}");
    }

    #[test]
    fn a_permutation_is_one_to_one_and_uniform() {
        let mut seen = BTreeMap::new();
        for seed in 0..9000 {
            let pairs =
                pairs_of(process(Pairs::Permutation { n_hosts: 4 }, 0.5).flows(seed).take(60));
            assert_eq!(pairs.len(), 4);
            let to: Vec<u32> = pairs.keys().map(|&(_, dst)| dst).collect();
            *seen.entry(to).or_insert(0) += 1;
        }
        // Four hosts have nine permutations without fixed points.
        assert_uniform(seen.into_values(), 9);
    }

    #[test]
    fn racks_keep_local_and_remote_pairs_apart() {
        let (n_hosts, rack) = (12, 4);
        let local = pairs_of(process(Pairs::SameRack { n_hosts, rack }, 0.4).flows(1).take(36_000));
        assert!(local.keys().all(|&(src, dst)| src / rack == dst / rack));
        assert_uniform(local.into_values(), 12 * 3);
        let remote =
            pairs_of(process(Pairs::OtherRack { n_hosts, rack }, 0.4).flows(1).take(96_000));
        assert!(remote.keys().all(|&(src, dst)| src / rack != dst / rack));
        assert_uniform(remote.into_values(), 12 * 8);
    }

    #[test]
    fn streams_are_apart_and_repeat_with_the_seed() {
        let first = |seed, stream| -> Vec<Flow> {
            let process = Poisson { stream, ..process(Pairs::AllToAll { n_hosts: 8 }, 0.5) };
            process.flows(seed).take(50).collect()
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }
}

mod burst {
    use super::*;

    fn fan(direction: Direction, volume: FlowVolume) -> Fan {
        Fan { direction, n: 5, hub: None, volume, n_hosts: 8, peers: HostSet::all(8) }
    }

    #[test]
    fn an_incast_has_distinct_senders_and_splits_the_total_exactly() {
        let incast = bursts(
            BatchPattern::Fan(fan(Direction::Incast, FlowVolume::Total(Bytes::new(103)))),
            4000,
        );
        assert_eq!((incast.n_flows(), incast.mean_bytes()), (20_000, 20.6));
        let flows: Vec<Flow> = incast.flows(1).collect();
        for (round, flows) in flows.chunks(5).enumerate() {
            let at = Time::from_ps(1000) + Span::from_us(100) * round as u64;
            assert!(flows.iter().all(|flow| flow.arrival == at && flow.dst == flows[0].dst));
            assert_eq!(pairs_of(flows.iter().copied()).len(), 5);
            let sizes: Vec<u64> = flows.iter().map(|flow| flow.size.get()).collect();
            assert_eq!(sizes, [21, 21, 21, 20, 20]);
        }
        assert_uniform(pairs_of(flows.into_iter()).into_values(), 8 * 7);
    }

    #[test]
    fn an_outcast_reverses_an_incast_and_keeps_a_given_hub() {
        let law = Fan {
            hub: Some(NodeId::new(3)),
            ..fan(Direction::Outcast, FlowVolume::PerFlow(Bytes::new(9)))
        };
        let outcast = bursts(BatchPattern::Fan(law), 700);
        let flows: Vec<Flow> = outcast.flows(1).collect();
        assert!(flows.iter().all(|flow| flow.src.get() == 3 && flow.size.get() == 9));
        assert_uniform(pairs_of(flows.into_iter()).into_values(), 7);
    }

    #[test]
    fn peers_bound_the_wide_side_and_the_hub_is_never_among_them() {
        let volume = FlowVolume::PerFlow(Bytes::new(9));
        for (hub, first, cells) in [(1, 3, 5), (4, 2, 5)] {
            let peers = HostSet::Stride { first, count: cells + u32::from(hub >= first), step: 1 };
            let law = Fan {
                hub: Some(NodeId::new(hub)),
                n: 2,
                peers: peers.clone(),
                ..fan(Direction::Incast, volume)
            };
            let counts = pairs_of(bursts(BatchPattern::Fan(law), 2000).flows(1));
            assert!(
                counts.keys().all(|&(src, dst)| dst == hub && peers.contains(NodeId::new(src)))
            );
            assert_uniform(counts.into_values(), cells as usize);
        }
    }

    #[test]
    fn a_grid_has_every_pair_once_a_round() {
        let range = |first, count| HostSet::Stride { first, count, step: 1 };
        let size = Bytes::new(7);
        for (senders, receivers, n) in [
            (range(0, 4), range(4, 3), 12),
            (range(0, 4), range(2, 4), 14),
            (range(0, 9), range(0, 9), 72),
        ] {
            let grid = bursts(BatchPattern::Grid(Grid { senders, receivers, size }), 2);
            assert_eq!(grid.n_flows(), 2 * n);
            let counts = pairs_of(grid.flows(1));
            assert!(counts.values().all(|&count| count == 2) && counts.len() as u64 == n);
            let times: Vec<Time> = grid.flows(1).map(|flow| flow.arrival).collect();
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn poisson_incasts_offer_their_load() {
        let volume = FlowVolume::PerFlow(Bytes::new(125_560));
        let fan =
            Fan { n: 50, n_hosts: 144, peers: HostSet::all(144), ..fan(Direction::Incast, volume) };
        let per_host = load(0.02).arrivals_per_ps(125_560.0);
        let incasts = PoissonIncast { fan, events_per_ps: per_host * 144.0 / 50.0, stream: 0 };
        let n = 20_000;
        let flows: Vec<Flow> = incasts.flows(1).take(n * 50).collect();
        let bits = flows.len() as f64 * 125_560.0 * 8.0 * 1500.0 / 1460.0;
        let load = bits / (144.0 * 100e9 * flows.last().unwrap().arrival.as_secs_f64());
        assert!((load / 0.02 - 1.0).abs() < 4.0 / (n as f64).sqrt(), "{load}");
        assert!(flows.chunks(50).all(|c| c.iter().all(|f| f.arrival == c[0].arrival)));
    }
}

mod skewed {
    use super::*;

    #[test]
    fn skew_zero_is_even_and_skew_makes_hot_receivers() {
        let hosts = HostSet::all(8);
        let skewed = |skew| {
            bursts(
                BatchPattern::Skewed(SkewedPairs {
                    hosts: hosts.clone(),
                    size: Bytes::new(700_000),
                    skew,
                }),
                1,
            )
        };
        assert!(skewed(0.0).flows(1).all(|flow| flow.size.get() == 100_000));
        let flows: Vec<Flow> = skewed(1.0).flows(1).collect();
        assert_eq!(pairs_of(flows.iter().copied()).len(), 56);
        let mut received = [0u64; 8];
        let mut sent = [0u64; 8];
        for flow in &flows {
            received[flow.dst.idx()] += flow.size.get();
            sent[flow.src.idx()] += flow.size.get();
        }
        assert!(sent.iter().all(|&sent| sent.abs_diff(700_000) <= 7), "{sent:?}");
        received.sort_unstable();
        assert!(received[7] > 4 * received[0], "{received:?}");
        let other: Vec<Flow> = skewed(1.0).flows(2).collect();
        assert_ne!(flows, other, "the ranking depends on the seed");
    }
}
