//! Tests of dcPIM's parts. Whole runs are in `tests/` of this crate.

mod wire {
    use super::super::wire::*;
    use rampmeter_types::{Header, WireError};

    #[test]
    fn dcpim_headers_are_a_type_byte_and_big_endian_fields() {
        let header = DcpimHeader::Notification {
            flow: 1,
            tx_slot: 2,
            size: 0x0304,
            is_retransmission: true,
        };
        let mut bytes = [0; 18];
        assert_eq!(header.encode(&mut bytes), Ok(18));
        assert_eq!(bytes, [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4, 1]);
    }

    #[test]
    fn dcpim_decoding_errors_name_the_field() {
        let decode = |bytes: &[u8]| DcpimHeader::decode(bytes).unwrap_err();
        assert_eq!(decode(&[]), WireError::Truncated { needed: 1, got: 0 });
        assert_eq!(decode(&[99]), WireError::UnknownType(99));
        let zero_channels = [7; 1].iter().chain(&[0; 19]).copied().collect::<Vec<u8>>();
        let message = decode(&zero_channels).to_string();
        assert_eq!(message, "field channels must be at least 1, got 0");
    }
}

mod config {
    use super::super::config::*;
    use rampmeter_types::{FabricFacts, Rate, Span};

    /// Returns the paper's network (§3.4): 5.8 us and 5.2 us round trips at 100 Gbit/s.
    fn facts() -> FabricFacts {
        FabricFacts {
            n_hosts: 144,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_ns(5_800),
            control_rtt: Span::from_ns(5_216),
            abort_timeout_min: Span::ZERO,
        }
    }

    #[test]
    fn the_papers_network_gives_the_papers_numbers() {
        let paper = DcpimConfig::paper().derive(&facts()).unwrap();
        // §3.4: (2r+1) beta cRTT/2 is 30.4 us with cRTT 5.2; BDP 72.5 KB is 49 packets.
        assert_eq!(paper.phase(), Span::from_ps(3_390_400 * 9));
        assert_eq!((paper.bdp, paper.short_max), (49, 49));
        let reference = DcpimConfig::reference().derive(&facts()).unwrap();
        assert_eq!(reference.phase(), Span::from_ps(27_123_200));
        assert_eq!(reference.channel_packets, 56);
        assert_eq!(reference.own_pair().window_timeout, Span::from_ps(6_468_000));
        assert_eq!(reference.grace, Span::from_ps(3_088_000));
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let error =
            DcpimConfig { channels: 0, ..DcpimConfig::paper() }.derive(&facts()).unwrap_err();
        assert_eq!(error.to_string(), "channels: expected 1 to 64, got 0");
    }
}

mod schedule {
    use super::super::config::DcpimConfig;
    use super::super::schedule::*;
    use rampmeter_types::{ClockOrigin, FabricFacts, Rate, Span, Time};

    fn all_duties(config: DcpimConfig, phases: u32) -> Vec<(Time, StageActions)> {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_us(6),
            control_rtt: Span::from_us(5),
            abort_timeout_min: Span::ZERO,
        };
        let dcpim = config.derive(&facts).unwrap();
        let mut schedule = Schedule::at_next_stage(Time::ZERO, ClockOrigin::default(), &dcpim);
        let next = |_| (schedule.at(), schedule.advance(&dcpim));
        (0..phases * dcpim.stages).map(next).collect()
    }

    #[test]
    fn every_round_has_a_request_a_grant_and_an_accept_one_stage_apart() {
        for config in [DcpimConfig::paper(), DcpimConfig::reference()] {
            let rounds = config.matching_rounds;
            let duties = all_duties(config, 3);
            let stage = duties[1].0 - duties[0].0;
            let at = |is_due: &dyn Fn(&StageActions) -> bool| {
                duties.iter().find(|(_, d)| is_due(d)).map(|(at, _)| *at).unwrap()
            };
            for phase in 0..2 {
                for round in (0..rounds).map(|round| MatchingRound { phase, round }) {
                    let request = at(&|d| d.request == Some(round));
                    assert_eq!(at(&|d| d.grant == Some(round)), request + stage);
                    assert_eq!(at(&|d| d.accept == Some(round)), request + stage * 2);
                }
            }
        }
    }

    #[test]
    fn data_starts_a_stage_after_the_last_accept_or_with_it() {
        let last_accept_to_begin = |config: DcpimConfig| {
            let last = MatchingRound { phase: 0, round: config.matching_rounds - 1 };
            let duties = all_duties(config, 2);
            let accept = duties.iter().find(|(_, d)| d.accept == Some(last)).unwrap().0;
            duties.iter().find(|(_, d)| d.begin == Some(1)).unwrap().0 - accept
        };
        assert_eq!(last_accept_to_begin(DcpimConfig::paper()).as_ps(), 3_250_000);
        assert_eq!(last_accept_to_begin(DcpimConfig::reference()), Span::ZERO);
    }
}

mod matching {
    use super::super::config::Rounds;
    use super::super::matching::*;
    use super::super::schedule::MatchingRound;
    use super::super::wire::{Match, Step};
    use proptest::prelude::*;
    use rampmeter_types::{NodeId, Purpose, Rng};

    fn offer(peer: u32, channels: u8, remaining: u32) -> Offer {
        let (step, prompt, round, phase, announced) = (Step::Request, channels, 0, 0, peer.into());
        let fields = Match { step, channels, prompt, round, phase, remaining, announced };
        Offer { peer: NodeId::new(peer), fields }
    }

    fn rng(seed: u64) -> Rng {
        Rng::new(seed, 0, Purpose::Test)
    }

    proptest! {
        #[test]
        fn capacity_is_used_up_and_never_exceeded(
            asked in proptest::collection::vec((1u8..9, 1u32..1000), 0..20),
            channels in 0u8..9,
            prompt in 0u8..9,
            smallest in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let order = if smallest { OfferOrder::SmallestFirst } else { OfferOrder::Random };
            let mut offers: Vec<Offer> =
                asked.iter().enumerate().map(|(i, a)| offer(i as u32, a.0, a.1)).collect();
            choose(&mut offers, order, Capacity { channels, prompt }, &mut rng(seed));
            let given: u32 = offers.iter().map(|o| u32::from(o.fields.channels)).sum();
            let total_channels: u32 = asked.iter().map(|a| u32::from(a.0)).sum();
            prop_assert_eq!(given, total_channels.min(channels.into()));
            let started: u32 = offers.iter().map(|o| u32::from(o.fields.prompt)).sum();
            prop_assert!(started <= prompt.into());
            for o in &offers {
                prop_assert!(o.fields.channels > 0 && o.fields.prompt <= o.fields.channels);
                prop_assert!(o.fields.channels <= asked[o.peer.idx()].0);
            }
            if smallest {
                prop_assert!(offers.is_sorted_by_key(|o| (o.fields.remaining, o.peer)));
            }
        }
    }

    #[test]
    fn a_random_choice_is_uniform() {
        let mut rng = rng(3);
        let mut wins = [0u32; 5];
        for _ in 0..50_000 {
            let mut offers = (0..5).map(|p| offer(p, 1, p)).collect();
            choose(&mut offers, OfferOrder::Random, Capacity { channels: 1, prompt: 0 }, &mut rng);
            wins[offers[0].peer.idx()] += 1;
        }
        // Chi-square with 4 degrees of freedom; 23.5 is its 0.9999 quantile.
        let chi2: f64 = wins.iter().map(|&w| (f64::from(w) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 23.5, "{wins:?}");
    }

    fn at(phase: u32, round: u8) -> Offer {
        let mut o = offer(1, 1, 1);
        (o.fields.phase, o.fields.round) = (phase, round);
        o
    }

    #[test]
    fn strict_rounds_drop_late_offers_and_keep_early_ones() {
        let mut inbox = Inbox::default();
        for early_or_late in [at(0, 3), at(1, 0), at(1, 1)] {
            inbox.push(early_or_late, MatchingRound { phase: 1, round: 0 }, Rounds::Strict);
        }
        let mut out = Vec::new();
        inbox.take(MatchingRound { phase: 1, round: 0 }, Rounds::Strict, &mut out);
        assert_eq!((out.len(), inbox.late_offers()), (1, 1));
        inbox.take(MatchingRound { phase: 1, round: 1 }, Rounds::Strict, &mut out);
        assert_eq!((out.len(), inbox.late_offers()), (1, 1));
    }

    #[test]
    fn local_rounds_serve_all_received_offers() {
        let mut inbox = Inbox::default();
        for any in [at(0, 3), at(1, 0), at(7, 1)] {
            inbox.push(any, MatchingRound { phase: 1, round: 0 }, Rounds::Local);
        }
        let mut out = Vec::new();
        inbox.take(MatchingRound { phase: 1, round: 0 }, Rounds::Local, &mut out);
        assert_eq!((out.len(), inbox.late_offers()), (3, 0));
    }

    /// Returns a random bipartite graph of `n` receivers and `n` senders with mean degree `degree`,
    /// as the senders that each receiver has flows from.
    fn graph(n: usize, degree: usize, rng: &mut Rng) -> Vec<Vec<usize>> {
        let mut edges = vec![Vec::new(); n];
        for _ in 0..n * degree {
            let (receiver, sender) = (rng.uniform_below(n), rng.uniform_below(n));
            if !edges[receiver].contains(&sender) {
                edges[receiver].push(sender);
            }
        }
        edges
    }

    /// Matches with one channel in rounds of request, grant and accept, by [`choose`]. Returns the
    /// size after each round; the last is that of a maximal matching.
    fn matching_sizes(edges: &[Vec<usize>], rng: &mut Rng) -> Vec<usize> {
        let n = edges.len();
        let one = Capacity { channels: 1, prompt: 0 };
        let (mut receiver_of, mut sender_of) = (vec![None; n], vec![None; n]);
        let mut sizes = Vec::new();
        loop {
            let mut requests = vec![Vec::new(); n];
            for (r, senders) in edges.iter().enumerate().filter(|(r, _)| sender_of[*r].is_none()) {
                for &s in senders.iter().filter(|&&s| receiver_of[s].is_none()) {
                    requests[s].push(offer(r as u32, 1, 1));
                }
            }
            if requests.iter().all(Vec::is_empty) {
                return sizes;
            }
            let mut grants = vec![Vec::new(); n];
            for (s, mut requests) in requests.into_iter().enumerate() {
                choose(&mut requests, OfferOrder::Random, one, rng);
                for granted in requests {
                    grants[granted.peer.idx()].push(offer(s as u32, 1, 1));
                }
            }
            for (r, mut grants) in grants.into_iter().enumerate() {
                choose(&mut grants, OfferOrder::Random, one, rng);
                for accepted in grants {
                    sender_of[r] = Some(accepted.peer.idx());
                    receiver_of[accepted.peer.idx()] = Some(r);
                }
            }
            sizes.push(receiver_of.iter().flatten().count());
        }
    }

    /// Theorem 1 (§3.1): after r rounds E[M] is at least (1 - d alpha / 4^r) M*. M* = n / alpha is
    /// the size to which the matching converges.
    #[test]
    fn sizes_are_at_least_those_of_theorem_1() {
        let mut rng = rng(1);
        for n in [16, 144, 1024, 4096] {
            for degree in [1, 2, 5, 16, 64] {
                let runs = if n > 1000 { 3 } else { 20 };
                let mut sum = [0.0; 8];
                let mut converged = 0.0;
                let mut edges_total = 0;
                for _ in 0..runs {
                    let edges = graph(n, degree, &mut rng);
                    edges_total += edges.iter().map(Vec::len).sum::<usize>();
                    let sizes = matching_sizes(&edges, &mut rng);
                    let last = *sizes.last().unwrap();
                    converged += last as f64;
                    for (r, total) in sum.iter_mut().enumerate() {
                        *total += *sizes.get(r).unwrap_or(&last) as f64;
                    }
                }
                let mean_degree = edges_total as f64 / (n * runs) as f64;
                let alpha = (n * runs) as f64 / converged;
                for (r, total) in sum.iter().enumerate() {
                    let bound = 1.0 - mean_degree * alpha / 4f64.powi(r as i32 + 1);
                    let share = total / converged;
                    assert!(share >= bound, "n {n} degree {degree} round {r}: {share} < {bound}");
                }
                // The theorem's point: four rounds suffice at low degree, for any n.
                if degree <= 5 {
                    assert!(sum[3] / converged > 0.97, "n {n} degree {degree}");
                }
            }
        }
    }

    #[test]
    fn the_converged_matching_is_maximal_and_within_half_of_the_maximum() {
        let mut rng = rng(2);
        for _ in 0..50 {
            let edges = graph(200, 3, &mut rng);
            let size = *matching_sizes(&edges, &mut rng).last().unwrap();
            let maximum = maximum_matching(&edges);
            assert!(size <= maximum && 2 * size >= maximum, "{size} of {maximum}");
        }
    }

    /// Returns the size of a maximum matching, by augmenting paths.
    fn maximum_matching(edges: &[Vec<usize>]) -> usize {
        fn augment(
            r: usize,
            edges: &[Vec<usize>],
            seen: &mut [bool],
            matched: &mut [Option<usize>],
        ) -> bool {
            edges[r].iter().any(|&s| {
                if std::mem::replace(&mut seen[s], true) {
                    return false;
                }
                let free = matched[s].is_none_or(|other| augment(other, edges, seen, matched));
                if free {
                    matched[s] = Some(r);
                }
                free
            })
        }
        let mut matched = vec![None; edges.len()];
        (0..edges.len())
            .filter(|&r| augment(r, edges, &mut vec![false; edges.len()], &mut matched))
            .count()
    }
}

mod tokens {
    use std::sync::Arc;

    use super::super::wire::{DcpimHeader, Match, Step};
    use super::super::{Dcpim, DcpimConfig, DcpimHost};
    use crate::dcpim::sender::permission::{ANNOUNCEMENT, DATA_PHASE, MATCHING, TOKEN};
    use crate::test_packet::make_control;
    use rampmeter_types::{
        Bytes, FabricFacts, HostPolicy, Message, MsgId, NodeId, Observation, Packet, Permission,
        Protocol, Purpose, Rate, Rng, Span, Time,
    };

    /// Size of a long flow, in bytes.
    const SIZE: u64 = 1_460 * 1_000;

    fn host(config: DcpimConfig) -> (DcpimHost, Arc<Dcpim>) {
        host_since(config, Time::ZERO)
    }

    fn host_since(config: DcpimConfig, start: Time) -> (DcpimHost, Arc<Dcpim>) {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_ns(5_800),
            control_rtt: Span::from_ns(5_216),
            abort_timeout_min: Span::ZERO,
        };
        let dcpim = Arc::new(Dcpim { may_sleep: true, ..config.derive(&facts).unwrap() });
        let rng = Rng::new(1, 0, Purpose::Test);
        (DcpimHost::new(Arc::clone(&dcpim), NodeId::new(0), rng, start), dcpim)
    }

    fn packet(header: DcpimHeader) -> Packet<DcpimHeader> {
        make_control(header, 7, 1, 0)
    }

    /// Runs the host's clock; each request is granted in full. Returns the instants of tokens.
    fn run_until(host: &mut DcpimHost, end: Time) -> Vec<Time> {
        let mut tokens = Vec::new();
        while host.poll_timeout() <= end {
            let now = host.poll_timeout();
            host.handle_timeout(now);
            while let Some(sent) = host.poll_transmit(now) {
                match sent.header {
                    DcpimHeader::Token { .. } => tokens.push(now),
                    DcpimHeader::Match(fields) if fields.step == Step::Request => {
                        let grant = Match { step: Step::Grant, ..fields };
                        host.handle_packet(now, &packet(DcpimHeader::Match(grant)));
                    }
                    _ => {}
                }
            }
        }
        tokens
    }

    /// §3.4: with all channels a receiver requests a packet every packet time. At most a
    /// bandwidth-delay product is requested and missing.
    #[test]
    fn a_matched_source_gets_a_token_a_packet_time_up_to_a_window() {
        let (mut host, dcpim) = host(DcpimConfig::paper());
        let (flow, tx_slot, size, is_retransmission) = (0, 0, SIZE, false);
        let notification = DcpimHeader::Notification { flow, tx_slot, size, is_retransmission };
        host.handle_packet(Time::ZERO, &packet(notification));
        let tokens = run_until(&mut host, Time::ZERO + dcpim.phase() * 3);
        let line_rate = tokens.windows(2).take_while(|w| w[1] - w[0] == dcpim.mtu_time).count();
        assert!(line_rate + 1 >= dcpim.bdp as usize, "{line_rate} gaps of a packet time");
        assert!(tokens.windows(2).all(|w| w[1] - w[0] >= dcpim.mtu_time));
        let in_a_round_trip =
            tokens.iter().filter(|at| **at < tokens[0] + dcpim.own_pair().window_timeout);
        assert!(in_a_round_trip.count() <= dcpim.bdp as usize + 1);
        assert_eq!(host.stats().tokens_sent, tokens.len() as u64);
    }

    /// After a long sleep a host behaves like one that has just started.
    #[test]
    fn a_host_with_nothing_to_do_sleeps_and_wakes_in_the_phase_of_all_others() {
        let mut rng = Rng::new(2, 0, Purpose::Test);
        for keys in [DcpimConfig::paper(), DcpimConfig::reference()] {
            let (mut sleeper, dcpim) = host(keys.clone());
            run_until(&mut sleeper, Time::ZERO + dcpim.phase() * 9);
            assert_eq!(sleeper.poll_timeout(), Time::NEVER);
            let mut now = Time::ZERO;
            for _ in 0..40 {
                let before = now + dcpim.phase() * 29;
                now = before + dcpim.phase() + Span::from_ps(rng.bits() % dcpim.phase().as_ps());
                let (mut fresh, _) = host_since(keys.clone(), before);
                run_until(&mut fresh, now);
                let tokens = [&mut sleeper, &mut fresh].map(|host| {
                    let (flow, tx_slot, size, is_retransmission) = (0, 0, SIZE, false);
                    let notification =
                        DcpimHeader::Notification { flow, tx_slot, size, is_retransmission };
                    host.handle_packet(now, &packet(notification));
                    run_until(host, now + dcpim.phase() * 3)
                });
                assert!(!tokens[0].is_empty());
                assert_eq!(tokens[0], tokens[1]);
                sleeper.forget_peer(now + dcpim.phase() * 3, NodeId::new(1));
                run_until(&mut sleeper, now + dcpim.phase() * 20);
                assert_eq!(sleeper.poll_timeout(), Time::NEVER);
            }
        }
    }

    /// §3.1, §3.2: announcement, matching, and the data phase of the match, with tokens.
    #[test]
    fn a_flow_waits_for_its_announcement_its_match_its_phase_and_its_tokens() {
        let (mut host, dcpim) = host(DcpimConfig::paper());
        let msg = MsgId::new(7);
        host.submit(Time::ZERO, Message::new(msg, NodeId::new(1), Bytes::new(SIZE)));
        let mut stages = vec![host.permission(Time::ZERO, msg)];
        let ack = DcpimHeader::Ack { tx_slot: 0, is_paused: false };
        host.handle_packet(Time::ZERO, &packet(ack));
        stages.push(host.permission(Time::ZERO, msg));
        let (step, channels, prompt, round) = (Step::Accept, 1, 0, 0);
        let (phase, remaining, announced) = (0, 1_000, 0);
        let accept = Match { step, channels, prompt, round, phase, remaining, announced };
        host.handle_packet(Time::ZERO, &packet(DcpimHeader::Match(accept)));
        stages.push(host.permission(Time::ZERO, msg));
        for n_phases in 1..=2 {
            let now = Time::ZERO + dcpim.phase() * n_phases;
            run_until(&mut host, now);
            stages.push(host.permission(now, msg));
        }
        let expected = [ANNOUNCEMENT, MATCHING, DATA_PHASE, TOKEN, MATCHING];
        assert_eq!(stages, expected.map(|stage| Some(Permission::Awaited(stage))));
    }

    /// §3.2: a token is void a grace period after the end of its phase.
    #[test]
    fn tokens_expire_a_grace_period_after_their_phase() {
        for (late, expired) in [(Span::ZERO, 0), (Span::from_ps(1), 1)] {
            let (mut host, dcpim) = host(DcpimConfig::paper());
            let message = Message::new(MsgId::new(7), NodeId::new(1), Bytes::new(SIZE));
            host.submit(Time::ZERO, message);
            while host.poll_transmit(Time::ZERO).is_some() {}
            let (tx_slot, rx_slot, seq, number, cumulative) = (0, 3, 0, 0, 0);
            let (phase, remaining, rank) = (0, 1_000, 2);
            let token = DcpimHeader::Token {
                tx_slot,
                rx_slot,
                seq,
                number,
                cumulative,
                phase,
                remaining,
                rank,
            };
            host.handle_packet(Time::ZERO, &packet(token));
            let now = Time::ZERO + dcpim.phase() + dcpim.grace + late;
            let sent = host.poll_transmit(now).map(|packet| packet.header);
            let data = DcpimHeader::Data { rx_slot, seq, number };
            assert_eq!(sent, (expired == 0).then_some(data));
            assert_eq!(host.stats().tokens_expired, expired);
        }
    }
}
