//! Loads that the links cannot carry, seen before anything runs.

use rampmeter_sim::{HostCut, Target, Topology};
use rampmeter_types::Rate;
use rampmeter_workload::WorkloadSpec;

use crate::topology::names::NamesSpec;
use crate::warning::{NamedCount, Warning, warning};

/// Returns a warning if the traffic between all pairs of hosts is more than the links between some
/// of them carry. The bound is exact for uniform traffic: no transport can go beyond it.
pub(crate) fn overloaded_core(
    topology: &Topology,
    access: Rate,
    workload: &WorkloadSpec,
) -> Option<Warning> {
    let load = workload.uniform_load();
    let n_hosts = topology.n_hosts();
    let cuts = topology.host_cuts();
    let (most, cut) = cuts
        .into_iter()
        .map(|cut| (load_max(cut, n_hosts, access), cut))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(most, _)| *most < load)?;
    let HostCut { hosts, bps } = cut;
    let offered = load * access.as_bps() as f64 * crossing(cut, n_hosts) * 1e-9;
    let offer = if hosts == 1 { "offers" } else { "offer" };
    Some(warning!(
        "overload",
        "workload.load: {load} exceeds {load_max:.3}, the capacity of the core: {hosts} {offer} \
         {offered_gbps:.0} Gbit/s to the others over links of {gbps} Gbit/s",
        load = load,
        load_max = most,
        hosts = NamedCount(hosts.into(), "host"),
        offered_gbps = offered,
        gbps = bps as f64 * 1e-9;
        offer = offer,
    ))
}

/// Returns a warning if uniform traffic between all hosts overloads a link of an irregular network.
/// Packets take the links that are nearest to the peer.
pub(crate) fn overloaded_link(
    topology: &Topology,
    names: &NamesSpec,
    access: Rate,
    workload: &WorkloadSpec,
) -> Option<Warning> {
    let load = workload.uniform_load();
    if load == 0.0 {
        return None;
    }
    let full = topology.first_saturated_link(access).filter(|full| full.load < load)?;
    Some(warning!(
        "overload",
        "workload.load: {load} exceeds {load_max:.3}, at which link {link} is full from {from}",
        load = load,
        load_max = full.load,
        link = names.target(topology, Target::Link(full.link)),
        from = names.node(full.from),
    ))
}

/// Returns the load at which the links out of a group of hosts are full.
fn load_max(cut: HostCut, n_hosts: u32, access: Rate) -> f64 {
    cut.bps as f64 / (access.as_bps() as f64 * crossing(cut, n_hosts))
}

/// Returns the number of hosts whose traffic leaves a group: each sends to all others alike.
fn crossing(cut: HostCut, n_hosts: u32) -> f64 {
    let (inside, all) = (f64::from(cut.hosts), f64::from(n_hosts));
    inside * (all - inside) / (all - 1.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Plan, Registry};

    fn warnings(topology: &str, load: f64) -> Vec<String> {
        let text = format!(
            "transport = {{ name = 'ideal' }}\ntopology = {{ {topology} }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = {load}\nflows = 10"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::for_tests()).unwrap();
        let warnings = plan.check("plan", Path::new(".")).unwrap().warnings();
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn marking_thresholds_above_the_buffer_are_reported() {
        let text = "kind = 'star', hosts = 4 }\nfabric = { buffer-bytes = 9000, ecn-bytes = 9000";
        let expected = "fabric.ecn-bytes: ports tor-down of 100 Gbit/s never mark, as their memory \
                        of 9000 bytes is full before 9000 wait";
        assert_eq!(warnings(text, 0.5), [expected]);
        assert!(warnings(&text.replace("ecn-bytes = 9000", "ecn-bytes = 8000"), 0.5).is_empty());
    }

    #[test]
    fn loads_beyond_the_core_are_reported_with_the_bound() {
        // 16 hosts of 144 offer 8 x 100 Gbit/s, of which 128 in 143 leave the rack.
        let half = "kind = 'leaf-spine', racks = 9, hosts-per-rack = 16, spines = 2";
        assert!(warnings(half, 0.55).is_empty());
        assert_eq!(
            warnings(half, 0.8),
            ["workload.load: 0.8 exceeds 0.559, the capacity of the core: 16 hosts offer 1146 \
                 Gbit/s to the others over links of 800 Gbit/s"]
        );
    }

    #[test]
    fn networks_with_enough_capacity_cause_no_warning() {
        for topology in [
            "kind = 'leaf-spine', racks = 9, hosts-per-rack = 16, spines = 4",
            "kind = 'fat-tree', k = 4",
            "kind = 'star', hosts = 8",
        ] {
            assert!(warnings(topology, 1.0).is_empty(), "{topology}");
        }
    }

    fn topology(switches: u32, links: &[(&str, &str, f64)]) -> String {
        let link = |&(a, b, gbps): &(&str, &str, f64)| {
            format!("{{ between = ['{a}', '{b}'], gbps = {gbps} }}")
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let hosts = "hosts = ['a', 'b', 'c', 'd']";
        format!("kind = 'links', {hosts}, switches = {switches}, links = [{}]", links.join(", "))
    }

    #[test]
    fn links_of_different_planes_may_have_different_rates() {
        // Servers of two with a switch within; a rail for each place in a server, and a spine.
        let within =
            [("a", "s0", 400.0), ("b", "s0", 400.0), ("c", "s1", 400.0), ("d", "s1", 400.0)];
        let rails = |[even, odd, spine]: [&'static str; 3], gbps| {
            let of_hosts = [("a", even), ("b", odd), ("c", even), ("d", odd)];
            let of_hosts = of_hosts.map(|(host, rail)| (host, rail, gbps));
            [&of_hosts[..], &[(even, spine, 200.0), (odd, spine, 200.0)]].concat()
        };
        let first = rails(["s2", "s3", "s4"], 100.0);
        assert_eq!(warnings(&topology(5, &[&within[..], &first].concat()), 0.1), [""; 0]);
        let second = |gbps| rails(["s5", "s6", "s7"], gbps);
        let equal = [&within[..], &first, &second(100.0)].concat();
        assert_eq!(warnings(&topology(8, &equal), 0.1), [""; 0]);
        let unequal = [&within[..], &first, &second(50.0)].concat();
        let expected = "topology: the links of a to s5 and s2 have rates from 50 to 100 Gbit/s: \
                        packets are spread over them in proportion to their rates, and a message \
                        that keeps its path may have a slow one";
        assert_eq!(warnings(&topology(8, &unequal), 0.1), [expected]);
        let same = [("a", "s0", 100.0), ("a", "s0", 50.0), ("b", "s0", 100.0)];
        let same = [&same[..], &[("c", "s0", 100.0), ("d", "s0", 100.0)]].concat();
        let [found] = &warnings(&topology(1, &same), 0.1)[..] else { panic!("one warning") };
        let expected = "topology: the links of a to s0 have rates from 50 to 100 Gbit/s: ";
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn overloaded_links_between_forwarding_hosts_are_reported() {
        let links = [("a", "b", 100.0), ("b", "c", 100.0), ("c", "d", 100.0), ("d", "a", 100.0)];
        let ring = format!("{}, hosts-forward = true", topology(0, &links));
        assert!(warnings(&ring, 0.5).is_empty());
        let [full] = &warnings(&ring, 0.9)[..] else { panic!("one warning") };
        assert!(full.contains("exceeds 0.750, at which link"), "{full}");
    }

    #[test]
    fn pods_and_dumbbells_have_bounds_too() {
        let [pods] = &warnings("kind = 'fat-tree', k = 4, core-gbps = 40", 0.6)[..] else {
            panic!("one warning")
        };
        assert!(pods.contains("exceeds 0.429"), "{pods}");
        let [middle] = &warnings("kind = 'dumbbell', hosts-per-side = 4", 0.6)[..] else {
            panic!("one warning")
        };
        assert!(middle.contains("exceeds 0.438"), "{middle}");
    }
}
