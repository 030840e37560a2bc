//! Limits of handshakes: floods of initiations, replays, clocks set back, and unresponsive peers.

use super::*;

#[test]
fn floods_of_initiations_are_answered_with_cookies_and_honest_nodes_get_through() {
    let mut net = Net::sealed();
    // Packets of a sender that has the public keys, and receives none of the answers.
    let flood = |net: &mut Net| {
        for _ in 0..200 {
            net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
            net.send(0, b"x");
        }
        assert_eq!(net.wires.borrow()[1].len(), 200);
        net.receive(1);
        std::mem::take(&mut net.wires.borrow_mut()[0])
    };
    let answers = flood(&mut net);
    let kind = |bytes: &Vec<u8>| Envelope::decode(bytes).unwrap().0.kind;
    assert!(answers.iter().all(|answer| matches!(kind(answer), DatagramKind::Cookie { .. })));
    // All except a few cost no computation with curves.
    assert_eq!(answers.len() as u64 + net.counts(1).unauthenticated_packets, 200);
    assert!((30..40).contains(&net.counts(1).unauthenticated_packets), "{:?}", net.counts(1));
    // No answer is longer than its request.
    let initiation = Envelope::CONTROL_LEN + handshake::INITIATION + 2 * cookie::CODE;
    assert!(answers.iter().all(|answer| answer.len() < initiation));
    // An honest node that receives its cookie is answered while the flood lasts.
    net.ends[0] = net.end(0);
    net.send(0, b"honest");
    let mut got = Vec::new();
    for _ in 0..10 {
        got.extend(net.receive(1));
        net.receive(0);
        let honest = net.ends.remove(0);
        net.ends.insert(0, net.end(0));
        let to_honest = std::mem::take(&mut net.wires.borrow_mut()[0]);
        let of_honest = std::mem::take(&mut net.wires.borrow_mut()[1]);
        flood(&mut net);
        net.ends[0] = honest;
        *net.wires.borrow_mut() = [to_honest, of_honest];
        net.now += Span::from_us(20_000);
    }
    assert_eq!(got, [b"honest".to_vec()]);
}

/// An attacker who receives packets at a peer's address has its cookies: it gets few answers, and
/// other peers are answered meanwhile.
#[test]
fn a_cookie_does_not_buy_unlimited_answers() {
    let mut net = Net::sealed();
    let kind = |bytes: &Vec<u8>| Envelope::decode(bytes).unwrap().0.kind;
    let is_cookie = |bytes: &Vec<u8>| matches!(kind(bytes), DatagramKind::Cookie { .. });
    let (mut cookie, mut n_read) = (None, 0);
    for _ in 0..1_000 {
        net.ends[0] = net.end_with(0, PrivateKey::generate().unwrap());
        if let (ProtectionState::Sealed(pairs), Some(cookie)) = (&mut net.ends[0].guard, cookie) {
            pairs.set_cookie(NodeId::new(1), cookie);
        }
        net.send(0, b"x");
        let before = net.counts(1).unauthenticated_packets;
        net.receive(1);
        // Each initiation that is read costs computation with curves, and has an unknown key.
        n_read += net.counts(1).unauthenticated_packets - before;
        let answers = std::mem::take(&mut net.wires.borrow_mut()[0]);
        let cookies: Vec<_> = answers.into_iter().filter(is_cookie).collect();
        if cookie.is_none() && cookies.len() == 1 {
            net.wires.borrow_mut()[0] = cookies;
            net.receive(0);
            let ProtectionState::Sealed(pairs) = &net.ends[0].guard else { unreachable!() };
            cookie = pairs.cookie_of(NodeId::new(1));
            assert!(cookie.is_some());
        } else if cookie.is_some() {
            assert!(cookies.is_empty(), "an initiation with a cookie gets no other");
        }
        net.now += Span::from_us(100);
    }
    // In 0.1 s: 34 at once and 20 more without a cookie, 8 at once and 1 more with one.
    assert!((40..70).contains(&n_read), "{n_read} initiations were read");
}

/// The clock of a restarted node may be behind that of its earlier incarnation. The other end then
/// begins the handshake, at most once a second.
#[test]
fn a_clock_set_back_does_not_block_handshakes() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    net.run(MOMENT);
    for n in 0..3 {
        net.ends[0] = net.end_started(0, 0, net.keys[0].clone());
        net.send(0, b"after");
        assert_eq!(net.run(MOMENT)[1], [b"after".to_vec()], "{n}");
        assert_eq!(net.counts(1).outdated_initiations, n + 1);
        assert_eq!(net.counts(1).unauthenticated_packets, 0);
        net.send(1, b"back");
        assert_eq!(net.run(MOMENT)[0], [b"back".to_vec()], "{n}");
        net.now += SECOND;
    }
}

/// A recorded initiation causes at most one handshake a second with the true peer.
#[test]
fn replayed_initiations_cost_little() {
    let mut net = Net::sealed();
    net.send(0, b"x");
    let recorded = net.wires.borrow()[1].clone();
    net.run(MOMENT);
    net.now += SECOND;
    let mut n_sent = 0;
    for _ in 0..100 {
        net.wires.borrow_mut()[1] = recorded.clone();
        net.receive(1);
        // Beyond the first few, replayed initiations get cookies.
        let is_initiation = |bytes: &&Vec<u8>| {
            let kind = Envelope::decode(bytes).unwrap().0.kind;
            matches!(kind, DatagramKind::Initiation { .. })
        };
        let sent = std::mem::take(&mut net.wires.borrow_mut()[0]);
        n_sent += sent.iter().filter(is_initiation).count();
        net.now += Span::from_us(100);
    }
    assert_eq!(n_sent, 1);
}

/// A node greets many unresponsive peers at a limited rate: a poll of the node takes no longer, and
/// the memory for them is limited.
#[test]
fn initiations_to_unresponsive_peers_are_paced() {
    let mut net = Net::sealed();
    let other = PrivateKey::generate().unwrap().public();
    let keys: Vec<_> = (0..1_000).map(|_| Some(vec![other])).collect();
    net.ends[0].set_keys(net.keys[0].clone(), keys);
    *net.wires.borrow_mut() = Default::default();
    let mut sent = Vec::new();
    net.ends[0].now = net.now;
    for peer in 1..1_000 {
        let (class, rail, marks) = (Priority::HIGHEST, Rail::Any, Marks::NONE);
        let route = Route { dst: NodeId::new(peer), class, path: 0, rail, marks };
        net.ends[0].send(route, |out| envelope(0).encode(out).unwrap()).unwrap();
    }
    for _ in 0..3_000 {
        let ProtectionState::Sealed(pairs) = &mut net.ends[0].guard else { unreachable!() };
        pairs.fire(net.now);
        let mut n = 0;
        while pairs.poll_message().is_some() {
            n += 1;
        }
        sent.push(n);
        assert!(pairs.deadline() > net.now);
        net.now += Span::from_us(1_000);
    }
    let (burst, rest) = sent.split_first().unwrap();
    assert_eq!(*burst, 32);
    assert!(rest.iter().all(|n| *n <= 1), "{rest:?}");
    let n: usize = rest.iter().sum();
    assert!((1_400..=1_500).contains(&n), "{n} in 3 s");
    // All have been called once before any is called for the third time.
    let ProtectionState::Sealed(pairs) = &net.ends[0].guard else { unreachable!() };
    assert!(pairs.attempts_left().all(|left| (6..8).contains(&left)));
    assert_eq!(pairs.queued_bytes(), 999 * Envelope::LEN_MAX);
}
