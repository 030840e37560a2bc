//! Hosts with several links: all are used, none is needed, and no packet takes one that is down.

use rampmeter_sim::topo::Paths;
use rampmeter_sim::{LinkSpec, Node, Target, Topology, TopologySpec, topologies};

/// Two racks of three hosts and `rails` leaf switches, two spines.
fn by_rails(rails: u64) -> Topology {
    by_planes(rails, 2, 1).build().unwrap()
}

/// Two racks of three hosts and `rails` leaf switches, and spines in planes.
fn by_planes(rails: u64, spines: u64, planes: u64) -> TopologySpec {
    TopologySpec::LeafSpine(topologies::LeafSpine {
        racks: 2,
        hosts_per_rack: 3,
        spines,
        rails,
        planes,
        access_gbps: 100.0,
        core_gbps: 400.0,
        propagation_ns: 200.0,
        switch_ns: 450.0,
        host_ns: 450.0,
    })
}

/// Two racks have the leaves s0 to s3 and s4 to s7; leaves 0, 2, 4 and 6 are in plane 0.
#[test]
fn leaves_of_a_plane_are_joined_to_its_spines() {
    let topology = by_planes(4, 6, 2).build().unwrap();
    assert_eq!(topology.rails(), vec![4; 6]);
    let uplinks = |leaf: u32| topology.neighbours_of(Node::Switch(leaf)).into_iter().skip(3);
    for leaf in 0..8 {
        let first = 8 + leaf % 2 * 3;
        assert!(uplinks(leaf).eq((first..first + 3).map(Node::Switch)), "{leaf}");
    }
    assert!(!topology.pairs().has_partial_pairs());
    for (rails, spines, planes) in [(4, 6, 3), (4, 6, 4), (4, 6, 0)] {
        let error = by_planes(rails, spines, planes).build().unwrap_err().to_string();
        let expected = format!("planes: expected a divisor of rails and of spines, got {planes}");
        assert_eq!(error, expected);
    }
}

#[test]
fn a_rack_has_a_leaf_switch_a_rail_and_hosts_a_link_to_each() {
    let topology = by_rails(3);
    assert_eq!((topology.n_switches(), topology.rails()), (2 * 3 + 2, vec![3; 6]));
    let of_h4: Vec<Node> = topology.access().filter(|(h, _)| *h == 4).map(|(_, l)| l.b).collect();
    assert_eq!(of_h4, [3, 4, 5].map(Node::Switch));
}

#[test]
fn a_host_is_as_fast_as_its_links_together() {
    let rate = |rails| {
        let (data, control) = (rampmeter_types::Bytes::new(1500), rampmeter_types::Bytes::new(40));
        by_rails(rails).facts(data, control).access_rate.as_bps()
    };
    assert_eq!(rate(3), 3 * rate(1));
}

#[test]
fn links_are_named_by_their_ends() {
    let topology = by_rails(2);
    for (number, link) in (0..).zip(topology.links()) {
        for name in [format!("{}-{}", link.a, link.b), format!("{}-{}", link.b, link.a)] {
            assert_eq!(topology.link_named(&name), Ok(number), "{name}");
        }
        assert_eq!(topology.link_named(&number.to_string()), Ok(number));
        assert_eq!(topology.name(Target::Link(number)), format!("{}-{}", link.a, link.b));
    }
    let error = topology.link_named("h0-s5").unwrap_err();
    assert_eq!(error, "the ends of a link of the topology (h0-s0, h0-s1, h1-s0, ...)");
    assert!(topology.link_named("h0").is_err() && topology.link_named("999").is_err());
}

#[test]
fn invalid_links_are_errors() {
    let links = |ends: &[[&str; 2]]| {
        let link = |ends: &[&str; 2]| LinkSpec {
            gbps_back: None,
            between: ends.map(str::to_owned),
            gbps: 100.0,
            propagation_ns: 200.0,
        };
        let links = ends.iter().map(link).collect();
        let (switch_ns, host_ns, hosts_forward) = (0.0, 0.0, false);
        let spec = TopologySpec::Links(topologies::Links {
            hosts: 2,
            switches: 2,
            links,
            switch_ns,
            host_ns,
            hosts_forward,
        });
        spec.build().map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(links(&[["h0", "s0"], ["h0", "s1"], ["h1", "s1"], ["s0", "s1"]]), Ok(()));
    let wrong = [
        (vec![["h0", "s0"], ["s0", "s1"]], "expected host h1 to have a link to a switch, got none"),
        (
            vec![["h0", "h1"]],
            "link 0: expected links of host h0 to lead to switches, got one to h1: hosts do not \
             forward packets unless topology.hosts-forward is true",
        ),
        (
            vec![["h0", "s0"], ["s0", "h0"], ["h1", "s1"]],
            "link 1: expected each link of a host once, got \"s0-h0\" after \"h0-s0\": a link \
             carries both directions; links in parallel have the same first end",
        ),
    ];
    for (ends, message) in wrong {
        assert_eq!(links(&ends), Err(message.to_owned()));
    }
}

/// Hosts 0 and 1 have links of these rates to switch 0, host 2 one link to switch 1.
fn by_parallel_links(gbps: &[f64]) -> Topology {
    let link = |between: [&str; 2], gbps| LinkSpec {
        gbps_back: None,
        between: between.map(str::to_owned),
        gbps,
        propagation_ns: 200.0,
    };
    let of_hosts =
        ["h0", "h1"].iter().flat_map(|host| gbps.iter().map(|&it| link([host, "s0"], it)));
    let links = of_hosts.chain([link(["h2", "s1"], 400.0), link(["s0", "s1"], 400.0)]).collect();
    let (switch_ns, host_ns, hosts_forward) = (0.0, 0.0, false);
    let spec = TopologySpec::Links(topologies::Links {
        hosts: 3,
        switches: 2,
        links,
        switch_ns,
        host_ns,
        hosts_forward,
    });
    spec.build().unwrap()
}

#[test]
fn packets_are_spread_over_parallel_host_links_by_rate() {
    for (gbps, expected) in [
        (&[100.0, 100.0][..], &[0.5, 0.5][..]),
        (&[100.0, 50.0], &[2.0 / 3.0, 1.0 / 3.0]),
        (&[100.0, 100.0, 200.0], &[0.25, 0.25, 0.5]),
    ] {
        let paths = Paths::new(by_parallel_links(gbps));
        let own = 0..gbps.len() as u32;
        for (src, dst, from) in
            [(0, 2, Node::Host(0)), (2, 0, Node::Switch(0)), (1, 0, Node::Switch(0))]
        {
            let mut shares = vec![0.0; gbps.len()];
            for (link, end, share) in paths.shares(src, dst) {
                if end == from && own.contains(&link) {
                    shares[link as usize] += share;
                }
            }
            let is_near = shares.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
            assert!(is_near, "{gbps:?} from h{src} to h{dst}: {shares:?}");
        }
        let [out, into] = paths.access_ports(0, 1);
        assert_eq!((out.len(), into.len()), (gbps.len(), gbps.len()));
    }
}
