//! Recognition of pods, by their ports and cables.

use rampmeter_sim::{Topology, TopologySpec};
use rampmeter_types::fabric::{ArbiterNeed, ArbiterPlace, ArbiterRate};
use rampmeter_types::wiring::Node;
use rampmeter_types::{Bytes, Wiring};

use super::arbiter_places;
use super::one_pod::is_schedulable_pod;
use super::pods::{Pod, Pods};

const HEADER: Bytes = Bytes::new(64);

fn build(text: &str) -> Topology {
    toml::from_str::<TopologySpec>(text).unwrap().build().unwrap()
}

fn with_arbiters(topology: Topology, place: ArbiterPlace, n: usize) -> Topology {
    topology.with_arbiters(&vec![ArbiterNeed { rate: ArbiterRate::Slowest, place }; n])
}

/// Returns the node that a switch's port leads to.
fn leads_to(wiring: &Wiring, switch: u32, port: u16) -> Node {
    wiring.ports()[switch as usize][usize::from(port)].to
}

#[test]
fn ports_of_a_pod_have_the_described_targets() {
    let topology = with_arbiters(build("kind = 'pod'\nk = 8"), ArbiterPlace::EveryRack, 2);
    let pod = Pod::from_wiring(&topology, HEADER).unwrap();
    assert_eq!((topology.n_hosts(), topology.n_switches()), (16, 8));
    assert_eq!((pod.hosts.len(), pod.ports_to_agg.len(), pod.ports_to_rack.len()), (16, 4, 4));
    for (host, of) in (0..).zip(&pod.hosts) {
        assert_eq!((u32::from(of.rack), u32::from(of.index)), (host / 4, host % 4));
        assert_eq!(leads_to(&topology, of.rack.into(), of.port), Node::Host(host));
    }
    for rack in 0..4u32 {
        for n in 0..4u32 {
            let up = pod.ports_to_agg[rack as usize][n as usize];
            assert_eq!(leads_to(&topology, rack, up), Node::Switch(4 + n));
            let down = pod.ports_to_rack[n as usize][rack as usize];
            assert_eq!(leads_to(&topology, 4 + n, down), Node::Switch(rack));
        }
        for arbiter in 0..2u32 {
            let port = pod.ports_to_arbiter[rack as usize][arbiter as usize];
            assert_eq!(leads_to(&topology, rack, port), Node::Arbiter(arbiter));
        }
    }
}

#[test]
fn leaf_spines_of_one_rate_are_pods_and_other_networks_are_not() {
    let leaf_spine = "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 2\nspines = 2\n";
    let even = build(&format!("{leaf_spine}core-gbps = 100"));
    assert!(Pod::from_wiring(&even, HEADER).is_some());
    let first = with_arbiters(even.clone(), ArbiterPlace::FirstRack, 1);
    assert!(Pod::from_wiring(&first, HEADER).is_none());
    let every = with_arbiters(even, ArbiterPlace::EveryRack, 1);
    assert!(Pod::from_wiring(&every, HEADER).is_some());
    for text in [
        format!("{leaf_spine}core-gbps = 400"),
        format!("{leaf_spine}core-gbps = 100\nrails = 2"),
        "kind = 'fat-tree'\nk = 4".into(),
        "kind = 'star'\nhosts = 4".into(),
        "kind = 'dumbbell'\nhosts-per-side = 4".into(),
        "kind = 'leaf-spine'\nracks = 1\nhosts-per-rack = 40\nspines = 1\ncore-gbps = 100".into(),
    ] {
        assert!(Pod::from_wiring(&build(&text), HEADER).is_none(), "{text}");
    }
}

/// Source routes must be able to name the ports to two arbiters as well.
#[test]
fn racks_without_free_ports_for_arbiters_are_no_pods() {
    let of = |n: u32| {
        let text = format!(
            "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = {n}\nspines = {n}\n\
             core-gbps = 100"
        );
        is_schedulable_pod(&build(&text))
    };
    assert!(of(19) && !of(20));
    let text = "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 4\nspines = 2\ncore-gbps = 100";
    assert!(!is_schedulable_pod(&build(text)));
}

fn with_pod_arbiters(topology: Topology, each: usize) -> Topology {
    let need = |place| vec![ArbiterNeed { rate: ArbiterRate::Slowest, place }; each];
    let needs: Vec<_> = arbiter_places(&topology).into_iter().flat_map(need).collect();
    topology.with_arbiters(&needs)
}

fn n_pods(topology: &Topology) -> usize {
    arbiter_places(topology).len()
}

/// Three pods of 4-port switches with 12 hosts and two arbiters a pod. Racks are s0 to s5,
/// aggregation switches s6 to s11, and core switches s12 to s15.
#[test]
fn ports_of_fat_tree_pods_have_the_described_targets() {
    let topology = build("kind = 'fat-tree'\nk = 4\npods = 3");
    assert_eq!((topology.n_hosts(), topology.n_switches(), n_pods(&topology)), (12, 16, 3));
    let topology = with_pod_arbiters(topology, 2);
    let Pods { pods, cores } = Pods::from_wiring(&topology, HEADER).unwrap();
    assert_eq!((pods.len(), cores.len(), n_pods(&topology)), (3, 4, 3));
    for (p, pod) in (0u32..).zip(&pods) {
        assert_eq!((pod.first_host, pod.hosts.len()), (4 * p, 4));
        for (host, of) in (pod.first_host..).zip(&pod.hosts) {
            assert_eq!((u32::from(of.rack), u32::from(of.index)), (host % 4 / 2, host % 2));
            let rack = 2 * p + u32::from(of.rack);
            assert_eq!(leads_to(&topology, rack, of.port), Node::Host(host));
        }
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (rack, agg) = (2 * p + a as u32, 6 + 2 * p + b as u32);
            assert_eq!(leads_to(&topology, rack, pod.ports_to_agg[a][b]), Node::Switch(agg));
            assert_eq!(leads_to(&topology, agg, pod.ports_to_rack[b][a]), Node::Switch(rack));
            let agg = 6 + 2 * p + a as u32;
            let core = 12 + 2 * a as u32 + b as u32;
            assert_eq!(leads_to(&topology, agg, pod.ports_to_core[a][b]), Node::Switch(core));
            let port = cores[2 * a + b].ports[p as usize];
            assert_eq!(leads_to(&topology, core, port), Node::Switch(agg));
            let arbiter = Node::Arbiter(2 * p + b as u32);
            let rack = 2 * p + a as u32;
            assert_eq!(leads_to(&topology, rack, pod.ports_to_arbiter[a][b]), arbiter);
            assert_eq!(leads_to(&topology, agg, pod.agg_ports_to_arbiter[a][b]), arbiter);
        }
        let own = [2 * p, 2 * p + 1, 6 + 2 * p, 7 + 2 * p].map(Node::Switch);
        assert_eq!(topology.neighbours_of(Node::Arbiter(2 * p + 1)), own);
    }
    for (n, core) in (0..).zip(&cores) {
        assert_eq!((core.switch, core.agg, core.index), (12 + n, n as u16 / 2, n as u16 % 2));
    }
}

/// The second pod's aggregation switches are numbered the other way round.
#[test]
fn aggregation_switches_are_known_by_their_core_switches() {
    let (hosts, trunks) =
        (["h0 s0", "h1 s0", "h2 s1", "h3 s1"], ["s0 s4", "s0 s5", "s1 s4", "s1 s5"]);
    let others = ["h4 s2", "h5 s2", "h6 s3", "h7 s3", "s2 s6", "s2 s7", "s3 s6", "s3 s7"];
    let cores = ["s4 s8", "s4 s9", "s5 s10", "s5 s11", "s7 s8", "s7 s9", "s6 s10", "s6 s11"];
    let link = |ends: &str| {
        let (a, b) = ends.split_once(' ').unwrap();
        format!("{{ between = ['{a}', '{b}'] }}")
    };
    let all = hosts.iter().chain(&trunks).chain(&others).chain(&cores);
    let links: Vec<String> = all.map(|ends| link(ends)).collect();
    let text = |links: &[String]| {
        format!("kind = 'links'\nhosts = 8\nswitches = 12\nlinks = [{}]", links.join(", "))
    };
    let topology = with_pod_arbiters(build(&text(&links)), 1);
    let Pods { pods, cores } = Pods::from_wiring(&topology, HEADER).unwrap();
    assert_eq!(leads_to(&topology, 2, pods[1].ports_to_agg[0][0]), Node::Switch(7));
    assert_eq!(leads_to(&topology, 11, cores[3].ports[1]), Node::Switch(6));
    // A link that is missing, or that leads elsewhere, and it is no fat-tree.
    assert_eq!(n_pods(&build(&text(&links[..links.len() - 1]))), 0);
    let mut crossed = links.clone();
    (crossed[20], crossed[22]) = (link("s7 s10"), link("s6 s8"));
    assert_eq!(n_pods(&build(&text(&crossed))), 0);
}

#[test]
fn other_networks_are_not_made_of_pods() {
    for text in [
        "kind = 'fat-tree'\nk = 2",
        "kind = 'fat-tree'\nk = 4\ncore-gbps = 40",
        "kind = 'fat-tree'\nk = 34",
        "kind = 'star'\nhosts = 4",
        "kind = 'leaf-spine'\nracks = 3\nhosts-per-rack = 2\nspines = 2",
    ] {
        let topology = build(text);
        assert!(Pods::from_wiring(&topology, HEADER).is_none() && n_pods(&topology) == 0, "{text}");
    }
    let pod = build("kind = 'pod'\nk = 4");
    assert_eq!((n_pods(&pod), Pods::from_wiring(&pod, HEADER).unwrap().cores), (1, Vec::new()));
    let tree = build("kind = 'fat-tree'\nk = 4");
    assert_eq!(n_pods(&tree), 4);
    // An arbiter at one rack only.
    let first = ArbiterNeed { rate: ArbiterRate::Slowest, place: ArbiterPlace::FirstRack };
    assert!(Pods::from_wiring(&tree.with_arbiters(&vec![first; 4]), HEADER).is_none());
}
