//! Homa in whole simulations: exact times, queues of incasts, priorities of the published
//! workloads, selective dropping.

use std::sync::Arc;

use rampmeter_proto::RegisteredTransport;
use rampmeter_proto::homa::config::Exchange;
use rampmeter_proto::homa::cutoffs::split_priorities;
use rampmeter_proto::homa::{AeolusConfig, HomaAeolusTransport, HomaConfig, HomaTransport};
use rampmeter_sim::fabric::{Buffer, DropReason, PortChange, PortEvent};
use rampmeter_sim::*;
use rampmeter_testkit::{TestNetwork, arrival, spec, star};
use rampmeter_types::packet::Marks;
use rampmeter_types::{Bytes, Header, Packet, Transport};
use rampmeter_workload::size::named;

/// Returns a transport on 40 hosts at one switch whose ports never fill: a port of 500 KB overflows
/// with seven bandwidth-delay products.
fn deep<T: RegisteredTransport>(keys: &T::Keys) -> (SimSpec, Arc<T::Config>, FabricConfig) {
    let place = TestNetwork::<T>::simulated(keys, star(40).build().unwrap());
    let buffer = Buffer::PerPort(Bytes::new(4_000_000_000));
    let fabric = FabricConfig { buffer, ..place.fabric };
    let spec = SimSpec { fabric: fabric.clone(), ..spec(place.topology, 1) };
    (spec, Arc::new(place.config), fabric)
}

/// Runs messages to their end, seen by a probe.
fn observe<F: Transport, P: Probe + Default>(
    spec: SimSpec,
    config: Arc<F::Config>,
    arrivals: Vec<Arrival>,
) -> P {
    let mut probe = P::default();
    let mut sim = Sim::<F, _, _>::new(spec, config, arrivals.into_iter(), &mut probe);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    drop(sim);
    probe
}

/// Returns the delivery time of each message after its submission, in picoseconds, and the longest
/// queue.
fn on_star(config: HomaConfig, arrivals: Vec<Arrival>) -> (Vec<u64>, u64) {
    let (spec, config, _) = deep::<HomaTransport>(&config);
    let mut seen: Deliveries = observe::<HomaTransport, _>(spec, config, arrivals);
    seen.flows.sort_by_key(|&(id, _)| id);
    (seen.flows.into_iter().map(|(_, took)| took).collect(), seen.queue_max)
}

#[derive(Default)]
struct Deliveries {
    flows: Vec<(u32, u64)>,
    queue_max: u64,
}

impl Probe for Deliveries {
    fn on_flow(&mut self, r: &FlowRecord) {
        self.flows.push((r.id.get(), (r.delivered.unwrap() - r.arrival).as_ps()));
    }

    fn on_end<H: Header, P: rampmeter_types::SwitchProgram<H>>(
        &mut self,
        _now: rampmeter_types::Time,
        fabric: &mut fabric::Fabric<H, P>,
    ) {
        let tiers = fabric.tier_stats().into_iter().filter(|tier| !tier.is_of_hosts);
        self.queue_max = tiers.map(|tier| tier.queue_max.get()).max().unwrap_or(0);
    }
}

/// A byte at 100 Gbit/s, in picoseconds.
const BYTE: u64 = 80;
/// Two links of 650 ns.
const LINKS: u64 = 1_300_000;

mod alone {
    use super::*;

    /// The pipeline runs as fast as links do: grants arrive before the unscheduled bytes are out.
    #[test]
    fn a_message_alone_has_the_ideal_time() {
        for packets in [1, 7, 20, 21, 100, 5_000] {
            let (took, _) = on_star(HomaConfig::paper(), vec![arrival(0, 1, 2, packets * 1_460)]);
            assert_eq!(took, [LINKS + (packets + 1) * 1_500 * BYTE], "{packets} packets");
        }
    }

    /// Unscheduled packets of 1442 B, the last of them shorter, scheduled ones of 1456 B.
    #[test]
    fn the_reference_takes_the_time_of_its_packets() {
        for (size, wire, last) in
            [(1_000, 1_096, 1_096), (500_000, 106_720 + 422_550, 400_000 - 274 * 1_456 + 82)]
        {
            let (took, _) = on_star(HomaConfig::reference(), vec![arrival(0, 1, 2, size)]);
            // The last packet is shorter than others: it waits for nobody at the switch.
            let ideal = LINKS + (wire + if wire > 1_538 { 1_538 } else { last }) * BYTE;
            assert!(took[0] <= ideal && took[0] + 1_538 * BYTE >= ideal, "{} {ideal}", took[0]);
        }
    }
}

mod incast {
    use super::*;

    const N: u64 = 10;
    const SIZE: u64 = 300 * 1_460;

    /// N equal messages at once. With one sender at a time they arrive one after another: all
    /// unscheduled bytes first, then the scheduled ones of each. The link is never idle.
    #[test]
    fn equal_messages_complete_one_after_another() {
        let config = HomaConfig {
            overcommitment: Some(1),
            rtt_bytes: Some(40 * 1_460),
            incast_messages: 0,
            // No probes among the data.
            timeout_rtts: 10_000,
            ..HomaConfig::paper()
        };
        let arrivals = (0..N).map(|n| arrival(0, 1 + n as u32, 0, SIZE)).collect();
        let (mut took, queue_max) = on_star(config, arrivals);
        took.sort_unstable();
        let packet = 1_500 * BYTE;
        let (unscheduled, scheduled) = (N * 40 * packet, 260 * packet);
        let first = LINKS + packet + unscheduled;
        for (took, n) in took.iter().zip(1..) {
            assert_eq!(*took, first + n * scheduled, "message {n}");
        }
        // Packets that arrive while the switch sends nothing of it: N packets a packet time, less
        // the one that it sends and the one on the link.
        let left = (N * 40 - 40) * 1_500;
        assert!((left..=left + 1_500).contains(&queue_max), "{queue_max}");
    }

    /// With several senders at a time the last completes when it would with one: overcommitment
    /// loses nothing of the link.
    #[test]
    fn the_last_of_equal_messages_completes_when_all_bytes_have_passed() {
        for config in [HomaConfig::paper(), HomaConfig::reference()] {
            let full = config.packet.full.wire().get();
            let incast = (0..N).map(|n| arrival(0, 1 + n as u32, 0, SIZE)).collect();
            let (took, _) = on_star(config.clone(), incast);
            let (alone, _) = on_star(config, vec![arrival(0, 1, 0, SIZE)]);
            let wire = alone[0] - LINKS - full * BYTE;
            let last = took.into_iter().max().unwrap();
            let ideal = LINKS + full * BYTE + N * wire;
            assert!(last.abs_diff(ideal) < 3 * full * BYTE * N, "{last} of {ideal}");
        }
    }

    /// §3.6: 30 servers answer one client at once. Its queue holds a window for each of as many
    /// senders as the overcommitment. It holds as much of senders whose last grants have been sent,
    /// as grants pass to the next sender before the bytes have arrived. It also holds a packet of
    /// each server. Without incast control it holds a window for each server.
    #[test]
    fn incast_control_bounds_the_queue_by_the_grants() {
        let paper = HomaConfig { exchange: Exchange::Rpc, ..HomaConfig::paper() };
        let queue = |incast_messages| {
            let config = HomaConfig { incast_messages, ..paper.clone() };
            let requests = (1..=30).map(|server| arrival(0, 0, server, 100));
            let answers = (1..=30).map(|server| arrival(10_000_000, server, 0, 500_000));
            on_star(config, requests.chain(answers).collect()).1
        };
        let (_, homa, _) = deep::<HomaTransport>(&paper);
        let granted = homa.window * homa.overcommitment as u64;
        let (with, without) = (queue(4), queue(0));
        println!("{with} B with incast control, of {granted} granted; {without} B without");
        assert!(with <= 2 * granted + 30 * 1_500, "{with} of {granted}");
        assert!(without > 4 * granted && without < 30 * homa.window, "{without}");
    }
}

/// By share of bytes W1 to W5 have 7, 6, 2, 1 and 1 of eight levels for unscheduled packets. The
/// bandwidth-delay product is 9.7 KB. The paper's figures have 7, 5, 4, 1 and 1 (§5.2).
#[test]
fn priorities_of_the_published_workloads_follow_their_bytes() {
    for (name, share, levels) in [
        ("homa-w1", 0.995, 7),
        ("homa-w2", 0.772, 6),
        ("homa-w3", 0.295, 2),
        ("homa-w4", 0.027, 1),
        ("homa-w5", 0.004, 1),
    ] {
        let sizes = named(name).unwrap();
        let unit = sizes.unit().get() as f64;
        let points: Vec<(f64, f64)> = sizes.points().map(|(size, p)| (size * unit, p)).collect();
        let split = split_priorities(&points, 9_700.0, 8);
        println!("{name}: {split:?}");
        assert_eq!(split.unscheduled_priorities, levels, "{name}");
        assert!((split.unscheduled_share - share).abs() < 0.001, "{name}: {split:?}");
        assert!(split.cutoffs.is_sorted());
    }
}

mod selective_dropping {
    use super::*;

    /// Packets that ports dropped early.
    #[derive(Default)]
    struct Early {
        queued: std::collections::BTreeMap<u32, u64>,
        dropped: u64,
        /// True if a scheduled packet has been sent, and the longest queue before.
        is_scheduled: bool,
        longest_unscheduled: u64,
        failed: u64,
    }

    /// The threshold of Aeolus.
    const ABOVE: u64 = 6_000;

    fn is_unscheduled<H>(packet: &Packet<H>) -> bool {
        packet.marks.contains(Marks::UNSCHEDULED)
    }

    impl Probe for Early {
        fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
            let queued = self.queued.entry(event.port).or_default();
            match event.change {
                PortChange::Drop { packet, reason: DropReason::Unscheduled, .. } => {
                    assert!(is_unscheduled(&packet) && *queued > ABOVE, "{event:?}");
                    self.dropped += 1;
                }
                PortChange::TransmitStart { packet, .. }
                    if packet.payload.len > 0 && !is_unscheduled(&packet) =>
                {
                    self.is_scheduled = true;
                }
                PortChange::QueueLength { bytes, .. } => {
                    *queued = u64::from(bytes);
                    if !self.is_scheduled {
                        self.longest_unscheduled = self.longest_unscheduled.max(*queued);
                    }
                }
                _ => {}
            }
        }

        fn on_flow(&mut self, r: &FlowRecord) {
            self.failed += u64::from(r.completed.is_none());
        }
    }

    /// Twelve messages of `size` for one host at once.
    fn incast(size: u64) -> Vec<Arrival> {
        (1..=12).map(|n| arrival(0, n, 0, size)).collect()
    }

    /// Most unscheduled packets of an incast are dropped, and nothing else.
    #[test]
    fn a_long_queue_drops_only_unscheduled_packets() {
        let (spec, config, _) = deep::<HomaAeolusTransport>(&AeolusConfig::default());
        let early: Early =
            observe::<WatchedTransport<HomaAeolusTransport>, _>(spec, config, incast(300_000));
        assert!(early.dropped > 100 && early.failed == 0, "{} dropped", early.dropped);
    }

    /// As long as nothing else is in flight, a port holds the threshold and one packet more.
    #[test]
    fn no_unscheduled_packet_waits_behind_more_than_the_threshold() {
        let (spec, config, fabric) = deep::<HomaAeolusTransport>(&AeolusConfig::default());
        assert_eq!(fabric.drop_unscheduled_above, Some(Bytes::new(ABOVE)));
        let early: Early =
            observe::<WatchedTransport<HomaAeolusTransport>, _>(spec, config, incast(300_000));
        let longest = early.longest_unscheduled;
        assert!(longest > ABOVE && longest <= ABOVE + 1_500, "{longest}");
    }

    /// Dropped packets cost no timeout: twelve messages take little longer than the link needs.
    #[test]
    fn an_incast_recovers_from_early_drops_without_a_timeout() {
        let (spec, config, _) = deep::<HomaAeolusTransport>(&AeolusConfig::default());
        let seen: Deliveries = observe::<HomaAeolusTransport, _>(spec, config, incast(300_000));
        let last = seen.flows.iter().map(|&(_, took)| took).max().unwrap();
        let needed = 12 * 206 * 1_500 * BYTE;
        assert!(last > needed && last < needed + 20_000_000, "{last} of {needed}");
    }
}

/// Requests that answers acknowledge, regardless of network faults.
mod requests {
    use super::*;
    use rampmeter_testkit::scenario::{Scenario, assert_sound, scenario};
    use rampmeter_testkit::{here, leaf_spine, run, suite::each_seed};

    #[test]
    fn every_request_and_answer_is_delivered_once_or_reported() {
        let config =
            HomaConfig { exchange: Exchange::Rpc, incast_messages: 2, ..HomaConfig::paper() };
        let name = "requests::every_request_and_answer_is_delivered_once_or_reported";
        each_seed(here!(), name, 0..300, |seed| {
            let place = TestNetwork::<HomaTransport>::simulated(&config, leaf_spine(2, 3, 2));
            let Scenario { mut spec, arrivals, failed_host } = scenario(place.topology, seed);
            spec.fabric = place.fabric;
            assert_sound(&run::<HomaTransport>(place.config, spec, arrivals), failed_host);
        });
    }
}
