//! Events that ports report.

use super::*;
use rampmeter_sim::fabric::{PortChange, PortEvent};

/// All events of ports, without packets: (time, port, event).
#[derive(Default)]
struct Log(Vec<(Time, u32, String)>);

impl Probe for Log {
    fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
        let what = match event.change {
            PortChange::TransmitStart { from, until, .. } => format!("sends {from} {until}"),
            PortChange::Arrival { .. } => "arrives".to_owned(),
            PortChange::QueueLength { bytes } => format!("queue {bytes}"),
            PortChange::Drop { reason, .. } => format!("drops {reason:?}"),
            PortChange::Mark { packet, .. } => format!("marks {:?}", packet.marks),
            PortChange::CutOff { .. } => "cuts".to_owned(),
            PortChange::Duplicate { .. } => "doubles".to_owned(),
            PortChange::Consume { .. } => "keeps".to_owned(),
            PortChange::LinkDown => "fails".to_owned(),
            PortChange::LinkUp => "recovers".to_owned(),
        };
        self.0.push((event.at, event.port, what));
    }
}

type LoggedSim = Sim<WatchedTransport<Blast>, std::vec::IntoIter<Arrival>, Log>;

fn log(spec: SimSpec, cut: Segmentation, arrivals: Vec<Arrival>) -> (Log, LoggedSim) {
    let (arrivals, config) = (arrivals.into_iter(), Arc::new(cut));
    let mut sim = LoggedSim::new(spec, config, arrivals, Log::default());
    sim.run(u64::MAX);
    (Log(sim.probe().0.clone()), sim)
}

fn count(log: &Log, kind: &str) -> usize {
    log.0.iter().filter(|(_, _, did)| did.starts_with(kind)).count()
}

#[test]
fn observing_ports_reports_all_events_and_changes_no_result() {
    let mut spec = spec(4);
    spec.fabric.mark_above = Some(Bytes::new(3 * 1_500));
    let arrivals = vec![to_first(0, 1, 1), to_first(40, 2, 20), to_first(80, 3, 20)];
    let cut = Segmentation { marks: Marks::ECN_CAPABLE, ..Segmentation::default() };
    let plain = run::<Blast>(spec.clone(), cut, arrivals.clone());
    let (log, watched) = log(spec, cut, arrivals);
    assert_eq!(watched.counters(), plain.counters());
    assert_eq!(watched.fabric().tier_stats(), plain.fabric().tier_stats());
    assert_eq!(count(&log, "marks"), 16 + 17);
    assert_eq!(count(&log, "sends") as u64, watched.fabric().stats().hops);
    assert_eq!(count(&log, "arrives") as u64, watched.fabric().stats().delivered);
    let longest = watched.fabric().tier_stats().iter().map(|t| t.queue_max.get()).max();
    let queues = log.0.iter().filter_map(|(_, _, did)| did.strip_prefix("queue "));
    assert_eq!(queues.map(|bytes| bytes.parse().unwrap()).max(), longest);
}

#[test]
fn failures_and_repairs_are_reported_at_both_ends_with_losses() {
    let mut spec = spec(3);
    let at = |ns| Time::ZERO + Span::from_ns(ns);
    let outage = rampmeter_sim::Outage { target: Target::Link(1), from: at(500), until: at(900) };
    spec.faults.outages = vec![outage];
    let (log, sim) = log(spec, Segmentation::default(), vec![to_first(0, 1, 20)]);
    let of = |kind: &str| -> Vec<(Time, u32)> {
        let did = log.0.iter().filter(|(_, _, did)| did == kind);
        did.map(|(at, port, _)| (*at, *port)).collect()
    };
    assert_eq!(of("fails"), [(at(500), 1), (at(500), 4)]);
    assert_eq!(of("recovers"), [(at(900), 1), (at(900), 4)]);
    assert_eq!(count(&log, "drops LinkDown") as u64, sim.fabric().stats().dropped());
    assert!(sim.fabric().stats().dropped() > 0);
}
