//! Drops of packets that meet, and the reports of these collisions.

use rampmeter_sim::fabric::{CollidingPacket, CollisionKind, Violation};
use rampmeter_types::{MsgId, NodeId};

use super::*;

/// Two packets for host 2: the first from the arbiter, the second, a nanosecond later at the port,
/// from host 3.
fn meet(mut first: PlannedPacket, mut second: PlannedPacket) -> ScriptSim {
    let pod = pod();
    first.path = route(&[pod.host(2).number]);
    (second.path, second.at) = (first.path, second.at + Span::from_ns(1));
    run(spec(topology(0.0)), vec![first, second])
}

fn sends() -> [(PlannedPacket, PlannedPacket); 2] {
    let data =
        PlannedPacket { bytes: 1_500, is_control: false, ..PlannedPacket::new(at(0), ARBITER, 2) };
    let control = PlannedPacket::new(at(0), ARBITER, 2);
    [control, data].map(|first| (first, PlannedPacket { src: 3, ..first }))
}

#[test]
fn packets_of_a_schedule_that_meet_are_violations_of_their_kind() {
    let [(control, control_2), (data, data_2)] = sends();
    for (first, second, kind) in [
        (control, control_2, CollisionKind::ControlControl),
        (control, data_2, CollisionKind::ControlData),
        (data, control_2, CollisionKind::ControlData),
        (data, data_2, CollisionKind::ScheduledScheduled),
    ] {
        let sim = meet(first, second);
        let party = |src: u32, offset, is_control| CollidingPacket {
            src: NodeId::new(src),
            dst: NodeId::new(2),
            msg: MsgId::new(1_000_000),
            offset,
            is_control,
            is_unscheduled: false,
        };
        let violation = Violation {
            at: at(0) + Span::from_ns(1) + HOP + BYTE * HEADER,
            from: Node::Switch(1),
            to: Node::Host(2),
            kind,
            arriving_packet: party(3, 1, second.is_control),
            transmitted_packet: party(ARBITER, 0, first.is_control),
        };
        let collisions = sim.fabric().stats().collisions.clone().unwrap();
        assert_eq!(collisions.violations, [violation]);
        let mut kinds = [0; 4];
        kinds[kind as usize] = 1;
        assert_eq!(collisions.kinds, kinds);
        assert_eq!(dropped(&sim), [("collision", 1)]);
        assert_eq!(script::received(&sim).iter().map(|h| h.id).collect::<Vec<_>>(), [0]);
    }
}

#[test]
fn unscheduled_packets_yield_to_all_others() {
    let [(control, control_2), (data, data_2)] = sends();
    let free = |send: PlannedPacket| PlannedPacket { is_unscheduled: true, ..send };
    for (first, second, survivor, reason) in [
        (free(data), control_2, 1, "cut-off"),
        (free(data), data_2, 1, "cut-off"),
        (free(data), free(data_2), 0, "collision"),
        (control, free(data_2), 0, "collision"),
        (data, free(data_2), 0, "collision"),
    ] {
        let sim = meet(first, second);
        let collisions = sim.fabric().stats().collisions.clone().unwrap();
        assert_eq!((collisions.kinds, collisions.violations), ([0, 0, 0, 1], vec![]));
        assert_eq!(dropped(&sim), [(reason, 1)]);
        let received = script::received(&sim);
        assert_eq!(received.iter().map(|h| h.id).collect::<Vec<_>>(), [survivor]);
        let winner = [first, second][survivor as usize];
        let late = if survivor == 1 { Span::from_ns(1) } else { Span::ZERO };
        assert_eq!(received[0].at, at(0) + late + latency(2, winner.bytes.into()));
    }
}

/// Packets that arrive in the same picosecond meet too. The link is free in the picosecond in which
/// the last bit has been sent.
#[test]
fn a_link_is_busy_from_the_first_bit_to_the_last() {
    let [_, (first, second)] = sends();
    let pod = pod();
    let path = route(&[pod.host(2).number]);
    let tx = BYTE * 1_500;
    for (late, is_dropped) in
        [(Span::ZERO, true), (tx.saturating_sub(Span::from_ps(1)), true), (tx, false)]
    {
        let sends = vec![
            PlannedPacket { path, ..first },
            PlannedPacket { path, at: second.at + late, ..second },
        ];
        let sim = run(spec(topology(0.0)), sends);
        assert_eq!(dropped(&sim).len(), usize::from(is_dropped), "{late}");
    }
}

#[test]
fn packets_of_an_arbiter_are_sent_at_once_or_dropped() {
    let pod = pod();
    let to = |dst: u32| {
        let path = route(&[pod.host(dst).number]);
        PlannedPacket { path, ..PlannedPacket::new(at(0), ARBITER, dst) }
    };
    // Hosts 0 and 1 are of one rack, 2 of another.
    let sim = run(spec(topology(0.0)), vec![to(0), to(2), to(1)]);
    let received = script::received(&sim);
    assert_eq!(received.iter().map(|h| (h.id, h.at)).collect::<Vec<_>>(), {
        let at = at(0) + latency(2, 64);
        [(0, at), (1, at)]
    });
    let collisions = sim.fabric().stats().collisions.clone().unwrap();
    let [violation] = collisions.violations[..] else { panic!("{collisions:?}") };
    assert_eq!((violation.from, violation.to), (Node::Arbiter(0), Node::Switch(0)));
    assert_eq!((violation.at, violation.arriving_packet.offset), (at(0), 2));
}

#[test]
fn the_first_violations_are_recorded_and_all_are_counted() {
    let pod = pod();
    let path = route(&[pod.host(2).number]);
    let mut sends = Vec::new();
    for n in 0..20 {
        for src in [ARBITER, 3] {
            sends.push(PlannedPacket { path, ..PlannedPacket::new(at(n * 1_000_000), src, 2) });
        }
    }
    let sim = run(spec(topology(0.0)), sends);
    let collisions = sim.fabric().stats().collisions.clone().unwrap();
    assert_eq!((collisions.kinds, collisions.violations.len()), ([20, 0, 0, 0], 16));
    let order = collisions.violations.windows(2).all(|pair| pair[0].at < pair[1].at);
    assert!(order);
}

/// Switches that store packets detect that one is damaged. If packets may wait, none is damaged.
#[test]
fn other_fabrics_drop_stumps_at_once_or_have_none() {
    let pod = pod();
    let path = by_agg(&pod, 0, 0, 2);
    let victim =
        PlannedPacket { bytes: 1_500, path, is_control: false, ..PlannedPacket::new(at(0), 0, 2) };
    let victim = PlannedPacket { is_unscheduled: true, ..victim };
    let late = at(60_000 - 5_120);
    let rival = PlannedPacket { path: by_agg(&pod, 1, 0, 3), ..PlannedPacket::new(late, 1, 3) };
    let mut stored = spec(topology(0.0));
    stored.fabric.switching = Switching::StoreAndForward;
    // The rival is there in the middle of the victim's second transmission.
    let rival_stored = PlannedPacket { at: late + BYTE * 1_500, ..rival };
    let sim = run(stored, vec![victim, rival_stored]);
    assert_eq!(dropped(&sim), [("cut-off", 1)]);
    assert_eq!(script::received(&sim).iter().map(|h| h.id).collect::<Vec<_>>(), [1]);
    let downs = sim.fabric().tier_stats();
    let bytes = |name: &str| downs.iter().find(|tier| tier.name == name).unwrap().bytes;
    assert_eq!(bytes("spine-down"), 64);
    assert!((64 + 700..64 + 800).contains(&bytes("tor-up")), "{}", bytes("tor-up"));
    let mut roomy = spec(topology(0.0));
    roomy.fabric.buffer = Buffer::PerPort(Bytes::new(10_000));
    let sim = run(roomy, vec![victim, rival]);
    assert_eq!((script::received(&sim).len(), dropped(&sim)), (2, vec![]));
    assert!(sim.fabric().stats().collisions.is_none());
}
