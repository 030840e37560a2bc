//! Random traffic: nothing gets lost without being counted, and nothing of a schedule for anything
//! without one.

use proptest::prelude::*;

use super::*;

/// Any packet: a sender, another host, a way, a length, an instant.
fn any_send() -> impl Strategy<Value = PlannedPacket> {
    let bytes = prop_oneof![Just(64u16), Just(1_500), 1..9_000u16];
    (0..5u32, 0..3u32, 0..2u32, bytes, 0..3_000_000u64, any::<bool>()).prop_map(
        |(src, dst, agg, bytes, ps, is_unscheduled)| {
            let pod = pod();
            let (dst, path) = match src {
                ARBITER => (dst, route(&[pod.host(dst).number])),
                _ => {
                    let dst = (src + 1 + dst) % 4;
                    (dst, by_agg(&pod, src, agg, dst))
                }
            };
            let is_control = bytes == 64;
            let is_unscheduled = is_unscheduled && src != ARBITER;
            PlannedPacket {
                bytes,
                path,
                is_control,
                is_unscheduled,
                ..PlannedPacket::new(at(ps), src, dst)
            }
        },
    )
}

/// Returns the time at which each packet is received if nothing stops it. Ends send one after the
/// other, arbiters by every link at once, and no packet waits in a switch.
fn unhindered(sends: &[PlannedPacket], pod: &Pod) -> Vec<Time> {
    let short = Span::from_ns(1_000);
    let mut order: Vec<usize> = (0..sends.len()).collect();
    order.sort_by_key(|&id| sends[id].at);
    let mut free = [Time::ZERO; 4];
    let mut times = vec![Time::ZERO; sends.len()];
    for id in order {
        let PlannedPacket { at, src, dst, bytes, .. } = sends[id];
        let last = pod.host(dst).link.propagation;
        let (start, links, cable) = match src {
            ARBITER => (at, 2, pod.arbiter(pod.0.rack(dst)).link.propagation),
            _ => {
                let start = at.max(free[src as usize]);
                free[src as usize] = start + BYTE * u64::from(bytes);
                (start, 4, pod.host(src).link.propagation)
            }
        };
        let more = cable.saturating_sub(short) + last.saturating_sub(short);
        times[id] = start + latency(links, bytes.into()) + more;
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_accounted_for(
        sends in prop::collection::vec(any_send(), 1..120),
        vanish: bool,
        is_lossy: bool,
    ) {
        let mut spec = spec(topology(300.0));
        spec.fabric.unscheduled_collision =
            if vanish { PacketFate::Vanish } else { PacketFate::CutOff };
        if is_lossy {
            let delay_max = Span::from_ns(300);
            spec.faults.every_link =
                LinkFault { loss: 0.05, reorder: 0.05, duplicate: 0.0, delay_max };
        }
        let sim = run(spec, sends.clone());
        let received = script::received(&sim);
        let n_received = |is_free: bool| {
            let packets = received.iter().map(|packet| &sends[packet.id as usize]);
            packets.filter(|sent| sent.is_unscheduled == is_free).count() as u64
        };
        let n_sent = |is_free| sends.iter().filter(|s| s.is_unscheduled == is_free).count() as u64;
        let of = |name| {
            let reasons = dropped(&sim);
            reasons.iter().find(|(reason, _)| *reason == name).map_or(0, |(_, count)| *count)
        };
        let kinds = sim.fabric().stats().collisions.clone().unwrap().kinds;
        let violations: u64 = kinds[..3].iter().sum();
        // Whole packets only, each of them once.
        prop_assert!(received.windows(2).all(|pair| pair[0].id < pair[1].id));
        prop_assert!(received.iter().all(|h| h.bytes == sends[h.id as usize].bytes));
        let lost = sends.len() as u64 - received.len() as u64;
        prop_assert_eq!(lost, of("collision") + of("cut-off") + of("loss"));
        if !is_lossy {
            let pod = Pod(topology(300.0));
            let times = unhindered(&sends, &pod);
            for h in &received {
                prop_assert_eq!(h.at, times[h.id as usize], "{}", h.id);
            }
            // Only those of a schedule that met others of one are lost.
            prop_assert_eq!(n_sent(false) - n_received(false), violations);
            let free_lost = n_sent(true) - n_received(true);
            prop_assert_eq!(free_lost, of("cut-off") + of("collision") - violations);
            prop_assert!(kinds[3] >= free_lost);
        }
        let sent: u64 = sim.fabric().tier_stats()[0].bytes;
        let bytes = |lengths: &mut dyn Iterator<Item = u16>| lengths.map(u64::from).sum::<u64>();
        let given = bytes(&mut sends.iter().filter(|s| s.src != ARBITER).map(|s| s.bytes));
        prop_assert_eq!(sent, given, "hosts send all they have");
        // The bytes that links to hosts have carried are those that hosts received, and stumps.
        let downs = sim.fabric().tier_stats();
        let down = downs.iter().find(|tier| tier.name == "tor-down").unwrap().bytes;
        prop_assert!(down >= bytes(&mut received.iter().map(|h| h.bytes)));
    }
}
