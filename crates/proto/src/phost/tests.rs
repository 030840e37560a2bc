//! Tests of pHost's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use rampmeter_types::{Header, Span, WireError};

    #[test]
    fn phost_headers_are_a_type_byte_and_big_endian_fields() {
        let time_to_deadline = Span::from_ps(3);
        let (flow, tx_slot, size, tenant, is_retransmission) = (1, 2, 0x0304, 5, true);
        let rts =
            PhostHeader::Rts { flow, tx_slot, size, time_to_deadline, tenant, is_retransmission };
        let mut bytes = [0; 28];
        assert_eq!(rts.encode(&mut bytes), Ok(28));
        assert_eq!(bytes[..17], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        assert_eq!(bytes[17..], [0, 0, 0, 0, 0, 0, 0, 3, 0, 5, 1]);
    }

    #[test]
    fn phost_decoding_errors_name_the_field() {
        let decode = |bytes: &[u8]| PhostHeader::decode(bytes).unwrap_err();
        assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
        assert_eq!(decode(&[99]), WireError::UnknownType(99));
        let no_size = [1; 1].iter().chain(&[0; 40]).copied().collect::<Vec<u8>>();
        assert_eq!(decode(&no_size).to_string(), "field size must be at least 1, got 0");
    }
}

mod tokens {
    use std::sync::Arc;

    use super::super::config::{Downgrading, FreeTokenExpiry, TokenSuppression};
    use super::super::wire::PhostHeader;
    use super::super::{Phost, PhostConfig, PhostHost};
    use crate::test_packet::make_control;
    use rampmeter_types::{
        Bytes, FabricFacts, Message, MsgId, NodeId, Packet, Protocol, Purpose, Rate, Rng, Span,
        Time,
    };

    const SIZE: u64 = 1_460 * 1_000;

    fn host() -> (PhostHost, Arc<Phost>) {
        host_with(PhostConfig::paper())
    }

    fn host_with(config: PhostConfig) -> (PhostHost, Arc<Phost>) {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            core_rate: None,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            abort_timeout_min: Span::ZERO,
        };
        let phost = Arc::new(config.derive(&facts).unwrap());
        let rng = Rng::new(1, 0, Purpose::Test);
        (PhostHost::new(Arc::clone(&phost), NodeId::new(0), rng, Time::ZERO), phost)
    }

    fn packet(header: PhostHeader) -> Packet<PhostHeader> {
        make_control(header, 7, 1, 0)
    }

    fn before(at: Time) -> Time {
        Time::from_ps(at.as_ps() - 1)
    }

    /// Runs the clock of tokens; returns how many have been sent since the start.
    fn run_until(host: &mut PhostHost, end: Time) -> u64 {
        while host.poll_timeout() <= end {
            host.handle_timeout(host.poll_timeout());
        }
        host.stats().tokens_sent
    }

    fn rts() -> Packet<PhostHeader> {
        let (time_to_deadline, tenant, is_retransmission) = (Span::from_ps(u64::MAX), 0, false);
        packet(PhostHeader::Rts {
            flow: 0,
            tx_slot: 0,
            size: SIZE,
            time_to_deadline,
            tenant,
            is_retransmission,
        })
    }

    /// A damaged announcement enters a message under the number that another gets later. The other
    /// is not answered as if it had been entered, or its sender would wait forever.
    #[test]
    fn an_announcement_under_the_number_of_another_message_is_not_answered() {
        let (mut host, _) = host();
        let rts = |msg, tx_slot, size| {
            let (flow, time_to_deadline, tenant, is_retransmission) =
                (3, Span::from_ps(u64::MAX), 0, true);
            let rts = PhostHeader::Rts {
                flow,
                tx_slot,
                size,
                time_to_deadline,
                tenant,
                is_retransmission,
            };
            make_control(rts, msg, 1, 0)
        };
        let mut answers = |packet| {
            host.handle_packet(Time::ZERO, &packet);
            let packets = std::iter::from_fn(|| host.poll_transmit(Time::ZERO));
            packets.filter(|p| matches!(p.header, PhostHeader::RtsAck { .. })).count()
        };
        assert_eq!(answers(rts(7, 5, SIZE)), 1);
        assert_eq!(answers(rts(7, 5, SIZE)), 1);
        for other in [rts(8, 5, SIZE), rts(7, 6, SIZE), rts(7, 5, 2 * SIZE)] {
            assert_eq!(answers(other), 0, "{other:?}");
        }
    }

    /// Algorithm 2: the free tokens, as many as the threshold, do not downgrade a flow when they
    /// expire; the next that expires does. Then there is one token a timeout.
    #[test]
    fn a_flow_is_downgraded_when_more_tokens_than_the_threshold_have_expired() {
        let token_suppression = TokenSuppression::Ignore;
        let (mut host, phost) =
            host_with(PhostConfig { token_suppression, ..PhostConfig::paper() });
        host.handle_packet(Time::ZERO, &rts());
        let expired = Time::ZERO
            + phost.pair_from(NodeId::new(0)).free_lifetime(phost.free_tokens)
            + phost.rtt;
        let ticks = |until: Time| (until - Time::ZERO).div_floor(phost.mtu_time) + 1;
        let sent = run_until(&mut host, before(expired));
        assert_eq!(sent, ticks(before(expired)));
        let resumed = expired + phost.mtu_time + phost.downgrade_time;
        assert_eq!(run_until(&mut host, expired + phost.downgrade_time), sent);
        assert_eq!(run_until(&mut host, resumed + phost.downgrade_time / 2), sent + 1);
        // Data for the latest token ends it at once.
        let end = resumed + phost.downgrade_time * 3 / 2;
        assert_eq!(run_until(&mut host, end), sent + 2);
        let number = phost.free_tokens + sent as u32 + 1;
        let data = PhostHeader::Data { rx_slot: 0, seq: number, number };
        host.handle_packet(end, &packet(data));
        assert_eq!(run_until(&mut host, end + phost.mtu_time * 3), sent + 2 + 4);
    }

    #[test]
    fn tokens_of_a_flow_begin_with_its_first_free_packet_or_when_that_is_late() {
        let late = |phost: &Phost| {
            Time::ZERO
                + phost.pair_from(NodeId::new(0)).free_lifetime(phost.free_tokens)
                + phost.rtt
        };
        let (mut host, phost) = host();
        host.handle_packet(Time::ZERO, &rts());
        assert_eq!(run_until(&mut host, before(late(&phost))), 0);
        assert_eq!(run_until(&mut host, late(&phost)), 1);

        let (mut host, phost) = self::host();
        host.handle_packet(Time::ZERO, &rts());
        let at = Time::ZERO + phost.rtt;
        assert_eq!(run_until(&mut host, at), 0);
        let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq: 3, size: SIZE };
        host.handle_packet(at, &packet(free));
        assert_eq!(run_until(&mut host, at), 1);
    }

    #[test]
    fn an_unresponsive_source_gets_one_token_per_timeout() {
        let downgrade_on = Downgrading::Unanswered;
        let (mut host, phost) = host_with(PhostConfig { downgrade_on, ..PhostConfig::paper() });
        host.handle_packet(Time::ZERO, &rts());
        // The free tokens, as many as the threshold, are unanswered.
        assert_eq!(run_until(&mut host, before(Time::ZERO + phost.downgrade_time)), 0);
        assert_eq!(run_until(&mut host, Time::ZERO + phost.downgrade_time), 1);
        let end = Time::ZERO + phost.downgrade_time * 2;
        assert_eq!(run_until(&mut host, before(end)), 1);
        assert_eq!(run_until(&mut host, end), 2);
        for seq in 0..3 {
            let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq, size: SIZE };
            host.handle_packet(end, &packet(free));
        }
        // Data of old tokens does not answer the newer ones; that of the latest frees all.
        let data =
            PhostHeader::Data { rx_slot: 0, seq: phost.free_tokens, number: phost.free_tokens + 1 };
        host.handle_packet(end, &packet(data));
        assert_eq!(run_until(&mut host, end + phost.mtu_time * 3), 2 + 3);
    }

    /// Returns the time at which the destination requests the free packet of a flow that is
    /// announced at `at`. A packet of the first flow arrives after each `gap`.
    fn repaired(host: &mut PhostHost, at: Time, gap: Span) -> Time {
        let (time_to_deadline, tenant, is_retransmission) = (Span::from_ps(u64::MAX), 0, false);
        let (flow, tx_slot, size) = (1, 1, 1_000);
        let rts =
            PhostHeader::Rts { flow, tx_slot, size, time_to_deadline, tenant, is_retransmission };
        host.handle_packet(at, &make_control(rts, 8, 1, 0));
        let mut next = at + gap;
        loop {
            let now = host.poll_timeout().max(at).min(next);
            if now == next {
                let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq: 0, size: SIZE };
                host.handle_packet(now, &packet(free));
                next += gap;
            }
            host.handle_timeout(now);
            while let Some(sent) = host.poll_transmit(now) {
                if matches!(sent.header, PhostHeader::Token { tx_slot: 1, .. }) {
                    return now;
                }
            }
        }
    }

    #[test]
    fn repairs_wait_while_packets_arrive_as_long_as_free_packets_have_taken() {
        let never = Span::from_us(1_000_000);
        for gap in [never, Span::from_us(1)] {
            let (mut host, phost) = host();
            host.handle_packet(Time::ZERO, &rts());
            // The first free packet takes ten round trips, and data an eleventh. Four times the
            // deviation, a half, are added.
            let at = Time::ZERO + phost.rtt * 10;
            let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq: 0, size: SIZE };
            host.handle_packet(at, &packet(free));
            let end = match gap == never {
                true => at + phost.resend_wait.max(phost.mtu_time + phost.rtt),
                false => at + phost.mtu_time + phost.rtt * 33,
            };
            let first = repaired(&mut host, at, gap);
            assert!(first >= end && first < end + phost.rtt, "{first} {end}");
        }
    }

    /// The wait ends a quarter of a round trip after the last free packet and the data of the last
    /// token. Other packets are still missing.
    #[test]
    fn a_wait_for_missing_packets_ends_soon_after_the_last_packet_in_flight() {
        let (mut host, phost) = host();
        let size = 1_460 * u64::from(phost.free_tokens + 2);
        let free = |seq| packet(PhostHeader::Free { flow: 0, tx_slot: 0, seq, size });
        let data = |number| packet(PhostHeader::Data { rx_slot: 0, seq: number, number });
        host.handle_packet(Time::ZERO, &free(0));
        let end = Time::ZERO + phost.mtu_time * 2;
        assert_eq!(run_until(&mut host, end), 2);
        // Packet 1 is lost.
        for seq in 2..phost.free_tokens {
            host.handle_packet(end, &free(seq));
        }
        host.handle_packet(end, &data(phost.free_tokens));
        assert_eq!(run_until(&mut host, end + phost.rtt / 4), 2);
        host.handle_packet(end + phost.rtt / 4, &data(phost.free_tokens + 1));
        let resumed = end + phost.rtt / 4 + phost.rtt / 4;
        assert_eq!(run_until(&mut host, before(resumed)), 2);
        assert_eq!(run_until(&mut host, resumed), 3);
    }

    #[test]
    fn packets_of_tokens_precede_free_packets_with_lower_numbers() {
        let (mut host, phost) = host();
        host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(SIZE)));
        let mut next = || host.poll_transmit(Time::ZERO).map(|packet| packet.header);
        assert!(matches!(next(), Some(PhostHeader::Rts { .. })));
        assert!(matches!(next(), Some(PhostHeader::Free { seq: 0, .. })));
        let token = |seq, number| {
            packet(PhostHeader::Token { tx_slot: 0, rx_slot: 3, seq, number, remaining: 900 })
        };
        // The second is for a free packet that has not been sent.
        host.handle_packet(Time::ZERO, &token(phost.free_tokens, phost.free_tokens));
        host.handle_packet(Time::ZERO, &token(1, phost.free_tokens + 1));
        let mut next = || host.poll_transmit(Time::ZERO).map(|packet| packet.header);
        let data =
            PhostHeader::Data { rx_slot: 3, seq: phost.free_tokens, number: phost.free_tokens };
        assert_eq!(next(), Some(data));
        for expected in 1..phost.free_tokens {
            assert!(matches!(next(), Some(PhostHeader::Free { seq, .. }) if seq == expected));
        }
        assert_eq!(next(), None);
    }

    #[test]
    fn free_tokens_wait_for_the_link_and_expire_in_the_authors_simulator_only() {
        for (free_token_expiry, expires) in [(None, false), (Some(FreeTokenExpiry::Pace), true)] {
            let (mut host, phost) =
                host_with(PhostConfig { free_token_expiry, ..PhostConfig::paper() });
            host.submit(Time::ZERO, Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(SIZE)));
            host.poll_transmit(Time::ZERO).unwrap();
            let late = Time::ZERO + phost.rtt * 100;
            let first = host.poll_transmit(late).map(|packet| packet.header);
            let is_free = matches!(first, Some(PhostHeader::Free { seq: 0, .. }));
            assert_eq!(is_free, !expires);
            let expired = if expires { phost.free_tokens.into() } else { 0 };
            assert_eq!(host.stats().tokens_expired, expired);
        }
    }

    #[test]
    fn tokens_expire_at_their_source_one_lifetime_after_arrival() {
        let config =
            PhostConfig { free_token_expiry: Some(FreeTokenExpiry::Pace), ..PhostConfig::paper() };
        let (mut host, phost) = host_with(config);
        let message = Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(SIZE));
        host.submit(Time::ZERO, message);
        assert!(matches!(
            host.poll_transmit(Time::ZERO).unwrap().header,
            PhostHeader::Rts { is_retransmission: false, .. }
        ));
        let late = Time::ZERO
            + phost.pair_from(NodeId::new(0)).free_lifetime(phost.free_tokens)
            + Span::from_ps(1);
        assert_eq!(host.poll_transmit(late), None);
        assert_eq!(host.stats().tokens_expired, u64::from(phost.free_tokens));
        let token =
            |seq| PhostHeader::Token { tx_slot: 0, rx_slot: 3, seq, number: seq, remaining: 900 };
        host.handle_packet(late, &packet(token(100)));
        host.handle_packet(late, &packet(token(101)));
        let sent = host.poll_transmit(late + phost.token_lifetime).map(|packet| packet.header);
        assert_eq!(sent, Some(PhostHeader::Data { rx_slot: 3, seq: 100, number: 100 }));
        let late = late + phost.token_lifetime + Span::from_ps(1);
        assert_eq!((host.poll_transmit(late), host.wants_transmit()), (None, false));
        assert_eq!(host.stats().tokens_expired, u64::from(phost.free_tokens) + 1);
    }
}

mod slow_sources {
    use std::sync::Arc;

    use super::super::config::Policy;
    use super::super::wire::PhostHeader;
    use super::super::{Phost, PhostConfig, PhostHost};
    use crate::registered::Peers;
    use crate::test_packet::make_control;
    use rampmeter_types::{
        FabricFacts, NodeId, Observation, Packet, Pairs, Protocol, Purpose, Rate, Rng, Span, Time,
    };

    /// Returns a host of 10 Gbit/s and its parameters. `gbps` has the rates of all hosts.
    fn host(config: PhostConfig, gbps: &[u64]) -> (PhostHost, Arc<Phost>) {
        let facts = FabricFacts {
            n_hosts: gbps.len() as u32,
            access_rate: Rate::from_gbps(10),
            core_rate: None,
            data_rtt: Span::from_us(12),
            control_rtt: Span::from_us(10),
            abort_timeout_min: Span::ZERO,
        };
        let rates = Pairs::single_switch(gbps.iter().map(|&gbps| Rate::from_gbps(gbps)));
        let peers = Some(Peers::new(NodeId::new(0), facts, Arc::new(rates)));
        let forget_timeout = Span::from_us(10_000_000);
        let phost = Arc::new(Phost { peers, forget_timeout, ..config.derive(&facts).unwrap() });
        let rng = Rng::new(1, 0, Purpose::Test);
        (PhostHost::new(Arc::clone(&phost), NodeId::new(0), rng, Time::ZERO), phost)
    }

    fn rts(src: u32, flow: u32, size: u64, terms: (Span, u16)) -> Packet<PhostHeader> {
        let (tx_slot, (time_to_deadline, tenant), is_retransmission) = (flow, terms, false);
        let rts =
            PhostHeader::Rts { flow, tx_slot, size, time_to_deadline, tenant, is_retransmission };
        make_control(rts, flow, src, 0)
    }

    /// Answers each token with its packet, at once, until there has been none for 100 round trips.
    fn answer_tokens(host: &mut PhostHost, phost: &Phost) {
        let mut idle = Time::ZERO + phost.rtt * 100;
        while host.poll_timeout() <= idle {
            let now = host.poll_timeout();
            host.handle_timeout(now);
            while let Some(sent) = host.poll_transmit(now) {
                let PhostHeader::Token { rx_slot, seq, number, .. } = sent.header else { continue };
                let data = PhostHeader::Data { rx_slot, seq, number };
                let (msg, src) = (sent.payload.msg.get(), sent.dst.get());
                host.handle_packet(now, &make_control(data, msg, src, 0));
                idle = now + phost.rtt * 100;
            }
            while host.poll_event().is_some() {}
        }
    }

    /// All flows of a slow source are skipped together while it may have no token.
    #[test]
    fn a_token_among_many_flows_of_a_slow_source_takes_few_lookups() {
        let n = 2_000;
        for policy in [Policy::Srpt, Policy::TenantFair] {
            let config = PhostConfig { policy, ..PhostConfig::paper() };
            let (mut host, phost) = host(config, &[10, 1, 10]);
            for flow in 0..n {
                let terms = (Span::from_ps(u64::MAX), (flow % 3) as u16);
                host.handle_packet(Time::ZERO, &rts(1, flow, 30_000, terms));
            }
            answer_tokens(&mut host, &phost);
            let (tokens, looks) = (host.stats().tokens_sent, host.n_examined());
            assert_eq!(host.message_counts(), Some((0, 0)), "{policy:?}");
            assert!(tokens >= 20 * u64::from(n), "{tokens}");
            assert!(looks <= 3 * tokens, "{looks} looks for {tokens} tokens");
        }
    }

    /// Flows that wait for free packets while others arrive are not looked at for each of these.
    #[test]
    fn a_packet_among_many_waiting_flows_takes_few_lookups() {
        let n = 2_000;
        let (mut host, phost) = host(PhostConfig::paper(), &[10, 10]);
        for flow in 0..n {
            host.handle_packet(Time::ZERO, &rts(1, flow, 3_000, (Span::from_ps(u64::MAX), 0)));
        }
        let free = PhostHeader::Free { flow: 0, tx_slot: 0, seq: 0, size: 3_000 };
        for packet in 0..8_000 {
            let now = Time::ZERO + phost.mtu_time * packet;
            host.handle_packet(now, &make_control(free, 0, 1, 0));
            while host.poll_timeout() <= now {
                host.handle_timeout(now);
            }
            while host.poll_transmit(now).is_some() {}
        }
        let (tokens, looks) = (host.stats().tokens_sent, host.n_examined());
        assert!(tokens > 1_000, "{tokens}");
        assert!(looks <= 5 * (tokens + u64::from(n)), "{looks} looks for {tokens} tokens");
    }
}
