//! Hosts that forward packets for others, as servers of BCube and GPUs that are linked directly do.
//!
//! Only switches route here, so a host that forwards becomes two nodes. They are a switch, which
//! has all links of the host, and the host, with one link to that switch. The link is as fast as
//! all links of the host together, up to the highest rate, and has no delay. It adds a hop: a
//! packet is stored there and takes its time at that rate. The host's own packets and those that it
//! forwards share the queues of its switch.

use rampmeter_types::{Rate, Span};

use super::{Link, Node};

/// Adds a switch for each host of `links` that can forward, numbered from `n_switches` on in the
/// order of the hosts. Returns the number of all switches. A host with one link has nothing to
/// forward and stays as it is, unless the link is to another host.
pub(super) fn expand(n_hosts: u32, n_switches: u32, links: &mut Vec<Link>) -> u32 {
    // Of each host: its links, and the rates of all of them from it and to it.
    let mut rates = vec![(0u32, [0u64; 2]); n_hosts as usize];
    let mut is_direct = vec![false; n_hosts as usize];
    for link in &*links {
        for (end, other) in [(link.a, link.b), (link.b, link.a)] {
            let Node::Host(host) = end else { continue };
            let (count, sums) = &mut rates[host as usize];
            *count += 1;
            let own = [link.rate_from(end), link.rate_to(end)];
            for (sum, rate) in sums.iter_mut().zip(own) {
                *sum = sum.saturating_add(rate.as_bps());
            }
            is_direct[host as usize] |= matches!(other, Node::Host(_));
        }
    }
    let mut switches = vec![None; n_hosts as usize];
    let mut next = n_switches;
    for (host, &(count, _)) in rates.iter().enumerate() {
        if count > 1 || is_direct[host] {
            switches[host] = Some(next);
            next += 1;
        }
    }
    let moved = |end: Node| match end {
        Node::Host(host) => switches[host as usize].map_or(end, Node::Switch),
        other => other,
    };
    for link in links.iter_mut() {
        *link = Link { a: moved(link.a), b: moved(link.b), ..*link }.ordered();
    }
    for (host, &switch) in (0..).zip(&switches) {
        let Some(switch) = switch else { continue };
        let rate = |bps: u64| Rate::from_bps(bps.min(RATE_MAX)).expect("rates are above zero");
        let [rate, rate_back] = rates[host as usize].1.map(rate);
        let (a, b) = (Node::Host(host), Node::Switch(switch));
        links.push(Link { a, b, rate, rate_back, propagation: Span::ZERO });
    }
    next
}

/// The highest rate of a link, in bit/s.
const RATE_MAX: u64 = 100_000_000_000_000;
