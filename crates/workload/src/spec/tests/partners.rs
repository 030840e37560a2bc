//! Patterns whose hosts have partners: at once, at a load, and in periods.

use std::collections::BTreeMap;

use super::*;

/// Returns the flows of a plan as senders and receivers.
fn pairs(text: &str, seed: u64) -> Vec<(u32, u32)> {
    flows(text, seed).iter().map(|flow| (flow.src.get(), flow.dst.get())).collect()
}

const AT_ONCE: &str = "sizes = { fixed = 2000000 }\n";

#[test]
fn without_a_load_every_host_of_a_permutation_sends_once() {
    let text = format!("pattern = 'permutation'\n{AT_ONCE}start-us = 3.0\nflows = 16");
    let all = flows(&text, 1);
    assert_eq!(plan(&text).unwrap().total_flows(), Some(16));
    assert!(all.iter().all(|flow| flow.arrival == Time::from_ps(3_000_000)));
    assert!(all.iter().all(|flow| flow.size == Bytes::new(2_000_000)));
    let of = |end: fn(&Flow) -> u32| -> Vec<u32> {
        let mut hosts: Vec<u32> = all.iter().map(end).collect();
        hosts.sort_unstable();
        hosts
    };
    assert_eq!(of(|flow| flow.src.get()), Vec::from_iter(0..16));
    assert_eq!(of(|flow| flow.dst.get()), Vec::from_iter(0..16));
    assert_ne!(pairs(&text, 1), pairs(&text, 2));
}

#[test]
fn rounds_keep_partners_and_more_flows_than_there_are_is_a_warning() {
    let text = format!(
        "pattern = 'permutation'\n{AT_ONCE}rounds = 2\nperiod-us = 5.0\nflows = 40\n\
         hosts = {{ first = 4, count = 4 }}"
    );
    let all = pairs(&text, 1);
    assert_eq!(all[..4], all[4..]);
    assert!(all.iter().all(|&(src, dst)| (4..8).contains(&src) && (4..8).contains(&dst)));
    let expected = "workload.flows: 40 are more than the 8 there are without a load: 4 flows in \
                    each of 2 rounds";
    assert_eq!(plan(&text).unwrap().warnings(), [expected]);
}

#[test]
fn an_all_to_all_at_once_has_each_pair_of_its_hosts() {
    let text = format!("pattern = 'all-to-all'\n{AT_ONCE}hosts = [9, 'h2', 5]");
    let mut all = pairs(&text, 1);
    all.sort_unstable();
    assert_eq!(all, [(2, 5), (2, 9), (5, 2), (5, 9), (9, 2), (9, 5)]);
}

#[test]
fn a_stride_wraps_around_its_hosts() {
    let text = format!(
        "pattern = 'stride'\n{AT_ONCE}stride = 2\nhosts = {{ first = 1, count = 4, step = 3 }}"
    );
    assert_eq!(pairs(&text, 1), [(1, 7), (4, 10), (7, 1), (10, 4)]);
}

#[test]
fn a_bisection_pairs_the_halves_in_both_directions() {
    let text = format!("pattern = 'bisection'\n{AT_ONCE}");
    let all = pairs(&text, 1);
    assert!(all.iter().all(|&(src, dst)| (src < 8) != (dst < 8)));
    let mut to: Vec<u32> = all.iter().map(|&(_, dst)| dst).collect();
    to.sort_unstable();
    assert_eq!(to, Vec::from_iter(0..16));
}

#[test]
fn staggered_messages_have_their_shares_near_and_far() {
    let text = "pattern = 'staggered'\nrack-share = 0.5\npod-share = 0.3\nhosts-per-pod = 8\n\
                sizes = { fixed = 1000 }\nload = 0.5\nflows = 40000";
    let mut counts = [0u32; 3];
    for (src, dst) in pairs(text, 1) {
        counts[usize::from(src / 4 != dst / 4) + usize::from(src / 8 != dst / 8)] += 1;
    }
    for (count, share) in counts.into_iter().zip([0.5, 0.3, 0.2f64]) {
        let deviation = (40_000.0 * share * (1.0 - share)).sqrt();
        assert!((f64::from(count) - 40_000.0 * share).abs() < 4.0 * deviation, "{counts:?}");
    }
}

#[test]
fn a_load_is_that_of_the_hosts_that_take_part() {
    for keys in ["", "on-us = 20.0\noff-us = 60.0\n"] {
        let text = format!(
            "pattern = 'permutation'\nsizes = {{ fixed = 14600 }}\nload = 0.5\n{keys}\
             start-us = 50.0\nuntil-us = 20050.0\nhosts = {{ first = 2, count = 5, step = 3 }}"
        );
        let all = flows(&text, 1);
        assert!(all.iter().all(|flow| flow.arrival > Time::from_ps(50_000_000)));
        let mut sent: BTreeMap<u32, f64> = BTreeMap::new();
        for flow in &all {
            *sent.entry(flow.src.get()).or_default() += 15_000.0 * 8.0 / (100e9 * 20e-3);
        }
        assert_eq!(Vec::from_iter(sent.keys().copied()), [2, 5, 8, 11, 14]);
        // Of 250 periods of 80 us, and 8333 flows a host.
        assert!(sent.values().all(|load| (load - 0.5).abs() < 0.12), "{sent:?}");
    }
}

#[test]
fn periods_make_arrivals_bursty() {
    let count = |keys: &str| -> f64 {
        let text = format!(
            "pattern = 'permutation'\nsizes = {{ fixed = 14600 }}\nload = 0.2\n{keys}\
             until-us = 40000.0\nhosts = [0, 1]"
        );
        let mut windows = vec![0.0f64; 2000];
        for flow in flows(&text, 1).iter().filter(|flow| flow.src.get() == 0) {
            windows[(flow.arrival.as_ps() / 20_000_000) as usize] += 1.0;
        }
        let n = windows.len() as f64;
        let mean = windows.iter().sum::<f64>() / n;
        windows.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0) / mean
    };
    let (poisson, on_off) = (count(""), count("on-us = 30.0\noff-us = 90.0\n"));
    assert!((0.85..1.15).contains(&poisson), "variance over mean {poisson}");
    assert!(on_off > 5.0, "variance over mean {on_off}");
}

/// Plans with a wrong key, without their sizes, and a part of the error of each.
const WRONG: &[(&str, &str)] = &[
    (
        "pattern = 'permutation'\nhosts = { first = 0, count = 8, step = 3 }",
        "hosts: expected at least 2 of the hosts 0 to 15, got 8 from 0 to 21",
    ),
    (
        "pattern = 'permutation'\nhosts = { first = 0, count = 8, stride = 3 }",
        "unknown field `stride`, expected one of `first`, `count`, `step`",
    ),
    (
        "pattern = 'permutation'\nhosts = { first = 0, count = 8, step = 0 }",
        "hosts: expected a step of at least 1, got 0",
    ),
    ("pattern = 'permutation'\nhosts = [1, 2, 1]", "hosts[2]: expected each host once, got 1"),
    ("pattern = 'permutation'\nhosts = [1, 16]", "hosts[1]: expected a host below 16, got 16"),
    (
        "pattern = 'permutation'\nhosts = [1, 'h99']",
        "hosts[1]: expected a host of h0 to h15, got \"h99\"",
    ),
    (
        "pattern = 'permutation'\nhosts = [1]",
        "hosts: expected at least 2 of the hosts 0 to 15, got 1",
    ),
    (
        "pattern = 'permutation'\nhosts = ['tor']",
        "hosts[0]: expected the number or the name of a host, such as h3, got tor",
    ),
    ("pattern = 'permutation'\nhosts = [1.5, 2]", "expected the number or the name of a host"),
    (
        "pattern = 'permutation'\nhosts = 'all'",
        "invalid type: string \"all\", expected { first = 0, count = 16 }, with a step if \
  wanted, or a list of hosts",
    ),
    ("pattern = 'permutation'\non-us = 5.0", "on-us: expected no value without a load, got 5"),
    (
        "pattern = 'permutation'\nload = 0.1\non-us = 5.0\nflows = 1",
        "off-us: expected a time with on-us, got none",
    ),
    (
        "pattern = 'permutation'\nload = 0.1\nrounds = 2\nflows = 1",
        "rounds: expected no value with load, got rounds",
    ),
    (
        "pattern = 'permutation'\nrounds = 2",
        "period-us: expected a period for several rounds, got none",
    ),
    (
        "pattern = 'permutation'\nload = 0.1",
        "flows: expected flows or until-us, for a pattern without an end, got neither",
    ),
    (
        "pattern = 'bisection'\nhosts = [0, 1, 2]",
        "hosts: expected an even number of hosts, for two halves, got 3",
    ),
    (
        "pattern = 'stride'\nstride = 32",
        "stride: expected no multiple of the 16 hosts, as no host sends to itself, got 32",
    ),
    (
        "pattern = 'staggered'\nrack-share = 0.5\npod-share = 0.6\nhosts-per-pod = 8",
        "pod-share: expected at most 0.5 with rack-share = 0.5, got 0.6",
    ),
    (
        "pattern = 'staggered'\nrack-share = 0.5\npod-share = 0.2",
        "hosts-per-pod: expected a number, as the topology has no pods, got none",
    ),
    (
        "pattern = 'staggered'\nrack-share = 0.5\nhosts = [0, 1, 4]",
        "rack-share: expected 0, or another host in the rack of each, as host 4 has none, got \
  0.5",
    ),
];

#[test]
fn wrong_keys_of_partners_are_named() {
    let sizes = "sizes = 'imc10'";
    for (text, message) in WRONG {
        let error = plan(&format!("{text}\n{sizes}")).unwrap_err();
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn named_hosts_are_addressed_by_name() {
    let mut names = crate::trace::HostNames::default();
    (0..16).for_each(|host| names.insert(&format!("gpu{host}"), Some(host)));
    names.insert("leaf", None);
    let plan = |text: &str| {
        let spec: WorkloadSpec = toml::from_str(text).unwrap();
        spec.validate_with_names(&context(), &names).map_err(|error| error.to_string())
    };
    let fan = "fan = 2\nflow-bytes = 9\n";
    let workload =
        plan(&format!("pattern = 'incast'\n{fan}hub = 'gpu3'\npeers = ['gpu15', 'gpu3', 4]"));
    let mut flows: Vec<(u32, u32)> =
        workload.unwrap().flows(1).map(|flow| (flow.src.get(), flow.dst.get())).collect();
    flows.sort_unstable();
    assert_eq!(flows, [(4, 3), (15, 3)]);
    for (hub, got) in
        [("leaf", "\"leaf\", a switch"), ("h3", "\"h3\", which is not in the topology")]
    {
        let error = plan(&format!("pattern = 'incast'\n{fan}hub = '{hub}'")).unwrap_err();
        assert_eq!(error, format!("hub: expected a host of the topology, got {got}"));
    }
}
