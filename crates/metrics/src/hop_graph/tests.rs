//! No schedule of packets is faster than the minimum time.

use super::*;
use proptest::prelude::*;
use rampmeter_types::{Padding, Rate, Segmentation};

const MODEL: IdealModel = IdealModel {
    forwarding: Forwarding::StoreAndForward,
    segmentation: Segmentation::new(Bytes::new(1_460), Bytes::new(40), Padding::Exact),
};

type Links = Vec<Vec<HopLink>>;

fn hop(gbps: u64, delay_ns: u64) -> PathHop {
    PathHop { rate: Rate::from_gbps(gbps), delay: Span::from_ns(delay_ns) }
}

/// Returns two racks whose hosts have one link of 100 Gbit/s, over `spines` spines.
fn leaf_spine(spines: usize, core_gbps: u64) -> Links {
    let core = |next: &dyn Fn(usize) -> Vec<usize>| {
        (0..spines).map(|n| (hop(core_gbps, 650), next(n))).collect()
    };
    vec![
        vec![(hop(100, 650), (0..spines).collect())],
        core(&|n| vec![n]),
        core(&|_| vec![0]),
        vec![(hop(100, 650), vec![])],
    ]
}

fn minimum_time(links: &Links, bytes: u64) -> (u64, bool) {
    let MinimumTime { time, is_exact } =
        HopGraph::new(MODEL, links).minimum_time(Bytes::new(bytes));
    (time.as_ps(), is_exact)
}

/// 10 MB between racks that are joined by four spines of 25 Gbit/s use the full rate of the hosts'
/// links.
#[test]
fn packets_spread_over_slow_links_of_the_core() {
    let packets = 6_850;
    let (time, is_exact) = minimum_time(&leaf_spine(4, 25), 1460 * packets);
    let alone = 4 * 650_000 + 2 * 120_000 + 2 * 480_000;
    assert_eq!((time, is_exact), (alone + (packets - 1) * 120_000, false));
    // Over two spines each link of the core carries every other packet.
    let (time, _) = minimum_time(&leaf_spine(2, 25), 1460 * packets);
    assert_eq!(time, alone + (packets / 2 - 1) * 480_000);
}

#[test]
fn the_ideal_of_whole_packets_is_reached_on_one_path_of_a_wide_core() {
    let alone = 4 * 650_000 + 2 * 120_000 + 2 * 30_000;
    assert_eq!(minimum_time(&leaf_spine(4, 400), 1460), (alone, true));
    assert_eq!(minimum_time(&leaf_spine(4, 400), 14_600), (alone + 9 * 120_000, true));
}

/// Two packets, the second of 41 bytes: it overtakes the first on another path.
#[test]
fn a_short_last_packet_may_overtake() {
    let alone = 4 * 650_000 + 2 * 120_000 + 2 * 30_000;
    assert_eq!(minimum_time(&leaf_spine(4, 400), 1461), (alone, false));
}

/// Two interfaces at each end carry half of it each.
#[test]
fn packets_spread_over_interfaces() {
    let rails = |next: &dyn Fn(usize) -> Vec<usize>| {
        (0..2).map(|n| (hop(25, 1_000), next(n))).collect::<Vec<_>>()
    };
    let (time, _) = minimum_time(&vec![rails(&|n| vec![n]), rails(&|_| vec![])], 1460 * 100);
    assert_eq!(time, 2 * 1_000_000 + 51 * 480_000);
}

/// Three links of 100 and one of 10 Gbit/s: the slow one carries one packet in 31.
/// Two paths, each with a slow link, one at the sender's side and one at the receiver's.
#[test]
fn slow_links_of_several_hops_are_a_cut() {
    let links = vec![
        vec![(hop(100, 650), vec![0, 1])],
        vec![(hop(100, 650), vec![0]), (hop(10, 650), vec![1])],
        vec![(hop(10, 650), vec![0]), (hop(100, 650), vec![0])],
        vec![(hop(100, 650), vec![])],
    ];
    let packets = 1_000;
    let (time, is_exact) = minimum_time(&links, 1460 * packets);
    // 20 Gbit/s together.
    let busy = 600_000 * packets;
    assert!((busy..busy + 10_000_000).contains(&time) && !is_exact, "{time}");
}

#[test]
fn links_of_two_rates_carry_their_capacity() {
    let mut links = leaf_spine(4, 100);
    (links[0][0].0, links[3][0].0) = (hop(1_000, 650), hop(1_000, 650));
    for hops in &mut links[1..3] {
        hops[3].0 = hop(10, 650);
    }
    let (time, _) = minimum_time(&links, 1460 * 310);
    let share = (time - 2_600_000) as f64 / (310.0 * 12_000.0 * 1_000.0 / 310.0);
    assert!((share - 1.0).abs() < 0.03, "{share}");
}

prop_compose! {
    /// Draws hops of one to three links each, each followed by some links of the next.
    fn any_links()(
        hops in prop::collection::vec(
            prop::collection::vec((1..400u64, 0..2_000u64, 1..8usize), 1..4),
            1..6
        ),
    ) -> Links {
        let wide = |at: usize| hops.get(at + 1).map_or(0, Vec::len);
        let link = |at: usize, i: usize, (gbps, delay, mask): (u64, u64, usize)| {
            let mut next: Vec<usize> = (0..wide(at)).filter(|n| mask >> n & 1 == 1).collect();
            if next.is_empty() && wide(at) > 0 {
                next.push(i % wide(at));
            }
            // Each link of the next hop has a predecessor.
            if i == 0 {
                next = (0..wide(at)).collect();
            }
            (hop(gbps, delay), next)
        };
        let of = |(at, of): (usize, &Vec<(u64, u64, usize)>)| {
            of.iter().enumerate().map(|(i, &it)| link(at, i, it)).collect()
        };
        hops.iter().enumerate().map(of).collect()
    }
}

/// Delivers packets in this order, each over a path that `picks` chooses: links send packets in the
/// order in which they arrive. Returns the arrival time of the last one.
fn simulate(links: &Links, sizes: &[u64], picks: &[usize]) -> u64 {
    // Each packet: the time from which it is ready for its next link, its sending order, and the
    // link.
    let mut picks = picks.iter().copied().cycle();
    let mut ready: Vec<(u64, usize, usize)> = sizes
        .iter()
        .enumerate()
        .map(|(i, _)| (0, i, picks.next().unwrap_or(0) % links[0].len()))
        .collect();
    for hop in links {
        let mut free = vec![0u64; hop.len()];
        ready.sort_unstable();
        for (at, packet, link) in &mut ready {
            let (PathHop { rate, delay }, next) = &hop[*link];
            let start = free[*link].max(*at);
            free[*link] = start + rate.tx_time(Bytes::new(sizes[*packet])).as_ps();
            *at = free[*link] + delay.as_ps();
            *link = next.get(picks.next().unwrap_or(0) % next.len().max(1)).copied().unwrap_or(0);
        }
    }
    ready.iter().map(|&(at, ..)| at).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_faster_than_the_least_time(
        links in any_links(),
        full in 0..6usize,
        last in 1..1461u64,
        place in 0..6usize,
        picks in prop::collection::vec(0..6usize, 40),
    ) {
        let mut sizes = vec![1500; full];
        sizes.insert(place.min(full), last + 40);
        let (time, _) = minimum_time(&links, 1460 * full as u64 + last);
        let taken = simulate(&links, &sizes, &picks);
        prop_assert!(time <= taken, "{time} of {taken}");
    }

    /// On one path the minimum time is that of the best position of the short packet.
    #[test]
    fn the_least_time_of_a_path_is_exact(
        rates in prop::collection::vec((1..400u64, 0..2_000u64), 1..6),
        full in 1..6usize,
        last in 1..1461u64,
    ) {
        let n = rates.len();
        let next = |at: usize| if at + 1 < n { vec![0] } else { vec![] };
        let links: Links =
            rates.iter().enumerate().map(|(at, &(g, d))| vec![(hop(g, d), next(at))]).collect();
        let (time, is_exact) = minimum_time(&links, 1460 * full as u64 + last);
        let of = |place| {
            let mut sizes = vec![1500; full];
            sizes.insert(place, last + 40);
            simulate(&links, &sizes, &[0])
        };
        let best = (0..=full).map(of).min().unwrap();
        prop_assert!(time <= best);
        if is_exact {
            prop_assert_eq!(time, best);
        }
    }
}

const BURST_PS: u64 = 500_000;

/// Delivers packets in this order through shapers whose links have been idle for long. Returns the
/// arrival time of the last one.
fn simulate_shaped(links: &Links, sizes: &[u64], picks: &[usize]) -> u64 {
    let mut picks = picks.iter().copied().cycle();
    let mut ready: Vec<(u64, usize, usize)> =
        (0..sizes.len()).map(|i| (0, i, picks.next().unwrap_or(0) % links[0].len())).collect();
    for (number, hop) in links.iter().enumerate() {
        let mut free = vec![i128::MIN; hop.len()];
        ready.sort_unstable();
        for (at, packet, link) in &mut ready {
            let (PathHop { rate, delay }, next) = &hop[*link];
            let tx = rate.tx_time(Bytes::new(sizes[*packet])).as_ps();
            let start = free[*link].max(i128::from(*at));
            free[*link] = free[*link].max(start - i128::from(BURST_PS)) + i128::from(tx);
            *at = start as u64 + delay.as_ps();
            if number + 1 == links.len() {
                *at += tx;
            }
            *link = next.get(picks.next().unwrap_or(0) % next.len().max(1)).copied().unwrap_or(0);
        }
    }
    ready.iter().map(|&(at, ..)| at).max().unwrap_or(0)
}

fn shaped() -> IdealModel {
    IdealModel { forwarding: Forwarding::Shaped { burst: Span::from_ps(BURST_PS) }, ..MODEL }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_faster_through_shapers(
        links in any_links(),
        full in 0..40usize,
        last in 1..1461u64,
        place in 0..40usize,
        picks in prop::collection::vec(0..6usize, 40),
    ) {
        let mut sizes = vec![1500; full];
        sizes.insert(place.min(full), last + 40);
        let size = Bytes::new(1460 * full as u64 + last);
        let time = HopGraph::new(shaped(), &links).minimum_time(size).time.as_ps();
        let taken = simulate_shaped(&links, &sizes, &picks);
        prop_assert!(time <= taken, "{time} of {taken}");
    }

    /// Full packets on one path need exactly the minimum time.
    #[test]
    fn the_least_time_through_shapers_is_reached_on_one_path(
        rates in prop::collection::vec((1..400u64, 0..2_000u64), 1..6),
        n in 1..60usize,
    ) {
        let next = |at: usize| if at + 1 < rates.len() { vec![0] } else { vec![] };
        let link = |(at, &(gbps, delay)): (usize, &(u64, u64))| vec![(hop(gbps, delay), next(at))];
        let links: Links = rates.iter().enumerate().map(link).collect();
        let MinimumTime { time, is_exact } =
            HopGraph::new(shaped(), &links).minimum_time(Bytes::new(1460 * n as u64));
        prop_assert_eq!(time.as_ps(), simulate_shaped(&links, &vec![1500; n], &[0]));
        prop_assert!(is_exact);
    }
}
