//! Algorithm 1 by hand, and the records it reads.

use proptest::collection::vec;
use proptest::prelude::*;
use rampmeter_types::{Bytes, FabricFacts, Rate, Span, Time};

use super::config::{Hpcc, HpccConfig};
use super::control::{AckTelemetry, Control};
use super::int::{Record, Records};
use crate::keys::PacketSizes;

/// 100 Gbit/s and a round trip of 8 us: 100 000 bytes.
fn hpcc() -> Hpcc {
    let facts = FabricFacts {
        n_hosts: 2,
        access_rate: Rate::from_gbps(100),
        core_rate: None,
        data_rtt: Span::from_us(8),
        control_rtt: Span::from_us(8),
        abort_timeout_min: Span::ZERO,
    };
    HpccConfig::paper().derive(&facts).unwrap()
}

fn records(hops: &[(u64, u64, u32)]) -> Records {
    let mut records = Records::default();
    for &(ns, sent, queued) in hops {
        let now = Time::ZERO + Span::from_ns(ns);
        assert!(records.push(Record::new(now, sent, queued, Rate::from_gbps(100))));
    }
    records
}

mod derived {
    use super::*;

    /// §3.3: W_init = B T and W_AI = W_init (1 - eta) / N; the paper's 80 bytes are of 13 us.
    #[test]
    fn windows_and_steps_follow_from_rate_and_round_trip() {
        let hpcc = hpcc();
        assert_eq!(hpcc.windows.max, 100_000.0);
        assert!((hpcc.windows.step - 50.0).abs() < 1e-9);
        let paper = HpccConfig { base_rtt: Some(Span::from_us(13)), ..HpccConfig::paper() };
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_us(1),
            control_rtt: Span::from_us(1),
            abort_timeout_min: Span::ZERO,
        };
        let step = paper.derive(&facts).unwrap().windows.step;
        assert!((step - 81.25).abs() < 1e-9, "{step}");
    }

    #[test]
    fn a_full_packet_of_the_paper_has_42_bytes_of_telemetry() {
        let segmentation = HpccConfig::paper().segmentation();
        assert_eq!(segmentation.full_wire_bytes(), Bytes::new(1_000 + 40 + 42));
    }

    #[test]
    fn a_longest_timeout_below_the_least_is_refused() {
        let keys = HpccConfig {
            timeout_min: Some(Span::from_ns(1_000)),
            timeout_max: Some(Span::from_ns(999)),
            ..HpccConfig::paper()
        };
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(100),
            core_rate: None,
            data_rtt: Span::from_us(1),
            control_rtt: Span::from_us(1),
            abort_timeout_min: Span::ZERO,
        };
        assert_eq!(keys.derive(&facts).unwrap_err().key, "rto-max-us");
    }
}

mod hosts {
    use crate::hpcc::HpccTransport;
    use crate::registered::{Deployment, RegisteredTransport, Site};

    use super::*;

    #[test]
    fn hpcc_is_refused_between_real_hosts() {
        let facts = FabricFacts {
            n_hosts: 2,
            access_rate: Rate::from_gbps(10),
            core_rate: None,
            data_rtt: Span::from_us(50),
            control_rtt: Span::from_us(50),
            abort_timeout_min: Span::ZERO,
        };
        let deployment = Deployment::Hosts(PacketSizes::new(1_400, 134));
        let site = Site { facts, deployment, lower: None };
        let error = HpccTransport::configure(HpccConfig::paper(), &site).unwrap_err();
        let expected = "name: expected a transport that works without telemetry of switches, \
            between hosts, got hpcc";
        assert_eq!(error.to_string(), expected);
        const { assert!(!HpccTransport::ON_HOSTS) };
    }
}

mod record {
    use super::*;

    #[test]
    fn differences_survive_the_wrap_of_time_and_bytes() {
        let rate = Rate::from_gbps(400);
        let wrap = Time::from_ps((1 << 39) - (1 << 13));
        let then = Record::new(wrap, (1 << 32) - 1_000, 7, rate);
        let now = Record::new(wrap + Span::from_ps(1 << 14), (1 << 32) + 500, 9, rate);
        assert_eq!(now.time_since(then), Span::from_ps(1 << 14));
        assert_eq!((now.sent_since(then), now.queued()), (1_500, 9));
    }

    #[test]
    fn rates_of_links_are_exact() {
        for gbps in [1, 10, 25, 40, 50, 100, 200, 400, 800, 1_600] {
            let record = Record::new(Time::ZERO, 0, 0, Rate::from_gbps(gbps));
            let expected = gbps as f64 / 8_000.0;
            assert!((record.bytes_per_ps() / expected - 1.0).abs() < 1e-12, "{gbps}");
        }
        // Others within one part in 2048.
        let odd = Record::new(Time::ZERO, 0, 0, Rate::from_bps(123_457_000_000).unwrap());
        let share = odd.bytes_per_ps() / (123.457 / 8_000.0);
        assert!((1.0 - 1.0 / 2_048.0..=1.0).contains(&share), "{share}");
    }
}

mod algorithm {
    use super::*;

    fn ack(control: &mut Control, records: &Records, cumulative: u32, next: u32) -> bool {
        control.on_ack(AckTelemetry { path: 1, records }, cumulative, next, &hpcc())
    }

    /// A link that sent 50 000 bytes in 8 us has u = 0.5. With 20 000 bytes queued at both ends of
    /// the round trip it has 0.7.
    #[test]
    fn the_fullest_link_counts_with_the_shorter_of_two_queues() {
        let mut control = Control::new(hpcc().windows);
        assert!(ack(&mut control, &records(&[(0, 0, 30_000), (0, 0, 0)]), 1, 50));
        let later = records(&[(8_000, 50_000, 20_000), (8_000, 60_000, 90_000)]);
        ack(&mut control, &later, 2, 50);
        assert!((control.utilisation() - 0.7).abs() < 1e-3, "{}", control.utilisation());
    }

    /// tau = T / 4: a quarter of the new value counts, and three quarters of the first, 1.
    #[test]
    fn usage_is_smoothed_over_a_round_trip() {
        let mut control = Control::new(hpcc().windows);
        ack(&mut control, &records(&[(0, 0, 0)]), 1, 50);
        ack(&mut control, &records(&[(2_000, 12_500, 0)]), 2, 50);
        assert!(
            (control.utilisation() - (0.75 + 0.25 * 0.5)).abs() < 1e-3,
            "{}",
            control.utilisation()
        );
    }

    /// With U = 1.9, twice eta, each acknowledgement of a round trip halves the same reference.
    #[test]
    fn a_round_trip_of_acknowledgements_cuts_the_reference_once() {
        let mut control = Control::new(hpcc().windows);
        ack(&mut control, &records(&[(0, 0, 90_000)]), 1, 50);
        for n in 1..=3u32 {
            let of = records(&[(u64::from(n) * 8_000, u64::from(n) * 100_000, 90_000)]);
            ack(&mut control, &of, 1 + n, 50);
            let expected = 100_000.0 * 0.95 / control.utilisation() + 50.0;
            assert!((control.window() - expected).abs() < 1e-6, "{}", control.window());
            assert!((control.utilisation() - 1.9).abs() < 1e-2);
        }
        // The packet after those that were in flight makes it the reference.
        ack(&mut control, &records(&[(32_000, 400_000, 90_000)]), 51, 80);
        ack(&mut control, &records(&[(40_000, 500_000, 90_000)]), 52, 80);
        assert!((control.window() - 25_000.0).abs() < 500.0, "{}", control.window());
    }

    /// §3.3: five steps of W_AI, one a round trip, and then a multiplicative one.
    #[test]
    fn after_max_stage_additive_steps_the_window_grows_multiplicatively() {
        let mut control = Control::new(hpcc().windows);
        // Down to half: u = 1.9.
        ack(&mut control, &records(&[(0, 0, 90_000)]), 1, 2);
        ack(&mut control, &records(&[(8_000, 100_000, 90_000)]), 3, 4);
        let (half, mut n) = (control.window(), 0);
        let mut before = half;
        loop {
            n += 1;
            // The link is used by half.
            let sent = 100_000 + n * 50_000;
            let of = records(&[((n + 1) * 8_000, sent, 0)]);
            ack(&mut control, &of, 3 + 2 * n as u32, 4 + 2 * n as u32);
            let grown = control.window() - before;
            before = control.window();
            if grown > 1_000.0 {
                break;
            }
            assert!((grown - 50.0).abs() < 1e-6, "step {n}: {grown}");
        }
        assert_eq!(n, 6);
        // Another path with as many switches is no sample.
        let of = records(&[(100_000, 0, 0)]);
        let other = AckTelemetry { path: 2, records: &of };
        assert!(!control.on_ack(other, 99, 100, &hpcc()));
        assert_eq!(control.window(), before);
    }

    #[test]
    fn the_window_is_at_most_the_capacity_of_the_hosts_link() {
        let mut control = Control::new(hpcc().windows);
        for n in 0..100u32 {
            let of = records(&[(u64::from(n) * 8_000, u64::from(n) * 1_000, 0)]);
            ack(&mut control, &of, 1 + n, 1 + n);
            assert!(control.window() <= 100_000.0);
        }
        assert_eq!(control.window(), 100_000.0);
    }

    /// An acknowledgement: `ack.L` of each link (time in seconds, bytes, queue), `ack.seq` and
    /// `snd_nxt`.
    type PrintedAck = (Vec<(f64, f64, f64)>, u32, u32);

    /// Algorithm 1 as the paper prints it, with its names. Returns the windows.
    #[expect(non_snake_case)]
    fn as_printed(acks: &[PrintedAck]) -> Vec<f64> {
        let (T, B, eta, maxStage, W_AI, W_init) = (8e-6, 12.5e9, 0.95, 5, 50.0, 1e5);
        let (mut W, mut Wc, mut U, mut incStage) = (W_init, W_init, 1.0, 0);
        let (mut L, mut lastUpdateSeq) = (acks[0].0.clone(), acks[0].2);
        let mut windows = vec![W];
        for (ack_L, seq, snd_nxt) in &acks[1..] {
            let (mut u, mut tau) = (0.0, 0.0);
            for (now, last) in ack_L.iter().zip(&L) {
                let txRate = (now.1 - last.1) / (now.0 - last.0);
                let of_link = now.2.min(last.2) / (B * T) + txRate / B;
                if of_link > u {
                    (u, tau) = (of_link, now.0 - last.0);
                }
            }
            tau = f64::min(tau, T);
            U = (1.0 - tau / T) * U + tau / T * u;
            let updateWc = *seq > lastUpdateSeq;
            if U >= eta || incStage >= maxStage {
                W = Wc / (U / eta) + W_AI;
                if updateWc {
                    (incStage, Wc) = (0, f64::min(W, W_init));
                }
            } else {
                W = Wc + W_AI;
                if updateWc {
                    (incStage, Wc) = (incStage + 1, f64::min(W, W_init));
                }
            }
            W = f64::min(W, W_init);
            if updateWc {
                lastUpdateSeq = *snd_nxt;
            }
            L.clone_from(ack_L);
            windows.push(W);
        }
        windows
    }

    proptest! {
        /// Windows after any telemetry are those of the algorithm as the paper prints it.
        #[test]
        fn windows_are_those_of_the_algorithm_as_printed(
            steps in vec(
                (vec((1u64..200, 0u64..100_000, 0u32..200_000), 3), 0u32..5, 0u32..50),
                2..200,
            ),
        ) {
            let mut control = Control::new(hpcc().windows);
            let (mut links, mut seq) = ([(0u64, 0u64); 3], 1);
            let mut acks = Vec::new();
            for (link_steps, acked, in_flight) in &steps {
                seq += acked;
                for (link, (units, sent, _)) in links.iter_mut().zip(link_steps) {
                    // Records have the time in units of 128 ps.
                    *link = (link.0 + units * 128_000, link.1 + sent);
                }
                let telemetry = || links.iter().zip(link_steps);
                let of = telemetry().map(|(&(ps, sent), step)| (ps / 1_000, sent, step.2));
                let printed = telemetry()
                    .map(|(&(ps, sent), step)| (ps as f64 * 1e-12, sent as f64, step.2.into()));
                acks.push((printed.collect(), seq, seq + in_flight));
                ack(&mut control, &records(&of.collect::<Vec<_>>()), seq, seq + in_flight);
                let expected = *as_printed(&acks).last().unwrap();
                let error = (control.window() / expected - 1.0).abs();
                prop_assert!(error < 1e-6, "{} instead of {expected}", control.window());
            }
        }
    }
}
