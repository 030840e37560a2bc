use rampmeter_types::{NodeId, Purpose, Rng, Span, Time};

use super::{HelloOutcome, Peers};
use rampmeter_types::envelope::Incarnation;

const SELF: NodeId = NodeId::new(0);
const OTHER: NodeId = NodeId::new(1);

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_us(seconds * 1_000_000)
}

/// Returns the number of hellos until `end`; they are answered at once if `answers`.
fn run(peers: &mut Peers<()>, from: Time, end: Time, answers: bool) -> u32 {
    let (mut now, mut n) = (from, 0);
    while now <= end {
        let mut nonce = None;
        peers.fire(now, |_, sent, _| nonce = Some(sent), |_, _| {});
        n += u32::from(nonce.is_some());
        if let Some(nonce) = nonce.filter(|_| answers) {
            let incarnation = Incarnation::new(7);
            assert_ne!(
                peers.on_hello_reply(now, OTHER, 0, nonce, incarnation),
                HelloOutcome::Restarted
            );
        }
        now = peers.deadline().max(now + Span::from_us(1));
    }
    n
}

/// Greets every ten seconds for an hour; returns the number of hellos.
fn greet_for_an_hour(peers: &mut Peers<()>, start: u64, answers: bool) -> u32 {
    let each = |n: u64| {
        let now = at(start + n * 10);
        peers.send_hellos(now, SELF);
        run(peers, now, now + Span::from_us(9_000_000), answers)
    };
    (0..360).map(each).sum()
}

#[test]
fn hellos_to_unresponsive_peers_back_off() {
    let rng = Rng::new(1, 0, Purpose::Test);
    let mut peers = Peers::new(&[Some(None), Some(None)], 1_500, 1, rng);
    // 1, 2, 4, ..., 256 and 192, 320 of 360, each with its retransmissions.
    let silent = greet_for_an_hour(&mut peers, 10, false);
    assert!((11..=11 * 9).contains(&silent), "{silent} hellos");
    // One that answers gets every greeting from the next on, and hellos that probe its path.
    peers.call(at(4_000), OTHER);
    run(&mut peers, at(4_000), at(4_005), true);
    assert!(greet_for_an_hour(&mut peers, 4_010, true) >= 360);
}

/// Many peers are greeted in steps of a few, when a node starts and later.
#[test]
fn hellos_to_many_peers_are_paced() {
    let rng = Rng::new(1, 0, Purpose::Test);
    let mut peers = Peers::<()>::new(&vec![Some(None); 1_000], 1_500, 1, rng);
    let mut now = at(10);
    for start in 0..2 {
        match start {
            0 => peers.call_all(now, SELF),
            _ => peers.send_hellos(now, SELF),
        }
        let (began, mut first) = (now, std::collections::BTreeSet::new());
        while now < began + Span::from_us(125_000) {
            let mut n = 0;
            peers.fire(now, |(node, _), _, _| n += usize::from(first.insert(node)), |_, _| {});
            assert!(n <= 16, "{n} at {now:?}");
            now += Span::from_us(100);
        }
        assert_eq!(first.len(), 999);
        // Their retransmissions end.
        let end = now + Span::from_us(9_000_000);
        while now < end {
            peers.fire(now, |_, _, _| {}, |_, _| {});
            now = peers.deadline().max(now + Span::from_us(1)).min(end);
        }
    }
}
