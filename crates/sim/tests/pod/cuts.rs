//! Unscheduled packets are cut off: the bytes that links ahead carry, compared with a model that
//! moves single bytes.

use proptest::prelude::*;

use super::*;

const BYTES: usize = 1_500;
/// Host 0, switch 0, switch 2, switch 1, host 2.
const LINKS: usize = 4;

/// Begin and end of each byte of the victim on each link; `None` for those that never do.
type Bits = Vec<Vec<Option<(Time, Time)>>>;

/// Moves the victim byte by byte. The link `cut` stops at an instant; without `goes_on` so do the
/// links ahead of it.
fn bytewise(start: Time, cut: usize, stop: Time, goes_on: bool) -> Bits {
    let mut links: Bits = Vec::new();
    for link in 0..LINKS {
        let mut bytes: Vec<Option<(Time, Time)>> = Vec::new();
        let mut free = start;
        for n in 0..BYTES {
            // The first byte waits for the header, every other for itself.
            let awaited = if n == 0 { HEADER as usize - 1 } else { n };
            let here = match links.last() {
                None => Some(start),
                Some(before) => before[awaited]
                    .and(before[n])
                    .map(|_| before[awaited].expect("it was there").1 + HOP),
            };
            let follows = n == 0 || bytes[n - 1].is_some();
            let stops = link == cut || (link > cut && !goes_on);
            let sent = here.filter(|_| follows).map(|here| (here.max(free), here.max(free) + BYTE));
            let sent = sent.filter(|(_, end)| !stops || *end <= stop);
            free = sent.map_or(free, |(_, end)| end);
            bytes.push(sent);
        }
        links.push(bytes);
    }
    links
}

/// Returns the time from the first byte's begin to the last one's end.
fn busy(bytes: &[Option<(Time, Time)>]) -> Option<(Time, Time)> {
    let mut sent = bytes.iter().flatten();
    let (from, end) = sent.next()?;
    Some((*from, sent.last().map_or(*end, |(_, end)| *end)))
}

/// Returns the time at which the head of a control packet must be sent to be at its `n`th switch at
/// `time`.
fn ahead(time: Time, n: u64) -> Time {
    let before = (HOP + BYTE * HEADER) * n;
    Time::from_ps(time.as_ps() - before.as_ps())
}

/// Returns a control packet whose head is in front of the link at `time`. It is sent by an end that
/// shares no port with others, and takes other ports than the victim farther on.
fn meets(pod: &Pod, link: usize, time: Time) -> PlannedPacket {
    match link {
        1 => {
            PlannedPacket { path: by_agg(pod, 1, 0, 1), ..PlannedPacket::new(ahead(time, 1), 1, 1) }
        }
        2 => {
            PlannedPacket { path: by_agg(pod, 3, 0, 3), ..PlannedPacket::new(ahead(time, 2), 3, 3) }
        }
        _ => PlannedPacket {
            path: route(&[pod.host(2).number]),
            ..PlannedPacket::new(ahead(time, 1), 3, 2)
        },
    }
}

/// The same from other ends still.
fn looks_at(pod: &Pod, link: usize, time: Time) -> PlannedPacket {
    let probe = match link {
        1 => meets(pod, 1, time),
        2 => {
            PlannedPacket { path: by_agg(pod, 2, 0, 3), ..PlannedPacket::new(ahead(time, 2), 2, 3) }
        }
        _ => PlannedPacket { src: ARBITER, ..meets(pod, 3, time) },
    };
    PlannedPacket { is_unscheduled: true, ..probe }
}

/// Returns the bytes that the port of a link has sent.
fn sent_on(sim: &ScriptSim, link: usize) -> u64 {
    let ends = [("h0", "s0"), ("s0", "s2"), ("s2", "s1"), ("s1", "h2")][link];
    let is_it = |port: &u32| {
        let fabric::PortId { from, to, .. } = sim.fabric().port(*port);
        (from.to_string(), to.to_string()) == (ends.0.into(), ends.1.into())
    };
    let mut samples = (0..).zip(sim.fabric().port_samples());
    samples.find(|(port, _)| is_it(port)).unwrap().1.sent
}

#[derive(Clone, Copy, Debug)]
struct Case {
    goes_on: bool,
    /// The link on which the victim is cut off, and after how many picoseconds there.
    cut: usize,
    after: u64,
    /// The link that is observed, and the time.
    seen: usize,
    /// Time after the victim's head is on it, or before its last byte, as far as that is possible.
    look: u64,
    from_end: bool,
}

fn check(case: Case) {
    let Case { goes_on, cut, after, seen, look, from_end } = case;
    let pod = pod();
    let start = at(0);
    let head = |link: usize| start + (HOP + BYTE * HEADER) * link as u64;
    let stop = head(cut) + Span::from_ps(after);
    let model = bytewise(start, cut, stop, goes_on);
    let busy = busy(&model[seen]);
    // Never before the head would be there: the victim would make way.
    let last = busy.map_or(head(seen), |(_, end)| end).as_ps();
    let time = if from_end { last + 500 - look % 1_000 } else { head(seen).as_ps() + look };
    let time = Time::from_ps(time.max(head(seen).as_ps() + 1));
    // The order within one picosecond is not part of the model.
    let time = if time == stop { time + Span::from_ps(1) } else { time };
    let victim = PlannedPacket {
        bytes: BYTES as u16,
        path: by_agg(&pod, 0, 0, 2),
        ..PlannedPacket::new(start, 0, 2)
    };
    let victim = PlannedPacket { is_control: false, is_unscheduled: true, ..victim };
    let sends = [victim, meets(&pod, cut, stop), looks_at(&pod, seen, time)];
    let mut spec = spec(topology(0.0));
    spec.fabric.unscheduled_collision =
        if goes_on { PacketFate::CutOff } else { PacketFate::Vanish };
    let sim = run(spec, sends.into());
    let received: Vec<u64> = script::received(&sim).iter().map(|received| received.id).collect();
    // Until it is cut off, the whole victim is to be sent.
    let planned = head(seen) + BYTE * BYTES as u64;
    let passes = match busy {
        _ if time < stop => time >= planned,
        Some((_, end)) => time >= end,
        None => true,
    };
    assert_eq!(received, if passes { vec![1, 2] } else { vec![1] }, "{case:?}");
    let mut drops = vec![("cut-off", 1)];
    if !passes {
        drops.insert(0, ("collision", 1));
    }
    assert_eq!(dropped(&sim), drops, "{case:?}");
    for (link, bytes) in model.iter().enumerate() {
        let own = bytes.iter().flatten().count() as u64;
        let others = 64 * (u64::from(link == cut) + u64::from(link == seen && passes));
        assert_eq!(sent_on(&sim, link), own + others, "link {link} of {case:?}");
    }
    let collisions = sim.fabric().stats().collisions.clone().unwrap();
    assert_eq!(collisions.kinds, [0, 0, 0, 1 + u64::from(!passes)]);
    assert!(collisions.violations.is_empty());
}

const PACKET: u64 = BYTES as u64 * 80;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn links_agree_with_a_bytewise_model(
        goes_on: bool,
        cut in 1..4usize,
        other in 1..3usize,
        after in prop_oneof![1..64 * 80u64, 1..PACKET, PACKET - 200..PACKET],
        look in 1..2 * PACKET,
        from_end: bool,
    ) {
        let seen = 1 + (cut - 1 + other) % 3;
        check(Case { goes_on, cut, after, seen, look, from_end });
    }
}

/// A cut at every byte's end, a picosecond before and after.
#[test]
fn stumps_are_the_bytes_that_were_sent_whole() {
    for bytes in [1, 2, 63, 64, 65, 66, 750, 1_498, 1_499] {
        for off in [-1, 0, 1] {
            let after = (bytes * 80_i64 + off) as u64;
            for (cut, seen) in [(1, 3), (1, 2), (2, 3), (3, 1)] {
                let (look, from_end) = (500, true);
                check(Case { goes_on: true, cut, after, seen, look, from_end });
                check(Case { goes_on: false, cut, after, seen, look, from_end });
            }
        }
    }
}

/// The victim is cut off by its second switch, then by its first: the shorter stump stays.
#[test]
fn a_stump_can_be_cut_again() {
    let pod = pod();
    let head = |link: u64| at(0) + (HOP + BYTE * HEADER) * link;
    let victim = PlannedPacket {
        bytes: 40_000,
        path: by_agg(&pod, 0, 0, 2),
        ..PlannedPacket::new(at(0), 0, 2)
    };
    let victim = PlannedPacket { is_control: false, is_unscheduled: true, ..victim };
    let stump = 1_000;
    let end = head(3) + BYTE * stump;
    for (first, second, early) in
        [(30_000, stump, 1), (30_000, stump, 0), (stump, 30_000, 1), (stump, 30_000, 0)]
    {
        let sends = [
            victim,
            meets(&pod, 1, head(1) + BYTE * first),
            meets(&pod, 2, head(2) + BYTE * second),
            looks_at(&pod, 3, Time::from_ps(end.as_ps() - early)),
        ];
        let sim = run(spec(topology(0.0)), sends.into());
        let received: Vec<u64> =
            script::received(&sim).iter().map(|received| received.id).collect();
        assert_eq!(received, if early == 1 { vec![1, 2] } else { vec![1, 2, 3] });
        assert!(dropped(&sim).contains(&("cut-off", 1)));
        assert_eq!(sent_on(&sim, 0), 40_000);
        assert_eq!(sent_on(&sim, 1), first + 64);
        assert_eq!(sent_on(&sim, 2), stump + 64);
        assert_eq!(sent_on(&sim, 3), stump + 64 * (1 - early));
    }
}

/// The head is dropped at the second switch while the rest still arrives at the first, at which it
/// is cut off.
#[test]
fn the_rest_of_a_packet_with_a_dropped_head_yields_too() {
    let pod = pod();
    let head = |link: u64| at(0) + (HOP + BYTE * HEADER) * link;
    let victim = PlannedPacket {
        bytes: 40_000,
        path: by_agg(&pod, 0, 0, 2),
        ..PlannedPacket::new(at(0), 0, 2)
    };
    let victim = PlannedPacket { is_control: false, is_unscheduled: true, ..victim };
    let blocks = PlannedPacket { bytes: 9_000, is_control: false, ..meets(&pod, 2, head(2)) };
    let blocks = PlannedPacket { at: Time::from_ps(blocks.at.as_ps() - 1_000), ..blocks };
    // Two that are in flight when the rest is cut off; one of them has the victim's place.
    let path = route(&[pod.host(1).number]);
    let next = PlannedPacket { path, ..PlannedPacket::new(head(2) + Span::from_ns(1), ARBITER, 1) };
    let after = PlannedPacket { at: next.at + Span::from_ns(10), ..next };
    let rival = meets(&pod, 1, head(1) + BYTE * 30_000);
    let sim = run(spec(topology(0.0)), vec![victim, blocks, rival, next, after]);
    let received: Vec<u64> = script::received(&sim).iter().map(|received| received.id).collect();
    assert_eq!(received, [1, 2, 3, 4]);
    assert_eq!(dropped(&sim), [("collision", 1)]);
    assert_eq!((sent_on(&sim, 1), sent_on(&sim, 2)), (30_000 + 64, 9_000));
}
