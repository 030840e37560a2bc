//! Links and hosts of a pod that fail (§4).

use super::*;
use crate::fastpod::repair::failures::PROBE_SLOTS;
use pod::Port;

const END: Time = Time::from_ps(10_000_000_000);

/// Returns the links from a rack to an aggregation switch, and back. Numbers of ports are those of
/// [`pod::pod`].
fn up(rack: u16, agg: u16, per_rack: u16) -> Port {
    Port::Rack(rack, per_rack + agg)
}

fn down(agg: u16, rack: u16) -> Port {
    Port::Agg(agg, rack)
}

/// Asserts that every message arrived and was acknowledged once and only unscheduled cells
/// collided.
fn assert_all_arrived(run: &Run) {
    assert_eq!(run.violations, []);
    let n = run.messages.len();
    assert_eq!((run.delivered.len(), run.completed.len(), run.failed.len()), (n, n, 0));
    assert_eq!(run.left(), 0);
}

/// Every host sends a long message to the one across.
fn across(run: &mut Run, n_hosts: u32, at: Time, slots: u64) {
    for src in 0..n_hosts {
        run.submit(at, src, (src + n_hosts / 2) % n_hosts, 1460 * 3 * slots);
    }
}

/// Returns the time that `slots` takes.
fn after(fastpod: &Fastpod, slots: u64) -> Span {
    fastpod.slot * slots
}

/// Returns the slots from the third loss of a link to its conviction, at most: until it is reported
/// and judged.
fn detection(fastpod: &Fastpod) -> u64 {
    2 * fastpod.report_slots + 4 * fastpod.lead_slots
}

/// A link breaks under load. It is convicted, no other link is, and all messages arrive. Its rack
/// loses one pair of four a slot. No more messages time out than were in flight.
#[test]
fn a_failed_link_is_found_and_excluded() {
    for seed in 0..6 {
        for (k, port) in [(4, up(1, 0, 4)), (4, down(0, 2)), (2, up(0, 1, 2)), (2, down(0, 1))] {
            let config = FastpodConfig { optimistic: seed % 2 == 0, ..config() };
            let fastpod = alike(config, k, k);
            let mut run = Run::new(&fastpod, seed);
            let broken = us(40 + seed);
            run.broken.push((port, broken, Time::NEVER));
            fill(&mut run, fastpod.n_hosts, 400, 300, seed);
            run.run(END);
            assert_all_arrived(&run);
            assert_eq!(run.count("links_failed") - run.count("links_restored"), 1, "{port:?}");
            assert!(run.count("probes") > 0 && run.count("hosts_unresponsive") == 0);
        }
    }
}

/// Measures the time of a matching of all hosts that begins when a link fails, once the link is
/// convicted. Three quarters of its rack's pairs have a place in each slot, and fairness gives the
/// others theirs.
#[test]
fn a_rack_without_one_link_sends_with_the_others() {
    for port in [up(1, 2, 4), down(3, 2)] {
        let fastpod = alike(FastpodConfig { optimistic: false, ..config() }, 4, 4);
        let mut run = Run::new(&fastpod, 1);
        run.broken.push((port, Time::ZERO, Time::NEVER));
        across(&mut run, 16, us(20), 60);
        // Packets that were lost before are retransmitted.
        run.run(us(400));
        assert_eq!(run.count("links_failed") - run.count("links_restored"), 1, "{port:?}");
        let slots = 600;
        let first = run.messages.len();
        across(&mut run, 16, us(1_000), slots);
        run.run(END);
        assert_all_arrived(&run);
        assert_eq!(run.count("links_failed") - run.count("links_restored"), 1, "{port:?}");
        let took = |message: usize| {
            run.delivered[&rampmeter_types::MsgId::new(message as u32)] - us(1_000)
        };
        let slowest = (first..first + 16).map(took).max().unwrap();
        let least = after(&fastpod, slots * 4 / 3);
        // Each probe takes a slot of two hosts.
        let most = after(&fastpod, slots * 4 / 3 + slots / PROBE_SLOTS * 2 + 60);
        assert!(least <= slowest && slowest <= most, "{port:?}: {slowest:?} of {least:?}");
        let fastest = (first..first + 16).map(took).min().unwrap();
        assert!(fastest <= after(&fastpod, slots + 60), "{port:?}: {fastest:?}");
    }
}

/// Detection takes three losses, and the time until reports of them are in.
#[test]
fn a_link_is_convicted_soon() {
    for beacon_slots in [1, 16, 64] {
        let config = FastpodConfig { optimistic: false, beacon_slots, ..config() };
        let fastpod = alike(config, 4, 4);
        let mut run = Run::new(&fastpod, 1);
        for dst in 4..16 {
            (0..16).for_each(|src| _ = run.submit(us(20), src, (src + dst) % 16, 1460 * 600));
        }
        let broken = us(100);
        run.broken.push((up(1, 0, 4), broken, Time::NEVER));
        // Every rack sends to all others in nearly every slot.
        let due = broken + after(&fastpod, 3 + detection(&fastpod));
        run.run(due);
        assert_eq!(run.count("links_failed"), 1, "{beacon_slots}");
    }
}

/// Hosts that request more in every slot report all the same. Every RTS has demands here.
#[test]
fn a_failed_link_of_busy_hosts_is_convicted_soon() {
    for beacon_slots in [1, 64, 256] {
        let config = FastpodConfig { optimistic: false, beacon_slots, ..config() };
        let fastpod = alike(config, 4, 4);
        let mut run = Run::new(&fastpod, 1);
        for n in 0..1_000 {
            let at = us(20) + after(&fastpod, n);
            // More demands than an RTS has room for.
            for (src, more) in (0..16).flat_map(|src| (0..4).map(move |more| (src, more))) {
                let dst = (src + 1 + (n as u32 * 4 + more) % 15) % 16;
                run.submit(at, src, dst, 1460 * 3);
            }
        }
        let broken = us(100);
        run.broken.push((up(1, 0, 4), broken, Time::NEVER));
        run.run(broken + after(&fastpod, 20 + detection(&fastpod)));
        assert_eq!(run.count("links_failed"), 1, "{beacon_slots}");
    }
}

/// A repaired link is found by a probe, and it is used from then on. Both directions fail here.
#[test]
fn a_link_that_is_repaired_is_used_again() {
    for seed in 0..6 {
        for k in [2, 4] {
            let fastpod = alike(config(), k, k);
            let mut run = Run::new(&fastpod, seed);
            let (broken, whole) = (us(50), us(500 + 7 * seed));
            run.broken.push((up(1, 0, k), broken, whole));
            run.broken.push((down(0, 1), broken, whole));
            fill(&mut run, fastpod.n_hosts, 1_500, 1_200, seed);
            run.run(whole);
            assert!(run.count("links_failed") >= 2);
            let probed = after(&fastpod, PROBE_SLOTS + detection(&fastpod) + 20);
            run.run(whole + probed * 3);
            assert_eq!(run.count("links_failed"), run.count("links_restored"), "{k}, {seed}");
            run.run(END);
            assert_all_arrived(&run);
        }
    }
}

/// A switch above the racks fails: all its links do.
#[test]
fn a_failed_switch_is_excluded() {
    for seed in 0..4 {
        let fastpod = alike(config(), 4, 4);
        let mut run = Run::new(&fastpod, seed);
        let (broken, whole) = (us(50), us(900));
        for rack in 0..4 {
            run.broken.push((up(rack, 0, 4), broken, whole));
            run.broken.push((down(0, rack), broken, whole));
        }
        fill(&mut run, fastpod.n_hosts, 2_000, 1_500, seed);
        run.run(whole);
        // If all links up, or down, are convicted, there is no evidence about the others.
        assert!(run.count("links_failed") - run.count("links_restored") >= 4, "{seed}");
        run.run(END);
        assert_all_arrived(&run);
        assert_eq!(run.count("links_failed"), run.count("links_restored"));
    }
}

/// The link between a rack and the arbiter fails and returns. The rack's hosts do not respond, get
/// no slots, and continue afterwards; the others are not delayed.
#[test]
fn a_rack_that_the_arbiter_does_not_receive_waits() {
    for seed in 0..4 {
        let fastpod = alike(config(), 4, 4);
        let mut run = Run::new(&fastpod, seed);
        let (broken, whole) = (us(50), us(700));
        // The rack's switch to the arbiter, and back.
        run.broken.push((Port::Rack(2, 8), broken, whole));
        run.broken.push((Port::Node(16, 2), broken, whole));
        fill(&mut run, 16, 400, 600, seed);
        let others: Vec<_> = (0..4).map(|n| run.submit(us(300), n, n + 4, 40_000)).collect();
        run.run(whole);
        assert_eq!(run.count("hosts_unresponsive"), 4);
        assert!(others.iter().all(|msg| run.completed.contains_key(msg)));
        run.run(END);
        assert_all_arrived(&run);
        assert_eq!(run.count("links_failed"), 0);
    }
}

/// A host's link fails and returns. Nothing is lost permanently, and no link above is blamed.
#[test]
fn a_restarted_host_receives_its_messages() {
    for seed in 0..6 {
        let fastpod = alike(config(), 4, 4);
        let mut run = Run::new(&fastpod, seed);
        let (broken, whole) = (us(50), us(700 + seed));
        run.broken.push((Port::Node(6, 0), broken, whole));
        run.broken.push((Port::Rack(1, 2), broken, whole));
        fill(&mut run, 16, 400, 600, seed);
        run.run(END);
        assert_all_arrived(&run);
        assert_eq!((run.count("hosts_unresponsive"), run.count("links_failed")), (1, 0));
    }
}

/// A host does not restart: messages to it fail, and the others arrive.
#[test]
fn messages_to_a_host_that_stays_away_fail() {
    let fastpod = alike(FastpodConfig { attempts_max: 3, ..config() }, 4, 4);
    let mut run = Run::new(&fastpod, 1);
    run.broken.push((Port::Node(6, 0), us(50), Time::NEVER));
    run.broken.push((Port::Rack(1, 2), us(50), Time::NEVER));
    let lost = run.submit(us(200), 0, 6, 20_000);
    let own = run.submit(us(200), 6, 0, 20_000);
    let fine = run.submit(us(200), 0, 5, 20_000);
    run.run(END);
    assert!(run.failed.contains(&lost) && run.failed.contains(&own));
    assert!(run.completed.contains_key(&fine) && run.violations.is_empty());
}
