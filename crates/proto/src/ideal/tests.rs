//! Tests of the ideal scheduler against theory.

use super::*;
use proptest::prelude::*;
use rampmeter_types::fabric::RegularPaths;
use rampmeter_types::{DuplexRates, Purpose, Rate, Rng};

/// Runs jobs, in order of arrival, to the end. Completion times by number.
fn run(n_hosts: u32, jobs: &[(Time, Job)]) -> Vec<Time> {
    run_over(IdealScheduler::new(equal(n_hosts), [], None), jobs)
}

fn run_over(mut scheduler: IdealScheduler, jobs: &[(Time, Job)]) -> Vec<Time> {
    let mut ends = vec![Time::NEVER; jobs.len()];
    let mut done = Vec::new();
    let mut next = jobs.iter().peekable();
    loop {
        let completion = scheduler.next_completion();
        match next.peek() {
            Some(&&(at, job)) if at < completion => {
                scheduler.submit(at, job);
                next.next();
            }
            _ if completion == Time::NEVER => return ends,
            _ => {
                scheduler.complete(completion, &mut done);
                done.drain(..).for_each(|id| ends[id as usize] = completion);
            }
        }
    }
}

fn job(id: u32, src: u32, dst: u32, ps: u64) -> Job {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    let links = [src.get(), dst.get()];
    Job { id, src, dst, links, parts: [None; 2], rate: RATE, service: Span::from_ps(ps) }
}

const RATE: Rate = Rate::from_gbps(10);

/// Returns the rates of hosts that send and receive at `RATE`.
fn equal(n_hosts: u32) -> impl Iterator<Item = DuplexRates> {
    (0..n_hosts).map(|_| DuplexRates::equal(RATE))
}

/// Two links of a host, of which one peer is reached by one, and another by both.
#[test]
fn flows_by_the_same_part_of_links_share_it_and_others_get_the_rest() {
    let twice = Rate::from_gbps(20);
    let hosts = [twice, RATE, RATE, twice].map(DuplexRates::equal);
    let jobs = [
        (Time::ZERO, Job { parts: [Some(0), None], ..job(0, 0, 1, 1_000) }),
        (Time::ZERO, Job { parts: [Some(0), None], ..job(1, 0, 2, 2_000) }),
        (Time::ZERO, Job { rate: twice, ..job(2, 0, 3, 3_000) }),
    ];
    let ends = run_over(IdealScheduler::new(hosts, [DuplexRates::equal(RATE)], None), &jobs);
    // The third flow has one link until 3000 ps, then both.
    assert_eq!(ends, [1_000, 3_000, 4_500].map(Time::from_ps));
}

/// A longer flow gets the rest of a link, and a fast host serves slow ones together.
#[test]
fn flows_of_slow_hosts_leave_the_rest_of_a_fast_link_to_others() {
    let fast = Rate::from_gbps(40);
    let hosts = [RATE, RATE, fast, fast].map(DuplexRates::equal);
    let jobs = [
        (Time::ZERO, job(0, 0, 3, 1_000)),
        (Time::ZERO, job(1, 1, 3, 1_000)),
        (Time::ZERO, Job { rate: fast, ..job(2, 2, 3, 2_000) }),
    ];
    let ends = run_over(IdealScheduler::new(hosts, [], None), &jobs);
    // Half of the link for 1000 ps, then all of it.
    assert_eq!(ends, [1_000, 1_000, 2_500].map(Time::from_ps));
}

#[test]
fn a_shorter_flow_interrupts_a_longer_one_and_others_do_not() {
    let at = Time::from_ps;
    let jobs = [
        (at(0), job(0, 0, 9, 100)),
        (at(10), job(1, 1, 9, 20)),
        (at(15), job(2, 2, 9, 90)),
        (at(20), job(3, 3, 8, 500)),
    ];
    assert_eq!(run(10, &jobs), [at(120), at(30), at(210), at(520)]);
}

/// On one link this is SRPT. In M/G/1 with SRPT and sizes of two kinds, 1 and 100, the mean
/// response times follow from Schrage and Miller (1966). The short ones see an M/D/1 queue of their
/// own kind. They also see the rest of a long one when only a short piece of it remains.
#[test]
fn on_one_link_mean_response_times_are_those_of_srpt() {
    // W(x) = lambda (m2(x) + x^2 (1 - F(x))) / (2 (1 - rho(x))^2), R(x) = integral of dt / (1 -
    // rho(t)).
    let (lambda, short, long) = (0.004, 1.0, 100.0);
    let p_long = 0.5;
    let (load_short, load) = (lambda * 0.5 * short, lambda * (0.5 * short + p_long * long));
    // Sizes are distinct in kind only: a short one waits for short ones before it, of which rho
    // counts half by symmetry. The correction is of the order of load_short and below the
    // tolerance.
    let wait = |m2: f64, rho: f64| lambda * m2 / (2.0 * (1.0 - rho) * (1.0 - rho));
    let short_mean = wait(0.5 * short * short + short * short * p_long, load_short) + short;
    let m2 = 0.5 * short * short + p_long * long * long;
    let mut rng = Rng::new(7, 0, Purpose::Test);
    let mut now = 0.0;
    let unit = 1_000_000.0;
    let n = 200_000;
    let jobs: Vec<(Time, Job)> = (0..n)
        .map(|id| {
            now += rng.exponential() / lambda;
            let size = if rng.bernoulli(p_long) { long } else { short };
            let at = Time::from_ps((now * unit) as u64);
            (at, job(id, id % 2 + 1, 0, (size * unit) as u64))
        })
        .collect();
    let ends = run(3, &jobs);
    let mean = |size: f64| {
        let of_size = jobs
            .iter()
            .zip(&ends)
            .filter(|((_, job), _)| job.service == Span::from_ps((size * unit) as u64));
        let times: Vec<f64> =
            of_size.map(|((at, _), end)| (*end - *at).as_ps() as f64 / unit).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    assert!((mean(short) / short_mean - 1.0).abs() < 0.02, "{} {short_mean}", mean(short));
    // A long one starts when the work before it is done, as in the busy period of all. Its service
    // is stretched by the short ones that arrive meanwhile, and by long ones with a smaller
    // remaining size.
    let at_least = wait(m2, load_short) + long;
    let at_most = wait(m2, load) + long / (1.0 - load_short);
    let long_mean = mean(long);
    assert!(at_least < long_mean && long_mean < at_most, "{at_least} {long_mean} {at_most}");
}

/// Racks of two hosts with `tor_up` links each, as fast as those of hosts.
fn core(tor_uplinks: u16) -> CoreCapacity {
    let rack_of = (0..8).map(|host| host / 2).collect();
    let paths = RegularPaths { rack_of, pod_of: vec![0; 4], tor_uplinks, agg_uplinks: 1 };
    CoreCapacity::new(&paths, Rate::from_gbps(10), Rate::from_gbps(10))
}

#[test]
fn flows_between_racks_wait_for_shorter_ones_and_those_within_a_rack_do_not() {
    let at = Time::from_ps;
    let jobs = [(at(0), job(0, 0, 4, 100)), (at(0), job(1, 1, 6, 30)), (at(0), job(2, 2, 3, 70))];
    let one_link = IdealScheduler::new(equal(8), [], Some(core(1)));
    assert_eq!(run_over(one_link, &jobs), [at(130), at(30), at(70)]);
    let two_links = IdealScheduler::new(equal(8), [], Some(core(2)));
    assert_eq!(run_over(two_links, &jobs), run(8, &jobs));
}

/// One host of a rack sends to the other rack while two others send to the same rack. The down link
/// of that rack is the limit as well.
#[test]
fn links_down_to_a_rack_are_limits_too() {
    let at = Time::from_ps;
    let jobs = [(at(0), job(0, 0, 6, 100)), (at(0), job(1, 2, 7, 30))];
    let one_link = IdealScheduler::new(equal(8), [], Some(core(1)));
    assert_eq!(run_over(one_link, &jobs), [at(130), at(30)]);
}

/// Pods of four racks of one host, with two links out of a pod.
#[test]
fn flows_between_pods_wait_for_the_links_of_pods() {
    let at = Time::from_ps;
    let pod_of = (0..8).map(|rack| rack / 4).collect();
    let paths = RegularPaths { rack_of: (0..8).collect(), pod_of, tor_uplinks: 1, agg_uplinks: 2 };
    let pods = CoreCapacity::new(&paths, Rate::from_gbps(10), Rate::from_gbps(10));
    let jobs = [
        (at(0), job(0, 0, 4, 100)),
        (at(0), job(1, 1, 5, 30)),
        (at(0), job(2, 2, 6, 50)),
        (at(0), job(3, 3, 2, 200)),
    ];
    let scheduler = IdealScheduler::new(equal(8), [], Some(pods));
    assert_eq!(run_over(scheduler, &jobs), [at(130), at(30), at(50), at(200)]);
}

/// A single server that all flows share is SRPT for any hosts: one rack's only link.
#[test]
fn one_link_between_racks_is_a_single_server() {
    let mut rng = Rng::new(3, 0, Purpose::Test);
    let mut now = 0;
    let jobs: Vec<(Time, Job)> = (0..2_000)
        .map(|id| {
            now += rng.uniform_below(200) as u64;
            // Hosts 0 and 1 send to the second rack's 2 and 3: at one link at most one at a time.
            let (src, dst) = (rng.uniform_below(2) as u32, 2 + rng.uniform_below(2) as u32);
            (Time::from_ps(now), job(id, src, dst, 1 + rng.uniform_below(150) as u64))
        })
        .collect();
    let shared = run_over(IdealScheduler::new(equal(8), [], Some(core(1))), &jobs);
    let same_ends: Vec<(Time, Job)> =
        jobs.iter().map(|&(at, one)| (at, job(one.id, 0, 2, one.service.as_ps()))).collect();
    assert_eq!(shared, run(8, &same_ends));
}

proptest! {
    /// Work is conserved: some flow of every contended link is served, and no link serves two.
    #[test]
    fn matchings_of_the_ideal_scheduler_are_maximal(seed in any::<u64>()) {
        let mut rng = Rng::new(seed, 0, Purpose::Test);
        let mut scheduler = IdealScheduler::new(equal(8), [], None);
        for id in 0..40 {
            let src = rng.uniform_below(8) as u32;
            let dst = (src + 1 + rng.uniform_below(7) as u32) % 8;
            scheduler.submit(Time::ZERO, job(id, src, dst, 1 + rng.uniform_below(50) as u64));
            let served = || scheduler.running.iter();
            for end in 0..8 {
                let node = NodeId::new(end);
                prop_assert!(served().filter(|a| a.job.src == node).count() <= 1);
                prop_assert!(served().filter(|a| a.job.dst == node).count() <= 1);
            }
            for idle in &scheduler.waiting {
                let meets = |a: &&ActiveFlow| {
                    a.job.src == idle.job.src || a.job.dst == idle.job.dst
                };
                prop_assert!(served().any(|a| meets(&a) && a.remaining <= idle.remaining));
            }
        }
    }
}
